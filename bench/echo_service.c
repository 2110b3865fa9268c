/*
 * echo_service.c - one small session per connection; nothing is ever parked.
 */
#include <stdlib.h>

#include "bench/echo_service.h"

struct session {
	struct echo_service *service;
	struct channel *channel;
};

static void *echo_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	struct session *s = malloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	*s = (struct session){service, ch};
	s->service->open++;
	return s;
}

static enum service_verdict echo_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	struct session *s = session;
	uint32_t length = __builtin_bswap32((uint32_t)len);
	s->service->frames++;
	channel_send(s->channel, &length, sizeof(length));
	channel_send(s->channel, p, len);
	return SERVICE_NEXT;
}

static void echo_eof(void *session, struct now now)
{
}

static void echo_drained(void *session, struct now now)
{
	channel_close(((struct session *)session)->channel);
}

static void echo_closed(void *session, struct now now)
{
	struct session *s = session;
	s->service->open--;
	free(s);
}

static uint64_t echo_tick(void *service, struct now now)
{
	return TIME_NEVER;
}

static bool echo_stop(void *service, struct now now)
{
	return true;
}

const struct service_ops echo_service_ops = {
	.opened = echo_opened,
	.frame = echo_frame,
	.eof = echo_eof,
	.drained = echo_drained,
	.closed = echo_closed,
	.tick = echo_tick,
	.stop = echo_stop,
};
