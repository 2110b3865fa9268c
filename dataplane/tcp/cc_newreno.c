/*
 * cc_newreno.c - slow start and congestion avoidance (RFC 5681), growing by the bytes acknowledged (RFC 3465), with the initial
 * window of RFC 6928.
 */
#include "dataplane/tcp/cc.h"

static uint32_t initial_window(uint32_t mss)
{
	uint32_t floor = 2 * mss > 14600 ? 2 * mss : 14600;
	return 10 * mss < floor ? 10 * mss : floor;
}

static uint32_t half_of(uint32_t flight, uint32_t mss)
{
	return flight / 2 > 2 * mss ? flight / 2 : 2 * mss;
}

static void newreno_init(struct cc *cc, uint32_t mss)
{
	*cc = (struct cc){.cwnd = initial_window(mss), .ssthresh = CC_MAX_WINDOW};
}

static void newreno_acked(struct cc *cc, uint32_t mss, uint32_t bytes, struct now now)
{
	if (cc->cwnd < cc->ssthresh) {
		uint32_t room = cc->ssthresh - cc->cwnd;
		uint32_t grow = bytes < room ? bytes : room;
		cc->cwnd += grow;
		bytes -= grow;
	}
	cc->acked += bytes;
	if (cc->acked >= cc->cwnd) {
		cc->acked -= cc->cwnd;
		cc->cwnd += mss;
	}
	if (cc->cwnd > CC_MAX_WINDOW)
		cc->cwnd = CC_MAX_WINDOW;
}

static void newreno_loss(struct cc *cc, uint32_t mss, uint32_t flight, struct now now)
{
	cc->ssthresh = half_of(flight, mss);
	cc->cwnd = cc->ssthresh;
	cc->acked = 0;
}

static void newreno_timeout(struct cc *cc, uint32_t mss, uint32_t flight, bool again, struct now now)
{
	if (!again)
		cc->ssthresh = half_of(flight, mss);
	cc->cwnd = mss;
	cc->acked = 0;
}

static void newreno_idle(struct cc *cc, uint32_t mss)
{
	if (cc->cwnd > initial_window(mss))
		cc->cwnd = initial_window(mss);
}

const struct cc_ops cc_newreno = {
	.name = "newreno",
	.init = newreno_init,
	.acked = newreno_acked,
	.loss = newreno_loss,
	.timeout = newreno_timeout,
	.idle = newreno_idle,
};
