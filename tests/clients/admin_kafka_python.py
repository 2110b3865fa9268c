"""The admin client of python3-kafka against the program: groups listed, described, their offsets read, deleted; settings shown.

Runs inside deploy/with-muster with the topic demo:6. Exit status 77 where the package is missing.
"""
import os
import sys
import time
import unittest

try:
    from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import NoError, NonEmptyGroupError
    from kafka.structs import OffsetAndMetadata
except ImportError as missing:
    print(f"skip: {missing}")
    sys.exit(77)

BOOTSTRAP = os.environ["MUSTER_BOOTSTRAP"]
PARTITIONS = [TopicPartition("demo", number) for number in range(6)]


def commit_as_simple_group(group, partitions):
    """A group without members: partitions chosen by hand."""
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=group, enable_auto_commit=False)
    consumer.assign(partitions)
    consumer.commit({partition: OffsetAndMetadata(50 + partition.partition, "by hand") for partition in partitions})
    consumer.close()


class Admin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        cls.consumer = KafkaConsumer("demo", bootstrap_servers=BOOTSTRAP, group_id="live", client_id="worker", enable_auto_commit=False,
                                     session_timeout_ms=30000)
        end = time.monotonic() + 30
        while len(cls.consumer.assignment()) < 6 and time.monotonic() < end:
            cls.consumer.poll(200)
        cls.consumer.commit({partition: OffsetAndMetadata(10 + partition.partition, "") for partition in PARTITIONS})

    @classmethod
    def tearDownClass(cls):
        cls.consumer.close()
        cls.admin.close()

    def state(self, group):
        return self.admin.describe_consumer_groups([group])[0].state

    def test_list(self):
        commit_as_simple_group("listed", PARTITIONS[:1])
        listed = dict(self.admin.list_consumer_groups())
        self.assertEqual((listed["live"], listed["listed"]), ("consumer", ""))

    def test_describe(self):
        live, unknown = self.admin.describe_consumer_groups(["live", "unknown"])
        self.assertEqual((live.error_code, live.group, live.state, live.protocol_type, live.protocol),
                         (0, "live", "Stable", "consumer", "range"))
        self.assertEqual([member.client_id for member in live.members], ["worker"])
        member = live.members[0]
        self.assertTrue(member.member_id.startswith("worker-") and member.client_host.startswith("/10."), member)
        self.assertEqual(member.member_metadata.subscription, ["demo"])
        self.assertEqual([(topic, sorted(numbers)) for topic, numbers in member.member_assignment.assignment], [("demo", list(range(6)))])
        self.assertEqual((unknown.error_code, unknown.state, len(unknown.members)), (0, "Dead", 0))

    def test_offsets(self):
        offsets = self.admin.list_consumer_group_offsets("live")
        self.assertEqual({partition: value.offset for partition, value in offsets.items()},
                         {partition: 10 + partition.partition for partition in PARTITIONS})
        some = self.admin.list_consumer_group_offsets("live", partitions=[PARTITIONS[3]])
        self.assertEqual(some[PARTITIONS[3]].offset, 13)
        self.assertEqual(self.admin.list_consumer_group_offsets("unknown"), {})

    def test_delete(self):
        commit_as_simple_group("finished", PARTITIONS)
        self.assertEqual(self.state("finished"), "Empty")
        self.assertEqual(self.admin.list_consumer_group_offsets("finished")[PARTITIONS[5]].metadata, "by hand")
        self.assertEqual(dict(self.admin.delete_consumer_groups(["live", "finished"])), {"live": NonEmptyGroupError, "finished": NoError})
        self.assertEqual((self.state("live"), self.state("finished")), ("Stable", "Dead"))
        self.assertEqual(self.admin.list_consumer_group_offsets("finished"), {})

    def test_settings(self):
        answers = self.admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1000")])
        error, _, _, name, entries = answers[0].resources[0]
        self.assertEqual((error, name), (0, "1000"))
        values = {entry[0]: entry[1] for entry in entries}
        self.assertEqual(values["group.initial.rebalance.delay.ms"], "0")
        self.assertEqual(values["offsets.retention.minutes"], "10080")


if __name__ == "__main__":
    unittest.main(verbosity=2)
