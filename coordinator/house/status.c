/*
 * status.c - status and cores: what is seen from outside, so that it is told also while workers stand still.
 */
#include <stdio.h>
#include <sys/statvfs.h>

#include "coordinator/house/house_priv.h"

static const char *server_state(const struct house *house)
{
	if (atomic_load(&house->log_broken))
		return "log-broken";
	return atomic_load(&house->ready) ? "ready" : "loading";
}

static void put_disk(struct admin_item *item, const char *folder)
{
	struct statvfs fs;
	if (folder[0] == '\0' || statvfs(folder, &fs) != 0)
		return;
	admin_put_number(item, "disk_free_bytes", (int64_t)(fs.f_bavail * fs.f_frsize));
	admin_put_number(item, "disk_bytes", (int64_t)(fs.f_blocks * fs.f_frsize));
}

static void server_item(struct job *job, struct now now)
{
	struct house *house = job->house;
	const struct config *cfg = house->cfg.cfg;
	const struct image_topic *topics;
	bool memory = cfg->log_dir[0] == '\0' || cfg->log_flush_mode == 2;
	struct admin_item item = admin_item_of("server");
	admin_put(&item, "version", bytes_str(house->cfg.version));
	admin_put(&item, "state", bytes_str(server_state(house)));
	admin_put(&item, "durability", bytes_str(memory ? "MEMORY ONLY" : cfg->log_flush_mode == 0 ? "durable" : "WRITTEN, NOT FLUSHED"));
	admin_put(&item, "log", bytes_str(house->log));
	admin_put_number(&item, "uptime_s", (int64_t)((now.us - house->started.us) / US_PER_S));
	admin_put_time(&item, "started_ms", house->started.wall_ms);
	admin_put(&item, "cluster", image_cluster_id(*house->cfg.image));
	admin_put(&item, "host", bytes_str(house->cfg.host));
	admin_put_number(&item, "workers", house->workers);
	admin_put_number(&item, "shards", image_shards(*house->cfg.image));
	admin_put_number(&item, "topics", image_topics(*house->cfg.image, &topics) - 1);
	if (!memory)
		put_disk(&item, cfg->log_dir);
	job_item(job, &item);
}

static struct admin_item worker_item(struct house *house, unsigned int w, const char *kind)
{
	static const char *const states[] = {"polls", "STANDS STILL", "ended", "not begun"};
	struct pulse p;
	const struct stats *s = house->link.stats(house->link.arg, w);
	struct admin_item item = admin_item_of(kind);
	house->link.pulse(house->link.arg, w, &p);
	admin_put_number(&item, "worker", w);
	admin_put_number(&item, "node", house->cfg.map->worker[w].node_id);
	admin_put_number(&item, "port", house->cfg.map->worker[w].port);
	admin_put(&item, "state", bytes_str(states[p.raw_us == 0 ? 3 : p.ended ? 2 : house->wards[w].still]));
	admin_put_number(&item, "connections", (int64_t)s->tcp_connections_now);
	admin_put_number(&item, "groups", (int64_t)s->group_groups_now);
	admin_put_number(&item, "members", (int64_t)s->group_members_now);
	admin_put_number(&item, "requests_per_s", (int64_t)house->wards[w].requests_rate);
	return item;
}

static void put_stage(struct admin_item *item, struct house *house, unsigned int w)
{
	struct pulse p;
	house->link.pulse(house->link.arg, w, &p);
	admin_put(item, "stage", bytes_str(house->link.stage(p.stage)));
	if (house->wards[w].still)
		admin_put_number(item, "silent_ms", (int64_t)(house->wards[w].silent_us / US_PER_MS));
	admin_put_number(item, "stalls", (int64_t)house->wards[w].stalls);
}

void command_status(struct job *job, struct question *answer)
{
	struct house *house = job->house;
	server_item(job, house->cfg.clock());
	for (unsigned int w = 0; w < house->workers; w++) {
		const struct stats *s = house->link.stats(house->link.arg, w);
		struct admin_item item = worker_item(house, w, "worker");
		put_stage(&item, house, w);
		admin_put_number(&item, "log_records", (int64_t)s->log_records);
		admin_put_number(&item, "log_bytes", (int64_t)s->log_bytes);
		admin_put_number(&item, "log_writes_late", (int64_t)s->log_writes_late);
		admin_put_number(&item, "log_append_failed", (int64_t)s->log_append_failed);
		job_item(job, &item);
	}
	job_done(job, 0, "%s", "");
}

void command_cores(struct job *job, struct question *answer)
{
	struct house *house = job->house;
	for (unsigned int w = 0; w < house->workers; w++) {
		const struct stats *s = house->link.stats(house->link.arg, w);
		struct admin_item item = worker_item(house, w, "core");
		put_stage(&item, house, w);
		admin_put_number(&item, "busy_permille", house->wards[w].busy_permille);
		admin_put_number(&item, "ring_depth", house->link.depth(house->link.arg, w));
		admin_put_number(&item, "frames_received", (int64_t)s->port_rx_frames);
		admin_put_number(&item, "frames_handed_over", (int64_t)s->steer_handed_over);
		admin_put_number(&item, "requests_forwarded", (int64_t)s->forward_requests);
		admin_put_number(&item, "requests_served_for_others", (int64_t)s->forward_served);
		job_item(job, &item);
	}
	job_done(job, 0, "%s", "");
}
