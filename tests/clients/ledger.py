"""Real clients that commit as fast as they can, each with a ledger of what it sent and what was acknowledged. For crash.py."""
import os
import random
import sys

TOPIC, PARTITIONS = "demo", range(6)

try:
    from confluent_kafka import Consumer, KafkaException
    from confluent_kafka import TopicPartition as RdTopicPartition
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata
except ImportError as missing:
    print(f"skip: python3-confluent-kafka or python3-kafka is missing: {missing}")
    sys.exit(77)


class Wrong(Exception):
    """The server lost or invented something."""


class Ledger:
    def __init__(self, name, seed):
        self.name, self.random = name, random.Random(seed)
        self.sent, self.acked, self.seen = dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, -1)
        self.commits = self.checks = 0
        self.wrong = None

    def run(self, stop):
        try:
            client = self.open()
            while not stop.is_set():
                values = {p: self.sent[p] + 1 for p in self.random.sample(PARTITIONS, self.random.randint(1, 4))}
                self.sent.update(values)
                if self.commit(client, values):
                    self.acked.update(values)
                    self.commits += 1
            client.close()
        except Exception as wrong:  # pylint: disable=broad-except
            self.wrong = wrong

    def check(self):
        """The server is up. What was acknowledged before the question must be in the answer, what was not sent before the answer must not."""
        acked = dict(self.acked)
        client = self.open()
        found = self.committed(client)
        client.close()
        for p, offset in found.items():
            if acked[p] > 0 and offset < acked[p]:
                raise Wrong(f"LOST: {self.name}-{p} is {offset}, {acked[p]} was acknowledged")
            if offset > self.sent[p]:
                raise Wrong(f"INVENTED: {self.name}-{p} is {offset}, {self.sent[p]} was sent")
            if offset < self.seen[p]:
                raise Wrong(f"BACK: {self.name}-{p} is {offset}, {self.seen[p]} was read before")
            self.seen[p] = offset
        self.checks += 1


class Librdkafka(Ledger):
    def open(self):
        return Consumer({"bootstrap.servers": os.environ["MUSTER_BOOTSTRAP"], "group.id": self.name, "enable.auto.commit": False, "log_level": 0,
                         "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 2000})

    def commit(self, client, values):
        try:
            answer = client.commit(offsets=[RdTopicPartition(TOPIC, p, o) for p, o in values.items()], asynchronous=False)
            return all(tp.error is None for tp in answer)
        except KafkaException:
            return False

    def committed(self, client):
        return {tp.partition: max(tp.offset, -1) for tp in client.committed([RdTopicPartition(TOPIC, p) for p in PARTITIONS], timeout=20)}


class KafkaPython(Ledger):
    def open(self):
        return KafkaConsumer(bootstrap_servers=os.environ["MUSTER_BOOTSTRAP"], group_id=self.name, enable_auto_commit=False, reconnect_backoff_ms=20,
                             reconnect_backoff_max_ms=200, request_timeout_ms=12000, retry_backoff_ms=20, api_version=(2, 3, 0))

    def commit(self, client, values):
        try:
            client.commit({TopicPartition(TOPIC, p): OffsetAndMetadata(o, "") for p, o in values.items()})
            return True
        except KafkaError:
            return False

    def committed(self, client):
        return {p: -1 if (offset := client.committed(TopicPartition(TOPIC, p))) is None else offset for p in PARTITIONS}


LEDGERS = [Librdkafka, KafkaPython]
