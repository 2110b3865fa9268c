"""Groups as clients of all families use them: the traps of real clients, and reports from the field by their number."""

import time
import unittest

from harness import (FENCED, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, NONE, REBALANCE, TOPIC, UNKNOWN_MEMBER, Member, WireCase, fresh, ours, settle)

INCONSISTENT_PROTOCOL, INVALID_GROUP_ID, INVALID_SESSION = 23, 24, 26


class Groups(WireCase):
    def test_first_request_need_not_be_api_versions(self):
        first = (("FindCoordinator", 0, {"key": "g"}), ("ListOffsets", 1, {"topics": [{"name": TOPIC, "partitions": [{"index": 0}]}]}),
                 ("Metadata", 6, {"topics": []}), ("Heartbeat", 0, {"group": "g", "generation": 1, "member": "m"}),
                 ("Fetch", 10, {"max_wait_ms": 10, "topics": [{"name": TOPIC, "partitions": [{"index": 0, "offset": 0}]}]}),
                 ("OffsetFetch", 1, {"group": "g", "topics": [{"name": TOPIC, "partitions": [0]}]}))
        for name, version, values in first:
            self.connect().request(name, version, **values)

    def test_b21_answers_come_in_order(self):
        """Behind a parked join wait the later requests of that connection, and nobody else."""
        a, = self.group_of(1, version=5)
        b = self.member(a.group, version=5)
        b.get_id()
        b.send_join()
        b.connection.send("Metadata", 9, topics=[])
        b.connection.send("Heartbeat", 3, group=a.group, generation=1, member=b.id)
        b.connection.send("ApiVersions", 0)
        self.assertFalse(b.connection.answered(0.3), "all of them wait for the join")
        other = self.connect()
        self.assertGreaterEqual(len(other.request("Metadata", 9, topics=[])["nodes"]), 1)
        self.assertEqual(a.heartbeat(), REBALANCE)
        a.send_join()
        self.assertEqual(a.receive_join()["generation"], 2)
        self.assertEqual(b.receive_join()["generation"], 2)
        self.assertGreaterEqual(len(b.connection.receive()["nodes"]), 1)
        self.assertEqual(b.connection.receive()["error"], ILLEGAL_GENERATION)
        self.assertEqual(b.connection.receive()["error"], NONE)

    def test_b21_commits_in_flight(self):
        """Five commits at once, answered in order."""
        m, = self.group_of(1, version=5)
        for i in range(5):
            m.connection.send("OffsetCommit", 7, group=m.group, generation=m.generation, member=m.id,
                              topics=[{"name": TOPIC, "partitions": [{"index": i, "offset": i}]}])
        m.connection.send("Heartbeat", 3, group=m.group, generation=m.generation, member=m.id)
        for i in range(5):
            self.assertEqual(m.connection.receive()["topics"][0]["partitions"], [{"index": i, "error": NONE}])
        self.assertEqual(m.connection.receive()["error"], NONE)

    def test_a_member_is_not_its_connection(self):
        m = self.member(fresh(), version=9)
        m.get_id()
        first = m.connection
        m.send_join()
        self.assertEqual(m.receive_join()["error"], NONE)
        m.connection = self.connect()
        self.assertEqual(m.sync({m.id: b"x"})["error"], NONE)
        first.close()
        other = self.connect()
        for _ in range(3):
            self.assertEqual(m.heartbeat(other), NONE)
            time.sleep(0.05)
        m.connection.reset()
        self.assertEqual(m.heartbeat(other), NONE)
        answer = self.connect().request("LeaveGroup", 3, group=m.group, members=[{"member": m.id, "instance": None}])
        self.assertEqual(answer["error"], NONE)
        self.assertEqual(m.heartbeat(other), UNKNOWN_MEMBER)

    def test_member_id_required(self):
        """Version 4 and later get an id first; it does not count until it comes back with it."""
        for version in range(4, 10):
            m = self.member(fresh(), version=version, client_id="named")
            m.send_join()
            answer = m.connection.receive()
            self.assertEqual((answer["error"], answer["generation"], answer["members"]), (MEMBER_ID_REQUIRED, -1, []))
            self.assertTrue(answer["member"].startswith("named-"), answer["member"])
            self.assertEqual(m.heartbeat(), UNKNOWN_MEMBER)
            m.id = answer["member"]
            m.send_join()
            self.assertEqual(m.receive_join()["error"], NONE)
            self.assertEqual(m.id, answer["member"])

    def test_no_member_id_required_before_version_4(self):
        for version in range(4):
            m = self.member(fresh(), version=version)
            m.send_join()
            answer = m.connection.receive(30)
            self.assertEqual((answer["error"], answer["generation"]), (NONE, 1))

    def test_unknown_ids(self):
        m = self.member(fresh(), version=5)
        m.id = "made-up"
        m.send_join()
        self.assertEqual(m.connection.receive()["error"], UNKNOWN_MEMBER)
        good, = self.group_of(1, version=5)
        m.group = good.group
        m.send_join()
        self.assertEqual(m.connection.receive()["error"], UNKNOWN_MEMBER)
        self.assertEqual(good.heartbeat(), NONE)
        m.id, m.generation = good.id, 99
        self.assertEqual(m.heartbeat(), ILLEGAL_GENERATION)
        self.assertEqual(good.heartbeat(), NONE)

    def test_requests_that_the_group_refuses(self):
        cases = (({"group": ""}, INVALID_GROUP_ID), ({"session_ms": 1}, INVALID_SESSION), ({"session_ms": 2147483647}, INVALID_SESSION),
                 ({"protocol_type": ""}, INCONSISTENT_PROTOCOL), ({"protocols": []}, INCONSISTENT_PROTOCOL))
        for values, error in cases:
            full = dict({"group": fresh(), "protocols": [{"name": "range", "metadata": b""}]}, **values)
            self.assertEqual(self.connect().request("JoinGroup", 2, **full)["error"], error, values)
        for name, version in (("Heartbeat", 3), ("SyncGroup", 3)):
            self.assertEqual(self.connect().request(name, version, group="", generation=1, member="m")["error"], INVALID_GROUP_ID)
        self.assertEqual(self.connect().request("SyncGroup", 5, group="g", generation=1, member="m")["error"], INCONSISTENT_PROTOCOL)

    def test_b12_other_protocols_are_refused(self):
        """Who shares no protocol with all members is kept out, and the group does not notice."""
        a, = self.group_of(1, version=5, protocols=("range", "roundrobin"))
        b = self.member(a.group, version=5, protocols=("sticky",))
        b.send_join()
        self.assertEqual(b.connection.receive()["error"], INCONSISTENT_PROTOCOL)
        self.assertEqual(a.heartbeat(), NONE)

    def test_heartbeats_tell_of_a_rebalance(self):
        a, = self.group_of(1, version=5)
        b = self.member(a.group, version=5)
        b.get_id()
        self.assertEqual(a.heartbeat(), NONE, "an id alone is no member")
        b.send_join()
        end = time.monotonic() + 5
        while a.heartbeat() != REBALANCE:
            self.assertLess(time.monotonic(), end)
        a.send_join()
        a.receive_join(), b.receive_join()
        self.assertEqual(a.heartbeat(), NONE, "while the assignment is awaited")
        self.assertEqual(len((a if a.leader == a.id else b).members), 2)

    def test_b13_follower_waits_for_the_leader(self):
        """No fixed pause; it is answered when the leader's assignment is there."""
        a, b = (self.member(g, version=5) for g in [fresh()] * 2)
        settle([a, b])
        for m in (a, b):
            m.protocols = ("range", "roundrobin")
            m.send_join()
        for m in (a, b):
            self.assertEqual(m.receive_join()["error"], NONE)
        leader, follower = (a, b) if a.leader == a.id else (b, a)
        follower.send_sync()
        self.assertFalse(follower.connection.answered(3.5))
        self.assertEqual(leader.sync({follower.id: b"yours"})["assignment"], b"")
        self.assertEqual(follower.connection.receive()["assignment"], b"yours")

    def test_unchanged_follower_rejoins(self):
        """Answered at once, nothing happens; a leader's rejoin starts a rebalance."""
        members = self.group_of(2, version=5)
        leader = next(m for m in members if m.id == m.leader)
        follower = next(m for m in members if m is not leader)
        follower.send_join()
        answer = follower.receive_join(5)
        self.assertEqual((answer["error"], answer["generation"], answer["members"]), (NONE, leader.generation, []))
        self.assertEqual(leader.heartbeat(), NONE)
        leader.send_join()
        self.assertFalse(leader.connection.answered(0.2))
        self.assertEqual(follower.heartbeat(), REBALANCE)
        follower.send_join()
        self.assertEqual(leader.receive_join(5)["generation"], follower.receive_join(5)["generation"])

    def test_leave_rebalances_at_once(self):
        a, b = self.group_of(2, version=5)
        self.assertEqual(b.leave(), NONE)
        self.assertEqual(a.heartbeat(), REBALANCE)
        a.send_join()
        self.assertEqual([x["member"] for x in a.receive_join(5)["members"]], [a.id])

    def test_b08_leaving_completes_the_join_of_others(self):
        a, b = self.group_of(2, version=5)
        c = self.member(a.group, version=5)
        c.get_id()
        c.send_join()
        while a.heartbeat() != REBALANCE:
            pass
        a.send_join()
        self.assertFalse(a.connection.answered(0.2))
        start = time.monotonic()
        self.assertEqual(b.leave(), NONE)
        self.assertEqual({a.receive_join(5)["error"], c.receive_join(5)["error"]}, {NONE})
        self.assertLess(time.monotonic() - start, 2)

    def test_leave_forms(self):
        m, = self.group_of(1, version=5)
        answer = self.connect().request("LeaveGroup", 5, group=m.group, members=[
            {"member": "nobody", "instance": None, "reason": "r"}, {"member": m.id, "instance": None}, {"member": m.id, "instance": None}])
        self.assertEqual(answer["error"], NONE)
        self.assertEqual([(x["member"], x["error"]) for x in answer["members"]], [("nobody", UNKNOWN_MEMBER), (m.id, NONE), (m.id, UNKNOWN_MEMBER)])
        unknown = fresh()
        self.assertEqual(self.connect().request("LeaveGroup", 0, group=unknown, member="m")["error"], UNKNOWN_MEMBER)

    def test_session_timeout(self):
        """A member that falls silent is removed at its session timeout, not before; the others hear of it."""
        a, b = self.group_of(2, version=5, session_ms=6000)
        start = time.monotonic()
        b.close()
        while a.heartbeat() == NONE:
            self.assertLess(time.monotonic() - start, 9)
            time.sleep(0.05)
        self.assertGreater(time.monotonic() - start, 5.5)
        self.assertEqual(b.heartbeat(self.connect()), UNKNOWN_MEMBER)
        a.send_join()
        self.assertEqual(len(a.receive_join(5)["members"]), 1)

    def test_b04_pending_id_expires(self):
        """An id that was handed out holds the group up for its session timeout at most."""
        a, = self.group_of(1, version=5)
        b = self.member(a.group, version=5, session_ms=6000)
        b.get_id()
        start = time.monotonic()
        a.send_join()
        self.assertEqual(len(a.receive_join(12)["members"]), 1)
        self.assertLess(time.monotonic() - start, 8)

    def test_generations_of_a_group_only_grow(self):
        a, = self.group_of(1, version=5)
        for i in range(5):
            before = a.generation
            settle([a])
            self.assertEqual(a.generation, before + 1)

    def test_many_members(self):
        """30 members of one group: one generation, each its own assignment."""
        members = self.group_of(30, version=5)
        self.assertEqual(len({m.assignment for m in members}), 30)
        for m in members:
            self.assertEqual(m.heartbeat(), NONE)

    def test_many_groups(self):
        """100 groups of one over one connection each."""
        groups = [self.group_of(1, version=5)[0] for _ in range(100)]
        for m in groups:
            self.assertEqual((m.generation, m.heartbeat()), (1, NONE))


class Static(WireCase):
    def test_restart(self):
        """A static member that comes back gets its place: no rebalance, same generation, same assignment."""
        a = self.member(fresh(), version=5, instance="i-a")
        b = self.member(a.group, version=5, instance="i-b")
        settle([a, b])
        leader, follower = (a, b) if a.leader == a.id else (b, a)
        again = self.member(a.group, version=5, instance=follower.instance)
        again.send_join()
        answer = again.receive_join(5)
        self.assertEqual((answer["error"], answer["generation"], answer["members"]), (NONE, follower.generation, []))
        self.assertNotEqual(again.id, follower.id)
        self.assertEqual(again.sync()["assignment"], follower.id.encode())
        self.assertEqual(follower.heartbeat(), FENCED)
        self.assertEqual((again.heartbeat(), leader.heartbeat()), (NONE, NONE))

    def test_restart_of_the_leader(self):
        """Version 9 gets skipAssignment and the members; lower ones another leader's id and none."""
        for version in (5, 8, 9):
            a = self.member(fresh(), version=version, instance="i-a")
            settle([a])
            again = self.member(a.group, version=version, instance="i-a")
            again.send_join()
            answer = again.receive_join(5)
            self.assertEqual((answer["error"], answer["generation"]), (NONE, a.generation))
            if version == 9:
                self.assertTrue(answer["skip_assignment"])
                self.assertEqual(answer["leader"], again.id)
                self.assertEqual([x["instance"] for x in answer["members"]], ["i-a"])
            else:
                self.assertNotEqual(answer["leader"], again.id)
                self.assertEqual(answer["members"], [])
            self.assertEqual(again.sync()["assignment"], a.id.encode())

    @ours("a reference may fence the live member")
    def test_b36_abandoned_join_does_not_fence(self):
        """A join whose connection is gone is not executed after a newer one; the live member is never told 82."""
        a = self.member(fresh(), version=5, instance="i-a")
        settle([a])
        for _ in range(30):
            gone = self.member(a.group, version=5, instance="i-a")
            gone.send_join()
            gone.connection.reset()
            live = self.member(a.group, version=5, instance="i-a")
            live.send_join()
            answer = live.receive_join(5)
            self.assertEqual(answer["error"], NONE)
            self.assertEqual(live.sync()["error"], NONE)
            self.assertEqual(live.heartbeat(), NONE)

    def test_b31_two_unknown_joins(self):
        """The second takes the instance over, the first is told."""
        holder, = self.group_of(1, version=5)
        x = self.member(holder.group, version=5, instance="i")
        x.send_join()
        self.assertFalse(x.connection.answered(0.2))
        y = self.member(holder.group, version=5, instance="i")
        y.send_join()
        self.assertEqual(x.connection.receive(5)["error"], FENCED)
        holder.send_join()
        self.assertEqual(len(holder.receive_join(5)["members"]), 2)
        self.assertEqual(y.receive_join(5)["error"], NONE)


if __name__ == "__main__":
    unittest.main()
