"""What the wire tests share: where the server is, groups made of raw connections, and a live group that must not notice what else goes on.

Environment: MUSTER_BOOTSTRAP (host:port) and MUSTER_WORKERS (their number), from deploy/with-muster. With WIRE_SCATTER=1 each connection goes to the
next worker in turn, so that most requests are about groups of another one. With WIRE_REFERENCE=1 the server is another implementation of the protocol:
the cases in which we mean to differ, and those that need our namespace, are skipped.
"""

import itertools
import os
import re
import select
import signal
import struct
import threading
import time
import unittest
import uuid

from kafka import API, Connection

TOPIC, PARTITIONS = "orders", 6

NONE, UNKNOWN_TOPIC, UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCE = 0, 3, 25, 22, 27
UNSUPPORTED_VERSION, INVALID_REQUEST, MEMBER_ID_REQUIRED, FENCED, UNKNOWN_TOPIC_ID = 35, 42, 79, 82, 100


def address():
    host, _, port = os.environ["MUSTER_BOOTSTRAP"].rpartition(":")
    return host, int(port)


WORKERS = int(os.environ.get("MUSTER_WORKERS", "1"))
SCATTER = itertools.cycle(range(WORKERS)) if os.environ.get("WIRE_SCATTER") == "1" else itertools.repeat(0)


def connect(worker=None, **kwargs):
    """A connection to this worker; None: the first, or the next one (WIRE_SCATTER)."""
    host, port = address()
    return Connection((host, port + (next(SCATTER) if worker is None else worker)), **kwargs)


REFERENCE = os.environ.get("WIRE_REFERENCE") == "1"


def ours(reason):
    """A case in which we differ from the reference on purpose, or that only our own set-up allows."""
    return unittest.skipIf(REFERENCE, reason)


def server_pid():
    """The server's process: the one that runs MUSTER_BIN in our network namespace."""
    here = os.readlink("/proc/self/ns/net")
    program = os.path.realpath(os.environ.get("MUSTER_BIN") or os.path.join(os.path.dirname(__file__), "../../build/muster"))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == program and os.readlink("/proc/%s/ns/net" % pid) == here:
                return int(pid)
        except OSError:
            pass
    raise AssertionError("the server is gone")


def counters():
    """The server's counters by name, of all workers together; those that are zero are left out, so ask with get()."""
    with open(os.environ["MUSTER_LOG"], errors="replace") as log:
        log.seek(0, os.SEEK_END)
        os.kill(server_pid(), signal.SIGUSR1)
        text, end = "", time.monotonic() + 5
        while time.monotonic() < end:
            time.sleep(0.03)
            more = log.read()
            text += more
            rows = re.findall(r"^stats: worker \d+: (\w+) (\d+)$", text, re.M)
            if rows and not more:
                return {name: sum(int(value) for other, value in rows if other == name) for name, _ in rows}
    raise AssertionError("the server does not print its counters")


class Counted:
    """with Counted(case, "frame_too_large", 3): ... - the counter rises by at least so much meanwhile. Nothing is checked on a reference."""

    def __init__(self, case, name, least=1):
        self.case, self.name, self.least = case, name, least

    def __enter__(self):
        self.before = 0 if REFERENCE else counters().get(self.name, 0)

    def __exit__(self, kind, value, trace):
        if kind is None and not REFERENCE:
            self.case.assertGreaterEqual(counters().get(self.name, 0) - self.before, self.least, self.name)


def fresh(name="group"):
    """A group id that nobody used before."""
    return "%s-%s" % (name, uuid.uuid4().hex[:8])


def subscription(*topics):
    """Consumer protocol subscription, version 0."""
    out = struct.pack(">hi", 0, len(topics))
    for t in topics:
        out += struct.pack(">h", len(t)) + t.encode()
    return out + struct.pack(">i", -1)


class Member:
    """One group member over one raw connection."""

    def __init__(self, group, version=5, instance=None, session_ms=30000, rebalance_ms=30000, client_id="wire-test", protocols=("range",)):
        self.group, self.version, self.instance = group, version, instance
        self.session_ms, self.rebalance_ms, self.protocols = session_ms, rebalance_ms, protocols
        self.connection = connect(client_id=client_id)
        self.id, self.generation, self.leader, self.members, self.assignment = "", -1, None, [], None
        self.protocol = None

    def identity(self, api, version):
        values = {"group": self.group, "member": self.id}
        if any(f.name == "instance" and f.first <= version for f in API[api].request):
            values["instance"] = self.instance
        return values

    def send_join(self):
        values = self.identity("JoinGroup", self.version)
        self.connection.send("JoinGroup", self.version, session_ms=self.session_ms, rebalance_ms=self.rebalance_ms,
                             protocols=[{"name": p, "metadata": subscription(TOPIC)} for p in self.protocols], **values)

    def receive_join(self, timeout=30.0):
        """The answer; a 79 is answered by joining again, and the next answer returned."""
        answer = self.connection.receive(timeout)
        if answer["error"] == MEMBER_ID_REQUIRED:
            self.id = answer["member"]
            self.send_join()
            answer = self.connection.receive(timeout)
        if answer["error"] == NONE:
            self.id, self.generation, self.leader = answer["member"], answer["generation"], answer["leader"]
            self.members, self.protocol = answer["members"], answer["protocol"]
        return answer

    def get_id(self):
        """The MEMBER_ID_REQUIRED round alone."""
        self.send_join()
        answer = self.connection.receive()
        assert answer["error"] == MEMBER_ID_REQUIRED, answer
        self.id = answer["member"]

    def send_sync(self, assignments=None):
        version = 5 if self.version >= 7 else 3 if self.version >= 5 else 0
        values = self.identity("SyncGroup", version)
        if version == 5:
            values.update(protocol_type="consumer", protocol=self.protocol)
        self.connection.send("SyncGroup", version, generation=self.generation,
                             assignments=[{"member": m, "assignment": a} for m, a in (assignments or {}).items()], **values)

    def sync(self, assignments=None):
        self.send_sync(assignments)
        return self.connection.receive()

    def heartbeat(self, connection=None, version=3):
        return (connection or self.connection).request("Heartbeat", version, generation=self.generation,
                                                       **self.identity("Heartbeat", version))["error"]

    def leave(self):
        """LeaveGroup; returns the error."""
        return self.connection.request("LeaveGroup", 1, group=self.group, member=self.id)["error"]

    def close(self):
        self.connection.close()


def readable(members, timeout):
    """Those members for which an answer waits."""
    socks = {m.connection.sock: m for m in members}
    ready, _, _ = select.select(list(socks), [], [], timeout)
    return [socks[s] for s in ready]


def settle(members, timeout=60.0):
    """Joins and syncs all members until they are in one generation; the leader gives each its own id as the assignment."""
    end = time.monotonic() + timeout
    for m in members:
        if not m.id and m.version >= 4 and m.instance is None:
            m.get_id()
    waiting = set(members)
    for m in members:
        m.send_join()
    while waiting:
        assert time.monotonic() < end, "the group did not settle"
        ready = readable(waiting, 0.5)
        for m in ready:
            answer = m.receive_join()
            assert answer["error"] in (NONE, REBALANCE), answer
            waiting.discard(m)
        if not ready and len(waiting) < len(members):
            # those answered are in a generation that the others are not in: they join again
            for m in members:
                if m not in waiting:
                    m.send_join()
            waiting = set(members)
        elif not waiting and len({m.generation for m in members}) != 1:
            waiting = set(members)
            for m in members:
                m.send_join()
    leader = next(m for m in members if m.id == m.leader)
    assert {x["member"] for x in leader.members} == {m.id for m in members}, "the leader's list"
    leader.send_sync({m.id: m.id.encode() for m in members})
    for m in members:
        if m is not leader:
            m.send_sync()
    for m in members:
        answer = m.connection.receive()
        assert answer["error"] == NONE and answer["assignment"] == m.id.encode(), answer
        m.assignment = answer["assignment"]
    return leader


def group_of(count, **kwargs):
    """A settled group of so many members."""
    name = kwargs.pop("group", None) or fresh()
    members = [Member(name, **kwargs) for _ in range(count)]
    settle(members)
    return members


def wait_for_coordinator(group, timeout=30.0):
    """Asks for the coordinator, as clients do, until there is one that answers for the group."""
    end = time.monotonic() + timeout
    with connect() as c:
        while True:
            found = c.request("FindCoordinator", 3, key=group)["error"]
            if found == NONE and c.request("Heartbeat", 3, group=group, generation=1, member="nobody")["error"] == UNKNOWN_MEMBER:
                return
            assert time.monotonic() < end, "no coordinator"
            time.sleep(0.1)


class LiveGroup:
    """A group of two that heartbeats from a thread of its own; whatever else happens, it sees no error, no rebalance, no long wait."""

    INTERVAL, PATIENCE = 0.1, 5.0

    def __init__(self):
        group = fresh("live")
        wait_for_coordinator(group)
        self.members = group_of(2, group=group, session_ms=10000)
        self.beats, self.worst, self.fault = 0, 0.0, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping.wait(self.INTERVAL):
                for m in self.members:
                    start = time.monotonic()
                    m.connection.send("Heartbeat", 3, generation=m.generation, **m.identity("Heartbeat", 3))
                    error = m.connection.receive(self.PATIENCE)["error"]
                    self.worst = max(self.worst, time.monotonic() - start)
                    if error != NONE:
                        raise AssertionError("heartbeat answered %d" % error)
                self.beats += 1
        except Exception as e:  # the main thread reports it
            self.fault = e

    def check(self):
        """At least one more round of heartbeats has been answered, with no fault so far."""
        seen, end = self.beats, time.monotonic() + 2 * self.PATIENCE + 2
        while self.fault is None and self.beats < seen + 2 and time.monotonic() < end:
            time.sleep(0.01)
        if self.fault is not None:
            raise AssertionError("the live group was disturbed: %r" % self.fault)
        if self.beats < seen + 2:
            raise AssertionError("the live group gets no answers")

    def close(self):
        self.stopping.set()
        self.thread.join(10)
        for m in self.members:
            m.close()


class WireCase(unittest.TestCase):
    """A test beside a live group, which is checked after each case."""

    @classmethod
    def setUpClass(cls):
        cls.live = LiveGroup()

    @classmethod
    def tearDownClass(cls):
        cls.live.close()
        print("%s: live group: %d rounds of heartbeats, longest wait %.1f ms" % (cls.__name__, cls.live.beats, cls.live.worst * 1000))

    def setUp(self):
        self.opened = []

    def tearDown(self):
        for c in self.opened:
            c.close()
        self.live.check()

    def connect(self, **kwargs):
        self.opened.append(connect(**kwargs))
        return self.opened[-1]

    def member(self, *args, **kwargs):
        self.opened.append(Member(*args, **kwargs))
        return self.opened[-1]

    def group_of(self, count, **kwargs):
        members = group_of(count, **kwargs)
        self.opened += members
        return members

    def assertServes(self, c, message=None):
        """The connection still answers."""
        self.assertEqual(c.request("ApiVersions", 0)["error"], NONE, message)

    def assertClosed(self, c, message=None, timeout=10.0):
        self.assertIn(c.closed(timeout), ("closed", "reset"), message)
