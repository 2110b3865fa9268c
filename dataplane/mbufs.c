/*
 * mbufs.c - makes the pool step by step, because rte_pktmbuf_pool_create cannot be told one thing: where addresses on
 * the bus are virtual ones, an object may cross a page. Without it each mbuf takes a 4 KiB page of its own when there
 * are no huge pages; and net_af_xdp, which registers objects x size bytes from the start as the memory that it may use,
 * then loses every frame in the pool's last part.
 */
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include "dataplane/mbufs.h"

struct rte_mempool *mbufs_new(const char *name, unsigned int n, unsigned int data_bytes, int socket)
{
	struct rte_pktmbuf_pool_private shape = {.mbuf_data_room_size = (uint16_t)data_bytes};
	unsigned int flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	struct rte_mempool *pool = rte_mempool_create_empty(name, n, (unsigned int)sizeof(struct rte_mbuf) + data_bytes, MBUFS_CACHE,
							    sizeof(shape), socket, flags);
	if (pool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(pool, &shape);
	if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0 || rte_mempool_populate_default(pool) < 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

void mbufs_free(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}
