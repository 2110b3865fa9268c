#!/usr/bin/env python3
"""The commands for a running server, and what a bad client of the admin socket can do: nothing to anybody else. Groups live meanwhile."""
import os
import socket
import stat
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))
from harness import FENCED, ILLEGAL_GENERATION, NONE, REBALANCE, TOPIC, WORKERS, WireCase, connect, counters, fresh, settle  # noqa: E402
from ask import PATH, Raw, ask, items, run  # noqa: E402

NOT_FOUND, UNKNOWN_MEMBER, UNKNOWN_TOPIC, INVALID = 69, 25, 3, 42


def commit(c, group, offset, **identity):
    answer = c.request("OffsetCommit", 7, group=group, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": offset}]}], **identity)
    return answer["topics"][0]["partitions"][0]["error"]


def fetch(c, group):
    return c.request("OffsetFetch", 7, group=group, topics=[{"name": TOPIC, "partitions": [0]}])["topics"][0]["partitions"][0]["offset"]


class Commands(WireCase):
    def test_status(self):
        server, = items("server", "status")
        workers = items("worker", "status")
        self.assertEqual((server["state"], server["durability"], server["workers"]), ("ready", "MEMORY ONLY", WORKERS))
        self.assertIn("MEMORY ONLY", server["log"])
        self.assertEqual([w["worker"] for w in workers], list(range(WORKERS)))
        self.assertEqual({w["state"] for w in workers}, {"polls"})
        self.assertEqual(len({w["port"] for w in workers}), WORKERS)
        self.assertGreaterEqual(sum(w["connections"] for w in workers), 2) # the live group's
        self.assertGreaterEqual(sum(w["members"] for w in workers), 2)
        status, out, _ = run("status")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^durability +MEMORY ONLY$")
        self.assertRegex(out, r"(?m)^worker +node +port +state")

    def test_rates_and_load(self):
        c = self.connect()
        end = time.monotonic() + 2.2
        while time.monotonic() < end:
            for _ in range(20):
                c.request("ApiVersions", 0)
        cores = items("core", "cores", "--show")
        self.assertEqual(len(cores), WORKERS)
        self.assertGreater(cores[0]["requests_per_s"], 100)
        self.assertGreater(cores[0]["busy_permille"], 0)
        self.assertLessEqual(max(core["busy_permille"] for core in cores), 1000)
        self.assertIn("ring_depth", cores[0])

    def test_every_group_is_listed_once(self):
        names = {fresh("listed") for _ in range(600)}
        c = self.connect()
        for name in names:
            self.assertEqual(commit(c, name, 1), NONE)
        live = self.group_of(2)
        found = items("group", "groups")
        listed = [g["group"] for g in found]
        self.assertEqual(len(listed), len(set(listed)))
        self.assertLessEqual(names, set(listed))
        mine, = [g for g in found if g["group"] == live[0].group]
        self.assertEqual((mine["state"], mine["members"], mine["protocol"]), ("Stable", 2, "range"))
        self.assertEqual({g["state"] for g in found if g["group"] in names}, {"Empty"})
        self.assertIn(live[0].group, run("groups")[1])

    def test_why_and_who_is_gone(self):
        a, b = self.group_of(2)
        gone = b.id
        self.assertEqual(b.leave(), NONE)
        found, last = ask("why", a.group)
        self.assertEqual(last["error"], NONE)
        self.assertEqual([i["cause"] for i in found if i["item"] == "rebalance-open"], ["member-left"])
        self.assertIn("member-joined", [i["cause"] for i in found if i["item"] == "rebalance"])
        self.assertEqual([i["member"] for i in found if i["item"] == "removed"], [gone])
        self.assertEqual([i["member"] for i in found if i["item"] == "waiting"], [a.id])
        self.assertEqual([i["member"] for i in items("waiting", "waiting", a.group)], [a.id])
        removed, = items("removed", "why", "--member", gone) # without the group
        self.assertEqual((removed["group"], removed["member"]), (a.group, gone))
        out = run("why", a.group)[1]
        self.assertIn("it waits for:", out)
        self.assertIn("members that are gone:", out)
        self.assertIn(gone, out)
        self.assertEqual(ask("why", "--member", "nobody-ever")[1]["error"], NOT_FOUND)

    def test_release(self):
        m = self.member(fresh(), instance="seat-1")
        settle([m])
        self.assertEqual(ask("release", m.group, "seat-2")[1]["error"], UNKNOWN_MEMBER)
        self.assertEqual(m.heartbeat(), NONE)
        self.assertEqual(ask("release", m.group, "seat-1")[1]["error"], NONE)
        self.assertEqual(m.heartbeat(), FENCED)
        self.assertEqual(items("removed", "why", m.group)[0]["instance"], "seat-1")

    def test_reset_offsets_under_a_live_member(self):
        m, = self.group_of(1)
        identity = {"generation": m.generation, "member": m.id}
        self.assertEqual(commit(m.connection, m.group, 5, **identity), NONE)
        row, = items("offset", "reset-offsets", m.group, TOPIC + ":0=1234567890123")
        self.assertEqual((row["before"], row["offset"]), (5, 1234567890123))
        self.assertEqual(commit(m.connection, m.group, 6, **identity), ILLEGAL_GENERATION)
        self.assertIn(m.heartbeat(), (REBALANCE, ILLEGAL_GENERATION))
        self.assertEqual(fetch(m.connection, m.group), 1234567890123)
        settle([m])
        self.assertEqual(fetch(m.connection, m.group), 1234567890123)

    def test_what_cannot_be_done_is_said(self):
        m, = self.group_of(1)
        for words, error in ((("why", "no-such"), NOT_FOUND), (("waiting", "no-such"), NOT_FOUND), (("release", "no-such", "i"), NOT_FOUND),
                             (("reset-offsets", "no-such", TOPIC + ":0=1"), NOT_FOUND), (("reset-offsets", m.group, "no-topic:0=1"), UNKNOWN_TOPIC),
                             (("reset-offsets", m.group, TOPIC + ":99=1"), UNKNOWN_TOPIC)):
            self.assertEqual(ask(*words)[1]["error"], error, words)
            status, _, err = run(*words)
            self.assertEqual(status, 1)
            self.assertRegex(err, r"^muster: .+\n$")
        self.assertEqual(m.heartbeat(), NONE)
        for words in (("why",), ("release", "g"), ("reset-offsets", "g"), ("reset-offsets", "g", "t0=1"), ("reset-offsets", "g", "t:0=-1"),
                      ("cores",), ("status", "--nonsense"), ("status", "extra")):
            status, out, err = run(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertRegex(err, r"^muster: .+\n$")

    def test_no_server(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gone.sock")
            self.assertIn("there is no such socket", run("status", "--socket", path)[2])
            left = socket.socket(socket.AF_UNIX)
            left.bind(path)
            left.close()
            status, _, err = run("status", "--socket", path)
            self.assertEqual(status, 2)
            self.assertIn("no server listens there", err)
        self.assertEqual(stat.S_IMODE(os.stat(PATH).st_mode), 0o600)
        status, _, err = run("status", user=65534, group=65534, extra_groups=[])
        self.assertEqual(status, 2)
        self.assertIn("no permission", err)
        self.assertIn("name no admin.socket", run("status", "--set", "port=1")[2])
        self.assertEqual(run("status", "--set", "admin.socket=" + PATH)[0], 0)

    def test_strange_names(self):
        for name in ("caf\u00e9 \U0001f600", "line\nfeed\x1b[2J", "\u0130" * 60):
            group = name + fresh()
            self.assertEqual(commit(self.connect(), group, 1), NONE)
            self.assertIn(group, [g["group"] for g in items("group", "groups")])
            self.assertEqual(items("group", "why", group)[0]["group"], group)
            self.assertNotIn("\x1b", run("groups")[1])


class BadClients(WireCase):
    def raw(self, **kwargs):
        self.opened.append(Raw(**kwargs))
        return self.opened[-1]

    def assertServesAdmin(self):
        self.assertEqual(run("status")[0], 0)

    def test_requests_that_are_none(self):
        c = self.raw()
        for data in (b"\n", b"{}\n", b"[]\n", b"null\n", b"7\n", b'{"command":"nonsense"}\n', b'{"command":7}\n', b'{"command":"status","command":"why"}\n',
                     b'{"command":"why","group":"a\\u0000b"}\n', b'{"command":"why","group":7}\n', b'{"command":"why"}\n', b"\xff\xfe\n",
                     b'{"command":"reset-offsets","group":"g","offsets":{}}\n', b'{"command":"reset-offsets","group":"g","offsets":[1]}\n',
                     b'{"command":"reset-offsets","group":"g","offsets":[{"topic":"orders","partition":4294967296,"offset":0}]}\n',
                     b'{"command":"release","group":"g"}\n', b"[" * 100000 + b"\n", os.urandom(5000).replace(b"\n", b"") + b"\n"):
            _, last = c.answer(data)
            self.assertIn(last["error"], (INVALID, UNKNOWN_TOPIC), data[:60])
            self.assertTrue(last["text"], data[:60])
        self.assertEqual(c.answer({"command": "status"})[1]["error"], NONE)

    def test_many_requests_at_once_are_answered_in_order(self):
        c = self.raw()
        c.send(b"".join(b'{"command":"why","group":"none-%d"}\n{"command":"status"}\n' % i for i in range(50)))
        for _ in range(50):
            self.assertEqual(c.line()["error"], NOT_FOUND)
            while not c.line().get("done"):
                pass

    def test_a_request_that_is_too_long(self):
        c = self.raw()
        try:
            c.send(b'{"command":"' + b"x" * (3 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass # it was closed before all was sent
        else:
            self.assertIn(c.line(), (None, {"done": True, "error": INVALID, "text": "the request is longer than 1048576 bytes; send less at once"}))
            self.assertIsNone(c.line())
        self.assertServesAdmin()

    def test_half_a_request_is_not_waited_for(self):
        c = self.raw()
        c.send(b'{"command":"sta')
        start = time.monotonic()
        self.assertIsNone(c.line())
        self.assertLess(time.monotonic() - start, 20)

    def test_clients_that_sit_there_make_room(self):
        sitting = [self.raw() for _ in range(40)]
        self.assertServesAdmin()
        self.assertEqual(sitting[-1].answer({"command": "status"})[1]["error"], NONE)

    def test_a_client_that_does_not_read(self):
        c = self.connect()
        for _ in range(300):
            commit(c, fresh("x" * 200), 1)
        lazy = [self.raw() for _ in range(4)]
        for client in lazy:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.send(b'{"command":"groups"}\n' * 200)
        time.sleep(1)
        before = counters()["worker_told"]
        for _ in range(5):
            self.assertServesAdmin()
            time.sleep(0.2)
        self.assertEqual(counters()["worker_told"], before) # nothing is asked for who does not read
        for client in lazy:
            client.close()
        self.assertServesAdmin()

    def test_clients_that_go_in_the_middle(self):
        for i in range(50):
            c = self.raw()
            c.send(b'{"command":"groups"}\n{"command":"why","group":"g"}\n')
            if i % 2:
                c.line()
            c.close()
        self.assertServesAdmin()
        connect().close()


if __name__ == "__main__":
    unittest.main()
