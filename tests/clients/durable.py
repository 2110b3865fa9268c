"""Real consumers against a log on disk: restarts that nobody notices, and kills that lose nothing. Run by deploy/with-muster --durable.

usage: durable.py unnoticed | kills N

  unnoticed   two members and their commits outlive SIGKILL and SIGTERM of the server: same generation, no rebalance, offsets there
  kills N     four groups commit as fast as they can while the server is killed N times; a ledger of what was acknowledged is
              compared after each start
"""
import os
import random
import subprocess
import sys
import threading
import time

try:
    from confluent_kafka import Consumer, KafkaException, TopicPartition
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


class Ledger:
    def __init__(self, group):
        self.group, self.sent, self.acked, self.commits = group, dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, 0), 0

    def run(self, stop):
        client = consumer(self.group, **{"socket.timeout.ms": 2000})
        number = 0
        while not stop.is_set():
            number += 1
            parts = random.sample(PARTITIONS, random.randint(1, 4))
            for p in parts:
                self.sent[p] = number
            try:
                for tp in client.commit(offsets=[TopicPartition(TOPIC, p, number) for p in parts], asynchronous=False):
                    if tp.error is None:
                        self.acked[tp.partition] = number
                self.commits += 1
            except KafkaException:
                pass  # not acknowledged: it may be there or not

    def check(self, acked):
        client = consumer(self.group)
        for p, offset in committed(client).items():
            assert acked[p] == 0 or offset >= acked[p], f"LOST: {self.group}-{p} is {offset}, {acked[p]} was acknowledged"
            assert offset <= self.sent[p], f"INVENTED: {self.group}-{p} is {offset}, {self.sent[p]} was sent"
        client.close()


def kills(count):
    stop = threading.Event()
    ledgers = [Ledger(f"ledger-{n}") for n in range(4)]
    threads = [threading.Thread(target=ledger.run, args=(stop,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            time.sleep(random.uniform(0.2, 1.0))
            acked = [dict(ledger.acked) for ledger in ledgers]
            restart("kill")
            for ledger, before in zip(ledgers, acked):
                ledger.check(before)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    commits = sum(ledger.commits for ledger in ledgers)
    assert commits > 10 * count, f"only {commits} commits went through"
    print(f"{count} kills, {commits} commits acknowledged, none lost, none invented")


if __name__ == "__main__":
    if sys.argv[1:] == ["unnoticed"]:
        unnoticed()
    elif len(sys.argv) == 3 and sys.argv[1] == "kills":
        kills(int(sys.argv[2]))
    else:
        print(__doc__)
        sys.exit(2)
