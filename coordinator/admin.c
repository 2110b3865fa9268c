/*
 * admin.c - the table of operations, and items; see admin.h. What the operations do stands with the groups (group/why.c, ...).
 */
#include <stdarg.h>
#include <stdio.h>

#include "coordinator/admin.h"
#include "coordinator/group/journal.h"
#include "muster/check.h"

static const struct {
	const char *name, *help;
} admin_ops[ADMIN_OP_COUNT] = {
#define OP(name, text, help) [ADMIN_##name] = {text, help},
	ADMIN_OPS(OP)
#undef OP
};

const char *admin_op_name(enum admin_op op)
{
	return op < ADMIN_OP_COUNT ? admin_ops[op].name : NULL;
}

const char *admin_op_help(enum admin_op op)
{
	return op < ADMIN_OP_COUNT ? admin_ops[op].help : NULL;
}

bool admin_op_of(struct bytes name, enum admin_op *out)
{
	for (unsigned int i = 0; i < ADMIN_OP_COUNT; i++) {
		if (!bytes_equal(name, bytes_str(admin_ops[i].name)))
			continue;
		*out = (enum admin_op)i;
		return true;
	}
	return false;
}

struct admin_item admin_item_of(const char *kind)
{
	return (struct admin_item){.kind = kind};
}

static struct admin_field *admin_field(struct admin_item *item, const char *name, enum admin_type type)
{
	CHECK(item->len < ADMIN_FIELDS);
	struct admin_field *f = &item->fields[item->len++];
	*f = (struct admin_field){.name = name, .type = type, .text = BYTES_NULL};
	return f;
}

void admin_put(struct admin_item *item, const char *name, struct bytes text)
{
	if (!bytes_is_null(text))
		admin_field(item, name, ADMIN_TEXT)->text = text;
}

void admin_put_number(struct admin_item *item, const char *name, int64_t number)
{
	admin_field(item, name, ADMIN_NUMBER)->number = number;
}

void admin_put_time(struct admin_item *item, const char *name, int64_t ms)
{
	if (ms >= 0)
		admin_field(item, name, ADMIN_TIME)->number = ms;
}

size_t admin_item_text(const struct admin_item *item, char *out, size_t len)
{
	struct journal_line line = {.len = 0};
	CHECK(len > 0);
	journal_put(&line, "item", bytes_str(item->kind));
	for (unsigned int i = 0; i < item->len; i++) {
		const struct admin_field *f = &item->fields[i];
		if (f->type == ADMIN_TEXT)
			journal_put(&line, f->name, f->text);
		else
			journal_put_number(&line, f->name, f->number);
	}
	size_t n = line.len < len - 1 ? line.len : len - 1;
	memcpy(out, line.text, n);
	out[n] = '\0';
	return n;
}

static void admin_durable(struct shard_barrier *barrier, int16_t error, struct now now)
{
	struct admin *a = CONTAINER_OF(barrier, struct admin, barrier);
	a->error = error;
	if (error != 0)
		snprintf(a->text, sizeof(a->text), "done, but the log does not say that it is stored: a restart may undo it");
	a->done(a, now);
}

void admin_finish_durable(struct admin *a, struct shard *shard, const char *text, struct now now)
{
	snprintf(a->text, sizeof(a->text), "%s", text);
	a->barrier.then = admin_durable;
	shard_barrier(shard, &a->barrier, now);
}

void shard_admin_cancel(struct shard *shard, struct admin *a)
{
	shard_barrier_cancel(shard, &a->barrier);
}

void admin_finish(struct admin *a, int16_t error, struct now now, const char *format, ...)
{
	va_list ap;
	a->error = error;
	va_start(ap, format);
	vsnprintf(a->text, sizeof(a->text), format, ap);
	va_end(ap);
	a->done(a, now);
}
