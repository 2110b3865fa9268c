"""The crash rig: the server is killed at random moments under load, and after each start a ledger kept outside is compared. Run by
deploy/with-muster --durable.

usage: crash.py [--kills N] [--seed N] [--cleaning]

Load: groups of raw members that join, sync, commit and rebalance over and over; consumers of librdkafka and kafka-python that commit as
fast as they can; groups that are written once and left alone (quiet.py). Compared: every acknowledged commit is there or was overwritten by a later one that was sent; every acknowledged assignment is handed
out again, byte by byte, in the generation it was given in, unless a later one was sent; nothing else is there; no offset goes back.
Prints one line at the end, and one for every hundred kills.

With --cleaning, for a server that cleans its log all the time, every second kill comes about when a cleaned file has got its name, while the files that it
stands for are being removed; and it fails when no cleaned file was seen, or none of them or of the segments was ever removed.
"""
import argparse
import importlib.util
import os
import random
import subprocess
import sys
import threading
import time

from ledger import LEDGERS, PARTITIONS, TOPIC, Wrong
from log_folder import LogFolder
from quiet import Quiet


def wire_module():
    """tests/wire/kafka.py, which shares its name with the package of kafka-python."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "wire", "kafka.py")
    spec = importlib.util.spec_from_file_location("wire_kafka", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Closed, Connection = (lambda wire: (wire.Closed, wire.Connection))(wire_module())
HOST, PORT = os.environ["MUSTER_BOOTSTRAP"].rsplit(":", 1)
BROKEN = (Closed, TimeoutError, OSError)
ANSWER_SECONDS, JOIN_SECONDS, SESSION_SECONDS, AGAIN_SECONDS = 3, 10, 60, 0.3
NONE, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, MEMBER_ID_REQUIRED = 0, 22, 25, 27, 79


class Interrupted(Exception):
    """The server died, or the group must begin anew."""


class Starts:
    """Counts the starts of the server; odd while it is down."""
    number = 0


class Member:
    def __init__(self):
        self.id, self.generation, self.leader, self.others, self.connection = "", -1, "", [], None
        self.start = 0  # that the connection belongs to

    def receive(self, timeout=ANSWER_SECONDS):
        end = time.monotonic() + timeout
        try:
            while not self.connection.answered(0.05):
                if Starts.number != self.start or time.monotonic() > end:
                    raise Interrupted
            return self.connection.receive(timeout)
        except BROKEN as e:
            raise Interrupted from e

    def answered(self):
        try:
            if Starts.number != self.start:
                raise Interrupted
            return self.connection.answered(0.01)
        except BROKEN as e:
            raise Interrupted from e

    def ask(self, name, version, timeout=ANSWER_SECONDS, **values):
        self.send(name, version, **values)
        return self.receive(timeout)

    def send(self, name, version, **values):
        try:
            self.connection.send(name, version, **values)
        except BROKEN as e:
            raise Interrupted from e

    def send_join(self, group):
        self.send("JoinGroup", 5, group=group, session_ms=SESSION_SECONDS * 1000, rebalance_ms=60000, member=self.id, instance=None,
                  protocols=[{"name": "range", "metadata": b"m"}])


class RawGroup:
    """One group in a thread of its own. What was sent and what was acknowledged survives every crash; connections do not."""

    def __init__(self, name, count, seed):
        self.name, self.random = name, random.Random(seed)
        self.members = [Member() for _ in range(count)]
        self.acked = {}  # member id -> (generation, assignment)
        self.sent = {}   # generation -> {member id: assignment}, of every leader's SyncGroup
        self.sent_offset, self.acked_offset, self.seen_offset = dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, -1)
        self.syncs = self.commits = self.checks = self.compared = 0
        self.looked = 0  # at the server of that start
        self.leaving = set()  # ids whose LeaveGroup was not answered: they would hold up every join phase for a session
        self.wrong = None

    def run(self, stop):
        try:
            while not stop.is_set():
                try:
                    start = Starts.number
                    if start % 2 == 1:
                        time.sleep(0.01)
                        continue
                    self.connect()
                    if start != self.looked:  # nobody but us moves the group: it must be as it was
                        self.check()
                        self.looked = start
                    while not stop.is_set():
                        self.live()
                except Interrupted:
                    pass
        except Exception as wrong:  # pylint: disable=broad-except
            self.wrong = wrong

    def connect(self):
        for m in self.members:
            if m.connection is not None:
                m.connection.close()
            m.connection = None
            try:
                m.connection, m.start = Connection((HOST, int(PORT)), timeout=ANSWER_SECONDS), Starts.number
            except OSError as e:
                time.sleep(0.02)
                raise Interrupted from e

    # ---- what the server must still know ----

    def handed_out(self, member, generation):
        """The assignment that the server has for the member in that generation; None: it is in another one."""
        answer = self.members[0].ask("SyncGroup", 0, group=self.name, generation=generation, member=member, assignments=[])
        if answer["error"] == NONE:
            return answer["assignment"]
        if answer["error"] in (ILLEGAL_GENERATION, UNKNOWN_MEMBER):
            return None
        raise Wrong(f"{self.name}: SyncGroup of {member} in {generation} is answered {answer['error']}")

    def check(self):
        newest = max([g for g, _ in self.acked.values()], default=-1)
        at = None
        for generation in sorted((g for g in self.sent if g > newest), reverse=True):  # sent, never acknowledged: there as a whole, or not at all
            found = {m: self.handed_out(m, generation) for m in self.sent[generation]}
            if any(a is not None for a in found.values()):
                if found != self.sent[generation]:
                    raise Wrong(f"{self.name}: generation {generation} holds {found}, sent was {self.sent[generation]}")
                at = generation
                break
        for member, (generation, assignment) in list(self.acked.items()):
            if generation != newest or at is not None:
                continue
            found = self.handed_out(member, generation)
            if found is None:
                raise Wrong(f"LOST: {self.name}: {member} was given {assignment} in generation {generation}, the server does not know it")
            if found != assignment:
                raise Wrong(f"INVENTED: {self.name}: {member} was given {assignment} in generation {generation}, the server says {found}")
            self.compared += 1
        self.check_offsets()
        self.checks += 1

    def check_offsets(self):
        answer = self.members[0].ask("OffsetFetch", 5, group=self.name, topics=[{"name": TOPIC, "partitions": list(PARTITIONS)}])
        for p in answer["topics"][0]["partitions"]:
            n, offset = p["index"], p["offset"]
            if self.acked_offset[n] > 0 and offset < self.acked_offset[n]:
                raise Wrong(f"LOST: {self.name}-{n} is {offset}, {self.acked_offset[n]} was acknowledged")
            if offset > self.sent_offset[n]:
                raise Wrong(f"INVENTED: {self.name}-{n} is {offset}, {self.sent_offset[n]} was sent")
            if offset < self.seen_offset[n]:
                raise Wrong(f"BACK: {self.name}-{n} is {offset}, {self.seen_offset[n]} was read before")
            self.seen_offset[n] = offset

    # ---- the life of the group ----

    def live(self):
        self.leave()
        dice = self.random.random()
        if dice < 0.3 or any(m.generation < 0 for m in self.members):
            if dice < 0.1:
                self.replace()
            self.rebalance()
        elif dice < 0.8:
            self.commit()
        else:
            for m in self.members:
                if m.ask("Heartbeat", 3, group=self.name, generation=m.generation, member=m.id, instance=None)["error"] != NONE:
                    self.begin_anew()

    def begin_anew(self):
        """The members' last generation was not the one that the server has: they join again."""
        for m in self.members:
            m.generation = -1
        raise Interrupted

    def replace(self):
        m = self.random.choice(self.members)
        if m.id:
            gone, m.id, m.generation = m.id, "", -1
            self.acked.pop(gone, None)  # from now on it may be there or not
            for others in self.members:
                others.generation = -1
            self.leaving.add(gone)
            self.leave()

    def leave(self):
        for gone in list(self.leaving):
            self.members[0].ask("LeaveGroup", 1, group=self.name, member=gone)
            self.leaving.discard(gone)

    def get_id(self, m):
        m.send_join(self.name)
        answer = m.receive()
        if answer["error"] != MEMBER_ID_REQUIRED:
            raise Wrong(f"{self.name}: JoinGroup without an id is answered {answer['error']}")
        m.id = answer["member"]

    def rebalance(self):
        for m in self.members:
            if not m.id:  # an id first, so that the join phase waits for it
                self.get_id(m)
        self.join_all()
        generations = {m.generation for m in self.members}
        leader = next((m for m in self.members if m.id == m.leader), None)
        if len(generations) != 1 or leader is None or {o["member"] for o in leader.others} != {m.id for m in self.members}:
            return  # not all were in one join phase: once more
        self.sync(leader)

    def join_all(self):
        """Until everybody is answered. Who is answered while others wait for long has missed their join phase, and joins again."""
        for m in self.members:
            m.send_join(self.name)
        waiting, end, again = list(self.members), time.monotonic() + JOIN_SECONDS, time.monotonic() + AGAIN_SECONDS
        while waiting:
            for m in list(waiting):
                if m.answered():
                    self.receive_join(m)
                    waiting.remove(m)
            joining = [m for m in self.members if m not in waiting and (not m.id or (waiting and time.monotonic() > again))]
            for m in joining:
                if not m.id:
                    self.get_id(m)
                m.send_join(self.name)
                waiting.append(m)
            if joining:
                again = time.monotonic() + AGAIN_SECONDS
            if waiting and time.monotonic() > end:
                raise Interrupted

    def receive_join(self, m):
        answer = m.receive()
        if answer["error"] == UNKNOWN_MEMBER:
            if m.id in self.acked:
                raise Wrong(f"LOST: {self.name}: {m.id} is not known any more")
            m.id = ""
        elif answer["error"] not in (NONE, REBALANCE):
            raise Wrong(f"{self.name}: JoinGroup is answered {answer['error']}")
        if answer["error"] == NONE:
            m.id, m.generation, m.leader, m.others = answer["member"], answer["generation"], answer["leader"], answer["members"]

    def sync(self, leader):
        generation = leader.generation
        given = {m.id: self.random.randbytes(self.random.randint(1, 300)) for m in self.members}
        self.sent[generation] = given
        for m in [leader] + [m for m in self.members if m is not leader]:
            m.send("SyncGroup", 3, group=self.name, generation=generation, member=m.id, instance=None,
                   assignments=[{"member": i, "assignment": a} for i, a in given.items()] if m is leader else [])
        for m in self.members:
            answer = m.receive()
            if answer["error"] == NONE:
                if answer["assignment"] != given[m.id]:
                    raise Wrong(f"{self.name}: {m.id} is given {answer['assignment']}, the leader gave {given[m.id]}")
                self.acked[m.id] = (generation, given[m.id])
                self.syncs += 1
            elif answer["error"] != REBALANCE:
                raise Wrong(f"{self.name}: SyncGroup is answered {answer['error']}")
        self.sent = {g: a for g, a in self.sent.items() if g >= generation}

    def commit(self):
        m = self.random.choice(self.members)
        parts = self.random.sample(PARTITIONS, self.random.randint(1, len(PARTITIONS)))
        for p in parts:
            self.sent_offset[p] += 1
        values = {p: self.sent_offset[p] for p in parts}
        answer = m.ask("OffsetCommit", 7, group=self.name, generation=m.generation, member=m.id, instance=None,
                       topics=[{"name": TOPIC, "partitions": [{"index": p, "offset": o} for p, o in values.items()]}])
        errors = {p["error"] for p in answer["topics"][0]["partitions"]}
        if errors != {NONE}:
            if errors - {ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE}:
                raise Wrong(f"{self.name}: OffsetCommit is answered {errors}")
            self.begin_anew()
        self.acked_offset.update(values)
        self.commits += 1


def wait_to_kill(kill, folder, dice):
    if folder is not None and kill % 2 == 0:
        folder.wait_for_cleaned(3)
    else:
        time.sleep(dice.choice((0.02, 0.1, 0.3, 0.6)) * (0.5 + dice.random()))


def restart():
    Starts.number += 1
    subprocess.run([os.environ["MUSTER_RESTART"], "kill"], check=True)
    Starts.number += 1


def summary(kills, groups, ledgers, quiet, started):
    return (f"{kills} kills in {time.monotonic() - started:.0f} s: {sum(g.commits for g in groups) + sum(l.commits for l in ledgers)} commits and "
            f"{sum(g.syncs for g in groups)} assignments acknowledged, {sum(g.compared for g in groups)} assignments compared in "
            f"{sum(g.checks for g in groups)} looks and {sum(l.checks for l in ledgers)} of real clients, {quiet.compared} quiet offsets: 0 lost, 0 invented, 0 back")


def cleaning(folder, kills, moved):
    """The line about what was cleaned, and whether enough was."""
    folder.look()
    cleaned, segments = folder.removed()
    return (f"{len(folder.cleaned)} cleaned files seen, new ones between {len(moved)} of {kills} kills; removed: {cleaned} cleaned files, "
            f"{segments} of {len(folder.segments)} segments"), cleaned > 0 and segments > 0 and len(moved) > kills // 4


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--kills", type=int, default=12)
    words.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    words.add_argument("--cleaning", action="store_true")
    words = words.parse_args()
    folder, moved = LogFolder() if words.cleaning else None, set()  # moved: the kills before which a new cleaned file was seen
    print(f"seed {words.seed}", flush=True)
    dice, stop, started = random.Random(words.seed), threading.Event(), time.monotonic()
    groups = [RawGroup(f"raw-{n}", 1 + n % 4, words.seed + n) for n in range(6)]
    ledgers = [kind(f"{kind.__name__}-{n}", words.seed + n) for kind in LEDGERS for n in range(2)]
    for ledger in ledgers:
        ledger.check()  # the client's package works at all
    quiet = Quiet(lambda: Connection((HOST, int(PORT)), timeout=ANSWER_SECONDS), words.seed)
    quiet.begin()
    threads = [threading.Thread(target=who.run, args=(stop,), daemon=True) for who in groups + ledgers]
    for thread in threads:
        thread.start()
    wrong = None
    try:
        for kill in range(1, words.kills + 1):
            had = 0 if folder is None else len(folder.cleaned)
            wait_to_kill(kill, folder, dice)
            restart()
            quiet.check()
            quiet.change()
            if folder is not None:
                folder.look()
                moved |= {kill} if len(folder.cleaned) > had else set()
            for ledger in ledgers:
                ledger.check()
            wrong = next((g.wrong for g in groups + ledgers if g.wrong is not None), None)
            if wrong is not None:
                break
            if kill % 100 == 0:
                print(summary(kill, groups, ledgers, quiet, started), flush=True)
        end = time.monotonic() + SESSION_SECONDS + 30
        while wrong is None and any(g.checks == 0 or g.syncs == 0 or g.commits == 0 for g in groups) and time.monotonic() < end:
            time.sleep(0.1)
            wrong = next((g.wrong for g in groups if g.wrong is not None), None)
    except Wrong as e:
        wrong = e
    stop.set()
    for thread in threads:
        thread.join(30)
    if wrong is not None:
        print(f"FAILED (seed {words.seed}): {wrong!r}")
        return 1
    for who in groups + ledgers:
        if who.commits == 0 or (isinstance(who, RawGroup) and (who.syncs == 0 or who.checks == 0)):
            print(f"FAILED: {who.name} has done nothing: {vars(who)}")
            return 1
    print(summary(words.kills, groups, ledgers, quiet, started))
    if folder is None:
        return 0
    line, enough = cleaning(folder, words.kills, moved)
    print(line if enough else f"FAILED: too little was cleaned: {line}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
