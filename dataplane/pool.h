/*
 * pool.h - the mbuf pool of one worker.
 */
#ifndef DATAPLANE_POOL_H
#define DATAPLANE_POOL_H

#include <rte_mempool.h>

#define POOL_CACHE 256u /* mbufs that a core keeps to itself */

/* `n` mbufs with `data_bytes` of data room (headroom included); NULL when EAL's memory does not suffice. `name` is unique in the process. */
struct rte_mempool *pool_new(const char *name, unsigned int n, unsigned int data_bytes);
void pool_free(struct rte_mempool *pool);

#endif
