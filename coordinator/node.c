/*
 * node.c - the coordinator of one worker: its shards, its sessions, and what is due when.
 *
 * Each shard says when it wants to be looked at (shard_tick); `due` keeps these wishes and `next_due` the earliest. Shards whose records are
 * on their way to the log are looked at, besides, when more of the log has become durable. A request that is handed to a shard makes it due at once, except a
 * heartbeat: that only moves a deadline further away. So a round without due work costs two compares, and a steady heartbeat load never
 * ticks a shard.
 *
 * Members may reach us through another worker, whose standing still silences them as our own would. So before anything may expire the node looks at the
 * other workers: while one stands still, nobody is declared dead, and when it has gone on, not before everybody could be heard.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/api/log_job.h"
#include "coordinator/forward.h"
#include "coordinator/node.h"
#include "coordinator/session.h"

#define SHARD_BUDGET 256 /* timers of one shard in one round; the rest in the next */
#define NEIGHBOUR_LOOK_US (50 * US_PER_MS) /* between two looks at the other workers, while something may expire */
#define NEIGHBOUR_HOLD_US US_PER_S /* long enough for the next look */
#define LOADING_LOOK_US US_PER_MS /* between two looks at what the loader is through with */

struct node {
	struct node_config cfg;
	const struct image *image;
	struct log *log;
	struct shard **shards;
	uint64_t *due; /* per shard, microseconds */
	bool *writes;  /* per shard: records are on their way, or were when it was looked at last */
	uint64_t durable; /* of the log, when they were looked at last */
	bool log_failed;
	unsigned int shards_len; /* that are ours */
	int32_t *places; /* by number of the shard: in `shards`; -1: another worker's */
	uint64_t next_due; /* not later than any of `due` */
	unsigned int loading; /* shards that the loader has */
	uint64_t held_us;     /* nobody is declared dead before (shard_stalled) */
	bool log_waits;	      /* the loader has the log, too */
	bool (*ready)(void *arg, unsigned int shard);
	void *ready_arg;
	uint64_t looked_us;   /* at the other workers */
	uint64_t *lost_us;    /* by worker: how long it had stood still then; NULL: there are no others */
	bool neighbour_still; /* one of them did then */
	struct sessions sessions;
	struct log_jobs jobs;
};

/* Called when a connection closed: dropping its requests may have moved any group on. */
static void node_look_at_all(struct node *node)
{
	memset(node->due, 0, node->shards_len * sizeof(uint64_t));
	node->next_due = 0;
}

/* ---- construction ---- */

static bool node_make_shards(struct node *node, struct stats *stats, struct now now)
{
	const struct mailbox *mailbox = node->cfg.mailbox;
	unsigned int n = image_shards(node->image);
	node->shards = calloc(n, sizeof(struct shard *));
	node->due = calloc(n, sizeof(uint64_t));
	node->writes = calloc(n, sizeof(bool));
	node->places = calloc(n, sizeof(int32_t));
	if (node->shards == NULL || node->due == NULL || node->writes == NULL || node->places == NULL)
		return false;
	for (unsigned int number = 0; number < n; number++) {
		node->places[number] = -1;
		if (mailbox != NULL && image_shard_node(node->image, number) != mailbox->self)
			continue;
		unsigned int place = node->shards_len;
		uint64_t random[2] = {node->cfg.random[0] + number * 0x9e3779b97f4a7c15ull, node->cfg.random[1] ^ number};
		node->shards[place] = shard_new(number, node->log, node->cfg.groups, stats, random, now);
		if (node->shards[place] == NULL)
			return false;
		if (node->cfg.journal != NULL)
			shard_set_journal(node->shards[place], node->cfg.journal, node->cfg.journal_arg);
		node->places[number] = (int32_t)place;
		node->shards_len++;
	}
	return true;
}

struct node *node_new(const struct node_config *cfg, const struct image *image, struct log *log, struct stats *stats, struct now now)
{
	struct node *node = calloc(1, sizeof(*node));
	if (node == NULL)
		return NULL;
	node->cfg = *cfg;
	node->image = image;
	node->log = log;
	log_jobs_init(&node->jobs, log);
	node->lost_us = cfg->mailbox == NULL ? NULL : calloc(cfg->mailbox->workers, sizeof(uint64_t));
	if (cfg->mailbox != NULL && node->lost_us == NULL) {
		free(node);
		return NULL;
	}
	if (!sessions_init(&node->sessions, node, image, cfg->max_sessions, cfg->mailbox, stats, now) || !node_make_shards(node, stats, now)) {
		node_free(node);
		return NULL;
	}
	return node;
}

void node_free(struct node *node)
{
	if (node == NULL)
		return;
	for (unsigned int i = 0; i < node->shards_len; i++)
		shard_free(node->shards[i]);
	log_jobs_fini(&node->jobs);
	sessions_fini(&node->sessions);
	free(node->shards);
	free(node->due);
	free(node->writes);
	free(node->places);
	free(node->lost_us);
	free(node);
}

bool node_has_shard(const struct node *node, unsigned int shard)
{
	return shard < image_shards(node->image) && node->places[shard] >= 0;
}

/* ---- loading ---- */

void node_load(struct node *node, struct stats *own, bool (*ready)(void *arg, unsigned int shard), void *arg)
{
	for (unsigned int i = 0; i < node->shards_len; i++)
		shard_load_begin(node->shards[i], &own[shard_number(node->shards[i])]);
	node->loading = node->shards_len;
	node->log_waits = true; /* for ever in a node without shards: nobody ever appends there */
	node->ready = ready;
	node->ready_arg = arg;
}

struct shard *node_loading_shard(struct node *node, unsigned int shard)
{
	CHECK(node_has_shard(node, shard));
	return node->shards[node->places[shard]];
}

static void node_take_ready(struct node *node)
{
	for (unsigned int i = 0; i < node->shards_len; i++) {
		if (!shard_is_loading(node->shards[i]) || !node->ready(node->ready_arg, shard_number(node->shards[i])))
			continue;
		shard_load_end(node->shards[i]);
		shard_hold(node->shards[i], node->held_us);
		node->loading--;
		node->log_waits = false;
		node->due[i] = 0;
		node->next_due = 0;
	}
	if (node->loading == 0)
		node_own_log(node, node->log);
}

bool node_is_loading(const struct node *node)
{
	return node->loading > 0;
}

/* The names of the topics of `of` that `other` lacks, from malloc; NULL: no memory. */
static struct bytes *node_topics_only_in(const struct image *of, const struct image *other, size_t *len)
{
	const struct image_topic *topics;
	unsigned int n = image_topics(of, &topics);
	struct bytes *names = malloc((n + 1) * sizeof(*names));
	*len = 0;
	for (unsigned int i = 0; names != NULL && i < n; i++)
		if (image_topic(other, topics[i].name) == NULL)
			names[(*len)++] = topics[i].name;
	return names;
}

bool node_set_image(struct node *node, const struct image *image, struct now now)
{
	size_t gone_len, made_len;
	CHECK(image_shards(image) == image_shards(node->image));
	if (node->loading > 0)
		return false;
	struct bytes *gone = node_topics_only_in(node->image, image, &gone_len);
	struct bytes *made = node_topics_only_in(image, node->image, &made_len);
	bool ok = gone != NULL && made != NULL;
	for (unsigned int i = 0; ok && i < node->shards_len; i++) {
		ok = shard_topics_changed(node->shards[i], gone, gone_len, made, made_len, now);
		node->due[i] = 0;
	}
	node->next_due = 0;
	node->image = image;
	node->sessions.image = image;
	free(gone);
	free(made);
	return ok;
}

/* ---- for handlers ---- */

int node_owner(const struct node *node, struct bytes group_id)
{
	unsigned int number = image_shard_of(node->image, group_id);
	return node->places[number] >= 0 ? -1 : (int)image_shard_node(node->image, number);
}

struct shard *node_shard_quiet(struct node *node, struct bytes group_id)
{
	int32_t place = node->places[image_shard_of(node->image, group_id)];
	return place < 0 ? NULL : node->shards[place];
}

struct shard *node_shard(struct node *node, struct bytes group_id)
{
	int32_t place = node->places[image_shard_of(node->image, group_id)];
	if (place < 0)
		return NULL;
	node->due[place] = 0;
	node->next_due = 0;
	return node->shards[place];
}

struct shard *node_shard_at(struct node *node, unsigned int i)
{
	return i < node->shards_len ? node->shards[i] : NULL;
}

struct shard *node_shard_by_number(struct node *node, unsigned int number)
{
	return node_has_shard(node, number) ? node->shards[node->places[number]] : NULL;
}

struct mailbox *node_desk(const struct node *node)
{
	return node->cfg.desk;
}

int32_t node_id(const struct node *node)
{
	return node->cfg.node_id;
}

struct log *node_log(struct node *node)
{
	return node->log;
}

struct log_jobs *node_log_jobs(struct node *node)
{
	return &node->jobs;
}

unsigned int node_settings(const struct node *node, const struct setting **out)
{
	*out = node->cfg.settings;
	return node->cfg.settings_len;
}

const struct group_settings *node_groups(const struct node *node)
{
	return node->cfg.groups;
}

unsigned int node_max_fetch_wait_ms(const struct node *node)
{
	return node->cfg.max_fetch_wait_ms;
}

/* ---- workers that stand still ---- */

static void node_hold(struct node *node, uint64_t until)
{
	for (unsigned int i = 0; i < node->shards_len; i++)
		if (!shard_is_loading(node->shards[i]))
			shard_hold(node->shards[i], until);
	node->held_us = until > node->held_us ? until : node->held_us;
}

/* `worker` -1: our own stood still; else that one, and we held for it all the time. */
static void node_lost(struct node *node, int worker, uint64_t lost_us, struct now now)
{
	uint64_t until = now.us;
	char line[160];
	for (unsigned int i = 0; i < node->shards_len; i++)
		until = shard_stalled(node->shards[i], lost_us, now);
	node->held_us = until > node->held_us ? until : node->held_us;
	if (node->cfg.journal == NULL)
		return;
	int n = snprintf(line, sizeof(line), "event=%s lost_ms=%llu held_ms=%llu", worker < 0 ? "worker-stood-still" : "other-worker-stood-still",
			 (unsigned long long)(lost_us / US_PER_MS), (unsigned long long)((until - now.us) / US_PER_MS));
	if (worker >= 0)
		snprintf(line + n, sizeof(line) - (size_t)n, " node=%d other=%d", node->cfg.node_id, worker);
	node->cfg.journal(node->cfg.journal_arg, line);
}

static void node_look_around(struct node *node, struct now now)
{
	struct mailbox *mailbox = node->cfg.mailbox;
	struct neighbour seen;
	bool still = false;
	for (unsigned int w = 0; w < mailbox->workers; w++) {
		if (w == mailbox->self)
			continue;
		mailbox_look(mailbox, w, &seen);
		still |= seen.still;
		if (seen.lost_us != node->lost_us[w])
			node_lost(node, (int)w, seen.lost_us - node->lost_us[w], now);
		node->lost_us[w] = seen.lost_us;
	}
	if (still)
		node_hold(node, now.us + NEIGHBOUR_HOLD_US);
	node->sessions.stats->forward_stalls += still && !node->neighbour_still;
	node->neighbour_still = still;
	node->looked_us = now.us;
}

/* ---- rounds ---- */

static void node_tick_shards(struct node *node, struct now now)
{
	uint64_t next = TIME_NEVER;
	for (unsigned int i = 0; i < node->shards_len; i++) {
		if (node->due[i] <= now.us) {
			node->due[i] = shard_tick(node->shards[i], SHARD_BUDGET, now);
			node->writes[i] = shard_writes(node->shards[i]);
		}
		if (node->due[i] < next)
			next = node->due[i];
	}
	node->next_due = next;
}

/* Makes the shards due that wait for the log, if it has got on or has failed. */
static void node_look_at_log(struct node *node)
{
	uint64_t durable = log_durable(node->log);
	bool failed = log_failed(node->log) != 0;
	if (likely(durable == node->durable && !failed))
		return;
	node->durable = durable;
	for (unsigned int i = 0; i < node->shards_len; i++)
		if (node->writes[i])
			node->due[i] = node->next_due = 0;
	if (failed && !node->log_failed && node->cfg.log_failed != NULL)
		node->cfg.log_failed(node->cfg.log_failed_arg);
	node->log_failed = failed;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t node_tick(void *service, struct now now)
{
	struct node *node = service;
	uint64_t wish = now.us + LOADING_LOOK_US;
	if (unlikely(node->loading > 0 && !node->sessions.stopping))
		node_take_ready(node);
	if (!node->log_waits) {
		wish = earlier(log_poll(node->log, now), node->loading > 0 ? wish : TIME_NEVER);
		node_look_at_log(node);
	}
	if (node->next_due <= now.us) {
		if (node->lost_us != NULL && node->looked_us + NEIGHBOUR_LOOK_US <= now.us)
			node_look_around(node, now);
		node_tick_shards(node, now);
		wish = now.us; /* they may have appended: let the log be polled again */
	}
	if (node->sessions.forwards != NULL) {
		guests_tick(node->sessions.guests, now);
		forwards_tick(node->sessions.forwards, &node->sessions);
	}
	uint64_t jobs = log_jobs_tick(&node->jobs, now);
	wish = earlier(earlier(earlier(wish, jobs), sessions_tick(&node->sessions, now)), node->next_due);
	if (node->sessions.forwards != NULL && (forwards_due(node->sessions.forwards) || guests_due(node->sessions.guests)))
		return now.us;
	return wish;
}

/* ---- the service ---- */

static void *node_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	struct node *node = service;
	return session_open(&node->sessions, ch, peer);
}

static enum service_verdict node_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	return session_frame(session, p, len, now);
}

static void node_eof(void *session, struct now now)
{
	struct session *s = session;
	struct node *node = s->all->node;
	session_eof(s, now);
	node_look_at_all(node);
}

static void node_stalled(void *service, uint64_t lost_us, struct now now)
{
	node_lost(service, -1, lost_us, now);
}

static void node_drained(void *session, struct now now)
{
	session_drained(session, now);
}

static void node_closed(void *session, struct now now)
{
	struct session *s = session;
	struct node *node = s->all->node;
	session_closed(s, now);
	node_look_at_all(node);
}

static void node_mail(void *service, unsigned int from, const struct mail *mail, struct now now)
{
	struct node *node = service;
	if (forward_mail(&node->sessions, from, mail, now))
		node_look_at_all(node);
}

static bool node_stop(void *service, struct now now)
{
	struct node *node = service;
	for (unsigned int i = 0; i < node->shards_len; i++)
		shard_stop(node->shards[i], now);
	log_jobs_stop(&node->jobs, now);
	node_look_at_all(node);
	return sessions_stop(&node->sessions, now);
}

const struct service_ops node_service_ops = {
	.opened = node_opened,
	.frame = node_frame,
	.eof = node_eof,
	.drained = node_drained,
	.closed = node_closed,
	.tick = node_tick,
	.stalled = node_stalled,
	.stop = node_stop,
	.mail = node_mail,
	.told = node_told,
};
