"""Clients that read __consumer_offsets as a topic. Run by deploy/with-muster, with and without --durable.

usage: log_readers.py durable | memory

  durable   confluent-kafka, kafka-python, kcat and (where Java and Kafka's jars are) the console consumer with Kafka's formatters read what
            groups commit, from the beginning, live, by time and over a restart; nobody can produce to it
  memory    the topic is there, and empty
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "diff"))
import broker  # noqa: E402

try:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient
    from kafka import KafkaConsumer
    from kafka import TopicPartition as PythonPartition
except ImportError as e:
    print(f"a package of a client is missing: {e}")
    sys.exit(77)

BOOTSTRAP, TOPIC, SHARDS, WAIT_SECONDS = os.environ["MUSTER_BOOTSTRAP"], "__consumer_offsets", 50, 30
NEWEST = {"one": 6, "two": 10}  # what follow() leaves committed; older records may be cleaned away


def consumer(group):
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, "enable.auto.commit": False, "log_level": 0, "reconnect.backoff.max.ms": 200,
                     "auto.offset.reset": "error", "socket.timeout.ms": 3000})  # a killed server says nothing, so a waiting fetch finds out by this


def commit(group, offset):
    client = consumer(group)
    client.commit(offsets=[TopicPartition("demo", 0, offset)], asynchronous=False)
    client.close()


def offset_record(key, value):
    """(group, offset) of an offset record of demo-0, or None."""
    if key[:2] != b"\0\1" or value is None:
        return None
    n = int.from_bytes(key[2:4], "big")
    return key[4:4 + n].decode(), int.from_bytes(value[2:10], "big")


def until(found, wanted, step):
    end = time.monotonic() + WAIT_SECONDS
    while len(found) < wanted and time.monotonic() < end:
        step()
    assert len(found) >= wanted, f"{len(found)} of {wanted} came: {found}"


class Follower:
    """confluent-kafka on all partitions, from the beginning."""

    def __init__(self):
        self.client, self.found, self.places = consumer("follower"), [], {}
        self.client.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(SHARDS)])

    def step(self):
        message = self.client.poll(0.1)
        if message is None or message.error():
            assert message is None or not message.error().fatal(), message.error()
            return
        last = self.places.get(message.partition(), (-1, 0))[0]
        assert message.offset() > last, f"partition {message.partition()}: offset {message.offset()} after {last}"
        self.places[message.partition()] = message.offset(), message.timestamp()[1]
        record = offset_record(message.key(), message.value())
        if record is not None:
            self.found.append(record)


def listed():
    topic = AdminClient({"bootstrap.servers": BOOTSTRAP}).list_topics(timeout=WAIT_SECONDS).topics[TOPIC]
    assert len(topic.partitions) == SHARDS and all(p.leader >= 0 and p.replicas == [p.leader] for p in topic.partitions.values()), topic.partitions


def follow():
    follower = Follower()
    until(follower.found, 3, follower.step)
    assert sorted(follower.found) == [("one", 1), ("one", 2), ("two", 10)], follower.found
    for offset in (3, 4, 5):
        commit("one", offset)
        until(follower.found, offset + 1, follower.step)
    subprocess.run([os.environ["MUSTER_RESTART"], "kill"], check=True)
    commit("one", 6)
    until(follower.found, 7, follower.step)
    assert follower.found[3:] == [("one", n) for n in (3, 4, 5, 6)], follower.found
    partition = max(follower.places, key=lambda p: follower.places[p][1])
    offset, stamp = follower.places[partition]
    for at, least, most in ((stamp, 0, offset), (0, 0, offset), (stamp + 10**6, -1, -1)):  # older records may have been cleaned away by now
        found = follower.client.offsets_for_times([TopicPartition(TOPIC, partition, at)], timeout=WAIT_SECONDS)[0]
        assert found.error is None and least <= found.offset <= most, found
    assert follower.client.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=WAIT_SECONDS) == (0, offset + 1)
    follower.client.close()
    print("confluent-kafka: from the beginning, live, over a kill, by time", flush=True)


def kafka_python():
    client, newest = KafkaConsumer(bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest", enable_auto_commit=False), {}
    client.assign([PythonPartition(TOPIC, p) for p in range(SHARDS)])
    client.seek_to_beginning()

    def step():
        for messages in client.poll(100).values():
            newest.update(r for r in (offset_record(m.key, m.value) for m in messages) if r)
    end = time.monotonic() + WAIT_SECONDS
    while newest != NEWEST and time.monotonic() < end:
        step()
    assert newest == NEWEST, newest
    client.close()
    print("kafka-python: from the beginning", flush=True)


def kcat():
    done = subprocess.run(["kcat", "-b", BOOTSTRAP, "-C", "-t", TOPIC, "-o", "beginning", "-e", "-q", "-f", "%p %o %K %S\\n"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) >= len(NEWEST) and all(len(line) == 4 for line in lines), done.stdout
    print(f"kcat: {len(lines)} records", flush=True)


def java():
    try:
        jars = broker.jars()
    except broker.Missing as e:
        print(f"note: the console consumer was left out: {e}", flush=True)
        return
    for formatter, kind, least in (("OffsetsMessageFormatter", 1, 2), ("GroupMetadataMessageFormatter", 2, 2)):
        done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{jars}/*",
                               "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", BOOTSTRAP, "--topic", TOPIC, "--from-beginning",
                               "--formatter", f"org.apache.kafka.tools.consumer.{formatter}", "--timeout-ms", "6000"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
        keys = re.findall(r'\{"key":\{"type":(\d+),"data":(\{.*?\})\}', done.stdout)
        assert len(keys) >= least and all(int(number) == kind for number, _ in keys), done.stdout[:2000]
        groups = {json.loads(key)["group"] for _, key in keys}
        assert {"one", "two"} <= groups if kind == 1 else any(g.startswith("console-consumer-") for g in groups), done.stdout[:2000]
        print(f"console consumer, {formatter}: {len(keys)} records", flush=True)


def nobody_produces():
    errors = []
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "log_level": 0, "message.timeout.ms": 5000})
    producer.produce(TOPIC, b"value", b"key", partition=0, on_delivery=lambda error, message: errors.append(error))
    producer.flush(WAIT_SECONDS)
    assert len(errors) == 1 and errors[0] is not None, errors
    print(f"produce: refused, {errors[0].str()}", flush=True)


def durable():
    listed()
    commit("one", 1)
    commit("one", 2)
    commit("two", 10)
    follow()
    kafka_python()
    if shutil.which("kcat") is not None:
        kcat()
    java()
    nobody_produces()


def memory():
    listed()
    commit("one", 1)
    client = consumer("follower")
    for p in range(SHARDS):
        assert client.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=WAIT_SECONDS) == (0, 0)
    client.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(SHARDS)])
    message = client.poll(1)
    assert message is None, message
    client.close()
    print("a server without a log on disk lists the topic, empty")


if __name__ == "__main__":
    if sys.argv[1:] == ["durable"]:
        durable()
    elif sys.argv[1:] == ["memory"]:
        memory()
    else:
        print(__doc__)
        sys.exit(2)
