/*
 * steer.h - which worker a received frame is for, and how the device is made to deliver it there.
 *
 * Every worker listens on a port of its own, and connections that it opens have a local port that says the same, so the TCP port that a frame goes to names its
 * worker. In the order of preference: flow rules on that port in the device; the device's own spreading (RSS) or, with fewer queues than workers,
 * queues that several workers share, and then a ring carries the whole frame to its worker.
 */
#ifndef DATAPLANE_STEER_H
#define DATAPLANE_STEER_H

#include "muster/dataplane.h"

#define STEER_EPHEMERAL_FIRST 32768u
#define STEER_EPHEMERAL_COUNT 28224u

struct steer {
	uint16_t port; /* of worker 0 */
	uint16_t workers;
	const struct dataplane_worker *each; /* has the port of each worker; NULL: worker n's is port + n */
};

/*
 * The worker that the `len` bytes of an Ethernet frame are for; `self` when they are no TCP over IPv4, or no worker's. Looks at nothing but the port:
 * whether the frame is right is its worker's business.
 */
unsigned int steer_frame(const struct steer *steer, unsigned int self, const uint8_t *frame, size_t len);

/* The i-th local port (i < STEER_EPHEMERAL_COUNT / workers) that a connection opened by worker `self` may have; 0: it is somebody's listening port. */
uint16_t steer_ephemeral(const struct steer *steer, unsigned int self, unsigned int i);

/* Whether the frame is an ARP packet that other workers may wait for: an answer, or a host's word about itself. A question is its receiver's alone. */
bool steer_is_arp_news(const uint8_t *frame, size_t len);

#endif
