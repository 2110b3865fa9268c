#!/usr/bin/python3
"""Do readers of __consumer_offsets cost those who heartbeat anything? Round trips of one member's heartbeats, by turns

  alone    nobody else
  asking   readers send Fetch requests of the same pace for an empty topic, answered at once: what connections and requests cost by themselves
  reading  readers fetch the log from random offsets: what reading costs, from the disk through the worker to their sockets

usage: bench/readers.py [--quick] [--turns N] [--seconds N] [--readers N] [--pause-ms N]

  --quick         small and short: shows that it works; its figures mean nothing
  --pause-ms N    between two fetches of a reader; default 20

Prints each phase's medians over the turns and their ratios as a line of JSON. Ratios hold within one run. Runs itself inside of
deploy/with-muster --durable. Exit status: 0, or with-muster's (77: this machine cannot do it).
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "wire"))
from kafka import Connection  # noqa: E402

LOG, TOPIC, METADATA = "__consumer_offsets", "demo", "x" * 3000
PHASES = ("alone", "asking", "reading")


def address():
    host, port = os.environ["MUSTER_BOOTSTRAP"].split(":")
    return host, int(port)


def fill(commits):
    """Commits of some 18 kB each. The partition that they are in, and its end."""
    with Connection(address()) as c:
        for n in range(commits):
            answer = c.request("OffsetCommit", 7, group="fill", generation=-1, member="", topics=[
                {"name": TOPIC, "partitions": [{"index": p, "offset": n, "metadata": METADATA} for p in range(6)]}])
            assert all(p["error"] == 0 for p in answer["topics"][0]["partitions"]), answer
        shards = len(next(t for t in c.request("Metadata", 9, topics=[{"name": LOG}])["topics"])["partitions"])
        ends = c.request("ListOffsets", 5, topics=[{"name": LOG, "partitions": [{"index": p, "timestamp": -1} for p in range(shards)]}])
        return max(((p["index"], p["offset"]) for p in ends["topics"][0]["partitions"]), key=lambda end: end[1])


def read(kind, partition, end, pause_ms):
    """A reader, until its stdin ends; then prints how much it read."""
    c, fetches, total = Connection(address()), 0, 0
    os.set_blocking(0, False)
    while sys.stdin.buffer.read(1) is None:
        topic = {"name": TOPIC, "partitions": [{"index": 0, "offset": 0, "max_bytes": 1 << 20}]} if kind == "asking" else \
            {"name": LOG, "partitions": [{"index": partition, "offset": random.randrange(end), "max_bytes": 1 << 20}]}
        c.send("Fetch", 10, max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=[topic])
        total += len(c.receive_frame())
        fetches += 1
        time.sleep(pause_ms / 1000)
    print(json.dumps([fetches, total]))


class Member:
    def __init__(self):
        self.c = Connection(address())
        joined = self.c.request("JoinGroup", 2, group="beat", session_ms=30000, rebalance_ms=30000, member="",
                                protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}], timeout=30)
        self.values = {"group": "beat", "generation": joined["generation"], "member": joined["member"]}
        self.c.request("SyncGroup", 1, **self.values, assignments=[{"member": joined["member"], "assignment": b""}])

    def beat(self, seconds):
        """Round trips in microseconds, one each millisecond or so."""
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            before = time.perf_counter_ns()
            answer = self.c.request("Heartbeat", 1, **self.values)
            times.append((time.perf_counter_ns() - before) / 1000)
            assert answer["error"] == 0, answer
            time.sleep(0.001)
        return sorted(times)


def phase(kind, member, options, partition, end):
    words = [sys.executable, __file__, "--read", kind, str(partition), str(end), "--pause-ms", str(options.pause_ms)]
    readers = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(options.readers if kind != "alone" else 0)]
    time.sleep(0.3)
    times = member.beat(options.seconds)
    done = [json.loads(r.communicate(timeout=30)[0]) for r in readers]
    assert all(r.returncode == 0 for r in readers)
    return {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "beats": len(times), "fetches": sum(d[0] for d in done),
            "bytes": sum(d[1] for d in done)}


def inside(options):
    partition, end = fill(50 if options.quick else 1000)
    member = Member()
    runs = {kind: [] for kind in PHASES}
    for _ in range(options.turns):
        for kind in PHASES:
            runs[kind].append(phase(kind, member, options, partition, end))
    middle = {kind: {name: statistics.median(run[name] for run in runs[kind]) for name in runs[kind][0]} for kind in PHASES}
    for kind in PHASES:
        m = middle[kind]
        print(f"  {kind:8} heartbeats p50 {m['p50']:6.0f} us, p99 {m['p99']:6.0f} us; readers {m['fetches'] / options.seconds:5.0f} fetches/s, "
              f"{m['bytes'] / options.seconds / 2**20:6.1f} MiB/s")
    figures = {"bench": "readers", "turns": options.turns, "seconds": options.seconds, "readers": options.readers, "pause_ms": options.pause_ms, **middle,
               **{f"{name}_{kind}_to_{base}": round(middle[kind][name] / middle[base][name], 3)
                  for name in ("p50", "p99") for kind, base in (("reading", "alone"), ("reading", "asking"))}}
    print(json.dumps(figures))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=20)
    parser.add_argument("--read", nargs=3)
    options = parser.parse_args()
    if options.quick:
        options.turns, options.seconds = 1, 0.5
    if options.read:
        read(options.read[0], int(options.read[1]), int(options.read[2]), options.pause_ms)
    elif "MUSTER_BOOTSTRAP" in os.environ:
        inside(options)
    else:
        program = os.path.join(HERE, "..", "deploy", "with-muster")
        os.execv(program, [program, "--durable", "--set", "group.initial.rebalance.delay.ms=0", "--set", "journal.output=none", "--", sys.executable, __file__,
                           *sys.argv[1:]])


if __name__ == "__main__":
    main()
