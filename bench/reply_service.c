/*
 * reply_service.c - a session is the channel itself; there is no state.
 */
#include "bench/heartbeat.h"
#include "bench/reply_service.h"

static void *reply_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	return ch;
}

static enum service_verdict reply_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	uint8_t out[HEARTBEAT_ANSWER];
	if (len < 8)
		return SERVICE_ABORT;
	heartbeat_accept(out, p);
	channel_send(session, out, sizeof(out));
	return SERVICE_NEXT;
}

static void reply_eof(void *session, struct now now)
{
}

static void reply_drained(void *session, struct now now)
{
	channel_close(session);
}

static void reply_closed(void *session, struct now now)
{
}

static uint64_t reply_tick(void *service, struct now now)
{
	return TIME_NEVER;
}

static bool reply_stop(void *service, struct now now)
{
	return true;
}

const struct service_ops reply_service_ops = {
	.opened = reply_opened,
	.frame = reply_frame,
	.eof = reply_eof,
	.drained = reply_drained,
	.closed = reply_closed,
	.tick = reply_tick,
	.stop = reply_stop,
};
