/*
 * mbufs.h - the mbuf pool of one worker.
 */
#ifndef DATAPLANE_MBUFS_H
#define DATAPLANE_MBUFS_H

#include <rte_mempool.h>

#define MBUFS_CACHE 256u /* mbufs that a core keeps to itself */

/*
 * `n` mbufs with `data_bytes` of data room (headroom included); NULL when EAL's memory does not suffice. `name` is
 * unique in the process; `socket` is a NUMA node, or SOCKET_ID_ANY.
 */
struct rte_mempool *mbufs_new(const char *name, unsigned int n, unsigned int data_bytes, int socket);
void mbufs_free(struct rte_mempool *pool);

#endif
