"""Committed offsets, and what a server without data says to Fetch and ListOffsets."""

import time
import unittest

from harness import (ILLEGAL_GENERATION, NONE, PARTITIONS, REBALANCE, TOPIC, UNKNOWN_MEMBER, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, WireCase, fresh, ours)

METADATA_TOO_LARGE = 12


def commit_topics(offsets, **topic):
    return [dict(topic or {"name": TOPIC}, partitions=[{"index": i, "offset": o} for i, o in offsets])]


class Offsets(WireCase):
    def setUp(self):
        super().setUp()
        self.c = self.connect()
        self.topic_id = self.c.request("Metadata", 12, topics=[{"name": TOPIC}])["topics"][0]["topic_id"]

    def commit(self, group, offsets, version=7, **identity):
        answer = self.c.request("OffsetCommit", version, group=group, topics=commit_topics(offsets), **identity)
        return [(p["index"], p["error"]) for p in answer["topics"][0]["partitions"]]

    def offsets(self, group, version=7, partitions=tuple(range(PARTITIONS))):
        answer = self.c.request("OffsetFetch", version, group=group, topics=[{"name": TOPIC, "partitions": list(partitions)}])
        return [p["offset"] for p in answer["topics"][0]["partitions"]]

    def test_b41_nothing_is_left_out(self):
        """What has no offset is there, with -1, no metadata and no error."""
        group = fresh()
        self.assertEqual(self.commit(group, [(0, 5)]), [(0, NONE)])
        answer = self.c.request("OffsetFetch", 8, groups=[{"group": group, "topics": [{"name": TOPIC, "partitions": [0, 1]}]}])
        p0, p1 = answer["groups"][0]["topics"][0]["partitions"]
        self.assertEqual((p0["index"], p0["offset"]), (0, 5))
        self.assertEqual(p1, {"index": 1, "offset": -1, "leader_epoch": -1, "metadata": "", "error": NONE})

    def test_unknown_group(self):
        self.assertEqual(self.offsets(fresh()), [-1] * PARTITIONS)
        answer = self.c.request("OffsetFetch", 7, group=fresh(), topics=None)
        self.assertEqual((answer["error"], answer["topics"]), (NONE, []))

    def test_all_topics(self):
        group = fresh()
        self.commit(group, [(0, 5), (3, 8)])
        for version in range(2, 8):
            answer = self.c.request("OffsetFetch", version, group=group, topics=None)
            got = {t["name"]: sorted((p["index"], p["offset"]) for p in t["partitions"]) for t in answer["topics"]}
            self.assertEqual(got, {TOPIC: [(0, 5), (3, 8)]})
        for version in (8, 9, 10):
            answer = self.c.request("OffsetFetch", version, groups=[{"group": group, "topics": None}])
            topic, = answer["groups"][0]["topics"]
            self.assertEqual(topic.get("name", topic.get("topic_id")), TOPIC if version < 10 else self.topic_id)
            self.assertEqual(sorted(p["index"] for p in topic["partitions"]), [0, 3])

    def test_several_groups(self):
        names = [fresh() for _ in range(3)]
        for i, n in enumerate(names):
            self.commit(n, [(0, i)])
        answer = self.c.request("OffsetFetch", 9, groups=[
            {"group": n, "member": "m", "epoch": 1, "topics": [{"name": TOPIC, "partitions": [0]}]} for n in names])
        self.assertEqual([(g["group"], g["topics"][0]["partitions"][0]["offset"]) for g in answer["groups"]], list(zip(names, range(3))))

    def test_unknown_topics(self):
        topics = commit_topics([(0, 1)], name="no-such-topic") + commit_topics([(0, 1), (99, 1), (-1, 1)])
        answer = self.c.request("OffsetCommit", 7, group=fresh(), topics=topics)
        got = {(t["name"], p["index"]): p["error"] for t in answer["topics"] for p in t["partitions"]}
        self.assertEqual(got, {("no-such-topic", 0): UNKNOWN_TOPIC, (TOPIC, 0): NONE, (TOPIC, 99): UNKNOWN_TOPIC, (TOPIC, -1): UNKNOWN_TOPIC})

    def test_b50_by_topic_id(self):
        """Version 10 names topics by id: no id, or an unknown one, is 100 per partition."""
        group = fresh()
        answer = self.c.request("OffsetCommit", 10, group=group, topics=commit_topics([(2, 77)], topic_id=self.topic_id)
                                + commit_topics([(0, 1)], topic_id=bytes(16)) + commit_topics([(0, 1)], topic_id=b"\x55" * 16))
        got = {(t["topic_id"], p["index"]): p["error"] for t in answer["topics"] for p in t["partitions"]}
        self.assertEqual(got, {(self.topic_id, 2): NONE, (bytes(16), 0): UNKNOWN_TOPIC_ID, (b"\x55" * 16, 0): UNKNOWN_TOPIC_ID})
        answer = self.c.request("OffsetFetch", 10, groups=[{"group": group, "topics": [{"topic_id": self.topic_id, "partitions": [2]},
                                                                                       {"topic_id": b"\x55" * 16, "partitions": [0]}]}])
        got = {t["topic_id"]: [(p["offset"], p["error"]) for p in t["partitions"]] for t in answer["groups"][0]["topics"]}
        self.assertEqual(got, {self.topic_id: [(77, NONE)], b"\x55" * 16: [(-1, UNKNOWN_TOPIC_ID)]})
        self.assertEqual(self.offsets(group, partitions=[2]), [77], "and by name it is the same")

    def test_who_may_commit(self):
        m, = self.group_of(1, version=5)
        good = {"generation": m.generation, "member": m.id}
        self.assertEqual(self.commit(m.group, [(0, 1)], **good), [(0, NONE)], "on another connection than the member's")
        self.assertEqual(self.commit(m.group, [(0, 2)], generation=m.generation + 1, member=m.id), [(0, ILLEGAL_GENERATION)])
        self.assertEqual(self.commit(m.group, [(0, 2)], generation=m.generation, member="other"), [(0, UNKNOWN_MEMBER)])
        self.assertEqual(self.commit(m.group, [(0, 2)]), [(0, UNKNOWN_MEMBER)], "not without a name while there are members")
        self.assertEqual(self.offsets(m.group, partitions=[0]), [1])
        m.leave()
        self.assertEqual(self.commit(m.group, [(0, 3)]), [(0, NONE)])
        self.assertEqual(self.offsets(m.group, partitions=[0]), [3])

    def test_unknown_group_with_generation(self):
        self.assertEqual(self.commit(fresh(), [(0, 1)], version=8, generation=1, member="m"), [(0, ILLEGAL_GENERATION)])
        self.assertEqual(self.commit(fresh(), [(0, 1)], version=9, generation=1, member="m"), [(0, 69)])

    def test_b37_instance_without_membership(self):
        self.assertEqual(self.commit(fresh(), [(0, 1)], instance="i1"), [(0, NONE)])

    def test_b20_during_a_rebalance(self):
        """Accepted while members gather, 27 while the assignment is awaited, 22 with the old generation afterwards."""
        a, b = self.group_of(2, version=5)
        b.protocols = ("range", "roundrobin")
        b.send_join()
        while a.heartbeat() != REBALANCE:
            pass
        old = a.generation
        self.assertEqual(self.commit(a.group, [(0, 1)], generation=old, member=a.id), [(0, NONE)])
        a.send_join()
        a.receive_join(), b.receive_join()
        self.assertEqual(self.commit(a.group, [(0, 2)], generation=a.generation, member=a.id), [(0, REBALANCE)])
        self.assertEqual(self.commit(a.group, [(0, 2)], generation=old, member=a.id), [(0, ILLEGAL_GENERATION)])
        self.assertEqual(self.offsets(a.group, partitions=[0]), [1])

    def test_b44_long_metadata(self):
        """The one partition fails, the others do not."""
        group = fresh()
        answer = self.c.request("OffsetCommit", 8, group=group, topics=[{"name": TOPIC, "partitions": [
            {"index": 0, "offset": 1, "metadata": "x" * 10}, {"index": 1, "offset": 1, "metadata": "x" * 5000}]}])
        self.assertEqual([(p["index"], p["error"]) for p in answer["topics"][0]["partitions"]], [(0, NONE), (1, METADATA_TOO_LARGE)])
        answer = self.c.request("OffsetFetch", 7, group=group, require_stable=True, topics=[{"name": TOPIC, "partitions": [0, 1]}])
        self.assertEqual([(p["offset"], p["metadata"], p["error"]) for p in answer["topics"][0]["partitions"]], [(1, "x" * 10, NONE), (-1, "", NONE)])

    def test_values(self):
        """Stored and given back as sent: the largest, the negative ones that some clients commit, leader epochs."""
        group = fresh()
        for offset, epoch in ((0, 0), (2**63 - 1, 2**31 - 1), (-2, -1), (-1, 3)):
            answer = self.c.request("OffsetCommit", 8, group=group, topics=[{"name": TOPIC, "partitions": [
                {"index": 0, "offset": offset, "leader_epoch": epoch, "metadata": "ü"}]}])
            self.assertEqual(answer["topics"][0]["partitions"][0]["error"], NONE)
            p = self.c.request("OffsetFetch", 6, group=group, topics=[{"name": TOPIC, "partitions": [0]}])["topics"][0]["partitions"][0]
            self.assertEqual((p["offset"], p["leader_epoch"], p["metadata"]), (offset, epoch, "ü"))

    def test_empty_commit(self):
        self.assertEqual(self.c.request("OffsetCommit", 7, group=fresh(), topics=[])["topics"], [])

    def test_many_partitions_in_one_commit(self):
        answer = self.c.request("OffsetCommit", 7, group=fresh(), topics=commit_topics([(i % PARTITIONS, i) for i in range(2000)]))
        self.assertEqual({p["error"] for p in answer["topics"][0]["partitions"]}, {NONE})

    def fetch(self, c, version=11, wait=300, offset=0, **values):
        topic = {"name": TOPIC} if version < 13 else {"topic_id": self.topic_id}
        return c.request("Fetch", version, max_wait_ms=wait, topics=[dict(topic, partitions=[{"index": 0, "offset": offset}])], **values)

    def test_fetch_waits(self):
        """For max.wait each time: not at once, or clients spin, and not longer."""
        start = time.monotonic()
        for _ in range(5):
            self.assertEqual(self.fetch(self.c)["topics"][0]["partitions"][0]["error"], NONE)
        took = time.monotonic() - start
        self.assertGreater(took, 5 * 0.29)
        self.assertLess(took, 5 * 0.3 + 1.0)

    def test_fetch_holds_up_nobody_else(self):
        self.c.send("Fetch", 11, max_wait_ms=3000, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": 0}]}])
        other = self.connect()
        start = time.monotonic()
        for _ in range(20):
            self.assertServes(other)
        self.assertLess(time.monotonic() - start, 2)
        self.c.receive()

    def test_many_fetches_wait(self):
        """200 at once, all answered in time."""
        connections = [self.connect() for _ in range(200)]
        start = time.monotonic()
        for c in connections:
            c.send("Fetch", 11, max_wait_ms=500, topics=[{"name": TOPIC, "partitions": [{"index": p, "offset": 0} for p in range(PARTITIONS)]}])
        for c in connections:
            self.assertEqual(len(c.receive()["topics"][0]["partitions"]), PARTITIONS)
        self.assertLess(time.monotonic() - start, 5)

    @ours("a reference answers OFFSET_OUT_OF_RANGE, on which a client destroys its group's offset")
    def test_fetch_is_never_out_of_range(self):
        for version in (0, 4, 11, 12, 13, 18):
            for offset in (1, 12345, 2**63 - 1):
                part = self.fetch(self.c, version, 10, offset)["topics"][0]["partitions"][0]
                self.assertEqual(part["error"], NONE, "version %d offset %d" % (version, offset))

    @ours("a reference keeps sessions")
    def test_fetch_sessions_are_declined(self):
        for version in (7, 11, 18):
            answer = self.fetch(self.c, version, 10, session_id=0, session_epoch=0)
            self.assertEqual((answer["error"], answer["session_id"]), (NONE, 0))

    def test_fetch_of_unknown_topics(self):
        answer = self.c.request("Fetch", 11, max_wait_ms=10, topics=[{"name": "no-such-topic", "partitions": [{"index": 0, "offset": 0}]},
                                                                     {"name": TOPIC, "partitions": [{"index": 99, "offset": 0}]}])
        self.assertEqual({p["error"] for t in answer["topics"] for p in t["partitions"]}, {UNKNOWN_TOPIC})
        answer = self.c.request("Fetch", 13, max_wait_ms=10, topics=[{"topic_id": b"\x55" * 16, "partitions": [{"index": 0, "offset": 0}]}])
        self.assertEqual({p["error"] for t in answer["topics"] for p in t["partitions"]}, {UNKNOWN_TOPIC_ID})

    def test_pipelined_list_offsets(self):
        """Seven in flight, as librdkafka does."""
        for i in range(7):
            self.c.send("ListOffsets", 2, topics=[{"name": TOPIC, "partitions": [{"index": i % PARTITIONS}]}])
        for i in range(7):
            part = self.c.receive()["topics"][0]["partitions"][0]
            self.assertEqual((part["index"], part["error"], part["offset"]), (i % PARTITIONS, NONE, 0))


if __name__ == "__main__":
    unittest.main()
