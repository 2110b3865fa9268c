"""A python3-kafka consumer that a test drives; the words are those of rdkafka_consumer.c."""
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata

import consumer_protocol
from consumer_protocol import tell

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        tell("revoked", all=[])

    def on_partitions_assigned(self, assigned):
        tell("assigned", all=sorted(p.partition for p in assigned))


def main():
    opt = consumer_protocol.options()
    consumer = KafkaConsumer(
        bootstrap_servers=opt.bootstrap, group_id=opt.group, client_id=opt.client_id, session_timeout_ms=opt.session_ms,
        heartbeat_interval_ms=opt.heartbeat_ms, enable_auto_commit=False, partition_assignment_strategy=[ASSIGNORS[opt.assignor]])

    def commit(offset):
        consumer.commit({p: OffsetAndMetadata(offset, "") for p in consumer.assignment()})

    def committed():
        answer = {p: consumer.committed(TopicPartition(opt.topic, p)) for p in consumer.partitions_for_topic(opt.topic)}
        return {p: offset for p, offset in answer.items() if offset is not None}

    consumer.subscribe([opt.topic], listener=Listener())
    consumer_protocol.run(lambda: consumer.poll(timeout_ms=50), commit, committed, consumer.close)


main()
