/*
 * question.h - what the housekeeping thread asks a worker's node, or has it do: a struct that goes there and back by the rings between them.
 *
 *   housekeeping                              worker
 *   ask (ask.h) ---------- question ------->  node_told: question->run(question, node)
 *   read, freed <--------- the same --------  question_answer, at once or later
 *
 * The struct belongs to the thread, and to the worker while it is under way. It comes back exactly once. Whoever does not want to wait any longer sets
 * `gone`: a worker that has not begun then returns it without running it. What a worker puts into `items` is bounded by QUESTION_BYTES; what does
 * not fit is counted.
 */
#ifndef MUSTER_QUESTION_H
#define MUSTER_QUESTION_H

#include "muster/check.h"

#include "coordinator/admin.h"
#include "coordinator/node.h"

#define QUESTION_BYTES (64u << 10)
/* One worker's rings hold more than may ever be under way to it. */
#define QUESTIONS_MAX 32u

struct question {
	void (*run)(struct question *q, struct node *node, struct now now);
	bool gone; /* set by the asker at any time */
	/* ---- the asker's, read by `run` ---- */
	unsigned int shard;
	uint32_t cursor; /* of a walk; moved on by the worker */
	struct bytes group_id, member_id, instance_id; /* null: none */
	const struct admin_offset *offsets;
	unsigned int offsets_len;
	enum admin_op op;
	const struct image *image;
	/* ---- the answer ---- */
	bool ran;     /* false: it was `gone` */
	bool missed;  /* the node does not own the shard */
	bool more;    /* the walk is not at its end */
	int16_t error; /* 0, or Kafka's number */
	char text[160];
	unsigned int cut; /* items that found no room */
	struct writer items;
	/* ---- the worker's ---- */
	struct node *node;
	struct admin admin;
	/* ---- the asker's, not looked at by the worker ---- */
	void *asker;
	uint8_t bytes[QUESTION_BYTES];
};

/* By the worker: it goes back. */
void question_answer(struct question *q, struct node *node);
void question_put(struct question *q, const struct admin_item *item);
/* By the asker: the next item; false: there is none. `item` is valid as long as the question. */
bool question_item(struct reader *r, struct admin_item *item);

/* ---- what can be asked ---- */

/* An operation of admin.h on the shard of `group_id`, or with none on `shard`. */
void question_admin(struct question *q, struct node *node, struct now now);
/* Groups of `shard` from bucket `cursor` on. */
void question_groups(struct question *q, struct node *node, struct now now);
/* Whether the node has loaded all: `error` is 14 if not. */
void question_loaded(struct question *q, struct node *node, struct now now);
/* node_set_image: `error` is not 0 if it failed. */
void question_image(struct question *q, struct node *node, struct now now);

#endif
