/*
 * load_dataplane.c - the load generator on our own dataplane, opening connections actively; with net_memif no kernel is in the path.
 *
 * usage: load_dataplane --device D --address A/LEN --server A.B.C.D --port P [--cpu N] [--idle spin|adaptive] and the options of load.h
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/load.h"
#include "bench/setup.h"

#define OPENING_MAX 64u /* connections being opened at the same time */

struct client {
	struct setup setup;
	struct dataplane *dp;
	struct load *load;
	uint16_t port; /* the server's */
	unsigned int opening;
	bool stopping;
};

struct session {
	struct client *client;
	struct channel *channel;
	struct load_member *member;
};

static void *client_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	struct client *cl = service;
	struct session *s = malloc(sizeof(*s));
	if (s == NULL || load_missing(cl->load) == 0) {
		free(s);
		return NULL;
	}
	*s = (struct session){cl, ch, NULL};
	cl->opening--;
	s->member = load_opened(cl->load, ch);
	return s;
}

static void send_bytes(void *connection, const uint8_t *p, size_t len)
{
	channel_send(connection, p, len);
}

static enum service_verdict client_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	struct session *s = session;
	load_answer(s->client->load, s->member, p, len, now.us);
	return SERVICE_NEXT;
}

static void client_eof(void *session, struct now now)
{
	struct session *s = session;
	load_lost(s->client->load, "the server closed a connection");
}

static void client_drained(void *session, struct now now)
{
	channel_close(((struct session *)session)->channel);
}

static void client_closed(void *session, struct now now)
{
	struct session *s = session;
	load_lost(s->client->load, "a connection ended");
	free(s);
}

static uint64_t client_tick(void *service, struct now now)
{
	struct client *cl = service;
	uint64_t next = load_tick(cl->load, now.us);
	while (cl->opening < OPENING_MAX && cl->opening < load_missing(cl->load)) {
		if (!dataplane_connect(cl->dp, 0, cl->setup.server, cl->port, now))
			break;
		cl->opening++;
	}
	if (load_ended(cl->load) && !cl->stopping) {
		cl->stopping = true;
		dataplane_stop(cl->dp);
	}
	return next;
}

/* The other side may not be up yet: tried again until the load generator's patience ends. */
static void client_connect_failed(void *service, struct now now)
{
	((struct client *)service)->opening--;
}

static bool client_stop(void *service, struct now now)
{
	return true;
}

static const struct service_ops client_ops = {
	.opened = client_opened,
	.frame = client_frame,
	.eof = client_eof,
	.drained = client_drained,
	.closed = client_closed,
	.tick = client_tick,
	.connect_failed = client_connect_failed,
	.stop = client_stop,
};

int main(int argc, char **argv)
{
	struct client cl = {0};
	struct load_config cfg;
	struct timespec ts;
	char err[512];
	setup_init(&cl.setup);
	if (!load_options(&cfg, argc, argv, setup_option, &cl.setup))
		return 2;
	cl.port = cl.setup.dataplane.port;
	cl.dp = dataplane_start(&cl.setup.dataplane, err, sizeof(err));
	if (cl.dp == NULL) {
		fprintf(stderr, "load_dataplane: %s\n", err);
		return EXIT_FAILURE;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	cl.load = load_new(&cfg, send_bytes, (uint64_t)ts.tv_sec * US_PER_S + (uint64_t)ts.tv_nsec / 1000);
	if (cl.load == NULL)
		return EXIT_FAILURE;
	dataplane_set_service(cl.dp, 0, &client_ops, &cl);
	dataplane_run(cl.dp, US_PER_S);
	int status = load_report(cl.load);
	dataplane_free(cl.dp);
	load_free(cl.load);
	return status;
}
