/*
 * worker.c - the loop of one worker: a list of bounded stages, over and over.
 *
 * One round reads the clocks once and runs the stages in order; what they send leaves at the end of the same round.
 * When no stage found work, the idle policy decides, and a sleep ends at the earliest deadline of TCP, the service, the
 * framing and ARP.
 *
 * The stop:  RUNNING --dataplane_stop--> ANSWERING --service has answered, or half the grace is over--> CLOSING (FIN)
 *            --all gone, or nine tenths are over--> ABORTING (RST) --one more round--> DONE
 *
 * The pulse says which stage a worker is in, so that whoever finds it standing still can name it.
 *
 * A worker that is DONE stays in its loop until all are: others may still send through its queue, or wait for its service.
 */
#define _GNU_SOURCE /* gettid */
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/memory.h"
#include "dataplane/place.h"
#include "dataplane/worker.h"
#include "muster/check.h"

#define FRAMES_BUDGET 256u
#define TIMERS_BUDGET 256u
#define STOP_SLEEP_US (2u * US_PER_MS)
#define MAIL_BATCH 32u
#define EPHEMERAL_TRIES 64u

static uint64_t monotonic_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * US_PER_S + (uint64_t)t.tv_nsec / 1000;
}

static int64_t wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct now worker_clock(void)
{
	return (struct now){monotonic_us(), wall_ms()};
}

/* ---- stages: each returns how much work it found ---- */

static unsigned int stage_frames(struct worker *w)
{
	return frames_poll(w->frames, FRAMES_BUDGET, w->now);
}

static unsigned int stage_mail(struct worker *w)
{
	struct mail mail[MAIL_BATCH];
	unsigned int work = 0;
	if (w->exchange == NULL)
		return 0;
	for (unsigned int from = 0; from < exchange_workers(w->exchange); from++) {
		unsigned int n = from == w->index ? 0 : exchange_read_mail(w->exchange, from, w->index, mail, MAIL_BATCH);
		for (unsigned int i = 0; i < n; i++)
			w->ops->mail(w->service, from, &mail[i], w->now);
		work += n;
	}
	w->stats.worker_mail += work;
	return work;
}

static unsigned int stage_told(struct worker *w)
{
	struct mail mail[MAIL_BATCH];
	if (likely(!desk_waits(&w->desk.desk)))
		return 0;
	unsigned int n = desk_read(&w->desk.desk, mail, MAIL_BATCH);
	for (unsigned int i = 0; i < n; i++)
		w->ops->told(w->service, &mail[i], w->now);
	w->stats.worker_told += n;
	return n;
}

static unsigned int stage_service(struct worker *w)
{
	bool due = w->service_deadline_us <= w->now.us;
	w->service_deadline_us = w->ops->tick(w->service, w->now);
	return due;
}

static unsigned int stage_arp(struct worker *w)
{
	arp_poll(w->arp, w->now);
	return 0;
}

static unsigned int stage_timers(struct worker *w)
{
	tcp_timers(w->tcp, TIMERS_BUDGET, w->now);
	return 0;
}

static unsigned int stage_flush(struct worker *w)
{
	w->sends_flushed = frames_sends(w->frames);
	tcp_flush(w->tcp, w->now);
	return 0;
}

static unsigned int stage_transmit(struct worker *w)
{
	tx_poll(&w->tx, w->now);
	return w->inject != NULL && inject_pending(w->inject);
}

/* Behind everything that passes something on. */
static unsigned int stage_bells(struct worker *w)
{
	if (w->exchange != NULL)
		w->stats.worker_bells += exchange_ring_bells(w->exchange, w->index);
	return 0;
}

static unsigned int stage_stop(struct worker *w)
{
	if (likely(w->phase == WORKER_RUNNING && __atomic_load_n(w->stopping, __ATOMIC_RELAXED) == 0))
		return 0;
	uint64_t since = w->now.us - w->stop_us;
	switch (w->phase) {
	case WORKER_RUNNING:
		w->stop_us = w->now.us;
		w->phase = WORKER_ANSWERING;
		tcp_listen_stop(w->tcp);
		return 1;
	case WORKER_ANSWERING:
		if (!w->ops->stop(w->service, w->now) && since < w->grace_us / 2)
			return 0;
		frames_close_all(w->frames);
		w->phase = WORKER_CLOSING;
		return 1;
	case WORKER_CLOSING:
		if (frames_open(w->frames) > 0 && since < w->grace_us / 10 * 9)
			return 0;
		frames_abort_all(w->frames);
		w->phase = WORKER_ABORTING;
		return 1;
	case WORKER_ABORTING:
		if (frames_deadline(w->frames) == 0 && since < w->grace_us)
			return 1;
		w->phase = WORKER_DONE;
		if (w->exchange != NULL)
			exchange_finish(w->exchange, w->index);
		return 1;
	case WORKER_DONE:
		return 0;
	}
	return 0;
}

static const struct {
	const char *name;
	unsigned int (*run)(struct worker *w);
} stages[] = {
	{"receive", worker_receive},  {"take-over", worker_take_over}, {"mail", stage_mail},	   {"told", stage_told},
	{"frames", stage_frames},     {"service", stage_service},      {"arp", stage_arp},	   {"timers", stage_timers}, {"flush", stage_flush},
	{"transmit", stage_transmit}, {"bells", stage_bells},	       {"stop", stage_stop},
};

#define STAGE_SLEEP ARRAY_LEN(stages)

const char *worker_stage(unsigned int stage)
{
	return stage < ARRAY_LEN(stages) ? stages[stage].name : "sleep";
}

static void in_stage(struct worker *w, unsigned int stage)
{
	__atomic_store_n(&w->pulse.stage, stage, __ATOMIC_RELAXED);
}

/* ---- the loop ---- */

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Until when nothing has to be done, unless something arrives. */
static uint64_t next_deadline(struct worker *w)
{
	if (frames_sends(w->frames) != w->sends_flushed) /* the flush itself ended connections, and the service answered others */
		return 0;
	uint64_t deadline = earliest(tcp_deadline(w->tcp), w->service_deadline_us);
	deadline = earliest(deadline, frames_deadline(w->frames));
	deadline = earliest(deadline, arp_deadline(w->arp));
	if (w->tx.n > 0)
		deadline = earliest(deadline, w->now.us + TX_RETRY_US);
	if (w->phase != WORKER_RUNNING)
		deadline = earliest(deadline, w->now.us + STOP_SLEEP_US);
	return deadline;
}

static void beat(struct worker *w)
{
	__atomic_store_n(&w->pulse.lost_us, w->pace.lost_us, __ATOMIC_RELAXED);
	__atomic_store_n(&w->pulse.raw_us, w->pace.raw_us, __ATOMIC_RELEASE);
}

static void read_clock(struct worker *w)
{
	uint64_t before = w->pace.raw_us, lost = pace_step(&w->pace, monotonic_us(), w->rest_us), us = w->pace.raw_us - w->pace.lost_us;
	beat(w);
	if (w->worked)
		w->stats.worker_busy_us += w->pace.raw_us - before;
	if (w->pace.late_us > w->stats.worker_late_us_max)
		w->stats.worker_late_us_max = w->pace.late_us;
	w->rest_us = 0;
	if (us / US_PER_MS != w->now.us / US_PER_MS || lost > 0) /* finer than the coarse clock ticks */
		w->now.wall_ms = wall_ms();
	w->now.us = us;
	if (likely(lost == 0))
		return;
	w->stats.worker_stalls++;
	w->stats.worker_lost_us += lost;
	if (w->ops->stalled != NULL)
		w->ops->stalled(w->service, lost, w->now);
}

static bool over(const struct worker *w)
{
	return w->phase == WORKER_DONE && (w->exchange == NULL || exchange_all_finished(w->exchange));
}

static void sleep_until(struct worker *w, uint64_t deadline)
{
	if (w->exchange != NULL && !exchange_lie_down(w->exchange, w->index))
		return;
	w->stats.worker_sleeps++;
	in_stage(w, STAGE_SLEEP);
	w->rest_us = idle_sleep(&w->idle, deadline, w->now);
	if (w->exchange != NULL)
		exchange_get_up(w->exchange, w->index);
}

void worker_run(struct worker *w)
{
	w->now = worker_clock();
	__atomic_store_n(&w->pulse.thread, gettid(), __ATOMIC_RELAXED);
	if (w->index == 0)
		arp_announce(w->arp, w->now);
	while (!over(w)) {
		unsigned int work = 0;
		read_clock(w);
		for (unsigned int i = 0; i < ARRAY_LEN(stages); i++) {
			in_stage(w, i);
			work += stages[i].run(w);
		}
		w->worked = work > 0;
		w->stats.worker_rounds++;
		w->stats.worker_rounds_idle += work == 0;
		if (!idle_after_round(&w->idle, work > 0, w->now))
			continue;
		uint64_t deadline = next_deadline(w);
		if (deadline > w->now.us)
			sleep_until(w, deadline);
	}
	worker_take_over(w); /* what the last ones to finish have given us to send */
	stage_transmit(w);
	__atomic_store_n(&w->pulse.ended, 1, __ATOMIC_RELAXED);
}

/* ---- connections that we open ---- */

bool worker_connect(struct worker *w, uint32_t addr, uint16_t port)
{
	for (unsigned int i = 0; i < EPHEMERAL_TRIES; i++) {
		struct tcp_tuple tuple = {
			.local_addr = w->self.addr,
			.remote_addr = addr,
			.local_port = steer_ephemeral(&w->steer, w->index, w->next_port),
			.remote_port = port,
		};
		w->next_port = (uint16_t)((w->next_port + 1u) % (STEER_EPHEMERAL_COUNT / w->steer.workers));
		if (tuple.local_port != 0 && flow_find(w->flow, &tuple) == NULL)
			return tcp_connect(w->tcp, &tuple, w->now) != NULL;
	}
	return false;
}

/* ---- begin and end ---- */

static bool init_faults(struct worker *w, const struct dataplane_config *cfg)
{
	struct inject_rates rates = {cfg->inject_loss_ppm, cfg->inject_duplicate_ppm, cfg->inject_reorder_ppm,
				     cfg->inject_corrupt_ppm};
	if ((rates.loss | rates.duplicate | rates.reorder | rates.corrupt) == 0 || !w->has_queue)
		return true;
	w->inject = inject_new(w->port_id, w->queue, &rates, cfg->inject_seed + 2 * w->index, w->pool);
	return w->inject != NULL;
}

static bool init_stack(struct worker *w, const struct dataplane_config *cfg)
{
	char name[32];
	struct tcp_config tcp = memory_tcp_config(cfg);
	struct frames_config frames = memory_frames_config(cfg);
	uint64_t secret[4];
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return false;
	tcp.secret[0] = secret[0];
	tcp.secret[1] = secret[1];
	w->next_port = (uint16_t)(secret[3] % (STEER_EPHEMERAL_COUNT / w->steer.workers));
	snprintf(name, sizeof(name), "flow%u", w->index);
	w->flow = flow_new(name, cfg->max_connections, (uint32_t)(secret[3] >> 32));
	w->arp = arp_new(&w->self, w->mac, secret[2], &worker_arp_ops, w, &w->stats);
	w->frames = frames_new(&frames, &w->stats, w->now);
	w->tcp = tcp_new(&tcp, &worker_tcp_ops, w, &w->stats, w->now);
	return w->flow != NULL && w->arp != NULL && w->frames != NULL && w->tcp != NULL;
}

static bool mailbox_op_send(struct mailbox *mailbox, unsigned int to, const struct mail *mail)
{
	return exchange_send_mail(((struct worker_mailbox *)mailbox)->exchange, mailbox->self, to, mail);
}

static void mailbox_op_look(struct mailbox *mailbox, unsigned int other, struct neighbour *out)
{
	const struct worker *w = CONTAINER_OF(mailbox, struct worker, mailbox.mailbox);
	struct pulse pulse;
	pulse_read(&(w + other - w->index)->pulse, &pulse);
	uint64_t limit = w->cfg->stall_limit_us;
	out->still = limit > 0 && pulse.raw_us > 0 && !pulse.ended && pulse.raw_us + limit < w->pace.raw_us;
	out->lost_us = pulse.lost_us;
}

static const struct mailbox_ops mailbox_ops = {.send = mailbox_op_send, .look = mailbox_op_look};

static bool desk_op_send(struct mailbox *mailbox, unsigned int to, const struct mail *mail)
{
	return desk_answer(&((struct worker_desk *)mailbox)->desk, mail);
}

static const struct mailbox_ops desk_ops = {.send = desk_op_send};

/* Who has no queue of its own sends through the one of another worker. */
static void init_queue(struct worker *w, const struct dataplane_config *cfg, const struct port *port)
{
	int queue = place_of(cfg, w->index, port->queues).queue;
	w->has_queue = queue >= 0;
	w->queue = w->has_queue ? (uint16_t)queue : UINT16_MAX;
	w->shares_queue = place_is_shared(cfg, w->index, port->queues);
	w->tx = (struct tx){.pool = w->pool, .stats = &w->stats, .port = port->id, .queue = w->queue, .self = w->index,
			    .via = place_via(cfg, w->index, port->queues), .exchange = w->has_queue ? NULL : w->exchange,
			    .ip_offload = port->tx_ip_checksum, .tcp_offload = port->tx_tcp_checksum};
}

bool worker_init(struct worker *w, unsigned int index, const struct dataplane_config *cfg, const struct port *port,
		 struct exchange *exchange, struct rte_mempool *pool, const uint32_t *stopping, int desk_bell, char *err, size_t err_len)
{
	*w = (struct worker){
		.now = worker_clock(),
		.port_id = port->id,
		.rx_ip_checksum = port->rx_ip_checksum,
		.rx_tcp_checksum = port->rx_tcp_checksum,
		.self = {cfg->addr, cfg->prefix_len == 0 ? 0 : UINT32_MAX << (32 - cfg->prefix_len), cfg->gateway},
		.exchange = exchange,
		.steer = {cfg->port, (uint16_t)cfg->workers, place_ports_in_a_row(cfg) ? NULL : cfg->per_worker},
		.mailbox = {{&mailbox_ops, index, cfg->workers, EXCHANGE_MAIL}, exchange},
		.desk = {.mailbox = {&desk_ops, index, 1, DESK_MAIL}},
		.stopping = stopping,
		.cfg = cfg,
		.index = index,
		.pace = {.limit_us = cfg->stall_limit_us},
		.pool = pool,
		.idle = {.wake_fd = -1},
	};
	memcpy(w->mac, port->mac, 6);
	init_queue(w, cfg, port);
	if (!idle_init(&w->idle, place_of(cfg, index, port->queues).idle, port, w->queue, cfg->device)) {
		snprintf(err, err_len, "worker %u: no file descriptor is free; raise the limit (ulimit -n)", index);
		return false;
	}
	if (exchange != NULL)
		exchange_set_bell(exchange, index, w->idle.wake_fd);
	if (!desk_init(&w->desk.desk, desk_bell)) {
		snprintf(err, err_len, "worker %u: out of memory", index);
		return false;
	}
	if (!init_faults(w, cfg)) {
		snprintf(err, err_len, "worker %u: the device does not take the callbacks that inject faults", index);
		return false;
	}
	w->tx.inject = w->inject;
	if (!init_stack(w, cfg)) {
		snprintf(err, err_len, "worker %u: out of memory; lower max.connections", index);
		return false;
	}
	uint16_t listen_port = place_of(cfg, index, port->queues).port;
	if (listen_port != 0)
		CHECK(tcp_listen(w->tcp, listen_port));
	return true;
}

void worker_fini(struct worker *w)
{
	if (w->tcp != NULL)
		tcp_free(w->tcp);
	frames_free(w->frames);
	if (w->arp != NULL)
		arp_free(w->arp);
	flow_free(w->flow);
	tx_clear(&w->tx);
	inject_free(w->inject);
	desk_fini(&w->desk.desk);
	idle_fini(&w->idle);
}
