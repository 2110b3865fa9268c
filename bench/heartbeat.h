/*
 * heartbeat.h - what a group member says on the wire, in the load generator's own few lines of encoding: join, sync, heartbeat.
 *
 * Independent of the server's codec, so that a mistake there is not mirrored, and cheap: a heartbeat is a ready-made frame in which only
 * the correlation id changes. Versions: JoinGroup 5, SyncGroup 3, Heartbeat 4. All frames include their length field.
 */
#ifndef BENCH_HEARTBEAT_H
#define BENCH_HEARTBEAT_H

#include "muster/bytes.h"

#define HEARTBEAT_ID_MAX 128u	   /* longest member id taken */
#define HEARTBEAT_REQUEST_MAX 256u /* longest heartbeat frame */
#define HEARTBEAT_ANSWER 16u	   /* every heartbeat answer, with its length field */
#define HEARTBEAT_GROUP_MAX 400u   /* members of one group: its leader's SyncGroup fits into HEARTBEAT_FRAME_MAX */
#define HEARTBEAT_FRAME_MAX 65536u /* any other frame of ours */

enum heartbeat_error { HEARTBEAT_OK = 0, HEARTBEAT_UNKNOWN_MEMBER = 25, HEARTBEAT_REBALANCE = 27, HEARTBEAT_ID_REQUIRED = 79 };

/* One member's identity and place in its group. */
struct heartbeat_member {
	char group[32], client_id[32];
	uint8_t id[HEARTBEAT_ID_MAX]; /* the server's name for it */
	unsigned int id_len;
	int32_t generation;
	int32_t correlation; /* of the last request */
	uint8_t request[HEARTBEAT_REQUEST_MAX]; /* the heartbeat, ready made by heartbeat_prepare */
	unsigned int request_len;
};

/* Requests, written to `w` with a new correlation id. */
void heartbeat_join(struct heartbeat_member *m, struct writer *w);
/* `join` is the JoinGroup answer when the member is the leader (it gives each member an assignment), else empty. */
void heartbeat_sync(struct heartbeat_member *m, struct writer *w, struct bytes join);

/* Makes m->request; call it when the member has its id and generation. */
void heartbeat_prepare(struct heartbeat_member *m);
/* Gives m->request the next correlation id. */
static inline void heartbeat_next(struct heartbeat_member *m)
{
	uint32_t c = __builtin_bswap32((uint32_t)++m->correlation);
	memcpy(m->request + 8, &c, 4);
}

/*
 * Answers, without their length field. Each returns the answer's error code, or -1000 when it is malformed or not the answer to the
 * last request.
 */
#define HEARTBEAT_MALFORMED (-1000)
int heartbeat_join_answer(struct heartbeat_member *m, const uint8_t *p, size_t len, bool *leader);
int heartbeat_sync_answer(struct heartbeat_member *m, const uint8_t *p, size_t len);

static inline int heartbeat_answer(const struct heartbeat_member *m, const uint8_t *p, size_t len)
{
	uint32_t c = __builtin_bswap32((uint32_t)m->correlation);
	if (len != HEARTBEAT_ANSWER - 4 || memcmp(p, &c, 4) != 0)
		return HEARTBEAT_MALFORMED;
	return (int16_t)(p[9] << 8 | p[10]);
}

/* The answer of a server that does nothing but answer: error 0 to the heartbeat request in `p`, with the length field. */
static inline void heartbeat_accept(uint8_t out[HEARTBEAT_ANSWER], const uint8_t *p)
{
	memset(out, 0, HEARTBEAT_ANSWER);
	out[3] = HEARTBEAT_ANSWER - 4;
	memcpy(out + 4, p + 4, 4);
}

#endif
