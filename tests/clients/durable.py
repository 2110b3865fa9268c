"""Real consumers against a log on disk: restarts that nobody notices. Run by deploy/with-muster --durable.

usage: durable.py unnoticed

  unnoticed   two members and their commits outlive SIGKILL and SIGTERM of the server: same generation, no rebalance, offsets there
"""
import os
import subprocess
import sys
import time

try:
    from confluent_kafka import Consumer, TopicPartition
except ImportError:
    print("package python3-confluent-kafka is missing")
    sys.exit(77)

BOOTSTRAP, TOPIC, PARTITIONS = os.environ["MUSTER_BOOTSTRAP"], "demo", range(6)


def restart(how):
    subprocess.run([os.environ["MUSTER_RESTART"], how], check=True)


def consumer(group, **more):
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, "enable.auto.commit": False, "log_level": 0,
                     "reconnect.backoff.max.ms": 200, **more})


def committed(client):
    return {tp.partition: tp.offset for tp in client.committed([TopicPartition(TOPIC, p) for p in PARTITIONS], timeout=20)}


def poll(members, seconds, done=lambda: False):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not done():
        for member in members:
            member.poll(0.05)


def unnoticed():
    events = []
    members = [consumer("unnoticed", **{"session.timeout.ms": 10000, "heartbeat.interval.ms": 500}) for _ in range(2)]
    for member in members:
        member.subscribe([TOPIC], on_assign=lambda c, parts: events.append("assigned"), on_revoke=lambda c, parts: events.append("revoked"))
    poll(members, 20, lambda: all(len(m.assignment()) == 3 for m in members))
    assert [len(m.assignment()) for m in members] == [3, 3], "the group did not form"
    had = [sorted(tp.partition for tp in m.assignment()) for m in members]
    del events[:]
    for number, how in enumerate(("kill", "term", "kill"), 1):
        for member in members:
            member.commit(offsets=[TopicPartition(TOPIC, tp.partition, 100 * number + tp.partition) for tp in member.assignment()],
                          asynchronous=False)
        restart(how)
        assert committed(members[0]) == {p: 100 * number + p for p in PARTITIONS}, f"after {how}: {committed(members[0])}"
        poll(members, 11)  # longer than a session: members that the server does not know would be gone
        assert events == [], f"after {how} the members saw {events}"
        assert had == [sorted(tp.partition for tp in m.assignment()) for m in members]
        print(f"{how}: nobody noticed, all offsets are there", flush=True)
    for member in members:
        member.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["unnoticed"]:
        unnoticed()
    else:
        print(__doc__)
        sys.exit(2)
