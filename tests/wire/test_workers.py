#!/usr/bin/env python3
"""Several workers: each is a node of its own, and a request that comes to the wrong one is answered all the same. Needs MUSTER_WORKERS of at least 2."""

import random
import threading
import time
import unittest

from harness import ILLEGAL_GENERATION, NONE, PARTITIONS, TOPIC, UNKNOWN_MEMBER, WORKERS, Counted, Member, WireCase, address, connect, counters, fresh
from kafka import Closed

NOT_EMPTY, NOT_FOUND = 68, 69
ALL = range(WORKERS)


def owner(group, at=0):
    """The worker that FindCoordinator names."""
    with connect(at) as c:
        found = c.request("FindCoordinator", 3, key=group)
        assert found["error"] == NONE, found
        return found["port"] - address()[1]


def group_of(worker):
    while True:
        name = fresh("owned")
        if owner(name) == worker:
            return name


def commit(c, group, offset, **identity):
    answer = c.request("OffsetCommit", 7, group=group, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": offset}]}], **identity)
    return answer["topics"][0]["partitions"][0]["error"]


def fetch(c, group):
    answer = c.request("OffsetFetch", 7, group=group, topics=[{"name": TOPIC, "partitions": [0]}])
    return answer["topics"][0]["partitions"][0]["offset"]


class MemberAt(Member):
    """A member whose connection is to a worker of our choice."""

    def __init__(self, worker, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.connection.close()
        self.connection = connect(worker, client_id=kwargs.get("client_id", "wire-test"))

    def settle(self):
        """Alone in its group."""
        self.get_id()
        self.send_join()
        assert self.receive_join()["error"] == NONE
        assert self.sync({self.id: b"mine"})["assignment"] == b"mine"


class Workers(WireCase):
    def test_every_node_is_listed_at_every_node(self):
        seen = set()
        for w in ALL:
            c = connect(w)
            self.opened.append(c)
            meta = c.request("Metadata", 9, topics=[{"name": TOPIC}])
            cluster = c.request("DescribeCluster", 0)
            self.assertEqual(len(meta["nodes"]), WORKERS)
            self.assertEqual([n["port"] - address()[1] for n in sorted(meta["nodes"], key=lambda n: n["id"])], list(ALL))
            self.assertEqual({(n["id"], n["port"]) for n in cluster["nodes"]}, {(n["id"], n["port"]) for n in meta["nodes"]})
            self.assertIn(meta["controller_id"], {n["id"] for n in meta["nodes"]})
            self.assertEqual(len(meta["topics"][0]["partitions"]), PARTITIONS)
            seen.add((meta["cluster_id"], meta["controller_id"]))
        self.assertEqual(len(seen), 1)

    def test_all_name_the_same_owner_and_groups_spread(self):
        owners = set()
        for _ in range(20 * WORKERS):
            group = fresh()
            named = {owner(group, at) for at in ALL}
            self.assertEqual(len(named), 1)
            owners |= named
        self.assertEqual(owners, set(ALL))

    def test_a_member_s_life_at_every_worker(self):
        for at in ALL:
            for of in ALL:
                group = group_of(of)
                with Counted(self, "forward_requests", 8 if at != of else 0):
                    m = MemberAt(at, group)
                    self.opened.append(m)
                    m.settle()
                    c = m.connection
                    self.assertEqual(m.heartbeat(), NONE)
                    identity = {"generation": m.generation, "member": m.id}
                    self.assertEqual(commit(c, group, 41, **identity), NONE)
                    self.assertEqual(commit(c, group, 42, generation=m.generation + 1, member=m.id), ILLEGAL_GENERATION)
                    self.assertEqual(fetch(c, group), 41)
                    described, = c.request("DescribeGroups", 5, groups=[group])["groups"]
                    self.assertEqual((described["state"], described["members"][0]["assignment"]), ("Stable", b"mine"))
                    self.assertEqual(described["members"][0]["client_id"], "wire-test")
                    self.assertEqual(c.request("DeleteGroups", 2, groups=[group])["results"][0]["error"], NOT_EMPTY)
                    self.assertEqual(m.leave(), NONE)
                    self.assertEqual(m.heartbeat(), UNKNOWN_MEMBER)
                    deleted = c.request("OffsetDelete", 0, group=group, topics=[{"name": TOPIC, "partitions": [{"index": 0}]}])
                    self.assertEqual((deleted["error"], deleted["topics"][0]["partitions"][0]["error"]), (NONE, NONE))
                    self.assertEqual(fetch(c, group), -1)

    def test_every_version_at_the_wrong_worker(self):
        """The same answers as at the owner, whatever the version."""
        group = group_of(1)
        topics = [{"name": TOPIC, "partitions": [{"index": 0, "offset": 9}]}]
        with connect(0) as wrong, connect(1) as right:
            topic_id = wrong.request("Metadata", 12, topics=[{"name": TOPIC}])["topics"][0]["topic_id"]
            by_id = [dict(t, topic_id=topic_id) for t in topics]
            fetched = [{"name": TOPIC, "topic_id": topic_id, "partitions": [0, 1]}]
            requests = [("Heartbeat", v, {"group": group, "generation": 1, "member": "x"}) for v in range(0, 5)]
            requests += [("SyncGroup", v, {"group": group, "generation": 1, "member": "x", "assignments": []}) for v in range(0, 6)]
            requests += [("LeaveGroup", v, {"group": group, "member": "x", "members": [{"member": "x", "instance": None}]}) for v in range(0, 6)]
            requests += [("JoinGroup", v, {"group": group, "member": "x", "protocols": [{"name": "range", "metadata": b""}]}) for v in range(0, 10)]
            requests += [("OffsetCommit", v, {"group": group, "topics": by_id}) for v in range(0, 11)]
            requests += [("OffsetFetch", v, {"group": group, "topics": [{"name": TOPIC, "partitions": [0, 1]}]}) for v in range(0, 8)]
            requests += [("OffsetFetch", v, {"groups": [{"group": group, "topics": fetched}]}) for v in range(8, 11)]
            requests += [("DescribeGroups", v, {"groups": [group]}) for v in range(0, 7)]
            for name, version, values in requests:
                values = {k: v for k, v in values.items() if k != "members" or version >= 3}
                answers = []
                for c in (wrong, right):
                    c.send(name, version, **values)
                    answers.append(c.receive_frame()[4:])  # without the correlation id
                    c.pending.pop()
                self.assertEqual(*answers, "%s version %d" % (name, version))

    def test_several_groups(self):
        names = [group_of(w) for w in ALL for _ in range(3)]
        random.Random(1).shuffle(names)
        with connect(0) as c:
            for i, name in enumerate(names):
                self.assertEqual(commit(c, name, i), NONE)
        for at in ALL:
            with connect(at) as c:
                answer = c.request("OffsetFetch", 9, groups=[{"group": n, "topics": [{"name": TOPIC, "partitions": [0]}]} for n in names])
                self.assertEqual([g["group"] for g in answer["groups"]], names)
                self.assertEqual([g["topics"][0]["partitions"][0]["offset"] for g in answer["groups"]], list(range(len(names))))
                described = c.request("DescribeGroups", 6, groups=names + ["not-there"])["groups"]
                self.assertEqual([(g["group"], g["state"], g["error"]) for g in described],
                                 [(n, "Empty", NONE) for n in names] + [("not-there", "Dead", NOT_FOUND)])
                for version in range(0, 6):
                    listed = [g["group"] for g in c.request("ListGroups", version)["groups"]]
                    self.assertEqual(len(listed), len(set(listed)))
                    self.assertLessEqual(set(names), set(listed))
                self.assertEqual(c.request("ListGroups", 5, states=["Dead"])["groups"], [])
        with connect(WORKERS - 1) as c:
            results = c.request("DeleteGroups", 2, groups=names + names + ["not-there"])["results"]
            self.assertEqual([(r["group"], r["error"]) for r in results], [(n, NONE) for n in names] + [("not-there", NOT_FOUND)])
            self.assertEqual(set(names) & {g["group"] for g in c.request("ListGroups", 3)["groups"]}, set())

    def test_answers_in_order_over_several_owners(self):
        names = [group_of(w) for w in ALL]
        with connect(0) as c:
            for i in range(300):
                if i % 5 == 4:
                    c.send("Metadata", 8, topics=[])
                elif i % 7 == 6:
                    c.send("DescribeGroups", 5, groups=names)
                else:
                    c.send("Heartbeat", 3, group=names[i % WORKERS], generation=1, member="nobody")
            for i in range(300):
                c.receive()  # checks the correlation id

    def test_two_at_different_workers_rebalance(self):
        group = group_of(WORKERS - 1)
        a, b = MemberAt(0, group), MemberAt(1 % WORKERS, group)
        self.opened += [a, b]
        a.settle()
        b.get_id()
        b.send_join()
        time.sleep(0.05)
        self.assertFalse(b.connection.answered(0), "a has not joined again")
        a.send_join()
        self.assertEqual((a.receive_join()["error"], b.receive_join()["error"]), (NONE, NONE))
        self.assertEqual(a.generation, b.generation)
        b.send_sync()
        self.assertFalse(b.connection.answered(0.05))
        self.assertEqual(a.sync({a.id: b"A", b.id: b"B"})["assignment"], b"A")
        self.assertEqual(b.connection.receive()["assignment"], b"B")

    def nothing_is_parked(self):
        end = time.monotonic() + 10
        while counters().get("requests_parked_now", 0) > 0:
            self.assertLess(time.monotonic(), end, "requests stay parked")

    def test_closes_at_every_point(self):
        """Connections that go with all kinds of requests under way to all owners; their joins are forgotten there."""
        rng = random.Random(2)
        names = [group_of(w) for w in ALL]
        holders = [MemberAt(w, names[w], session_ms=30000) for w in ALL]
        self.opened += holders
        for m in holders:
            m.settle()
        for i in range(200):
            c = connect(rng.randrange(WORKERS))
            for _ in range(rng.randrange(1, 6)):
                name = rng.choice(names)
                kind = rng.randrange(6)
                if kind == 0:
                    c.send("JoinGroup", 3, group=name, member="", rebalance_ms=60000, protocols=[{"name": "range", "metadata": b""}])
                elif kind == 1:
                    c.send("OffsetFetch", 8, groups=[{"group": n, "topics": None} for n in names])
                elif kind == 2:
                    c.send("ListGroups", 4)
                elif kind == 3:
                    c.send("DeleteGroups", 2, groups=names)
                elif kind == 4:
                    c.send("DescribeGroups", 5, groups=names)
                else:
                    c.send("Heartbeat", 3, group=name, generation=1, member="nobody")
            time.sleep(rng.choice((0, 0, 0.0005, 0.002)))
            if rng.random() < 0.5:
                c.reset()
            elif rng.random() < 0.5:
                c.half_close()
                self.opened.append(c)
            else:
                c.close()
        self.nothing_is_parked()
        for m in holders:  # whoever joined is gone again, or was never in: the holder is alone
            m.send_join()
            self.assertEqual(m.receive_join()["error"], NONE)
            self.assertEqual([x["member"] for x in m.members], [m.id])

    def test_more_than_may_be_under_way(self):
        """Many connections send to one wrong worker without reading; nobody is dropped, and all is answered."""
        group, each = group_of(1), 60
        connections = [connect(0) for _ in range(24)]
        self.opened += connections
        with Counted(self, "forward_requests", 24 * each):
            senders = [threading.Thread(target=lambda c=c: [c.send("OffsetFetch", 7, group=group, topics=None) for _ in range(each)])
                       for c in connections]
            for t in senders:
                t.start()
            for t in senders:
                t.join()
            for c in connections:
                for _ in range(each):
                    self.assertEqual(c.receive()["error"], NONE)

    def test_large_answers_come_back_whole(self):
        group = group_of(1)
        with connect(0) as c:
            for i in range(PARTITIONS):
                answer = c.request("OffsetCommit", 7, group=group, topics=[{"name": TOPIC, "partitions": [
                    {"index": i, "offset": i, "metadata": chr(97 + i) * 4000}]}])
                self.assertEqual(answer["topics"][0]["partitions"][0]["error"], NONE)
            for _ in range(50):
                answer = c.request("OffsetFetch", 7, group=group, topics=None)
                got = {p["index"]: p["metadata"] for p in answer["topics"][0]["partitions"]}
                self.assertEqual(got, {i: chr(97 + i) * 4000 for i in range(PARTITIONS)})

    def test_malformed_at_the_wrong_worker(self):
        """A body that does not decode closes this connection only."""
        with connect(0) as c:
            frame = b"\0\x0c\0\3\0\0\0\1\xff\xff" + b"\0\4own"
            c.send_raw(len(frame).to_bytes(4, "big") + frame)
            self.assertClosed(c)


if __name__ == "__main__":
    if WORKERS < 2:
        raise SystemExit("these tests want several workers: deploy/with-muster --workers 4")
    unittest.main()
