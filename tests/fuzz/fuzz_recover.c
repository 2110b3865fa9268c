/*
 * fuzz_recover.c - a whole folder of the log in which bytes go bad: meta, segments and cleaned files with all kinds of blocks, epochs, indexes. Recovered, and
 * if that goes through, written to, cleaned and recovered again.
 *
 * The first byte of the input chooses the folder, which is made anew each time by the log itself (tests/unit/log/churn.h); then edits of EDIT bytes each:
 *
 *   file   which of them, in the order of their names
 *   how    bit 0: the checksum of the block is made right afterwards; bits 1 to 3: what is done
 *   block  which block of the file, 0 to 255, modulo their number
 *   at     place in the block, 2 bytes
 *   value  4 bytes
 *
 * Checked: recovery ends, with all of it or a refusal; nothing is read outside of a file (sanitizers). As long as no checksum was made right
 * nothing is given away that was not written. What a start accepts, the next one accepts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/crc32c.h"

#include "tests/unit/log/churn.h"

#define EDIT 9
#define EDITS_MAX 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { HOW_XOR, HOW_SET, HOW_COPY, HOW_ZERO, HOW_CUT, HOW_LENGTH, HOW_FIELD, HOW_REMOVE };

static void put_u32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}

/* ---- the folder ---- */

static void work(struct churn *c, unsigned int batches, unsigned int tombstones)
{
	for (unsigned int i = 0; i < batches; i++) {
		churn_append(c, i % CHURN_SHARDS, 1 + i % 4, tombstones, i % 7 == 0 ? 2000 : 100);
		for (int k = 0; k < 6; k++)
			churn_poll(c);
	}
	churn_settle(c);
}

/* Several starts, so several epochs, by one worker or more, killed or stopped; cleaned or not. */
static struct churn *folder(uint8_t choice)
{
	struct churn *c = churn_new(1 + choice % 8);
	c->segment_bytes = 16 * 1024;
	c->dirty_percent = choice & 16 ? 0 : 1;
	c->workers = 1 + (choice & 32 ? 2 : 0);
	for (int start = 0; start < 3; start++) {
		CHECK(churn_start(c) && churn_check(c));
		work(c, 25, 20);
		churn_cut(c, (choice & 64) != 0);
	}
	return c;
}

/* ---- edits ---- */

static void mend(uint8_t *b, size_t room)
{
	size_t n = get_u32(b + 36);
	if (n <= INT32_MAX - BLOCK_HEAD && block_bytes(n) <= room)
		put_u32(b + 4, crc32c(b + 8, BLOCK_HEAD - 8 + n));
}

/* A field of the head, or a number in the payload where those of SHARDS, HEAD, LOST and of entries stand. */
static size_t field(uint32_t value)
{
	static const uint8_t fields[] = {0, 8, 16, 20, 24, 28, 32, 36, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 116, 120, 124, 128, 132, 136, 140, 144};
	return fields[value % ARRAY_LEN(fields)];
}

static void edit_block(struct churn *c, const char *name, const uint8_t *e)
{
	size_t len;
	uint8_t *p = sim_disk_bytes(c->disk, name, &len);
	if (len < FORMAT_ALIGN)
		return;
	size_t blocks = len / FORMAT_ALIGN, at = ((size_t)e[3] << 8 | e[4]) % FORMAT_ALIGN;
	uint8_t *b = p + e[2] % blocks * FORMAT_ALIGN;
	switch ((enum how)(e[1] >> 1 & 7)) {
	case HOW_XOR:
		b[at] ^= e[5] == 0 ? 1 : e[5];
		break;
	case HOW_SET:
		b[at] = e[5];
		break;
	case HOW_COPY:
		memmove(b, p + e[5] % blocks * FORMAT_ALIGN, FORMAT_ALIGN);
		break;
	case HOW_ZERO:
		memset(b + at / 512 * 512, 0, 512);
		break;
	case HOW_LENGTH:
		put_u32(b + 36, get_u32(e + 5));
		break;
	case HOW_FIELD:
		put_u32(b + field((uint32_t)at), get_u32(e + 5));
		break;
	case HOW_CUT:
	case HOW_REMOVE:
		return;
	}
	if (e[1] & 1)
		mend(b, len - (size_t)(b - p));
}

static void edit(struct churn *c, const uint8_t *e)
{
	int n = 0;
	while (sim_disk_name(c->disk, n) != NULL)
		n++;
	if (n == 0)
		return;
	const char *name = sim_disk_name(c->disk, e[0] % n);
	enum how how = (enum how)(e[1] >> 1 & 7);
	struct disk_op op = {.verb = DISK_REMOVE};
	snprintf(op.name, sizeof(op.name), "%s", name);
	if (how == HOW_REMOVE) {
		disk_do(&c->disk->disk, &op);
	} else if (how == HOW_CUT) {
		op.verb = DISK_OPEN;
		disk_do(&c->disk->disk, &op);
		op.verb = DISK_TRIM;
		op.offset = get_u32(e + 5) % (op.len + 1);
		disk_do(&c->disk->disk, &op);
	} else {
		edit_block(c, name, e);
	}
}

/* ---- the start ---- */

/* As a program would: refused, the operator says to do without. */
static bool start(struct churn *c)
{
	c->skip_damaged = false;
	if (churn_start(c))
		return true;
	churn_stop(c);
	c->skip_damaged = true;
	return churn_start(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool mended = false;
	if (size < 1 || (size - 1) / EDIT > EDITS_MAX)
		return 0;
	struct churn *c = folder(data[0]);
	c->disk->grows = true;
	for (size_t at = 1; at + EDIT <= size; at += EDIT) {
		edit(c, data + at);
		mended |= (data[at + 1] & 1) != 0;
	}
	if (start(c)) {
		CHECK(mended || !c->bad);
		for (unsigned int i = 0; i < CHURN_SHARDS; i++)
			c->behind[i] = c->found_next[i] - 1;
		memcpy(c->applied, c->found, sizeof(c->applied));
		c->queue_len = 0;
		c->wrote = c->running;
		if (c->found_next[0] < INT32_MAX && c->found_next[1] < INT32_MAX && c->found_next[2] < INT32_MAX)
			work(c, 5, 20);
		churn_cut(c, true);
		c->skip_damaged = false;
		CHECK(churn_start(c) || c->disk->cut || mended);
	}
	churn_free(c);
	return 0;
}
