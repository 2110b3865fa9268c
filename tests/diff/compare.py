"""Compares two transcripts of one sequence, field by field, and tells the first difference.

What each server makes up by itself is turned into symbols first: member ids into m<number of the JoinGroup that gave it>, topic ids into names,
the server's own address into "here", the group's id into "group". Lists whose order means nothing are sorted.
"""
import re
import struct

from play import Broken

MEMBER_ID = re.compile(r"^(.*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


HOSTS = ("/127.0.0.1", "/10.77.0.1")  # what Kafka and Muster see of us
MOMENT = 0.05  # s; timers of so little difference ended together


class Difference:
    """What the two servers say to request `step`; `field` is where they part ("" for the whole answer, "phase" for when it came)."""

    def __init__(self, step, entry, field, kafka, muster):
        self.step, self.entry, self.field, self.kafka, self.muster = step, entry, field, kafka, muster
        self.kafka_entry, self.muster_entry, self.kafka_entries, self.muster_entries = None, None, None, None
        self.steps = []  # ops of the sequence, by phase

    def phase(self):
        """When the answers parted."""
        phases = [e.answered for e in (self.kafka_entry, self.muster_entry) if e is not None and e.answered is not None]
        return min(phases) if phases and self.field != "request" else self.entry.phase

    def at_an_edge(self):
        """Both answers came in the same moment, but one before the end of a slot, the other behind it."""
        entries = self.kafka_entry, self.muster_entry
        if self.field != "phase" or any(e.answered is None for e in entries) or abs(entries[0].moment - entries[1].moment) > MOMENT:
            return False
        waited = [e.answered < len(self.steps) and self.steps[e.answered] == "tick" for e in entries]
        return waited[0] != waited[1]

    def cause(self):
        """(Kafka's, Muster's) entry of the request that was sent then, or None when time brought it."""
        return next(((k, m) for k, m in zip(self.kafka_entries, self.muster_entries) if k.phase == self.phase()), None)

    def signature(self):
        """The same for differences of the same kind: without the symbols of members."""
        field = re.sub(r"\[\d+\]", "[]", self.field)
        if field == "phase":
            when = [(e.answered is None and "never") or f"{brief(a)} at a {(self.steps + ['last'] * 99)[e.answered]}"
                    for e, a in ((self.kafka_entry, self.kafka), (self.muster_entry, self.muster))]
            return f"{self.entry.name} answered: Kafka {when[0]}, Muster {when[1]}"
        if field == "request":
            return "asked differently"
        return re.sub(r"\bm\d+:[ai]\d\b", "m", f"{self.entry.name} {field}: Kafka {self.kafka!r}, Muster {self.muster!r}")[:300]


def brief(answer):
    return "never" if answer is None else "error %s" % answer["error"] if "error" in answer else "an answer"


def subscription(metadata):
    """A whole subscription without user data as "v0(t+u)", or None."""
    try:
        version, count = struct.unpack_from(">hi", metadata)
        names, at = [], 6
        for _ in range(count):
            size = struct.unpack_from(">h", metadata, at)[0]
            names.append(metadata[at + 2:at + 2 + size].decode())
            at += 2 + size
        whole = metadata[at:] == b"\xff\xff\xff\xff" and count >= 0
        return f"v{version}({'+'.join(names)})" if whole else None
    except (struct.error, UnicodeDecodeError):
        return None


def short(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={short(v)}" for k, v in value.items() if v not in (None, "", [], b"") or k == "error") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(short(v) for v in value) + "]"
    return str(value) if not isinstance(value, bytes) else subscription(value) or repr(value)[1:]


class Names:
    """The symbols of one transcript."""

    def __init__(self, player):
        self.group, self.members = player.group, {}
        self.topics = {i: n for n, i in player.side.topic_ids.items()}
        self.address = player.side.address
        for entry in sorted((e for e in player.entries if e.answered is not None), key=lambda e: (e.answered, e.step)):
            if entry.name == "JoinGroup" and isinstance(entry.answer, dict) and MEMBER_ID.match(entry.answer["member"]):
                self.members.setdefault(entry.answer["member"], f"m{entry.step}:{MEMBER_ID.match(entry.answer['member'])[1]}")

    def of(self, value, key=None):
        if isinstance(value, dict):
            out = {k: self.of(v, k) for k, v in value.items()}
            if "host" in out and "port" in out:
                if (out["host"], out["port"]) == self.address:
                    out["host"] = out["port"] = "here"
            if out.get("internal") and "topic_id" in out:
                out["topic_id"] = "of the internal topic"  # each server's own
            return out
        if isinstance(value, list):
            out = [self.of(v, key) for v in value]
            if key in ("members", "groups", "assignments", "configs") and all(isinstance(v, dict) for v in out):
                out.sort(key=lambda v: (str(v.get("member", v.get("group", v.get("name")))), str(v)))
            elif key == "topics" and all(isinstance(v, dict) for v in out):
                out.sort(key=lambda v: (str(v.get("name")), str(v.get("topic_id"))))
            elif key in ("partitions", "results"):
                out.sort(key=str)
            return out
        if key == "host" and value in HOSTS:
            return "our host"
        if key == "topic_id":
            return self.topics.get(value, value)
        if isinstance(value, str):
            if value in self.members:
                return self.members[value]
            if value in (self.group, self.group + "-other", self.group + "-nowhere"):
                return "group" + value[len(self.group):]
            if MEMBER_ID.match(value) and key in ("member", "leader"):
                return "unnamed:" + MEMBER_ID.match(value)[1]
        return value

    def answer(self, entry):
        if isinstance(entry.answer, Broken):
            return {"broken": str(entry.answer)}
        value = entry.answer
        if entry.name == "ListGroups":
            value = dict(value, groups=[g for g in value["groups"] if g["group"] in (self.group, self.group + "-other")])
        return self.of(value)

    def request(self, entry):
        return f"{entry.name} {entry.version} {short(self.of(entry.values))}"


def names_of(kafka, muster):
    """Both sides' symbols; a member that only one of them ever told its id has none."""
    names = Names(kafka), Names(muster)
    both = set(names[0].members.values()) & set(names[1].members.values())
    for side in names:
        side.members = {member: symbol for member, symbol in side.members.items() if symbol in both}
    return names


def first_path(a, b, path=""):
    """(path, a's, b's) of the first place where they differ, or None."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            found = first_path(a.get(key, "absent"), b.get(key, "absent"), f"{path}.{key}" if path else key)
            if found:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            found = first_path(x, y, f"{path}[{i}]")
            if found:
                return found
        return None
    return None if a == b and type(a) is type(b) else (path, a, b)


def compare(kafka, muster, known):
    """(the first unexplained Difference or None, names of the known differences met, whether one of them ended the comparison)."""
    names = names_of(kafka, muster)
    met = []
    for difference in differences(kafka, muster, names):
        entry = next((k for k in known if k.explains(difference)), None)
        if entry is None:
            return difference, met, False
        met.append(entry.name)
        if entry.ends:
            return None, met, True
    return None, met, False


def differences(kafka, muster, names):
    """Every difference in the order of time, as long as the two were asked the same."""
    never = 1 << 30
    pairs = list(zip(kafka.entries, muster.entries))
    asked = len(pairs)
    for i, (k, m) in enumerate(pairs):
        if names[0].request(k) != names[1].request(m):  # follows from an earlier difference, or from one that time brought
            asked = i
            break
    steps = [s[0] for s in kafka.sequence["steps"]] + ["tick"]
    when = sorted(pairs[:asked], key=lambda p: (min(never if e.answered is None else e.answered for e in p), p[0].step))
    for k, m in when:
        out = None
        if k.answered != m.answered:
            out = Difference(k.step, k, "phase", None if k.answered is None else names[0].answer(k),
                             None if m.answered is None else names[1].answer(m))
        elif k.answered is not None:
            a, b = names[0].answer(k), names[1].answer(m)
            found = first_path(a, b)
            if found:
                out = Difference(k.step, k, *found)
        if out is not None:
            out.steps = steps
            out.kafka_entry, out.muster_entry, out.kafka_entries, out.muster_entries = k, m, kafka.entries, muster.entries
            yield out
    if asked < max(len(kafka.entries), len(muster.entries)):
        k, m = (p.entries[asked] if asked < len(p.entries) else None for p in (kafka, muster))
        texts = [names[i].request(e) if e else "nothing" for i, e in enumerate((k, m))]
        out = Difference(asked, k or m, "request", *texts)
        out.steps = steps
        out.kafka_entry, out.muster_entry, out.kafka_entries, out.muster_entries = k, m, kafka.entries, muster.entries
        yield out


def story(kafka, muster):
    """The two transcripts, side by side, as lines; what both answer alike at the closing is left out."""
    names = names_of(kafka, muster)
    lines = []
    steps = [*kafka.sequence["steps"], ("tick", 1, 0)]
    events = {}
    for k, m in zip(kafka.entries, muster.entries):
        asked = [names[i].request(e) for i, e in enumerate((k, m))]
        if asked[0] != asked[1]:
            events.setdefault(k.phase, []).append(f"    !! {k.step} is {asked[0]} to Kafka, {asked[1]} to Muster")
            break
        answers = [None if e.answered is None else short(names[i].answer(e)) for i, e in enumerate((k, m))]
        alike = k.answered == m.answered and answers[0] == answers[1]
        if alike and k.phase >= len(steps):
            continue
        events.setdefault(k.phase, []).append(f"  {k.step:2d} a{k.actor} {asked[0]}")
        if alike:
            if k.answered is not None:
                events.setdefault(k.answered, []).append(f"       both to {k.step}: {answers[0]}")
            continue
        for who, e, text in (("Kafka", k, answers[0]), ("Muster", m, answers[1])):
            if e.answered is None:
                events.setdefault(1 << 30, []).append(f"    !! {who} never answers {k.step}")
            else:
                events.setdefault(e.answered, []).append(f"    !! {who} to {k.step}: {text}")
    for phase in sorted({*events, *(i for i, step in enumerate(steps) if step[0] == "tick")}):
        if phase < len(steps) and steps[phase][0] == "tick":
            lines.append(f"  -- {steps[phase][1]} slot(s) pass")
        lines += events.get(phase, [])
    return lines
