/*
 * load.c - see load.h.
 *
 * Invariants:
 *  1. A member has at most one request unanswered, so the last correlation id is the one to expect.
 *  2. Answers count while the phase is LOAD_MEASURING, requests that went out before it included: in a steady state as many enter as leave.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/heartbeat.h"
#include "bench/load.h"
#include "bench/usage.h"
#include "muster/check.h"
#include "muster/time.h"

#define SETUP_US (60ull * US_PER_S)  /* for connecting, joining and settling */
#define WARM_US (500ull * US_PER_MS)
#define SILENCE_US (10ull * US_PER_S) /* without any answer: the run has failed */
#define REST_US (300ull * US_PER_MS) /* before the calibration, and its length */
#define PULSE_US (200ull * US_PER_MS) /* between heartbeats of those who wait for others to join */

/* In this order. */
enum load_phase {
	LOAD_RESTING,
	LOAD_CALIBRATING,
	LOAD_CONNECTING,
	LOAD_JOINING,
	LOAD_SETTLING,
	LOAD_WARMING,
	LOAD_MEASURING,
	LOAD_DONE,
	LOAD_FAILED,
};
enum member_state { MEMBER_IDLE, MEMBER_JOINING, MEMBER_SYNCING, MEMBER_READY };

struct load_member {
	void *connection;
	enum member_state state;
	bool waiting; /* for an answer */
	bool settled; /* a heartbeat was answered without error since all were ready */
	uint64_t sent_us;
	struct heartbeat_member hb;
};

struct load {
	struct load_config cfg;
	load_send *send;
	struct load_member *members;
	unsigned int opened, ready, settled;
	enum load_phase phase;
	uint64_t phase_us, pulse_us, heard_us;
	uint64_t cursor;    /* sparse: heartbeats due so far */
	uint64_t cursor_us; /* when the schedule began */
	const char *why;
	int error;

	uint64_t answers, late, waited_us;
	uint64_t began_us, ended_us, rebalances;
	struct usage idle_before, idle_after, empty, full, before, after;
	uint8_t out[HEARTBEAT_FRAME_MAX];
};

/* ---- options ---- */

static bool number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || v > max)
		return false;
	*out = v;
	return true;
}

bool load_options(struct load_config *cfg, int argc, char **argv, bool (*other)(void *arg, const char *name, const char *value), void *arg)
{
	*cfg = (struct load_config){.connections = 64, .measure_us = 3 * US_PER_S};
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		uint64_t v = 0;
		bool known = true;
		if (strcmp(name, "--connections") == 0 && number(value, 1000000, &v) && v > 0)
			cfg->connections = (unsigned int)v;
		else if (strcmp(name, "--group-size") == 0 && number(value, HEARTBEAT_GROUP_MAX, &v))
			cfg->group_size = (unsigned int)v;
		else if (strcmp(name, "--interval-ms") == 0 && number(value, 3600000, &v))
			cfg->interval_us = v * US_PER_MS;
		else if (strcmp(name, "--seconds") == 0 && number(value, 3600, &v) && v > 0)
			cfg->measure_us = v * US_PER_S;
		else if (strcmp(name, "--server-pid") == 0 && number(value, INT32_MAX, &v))
			cfg->server = (pid_t)v;
		else
			known = false;
		if (!known && !other(arg, name, value)) {
			fprintf(stderr, "bench: %s %s: not understood\n", name, value);
			return false;
		}
	}
	return true;
}

/* ---- life ---- */

struct load *load_new(const struct load_config *cfg, load_send *send, uint64_t now_us)
{
	struct load *load = calloc(1, sizeof(*load));
	struct load_member *members = calloc(cfg->connections, sizeof(*members));
	if (load == NULL || members == NULL) {
		free(load);
		free(members);
		return NULL;
	}
	*load = (struct load){.cfg = *cfg, .send = send, .members = members, .phase_us = now_us, .heard_us = now_us};
	load->empty = usage_read(cfg->server);
	return load;
}

void load_free(struct load *load)
{
	free(load->members);
	free(load);
}

unsigned int load_missing(const struct load *load)
{
	return load->phase == LOAD_CONNECTING ? load->cfg.connections - load->opened : 0;
}

static void fail(struct load *load, const char *why, int error)
{
	if (load_ended(load))
		return;
	load->why = why;
	load->error = error;
	load->phase = LOAD_FAILED;
}

void load_lost(struct load *load, const char *why)
{
	fail(load, why, 0);
}

struct load_member *load_opened(struct load *load, void *connection)
{
	CHECK(load->opened < load->cfg.connections);
	struct load_member *m = &load->members[load->opened];
	m->connection = connection;
	snprintf(m->hb.client_id, sizeof(m->hb.client_id), "bench-%06u", load->opened);
	/* groups of this run alone: members of an earlier one may not have expired yet */
	snprintf(m->hb.group, sizeof(m->hb.group), "bench-%d-%05u", (int)getpid(),
		 load->cfg.group_size == 0 ? 0 : load->opened / load->cfg.group_size);
	load->opened++;
	return m;
}

static void enter(struct load *load, enum load_phase phase, uint64_t now_us)
{
	load->phase = phase;
	load->phase_us = now_us;
}

/* ---- requests ---- */

static void send_join(struct load *load, struct load_member *m)
{
	struct writer w = writer_of(load->out, sizeof(load->out));
	heartbeat_join(&m->hb, &w);
	m->state = MEMBER_JOINING;
	m->waiting = true;
	load->send(m->connection, load->out, writer_len(&w));
}

static void send_sync(struct load *load, struct load_member *m, struct bytes join)
{
	struct writer w = writer_of(load->out, sizeof(load->out));
	heartbeat_sync(&m->hb, &w, join);
	m->state = MEMBER_SYNCING;
	m->waiting = true;
	load->send(m->connection, load->out, writer_len(&w));
}

static void send_heartbeat(struct load *load, struct load_member *m, uint64_t now_us)
{
	heartbeat_next(&m->hb);
	m->waiting = true;
	m->sent_us = now_us;
	load->send(m->connection, m->hb.request, m->hb.request_len);
}

static void become_ready(struct load *load, struct load_member *m)
{
	heartbeat_prepare(&m->hb);
	m->state = MEMBER_READY;
	load->ready++;
}

/* A member is told of a rebalance: all that was settled is not. */
static void rejoin(struct load *load, struct load_member *m, uint64_t now_us)
{
	if (load->phase >= LOAD_WARMING) {
		fail(load, "a heartbeat was answered with an error while measuring", HEARTBEAT_REBALANCE);
		return;
	}
	load->rebalances++;
	load->ready--;
	if (load->phase == LOAD_SETTLING)
		enter(load, LOAD_JOINING, load->phase_us);
	send_join(load, m);
}

/* ---- answers ---- */

static void join_answered(struct load *load, struct load_member *m, const uint8_t *p, size_t len)
{
	bool leader = false;
	int error = heartbeat_join_answer(&m->hb, p, len, &leader);
	if (error == HEARTBEAT_ID_REQUIRED || error == HEARTBEAT_REBALANCE)
		send_join(load, m);
	else if (error == HEARTBEAT_OK)
		send_sync(load, m, leader ? bytes_of(p, len) : BYTES_EMPTY);
	else
		fail(load, "a join was refused", error);
}

static void sync_answered(struct load *load, struct load_member *m, const uint8_t *p, size_t len)
{
	int error = heartbeat_sync_answer(&m->hb, p, len);
	if (error == HEARTBEAT_REBALANCE)
		send_join(load, m);
	else if (error == HEARTBEAT_OK)
		become_ready(load, m);
	else
		fail(load, "a sync was refused", error);
}

static void heartbeat_answered(struct load *load, struct load_member *m, const uint8_t *p, size_t len, uint64_t now_us)
{
	int error = heartbeat_answer(&m->hb, p, len);
	if (unlikely(error != HEARTBEAT_OK)) {
		if (error == HEARTBEAT_REBALANCE)
			rejoin(load, m, now_us);
		else
			fail(load, "a heartbeat was refused", error);
		return;
	}
	if (likely(load->phase == LOAD_MEASURING)) {
		load->answers++;
		load->waited_us += now_us - m->sent_us;
	} else if (load->phase == LOAD_SETTLING && !m->settled) {
		m->settled = true;
		load->settled++;
	}
	if (load->phase >= LOAD_WARMING && load->phase <= LOAD_MEASURING && load->cfg.interval_us == 0)
		send_heartbeat(load, m, now_us);
}

void load_answer(struct load *load, struct load_member *m, const uint8_t *p, size_t len, uint64_t now_us)
{
	load->heard_us = now_us;
	if (unlikely(!m->waiting)) {
		fail(load, "an answer came that nobody asked for", 0);
		return;
	}
	m->waiting = false;
	if (likely(m->state == MEMBER_READY))
		heartbeat_answered(load, m, p, len, now_us);
	else if (m->state == MEMBER_JOINING)
		join_answered(load, m, p, len);
	else
		sync_answered(load, m, p, len);
}

/* ---- phases ---- */

static void start_calibrating(struct load *load, uint64_t now_us)
{
	load->idle_before = usage_mark(load->cfg.server);
	enter(load, LOAD_CALIBRATING, now_us);
}

static void end_calibrating(struct load *load, uint64_t now_us)
{
	load->idle_after = usage_mark(load->cfg.server);
	enter(load, LOAD_CONNECTING, now_us);
}

static void start_joining(struct load *load, uint64_t now_us)
{
	enter(load, LOAD_JOINING, now_us);
	for (unsigned int i = 0; i < load->cfg.connections; i++) {
		struct load_member *m = &load->members[i];
		if (load->cfg.group_size > 0) {
			send_join(load, m);
			continue;
		}
		m->hb.id_len = (unsigned int)snprintf((char *)m->hb.id, sizeof(m->hb.id), "%s-%08x-0000-4000-8000-%012x",
						      m->hb.client_id, i, i);
		m->hb.generation = 1;
		become_ready(load, m);
	}
}

/* Those who are ready tell the server so, and hear of rebalances, while the others join. */
static void pulse(struct load *load, uint64_t now_us)
{
	if (now_us < load->pulse_us)
		return;
	load->pulse_us = now_us + PULSE_US;
	for (unsigned int i = 0; i < load->cfg.connections; i++)
		if (load->members[i].state == MEMBER_READY && !load->members[i].waiting)
			send_heartbeat(load, &load->members[i], now_us);
}

static void start_settling(struct load *load, uint64_t now_us)
{
	enter(load, LOAD_SETTLING, now_us);
	load->settled = 0;
	load->pulse_us = 0;
	for (unsigned int i = 0; i < load->cfg.connections; i++)
		load->members[i].settled = false;
}

static void start_warming(struct load *load, uint64_t now_us)
{
	enter(load, LOAD_WARMING, now_us);
	load->full = usage_read(load->cfg.server);
	load->cursor_us = now_us;
	for (unsigned int i = 0; i < load->cfg.connections && load->cfg.interval_us == 0; i++)
		if (!load->members[i].waiting)
			send_heartbeat(load, &load->members[i], now_us);
}

/* Sparse: sends what is due; returns when the next one is. */
static uint64_t keep_schedule(struct load *load, uint64_t now_us)
{
	for (;;) {
		uint64_t due = load->cursor_us + load->cursor * load->cfg.interval_us / load->cfg.connections;
		if (due > now_us)
			return due;
		struct load_member *m = &load->members[load->cursor++ % load->cfg.connections];
		if (m->waiting)
			load->late++;
		else
			send_heartbeat(load, m, now_us);
	}
}

static void start_measuring(struct load *load, uint64_t now_us)
{
	enter(load, LOAD_MEASURING, now_us);
	load->late = 0;
	load->began_us = now_us;
	load->before = usage_mark(load->cfg.server);
}

static void end_measuring(struct load *load, uint64_t now_us)
{
	load->after = usage_mark(load->cfg.server);
	load->ended_us = now_us;
	enter(load, load->answers > 0 ? LOAD_DONE : LOAD_FAILED, now_us);
	load->why = "nothing was answered";
}

uint64_t load_tick(struct load *load, uint64_t now_us)
{
	uint64_t next = now_us + US_PER_MS;
	if (load->phase <= LOAD_SETTLING && now_us - load->phase_us > SETUP_US)
		fail(load, load->phase <= LOAD_CONNECTING ? "connecting took too long" : "joining took too long", 0);
	if (load->phase >= LOAD_JOINING && now_us > load->heard_us + SILENCE_US + load->cfg.interval_us)
		fail(load, "the server fell silent", 0);
	switch (load->phase) {
	case LOAD_RESTING:
		if (load->cfg.server == 0 || load->cfg.interval_us > 0)
			enter(load, LOAD_CONNECTING, now_us);
		else if (now_us - load->phase_us > REST_US)
			start_calibrating(load, now_us);
		break;
	case LOAD_CALIBRATING:
		if (now_us - load->phase_us > REST_US)
			end_calibrating(load, now_us);
		break;
	case LOAD_CONNECTING:
		if (load->opened == load->cfg.connections)
			start_joining(load, now_us);
		break;
	case LOAD_JOINING:
		pulse(load, now_us);
		if (load->ready == load->cfg.connections)
			start_settling(load, now_us);
		break;
	case LOAD_SETTLING:
		pulse(load, now_us);
		if (load->settled == load->cfg.connections)
			start_warming(load, now_us);
		break;
	case LOAD_WARMING:
		if (now_us - load->phase_us > WARM_US)
			start_measuring(load, now_us);
		break;
	case LOAD_MEASURING:
		if (now_us - load->phase_us >= load->cfg.measure_us)
			end_measuring(load, now_us);
		break;
	default:
		break;
	}
	if (load->cfg.interval_us > 0 && (load->phase == LOAD_WARMING || load->phase == LOAD_MEASURING)) {
		uint64_t due = keep_schedule(load, now_us);
		next = due < next ? due : next;
	}
	return next;
}

bool load_ended(const struct load *load)
{
	return load->phase >= LOAD_DONE;
}

static void report_server(const struct load *load, double seconds, double answers)
{
	double cpu_s = load->after.cpu_s - load->before.cpu_s;
	double bytes = (double)load->full.rss - (double)load->empty.rss;
	printf(", \"idle_worker_ns\": %" PRIu64 ", \"worker_ns\": %" PRIu64, load->idle_after.cpu_ns - load->idle_before.cpu_ns,
	       load->after.cpu_ns - load->before.cpu_ns);
	printf(", \"server_cpu_us_per_request\": %.2f, \"server_cpu_share\": %.3f", cpu_s * US_PER_S / answers, cpu_s / seconds);
	printf(", \"server_bytes_per_member\": %.0f, \"server_bytes_at_rest\": %" PRIu64, bytes / load->cfg.connections, load->empty.rss);
}

int load_report(const struct load *load)
{
	if (load->phase != LOAD_DONE) {
		fprintf(stderr, "bench: %s (error %d, %u of %u connected, %u ready)\n", load->why == NULL ? "stopped" : load->why,
			load->error, load->opened, load->cfg.connections, load->ready);
		return EXIT_FAILURE;
	}
	double seconds = (double)(load->ended_us - load->began_us) / US_PER_S, answers = (double)load->answers;
	printf("{\"load\": \"%s\", \"connections\": %u, \"group_size\": %u, \"seconds\": %.3f, \"requests\": %" PRIu64,
	       load->cfg.interval_us == 0 ? "closed loop" : "sparse", load->cfg.connections, load->cfg.group_size, seconds, load->answers);
	printf(", \"per_second\": %.0f, \"mean_round_trip_us\": %.1f, \"late\": %" PRIu64 ", \"rebalances\": %" PRIu64,
	       answers / seconds, (double)load->waited_us / answers, load->late, load->rebalances);
	if (load->cfg.server != 0)
		report_server(load, seconds, answers);
	printf("}\n");
	return EXIT_SUCCESS;
}
