/*
 * main.c - the program: the only file that sees both halves. Settings in, dataplane and nodes up, signals, counters out.
 *
 * Threads: the calling thread becomes worker 0 inside dataplane_run. A second one, started first so that it keeps the affinity the
 * program was given, does nothing but wait for signals; every other thread has them blocked. So there is no signal handler and no
 * static state. A third one keeps house (house/house.h).
 *
 *   SIGTERM, SIGINT   the first: dataplane_stop; dataplane_run returns within STOP_GRACE_US. The second: _exit at once.
 *   SIGHUP            the housekeeping thread reads the catalog of topics again
 *   SIGUSR1           what the log promises, and the counters that are not zero
 *   SIGPIPE           ignored
 *
 * Invariants:
 *  1. No line that is written while workers run waits for stdout (output.h).
 *  2. Exit status 2 means that nothing was started: no EAL, no port, no thread. 3: it served, but no group yet, when the log was found to be damaged.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "muster/check.h"
#include "muster/dataplane.h"

#include "coordinator/cli.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/config_image.h"
#include "coordinator/cores/cores.h"
#include "coordinator/config_kafka.h"
#include "coordinator/groups_file.h"
#include "coordinator/house/house.h"
#include "coordinator/main_config.h"
#include "coordinator/node.h"
#include "coordinator/output.h"
#include "coordinator/storage.h"
#include "coordinator/tool/tool.h"

#ifdef MUSTER_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#define STOP_GRACE_US (4 * US_PER_S)

enum { EXIT_STOPPED = EXIT_SUCCESS, EXIT_BROKEN = 1, EXIT_REFUSED = 2, EXIT_DAMAGED = 3 };

/* What the program keeps of one worker. */
struct seat {
	struct config_kafka settings;
	unsigned int arena; /* the allocator's for this worker alone */
};

struct program {
	struct cli cli;
	struct config cfg;
	struct core_map map;
	struct worker_places places;
	struct group_settings groups;
	struct group_rules *rules; /* groups with settings of their own; NULL: none */
	char host[CONFIG_TEXT_MAX + 1]; /* that clients are told */
	struct image *image;
	struct storage *storage;
	struct seat *seats; /* per worker */
	struct node **nodes;
	atomic_int status; /* to exit with */
	_Atomic(struct dataplane *) dp;
	struct house *house;
	struct output out; /* stdout */
	pthread_t signals;
	atomic_bool done;  /* the signal thread shall end */
	atomic_uint stops; /* SIGTERM and SIGINT so far */
};

/* ---- lines on stdout while workers run (invariant 1) ---- */

static void journal(void *arg, const char *line)
{
	struct program *pr = arg;
	output_line(&pr->out, "journal: %s", line);
}

static void emit_log(struct program *pr)
{
	char line[CONFIG_TEXT_MAX + 300];
	storage_describe(pr->storage, line, sizeof(line));
	output_line(&pr->out, "muster: log: %s", line);
}

static void emit_stats(struct program *pr, struct dataplane *dp)
{
	for (unsigned int w = 0; w < (unsigned int)pr->cfg.workers; w++) {
		const struct stats *stats = dataplane_stats(dp, w);
		for (size_t i = 0; i < ARRAY_LEN(stats_rows); i++) {
			uint64_t value = stats_value(stats, &stats_rows[i]);
			if (value != 0)
				output_line(&pr->out, "stats: worker %u: %s %" PRIu64, w, stats_rows[i].name, value);
		}
	}
}

/* ---- what the housekeeping thread sees of the dataplane ---- */

static bool link_tell(void *arg, unsigned int worker, const struct mail *mail)
{
	return dataplane_tell(arg, worker, mail);
}

static unsigned int link_told(void *arg, unsigned int worker, struct mail out[], unsigned int max)
{
	return dataplane_told(arg, worker, out, max);
}

static const struct stats *link_stats(void *arg, unsigned int worker)
{
	return dataplane_stats(arg, worker);
}

static void link_pulse(void *arg, unsigned int worker, struct pulse *out)
{
	dataplane_pulse(arg, worker, out);
}

static unsigned int link_depth(void *arg, unsigned int worker)
{
	return dataplane_depth(arg, worker);
}

static bool house_begin(struct program *pr, struct dataplane *dp)
{
	struct house_link link = {
		.arg = dp,
		.fd = dataplane_desk_fd(dp),
		.tell = link_tell,
		.told = link_told,
		.stats = link_stats,
		.pulse = link_pulse,
		.stage = dataplane_stage,
		.depth = link_depth,
	};
	char line[CONFIG_TEXT_MAX + 300];
	storage_describe(pr->storage, line, sizeof(line));
	house_set_log(pr->house, line);
	return house_start(pr->house, &link);
}

/* ---- signals ---- */

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGHUP);
}

static void *wait_for_signals(void *arg)
{
	struct program *pr = arg;
	sigset_t set;
	int sig;
	sigfillset(&set); /* what is sent to the process is for us only when we ask for it: a TAP announces frames by signal */
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	signal_set(&set);
	while (sigwait(&set, &sig) == 0 && !atomic_load(&pr->done)) {
		struct dataplane *dp = atomic_load(&pr->dp);
		if (sig == SIGHUP) {
			house_reload(pr->house);
			continue;
		}
		if (sig == SIGUSR1) {
			if (dp == NULL)
				continue;
			emit_log(pr);
			emit_stats(pr, dp);
			continue;
		}
		if (atomic_fetch_add(&pr->stops, 1) > 0)
			_exit(128 + sig);
		output_line(&pr->out, "muster: stopping on %s; once more stops at once", sig == SIGTERM ? "SIGTERM" : "SIGINT");
		dp = atomic_load(&pr->dp); /* after the count, as main counts after the store: one of the two sees the other */
		if (dp != NULL)
			dataplane_stop(dp);
	}
	return NULL;
}

static bool signals_start(struct program *pr)
{
	sigset_t set;
	signal_set(&set);
	signal(SIGPIPE, SIG_IGN);
	return pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && pthread_create(&pr->signals, NULL, wait_for_signals, pr) == 0;
}

static void signals_end(struct program *pr)
{
	atomic_store(&pr->done, true);
	pthread_kill(pr->signals, SIGUSR1);
	pthread_join(pr->signals, NULL);
}

/* ---- parts of the program ---- */

static int refuse(const char *err)
{
	fprintf(stderr, "muster: %s\n", err);
	return EXIT_REFUSED;
}

/* The settings of all groups. False: one line in err. */
static bool groups_build(struct program *pr, char *err, size_t err_len)
{
	const char *path = pr->cfg.groups_file;
	group_settings_of(&pr->cfg, &pr->groups);
	if (*path == '\0')
		return true;
	pr->rules = group_rules_new();
	if (pr->rules == NULL) {
		snprintf(err, err_len, "no memory for %s", path);
		return false;
	}
	if (!groups_file_read(pr->rules, path, err, err_len))
		return false;
	group_rules_seal(pr->rules, &pr->groups);
	pr->groups.rules = pr->rules;
	return groups_file_check(pr->rules, path, err, err_len);
}

static struct now now_read(void)
{
	struct timespec mono, wall;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct now){(uint64_t)mono.tv_sec * US_PER_S + (uint64_t)mono.tv_nsec / 1000,
			    (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000};
}

/* ---- an allocator arena for each worker, so that no two ever wait for each other ---- */

static void arena_make(struct seat *seat)
{
#ifdef MUSTER_JEMALLOC
	size_t len = sizeof(seat->arena);
	mallctl("arenas.create", &seat->arena, &len, NULL, 0);
#endif
}

/* From here on this thread allocates there; returns where it did before. */
static unsigned int arena_use(unsigned int arena)
{
	unsigned int before = 0;
#ifdef MUSTER_JEMALLOC
	size_t len = sizeof(before);
	mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	mallctl("thread.arena", &before, &len, &arena, sizeof(arena));
#endif
	return before;
}

static void worker_started(void *arg, unsigned int worker)
{
	const struct program *pr = arg;
	arena_use(pr->seats[worker].arena);
}

/* Ends the program from any thread while the workers run. */
static void give_up(struct program *pr, int status)
{
	atomic_store(&pr->status, status);
	dataplane_stop(atomic_load(&pr->dp));
}

/* ---- the log ---- */

/* A thread of the log: everything is loaded, or the start is refused after all. */
static void loaded(void *arg, const char *err)
{
	struct program *pr = arg;
	char line[CONFIG_TEXT_MAX + 300];
	if (err == NULL) {
		house_set_ready(pr->house);
		if (storage_describe_load(pr->storage, line, sizeof(line)))
			output_line(&pr->out, "muster: log: %s", line);
		output_line(&pr->out, "muster: ready, bootstrap.servers=%s:%d", pr->host, pr->map.worker[0].port);
		return;
	}
	fprintf(stderr, "muster: %s\n", err);
	give_up(pr, EXIT_DAMAGED);
}

/* The worker's thread: nothing becomes durable any more. The log has said why. */
static void log_broke(void *arg)
{
	struct program *pr = arg;
	house_set_log_broken(pr->house);
	if (pr->cfg.log_failure_policy != 0) {
		output_line(&pr->out, "muster: log.failure.policy=stop: commits and assignments are refused from now on");
		return;
	}
	output_line(&pr->out, "muster: log.failure.policy=exit: the program ends; the next start finds out what the disk has kept");
	give_up(pr, EXIT_BROKEN);
}

/* Made in the worker's own arena. */
static struct node *node_start(struct program *pr, struct dataplane *dp, unsigned int worker)
{
	struct seat *seat = &pr->seats[worker];
	struct node_config cfg = {
		.node_id = pr->map.worker[worker].node_id,
		.mailbox = dataplane_mailbox(dp, worker),
		.desk = dataplane_desk(dp, worker),
		.groups = &pr->groups,
		.max_sessions = (unsigned int)pr->cfg.max_connections,
		.max_fetch_wait_ms = (unsigned int)pr->cfg.fetch_wait_max_ms,
		.journal = pr->cfg.journal_output == 0 ? journal : NULL,
		.journal_arg = pr,
		.log_failed = log_broke,
		.log_failed_arg = pr,
		.settings = seat->settings.list,
	};
	if (getrandom(cfg.random, sizeof(cfg.random), 0) != sizeof(cfg.random))
		return NULL;
	config_kafka(&seat->settings, &pr->cfg, cfg.node_id);
	cfg.settings_len = seat->settings.len;
	arena_make(seat);
	unsigned int ours = arena_use(seat->arena);
	struct node *node = node_new(&cfg, pr->image, storage_log(pr->storage, worker), dataplane_stats(dp, worker), now_read());
	arena_use(ours);
	return node;
}

static bool nodes_start(struct program *pr, struct dataplane *dp)
{
	unsigned int workers = (unsigned int)pr->cfg.workers;
	pr->seats = calloc(workers, sizeof(*pr->seats));
	pr->nodes = calloc(workers, sizeof(*pr->nodes));
	for (unsigned int w = 0; w < workers; w++) {
		if (pr->seats == NULL || pr->nodes == NULL || (pr->nodes[w] = node_start(pr, dp, w)) == NULL)
			return false;
		dataplane_set_service(dp, w, &node_service_ops, pr->nodes[w]);
		storage_set_wake(pr->storage, w, dataplane_wake_fd(dp, w));
	}
	return true;
}

static void nodes_end(struct program *pr)
{
	for (unsigned int w = 0; pr->nodes != NULL && w < (unsigned int)pr->cfg.workers; w++)
		if (pr->nodes[w] != NULL)
			node_free(pr->nodes[w]);
	free(pr->nodes);
	free(pr->seats);
}

static const char *number_or(int number, const char *word, char text[16])
{
	snprintf(text, 16, "%d", number);
	return number >= 0 ? text : word;
}

/* A line for each worker of a core map. */
static void banner_map(const struct program *pr)
{
	const struct core_map *map = &pr->map;
	char cpu[16], queue[16], shards[300];
	printf("muster: core map %s: %u workers of cluster %s, housekeeping on CPU %s\n", map->path, map->workers, pr->cfg.cluster_id,
	       number_or(map->housekeeping, "any", cpu));
	for (unsigned int w = 0; w < map->workers; w++) {
		const struct core_map_worker *at = &map->worker[w];
		core_map_shards_text(map, w, shards, sizeof(shards));
		printf("muster: worker %u: CPU %s, queue %s, node %d, port %d, shards %s, %s\n", w, number_or(at->cpu, "any", cpu),
		       number_or(at->queue, "none", queue), at->node_id, at->port, shards, at->idle == 0 ? "spin" : "adaptive");
	}
}

static void banner(struct program *pr, struct dataplane *dp)
{
	char port[256];
	const struct image_topic *topics;
	unsigned int n = image_topics(pr->image, &topics) - 1; /* without the log's own */
	int64_t partitions = -pr->cfg.offsets_topic_num_partitions;
	for (unsigned int i = 0; i < n + 1; i++)
		partitions += topics[i].partitions;
	dataplane_describe(dp, port, sizeof(port));
	printf("muster: version %s\n", MUSTER_VERSION);
	printf("muster: port: %s\n", port);
	if (pr->map.path[0] != '\0')
		banner_map(pr);
	else if (pr->cfg.workers == 1)
		printf("muster: node %" PRId64 " of cluster %s\n", pr->cfg.node_id, pr->cfg.cluster_id);
	else
		printf("muster: nodes %" PRId64 " to %" PRId64 " of cluster %s on ports %" PRId64 " to %" PRId64 "\n", pr->cfg.node_id,
		       pr->cfg.node_id + pr->cfg.workers - 1, pr->cfg.cluster_id, pr->cfg.port, pr->cfg.port + pr->cfg.workers - 1);
	if (n == 0)
		printf("muster: topics: NONE; clients find no topic until topics.file names some\n");
	else
		printf("muster: topics: %u with %" PRId64 " partitions from %s\n", n, partitions, pr->cfg.topics_file);
	if (pr->rules != NULL)
		printf("muster: groups: %u patterns with settings of their own from %s\n", group_rules_len(pr->rules), pr->cfg.groups_file);
	fflush(stdout);
	emit_log(pr);
	if (pr->cfg.fault_inject_loss_ppm + pr->cfg.fault_inject_duplicate_ppm + pr->cfg.fault_inject_reorder_ppm +
		    pr->cfg.fault_inject_corrupt_ppm >
	    0)
		printf("muster: FAULT INJECTION IS ON: traffic is damaged on purpose\n");
	fflush(stdout);
}

/* Runs until it is stopped. The dataplane is up. */
static int serve(struct program *pr, struct dataplane *dp)
{
	if (!nodes_start(pr, dp)) {
		fprintf(stderr, "muster: no memory for the coordinator; lower max.connections or offsets.topic.num.partitions\n");
		return EXIT_BROKEN;
	}
	banner(pr, dp);
	if (!house_begin(pr, dp)) {
		fprintf(stderr, "muster: cannot start the housekeeping thread\n");
		return EXIT_BROKEN;
	}
	atomic_store(&pr->dp, dp);
	if (atomic_load(&pr->stops) > 0)
		dataplane_stop(dp);
	if (!storage_load(pr->storage, pr->nodes, now_read, loaded, pr)) {
		fprintf(stderr, "muster: no memory to load the log\n");
		return EXIT_BROKEN;
	}
	int broken = dataplane_run(dp, STOP_GRACE_US);
	storage_stop(pr->storage);
	return broken == 0 ? atomic_load(&pr->status) : EXIT_BROKEN;
}

static int run(struct program *pr)
{
	char err[CONFIG_ERROR_MAX];
	struct dataplane_config cfg;
	dataplane_config_of(&pr->cfg, &pr->map, &pr->places, &cfg);
	cfg.on_worker_start = worker_started;
	cfg.on_worker_start_arg = pr;
	output_init(&pr->out, STDOUT_FILENO);
	struct house_config house = {MUSTER_VERSION, &pr->cfg, &pr->map, pr->host, &pr->out, &pr->image, now_read};
	pr->house = house_new(&house, err, sizeof(err));
	if (pr->house == NULL)
		return refuse(err);
	if (!signals_start(pr)) {
		fprintf(stderr, "muster: cannot start a thread: %s\n", strerror(errno));
		house_stop(pr->house);
		house_free(pr->house);
		return EXIT_BROKEN;
	}
	int status = EXIT_BROKEN;
	pr->storage = storage_open(&pr->cfg, &pr->out, err, sizeof(err));
	struct dataplane *dp = pr->storage != NULL ? dataplane_start(&cfg, err, sizeof(err)) : NULL;
	if (dp == NULL)
		fprintf(stderr, "muster: %s\n", err);
	else
		status = serve(pr, dp);
	signals_end(pr);
	house_stop(pr->house);
	if (dp != NULL && pr->cli.stats)
		emit_stats(pr, dp);
	nodes_end(pr);
	house_free(pr->house);
	if (pr->storage != NULL)
		storage_close(pr->storage);
	if (dp != NULL)
		dataplane_free(dp);
	if (status == EXIT_STOPPED)
		output_line(&pr->out, "muster: stopped");
	return status;
}

/* Bytes that the kernel can still give: free huge pages if they are to be used and suffice for `needed`, else ordinary memory. */
static uint64_t memory_free(bool huge_pages, uint64_t needed)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	uint64_t available = 0, huge = 0, value;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &value) == 1)
			available = value * 1024;
		else if (sscanf(line, "HugePages_Free: %" SCNu64, &value) == 1)
			huge = value;
		else if (sscanf(line, "Hugepagesize: %" SCNu64 " kB", &value) == 1)
			huge *= value * 1024;
	}
	if (f != NULL)
		fclose(f);
	return huge_pages && huge >= needed ? huge : available;
}

static int check(struct program *pr)
{
	struct dataplane_config cfg;
	dataplane_config_of(&pr->cfg, &pr->map, &pr->places, &cfg);
	uint64_t needed = dataplane_memory_needed(&cfg), avail = memory_free(cfg.huge_pages, needed);
	if (needed > avail) {
		fprintf(stderr,
			"muster: memory: %" PRIu64 " MiB are needed, %" PRIu64 " MiB are free, %" PRIu64
			" MiB are missing; lower buffer.memory, max.connections, rx.descriptors or tx.descriptors\n",
			needed >> 20, avail >> 20, (needed - avail + (1 << 20) - 1) >> 20);
		return EXIT_REFUSED;
	}
	const struct image_topic *topics;
	printf("muster: settings are good; %u topics; %" PRIu64 " MiB of memory needed, %" PRIu64 " MiB free\n",
	       image_topics(pr->image, &topics) - 1, needed >> 20, avail >> 20);
	return EXIT_STOPPED;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "log") == 0)
		return tool_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "cores") == 0 && cores_knows(argc - 1, argv + 1))
		return cores_main(argc - 1, argv + 1);
	if (argc > 1 && ctl_knows(argv[1]))
		return ctl_main(argc - 1, argv + 1);
	struct program *pr = calloc(1, sizeof(*pr));
	char err[CONFIG_ERROR_MAX];
	if (pr == NULL)
		return EXIT_BROKEN;
	int status = EXIT_STOPPED;
	if (!cli_parse(&pr->cli, argc, argv, err, sizeof(err)))
		status = refuse(err);
	else if (pr->cli.command == CLI_HELP)
		cli_help(stdout);
	else if (pr->cli.command == CLI_VERSION)
		printf("muster %s\n", MUSTER_VERSION);
	else if (pr->cli.command == CLI_EXAMPLE)
		config_print_example(stdout);
	else if (!cli_load(&pr->cli, &pr->cfg, err, sizeof(err)))
		status = refuse(err);
	else if (pr->cli.command == CLI_PRINT)
		config_print(&pr->cfg, stdout);
	else {
		host_of(&pr->cfg, pr->host, sizeof(pr->host));
		if (core_map_load(&pr->map, &pr->cfg, err, sizeof(err)) && groups_build(pr, err, sizeof(err)))
			pr->image = config_image(&pr->cfg, &pr->map, pr->host, err, sizeof(err));
		if (pr->image == NULL)
			status = refuse(err);
		else
			status = pr->cli.command == CLI_CHECK ? check(pr) : run(pr);
	}
	if (pr->image != NULL)
		image_free(pr->image);
	group_rules_free(pr->rules);
	free(pr);
	return fflush(stdout) == 0 ? status : EXIT_BROKEN;
}
