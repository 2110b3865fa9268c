#!/usr/bin/python3
"""Measures durable commits: what a disk's flush takes, what a commit takes, and how many go through; beside a real Kafka broker with the same clients.

usage: bench/commits.py [--seconds N] [--build DIR] [--kafka]

  --kafka   a real Kafka broker, too (kafka.py). It answers when the page cache has the commit; it does not flush

The client (commit_load) has one commit outstanding per connection. Servers run on the first CPU, the client on the second; one server at a time.
Modes take turns within each round, medians over the rounds count: the device's speed changes from minute to minute. Needs root and /dev/net/tun.
"""
import argparse
import mmap
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import kafka  # noqa: E402

MODES = {"durable, thread": ["log.flush.mode=durable"], "durable, io_uring": ["log.flush.mode=durable", "log.io=io_uring"],
         "written": ["log.flush.mode=written"], "memory": ["log.flush.mode=memory"]}
CONNECTIONS = (1, 32, 256)
FLUSHES = 200


def device_flush_us(folder):
    """One aligned block written through (O_DIRECT, RWF_DSYNC) into reserved space, as the log does it: the median."""
    path = os.path.join(folder, "flush")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    os.posix_fallocate(fd, 0, 64 << 20)
    block, took = mmap.mmap(-1, 4096), []
    for n in range(FLUSHES):
        begun = time.perf_counter()
        os.pwritev(fd, [block], n * 4096, os.RWF_DSYNC)
        took.append((time.perf_counter() - begun) * 1e6)
    os.close(fd)
    os.unlink(path)
    return statistics.median(took)


def parse(text):
    found = re.search(r"(\d+) commits/s, p50 (\d+) us, p99 (\d+) us", text)
    if found is None:
        raise SystemExit(f"commits: no figure in {text!r}")
    return tuple(int(g) for g in found.groups())


def load(words, host, port, connections, seconds):
    done = subprocess.run([*words, "taskset", "-c", str(os.cpu_count() - 1), f"{BUILD}/bench/commit_load", host, str(port), str(connections), str(seconds)],
                          capture_output=True, text=True, timeout=60 + seconds)
    return parse(done.stdout + done.stderr)


def muster(settings, seconds):
    words = [os.path.join(os.path.dirname(HERE), "deploy", "with-muster"), "--durable", "--set", "cpu=0", "--set", "journal.output=none"]
    for setting in settings:
        words += ["--set", setting]
    inside = "; ".join(f'taskset -c {os.cpu_count() - 1} {BUILD}/bench/commit_load 10.77.0.2 19092 {n} {seconds}' for n in CONNECTIONS)
    done = subprocess.run([*words, "--", "sh", "-ec", inside], capture_output=True, text=True, timeout=120 + 3 * seconds,
                          env=dict(os.environ, MUSTER_BIN=f"{BUILD}/muster"))
    lines = [line for line in done.stdout.splitlines() if "commits/s" in line]
    if done.returncode != 0 or len(lines) != len(CONNECTIONS):
        raise SystemExit(f"commits: {done.stdout}{done.stderr}")
    return dict(zip(CONNECTIONS, map(parse, lines)))


def main():
    global BUILD  # pylint: disable=global-statement
    words = argparse.ArgumentParser(usage=__doc__)
    words.add_argument("--seconds", type=int, default=3)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    words.add_argument("--kafka", action="store_true")
    words = words.parse_args()
    BUILD = os.path.abspath(words.build)
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("skip: needs root and /dev/net/tun")
        return 77
    folder = tempfile.mkdtemp(prefix="commits-")
    found, flushes, broker = {}, [], None
    try:
        if words.kafka:
            broker = kafka.start(kafka.jars(), folder, 0)
            kafka.make_topic("demo")
            load([], kafka.HOST, kafka.PORT, 32, 20)  # until its code is compiled
        for _ in range(words.rounds):
            flushes.append(device_flush_us(folder))
            for mode, settings in MODES.items():
                found.setdefault(mode, []).append(muster(settings, words.seconds))
            if broker is not None:
                found.setdefault("Kafka, not flushed", []).append({n: load([], kafka.HOST, kafka.PORT, n, words.seconds) for n in CONNECTIONS})
    finally:
        if broker is not None:
            broker.kill()
            broker.wait()
        shutil.rmtree(folder, ignore_errors=True)
    flush = statistics.median(flushes)
    print(f"the device: a block of 4 KiB written through: median {flush:.0f} us")
    table = {mode: {n: tuple(statistics.median(r[n][i] for r in rounds) for i in range(3)) for n in CONNECTIONS} for mode, rounds in found.items()}
    for mode, row in table.items():
        print(f"{mode:20}" + "".join(f" | {n:3} connections: {v[0]:7.0f}/s p50 {v[1]:5.0f} p99 {v[2]:6.0f} us" for n, v in row.items()))
    added = table["durable, thread"][1][1] - table["memory"][1][1] - flush
    print(f"durability adds {added:+.0f} us to a lone commit beyond the flush (goal: 50)")
    if "Kafka, not flushed" in table:
        for n in CONNECTIONS:
            print(f"{n} connections: durable commits of Muster are {table['durable, thread'][n][0] / table['Kafka, not flushed'][n][0]:.1f} x Kafka's (goal: 5)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
