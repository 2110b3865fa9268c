/*
 * export_parts.h - groups whose members stand in records of their own (group/record.h), for readers that know only Kafka's: found while a shard is
 * exported, put together by replaying the shard's groups, given out as one record each.
 *
 * Memory: all groups of the shard, without their offsets, and only when one of them is in parts.
 */
#ifndef MUSTER_TOOL_EXPORT_PARTS_H
#define MUSTER_TOOL_EXPORT_PARTS_H

#include "coordinator/log/batch.h"
#include "coordinator/tool/folder.h"

struct export_parts {
	uint32_t shard;
	uint8_t **ids; /* each: length as u16, bytes */
	size_t len, cap;
	bool no_memory;
};

/* False: the record is of the form that Kafka does not know; its group is noted. */
bool export_parts_keep(struct export_parts *p, const struct batch_record *record);
/* Calls `give` for each noted group that there is. False: one line in err. */
bool export_parts_give(struct export_parts *p, struct folder *log, bool (*give)(void *arg, const struct log_entry *entry), void *arg, char *err,
		       size_t err_len);
void export_parts_fini(struct export_parts *p);

#endif
