/*
 * test_core_map.c - the file of a core map: what a good one says, every kind of fault with its line, and the way from one map to another.
 */
#include "coordinator/core_map.h"
#include "fixture.h"

#define FOUND_MAX 12

struct map_fixture {
	struct fixture f;
	struct core_map map;
	struct findings out;
	unsigned int n;
	char found[FOUND_MAX][500]; /* "LINE: TEXT" */
};

static void keep(void *arg, enum finding_kind kind, int line, const char *text)
{
	struct map_fixture *m = arg;
	cr_assert(lt(uint, m->n, FOUND_MAX));
	snprintf(m->found[m->n++], sizeof(m->found[0]), "%d: %s%s", line, kind == FINDING_COST ? "costs: " : "", text);
}

static struct map_fixture *map_read(const char *text)
{
	static struct map_fixture all[2];
	static unsigned int turn;
	struct map_fixture *m = &all[turn++ % 2];
	memset(m, 0, sizeof(*m));
	m->out = (struct findings){.say = keep, .arg = m};
	config_init(&m->f.cfg);
	fixture_write(&m->f, text, strlen(text));
	bool ok = core_map_read(&m->map, m->f.path, &m->f.cfg, &m->out);
	unlink(m->f.path);
	cr_assert(eq(int, ok, m->out.errors == 0));
	return m;
}

static const struct core_map *good(const char *text)
{
	const struct map_fixture *m = map_read(text);
	cr_assert(eq(uint, m->n, 0), "%s", m->found[0]);
	return &m->map;
}

/* The only fault of `text` is this one. */
static void refused(const char *text, const char *fault)
{
	const struct map_fixture *m = map_read(text);
	cr_expect(eq(uint, m->n, 1), "of %s", text);
	cr_expect_str_eq(m->found[0], fault);
}

#define ONE "[worker 0]\ncpu = 0\nqueue = 0\n"

Test(core_map, every_key)
{
	const struct core_map *map = good("# a map\n"
					  "[housekeeping]\n"
					  "cpu = 0\n"
					  "[worker 1] ; in any order\n"
					  "cpu = 5\n  queue = 0\nnic = 0\nnuma = 1\nnode.id = 7\nport = 9092\nshards = 0-12, 40\nidle.policy = spin\n"
					  "[worker 0]\ncpu = any\nqueue = none\nnuma = any\n");
	cr_expect(eq(uint, map->workers, 2));
	cr_expect(eq(int, map->housekeeping, 0));
	cr_expect(eq(int, map->worker[1].cpu, 5));
	cr_expect(eq(int, map->worker[1].queue, 0));
	cr_expect(eq(int, map->worker[1].numa, 1));
	cr_expect(eq(int, map->worker[1].node_id, 7));
	cr_expect(eq(int, map->worker[1].port, 9092));
	cr_expect(eq(int, map->worker[1].idle, 0));
	cr_expect(eq(int, map->worker[1].lines[CORE_MAP_KEY_port], 10));
	cr_expect(eq(int, map->worker[0].cpu, CORE_MAP_ANY));
	cr_expect(eq(int, map->worker[0].queue, CORE_MAP_NONE));
	cr_expect(eq(int, map->worker[0].numa, CORE_MAP_ANY));
	cr_expect(eq(int, map->worker[0].node_id, 1000));
	cr_expect(eq(int, map->worker[0].port, 19092));
	cr_expect(eq(int, map->worker[0].idle, 1));
	char shards[64];
	core_map_shards_text(map, 1, shards, sizeof(shards));
	cr_expect_str_eq(shards, "0-12,40");
	core_map_shards_text(map, 0, shards, sizeof(shards));
	cr_expect_str_eq(shards, "13-39,41-49");
}

Test(core_map, without_a_word_about_them_shards_go_as_without_a_map)
{
	struct config cfg;
	struct core_map without;
	const struct core_map *map = good("[worker 0]\nqueue = 0\n[worker 1]\nqueue = 1\n[worker 2]\nqueue = 2\nshards = auto\n");
	config_init(&cfg);
	cfg.workers = 3;
	core_map_of_settings(&without, &cfg);
	for (unsigned int s = 0; s < 50; s++) {
		cr_assert(eq(u8, map->owner[s], s % 3));
		cr_assert(eq(u8, without.owner[s], s % 3));
	}
	cr_expect(eq(int, without.worker[2].port, 19094));
	cr_expect(eq(int, without.worker[2].node_id, 1002));
}

Test(core_map, the_rest_goes_round_those_that_take_it)
{
	const struct core_map *map = good("[worker 0]\nqueue = 0\nshards = 1\n[worker 1]\n[worker 2]\nshards = none\n[worker 3]\n");
	static const uint8_t want[] = {1, 0, 3, 1, 3, 1, 3};
	for (unsigned int s = 0; s < ARRAY_LEN(want); s++)
		cr_expect(eq(u8, map->owner[s], want[s]), "shard %u", s);
	cr_expect(eq(uint, core_map_queues(map), 1));
}

Test(core_map, faults)
{
	refused("", "0: there is no worker; write a section [worker 0]");
	refused("cpu = 1\n" ONE, "1: cpu: stands before any section; allowed: in [housekeeping] or [worker N]");
	refused(ONE "[worker 64]\ncpu = x\n", "4: [worker 64]: is no section of a core map; allowed: [housekeeping], [worker 0] to [worker 63]");
	refused(ONE "[worker]\n", "4: [worker]: is no section of a core map; allowed: [housekeeping], [worker 0] to [worker 63]");
	refused(ONE ONE, "4: [worker 0]: stands for the second time; allowed: once, and line 1 has it");
	refused("[worker 1]\nqueue = 0\n", "1: [worker 1]: there is no worker 0; number them from 0 without gaps");
	refused(ONE "cpu = 1\n", "4: worker 0: cpu: is set for the second time; allowed: once, and line 2 sets it");
	refused(ONE "qeue = 1\n", "4: qeue: a worker has no such key; nearest: queue");
	refused(ONE "zzzzzzzz = 1\n", "4: zzzzzzzz: a worker has no such key; allowed: cpu nic queue numa node.id port shards idle.policy");
	refused("[worker 0]\nqueue = 0\ncpu = -1\n", "3: worker 0: cpu: \"-1\" is no such number; allowed: 0 to 1023, or any");
	refused("[worker 0]\nqueue = 0\ncpu = 1024\n", "3: worker 0: cpu: \"1024\" is no such number; allowed: 0 to 1023, or any");
	refused("[worker 0]\nqueue = 0-1\n", "2: worker 0: queue: \"0-1\" is no such number; allowed: 0 to 63, or none");
	refused(ONE "nic = 1\n", "4: worker 0: nic: \"1\": muster drives one card, the one of the setting device; allowed: 0");
	refused(ONE "numa = x\n", "4: worker 0: numa: \"x\" is no such number; allowed: 0 to 31, or any");
	refused(ONE "port = 0\n", "4: worker 0: port: 0 is too small; allowed: 1 to 65535 (TCP port)");
	refused(ONE "node.id = 2147483648\n", "4: worker 0: node.id: 2147483648 is too large; allowed: 0 to 2147483647");
	refused(ONE "idle.policy = lazy\n", "4: worker 0: idle.policy: \"lazy\" is none of the words; allowed: spin, adaptive");
	refused(ONE "[housekeeping]\nport = 1\n", "5: port: housekeeping has no such key; allowed: cpu");
	refused(ONE "[housekeeping]\ncpu = 1\ncpu = 1\n", "6: cpu: is set for the second time; allowed: once, and line 5 sets it");
	refused(ONE "what\n", "4: neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
}

Test(core_map, faults_of_shards)
{
	refused(ONE "shards = 0-49,50\n", "4: worker 0: shards: there is no shard 50; allowed: 0 to 49, as offsets.topic.num.partitions says");
	refused(ONE "shards = 0-4\n", "0: 45 shards have no owner, the first is 5; name them, or write shards = auto for a worker");
	refused(ONE "shards = none\n", "0: 50 shards have no owner, the first is 0; name them, or write shards = auto for a worker");
	refused(ONE "shards = 0-4\n[worker 1]\nshards = 4-49\n", "6: worker 1: shards: 4 has worker 0 already, by line 4; allowed: one owner");
	refused(ONE "shards = 4,4,0-3,5-49\n", "4: worker 0: shards: 4 has worker 0 already, by line 4; allowed: one owner");
	refused(ONE "shards = 0-9,x\n",
		"4: worker 0: shards: \"x\" is no list of shards; allowed: numbers and ranges like 0-12,40, or auto, or none");
	refused(ONE "shards = 9-0\n",
		"4: worker 0: shards: \"9-0\" is no list of shards; allowed: numbers and ranges like 0-12,40, or auto, or none");
	refused(ONE "shards =\n", "4: worker 0: shards: \"\" is no list of shards; allowed: numbers and ranges like 0-12,40, or auto, or none");
	refused(ONE "shards = 99999999999999999999\n",
		"4: worker 0: shards: \"99999999999999999999\" is no list of shards; allowed: numbers and ranges like 0-12,40, or auto, or none");
}

Test(core_map, what_only_one_worker_may_have)
{
	refused(ONE "[worker 1]\ncpu = 0\n", "5: worker 1: cpu: 0 has worker 0 already, by line 2; give it another one");
	refused(ONE "[worker 1]\nqueue = 0\n", "5: worker 1: queue: 0 has worker 0 already, by line 3; give it another one");
	refused(ONE "[worker 1]\nport = 19092\n", "5: worker 1: port: 19092 has worker 0 already, by line 1; give it another one");
	refused(ONE "node.id = 1001\n[worker 1]\n", "5: worker 1: node.id: 1001 has worker 0 already, by line 4; give it another one");
	refused("[worker 0]\ncpu = 0\n", "0: no worker has a queue: no frame would ever be received; write queue = 0 for one");
	refused(ONE "[worker 1]\nqueue = 2\n", "5: worker 1: queue: 2, and one below it has no worker: what the card puts there would never be received; number "
					       "the 2 queues from 0 without gaps");
}

Test(core_map, every_fault_is_told)
{
	const struct map_fixture *m = map_read("[worker 0]\ncpu = x\nqueue = 0\nport = 0\n[worker 2]\nshards = 77\nwhat = 1\n");
	cr_expect(eq(uint, m->n, 5));
	cr_expect(eq(int, atoi(m->found[0]), 2));
	cr_expect(eq(int, atoi(m->found[1]), 4));
	cr_expect(eq(int, atoi(m->found[2]), 6));
	cr_expect(eq(int, atoi(m->found[3]), 7));
	cr_expect_str_eq(m->found[4], "5: [worker 2]: there is no worker 1; number them from 0 without gaps");
}

Test(core_map, what_the_settings_make_of_it_must_fit)
{
	struct map_fixture *m = map_read(ONE);
	fixture_set(&m->f.cfg, "port=65535");
	fixture_set(&m->f.cfg, "node.id=2147483647");
	fixture_write(&m->f, ONE "[worker 1]\n", strlen(ONE "[worker 1]\n"));
	cr_expect(not(core_map_read(&m->map, m->f.path, &m->f.cfg, &m->out)));
	unlink(m->f.path);
	cr_expect(eq(uint, m->n, 2));
	cr_expect_str_eq(m->found[0], "4: worker 1: port: the setting port + 1 is more than 65535; write port here");
	cr_expect_str_eq(m->found[1], "4: worker 1: node.id: the setting node.id + 1 is more than 2147483647; write node.id here");
}

Test(core_map, no_file)
{
	struct map_fixture *m = map_read(ONE);
	cr_expect(not(core_map_read(&m->map, "/nowhere/map", &m->f.cfg, &m->out)));
	cr_expect_str_eq(m->found[0], "0: cannot be opened: No such file or directory; allowed: a readable file");
}

/* ---- from one map to another ---- */

static struct core_map_move moves[CORE_MAP_SHARDS_MAX];

Test(core_map, diff)
{
	const struct core_map *a = good(ONE "shards = auto\n[worker 1]\nshards = 3,7\n"), *b = good(ONE "shards = auto\n[worker 1]\nshards = 7,9\n");
	cr_assert(eq(uint, core_map_diff(a, a, moves), 0));
	cr_assert(eq(uint, core_map_diff(a, b, moves), 2));
	cr_expect(moves[0].shard == 3 && moves[0].from == 1 && moves[0].to == 0);
	cr_expect(moves[1].shard == 9 && moves[1].from == 0 && moves[1].to == 1);
}

/* `text` in the place of a map of two workers: refused with this at the end of the line. */
static void cannot_apply(const char *text, const char *end)
{
	char err[CONFIG_ERROR_MAX];
	const struct core_map *running = good(ONE "[worker 1]\n"), *wanted = good(text);
	cr_assert(not(core_map_can_apply(running, wanted, err, sizeof(err))), "%s", text);
	size_t len = strlen(err), n = strlen(end);
	cr_expect(len > n && strcmp(err + len - n, end) == 0, "%s", err);
}

Test(core_map, only_shards_can_be_applied)
{
	char err[CONFIG_ERROR_MAX];
	cr_assert(core_map_can_apply(good(ONE "[worker 1]\n"), good(ONE "shards = 1\n[worker 1]\n"), err, sizeof(err)));
#define REST ": the running server has another one; only shards move while it runs, for the rest restart it"
	cannot_apply("[worker 0]\ncpu = 1\nqueue = 0\n[worker 1]\n", ":2: worker 0: cpu" REST);
	cannot_apply("[worker 0]\nqueue = 0\n[worker 1]\n", ":1: worker 0: cpu" REST);
	cannot_apply(ONE "[worker 1]\nqueue = 1\n", ":5: worker 1: queue" REST);
	cannot_apply(ONE "[worker 1]\nnuma = 0\n", ":5: worker 1: numa" REST);
	cannot_apply(ONE "[worker 1]\nnode.id = 5\n", ":5: worker 1: node.id" REST);
	cannot_apply(ONE "[worker 1]\nport = 5\n", ":5: worker 1: port" REST);
	cannot_apply(ONE "[worker 1]\nidle.policy = spin\n", ":5: worker 1: idle.policy" REST);
	cannot_apply(ONE "[worker 1]\n[housekeeping]\ncpu = 1\n", ":6: housekeeping: the running server has another CPU; restart it for that");
	cannot_apply(ONE, ": has 1 workers and 50 shards, the running server 2 and 50; restart it for that");
}

Test(core_map, a_server_without_a_map_takes_one_of_the_same_shape)
{
	char err[CONFIG_ERROR_MAX];
	struct config cfg;
	static struct core_map running;
	config_init(&cfg);
	cfg.workers = 2;
	core_map_of_settings(&running, &cfg);
	const struct core_map *wanted = good("[worker 0]\nqueue = 0\nshards = 0-9\n[worker 1]\nqueue = 1\n");
	cr_assert(core_map_can_apply(&running, wanted, err, sizeof(err)), "%s", err);
	cr_expect(eq(uint, core_map_diff(&running, wanted, moves), 25), "1, 3, 5, 7, 9 come, 10, 12, ... 48 go");
}
