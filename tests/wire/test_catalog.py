#!/usr/bin/env python3
"""The catalog of topics is read again on SIGHUP: every worker tells the new one, offsets of topics that are gone go, nobody else notices."""

import os
import re
import signal
import time
import unittest

from harness import NONE, TOPIC, UNKNOWN_TOPIC, WORKERS, WireCase, connect, fresh, server_pid


class Catalog(WireCase):
    def setUp(self):
        super().setUp()
        with open(os.environ["MUSTER_LOG"], errors="replace") as log:
            self.path = re.search(r"^muster: topics: .* from (\S+)$", log.read(), re.M)[1]
        if not os.access(self.path, os.W_OK):
            self.skipTest("the catalog of with-muster is not ours to write (run it as root)")
        with open(self.path) as text:
            self.before = text.read()

    def tearDown(self):
        self.reload(self.before, r"topics: \d+, read again")
        super().tearDown()

    def reload(self, text, said):
        """Waits for the server's word about it."""
        with open(self.path, "w") as out:
            out.write(text)
        with open(os.environ["MUSTER_LOG"], errors="replace") as log:
            log.seek(0, os.SEEK_END)
            os.kill(server_pid(), signal.SIGHUP)
            heard, end = "", time.monotonic() + 10
            while not re.search(said, heard):
                self.assertLess(time.monotonic(), end, "the server did not say %r: %r" % (said, heard))
                time.sleep(0.01)
                heard += log.read()

    def topics(self, worker):
        with connect(worker) as c:
            return {t["name"]: len(t["partitions"]) for t in c.request("Metadata", 9, topics=None)["topics"] if not t["internal"]}

    def commit(self, c, group, topic, offset):
        answer = c.request("OffsetCommit", 7, group=group, topics=[{"name": topic, "partitions": [{"index": 0, "offset": offset}]}])
        return answer["topics"][0]["partitions"][0]["error"]

    def offset(self, c, group, topic):
        answer = c.request("OffsetFetch", 7, group=group, topics=[{"name": topic, "partitions": [0]}])
        return answer["topics"][0]["partitions"][0]["offset"]

    def test_topics_come_and_go(self):
        groups = [fresh() for _ in range(4 * WORKERS)]
        self.reload("%s:6\nnew:3\n" % TOPIC, "topics: 2, read again")
        for w in range(WORKERS):
            self.assertEqual(self.topics(w), {TOPIC: 6, "new": 3})
        with connect(0) as c:
            for group in groups:
                self.assertEqual((self.commit(c, group, "new", 7), self.commit(c, group, TOPIC, 8)), (NONE, NONE))
            self.reload("%s:6\n" % TOPIC, "topics: 1, read again")
            for w in range(WORKERS):
                self.assertEqual(self.topics(w), {TOPIC: 6})
            for group in groups:
                self.assertEqual(self.commit(c, group, "new", 9), UNKNOWN_TOPIC)
                end = time.monotonic() + 10
                while self.offset(c, group, "new") != -1:
                    self.assertLess(time.monotonic(), end, "the offset of a topic that is gone stays")
                    time.sleep(0.01)
                self.assertEqual(self.offset(c, group, TOPIC), 8)

    def test_a_catalog_with_an_error_changes_nothing(self):
        before = self.topics(0)
        self.reload("%s:6\nbad name:3\n" % TOPIC, "topics stay as they are: .*:2: ")
        for w in range(WORKERS):
            self.assertEqual(self.topics(w), before)

    def test_again_and_again_under_load(self):
        for i in range(30):
            self.reload("%s:6\nturn-%d:%d\n" % (TOPIC, i, i + 1), "topics: 2, read again")
            self.assertEqual(self.topics(i % WORKERS), {TOPIC: 6, "turn-%d" % i: i + 1})


if __name__ == "__main__":
    unittest.main()
