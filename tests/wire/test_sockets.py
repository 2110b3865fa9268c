"""Connections that end in the middle of something, and many of them at once."""

import resource
import selectors
import socket
import time
import unittest

from harness import Counted, NONE, REBALANCE, TOPIC, UNKNOWN_MEMBER, Member, WireCase, address, fresh, ours, settle
from kafka import Closed, decode_response, encode_request, frame


class Sockets(WireCase):
    def ghost(self, group, version):
        """A joiner without a name, parked behind a stable member that does not rejoin."""
        ghost = self.member(group, version=version)
        ghost.send_join()
        self.assertFalse(ghost.connection.answered(0.3), "the join should be parked")
        return ghost

    @ours("a reference keeps the ghost for 300 s")
    def test_unnamed_joiner_disappears(self):
        """A parked join of an unnamed v0-v3 joiner goes with its connection, by FIN, by RST and by half-close; the group forms without it."""
        for version in (0, 1, 3):
            for end in ("close", "reset", "half_close"):
                m = self.group_of(1, version=3)[0]
                ghost = self.ghost(m.group, version)
                self.assertEqual(m.heartbeat(), REBALANCE)
                getattr(ghost.connection, end)()
                time.sleep(0.2)
                m.send_join()
                answer = m.receive_join(5.0)
                self.assertEqual(answer["error"], NONE)
                self.assertEqual([x["member"] for x in answer["members"]], [m.id], "version %d, %s" % (version, end))
                if end == "half_close":
                    self.assertClosed(ghost.connection, "nothing is left to say")

    @ours("a reference keeps the ghosts for 300 s")
    def test_b01_many_ghosts(self):
        """Joins that are tried again and again leave nothing behind."""
        m = self.group_of(1, version=3)[0]
        for i in range(30):
            ghost = self.member(m.group, version=2)
            ghost.send_join()
            if i % 3:
                time.sleep(0.01)
            ghost.connection.reset() if i % 2 else ghost.connection.close()
        time.sleep(0.2)
        m.send_join()
        self.assertEqual([x["member"] for x in m.receive_join(5.0)["members"]], [m.id])

    def test_named_member_tries_again(self):
        """A parked join of a member with an id is lost with its connection, the member is not: it joins again under its id on another one."""
        for end in ("close", "reset"):
            a, b = self.group_of(2, version=5)
            generation = a.generation
            b.protocols = ("range", "roundrobin")
            b.send_join()
            self.assertFalse(b.connection.answered(0.2))
            getattr(b.connection, end)()
            time.sleep(0.1)
            again = self.member(a.group, version=5, protocols=b.protocols)
            again.id = b.id
            again.send_join()
            a.send_join()
            self.assertEqual(a.receive_join(10)["generation"], generation + 1)
            self.assertEqual(again.receive_join(10)["generation"], generation + 1)
            self.assertEqual(again.id, b.id)

    @ours("a reference leaves the older one hanging")
    def test_b16_older_parked_join_is_answered(self):
        """The same member parks twice; the older request is superseded, not left hanging, and the generation rises once."""
        a, b = self.group_of(2, version=5)
        b.protocols = ("range", "roundrobin")
        b.send_join()
        self.assertFalse(b.connection.answered(0.2))
        again = self.member(a.group, version=5, protocols=b.protocols)
        again.id = b.id
        again.send_join()
        b.connection.receive(5.0)
        a.send_join()
        self.assertEqual({a.receive_join(10)["generation"], again.receive_join(10)["generation"]}, {b.generation + 1})

    def test_parked_sync_dropped(self):
        """A follower's parked sync is lost with its connection; the others go on, and it syncs again elsewhere."""
        for end in ("close", "reset"):
            a, b = (self.member(g, version=5) for g in [fresh()] * 2)
            for m in (a, b):
                m.get_id()
            settle([a, b])
            for m in (a, b):
                m.protocols = ("range", "roundrobin")
                m.send_join()
            for m in (a, b):
                self.assertEqual(m.receive_join(10)["error"], NONE)
            leader, follower = (a, b) if a.leader == a.id else (b, a)
            follower.send_sync()
            self.assertFalse(follower.connection.answered(0.2))
            getattr(follower.connection, end)()
            time.sleep(0.05)
            self.assertEqual(leader.sync({leader.id: b"L", follower.id: b"F"})["assignment"], b"L")
            again = self.member(a.group, version=5)
            again.id, again.generation, again.protocol = follower.id, follower.generation, follower.protocol
            self.assertEqual(again.sync()["assignment"], b"F")

    def test_half_close_after_requests(self):
        """All that came before the FIN is answered, then the server closes too."""
        c = self.connect()
        for _ in range(20):
            c.send("Heartbeat", 4, group="g", generation=1, member="m")
        c.half_close()
        for _ in range(20):
            self.assertEqual(c.receive()["error"], UNKNOWN_MEMBER)
        self.assertEqual(c.closed(), "closed")

    def test_half_close_in_the_middle_of_a_frame(self):
        for n in (0, 1, 3, 4, 5, 20):
            c = self.connect()
            c.send_raw(frame(encode_request("Metadata", 1, 1, {}))[:n])
            c.half_close()
            self.assertClosed(c, "%d bytes" % n)

    @ours("a reference answers it when its time has come")
    def test_half_close_with_parked_fetch(self):
        c = self.connect()
        c.send("Fetch", 11, max_wait_ms=20000, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": 0}]}])
        time.sleep(0.1)
        c.half_close()
        start = time.monotonic()
        self.assertClosed(c)
        self.assertLess(time.monotonic() - start, 5)

    def test_reset_with_parked_fetches(self):
        with Counted(self, "session_dropped", 50):
            self.park_and_reset(50)
            time.sleep(0.3)
        self.live.check()

    def park_and_reset(self, times):
        connections = [self.connect() for _ in range(times)]
        for c in connections:
            c.send("Fetch", 11, max_wait_ms=20000, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": 0}]}])
            c.send("Heartbeat", 4, group="g", generation=1, member="m")
        time.sleep(0.3)
        for c in connections:
            c.reset()

    def test_reset_before_the_answer(self):
        for i in range(300):
            c = self.connect()
            for _ in range(i % 7 + 1):
                c.send("Metadata", 9, topics=None)
            c.reset()

    def test_short_lives(self):
        """2,000 connections one after the other."""
        for i in range(2000):
            s = socket.create_connection(address(), 10)
            if i % 4 == 0:
                s.sendall(frame(encode_request("ApiVersions", 0, 1, {})))
                self.assertGreater(len(s.recv(4)), 0)
            s.close()

    def test_a_thousand_at_once(self):
        """1,000 connections opened together, each with ApiVersions and then heartbeats, three rounds, all answered."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 1200:
            self.skipTest("not enough file descriptors allowed here: %d" % hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
        member = self.group_of(1, version=5)[0]
        socks = []
        for _ in range(1000):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(address())
            socks.append(s)
        try:
            self.exchange(socks, "ApiVersions", 3, {})
            for _ in range(3):
                self.exchange(socks, "Heartbeat", 4, {"group": member.group, "generation": member.generation, "member": member.id})
            self.live.check()
        finally:
            for s in socks:
                s.close()

    def exchange(self, socks, name, version, values):
        """One request on each, one good answer from each."""
        waiting = {}
        with selectors.DefaultSelector() as selector:
            for i, s in enumerate(socks):
                waiting[s] = b""
                selector.register(s, selectors.EVENT_WRITE, i)
            end = time.monotonic() + 30
            while waiting:
                self.assertLess(time.monotonic(), end, "%d of %d not answered" % (len(waiting), len(socks)))
                for key, events in selector.select(1.0):
                    s, i = key.fileobj, key.data
                    if events & selectors.EVENT_WRITE:
                        self.assertEqual(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0, "connection %d" % i)
                        s.sendall(frame(encode_request(name, version, i, values)))
                        selector.modify(s, selectors.EVENT_READ, i)
                        continue
                    data = s.recv(65536)
                    if not data:
                        raise Closed(False)
                    waiting[s] += data
                    got = waiting[s]
                    if len(got) >= 4 and len(got) == 4 + int.from_bytes(got[:4], "big"):
                        correlation, answer = decode_response(name, version, got[4:])
                        self.assertEqual((correlation, answer["error"]), (i, NONE))
                        selector.unregister(s)
                        del waiting[s]


if __name__ == "__main__":
    unittest.main()
