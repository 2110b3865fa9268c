/*
 * fuzz_kafka_log.c - a segment of a Kafka broker as any bytes, as muster log import reads it: batch by batch, unpacked, record by record, as text.
 *
 * Bit 0 of the first byte: the CRCs of the batches are made right before, so that the fuzzer gets behind them. Checked: nothing is read outside of
 * what was given, reading ends, offsets grow, and whatever a record holds can be written as text in both forms.
 */
#define _GNU_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/log/crc32c.h"
#include "coordinator/tool/inflate.h"
#include "coordinator/tool/kafka_log.h"
#include "coordinator/tool/record_text.h"
#include "coordinator/tool/transactions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *p, size_t len)
{
	while (len >= BATCH_HEAD) {
		struct reader r = reader_of(p + 8, 4);
		size_t n = (size_t)reader_u32(&r) + 12;
		if (n < BATCH_HEAD || n > len)
			return;
		struct writer w = writer_of(p + 17, 4);
		writer_u32(&w, crc32c(p + 21, n - 21));
		p += n;
		len -= n;
	}
}

static void write_file(const char *folder, const char *name, const uint8_t *p, size_t len)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	CHECK(f != NULL && fwrite(p, 1, len, f) == len);
	fclose(f);
}

static void print_records(FILE *out, struct batch *batch)
{
	struct batch_record record;
	while (batch_next(batch, &record)) {
		for (int json = 0; json < 2; json++) {
			struct text t = text_to(out, json);
			if ((batch->attributes & BATCH_CONTROL) != 0)
				record_text_control(&t, 0, batch, &record);
			else
				record_text(&t, 0, batch, &record);
		}
	}
}

static void read_batch(FILE *out, struct transactions *txn, struct batch *batch, struct bytes bytes, struct inflate_buffer *room)
{
	unsigned int codec = batch->attributes & BATCH_COMPRESSION;
	if (codec != 0) {
		struct bytes packed = bytes_of(bytes.p + BATCH_HEAD, (size_t)bytes.len - BATCH_HEAD);
		if (!inflate_records(codec, packed, room))
			return;
		batch->attributes &= (uint16_t)~BATCH_COMPRESSION;
		batch->rest = reader_of(room->p, room->len);
	}
	if ((batch->attributes & BATCH_CONTROL) != 0) {
		struct batch again = *batch;
		CHECK(transactions_add(txn, &again));
	}
	print_records(out, batch);
}

static void read_folder(const char *folder, FILE *out)
{
	struct kafka_log k;
	struct transactions txn = {NULL, 0, 0};
	struct inflate_buffer room = {NULL, 0, 0};
	CHECK(kafka_log_open(&k, folder));
	int64_t last = -1;
	for (;;) {
		struct batch batch;
		struct bytes bytes;
		enum kafka_step step = kafka_log_next(&k, &batch, &bytes);
		if (step == KAFKA_END || step == KAFKA_FAILED)
			break;
		if (step != KAFKA_BATCH)
			continue;
		CHECK(batch.base_offset > last && batch.last_offset >= batch.base_offset);
		last = batch.last_offset;
		read_batch(out, &txn, &batch, bytes, &room);
	}
	transactions_sort(&txn);
	CHECK(transactions_outcome(&txn, -2, 0) == OUTCOME_PENDING || txn.len > 0);
	kafka_log_close(&k);
	free(txn.ends);
	free(room.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/fuzz-kafka-log-XXXXXX", first[200], second[200];
	char *text;
	size_t text_len;
	if (size < 1)
		return 0;
	uint8_t *copy = malloc(size);
	FILE *out = open_memstream(&text, &text_len);
	CHECK(copy != NULL && out != NULL && mkdtemp(folder) != NULL);
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		mend(copy, size - 1);
	write_file(folder, "00000000000000000000.log", copy, (size - 1) / 2);
	write_file(folder, "00000000000000001000.log", copy + (size - 1) / 2, size - 1 - (size - 1) / 2);
	if ((data[0] & 2) == 0) /* usually all in one */
		write_file(folder, "00000000000000000000.log", copy, size - 1);
	read_folder(folder, out);
	snprintf(first, sizeof(first), "%s/00000000000000000000.log", folder);
	snprintf(second, sizeof(second), "%s/00000000000000001000.log", folder);
	unlink(first);
	unlink(second);
	rmdir(folder);
	fclose(out);
	free(text);
	free(copy);
	return 0;
}
