/*
 * rdkafka_consumer.c - a librdkafka consumer that a test drives: one member of a group, told what to do by lines on stdin, telling
 * what happens to it as JSON lines on stdout. The same words as consumer_confluent.py and consumer_kafka_python.py.
 *
 * In:   commit N    commit offset N for every partition it has
 *       committed   ask for the group's offsets of all partitions of the topic
 *       leave       close the consumer and end
 * Out:  {"t": seconds of CLOCK_MONOTONIC, "event": E, ...} where E is
 *       assigned, revoked   "all": the partitions it has after the event
 *       committed           "offset": N
 *       offsets             "offsets": {"partition": offset, ...}, those without one left out
 *       error               "text"
 *       closed
 */
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL_TIMEOUT_MS 10000

struct consumer {
	rd_kafka_t *rk;
	const char *topic;
	rd_kafka_topic_partition_list_t *have; /* assigned */
	char line[256]; /* what was read of the next command */
	size_t line_len;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "rdkafka_consumer: %s: %s\n", what, why);
	exit(2);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One event; `format` gives the members that follow the name, with their leading comma. */
__attribute__((format(printf, 3, 4))) static void tell(double at, const char *event, const char *format, ...)
{
	va_list args;

	printf("{\"t\": %.6f, \"event\": \"%s\"", at, event);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("}");
	fflush(stdout);
}

static void tell_error(const char *what, const char *why)
{
	char text[300];
	size_t n = 0;

	for (; *why && n < sizeof(text) - 1; why++)
		text[n++] = *why == '"' || *why == '\\' || (unsigned char)*why < ' ' ? ' ' : *why;
	text[n] = 0;
	tell(now(), "error", ", \"text\": \"%s: %s\"", what, text);
}

static void tell_assignment(struct consumer *c, double at, const char *event)
{
	char text[4096] = "";
	size_t n = 0;

	for (int i = 0; i < c->have->cnt && n < sizeof(text) - 16; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i ? ", " : "", c->have->elems[i].partition);
	tell(at, event, ", \"all\": [%s]", text);
}

/*
 * Keeps count of what is assigned. rd_kafka_assignment() knows it as well, but asks a thread of the library that, once the last partition is given back
 * while the consumer closes, may have ended: it then waits for ever.
 */
static void count(struct consumer *c, bool cooperative, bool assign, const rd_kafka_topic_partition_list_t *partitions)
{
	if (!cooperative) {
		rd_kafka_topic_partition_list_destroy(c->have);
		c->have = assign ? rd_kafka_topic_partition_list_copy(partitions) : rd_kafka_topic_partition_list_new(8);
		return;
	}
	for (int i = 0; i < partitions->cnt; i++) {
		rd_kafka_topic_partition_list_del(c->have, partitions->elems[i].topic, partitions->elems[i].partition);
		if (assign)
			rd_kafka_topic_partition_list_add(c->have, partitions->elems[i].topic, partitions->elems[i].partition);
	}
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
	struct consumer *c = opaque;
	double at = now(); /* before anything is given back, so that no one can have it earlier */
	bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
	bool cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
	rd_kafka_error_t *error = NULL;

	if (!assign && err != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
		tell_error("rebalance", rd_kafka_err2str(err));
	if (cooperative)
		error = assign ? rd_kafka_incremental_assign(rk, partitions) : rd_kafka_incremental_unassign(rk, partitions);
	else
		rd_kafka_assign(rk, assign ? partitions : NULL);
	if (error) {
		tell_error("rebalance", rd_kafka_error_string(error));
		rd_kafka_error_destroy(error);
	}
	count(c, cooperative, assign, partitions);
	tell_assignment(c, at, assign ? "assigned" : "revoked");
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	tell_error(rd_kafka_err2name(err), reason);
}

static void commit(struct consumer *c, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(c->have);
	rd_kafka_resp_err_t err;

	for (int i = 0; i < list->cnt; i++)
		list->elems[i].offset = offset;
	err = rd_kafka_commit(c->rk, list, 0);
	for (int i = 0; i < list->cnt && !err; i++)
		err = list->elems[i].err;
	if (err)
		tell_error("commit", rd_kafka_err2str(err));
	else
		tell(now(), "committed", ", \"offset\": %lld", (long long)offset);
	rd_kafka_topic_partition_list_destroy(list);
}

/* Every partition that the topic has, from Metadata. */
static rd_kafka_topic_partition_list_t *all_partitions(struct consumer *c)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(c->rk, c->topic, NULL);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t err = rd_kafka_metadata(c->rk, 0, topic, &metadata, CALL_TIMEOUT_MS);

	if (err) {
		tell_error("metadata", rd_kafka_err2str(err));
	} else {
		for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
			rd_kafka_topic_partition_list_add(list, c->topic, metadata->topics[0].partitions[i].id);
		rd_kafka_metadata_destroy(metadata);
	}
	rd_kafka_topic_destroy(topic);
	return list;
}

static void committed(struct consumer *c)
{
	rd_kafka_topic_partition_list_t *list = all_partitions(c);
	rd_kafka_resp_err_t err = rd_kafka_committed(c->rk, list, CALL_TIMEOUT_MS);
	char text[4096] = "";
	size_t n = 0;

	for (int i = 0; i < list->cnt && n < sizeof(text) - 40 && !err; i++) {
		err = list->elems[i].err;
		if (!err && list->elems[i].offset >= 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%d\": %lld", n ? ", " : "",
					      list->elems[i].partition, (long long)list->elems[i].offset);
	}
	if (err)
		tell_error("committed", rd_kafka_err2str(err));
	else
		tell(now(), "offsets", ", \"offsets\": {%s}", text);
	rd_kafka_topic_partition_list_destroy(list);
}

/* The next command without its newline, or NULL when none is complete. The end of stdin is a "leave". */
static const char *next_command(struct consumer *c, char *out, size_t out_len)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char *end;

	if (poll(&in, 1, 0) == 1) {
		ssize_t n = read(STDIN_FILENO, c->line + c->line_len, sizeof(c->line) - 1 - c->line_len);

		if (n <= 0)
			return "leave";
		c->line_len += (size_t)n;
		c->line[c->line_len] = 0;
	}
	end = memchr(c->line, '\n', c->line_len);
	if (!end)
		return NULL;
	*end++ = 0;
	snprintf(out, out_len, "%s", c->line);
	c->line_len -= (size_t)(end - c->line);
	memmove(c->line, end, c->line_len);
	return out;
}

static void run(struct consumer *c)
{
	char word[sizeof(c->line)];

	for (;;) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(c->rk, 50);
		const char *command;

		if (message) {
			if (message->err && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
				tell_error("poll", rd_kafka_message_errstr(message));
			rd_kafka_message_destroy(message);
		}
		command = next_command(c, word, sizeof(word));
		if (!command)
			continue;
		if (!strncmp(command, "commit ", 7))
			commit(c, atoll(command + 7));
		else if (!strcmp(command, "committed"))
			committed(c);
		else if (!strcmp(command, "leave"))
			return;
		else
			die("unknown command", command);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[][2] = {
		{ "--bootstrap", "bootstrap.servers" },
		{ "--group", "group.id" },
		{ "--client-id", "client.id" },
		{ "--assignor", "partition.assignment.strategy" },
		{ "--session-ms", "session.timeout.ms" },
		{ "--heartbeat-ms", "heartbeat.interval.ms" },
		{ "--instance", "group.instance.id" },
		{ NULL, NULL },
	};
	struct consumer c = { .have = rd_kafka_topic_partition_list_new(8) };
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err;
	char why[512];

	rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof(why));
	rd_kafka_conf_set(conf, "reconnect.backoff.max.ms", "500", why, sizeof(why));
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *name = NULL;

		for (size_t k = 0; names[k][0]; k++)
			if (!strcmp(argv[i], names[k][0]))
				name = names[k][1];
		if (!strcmp(argv[i], "--topic"))
			c.topic = argv[i + 1];
		else if (!name || rd_kafka_conf_set(conf, name, argv[i + 1], why, sizeof(why)) != RD_KAFKA_CONF_OK)
			die(argv[i], name ? why : "unknown option");
	}
	if (!c.topic)
		die("--topic", "is missing");
	rd_kafka_conf_set_opaque(conf, &c);
	rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	rd_kafka_conf_set_error_cb(conf, on_error);
	c.rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	if (!c.rk)
		die("rd_kafka_new", why);
	rd_kafka_poll_set_consumer(c.rk);
	rd_kafka_topic_partition_list_add(topics, c.topic, RD_KAFKA_PARTITION_UA);
	err = rd_kafka_subscribe(c.rk, topics);
	if (err)
		die("subscribe", rd_kafka_err2str(err));
	rd_kafka_topic_partition_list_destroy(topics);

	run(&c);
	rd_kafka_consumer_close(c.rk);
	rd_kafka_destroy(c.rk);
	rd_kafka_topic_partition_list_destroy(c.have);
	tell(now(), "closed", "%s", "");
	return 0;
}
