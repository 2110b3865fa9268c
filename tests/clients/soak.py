"""A soak: commits, deletions, joins and leaves over and over while the log is cleaned; disk and memory stay flat. Run by deploy/with-muster --durable.

usage: soak.py [--minutes N] [--segment-bytes N] [--seed N]

  --minutes N        how long, 30 without it; a part of a minute is allowed
  --segment-bytes N  the server's log.segment.bytes, 1048576 without it

Load: writers that overwrite and delete the offsets of a fixed number of groups, with much metadata, so that there is live data of some megabytes; groups
whose members join, sync, commit, leave and come again under new ids (those of crash.py).

Fails when the folder of the log is ever larger than three times the live data plus a floor for each worker: the segment being written, the one made in
advance, and what is kept to clean with, five segments together. The live data is what the writers have there, each offset counted as a batch of
its own; what the members have is left out. Fails as well when the most memory (VmRSS) that the server had in the last third of the time is more
than in the third before it, by more than a slack for what is first touched late. The first third is warm-up. At the end every offset is
compared. Prints the figures.
"""
import argparse
import os
import random
import subprocess
import sys
import threading
import time

from crash import HOST, NONE, PORT, Connection, RawGroup
from ledger import TOPIC, Wrong
from log_folder import LogFolder

WRITERS, GROUPS, PARTITIONS, METADATA = 2, 200, 6, 2000  # groups of each writer; bytes of metadata of each offset
RAW_GROUPS, DELETED_PERCENT = 4, 5
ENTRY_BYTES, BATCH_BYTES, RECORD_BYTES = 8, 61, 11  # around a record: in the block, of its batch, of itself (lengths, deltas)
FLOOR_SEGMENTS = 5
SLACK_BYTES, SLACK_PART = 2 << 20, 0.03
LOOK_SECONDS = 0.05


def offset_bytes(group):
    """Of the live record of one partition of a writer's group: key and value as Kafka's formats have them."""
    key = 2 + 2 + len(group) + 2 + len(TOPIC) + 4
    value = 2 + 8 + 4 + 2 + METADATA + 8
    return ENTRY_BYTES + BATCH_BYTES + RECORD_BYTES + key + value


class Writer:
    """The offsets of its groups, known exactly, for nobody else writes them."""

    def __init__(self, number, seed):
        self.random = random.Random(seed)
        self.offsets = {f"soak-{number}-{n}": None for n in range(GROUPS)}
        self.last, self.live, self.commits, self.deletions = 0, 0, 0, 0
        self.filled, self.wrong = threading.Event(), None

    def run(self, stop):
        try:
            with Connection((HOST, int(PORT)), timeout=30) as connection:
                for group in self.offsets:
                    self.commit(connection, group)
                self.filled.set()
                while not stop.is_set():
                    self.change(connection, self.random.choice(list(self.offsets)))
                self.compare(connection)
        except Exception as wrong:  # pylint: disable=broad-except
            self.wrong = wrong
            self.filled.set()

    def change(self, connection, group):
        if self.offsets[group] is not None and self.random.randrange(100) < DELETED_PERCENT:
            self.delete(connection, group)
        else:
            self.commit(connection, group)

    def commit(self, connection, group):
        self.last += 1
        answer = connection.request("OffsetCommit", 7, group=group, topics=[{"name": TOPIC, "partitions": [
            {"index": p, "offset": self.last, "metadata": "m" * METADATA} for p in range(PARTITIONS)]}])
        self.expect(group, {p["error"] for p in answer["topics"][0]["partitions"]})
        self.live += 0 if self.offsets[group] is not None else PARTITIONS * offset_bytes(group)
        self.offsets[group] = self.last
        self.commits += 1

    def delete(self, connection, group):
        self.expect(group, {r["error"] for r in connection.request("DeleteGroups", 1, groups=[group])["results"]})
        self.live -= PARTITIONS * offset_bytes(group)
        self.offsets[group] = None
        self.deletions += 1

    def compare(self, connection):
        for group, wanted in self.offsets.items():
            answer = connection.request("OffsetFetch", 5, group=group, topics=[{"name": TOPIC, "partitions": list(range(PARTITIONS))}])
            found = {p["offset"] for p in answer["topics"][0]["partitions"]}
            if found != {-1 if wanted is None else wanted}:
                raise Wrong(f"{group} is {found}, {wanted} was written last")

    @staticmethod
    def expect(group, errors):
        if errors != {NONE}:
            raise Wrong(f"{group}: a commit or deletion is answered {errors}")


class Memory:
    """VmRSS of the server in bytes; the most in each third of the time."""

    def __init__(self):
        inside = subprocess.run(["ip", "netns", "pids", os.environ["MUSTER_NETNS"]], capture_output=True, text=True, check=True).stdout.split()
        self.pid = next(pid for pid in inside if self.name(pid) == "muster")
        self.most = [0, 0, 0]

    @staticmethod
    def name(pid):
        try:
            with open(f"/proc/{pid}/comm") as text:
                return text.read().strip()
        except FileNotFoundError:  # ip itself was listed
            return None

    def look(self, part):
        with open(f"/proc/{self.pid}/status") as text:
            rss = next(int(line.split()[1]) for line in text if line.startswith("VmRSS:")) * 1024
        third = min(int(part * 3), 2)
        self.most[third] = max(self.most[third], rss)

    def grows(self):
        return self.most[2] > self.most[1] + max(SLACK_BYTES, SLACK_PART * self.most[1])


class Disk:
    """The folder's size against what it may be, at every look."""

    def __init__(self, folder, floor):
        self.folder, self.floor = folder, floor
        self.most, self.worst = 0, (0.0, 0, 0)  # worst: part of the limit, size, live data

    def look(self, live):
        self.folder.look()
        size = self.folder.size()
        self.most = max(self.most, size)
        self.worst = max(self.worst, (size / (3 * live + self.floor), size, live))


def mib(n):
    return f"{n / (1 << 20):.1f}"


def watch(seconds, writers, groups, disk, memory):
    """What went wrong on the way, or None."""
    started = time.monotonic()
    while (passed := time.monotonic() - started) < seconds:
        wrong = next((who.wrong for who in writers + groups if who.wrong is not None), None)
        if wrong is not None:
            return repr(wrong)
        disk.look(sum(w.live for w in writers))
        memory.look(passed / seconds)
        if disk.worst[0] > 1:
            break
        time.sleep(LOOK_SECONDS)
    return None


def judge(disk, memory, writers, groups):
    """What is wrong, of all that was measured."""
    cleaned, segments = disk.folder.removed()
    if disk.worst[0] > 1:
        yield f"{mib(disk.worst[1])} MiB on the disk for {mib(disk.worst[2])} MiB of live data"
    if memory.grows():
        yield f"memory grows: {mib(memory.most[1])} MiB, then {mib(memory.most[2])} MiB"
    if cleaned == 0 or segments == 0:
        yield f"nothing was cleaned: {cleaned} cleaned files and {segments} segments went away"
    if any(g.syncs == 0 for g in groups) or any(w.deletions == 0 for w in writers):
        yield "somebody did nothing"


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--minutes", type=float, default=30)
    words.add_argument("--segment-bytes", type=int, default=1 << 20)
    words.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    words = words.parse_args()
    print(f"seed {words.seed}", flush=True)
    floor = FLOOR_SEGMENTS * words.segment_bytes * int(os.environ["MUSTER_WORKERS"])
    disk, memory, stop = Disk(LogFolder(), floor), Memory(), threading.Event()
    writers = [Writer(n, words.seed + n) for n in range(WRITERS)]
    groups = [RawGroup(f"members-{n}", 1 + n, words.seed + n) for n in range(RAW_GROUPS)]
    threads = [threading.Thread(target=who.run, args=(stop,), daemon=True) for who in writers + groups]
    for thread in threads:
        thread.start()
    for writer in writers:
        writer.filled.wait(60)
    wrong = watch(words.minutes * 60, writers, groups, disk, memory)
    stop.set()
    for thread in threads:
        thread.join(60)
    wrong = wrong or next((repr(who.wrong) for who in writers + groups if who.wrong is not None), None)
    faults = ([wrong] if wrong else []) + list(judge(disk, memory, writers, groups))
    print(f"{words.minutes:.2f} minutes: {sum(who.commits for who in writers + groups)} commits, {sum(w.deletions for w in writers)} groups deleted, "
          f"{sum(g.syncs for g in groups)} assignments; disk: {mib(sum(w.live for w in writers))} MiB of live data, at most {mib(disk.most)} MiB, at worst "
          f"{disk.worst[0]:.2f} of the limit ({mib(disk.worst[1])} MiB for {mib(disk.worst[2])}, floor {mib(floor)}); cleaned files seen: "
          f"{len(disk.folder.cleaned)}, segments: {len(disk.folder.segments)}; memory: {', '.join(mib(m) for m in memory.most)} MiB in each third")
    for fault in faults:
        print(f"FAILED (seed {words.seed}): {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
