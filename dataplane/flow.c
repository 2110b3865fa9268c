/*
 * flow.c - the connection table over rte_hash.
 *
 * The key is struct tcp_tuple as it is; it has no padding. jhash with a random start value, so that nobody who picks
 * ports can aim at one bucket. The extendable table takes every entry up to the limit, whatever the hash does.
 */
#include <rte_hash.h>
#include <rte_jhash.h>
#include <stdlib.h>

#include "dataplane/flow.h"
#include "muster/check.h"

/*
 * Per entry, generously: key with data (32 bytes), its share of two buckets' tables (2 x 16), free-slot rings (2 x 4),
 * rounding up to a power of two.
 */
#define BYTES_PER_ENTRY 160u

_Static_assert(sizeof(struct tcp_tuple) == 12, "the key must have no padding");

struct flow {
	struct rte_hash *hash;
	uint64_t generation;
};

struct flow *flow_new(const char *name, unsigned int max_connections, uint32_t secret)
{
	struct rte_hash_parameters params = {
		.name = name,
		.entries = max_connections < 64 ? 64 : max_connections,
		.key_len = sizeof(struct tcp_tuple),
		.hash_func = rte_jhash,
		.hash_func_init_val = secret,
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};
	struct flow *flow = calloc(1, sizeof(*flow));
	if (flow == NULL)
		return NULL;
	flow->hash = rte_hash_create(&params);
	if (flow->hash == NULL) {
		free(flow);
		return NULL;
	}
	return flow;
}

void flow_free(struct flow *flow)
{
	if (flow == NULL)
		return;
	rte_hash_free(flow->hash);
	free(flow);
}

size_t flow_memory_needed(unsigned int max_connections)
{
	return (size_t)max_connections * BYTES_PER_ENTRY + 256 * 1024;
}

bool flow_add(struct flow *flow, struct tcp_conn *conn)
{
	flow->generation++;
	return rte_hash_add_key_data(flow->hash, tcp_conn_tuple(conn), conn) == 0;
}

void flow_remove(struct flow *flow, const struct tcp_conn *conn)
{
	flow->generation++;
	CHECK(rte_hash_del_key(flow->hash, tcp_conn_tuple(conn)) >= 0);
}

struct tcp_conn *flow_find(const struct flow *flow, const struct tcp_tuple *tuple)
{
	void *conn;
	return rte_hash_lookup_data(flow->hash, tuple, &conn) >= 0 ? conn : NULL;
}

void flow_find_bulk(const struct flow *flow, const struct tcp_tuple *const tuples[], unsigned int n, struct tcp_conn *out[])
{
	const void *keys[FLOW_BULK_MAX];
	void *data[FLOW_BULK_MAX];
	uint64_t hits = 0;
	CHECK(n > 0 && n <= FLOW_BULK_MAX);
	for (unsigned int i = 0; i < n; i++)
		keys[i] = tuples[i];
	rte_hash_lookup_bulk_data(flow->hash, keys, n, &hits, data);
	for (unsigned int i = 0; i < n; i++)
		out[i] = (hits >> i & 1) != 0 ? data[i] : NULL;
}

uint64_t flow_generation(const struct flow *flow)
{
	return flow->generation;
}
