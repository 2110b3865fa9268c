/*
 * cc.h - congestion control behind one small interface. What is lost and when to send it again is loss.c's; how much may be in
 * flight is decided here.
 */
#ifndef MUSTER_TCP_CC_H
#define MUSTER_TCP_CC_H

#include "muster/time.h"

#define CC_MAX_WINDOW (64u << 20)

struct cc {
	uint32_t cwnd;	   /* bytes that may be in flight */
	uint32_t ssthresh; /* slow start below */
	uint32_t acked;	   /* bytes acknowledged since the window last grew, in congestion avoidance */
};

struct cc_ops {
	const char *name;
	void (*init)(struct cc *cc, uint32_t mss);
	/* `bytes` were acknowledged while the window was the limit and nothing was being recovered; also after a time-out. */
	void (*acked)(struct cc *cc, uint32_t mss, uint32_t bytes, struct now now);
	/* Loss was noticed by duplicate or selective acknowledgements with `flight` bytes outstanding; once per window. */
	void (*loss)(struct cc *cc, uint32_t mss, uint32_t flight, struct now now);
	/* The retransmission timer fired; `again`: for the same bytes as before. */
	void (*timeout)(struct cc *cc, uint32_t mss, uint32_t flight, bool again, struct now now);
	/* The connection sent nothing for longer than one time-out (RFC 5681, 4.1). */
	void (*idle)(struct cc *cc, uint32_t mss);
};

extern const struct cc_ops cc_newreno;

#endif
