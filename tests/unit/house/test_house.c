/*
 * test_house.c - the housekeeping thread with workers that are only played: silent ones, ones whose pulse stops, ones that own nothing; and the file of its
 * socket.
 */
#define _GNU_SOURCE /* pipe2 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/config_image.h"
#include "coordinator/house/house.h"
#include "coordinator/house/question.h"

#define WORKERS 3
#define LINE_MAX_BYTES 8192

enum play { PLAY_SILENT, PLAY_MISSED, PLAY_ANSWER };

/* The test's thread plays the workers' part under a lock, which stands for their rings. */
struct rig {
	char folder[40], path[80];
	struct config cfg;
	struct core_map map;
	struct output out;
	int lines[2]; /* a pipe */
	struct image *image;
	struct house *house;
	enum play play;
	pthread_mutex_t lock;
	int fd;
	struct mail answers[WORKERS][QUESTIONS_MAX];
	unsigned int answers_len[WORKERS], told[WORKERS];
	struct question *kept; /* the last that a silent worker got */
	struct stats stats;
	struct pulse pulses[WORKERS];
	bool beating;
};

static struct now clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct now){(uint64_t)t.tv_sec * US_PER_S + (uint64_t)t.tv_nsec / 1000, 1700000000000};
}

static void answer(struct rig *rig, unsigned int worker, struct question *q)
{
	rig->answers[worker][rig->answers_len[worker]++] = (struct mail){q, 0, 0};
	eventfd_write(rig->fd, 1);
}

static bool fake_tell(void *arg, unsigned int worker, const struct mail *mail)
{
	struct rig *rig = arg;
	struct question *q = mail->subject;
	pthread_mutex_lock(&rig->lock);
	rig->told[worker]++;
	q->items = writer_of(q->bytes, sizeof(q->bytes));
	q->missed = rig->play == PLAY_MISSED;
	rig->kept = q;
	if (rig->play != PLAY_SILENT)
		answer(rig, worker, q);
	pthread_mutex_unlock(&rig->lock);
	return true;
}

static unsigned int fake_told(void *arg, unsigned int worker, struct mail out[], unsigned int max)
{
	struct rig *rig = arg;
	pthread_mutex_lock(&rig->lock);
	unsigned int n = rig->answers_len[worker];
	memcpy(out, rig->answers[worker], n * sizeof(*out));
	rig->answers_len[worker] = 0;
	pthread_mutex_unlock(&rig->lock);
	return n;
}

static const struct stats *fake_stats(void *arg, unsigned int worker)
{
	return &((struct rig *)arg)->stats;
}

static void fake_pulse(void *arg, unsigned int worker, struct pulse *out)
{
	struct rig *rig = arg;
	pthread_mutex_lock(&rig->lock);
	if (rig->beating || worker != 1)
		rig->pulses[worker].raw_us = clock_now().us;
	*out = rig->pulses[worker];
	pthread_mutex_unlock(&rig->lock);
}

static const char *fake_stage(unsigned int stage)
{
	return stage == 5 ? "frames" : "?";
}

static unsigned int fake_depth(void *arg, unsigned int worker)
{
	return 0;
}

static struct rig *rig_new(enum play play)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	char err[CONFIG_ERROR_MAX], set[120];
	cr_assert(rig != NULL);
	strcpy(rig->folder, "/tmp/muster-house-XXXXXX");
	cr_assert(mkdtemp(rig->folder) != NULL);
	snprintf(rig->path, sizeof(rig->path), "%s/admin.sock", rig->folder);
	config_init(&rig->cfg);
	snprintf(set, sizeof(set), "admin.socket=%s", rig->path);
	cr_assert(config_set(&rig->cfg, set, err, sizeof(err)) && config_set(&rig->cfg, "workers=3", err, sizeof(err)));
	cr_assert(pipe2(rig->lines, O_NONBLOCK) == 0);
	output_init(&rig->out, rig->lines[1]);
	core_map_of_settings(&rig->map, &rig->cfg);
	rig->image = config_image(&rig->cfg, &rig->map, "host", err, sizeof(err));
	rig->play = play;
	rig->beating = true;
	rig->fd = eventfd(0, EFD_NONBLOCK);
	rig->pulses[1].stage = 5;
	pthread_mutex_init(&rig->lock, NULL);
	return rig;
}

static struct house *house_of(struct rig *rig, char *err, size_t err_len)
{
	struct house_config cfg = {"1.2.3", &rig->cfg, &rig->map, "host", &rig->out, &rig->image, clock_now};
	return house_new(&cfg, err, err_len);
}

static void rig_start(struct rig *rig)
{
	char err[CONFIG_ERROR_MAX] = "";
	struct house_link link = {rig, rig->fd, fake_tell, fake_told, fake_stats, fake_pulse, fake_stage, fake_depth};
	rig->house = house_of(rig, err, sizeof(err));
	cr_assert(rig->house != NULL, "%s", err);
	cr_assert(house_start(rig->house, &link));
}

static void rig_free(struct rig *rig)
{
	if (rig->house != NULL)
		house_stop(rig->house);
	house_free(rig->house);
	cr_assert(access(rig->path, F_OK) != 0); /* it takes its socket with it */
	rmdir(rig->folder);
	image_free(rig->image);
	close(rig->fd);
	close(rig->lines[0]);
	close(rig->lines[1]);
	free(rig);
}

static FILE *client(const struct rig *rig)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, rig->path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fdopen(fd, "r+");
}

/* The last line of the answer. */
static char *ask(FILE *server, const char *request, char line[LINE_MAX_BYTES])
{
	fprintf(server, "%s\n", request);
	fflush(server);
	do
		cr_assert(fgets(line, LINE_MAX_BYTES, server) != NULL);
	while (strstr(line, "\"done\":true") == NULL);
	return line;
}

static void wait_for_line(struct rig *rig, const char *part)
{
	char text[8192] = "";
	size_t len = 0;
	for (unsigned int i = 0; i < 500; i++) {
		ssize_t n = read(rig->lines[0], text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		if (strstr(text, part) != NULL)
			return;
		usleep(20000);
	}
	cr_assert_fail("no %s in: %s", part, text);
}

Test(house, a_worker_that_does_not_answer, .timeout = 30)
{
	struct rig *rig = rig_new(PLAY_SILENT);
	char line[LINE_MAX_BYTES];
	rig_start(rig);
	FILE *server = client(rig);
	ask(server, "{\"command\":\"why\",\"group\":\"g\"}", line);
	cr_assert(strstr(line, "\"error\":7,") != NULL && strstr(line, "has not answered in time") != NULL, "%s", line);
	cr_assert(strstr(ask(server, "{\"command\":\"status\"}", line), "\"error\":0") != NULL); /* nothing was asked for that */
	pthread_mutex_lock(&rig->lock);
	cr_assert(__atomic_load_n(&rig->kept->gone, __ATOMIC_RELAXED));
	answer(rig, image_shard_node(rig->image, image_shard_of(rig->image, bytes_str("g"))), rig->kept); /* too late: it is only freed */
	rig->play = PLAY_ANSWER;
	pthread_mutex_unlock(&rig->lock);
	cr_assert(strstr(ask(server, "{\"command\":\"why\",\"group\":\"g\"}", line), "\"error\":0") != NULL, "%s", line);
	fclose(server);
	rig_free(rig);
}

Test(house, questions_that_never_come_back, .timeout = 30)
{
	struct rig *rig = rig_new(PLAY_SILENT);
	rig_start(rig);
	for (unsigned int i = 0; i < 3; i++) {
		FILE *server = client(rig);
		fputs("{\"command\":\"groups\"}\n", server);
		fclose(server);
	}
	usleep(300000);
	rig_free(rig); /* the address sanitizer looks for what is left */
}

Test(house, a_shard_that_no_worker_owns, .timeout = 30)
{
	struct rig *rig = rig_new(PLAY_MISSED);
	char line[LINE_MAX_BYTES];
	rig_start(rig);
	FILE *server = client(rig);
	cr_assert(strstr(ask(server, "{\"command\":\"why\",\"group\":\"g\"}", line), "was found at no worker") != NULL, "%s", line);
	for (unsigned int w = 0; w < WORKERS; w++)
		cr_assert_eq(rig->told[w], 2); /* each was asked, for it may be on its way */
	cr_assert(strstr(ask(server, "{\"command\":\"groups\"}", line), "was found at no worker") != NULL, "%s", line);
	fclose(server);
	rig_free(rig);
}

Test(house, a_pulse_that_stops, .timeout = 30)
{
	struct rig *rig = rig_new(PLAY_ANSWER);
	char line[LINE_MAX_BYTES];
	rig_start(rig);
	FILE *server = client(rig);
	usleep(300000);
	pthread_mutex_lock(&rig->lock);
	rig->beating = false;
	pthread_mutex_unlock(&rig->lock);
	wait_for_line(rig, "muster: WORKER 1 STANDS STILL: it has not polled for ");
	pthread_mutex_lock(&rig->lock);
	rig->beating = true;
	pthread_mutex_unlock(&rig->lock);
	wait_for_line(rig, "muster: worker 1 polls again after ");
	fputs("{\"command\":\"status\"}\n", server);
	fflush(server);
	unsigned int found = 0;
	do {
		cr_assert(fgets(line, sizeof(line), server) != NULL);
		found += strstr(line, "\"worker\":1,") != NULL && strstr(line, "\"stage\":\"frames\"") != NULL && strstr(line, "\"stalls\":1") != NULL;
	} while (strstr(line, "\"done\":true") == NULL);
	cr_assert_eq(found, 1);
	fclose(server);
	rig_free(rig);
}

Test(house, items_are_bounded)
{
	static uint8_t text[5000];
	struct question *q = calloc(1, sizeof(*q));
	struct admin_item item = admin_item_of("group"), got;
	unsigned int n = 0;
	q->items = writer_of(q->bytes, sizeof(q->bytes));
	admin_put(&item, "group", bytes_of(text, sizeof(text)));
	admin_put_number(&item, "members", -7);
	for (unsigned int i = 0; i < 100; i++)
		question_put(q, &item);
	struct reader r = reader_of(q->items.start, writer_len(&q->items));
	for (; question_item(&r, &got); n++)
		cr_assert(got.len == 2 && got.fields[0].text.len == sizeof(text) && got.fields[1].number == -7 && strcmp(got.kind, "group") == 0);
	cr_assert(n > 5 && n + q->cut == 100);
	free(q);
}

static void cannot_be_made(struct rig *rig, const char *part)
{
	char err[CONFIG_ERROR_MAX];
	struct house *house = house_of(rig, err, sizeof(err));
	cr_assert(house == NULL && strstr(err, part) != NULL, "%s", err);
}

Test(house, the_file_of_the_socket)
{
	struct rig *rig = rig_new(PLAY_ANSWER);
	char err[CONFIG_ERROR_MAX];
	struct stat st;
	FILE *f = fopen(rig->path, "w");
	fclose(f);
	cannot_be_made(rig, "is no socket");
	cr_assert(access(rig->path, F_OK) == 0); /* not ours to remove */
	unlink(rig->path);

	struct house *first = house_of(rig, err, sizeof(err));
	cr_assert(first != NULL && stat(rig->path, &st) == 0 && (st.st_mode & 0777) == 0600);
	cannot_be_made(rig, "another server listens");
	house_stop(first);
	house_free(first);

	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* left over from a server that was killed */
	strcpy(address.sun_path, rig->path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(fd);
	cr_assert(config_set(&rig->cfg, "admin.socket.access=group", err, sizeof(err)));
	first = house_of(rig, err, sizeof(err));
	cr_assert(first != NULL && stat(rig->path, &st) == 0 && (st.st_mode & 0777) == 0660);
	house_stop(first);
	house_free(first);

	cr_assert(config_set(&rig->cfg, "admin.socket.group=no-such-group-here", err, sizeof(err)));
	cannot_be_made(rig, "there is no such group");
	cr_assert(config_set(&rig->cfg, "admin.socket=/no/such/folder/a.sock", err, sizeof(err)));
	cannot_be_made(rig, "is its folder there");
	rig_free(rig);
}
