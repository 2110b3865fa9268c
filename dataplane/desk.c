/*
 * desk.c - see desk.h.
 */
#define RTE_USE_C11_MEM_MODEL /* as in exchange.c */
#include <errno.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "dataplane/desk.h"
#include "muster/check.h"

static struct rte_ring *desk_ring(void)
{
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct mail), rte_align32pow2(DESK_MAIL + 1));
	CHECK(bytes > 0);
	struct rte_ring *ring = aligned_alloc(MUSTER_CACHE_LINE, (size_t)bytes);
	if (ring != NULL)
		CHECK(rte_ring_init(ring, "desk", DESK_MAIL, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) == 0);
	return ring;
}

bool desk_init(struct desk *desk, int bell)
{
	*desk = (struct desk){desk_ring(), desk_ring(), bell};
	return desk->in != NULL && desk->out != NULL;
}

void desk_fini(struct desk *desk)
{
	free(desk->in);
	free(desk->out);
	*desk = (struct desk){.bell = -1};
}

static bool put(struct rte_ring *ring, const struct mail *mail)
{
	return rte_ring_sp_enqueue_elem(ring, (void *)(uintptr_t)mail, sizeof(*mail)) == 0;
}

static unsigned int take(struct rte_ring *ring, struct mail out[], unsigned int max)
{
	return rte_ring_sc_dequeue_burst_elem(ring, out, sizeof(out[0]), max, NULL);
}

bool desk_tell(struct desk *desk, const struct mail *mail)
{
	return put(desk->in, mail);
}

unsigned int desk_told(struct desk *desk, struct mail out[], unsigned int max)
{
	return take(desk->out, out, max);
}

bool desk_waits(const struct desk *desk)
{
	return __atomic_load_n(&desk->in->prod.tail, __ATOMIC_RELAXED) != desk->in->cons.tail;
}

unsigned int desk_read(struct desk *desk, struct mail out[], unsigned int max)
{
	return take(desk->in, out, max);
}

bool desk_answer(struct desk *desk, const struct mail *mail)
{
	int saved = errno;
	if (!put(desk->out, mail))
		return false;
	eventfd_write(desk->bell, 1);
	errno = saved;
	return true;
}
