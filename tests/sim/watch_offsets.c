/*
 * watch_offsets.c - committed offsets: each commit has a value of its own, so a fetched one tells which record it came from. It must be durable, of this
 * group and partition, whole, and not older than what was appended before the fetch arrived.
 */
#include "watch.h"

/* What goes with an offset follows from it, so that a fetch can be checked whole. Versions below 6 have no leader epoch. */
int32_t commit_epoch(struct world *w, int64_t offset, int16_t version)
{
	w->offset_epoch[offset] = version >= 6 ? (int8_t)(offset % 5) : -1;
	return (int32_t)(offset % 5);
}

struct bytes commit_metadata(int64_t offset)
{
	return offset % 3 == 0 ? BYTES_NULL : BYTES_LITERAL("sim");
}

int part_of(struct bytes topic, int32_t index)
{
	for (unsigned int p = 0; p < PARTS; p++)
		if (bytes_equal(bytes_str(topic_names[part_topic(p)]), topic) && part_index(p) == index)
			return (int)p;
	return -1;
}

void offsets_check_commit(struct conn *c, struct asked *a, const struct offset_commit_response *r)
{
	struct world *w = c->w;
	for (int32_t t = 0; t < r->topics_len; t++) {
		for (int32_t i = 0; i < r->topics[t].partitions_len; i++) {
			int p = part_of(facts_topic_name(w, r->topics[t].name, &r->topics[t].topic_id), r->topics[t].partitions[i].partition_index);
			int32_t code = r->topics[t].partitions[i].error_code, want = a->expect.code;
			if (p < 0 || a->gone >> part_topic((unsigned int)p) & 1) {
				REQUIRE(w, "commit-to-nothing", code == 3 || code == 100, "a partition that does not exist got %d", code);
				continue;
			}
			c->w->step.code = code;
			if (a->group < 0 || code == 12)
				continue;
			REQUIRE(w, "unexpected-code", want == EXPECT_ANY || code == want || log_explains(w, a, code),
				"OffsetCommit of %s generation %d got %d instead of %d", a->member, a->generation, code, want);
			if (code != 0 || a->offsets[p] < 0)
				continue;
			uint64_t at = w->offset_position[a->offsets[p]];
			REQUIRE(w, "answered-before-durable", at != 0 && at <= w->disk.durable, "commit of offset %lld", (long long)a->offsets[p]);
			int64_t before = w->acked[a->group][p];
			if (before < 0 || w->offset_position[before] < at)
				w->acked[a->group][p] = a->offsets[p];
		}
	}
}

/* What stood in front of the fetch is lost, or takes too long; or the shard is loading. */
static bool log_late(struct world *w, const struct asked *a, int16_t error)
{
	return (error == 16 && log_explains(w, a, error)) || (error == 14 && a->loading);
}

static void check_fetched(struct world *w, const struct asked *a, struct bytes topic, int32_t index, int64_t offset, int32_t epoch, struct bytes metadata,
			  int16_t error)
{
	int p = part_of(topic, index);
	if (p < 0 || a->group < 0)
		return;
	if (error != 0) {
		bool gone = error == 100 && (a->gone | w->topics_gone) >> part_topic((unsigned int)p) & 1;
		REQUIRE(w, "offset-error", (gone || log_late(w, a, error)) && offset == -1, "group %d partition %d: error %d", a->group, p, error);
		return;
	}
	uint64_t at = offset >= 0 && (uint64_t)offset < w->offset_cap ? w->offset_position[offset] : 0;
	REQUIRE(w, "offset-lost", at >= a->least[p] || (at == 0 && w->tombstones[a->group][p] >= a->least[p]),
		"group %d partition %d: fetched %lld, of position %llu, but %llu was appended before (tombstone at %llu, durable %llu)", a->group, p,
		(long long)offset, (unsigned long long)at, (unsigned long long)a->least[p], (unsigned long long)w->tombstones[a->group][p],
		(unsigned long long)w->disk.durable);
	if (at == 0) {
		REQUIRE(w, "offset-invented", offset == -1, "group %d partition %d: %lld", a->group, p, (long long)offset);
		return;
	}
	REQUIRE(w, "offset-epoch", a->version < 5 || epoch == w->offset_epoch[offset], "%lld: leader epoch %d", (long long)offset, epoch);
	REQUIRE(w, "offset-metadata", bytes_equal(metadata, offset % 3 == 0 ? BYTES_EMPTY : BYTES_LITERAL("sim")), "%lld: %.*s", (long long)offset, metadata.len, metadata.p);
	struct record_key key;
	REQUIRE(w, "offset-not-durable", at <= w->disk.durable, "%lld", (long long)offset);
	CHECK(record_key_decode(&key, w->disk.entries[at - 1].e.key));
	REQUIRE(w, "offset-of-another", bytes_equal(key.group, w->group_id[a->group]) && bytes_equal(key.topic, topic) && key.partition == index,
		"group %d partition %d got the offset of another one", a->group, p);
}

void offsets_check_fetch(struct conn *c, const struct asked *a, const struct offset_fetch_response *r)
{
	struct world *w = c->w;
	int16_t error = r->groups_len > 0 ? r->groups[0].error_code : r->error_code;
	REQUIRE(w, "fetch-error", error == 0 || log_late(w, a, error), "group %d: error %d", a->group, error);
	for (int32_t t = 0; a->version < 8 && t < r->topics_len; t++)
		for (int32_t i = 0; i < r->topics[t].partitions_len; i++)
			check_fetched(w, a, r->topics[t].name, r->topics[t].partitions[i].partition_index, r->topics[t].partitions[i].committed_offset,
				      r->topics[t].partitions[i].committed_leader_epoch, r->topics[t].partitions[i].metadata,
				      r->topics[t].partitions[i].error_code);
	for (int32_t t = 0; r->groups_len > 0 && t < r->groups[0].topics_len; t++) {
		const struct offset_fetch_response_topics *topic = &r->groups[0].topics[t];
		for (int32_t i = 0; i < topic->partitions_len; i++)
			check_fetched(w, a, facts_topic_name(w, topic->name, &topic->topic_id), topic->partitions[i].partition_index,
				      topic->partitions[i].committed_offset, topic->partitions[i].committed_leader_epoch, topic->partitions[i].metadata,
				      topic->partitions[i].error_code);
	}
}
