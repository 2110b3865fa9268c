#!/usr/bin/python3
"""Groups and offsets move from a real Kafka broker to Muster and from there to another real broker, with real clients at every stop.

  1  Kafka        static consumers, commits under each compression codec, transactions (committed, aborted, undecided), a group of the
                  KIP-848 protocol; then the broker stops
  2  log import   its __consumer_offsets folders become a log; dump and verify read all of it
  3  Muster       starts on that log: the static consumers get the same partitions without a rebalance, every offset is there, the aborted
                  transaction is not, and everyone commits further
  4  log export   into the folders of a fresh Kafka broker; DumpLogSegments --offsets-decoder reads them
  5  Kafka        starts with them: kafka-consumer-groups --describe and consumers see what Muster had

usage: test_interop.py [--keep FOLDER]

Exit status 77, with the reason, where there is no root, no TAP device, no java, no Kafka or no confluent-kafka.
"""
import argparse
import glob
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "diff"))
import broker  # noqa: E402

try:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
except ImportError:
    print("skip: package python3-confluent-kafka is missing")
    sys.exit(77)

MUSTER = os.environ.get("MUSTER_BIN") or os.path.join(TOP, "build", "muster")
SHARDS, TOPIC, PARTITIONS = 5, "demo", 6
CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
STATIC = ("static-1", "static-2")
WAIT_SECONDS = 40
SILENT = logging.getLogger("silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def say(text):
    print(f"interop: {text}", flush=True)


# ---- clients

def consumer(bootstrap, group, **more):
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
                     "session.timeout.ms": 30000, "heartbeat.interval.ms": 500, "log_level": 0, **more})


def at(*pairs):
    return [TopicPartition(TOPIC, partition, offset) for partition, offset in pairs]


def patiently(call):
    """Again while the broker's coordinator is only just being made or elected."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return call()
        except KafkaException:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def commit(bootstrap, group, *pairs):
    client = consumer(bootstrap, group)
    patiently(lambda: client.commit(offsets=at(*pairs), asynchronous=False))
    client.close()


def committed(bootstrap, group, partitions=range(PARTITIONS)):
    client = consumer(bootstrap, group)
    found = patiently(lambda: client.committed([TopicPartition(TOPIC, p) for p in partitions], timeout=WAIT_SECONDS))
    client.close()
    return {tp.partition: tp.offset for tp in found if tp.offset >= 0}


def expect(bootstrap, group, offsets):
    found = committed(bootstrap, group)
    assert found == offsets, f"group {group}: {found} instead of {offsets}"


def static_pair(bootstrap):
    """Two static members; {instance: (partitions, generation-free member id)} when both have partitions. Closing a static member does not leave."""
    members = {name: consumer(bootstrap, "static", **{"group.instance.id": name}) for name in STATIC}
    assigned = {}
    for name, member in members.items():
        member.subscribe([TOPIC], on_assign=lambda c, parts, name=name: assigned.__setitem__(name, sorted(p.partition for p in parts)))
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end and not (len(assigned) == 2 and all(len(p) == PARTITIONS // 2 for p in assigned.values())):
        for member in members.values():
            member.poll(0.1)
    assert sorted(sum(assigned.values(), [])) == list(range(PARTITIONS)), f"the static group did not form: {assigned}"
    return members, assigned


def leave_running(members):
    for member in members.values():
        member.close()


def transaction(bootstrap, name, group, pairs, end):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name}, logger=SILENT)
    client = consumer(bootstrap, group)
    client.subscribe([TOPIC])
    until = time.monotonic() + WAIT_SECONDS
    while not client.assignment() and time.monotonic() < until:
        client.poll(0.1)
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(at(*pairs), client.consumer_group_metadata(), WAIT_SECONDS)
    if end == "commit":
        producer.commit_transaction(WAIT_SECONDS)
    elif end == "abort":
        producer.abort_transaction(WAIT_SECONDS)
    client.close()
    return producer  # an open one stays open as long as this lives


# ---- Kafka

class Kafka(broker.Broker):
    def __init__(self, jars, folder):
        os.makedirs(folder)
        with socket.socket() as one, socket.socket() as two:
            for s in (one, two):
                s.bind(("127.0.0.1", 0))
            broker.ADDRESS, broker.CONTROLLER_PORT = one.getsockname(), two.getsockname()[1]
        self.address = broker.ADDRESS
        self.bootstrap = f"{self.address[0]}:{self.address[1]}"
        self.data = os.path.join(folder, "data")
        super().__init__(jars, folder, {
            "offsets.topic.num.partitions": SHARDS, "group.initial.rebalance.delay.ms": 0, "transaction.state.log.num.partitions": 1,
            "group.coordinator.rebalance.protocols": "classic,consumer"})

    def start(self):
        broker.ADDRESS = self.address
        super().start()

    def tool(self, name, *words, timeout=90):
        done = subprocess.run([*self.words, name, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout)
        return done.stdout

    def make_topic(self):
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(WAIT_SECONDS)
        return admin

    def partitions(self):
        return sorted(glob.glob(f"{self.data}/__consumer_offsets-*"))


def first_stop(kafka):
    """Everything that a broker may put into the topic. Returns what the static members had."""
    kafka.start()
    at_kafka = kafka.bootstrap
    admin = kafka.make_topic()
    commit(at_kafka, "codec-none", (0, 1))
    for codec in CODECS:
        resource = ConfigResource(ConfigResource.Type.TOPIC, "__consumer_offsets", set_config={"compression.type": codec, "cleanup.policy": "compact"})
        admin.alter_configs([resource])[resource].result(WAIT_SECONDS)
        commit(at_kafka, f"codec-{codec}", *[(p, 10 * p + len(codec)) for p in range(PARTITIONS)])
    members, assigned = static_pair(at_kafka)
    members["static-1"].commit(offsets=at(*[(p, 100 + p) for p in range(PARTITIONS)]), asynchronous=False)
    leave_running(members)
    commit(at_kafka, "txn", (1, 5), (2, 5))
    transaction(at_kafka, "t-1", "txn", [(0, 111)], "commit")
    transaction(at_kafka, "t-2", "txn", [(1, 222)], "abort")
    open_one = transaction(at_kafka, "t-3", "txn", [(2, 333)], "leave open")
    kafka.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", at_kafka, "--topic", TOPIC, "--group", "kip848",
               "--consumer-property", "group.protocol=consumer", "--timeout-ms", "4000")
    kafka.stop(gently=True)
    del open_one
    return assigned


# ---- Muster

def muster(*words, status=0):
    done = subprocess.run([MUSTER, "log", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, f"muster log {words[0]}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def check_import(kafka, log):
    done = muster("import", "--log", log, "--set", f"offsets.topic.num.partitions={SHARDS}", *kafka.partitions())
    say(done.stdout.strip().replace("\n", "; "))
    assert re.search(r"; of transactions: 1 committed, 1 aborted and left out, 1 undecided; 0 LOST", done.stdout.replace("\n", " ")), done.stdout
    assert "is not decided; its records are kept and not applied" in done.stderr, done.stderr
    unpacked = int(re.search(r"(\d+) batches unpacked", done.stdout)[1])
    assert unpacked >= len(CODECS) - 1, done.stdout
    muster("verify", "--log", log)
    records = [json.loads(line) for line in muster("dump", "--json", "--log", log).stdout.splitlines()]
    kinds = {record["type"] for record in records}
    missing = {"OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata", "ConsumerGroupMemberMetadata", "ConsumerGroupTargetAssignmentMetadata"} - kinds
    assert not missing and "UNREADABLE" not in kinds and "Unknown" not in kinds, kinds
    say(f"dump reads {len(records)} records of {len(kinds)} types")
    return records


def second_stop(bootstrap, assigned):
    """Inside of with-muster, on the imported log."""
    expect(bootstrap, "codec-none", {0: 1})
    for codec in CODECS:
        expect(bootstrap, f"codec-{codec}", {p: 10 * p + len(codec) for p in range(PARTITIONS)})
    expect(bootstrap, "static", {p: 100 + p for p in range(PARTITIONS)})
    expect(bootstrap, "txn", {0: 111, 1: 5, 2: 5})
    members, again = static_pair(bootstrap)
    assert again == assigned, f"the static members had {assigned} and have {again}"
    members["static-2"].commit(offsets=at(*[(p, 200 + p) for p in range(PARTITIONS)]), asynchronous=False)
    leave_running(members)
    commit(bootstrap, "txn", (1, 6))
    commit(bootstrap, "new-at-muster", (3, 33))
    say("Muster: every offset is there, the static members noticed nothing, all went on")


def rebalances(path):
    with open(path, errors="replace") as text:
        return [line for line in text if "rebalance-start" in line and "group=static " in line]


# ---- the other broker

def third_stop(kafka, log, assigned):
    kafka.start()
    kafka.make_topic()
    commit(kafka.bootstrap, "makes-the-topic", (0, 1))
    kafka.stop(gently=True)
    refused = muster("export", "--all", "--log", log, kafka.data, status=1).stderr
    assert "is in the way" in refused, refused
    for path in glob.glob(f"{kafka.data}/__consumer_offsets-*/*.log"):
        os.truncate(path, 0)
    done = muster("export", "--all", "--log", log, kafka.data)
    say(done.stdout.strip())
    for folder in kafka.partitions():
        check_dump(kafka, folder)
    kafka.start()
    for codec in CODECS:
        expect(kafka.bootstrap, f"codec-{codec}", {p: 10 * p + len(codec) for p in range(PARTITIONS)})
    expect(kafka.bootstrap, "static", {p: 200 + p for p in range(PARTITIONS)})
    expect(kafka.bootstrap, "new-at-muster", {3: 33})
    expect(kafka.bootstrap, "txn", {0: 111, 1: 6, 2: 5})
    text = kafka.tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", kafka.bootstrap, "--describe", "--group", "static")
    rows = {int(row.split()[2]): row.split() for row in text.splitlines() if row.startswith("static ")}
    assert {p: int(row[3]) for p, row in rows.items()} == {p: 200 + p for p in range(PARTITIONS)}, text
    assert all(row[6].startswith(("static-1", "static-2")) for row in rows.values()), text  # the members are there, too
    members, again = static_pair(kafka.bootstrap)
    assert again == assigned, f"the static members had {assigned} and have {again}"
    leave_running(members)
    kafka.stop(gently=True)
    say("the second Kafka: groups, members and offsets are there")


def check_dump(kafka, folder):
    path = f"{folder}/00000000000000000000.log"
    if os.path.getsize(path) == 0:
        return
    text = kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", path, "--offsets-decoder")
    batches = re.findall(r"isvalid: (\w+)", text)
    assert batches and set(batches) == {"true"}, text[-2000:]
    for wrong in ("Exception", "Could not", "Failed", "non-consecutive", "invalid bytes"):
        assert wrong not in text, text[-2000:]


# ---- the way

def inside(assigned):
    second_stop(os.environ["MUSTER_BOOTSTRAP"], assigned)


def whole(jars, folder):
    first, second = Kafka(jars, f"{folder}/first"), Kafka(jars, f"{folder}/second")
    log, output = f"{folder}/log", f"{folder}/muster.log"
    try:
        assigned = first_stop(first)
        check_import(first, log)
        words = [f"{TOP}/deploy/with-muster", "--log", output, "--set", f"log.dir={log}", "--set", f"offsets.topic.num.partitions={SHARDS}",
                 "--set", "group.initial.rebalance.delay.ms=0", "--topic", f"{TOPIC}:{PARTITIONS}", "--", sys.executable, __file__, "--inside",
                 json.dumps(assigned)]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=180)
        if done.returncode == 77:
            return 77
        assert done.returncode == 0, f"with-muster: status {done.returncode}"
        assert rebalances(output) == [], rebalances(output)
        third_stop(second, log, assigned)
    finally:
        first.stop()
        second.stop()
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep")
    parser.add_argument("--inside")
    options = parser.parse_args()
    if options.inside:
        inside(json.loads(options.inside))
        return 0
    if os.geteuid() != 0:
        print("skip: it takes root to start Muster on a TAP")
        return 77
    try:
        jars = broker.jars()
    except broker.Missing as e:
        print(f"skip: {e}")
        return 77
    if options.keep:
        shutil.rmtree(options.keep, ignore_errors=True)
        os.makedirs(options.keep)
        return whole(jars, options.keep)
    with tempfile.TemporaryDirectory(prefix="muster-interop-") as folder:
        return whole(jars, folder)


if __name__ == "__main__":
    sys.exit(main())
