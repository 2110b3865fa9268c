/*
 * flow.h - finds the connection of a segment: 4-tuple -> struct tcp_conn, on rte_hash with a secret key.
 */
#ifndef DATAPLANE_FLOW_H
#define DATAPLANE_FLOW_H

#include "dataplane/tcp/tcp.h"

#define FLOW_BULK_MAX 64u

struct flow;

/* NULL when memory is missing. `name` is unique in the process. */
struct flow *flow_new(const char *name, unsigned int max_connections, uint32_t secret);
void flow_free(struct flow *flow);
/* Of EAL's memory. */
size_t flow_memory_needed(unsigned int max_connections);

bool flow_add(struct flow *flow, struct tcp_conn *conn);
void flow_remove(struct flow *flow, const struct tcp_conn *conn);
struct tcp_conn *flow_find(const struct flow *flow, const struct tcp_tuple *tuple);

/*
 * Looks up n <= FLOW_BULK_MAX tuples at once; out[i] is NULL where there is none. Prefetches the hash's memory in
 * passes.
 */
void flow_find_bulk(const struct flow *flow, const struct tcp_tuple *const tuples[], unsigned int n, struct tcp_conn *out[]);

/* Changes with every add and remove: results of a lookup made under another value must be looked up again. */
uint64_t flow_generation(const struct flow *flow);

#endif
