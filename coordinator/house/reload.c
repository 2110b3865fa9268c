/*
 * reload.c - the catalog of topics, read again while the nodes serve: on SIGHUP, and as a command.
 *
 * The image is built here, where no worker waits, and given to one node after the other; then the old one goes. For a moment nodes may tell different
 * topics. A worker that stands still holds the rest up: until it has answered, nodes look into the one or the other image, and both stay.
 */
#include "coordinator/config_image.h"
#include "coordinator/house/house_priv.h"
#include "coordinator/wire/errors.h"

/* What came of it: a line of the program, and the last of the command. */
static void reload_end(struct job *job, int error, const char *text)
{
	struct house *house = job->house;
	output_line(house->cfg.out, "muster: %s", text);
	house->reloading = false;
	job_done(job, error, "%s", text);
}

static void reload_begin(struct job *job)
{
	struct house *house = job->house;
	char err[CONFIG_ERROR_MAX], text[CONFIG_ERROR_MAX + 60];
	if (house->reloading) {
		output_line(house->cfg.out, "muster: the topics are being read already");
		job_done(job, -1, "the topics are being read already");
		return;
	}
	job->begun = house->reloading = true;
	job->image = config_image(house->cfg.cfg, house->cfg.map, house->cfg.host, err, sizeof(err));
	if (job->image != NULL)
		return;
	snprintf(text, sizeof(text), "the topics stay as they are: %s", err);
	reload_end(job, -1, text);
}

static void reload_ask(struct job *job)
{
	struct question *q = job_question(job);
	if (q == NULL) {
		job->house->reloading = false;
		return;
	}
	q->run = job->loaded ? question_image : question_loaded;
	q->image = job->image;
	job_ask(job, job->shard, q, TIME_NEVER);
	if (job->over) /* not asked */
		job->house->reloading = false;
}

static void reload_finish(struct job *job)
{
	struct house *house = job->house;
	const struct image_topic *topics;
	char text[CONFIG_TEXT_MAX + 60];
	struct image *old = *house->cfg.image;
	*house->cfg.image = job->image;
	job->image = NULL;
	image_free(old);
	if (job->failures > 0)
		output_line(house->cfg.out, "muster: offsets of topics that are gone may have stayed: no memory");
	snprintf(text, sizeof(text), "topics: %u, read again from %s", image_topics(*house->cfg.image, &topics) - 1, house->cfg.cfg->topics_file);
	reload_end(job, 0, text);
}

/* Two walks over the workers: has each loaded all? then, the image. */
void command_reload(struct job *job, struct question *answer)
{
	if (!job->begun)
		reload_begin(job);
	if (answer != NULL) {
		if (answer->error != 0 && !job->loaded) {
			image_free(job->image);
			job->image = NULL;
			reload_end(job, answer->error, "the topics stay as they are: the log is still loading; try again later");
			return;
		}
		job->failures += answer->error != 0;
		job->shard++;
	}
	if (job->over)
		return;
	if (job->shard == job->house->workers && job->loaded) {
		reload_finish(job);
		return;
	}
	if (job->shard == job->house->workers) {
		job->loaded = true;
		job->shard = 0;
	}
	reload_ask(job);
}
