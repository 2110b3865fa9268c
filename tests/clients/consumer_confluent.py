"""A python3-confluent-kafka consumer that a test drives; the words are those of rdkafka_consumer.c."""
from confluent_kafka import Consumer, TopicPartition

import consumer_protocol
from consumer_protocol import tell


def main():
    opt = consumer_protocol.options()
    consumer = Consumer({
        "bootstrap.servers": opt.bootstrap, "group.id": opt.group, "client.id": opt.client_id,
        "partition.assignment.strategy": opt.assignor,
        "session.timeout.ms": opt.session_ms, "heartbeat.interval.ms": opt.heartbeat_ms, "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 500, "error_cb": lambda error: tell("error", text=str(error))})
    have = set()

    def on_assign(_, partitions):
        have.update(p.partition for p in partitions)
        tell("assigned", all=sorted(have))

    def on_revoke(_, partitions):
        have.difference_update(p.partition for p in partitions)
        tell("revoked", all=sorted(have))

    def poll():
        message = consumer.poll(0.05)
        if message is not None and message.error():
            tell("error", text=str(message.error()))

    def commit(offset):
        consumer.commit(offsets=[TopicPartition(opt.topic, p, offset) for p in sorted(have)], asynchronous=False)

    def committed():
        count = len(consumer.list_topics(opt.topic, timeout=10).topics[opt.topic].partitions)
        answer = consumer.committed([TopicPartition(opt.topic, p) for p in range(count)], timeout=10)
        return {p.partition: p.offset for p in answer if p.offset >= 0}

    consumer.subscribe([opt.topic], on_assign=on_assign, on_revoke=on_revoke)
    consumer_protocol.run(poll, commit, committed, consumer.close)


main()
