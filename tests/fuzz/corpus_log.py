#!/usr/bin/env python3
"""Writes cleaned files of a real log as seeds for fuzz_log.c into the folder given as argument. Run by deploy/with-muster --durable with
--set log.segment.bytes=1048576 --set log.cleaner.min.cleanable.percent=1 --set log.cleaner.delete.retention.ms=0.

Each start of the server closes the segment of the one before, and cleans it: a file cleaned of one segment, one cleaned of cleaned ones, one that keeps
nothing but where the offsets had come to. Each file is written once for every way in which the target mends its checksums (its first byte).
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "wire"))
from kafka import Connection  # noqa: E402

WAIT_SECONDS, MENDS = 20, (0, 1, 3)


def address():
    host, port = os.environ["MUSTER_BOOTSTRAP"].rsplit(":", 1)
    return host, int(port)


def commit(groups, offset):
    with Connection(address(), timeout=10) as connection:
        for group in groups:
            answer = connection.request("OffsetCommit", 7, group=group, topics=[{"name": "demo", "partitions": [
                {"index": p, "offset": offset + p, "metadata": group} for p in range(3)]}])
            assert {p["error"] for p in answer["topics"][0]["partitions"]} == {0}, answer


def delete(groups):
    with Connection(address(), timeout=10) as connection:
        answer = connection.request("DeleteGroups", 1, groups=groups)
        assert {r["error"] for r in answer["results"]} == {0}, answer


def form(group):
    """A stable group of one member."""
    with Connection(address(), timeout=10) as connection:
        join = dict(group=group, session_ms=60000, rebalance_ms=60000, instance=None, protocols=[{"name": "range", "metadata": b"m"}])
        member = connection.request("JoinGroup", 5, member="", **join)["member"]
        joined = connection.request("JoinGroup", 5, member=member, **join)
        connection.request("SyncGroup", 3, group=group, generation=joined["generation"], member=member, instance=None,
                           assignments=[{"member": member, "assignment": b"mine"}])


def cleaned(seen):
    """Restarts the server and waits for a cleaned file that is new; its bytes."""
    subprocess.run([os.environ["MUSTER_RESTART"], "kill"], check=True)
    folder, end = os.environ["MUSTER_LOG_DIR"], time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".cln") and name not in seen:
                seen.add(name)
                with open(os.path.join(folder, name), "rb") as file:
                    return file.read()
        time.sleep(0.01)
    raise SystemExit("no new cleaned file appeared")


def write(folder, name, data):
    for mend in MENDS:
        with open(os.path.join(folder, f"cleaned_{name}_{mend}"), "wb") as out:
            out.write(bytes([mend]) + data)


def main():
    folder, seen = sys.argv[1], set()
    os.makedirs(folder, exist_ok=True)
    groups = [f"group-{n}" for n in range(6)]
    form("living")
    commit(groups, 10)
    commit(groups[:3], 20)
    write(folder, "segment", cleaned(seen))
    commit(groups[2:4], 30)
    delete(groups[:2])
    write(folder, "again", cleaned(seen))
    delete(groups[2:])
    write(folder, "mostly_gone", cleaned(seen))


if __name__ == "__main__":
    main()
