/*
 * micro_codec.c - what the wire codec costs for a heartbeat: decode the request, encode the answer, nothing else.
 *
 * usage: micro_codec [OPERATIONS]
 *
 * Instructions instead of time: bench/instructions, which takes the codec as part of the whole way.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/heartbeat.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/header.h"
#include "coordinator/wire/messages.h"
#include "muster/check.h"

/* One request in, one answer out. Returns the length of the answer. */
size_t heartbeat_once(const uint8_t *p, size_t len, struct arena *arena, uint8_t *out, size_t cap);
__attribute__((noinline)) size_t heartbeat_once(const uint8_t *p, size_t len, struct arena *arena, uint8_t *out, size_t cap)
{
	struct reader r = reader_of(p, len);
	struct writer w = writer_of(out, cap);
	struct request_header header;
	struct heartbeat_request in;
	struct heartbeat_response answer;
	arena_reset(arena);
	if (!request_header_decode(&header, &r) || !message_request(header.api_key)->decode(&in, &r, header.version, arena))
		return 0;
	heartbeat_response_init(&answer);
	answer.error_code = in.generation_id == 7 ? 0 : 22;
	writer_u32(&w, 0);
	response_header_encode(&w, header.api_key, header.version, header.correlation_id);
	message_response(header.api_key)->encode(&answer, &w, header.version);
	return writer_len(&w);
}

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
	struct heartbeat_member m = {.group = "bench-00001", .client_id = "bench-000001", .id_len = 49, .generation = 7};
	uint8_t out[64], block[1024];
	struct arena arena = arena_of(block, sizeof(block));
	memset(m.id, 'x', m.id_len);
	heartbeat_prepare(&m);
	double start = cpu_seconds();
	for (uint64_t i = 0; i < operations; i++) {
		heartbeat_next(&m);
		size_t len = heartbeat_once(m.request + 4, m.request_len - 4, &arena, out, sizeof(out));
		CHECK(len == HEARTBEAT_ANSWER && heartbeat_answer(&m, out + 4, len - 4) == 0);
	}
	double ns = (cpu_seconds() - start) * 1e9 / (double)operations;
	printf("codec, heartbeat 4 of %u bytes, decode and encode: %.1f ns, over %" PRIu64 " operations\n", m.request_len, ns, operations);
	return EXIT_SUCCESS;
}
