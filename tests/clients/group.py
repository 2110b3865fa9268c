"""A group of real consumers: starts them, keeps what they tell, and waits for what a test expects of them.

A consumer tells its events with the monotonic clock's time, taken before it gives partitions back and after it was given them. So the
events of all consumers in order of time must never show a partition with two owners; Group.check_never_shared() sees to that.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's, which Debian's modules are for
SESSION_MS, HEARTBEAT_MS = 6000, 500
FAMILIES = ("kcat", "rdkafka", "confluent", "kafka-python")
SCRIPTS = {"confluent": ("consumer_confluent.py", "confluent_kafka", "python3-confluent-kafka"),
           "kafka-python": ("consumer_kafka_python.py", "kafka", "python3-kafka")}
KCAT_EVENT = re.compile(r"^% Group .* rebalanced \(memberid [^)]*\): (assigned|revoked): (.*)$")


class Failure(Exception):
    """The test failed: what was expected and did not happen."""


class Skip(Exception):
    """The test cannot be run here: what is missing."""


def require(families):
    """Skips when one of the families is not installed."""
    for family in families:
        if family == "kcat" and shutil.which("kcat") is None:
            raise Skip("package kcat is missing")
        if family == "rdkafka" and not os.path.exists(os.environ.get("RDKAFKA_CONSUMER", "")):
            raise Skip("rdkafka_consumer was not built: package librdkafka-dev is missing")
        if family in SCRIPTS:
            _, module, package = SCRIPTS[family]
            if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
                raise Skip(f"package {package} is missing")


class Consumer:
    """One process. All fields are guarded by the group's condition once it runs."""

    def __init__(self, group, name, family, assignor, instance):
        self.group, self.name, self.family = group, name, family
        self.events = []  # dicts with t, event, ...
        self.have = frozenset()
        self.noise = []  # lines that are no events
        self.ended = None  # time of its end, as the server sees it: the signal or the close
        self.process = subprocess.Popen(self.words(assignor, instance), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.threads = [threading.Thread(target=self.read, args=(stream,), daemon=True)
                        for stream in (self.process.stdout, self.process.stderr)]
        for thread in self.threads:
            thread.start()

    def words(self, assignor, instance):
        group = self.group
        if self.family == "kcat":
            return ["kcat", "-b", group.bootstrap, "-X", f"partition.assignment.strategy={assignor}",
                    "-X", f"session.timeout.ms={SESSION_MS}", "-X", f"heartbeat.interval.ms={HEARTBEAT_MS}",
                    "-X", "reconnect.backoff.max.ms=500", "-X", f"client.id={self.name}", "-G", group.id, group.topic]
        program = [os.environ["RDKAFKA_CONSUMER"]] if self.family == "rdkafka" else [PYTHON, f"{HERE}/{SCRIPTS[self.family][0]}"]
        return [*program, "--bootstrap", group.bootstrap, "--group", group.id, "--topic", group.topic, "--assignor", assignor,
                "--client-id", self.name, "--session-ms", str(SESSION_MS), "--heartbeat-ms", str(HEARTBEAT_MS),
                *(["--instance", instance] if instance else [])]

    def read(self, stream):
        for line in stream:
            event = self.parse(line.rstrip("\n"))
            with self.group.changed:
                if event is None:
                    self.noise.append(line.rstrip("\n"))
                    continue
                self.events.append(event)
                if "all" in event:
                    self.have = frozenset(event["all"])
                self.group.changed.notify_all()

    def parse(self, line):
        if self.family != "kcat":
            try:
                return json.loads(line) if line.startswith("{") else None
            except ValueError:
                return None
        match = KCAT_EVENT.match(line)
        if match:
            partitions = [int(p) for p in re.findall(r"\[(\d+)\]", match[2])]
            return {"t": time.monotonic(), "event": match[1], "all": partitions if match[1] == "assigned" else []}
        if line.startswith("% ERROR"):
            return {"t": time.monotonic(), "event": "error", "text": line}
        return None

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command, event):
        """Says the command and returns the event that answers it."""
        seen = len(self.events)
        self.say(command)
        self.group.wait(lambda: any(e["event"] in (event, "error") for e in self.events[seen:]), 15, f"{event} from {self.name}")
        answer = next(e for e in self.events[seen:] if e["event"] in (event, "error"))
        if answer["event"] == "error":
            raise Failure(f"{self.name}, told to {command}: {answer['text']}")
        return answer

    def leave(self):
        """Ends it in order; the time at which it was told to."""
        started = time.monotonic()
        if self.family == "kcat":
            self.process.terminate()
        else:
            self.say("leave")
        return self.finish(started)

    def kill(self):
        started = time.monotonic()
        self.process.kill()
        return self.finish(started)

    def finish(self, started):
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within 15 s") from None
        for thread in self.threads:
            thread.join()
        with self.group.changed:
            self.ended = started
            self.have = frozenset()
        return started

    def errors(self):
        return [e["text"] for e in self.events if e["event"] == "error"]


class Group:
    def __init__(self, name, assignor, partitions=6, topic="demo"):
        self.id = f"{name}-{os.getpid()}-{time.monotonic_ns() % 1000000}"
        self.bootstrap = os.environ["MUSTER_BOOTSTRAP"]
        self.assignor, self.topic, self.partitions = assignor, topic, frozenset(range(partitions))
        self.changed = threading.Condition(threading.RLock())
        self.members, self.all = [], []

    def start(self, family, instance=None):
        consumer = Consumer(self, f"{family}-{len(self.all) + 1}", family, self.assignor, instance)
        with self.changed:
            self.all.append(consumer)
            self.members.append(consumer)
        return consumer

    def remove(self, consumer, how):
        """how: Consumer.leave or Consumer.kill. The time at which it happened."""
        self.members.remove(consumer)
        return how(consumer)

    def wait(self, condition, seconds, what):
        with self.changed:
            if not self.changed.wait_for(lambda: self.broken() or condition(), seconds):
                raise Failure(f"not within {seconds} s: {what}")
        if self.broken():
            raise Failure(self.broken())

    def broken(self):
        for member in self.members:
            if member.process.poll() is not None:
                return f"{member.name} ended by itself with status {member.process.returncode}"
        return None

    def settled(self):
        """Every member has its fair share, and together they have all partitions, each once."""
        shares = [m.have for m in self.members]
        sizes = [len(s) for s in shares]
        return sum(sizes) == len(self.partitions) and frozenset().union(*shares) == self.partitions and max(sizes) - min(sizes) <= 1

    def settle(self, seconds, what):
        """Waits until the group is settled; the time of the event that made it so."""
        self.wait(self.settled, seconds, f"{what}: each of {len(self.partitions)} partitions with one of {len(self.members)} members")
        with self.changed:
            return max((e["t"] for m in self.members for e in m.events if "all" in e), default=0)

    def first_event_after(self, moment):
        """The earliest change that a living member saw after that moment."""
        with self.changed:
            return min((e["t"] for m in self.members for e in m.events if "all" in e and e["t"] > moment), default=None)

    def quiet_since(self, counts):
        """What members told since `counts` was taken, as text; empty when nothing."""
        with self.changed:
            return "; ".join(f"{m.name}: {e}" for m in self.members for e in m.events[counts[m.name]:])

    def counts(self):
        with self.changed:
            return {m.name: len(m.events) for m in self.members}

    def check_never_shared(self):
        changes = [(e["t"], c, frozenset(e["all"])) for c in self.all for e in c.events if "all" in e]
        changes += [(c.ended, c, frozenset()) for c in self.all if c.ended is not None]
        have = {}
        for moment, consumer, partitions in sorted(changes, key=lambda change: change[0]):
            if consumer.ended is not None and moment > consumer.ended:
                partitions = frozenset()
            have[consumer.name] = partitions
            for name, others in have.items():
                if name != consumer.name and others & partitions:
                    raise Failure(f"{sorted(others & partitions)} with {name} and {consumer.name} at once, at {moment:.3f}")

    def check_no_errors(self):
        for consumer in self.all:
            if consumer.errors():
                raise Failure(f"{consumer.name} was told errors: {consumer.errors()[:5]}")

    def stop(self):
        for consumer in self.all:
            if consumer.process.poll() is None:
                consumer.process.send_signal(signal.SIGKILL)
                consumer.process.wait()

    def show(self):
        """The history, for a test that failed."""
        with self.changed:
            lines = sorted(((e["t"], c.name, {k: v for k, v in e.items() if k != "t"}) for c in self.all for e in c.events),
                           key=lambda line: line[0])
            for moment, name, event in lines[-80:]:
                print(f"  {moment:12.3f} {name:16} {event}", file=sys.stderr)
            for consumer in self.all:
                for line in consumer.noise[-10:]:
                    print(f"  {consumer.name}: {line}", file=sys.stderr)
