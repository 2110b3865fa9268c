"""Random sequences of steps, and what a step becomes when it is played.

A sequence is {seed, actors, steps}. A step is (op, actor, draw): who does what kind of thing, and a number that every further choice is drawn
from. The choice itself is made when the step is played, from what the actor has been told so far, so that the same steps make sense on any
server and stay meaningful when steps are taken out. Equal answers lead to equal choices: two servers that agree are asked the same. A fixed
sequence has steps ("ask", actor, function of the Choice) instead, and ("drop", actor, 0), which closes the actor's connections.

Time goes in slots of SLOT seconds. Steps are sent at the beginning of a slot, ("tick", n, 0) waits for the n-th next. Timeouts are some slots
and a fraction, such that timers, and timers that these start, end within a slot behind its requests: so none races a request.
"""
import random
import struct

from apis import API

SLOT = 2.0
BURST = 0.11  # of a slot: steps are sent no later than this
INITIAL_DELAY = 0.2
SESSIONS = [1.14, 2.14, 3.14, 30, 30, 30]  # slots
JITTER = 0.03  # of a session: those that begin together do not end together, in an order that neither server promises
REBALANCES = [1.22, 2.22, 60, 60]
MIN_SESSION_MS, MAX_SESSION_MS = 300, 600000
MAX_SIZE = 5
METADATA_MAX = 40
TOPICS = {"t": 4, "u": 2}
OFFSETS_TOPIC, PARTITIONS = "__consumer_offsets", 8

PROTOCOLS = [["range"], ["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["roundrobin", "range", "sticky"], ["sticky"]]
COMMON_OPS = ["auto"] * 46 + ["join"] * 12 + ["sync"] * 8 + ["heartbeat"] * 8 + ["leave"] * 6 + ["commit"] * 9 + ["fetch"] * 6 + \
    ["describe"] * 4 + ["list"] * 3 + ["delete"] * 3 + ["offset_delete"] * 4
CATALOG_OPS = ["find", "find", "configs", "configs", "metadata", "list_offsets"]
GROUP_SETTINGS = ["group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.initial.rebalance.delay.ms", "group.max.size",
                  "offset.metadata.max.bytes", "offsets.retention.minutes", "offsets.retention.check.interval.ms", "offsets.topic.num.partitions"]
# What a member may send instead of a subscription: nothing, cut short, followed by more; and such that Kafka's reader throws (known.py).
ODD_METADATA = [b"", b"\0", b"\0\1\0\0\0\1\0\1t", b"\0\1\0\0\0\1\0\1u\0\0\0\1xmore", b"\xff\xff\0\0\0\0\xff\xff\xff\xfe"]
BROKEN_METADATA = [b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff", b"\0\1\0\0\0\1\0\1t\0\0\0\5x"]


def make(seed):
    r = random.Random(seed)
    n = r.choice([1, 2, 2, 3, 3, 3, 4, 5])
    actors = [{"instance": r.choice([None, None, None, f"i{a}", f"i{a}", "i0"]), "offers": r.choice(PROTOCOLS[:5])} for a in range(n)]
    if r.random() < 0.1:
        actors[0]["client_id"] = r.choice([None, ""])
    if r.random() < 0.5:
        for actor in actors:
            actor["offers"] = actors[0]["offers"]
    if r.random() < 0.06:
        for actor in actors:
            actor["type"] = "connect"
    steps = []

    def add(op, actor):
        steps.append((op, actor, r.getrandbits(32)))

    def tick(most=2):
        steps.append(("tick", r.randint(1, most), 0))

    if r.random() < 0.7:  # most interesting things happen to a group that has formed
        who = r.sample(range(n), r.randint(1, n))
        for actor in who:
            add("auto", actor)
            add("auto", actor)
        tick(1)
        if r.random() < 0.85:
            for actor in r.sample(who, len(who)):
                add("auto", actor)
        if r.random() < 0.3:
            tick(1)
    for _ in range(r.randint(1, 5)):
        ops = CATALOG_OPS if r.random() < 0.05 else COMMON_OPS
        for _ in range(r.randint(1, 6)):
            add(r.choice(ops), r.randrange(n))
        tick()
        if r.random() < 0.5:
            for actor in r.sample(range(n), n):
                add("auto", actor)
            if r.random() < 0.5:
                tick(1)
    return {"seed": seed, "actors": actors, "steps": steps}


class Actor:
    """What one client remembers of its answers; the same on both servers as long as these answer the same."""

    def __init__(self, number, spec):
        self.number, self.instance, self.offers = number, spec["instance"], spec["offers"]
        self.client_id = spec.get("client_id", f"a{number}")
        self.type = spec.get("type", "consumer")
        self.member, self.generation, self.old = "", -1, []
        self.protocol = self.leader = None
        self.members, self.want = [], "join"
        self.last = None  # number of its latest membership request

    def learn(self, api, values):
        """An answer to its latest request."""
        error = values["error"]
        if api == "JoinGroup":
            if error in (0, 79):
                self.keep(values["member"])
            if error == 0:
                self.generation, self.protocol, self.leader = values["generation"], values["protocol"], values["leader"]
                self.members, self.want = [m["member"] for m in values["members"]], "sync"
        elif api == "SyncGroup" and error == 0:
            self.want = "stable"
        elif api == "LeaveGroup":
            return
        if error in (25, 82):
            self.keep("")
            self.generation, self.want = -1, "join"
        elif error in (22, 27):
            self.want = "join"

    def keep(self, member):
        if self.member and member != self.member:
            self.old.append(self.member)
        self.member = member


def subscription(topics, r):
    raw = struct.pack(">hi", r.choice([0, 0, 1]), len(topics))
    for topic in topics:
        raw += struct.pack(">h", len(topic)) + topic.encode()
    return raw + struct.pack(">i", -1)


class Choice:
    """Turns one step into (API, version, values), or None when there is nothing to do."""

    def __init__(self, step, actors, group, served, topic_ids, order):
        self.op, number, draw = step
        self.draw = draw
        self.r, self.actors, self.group, self.served, self.topic_ids = random.Random(draw if self.op != "ask" else 0), actors, group, served, topic_ids
        self.actor, self.order = actors[number], order

    def make(self):
        return self.draw(self) if self.op == "ask" else getattr(self, self.op)()

    # ---- parts ----

    def version(self, api):
        return self.r.randint(*self.served[api])

    def wild(self, chance=0.12):
        return self.r.random() < chance

    def member(self, wild):
        own = self.actor.member
        if not wild:
            return own
        other = self.r.choice(self.actors)
        return self.r.choice(["", "no-such-member", other.member, other.member, (self.actor.old or [own])[-1], own])

    def instance(self, wild):
        own = self.actor.instance
        return self.r.choice([None, "no-such-instance", self.r.choice(self.actors).instance, "i0"]) if wild else own

    def generation(self, wild):
        own = self.actor.generation
        return self.r.choice([own - 1, own + 1, -1, 0, 1]) if wild else own

    def group_id(self):
        return "" if self.wild(0.01) else self.group

    def group_ids(self):
        """Of a request that takes several."""
        more = self.r.choice([[], [], [], [], [], [], [""], [self.group + "-other"], [self.group], [self.group + "-other", self.group + "-nowhere"]])
        return [self.group, *more]

    def topics(self, version, by_id_from):
        out = []
        if self.wild(0.02):
            return out
        for topic in self.r.sample(["t", "u", "nowhere"], self.r.choice([1, 1, 2, 3])) if self.wild(0.5) else ["t"]:
            by_id = version >= by_id_from
            known = [0, 1, 1] + ([7, -1] if self.wild(0.2) else [])
            partitions = [self.r.choice(known) for _ in range(self.r.randint(1, 3))] if not self.wild(0.03) else []
            if not self.wild(0.1):
                partitions = list(dict.fromkeys(partitions))
            unknown = bytes(16) if self.wild(0.1) else b"no such topic id"
            key = {"topic_id": self.topic_ids.get(topic, unknown)} if by_id else {"name": topic}
            out.append((key, partitions))
        if self.wild(0.02):  # once more
            out.append((out[0][0], [0, 2]))
        return out

    # ---- membership ----

    def auto(self):
        if self.actor.want == "join":
            return self.join(0.02)
        if self.actor.want == "sync":
            return self.sync(0.02)
        return self.heartbeat(0.02) if self.r.random() < 0.7 else self.commit(0.02)

    def join(self, wildness=0.12):
        r, version = self.r, self.version("JoinGroup")
        names = r.choice(PROTOCOLS) if self.wild(wildness) else self.actor.offers
        topics = r.choice([["t"], ["t", "u"], []]) if self.wild(0.1) else ["t"]
        metadata = subscription(topics, random.Random(self.actor.number if not self.wild(wildness) else r.random()))
        if self.wild(0.02):
            metadata = r.choice(ODD_METADATA * 4 + BROKEN_METADATA)
        instance = self.instance(self.wild(wildness))
        session = r.choice(SESSIONS) + r.uniform(0, JITTER)
        if instance is not None and version >= 5 and not self.wild(0.1):  # a static member comes back with the same settings
            session = SESSIONS[2] if instance == "i0" else SESSIONS[-1]
        session_ms = round(session * SLOT * 1000) if not self.wild(0.02) else r.choice([MIN_SESSION_MS - 1, MAX_SESSION_MS + 1])
        rebalance = r.choice(REBALANCES)
        return "JoinGroup", version, {
            "group": self.group_id(), "session_ms": session_ms, "rebalance_ms": round(rebalance * SLOT * 1000),
            "member": self.member(self.wild(wildness)), "instance": instance,
            "protocol_type": r.choice(["", "connect", "consumer"]) if self.wild(0.02) else self.actor.type,
            "reason": r.choice([None, None, "", "because"]),
            "protocols": [] if self.wild(0.01) else [{"name": n, "metadata": metadata} for n in names]}

    def sync(self, wildness=0.12):
        r, actor, version = self.r, self.actor, self.version("SyncGroup")
        assignments = []
        if actor.leader == actor.member or self.wild(wildness):
            for i, member in enumerate(sorted(actor.members, key=lambda m: self.order.get(m, -1))):
                if not self.wild(0.05):
                    assignments.append({"member": member, "assignment": b"part %d of %d" % (i, actor.generation)})
            if self.wild(0.05):
                assignments.append({"member": "no-such-member", "assignment": b"lost"})
        proto, kind = actor.protocol or None, actor.type
        if self.wild(wildness):
            proto, kind = r.choice([(None, kind), (proto, None), (None, None), ("wrong", kind), (proto, "wrong")])
        return "SyncGroup", version, {
            "group": self.group_id(), "generation": self.generation(self.wild(wildness)), "member": self.member(self.wild(wildness)),
            "instance": self.instance(self.wild(wildness)), "protocol_type": kind, "protocol": proto, "assignments": assignments}

    def heartbeat(self, wildness=0.12):
        return "Heartbeat", self.version("Heartbeat"), {
            "group": self.group_id(), "generation": self.generation(self.wild(wildness)), "member": self.member(self.wild(wildness)),
            "instance": self.instance(self.wild(wildness))}

    def leave(self):
        version = self.version("LeaveGroup")
        if version < 3:
            return "LeaveGroup", version, {"group": self.group_id(), "member": self.member(self.wild())}
        members = []
        for _ in range(self.r.choice([0, 1, 1, 1, 1, 2, 3])):
            members.append({"member": self.member(self.wild(0.3)), "instance": self.instance(self.wild(0.3)), "reason": self.r.choice([None, "because"])})
        return "LeaveGroup", version, {"group": self.group_id(), "members": members}

    # ---- offsets ----

    def commit(self, wildness=0.12):
        r, version = self.r, self.version("OffsetCommit")
        values = {"group": self.group, "generation": self.generation(self.wild(wildness)), "member": self.member(self.wild(wildness)),
                  "instance": self.instance(self.wild(wildness))}
        if self.wild(wildness) or version == 0:  # that one knows no members
            values.update(generation=-1, member="", instance=None)
            if self.wild(0.2):
                values["group"] = self.group + "-other"
        if self.wild(0.5):
            values["retention_ms"] = r.choice([0, 60000, 3600000])
        values["topics"] = [dict(key, partitions=[
            {"index": p, "offset": r.choice([-2, -1]) if self.wild(0.02) else r.randint(0, 1000), "leader_epoch": r.choice([-1, 0, 3]),
             "metadata": r.choice([None, "", "meta", "é" * METADATA_MAX, "é" * (METADATA_MAX + 1), "m" * 41])} for p in partitions])
            for key, partitions in self.topics(version, 10)]
        return "OffsetCommit", version, values

    def fetch(self):
        version = self.version("OffsetFetch")
        topics = [dict(key, partitions=p) for key, p in self.topics(version, 10)] if not (self.wild(0.4) and version >= 2) else None
        if version < 8:
            return "OffsetFetch", version, {"group": self.group, "topics": topics, "require_stable": self.wild(0.3)}
        groups = [{"group": group, "topics": topics if self.wild(0.7) else None} for group in self.group_ids()]
        if self.wild(0.1) and version >= 9:
            groups[0].update(member=self.member(False), epoch=self.generation(self.wild(0.5)))
        return "OffsetFetch", version, {"groups": groups, "require_stable": self.wild(0.3)}

    def offset_delete(self):
        if "OffsetDelete" not in self.served:
            return None
        return "OffsetDelete", self.version("OffsetDelete"), {
            "group": self.group_id(), "topics": [dict(key, partitions=[{"index": i} for i in p]) for key, p in self.topics(0, 1)]}

    # ---- administration ----

    def describe(self):
        if "DescribeGroups" not in self.served:
            return None
        return "DescribeGroups", self.version("DescribeGroups"), {"groups": self.group_ids(), "operations": self.wild(0.3)}

    def list(self):
        if "ListGroups" not in self.served:
            return None
        version = self.version("ListGroups")
        states = self.r.choice([[], [], ["Stable"], ["empty", "PreparingRebalance"], ["COMPLETINGREBALANCE"], ["Dead"], [""], ["nonsense"]])
        types = self.r.choice([[], [], [], ["classic"], ["Consumer"], ["CLASSIC", "share"], [""]])
        return "ListGroups", version, {"states": states, "types": types}

    def delete(self):
        if "DeleteGroups" not in self.served:
            return None
        return "DeleteGroups", self.version("DeleteGroups"), {"groups": self.group_ids()}

    # ---- catalog ----

    def find(self):
        version = self.version("FindCoordinator")
        keys = [self.group] + (["other", ""] if self.wild(0.3) else [])
        kind = 0 if not self.wild(0.2) else self.r.choice([3, 2, 1, -1])
        return "FindCoordinator", version, {"key": self.group, "key_type": kind} if version < 4 else {"keys": keys, "key_type": kind}

    def configs(self):
        version = self.version("DescribeConfigs")
        keys = self.r.sample(GROUP_SETTINGS, self.r.randint(1, len(GROUP_SETTINGS))) + (["nonsense"] if self.wild(0.2) else [])
        resources = [{"type": 4, "name": "1000", "keys": keys}]
        if self.wild(0.3):
            kind, name = self.r.choice([(4, ""), (4, "7"), (4, "x"), (2, "t"), (2, "nowhere"), (2, "bad name"), (32, ""), (0, "x"), (99, "x")])
            resources.append({"type": kind, "name": name, "keys": ["nonsense"]})
        return "DescribeConfigs", version, {"resources": resources, "synonyms": self.wild(0.5)}

    def metadata(self):
        version = self.version("Metadata")
        topics = [{"name": n} for n in self.r.sample(["t", "u", "nowhere", "bad name", OFFSETS_TOPIC], self.r.randint(0, 3))]
        if version >= 12 and self.wild(0.3):
            topics = [{"name": None, "topic_id": self.r.choice([self.topic_ids["t"], b"no such topic id"])}]
        if self.wild(0.2) and version >= 1:
            topics = None
        return "Metadata", version, {"topics": topics, "allow_auto_create": False}

    def list_offsets(self):
        version = self.version("ListOffsets")
        return "ListOffsets", version, {"topics": [{"name": key["name"], "partitions": [
            {"index": i, "timestamp": self.r.choice([-1, -2, 0, 1700000000000]), "leader_epoch": -1} for i in p]}
            for key, p in self.topics(0, 1)]}


APIS = ["JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "OffsetDelete", "DescribeGroups", "ListGroups",
        "DeleteGroups", "FindCoordinator", "DescribeConfigs", "Metadata", "ListOffsets"]
assert set(APIS) <= set(API)
