/*
 * question.c - what can be asked, and items; it runs between requests, on the worker's thread.
 *
 * Items are written as a count of fields, the kind, and the fields; names and kinds are the addresses of string constants of this program.
 */
#include <stdio.h>

#include "coordinator/house/question.h"
#include "coordinator/wire/errors.h"

#define WALK_BUCKETS 256u /* of a table of groups in one question */
#define WALK_ROOM (QUESTION_BYTES / 2)

/* ---- items ---- */

static void put_pointer(struct writer *w, const char *p)
{
	writer_u64(w, (uint64_t)(uintptr_t)p);
}

static const char *take_pointer(struct reader *r)
{
	return (const char *)(uintptr_t)reader_u64(r);
}

void question_put(struct question *q, const struct admin_item *item)
{
	struct writer w = q->items;
	put_pointer(&w, item->kind);
	writer_u8(&w, (uint8_t)item->len);
	for (unsigned int i = 0; i < item->len; i++) {
		const struct admin_field *f = &item->fields[i];
		put_pointer(&w, f->name);
		writer_u8(&w, (uint8_t)f->type);
		if (f->type != ADMIN_TEXT) {
			writer_u64(&w, (uint64_t)f->number);
			continue;
		}
		writer_u32(&w, (uint32_t)f->text.len);
		writer_raw(&w, f->text.p, (size_t)f->text.len);
	}
	if (w.full)
		q->cut++;
	else
		q->items = w;
}

bool question_item(struct reader *r, struct admin_item *item)
{
	if (r->bad || reader_left(r) == 0)
		return false;
	*item = admin_item_of(take_pointer(r));
	unsigned int n = reader_u8(r);
	CHECK(n <= ADMIN_FIELDS);
	for (unsigned int i = 0; i < n; i++) {
		struct admin_field *f = &item->fields[item->len++];
		f->name = take_pointer(r);
		f->type = (enum admin_type)reader_u8(r);
		f->text = BYTES_NULL;
		if (f->type != ADMIN_TEXT) {
			f->number = (int64_t)reader_u64(r);
			continue;
		}
		uint32_t len = reader_u32(r);
		f->text = bytes_of(reader_take(r, len), len);
	}
	CHECK(!r->bad); /* we wrote it */
	return true;
}

/* ---- what can be asked ---- */

static void admin_got(struct admin *a, const struct admin_item *item)
{
	question_put(a->arg, item);
}

static void admin_done(struct admin *a, struct now now)
{
	struct question *q = a->arg;
	q->error = a->error;
	memcpy(q->text, a->text, sizeof(q->text));
	question_answer(q, q->node);
}

static void missed(struct question *q, struct node *node)
{
	q->missed = true;
	question_answer(q, node);
}

void question_admin(struct question *q, struct node *node, struct now now)
{
	struct shard *shard = bytes_is_null(q->group_id) ? node_shard_by_number(node, q->shard) : node_shard(node, q->group_id);
	q->node = node;
	q->admin = (struct admin){
		.op = q->op,
		.group_id = q->group_id,
		.member_id = q->member_id,
		.instance_id = q->instance_id,
		.offsets = q->offsets,
		.offsets_len = q->offsets_len,
		.item = admin_got,
		.done = admin_done,
		.arg = q,
	};
	if (shard == NULL)
		missed(q, node);
	else
		shard_admin(shard, &q->admin, now);
}

static void groups_visit(void *arg, const struct shard_group *g)
{
	struct question *q = arg;
	struct admin_item item = admin_item_of("group");
	admin_put(&item, "group", g->id);
	admin_put(&item, "state", bytes_str(g->state));
	admin_put(&item, "protocol_type", g->protocol_type);
	admin_put(&item, "protocol", g->protocol);
	admin_put_number(&item, "generation", g->generation);
	admin_put_number(&item, "members", g->members);
	admin_put_number(&item, "handed_out_ids", g->pending);
	admin_put_number(&item, "shard", q->shard);
	admin_put_number(&item, "node", node_id(q->node));
	question_put(q, &item);
}

/* Ends behind a bucket, so that no group is told in part; a chain of thousands of long names is cut and counted. */
void question_groups(struct question *q, struct node *node, struct now now)
{
	struct shard *shard = node_shard_by_number(node, q->shard);
	q->node = node;
	if (shard == NULL) {
		missed(q, node);
		return;
	}
	if (shard_is_loading(shard)) {
		q->error = ERROR_COORDINATOR_LOAD_IN_PROGRESS;
		snprintf(q->text, sizeof(q->text), "shard %u is still being loaded", q->shard);
	} else {
		q->more = true;
		for (unsigned int i = 0; q->more && i < WALK_BUCKETS && writer_len(&q->items) < WALK_ROOM; i++)
			q->more = shard_group_walk(shard, &q->cursor, groups_visit, q);
	}
	question_answer(q, node);
}

void question_loaded(struct question *q, struct node *node, struct now now)
{
	q->error = node_is_loading(node) ? ERROR_COORDINATOR_LOAD_IN_PROGRESS : ERROR_NONE;
	question_answer(q, node);
}

void question_image(struct question *q, struct node *node, struct now now)
{
	q->error = node_set_image(node, q->image, now) ? ERROR_NONE : ERROR_COORDINATOR_NOT_AVAILABLE;
	question_answer(q, node);
}
