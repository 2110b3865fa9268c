/*
 * steady.c - the short way of a steady heartbeat: of the member that the connection's last heartbeat was for, on a connection that owes no answer.
 *
 *   frame -> steady_read -> shard_heartbeat_known -> steady_answer -> channel
 *
 * Nothing is remembered but what the memo says, the member's slot and tag: ids, generation and state are read from the frame and from the group
 * each time. So no change of the group can be missed, and whatever is unusual goes the general way, which answers the same (session.c).
 */
#include "coordinator/session.h"
#include "coordinator/wire/steady.h"

bool session_steady(struct session *s, const uint8_t *p, size_t len, struct now now)
{
	struct steady hb;
	uint8_t out[STEADY_ANSWER_MAX];
	if (unlikely(s->oldest != NULL || !steady_read(&hb, p, len)))
		return false;
	int error = shard_heartbeat_known(&s->memo, &hb.body, now);
	if (unlikely(error == SHARD_MEMBER_UNKNOWN))
		return false;
	struct stats *stats = s->all->stats;
	stats->requests++;
	stats->responses++;
	channel_send(s->ch, out, steady_answer(out, &hb, (int16_t)error));
	return true;
}
