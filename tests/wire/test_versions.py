"""Every advertised API in every version, and what is outside of them."""

import struct
import unittest

from harness import (Counted, INVALID_REQUEST, NONE, PARTITIONS, REFERENCE, TOPIC, UNKNOWN_MEMBER, UNSUPPORTED_VERSION, Member, WireCase, fresh,
                     ours, settle)
from kafka import API, API_OF_KEY, Reader, encode_request, frame


class Versions(WireCase):
    def advertised(self):
        """{name: (lowest, highest)} as the server says; of APIs that this test knows."""
        apis = self.connect().request("ApiVersions", 4)["apis"]
        self.assertEqual(len({a["key"] for a in apis}), len(apis), "an api is listed twice")
        return {API_OF_KEY[a["key"]].name: (a["min"], a["max"]) for a in apis if a["key"] in API_OF_KEY}

    def versions(self, name):
        low, high = self.advertised()[name]
        if name == "Produce":
            low = max(low, 3)  # lower ones are listed for old clients only
        return range(low, high + 1)

    def topic_id(self):
        return self.connect().request("Metadata", 12, topics=[{"name": TOPIC}])["topics"][0]["topic_id"]

    @ours("a reference does not serve all from 0 on")
    def test_the_list_is_the_table(self):
        answer = self.connect().request("ApiVersions", 4)
        listed = {a["key"]: (a["min"], a["max"]) for a in answer["apis"]}
        for api in API.values():
            self.assertEqual(listed[api.key], (0, api.highest), api.name)
        for telemetry in (71, 72):
            self.assertNotIn(telemetry, listed, "clients would send it")
        self.assertNotIn(0, [f["min"] for f in self.connect().request("ApiVersions", 3).get("supported", [])])

    def test_api_versions(self):
        for v in self.versions("ApiVersions"):
            answer = self.connect().request("ApiVersions", v)
            self.assertEqual(answer["error"], NONE)
            self.assertIn(18, [a["key"] for a in answer["apis"]])

    def test_b82_api_versions_beyond_is_answered_as_version_0(self):
        """The newest clients ask with version 5 first and go on with 4 on the same connection."""
        for v in (5, 6, 127, 32767):
            c = self.connect()
            c.send_raw(frame(struct.pack(">hhih", 18, v, 7, 1) + b"c\0" + b"\x02a\x02b\0"))
            r = Reader(c.receive_frame())
            self.assertEqual(r.integer("i32"), 7)
            self.assertEqual(r.integer("i16"), UNSUPPORTED_VERSION)
            self.assertEqual(r.integer("i32"), 1, "one entry")
            self.assertEqual([r.integer("i16") for _ in range(3)], [18, 0, 4])
            r.end()
            self.assertEqual(c.request("ApiVersions", 4)["error"], NONE, "the connection goes on")

    @ours("a reference closes")
    def test_api_versions_of_negative_version(self):
        """Any version that we do not know is answered so."""
        c = self.connect()
        c.send_raw(frame(struct.pack(">hhih", 18, -1, 9, 1) + b"c"))
        r = Reader(c.receive_frame())
        self.assertEqual((r.integer("i32"), r.integer("i16")), (9, UNSUPPORTED_VERSION))
        self.assertServes(c)

    def test_api_versions_software_name(self):
        for name, error in (("a", NONE), ("apache-kafka-java", NONE), ("", INVALID_REQUEST), ("-a", INVALID_REQUEST), ("a b", INVALID_REQUEST)):
            c = self.connect()
            self.assertEqual(c.request("ApiVersions", 3, software=name)["error"], error, name)

    def test_b83_lowest_versions_are_zero(self):
        """Old clients look for exactly these."""
        advertised = self.advertised()
        for name in ("Produce", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "FindCoordinator", "Metadata"):
            self.assertEqual(advertised[name][0], 0, name)

    @ours("a reference no longer has these versions")
    def test_lowest_versions_are_zero_everywhere(self):
        for name, (low, _) in self.advertised().items():
            self.assertEqual(low, 0, name)

    def test_versions_beyond_close(self):
        names = sorted(set(API) - {"ApiVersions"})
        with Counted(self, "session_bad_version", 4 * len(names)):
            for name in names:
                for v in (API[name].highest + 1, 32767, -1, -32768):
                    c = self.connect()
                    c.send_raw(frame(struct.pack(">hhih", API[name].key, v, 1, 1) + b"c\0\0\0\0\0\0"))
                    self.assertClosed(c, "%s version %d" % (name, v))

    def test_unknown_apis_close(self):
        keys = (-1, -32768, 4, 7, 24, 59, 99, 999, 32767)
        with Counted(self, "session_unknown_api", len(keys)):
            for key in keys:
                c = self.connect()
                c.send_raw(frame(struct.pack(">hhih", key, 0, 1, 1) + b"c\0\0\0\0\0\0"))
                self.assertClosed(c, "api %d" % key)

    def test_metadata(self):
        for v in self.versions("Metadata"):
            answer = self.connect().request("Metadata", v, topics=[{"name": TOPIC}, {"name": "no-such-topic"}])
            self.assertGreaterEqual(len(answer["nodes"]), 1)
            topics = {t["name"]: t for t in answer["topics"]}
            self.assertEqual(topics[TOPIC]["error"], NONE)
            self.assertEqual(sorted(p["index"] for p in topics[TOPIC]["partitions"]), list(range(PARTITIONS)))
            nodes = {n["id"] for n in answer["nodes"]}
            for p in topics[TOPIC]["partitions"]:
                self.assertEqual(p["error"], NONE)
                self.assertIn(p["leader"], nodes)
                self.assertIn(p["leader"], p["replicas"])
                self.assertIn(p["leader"], p["isr"])
            self.assertEqual(topics["no-such-topic"]["error"], 3)

    def test_metadata_by_id(self):
        topic_id = self.topic_id()
        self.assertNotEqual(topic_id, bytes(16))
        for v in (12, 13):
            answer = self.connect().request("Metadata", v, topics=[{"topic_id": topic_id, "name": None}, {"topic_id": b"\x11" * 16, "name": None}])
            by_id = {t["topic_id"]: t for t in answer["topics"]}
            self.assertEqual((by_id[topic_id]["error"], by_id[topic_id]["name"]), (NONE, TOPIC))
            self.assertEqual(by_id[b"\x11" * 16]["error"], 100)

    def test_metadata_lists(self):
        """An empty list asks for the nodes only; null (version 0: empty) for everything."""
        for v in self.versions("Metadata"):
            none = self.connect().request("Metadata", v, topics=[])
            self.assertGreaterEqual(len(none["nodes"]), 1, v)
            names = [t["name"] for t in none["topics"]]
            if v == 0:
                self.assertIn(TOPIC, names)
            else:
                self.assertEqual(names, [], v)
                every = self.connect().request("Metadata", v, topics=None)
                self.assertIn(TOPIC, [t["name"] for t in every["topics"]])

    def test_b80_coordinator_stands_in_metadata(self):
        """Clients refuse a coordinator that Metadata does not list."""
        nodes = {(n["id"], n["host"], n["port"]) for n in self.connect().request("Metadata", 9, topics=[])["nodes"]}
        keys = [fresh() for _ in range(40)]
        for c in self.connect().request("FindCoordinator", 4, keys=keys)["coordinators"]:
            self.assertEqual(c["error"], NONE)
            self.assertIn((c["id"], c["host"], c["port"]), nodes)

    def test_describe_cluster(self):
        meta = self.connect().request("Metadata", 9, topics=[])
        for v in self.versions("DescribeCluster"):
            answer = self.connect().request("DescribeCluster", v)
            self.assertEqual(answer["error"], NONE)
            self.assertEqual(answer["cluster_id"], meta["cluster_id"])
            self.assertEqual({n["id"] for n in answer["nodes"]}, {n["id"] for n in meta["nodes"]})

    def test_find_coordinator(self):
        for v in self.versions("FindCoordinator"):
            c = self.connect()
            if v < 4:
                answers = [c.request("FindCoordinator", v, key="g")]
            else:
                answers = c.request("FindCoordinator", v, keys=["g", "", "grüppe"])["coordinators"]
                self.assertEqual([a["key"] for a in answers], ["g", "", "grüppe"])
            for a in answers:
                self.assertEqual(a["error"], NONE)
                self.assertGreater(a["port"], 0)
                self.assertNotEqual(a["host"], "")

    def test_find_coordinator_of_other_kinds(self):
        for v, kind in ((1, 3), (3, -1), (4, 2), (5, 7)):
            values = {"key": "x"} if v < 4 else {"keys": ["x"]}
            answer = self.connect().request("FindCoordinator", v, key_type=kind, **values)
            answer = answer if v < 4 else answer["coordinators"][0]
            self.assertEqual((answer["error"], answer["id"], answer["port"]), (INVALID_REQUEST, -1, -1), "version %d kind %d" % (v, kind))

    def test_group_cycle(self):
        """Join, sync, heartbeat, commit, fetch, leave: once per JoinGroup version, the others going through all of theirs."""
        ranges = {n: self.versions(n) for n in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")}
        for i in range(max(len(r) for r in ranges.values())):
            v = {n: r[min(i, len(r) - 1)] for n, r in ranges.items()}
            m = self.member(fresh("cycle"), version=v["JoinGroup"])
            m.send_join()
            join = m.receive_join()
            self.assertEqual(join["error"], NONE)
            self.assertEqual((join["leader"], join["generation"], join["protocol"]), (m.id, 1, "range"))
            self.assertEqual([x["member"] for x in join["members"]], [m.id])
            if v["JoinGroup"] >= 7:
                self.assertEqual(join["protocol_type"], "consumer")
            values = {"protocol_type": "consumer", "protocol": "range"} if v["SyncGroup"] >= 5 else {}
            sync = m.connection.request("SyncGroup", v["SyncGroup"], generation=1, group=m.group, member=m.id,
                                        assignments=[{"member": m.id, "assignment": b"mine"}], **values)
            self.assertEqual((sync["error"], sync["assignment"]), (NONE, b"mine"))
            for h in ranges["Heartbeat"]:
                self.assertEqual(m.heartbeat(version=h), NONE)
            if v["LeaveGroup"] < 3:
                self.assertEqual(m.connection.request("LeaveGroup", v["LeaveGroup"], group=m.group, member=m.id)["error"], NONE)
            else:
                leave = m.connection.request("LeaveGroup", v["LeaveGroup"], group=m.group, members=[{"member": m.id, "instance": None}])
                self.assertEqual((leave["error"], leave["members"]), (NONE, [{"member": m.id, "instance": None, "error": NONE}]))
            self.assertEqual(m.heartbeat(), UNKNOWN_MEMBER)

    def test_offsets(self):
        topic_id = self.topic_id()
        for v in self.versions("OffsetCommit"):
            group, offset = fresh("offsets"), 100 + v
            c = self.connect()
            topic = {"name": TOPIC} if v < 10 else {"topic_id": topic_id}
            answer = c.request("OffsetCommit", v, group=group, topics=[dict(topic, partitions=[
                {"index": 0, "offset": offset, "metadata": "m%d" % v}, {"index": 1, "offset": 7, "metadata": None},
                {"index": PARTITIONS, "offset": 1}])])
            part = answer["topics"][0]["partitions"]
            self.assertEqual(sorted((p["index"], p["error"]) for p in part), [(0, NONE), (1, NONE), (PARTITIONS, 3)])
            for f in self.versions("OffsetFetch"):
                got = self.fetch_offsets(c, f, group, topic_id, [0, 1, 2])
                self.assertEqual([(p["index"], p["offset"], p["metadata"], p["error"]) for p in got],
                                 [(0, offset, "m%d" % v, NONE), (1, 7, "", NONE), (2, -1, "", NONE)], "commit %d fetch %d" % (v, f))

    def fetch_offsets(self, c, version, group, topic_id, partitions):
        if version < 8:
            answer = c.request("OffsetFetch", version, group=group, topics=[{"name": TOPIC, "partitions": partitions}])
            return answer["topics"][0]["partitions"]
        topic = {"name": TOPIC} if version < 10 else {"topic_id": topic_id}
        answer = c.request("OffsetFetch", version, groups=[{"group": group, "topics": [dict(topic, partitions=partitions)]}])
        self.assertEqual([g["group"] for g in answer["groups"]], [group])
        return answer["groups"][0]["topics"][0]["partitions"]

    def test_list_offsets(self):
        for v in self.versions("ListOffsets"):
            for when in (-1, -2):
                answer = self.connect().request("ListOffsets", v, topics=[{"name": TOPIC, "partitions": [{"index": 0, "timestamp": when}]}])
                part = answer["topics"][0]["partitions"][0]
                self.assertEqual((part["index"], part["error"]), (0, NONE), "version %d" % v)
                self.assertEqual(part["offsets"][0] if v == 0 else part["offset"], 0)

    def test_list_offsets_unknown(self):
        answer = self.connect().request("ListOffsets", 2, topics=[{"name": TOPIC, "partitions": [{"index": 99, "timestamp": -1}]},
                                                                  {"name": "no-such-topic", "partitions": [{"index": 0, "timestamp": -1}]}])
        self.assertEqual({p["error"] for t in answer["topics"] for p in t["partitions"]}, {3})

    def test_offset_for_leader_epoch(self):
        for v in self.versions("OffsetForLeaderEpoch"):
            answer = self.connect().request("OffsetForLeaderEpoch", v, topics=[{"name": TOPIC, "partitions": [{"index": 0, "epoch": 0}]}])
            part = answer["topics"][0]["partitions"][0]
            self.assertEqual((part["index"], part["error"]), (0, NONE))
            # without data: no position that a client has committed may lie behind the end, or it resets
            self.assertIn(part["end_offset"], (-1, 0) if REFERENCE else (2**63 - 1,))

    def test_fetch(self):
        topic_id = self.topic_id()
        for v in self.versions("Fetch"):
            topic = {"name": TOPIC} if v < 13 else {"topic_id": topic_id}
            answer = self.connect().request("Fetch", v, max_wait_ms=20, topics=[dict(topic, partitions=[{"index": 0, "offset": 0}])])
            self.assertEqual(answer.get("error", NONE), NONE)
            part = answer["topics"][0]["partitions"][0]
            self.assertEqual((part["index"], part["error"], part["high_watermark"]), (0, NONE, 0), "version %d" % v)
            self.assertIn(part["records"], (None, b""))

    @ours("a reference takes records")
    def test_produce_is_refused(self):
        """Old Java clients need it listed; what is sent is refused, per partition, and the connection goes on."""
        topic_id = self.topic_id()
        for v in range(0, self.advertised()["Produce"][1] + 1):
            c = self.connect()
            topic = {"name": TOPIC} if v < 13 else {"topic_id": topic_id}
            answer = c.request("Produce", v, topics=[dict(topic, partitions=[{"index": 0, "records": b"\0" * 61}])])
            self.assertEqual([t["partitions"][0]["index"] for t in answer["topics"]], [0])
            self.assertNotEqual(answer["topics"][0]["partitions"][0]["error"], NONE, "version %d" % v)
            self.assertServes(c)

    @ours("a reference takes records")
    def test_produce_without_acks_is_not_answered(self):
        c = self.connect()
        c.send_raw(frame(encode_request("Produce", 7, 1, {"acks": 0, "topics": [{"name": TOPIC, "partitions": [
            {"index": 0, "records": b"\0" * 61}]}]})))
        # nothing can be said to a sender that waits for nothing: either the next answer comes, or the connection ends
        try:
            self.assertServes(c)
        except Exception as e:
            self.assertEqual(type(e).__name__, "Closed")

    def test_unknown_tags_are_skipped(self):
        c = self.connect()
        self.assertEqual(c.request("Heartbeat", 4, group="g", generation=1, member="m", _tags={5: b"x" * 10, 90000: b""})["error"], UNKNOWN_MEMBER)

    def test_null_client_id(self):
        c = self.connect(client_id=None)
        self.assertServes(c)
        m = Member(fresh(), version=5)
        m.connection.client_id = None
        self.opened.append(m)
        settle([m])
        self.assertNotEqual(m.id, "")


if __name__ == "__main__":
    unittest.main()
