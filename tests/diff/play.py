"""Plays a sequence against one server and writes down what was answered, and when: a transcript."""
import asyncio
import socket
import struct

import sequences
from apis import API, decode_response, encode_request, frame
from sequences import APIS, BURST, OFFSETS_TOPIC, TOPICS, Actor, Choice

QUICK = 0.005  # s; a request that is unanswered so long is probed for
ANSWER = 15.0  # s; a server that does not answer a probe is broken
AFTER_PROBE = 0.003
PARKED = ("JoinGroup", "SyncGroup")  # no other request waits for anything but the log


class Broken(Exception):
    """The server closed a connection, sent what cannot be decoded, or does not answer at all."""


class Line(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self):
        self.buffer, self.waiting, self.correlation, self.transport, self.lost = bytearray(), None, 0, None, False

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.buffer += data
        while len(self.buffer) >= 4:
            n = struct.unpack_from(">i", self.buffer)[0]
            if len(self.buffer) < 4 + n:
                return
            payload = bytes(self.buffer[4:4 + n])
            del self.buffer[:4 + n]
            waiting, self.waiting = self.waiting, None
            if waiting is not None:
                waiting(payload)

    def connection_lost(self, error):
        self.lost = True
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting(None)

    def ask(self, name, version, values, client_id, done):
        """done(fields) or done(Broken)."""
        self.correlation += 1
        correlation = self.correlation

        def take(payload):
            if payload is None:
                done(Broken(f"{name} {version}: the connection was closed"))
                return
            try:
                got, fields = decode_response(name, version, payload)
            except Exception as e:  # whatever is wrong with it, it is the finding
                done(Broken(f"{name} {version}: {type(e).__name__}: {e}"))
                return
            done(fields if got == correlation else Broken(f"{name} {version}: answer to {got}, not to {correlation}"))

        self.waiting = take
        self.transport.write(frame(encode_request(name, version, correlation, values, client_id)))


class Side:
    """One of the two servers: its address, its free connections, what it serves."""

    def __init__(self, name, address):
        self.name, self.address, self.free = name, address, []
        self.served, self.topic_ids = {}, {}

    async def line(self):
        while self.free:
            line = self.free.pop()
            if not line.lost:
                return line
        _, line = await asyncio.get_running_loop().create_connection(Line, *self.address)
        await self.ask_on(line, "ApiVersions", 0, {})  # before that, what is sent on others may overtake what is sent here
        return line

    def give_back(self, line):
        if line.waiting is not None:
            line.waiting = None
            line.transport.abort()
        elif not line.lost:
            self.free.append(line)

    async def ask(self, name, version, **values):
        line = await self.line()
        got = await self.ask_on(line, name, version, values)
        self.give_back(line)
        return got

    async def ask_on(self, line, name, version, values):
        future = asyncio.get_running_loop().create_future()
        line.ask(name, version, values, "probe", lambda got: future.done() or future.set_result(got))
        try:
            got = await asyncio.wait_for(future, ANSWER)
        except asyncio.TimeoutError:
            raise Broken(f"{self.name} does not answer {name}") from None
        if isinstance(got, Broken):
            raise got
        return got

    async def get_ready(self):
        """Learns what it serves, has the topics made, waits until every coordinator partition answers."""
        apis = {a["key"]: (a["min"], a["max"]) for a in (await self.ask("ApiVersions", 0))["apis"]}
        self.served = {n: (max(apis[API[n].key][0], API[n].lowest), min(apis[API[n].key][1], API[n].highest))
                       for n in [*APIS, "CreateTopics"] if API[n].key in apis}
        if "CreateTopics" in self.served:
            await self.ask("CreateTopics", 4, topics=[{"name": n, "partitions": p} for n, p in TOPICS.items()])
        for _ in range(300):
            try:
                if await self.is_ready():
                    return
            except OSError:
                pass
            await asyncio.sleep(0.2)
        raise Broken(f"{self.name} does not get ready")

    async def is_ready(self):
        for i in range(100):  # groups enough to meet every partition
            if (await self.ask("FindCoordinator", 4, keys=[f"ready-{i}"]))["coordinators"][0]["error"] != 0:
                return False
            if (await self.ask("Heartbeat", 4, group=f"ready-{i}", generation=1, member="m"))["error"] != 25:
                return False
        expected = {**TOPICS, OFFSETS_TOPIC: sequences.PARTITIONS}
        topics = (await self.ask("Metadata", 12, topics=[{"name": n} for n in expected]))["topics"]
        self.topic_ids = {t["name"]: t["topic_id"] for t in topics if t["error"] == 0 and len(t["partitions"]) == expected[t["name"]]}
        return len(self.topic_ids) == len(expected)


class Entry:
    """A request of the transcript."""

    def __init__(self, step, actor, name, version, values, phase):
        self.step, self.actor, self.name, self.version, self.values, self.phase = step, actor, name, version, values, phase
        self.answer, self.answered, self.moment = None, None, None  # fields or Broken; the phase it came in; the loop's time


class Player:
    """One sequence on one server."""

    def __init__(self, side, served, sequence, group):
        self.side, self.served, self.sequence, self.group = side, served, sequence, group
        self.actors = [Actor(i, spec) for i, spec in enumerate(sequence["actors"])]
        self.entries, self.phase, self.late = [], 0, 0.0
        self.partner = self  # the same sequence on the other server
        self.lines = [[] for _ in self.actors]
        self.changed = asyncio.Event()
        self.order = {}  # member id: number of the first JoinGroup that was answered with it

    async def line_of(self, actor):
        for line in self.lines[actor]:
            if line.waiting is None and not line.lost:
                return line
        line = await self.side.line()
        self.lines[actor].append(line)
        return line

    def waiting(self):
        return any(e.answered is None for e in self.entries)

    def only_here(self, entry):
        """An answer that Kafka does not give (known.py has them); the actor does not learn from it, so that both are asked the same."""
        error = entry.answer["error"]
        if entry.answered == entry.phase:
            return False
        if entry.name == "JoinGroup":
            return error == 27
        latest = self.entries[-1]
        return entry.name == "SyncGroup" and (error == 25 or error == 27 and latest.name == "SyncGroup" and latest is not entry and
                                              latest.phase == self.phase and latest.values["member"] == entry.values["member"])

    async def send(self, name, version, values, actor):
        entry = Entry(len(self.entries), actor, name, version, values, self.phase)
        who = self.actors[actor]
        membership = name in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit")
        if membership:
            who.last = entry.step

        def done(got):
            entry.answer, entry.answered, entry.moment = got, self.phase, asyncio.get_running_loop().time()
            if name == "JoinGroup" and isinstance(got, dict):
                self.order.setdefault(got["member"], entry.step)
            if membership and who.last == entry.step and isinstance(got, dict) and "error" in got and not self.only_here(entry):
                who.learn(name, got)
            self.changed.set()

        line = await self.line_of(actor)
        self.entries.append(entry)
        line.ask(name, max(version, self.side.served[name][0]), values, who.client_id, done)
        await self.settle(entry)

    async def settle(self, entry):
        """Until the request is answered or parked for good, and what it set off at once has arrived."""
        end = asyncio.get_running_loop().time() + (QUICK if entry.name in PARKED else ANSWER)
        while entry.answered is None:
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), end - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                break
        probes = 1
        if entry.answered is None:
            probes = 2  # the first may have overtaken it, the second cannot
        elif not self.waiting():
            return
        for _ in range(probes):
            await self.probe()
        await asyncio.sleep(AFTER_PROBE)

    async def play(self):
        """Until the end, or until the timing cannot be trusted any more, which self.late above 1 tells."""
        loop = asyncio.get_running_loop()
        slot_start = loop.time()
        steps = [*self.sequence["steps"], ("tick", 1, 0)]
        for i, (op, number, draw) in enumerate(steps):
            if self.late > 1 or self.partner.late > 1:  # what follows would be for nothing
                break
            self.phase = i
            if op == "tick":
                slot_start += number * sequences.SLOT
                await asyncio.sleep(slot_start - loop.time())
                continue
            self.late = max(self.late, (loop.time() - slot_start) / (BURST * sequences.SLOT))
            if op == "drop":
                await self.drop(number)
                continue
            asked = Choice((op, number, draw), self.actors, self.group, self.served, self.side.topic_ids, self.order).make()
            if asked is not None:
                await self.send(*asked, number)
            self.late = max(self.late, (loop.time() - slot_start) / (BURST * sequences.SLOT))
        else:
            await self.closing(len(steps))
            self.late = max(self.late, (loop.time() - slot_start) / (BURST * sequences.SLOT))
        for lines in self.lines:
            for line in lines:
                self.side.give_back(line)

    async def drop(self, actor):
        """Closes all connections of an actor, whatever waits on them, and lets the server notice."""
        for line in self.lines[actor]:
            line.waiting = None
            line.transport.abort()
        self.lines[actor] = []
        for _ in range(2):
            await self.probe()

    async def probe(self):
        """Returns when everything about the group that was received before is decided and answered."""
        await self.side.ask("OffsetFetch", 7, group=self.group, topics=[{"name": "t", "partitions": [0]}], require_stable=True)

    async def closing(self, phase):
        """What is left of it all: how each actor stands, the group, and every offset."""
        for number, who in enumerate(self.actors):
            self.phase = phase + number
            await self.send("Heartbeat", 4, {"group": self.group, "generation": who.generation, "member": who.member}, number)
        self.phase += 1
        if "DescribeGroups" in self.served:
            await self.send("DescribeGroups", 5, {"groups": [self.group]}, 0)
        await self.send("OffsetFetch", 8, {"groups": [{"group": self.group, "topics": None}]}, 0)
