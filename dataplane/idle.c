/*
 * idle.c - the adaptive policy.
 *
 * A rest is the time from the last work to the next. Spinning through it pays only while rests are short, so their
 * length is smoothed: a worker whose rests are short spins and then pauses for a while first, one whose rests are long
 * sleeps at once; with sparse members that decides what a request costs. Asleep, the worker waits for the port's
 * descriptor; without a dependable one it looks again after 1 ms.
 *
 * Invariants:
 *  1. No sleep is longer than SLEEP_MAX_US, or POLL_MAX_US when frames could wait unnoticed.
 *  2. A descriptor that keeps saying "readable" without work behind it is not waited for until there was work again.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <rte_pause.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/idle.h"

#define SLEEP_MAX_US (100u * US_PER_MS)
#define POLL_MAX_US US_PER_MS
#define SHORT_REST_US 50u  /* rests of this length are worth spinning through */
#define SPIN_US 50u	   /* spinning ends, pausing begins */
#define PAUSE_US 200u	   /* pausing ends */
#define PAUSES_PER_ROUND 16u
#define REST_CLAMP_US 1000u
#define FALSE_ALARMS_MAX 8u

bool idle_init(struct idle *idle, enum idle_policy policy, const struct port *port, uint16_t queue, const char *device)
{
	*idle = (struct idle){.policy = policy, .port = port->id, .queue = queue, .has_queue = queue < port->queues, .gap_us = REST_CLAMP_US};
	idle->rx = policy == IDLE_ADAPTIVE && idle->has_queue ? rx_fd_find(port, queue, device) : (struct rx_fd){.fd = -1};
	idle->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return idle->wake_fd >= 0;
}

void idle_fini(struct idle *idle)
{
	if (idle->wake_fd >= 0)
		close(idle->wake_fd);
	idle->wake_fd = -1;
}

static void end_rest(struct idle *idle, struct now now)
{
	uint64_t rest = now.us - idle->since_us;
	if (rest > REST_CLAMP_US)
		rest = REST_CLAMP_US;
	idle->gap_us = (idle->gap_us * 7 + rest) / 8;
	idle->resting = false;
	idle->false_alarms = 0;
}

bool idle_after_round(struct idle *idle, bool worked, struct now now)
{
	if (worked) {
		if (idle->resting)
			end_rest(idle, now);
		return false;
	}
	if (idle->policy == IDLE_SPIN)
		return false;
	if (!idle->resting) {
		idle->resting = true;
		idle->since_us = now.us;
	}
	uint64_t rested = now.us - idle->since_us;
	if (idle->gap_us >= SHORT_REST_US || rested >= PAUSE_US)
		return true;
	if (rested < SPIN_US)
		return false;
	for (unsigned int i = 0; i < PAUSES_PER_ROUND; i++)
		rte_pause();
	return false;
}

uint64_t idle_sleep(struct idle *idle, uint64_t until_us, struct now now)
{
	bool use_rx = idle->rx.fd >= 0 && idle->false_alarms < FALSE_ALARMS_MAX;
	uint64_t limit = !idle->has_queue || (use_rx && idle->rx.level) ? SLEEP_MAX_US : POLL_MAX_US, us = until_us - now.us;
	if (until_us <= now.us)
		return 0;
	us = us < limit ? us : limit;
	struct timespec timeout = {(time_t)(us / US_PER_S), (long)(us % US_PER_S) * 1000};
	struct pollfd fds[2] = {{.fd = idle->wake_fd, .events = POLLIN}, {.fd = use_rx ? idle->rx.fd : -1, .events = POLLIN}};
	if (use_rx && idle->rx.interrupt)
		rte_eth_dev_rx_intr_enable(idle->port, idle->queue);
	int n = ppoll(fds, 2, &timeout, NULL);
	if (use_rx && idle->rx.interrupt)
		rte_eth_dev_rx_intr_disable(idle->port, idle->queue);
	if (n > 0 && fds[1].revents != 0)
		idle->false_alarms++;
	if (n > 0 && fds[0].revents != 0) {
		eventfd_t value;
		eventfd_read(idle->wake_fd, &value);
	}
	return us;
}

void idle_wake(const struct idle *idle)
{
	int saved = errno;
	eventfd_write(idle->wake_fd, 1);
	errno = saved;
}
