/*
 * operate.h - the administrator's operations (admin.h), one function each.
 */
#ifndef MUSTER_GROUP_OPERATE_H
#define MUSTER_GROUP_OPERATE_H

#include "coordinator/admin.h"
#include "coordinator/group/group.h"

void admin_why(struct shard *shard, struct admin *a, struct now now);
void admin_waiting(struct shard *shard, struct admin *a, struct now now);
void admin_release(struct shard *shard, struct admin *a, struct now now);
void admin_reset_offsets(struct shard *shard, struct admin *a, struct now now);

#endif
