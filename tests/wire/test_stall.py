"""The server stands still for longer than the members' sessions: nobody is expired who could not be heard meanwhile.

A group of STALL_MEMBERS (1,000) with sessions of 6 s, one connection each, every member one heartbeat in flight as real clients have it. SIGSTOP for
STALL_SECONDS (13), SIGCONT; then every member's heartbeat must be answered without error, so no rebalance and no expiry. Half of the frames do not
fit into the receive queue of a host that does not read: they come when the client's TCP sends them again.
"""

import os
import resource
import selectors
import signal
import struct
import time
import unittest

from harness import Member, counters, fresh, ours, server_pid, settle, wait_for_coordinator

MEMBERS = int(os.environ.get("STALL_MEMBERS", "1000"))
SECONDS = float(os.environ.get("STALL_SECONDS", "13"))
SESSION_S, INTERVAL_S = 6.0, 2.0


class Beats:
    """All members' heartbeats from one thread."""

    def __init__(self, members):
        self.selector = selectors.DefaultSelector()
        self.members, self.bytes, self.count, self.sent, self.longest = members, {}, {}, {}, 0.0
        start = time.monotonic()
        self.due = {m: start + INTERVAL_S * i / len(members) for i, m in enumerate(members)}
        for m in members:
            m.connection.sock.setblocking(False)
            self.selector.register(m.connection.sock, selectors.EVENT_READ, m)
            self.bytes[m], self.count[m] = b"", 0

    def send_due(self, now):
        for m in self.members:
            if self.due[m] is not None and self.due[m] <= now:
                m.connection.send("Heartbeat", 3, generation=m.generation, **m.identity("Heartbeat", 3))
                self.due[m], self.sent[m] = None, now

    def receive(self, m, now):
        data = m.connection.sock.recv(4096)
        if not data:
            raise AssertionError("the server closed a connection")
        self.bytes[m] += data
        while len(self.bytes[m]) >= 14: # length, correlation id, throttle time, error
            size, error = struct.unpack(">i", self.bytes[m][:4])[0], struct.unpack(">h", self.bytes[m][12:14])[0]
            if size != 10 or error != 0:
                raise AssertionError("heartbeat %d of a member answered %d" % (self.count[m], error))
            self.bytes[m] = self.bytes[m][14:]
            self.count[m] += 1
            self.longest = max(self.longest, now - self.sent[m])
            self.due[m] = now + INTERVAL_S

    def run(self, seconds, until=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            now = time.monotonic()
            self.send_due(now)
            for key, _ in self.selector.select(0.02):
                self.receive(key.data, now)


class Stall(unittest.TestCase):
    @ours("needs our process")
    def test_a_stopped_server_expires_nobody(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, MEMBERS + 256)), hard))
        group = fresh("stall")
        wait_for_coordinator(group)
        members = [Member(group, session_ms=int(SESSION_S * 1000), rebalance_ms=60000) for _ in range(MEMBERS)]
        settle(members)
        beats = Beats(members)
        beats.run(INTERVAL_S * 1.5)
        self.assertGreaterEqual(min(beats.count.values()), 1)
        before = counters()
        pid = server_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            beats.run(SECONDS)
        finally:
            os.kill(pid, signal.SIGCONT)
        resumed, mark = time.monotonic(), dict(beats.count)
        beats.run(2 * SECONDS + 10, until=lambda: all(beats.count[m] >= mark[m] + 2 for m in members))
        took = time.monotonic() - resumed
        self.assertTrue(all(beats.count[m] >= mark[m] + 2 for m in members), "not all members are heard again")
        after = counters()
        self.assertEqual(after.get("group_rebalances", 0), before.get("group_rebalances", 0))
        self.assertEqual(after.get("group_expired", 0), 0)
        self.assertGreaterEqual(after.get("worker_lost_us", 0), (SECONDS - 1) * 1e6)
        print("%d members, server stopped for %.1f s: all heard twice within %.1f s; longest wait %.1f s; %d expiries held" %
              (MEMBERS, SECONDS, took, beats.longest, after.get("group_expiries_held", 0)))
        for m in members:
            m.close()


if __name__ == "__main__":
    unittest.main()
