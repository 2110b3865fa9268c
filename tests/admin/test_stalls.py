#!/usr/bin/env python3
"""One thread of the server stands still, the others do not: a worker is named, nobody who came through it is lost, and housekeeping can be missed."""
import os
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))
from harness import NONE, WORKERS, LiveGroup, address, connect, counters, fresh, settle, Member  # noqa: E402
from ask import Raw, ask, items, run  # noqa: E402
from thread import Stopped, may_stop, thread_named, worker_thread  # noqa: E402

TIMED_OUT = 7
SESSION_S = 3.0  # group.min.session.timeout.ms allows it


def owner(group):
    with connect(0) as c:
        return c.request("FindCoordinator", 3, key=group)["port"] - address()[1]


def group_of(worker):
    while True:
        name = fresh("owned")
        if owner(name) == worker:
            return name


def log_text():
    with open(os.environ["MUSTER_LOG"], errors="replace") as log:
        return log.read()


def wait_for(what, seconds=10):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def member_at(worker, group):
    m = Member(group, session_ms=int(SESSION_S * 1000), rebalance_ms=60000)
    m.connection.close()
    m.connection = connect(worker)
    settle([m])
    return m


def serves(worker):
    """Whether a new connection is answered. Those whose frames the device puts into the queue of a worker that stands still are not: nobody else
    reads that queue."""
    try:
        with connect(worker, timeout=0.7) as c:
            return c.request("ApiVersions", 0)["error"] == NONE
    except OSError:
        return False


def send_heartbeat(m):
    m.connection.send("Heartbeat", 3, generation=m.generation, **m.identity("Heartbeat", 3))


@unittest.skipUnless(may_stop(), "ptrace is not allowed here")
class Stalls(unittest.TestCase):
    def test_housekeeping_that_stands_still_is_not_missed(self):
        live = LiveGroup()
        try:
            house = thread_named("muster-house")
            client = Raw(timeout=20)
            stalls = {w["stalls"] for w in items("worker", "status")}
            with Stopped(house):
                client.send({"command": "status"})
                before = live.beats
                time.sleep(2.5)
                live.check()
                self.assertGreater(live.beats - before, 10)
            self.assertEqual(client.line()["item"], "server") # it goes on where it was
            client.close()
            self.assertEqual({w["state"] for w in items("worker", "status")}, {"polls"}) # and blames nobody
            self.assertEqual({w["stalls"] for w in items("worker", "status")}, stalls)
            live.check()
        finally:
            live.close()

    def test_a_worker_that_stands_still_is_named(self):
        worker = WORKERS - 1
        group = group_of(worker)
        before = items("worker", "status")[worker]["stalls"]
        with Stopped(worker_thread(worker)):
            wait_for(lambda: "muster: WORKER %d STANDS STILL: it has not polled for" % worker in log_text())
            line = re.findall(r"WORKER %d STANDS STILL: (.*)" % worker, log_text())[-1]
            self.assertRegex(line, r"^it has not polled for \d+ ms, in stage [a-z-]+, thread \d+ in state t$")
            states = {w["worker"]: w for w in items("worker", "status")} # what is seen from outside is told all the same
            self.assertEqual(states[worker]["state"], "STANDS STILL")
            self.assertGreaterEqual(states[worker]["silent_ms"], 1000)
            self.assertEqual({w["state"] for n, w in states.items() if n != worker}, set() if WORKERS == 1 else {"polls"})
            last = ask("why", group)[1]
            self.assertEqual(last["error"], TIMED_OUT)
            self.assertIn("worker %d has not answered in time: it has not polled" % worker, last["text"])
        wait_for(lambda: "muster: worker %d polls again after" % worker in log_text())
        states = {w["worker"]: w for w in items("worker", "status")}
        self.assertEqual((states[worker]["state"], states[worker]["stalls"]), ("polls", before + 1))
        self.assertNotEqual(ask("why", group)[1]["error"], TIMED_OUT)
        self.assertEqual(run("status")[0], 0)

    def test_questions_to_a_worker_that_stands_still_are_bounded(self):
        group = group_of(WORKERS - 1)
        with Stopped(worker_thread(WORKERS - 1)):
            for _ in range(6): # those that leave keep their places until the worker is back
                clients = [Raw() for _ in range(15)]
                for c in clients:
                    c.send({"command": "why", "group": group})
                time.sleep(0.1)
                for c in clients:
                    c.close()
            last = ask("why", group)[1]
            self.assertIn("has too many questions to answer already", last["text"])
        wait_for(lambda: "too many" not in ask("why", group)[1]["text"])

    @unittest.skipIf(WORKERS == 1, "needs several workers")
    def test_members_behind_a_worker_that_stands_still_are_not_expired(self):
        at, of = 1, 2
        behind, beside = member_at(at, group_of(of)), member_at(of, group_of(of))
        silent = member_at(of, group_of(of))
        before, stop = counters(), threading.Event()

        def beat():
            while not stop.wait(1.0):
                assert beside.heartbeat() == NONE
        beating = threading.Thread(target=beat)
        beating.start()
        with Stopped(worker_thread(at)):
            start = time.monotonic()
            send_heartbeat(behind)
            time.sleep(SESSION_S + 3)
        self.assertEqual(behind.connection.receive(30)["error"], NONE)
        self.assertGreater(time.monotonic() - start, SESSION_S + 2)
        self.assertEqual(behind.heartbeat(), NONE) # in its generation: there was no rebalance
        after = counters()
        self.assertGreater(after.get("forward_stalls", 0), before.get("forward_stalls", 0))
        told = r"event=other-worker-stood-still lost_ms=\d+ held_ms=\d+ node=%d other=%d" % (1000 + of, at)
        wait_for(lambda: re.search(told, log_text()))
        # held, not forgotten: who is really silent goes when everybody could have been heard
        end = time.monotonic() + 3 * SESSION_S + 10
        while silent.id not in [i["member"] for i in items("removed", "why", silent.group)]:
            self.assertLess(time.monotonic(), end)
            self.assertEqual(behind.heartbeat(), NONE)
            time.sleep(0.5)
        stop.set()
        beating.join()
        self.assertEqual((behind.heartbeat(), beside.heartbeat()), (NONE, NONE))
        self.assertNotEqual(silent.heartbeat(), NONE)

    @unittest.skipIf(WORKERS == 1, "needs several workers")
    def test_requests_wait_for_an_owner_that_stands_still(self):
        at, of = 1, 2
        m = member_at(at, group_of(of))
        with Stopped(worker_thread(of)):
            send_heartbeat(m)
            self.assertGreater(sum(serves(at) for _ in range(8)), 0) # the others serve on
            time.sleep(SESSION_S + 2)
        self.assertEqual(m.connection.receive(30)["error"], NONE)
        self.assertEqual(m.heartbeat(), NONE)


if __name__ == "__main__":
    unittest.main()
