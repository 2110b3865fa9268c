"""The log of the program from outside: served while it loads, damaged, set aside, and on a disk that fails (disk_shim.c)."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from program import MUSTER, TOP
from test_start_stop import READY, SETTINGS, Case

LOADING, NOT_COORDINATOR, REBALANCE = 14, 16, 27
BLOCK = 4096


class LogCase(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="muster-test-log-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log")
        with open(os.path.join(self.folder, "topics"), "w") as topics:
            topics.write("demo:6\n")

    def serve(self, *words, ready=READY):
        """A server whose asker is in self.ask."""
        # the shim comes before a sanitizer's library, which would refuse that
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        os.environ.update(LD_PRELOAD=os.environ["MUSTER_DISK_SHIM"], SHIM_FOLDER=self.folder, ASAN_OPTIONS=sanitizer)
        try:
            server = self.start("--set", f"log.dir={self.log}", "--set", f"topics.file={self.folder}/topics", "--set", "log.segment.bytes=1048576",
                                "--set", "group.initial.rebalance.delay.ms=0", *words, ready=ready)
        finally:
            del os.environ["LD_PRELOAD"]
        return server

    def asker(self, server):
        server.link_up()
        asker = subprocess.Popen(server.inside(sys.executable, os.path.join(TOP, "tests/config/ask.py")), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True)
        self.addCleanup(lambda: (asker.stdin.close(), asker.kill(), asker.wait(), asker.stdout.close()))

        def ask(name, version, **values):
            asker.stdin.write(json.dumps([name, version, values]) + "\n")
            asker.stdin.flush()
            return json.loads(asker.stdout.readline())
        return ask

    @staticmethod
    def commit(ask, offset, group="g"):
        answer = ask("OffsetCommit", 7, group=group, topics=[{"name": "demo", "partitions": [{"index": 0, "offset": offset}]}])
        return answer["topics"][0]["partitions"][0]["error"]

    @staticmethod
    def fetch(ask, group="g"):
        answer = ask("OffsetFetch", 5, group=group, topics=[{"name": "demo", "partitions": [0]}])
        return answer["error"], answer["topics"] and answer["topics"][0]["partitions"][0]["offset"]

    def stop(self, server, status=0, how=signal.SIGTERM):
        server.process.send_signal(how)
        self.assertEqual(server.ends(10)[0], status, server.rest())
        return server.rest()

    def say(self, what, there=True):
        path = os.path.join(self.folder, what)
        open(path, "w").close() if there else os.unlink(path)


class Loading(LogCase):
    def test_served_while_it_loads(self):
        server = self.serve()
        ask = self.asker(server)
        self.assertEqual(self.commit(ask, 5), 0)
        self.stop(server)
        self.say("hold")
        server = self.serve(ready="muster: log: durable")
        ask = self.asker(server)
        member = {"group": "g", "generation": 1, "member": "m"}
        self.assertEqual(ask("Heartbeat", 3, instance=None, **member)["error"], 0)
        self.assertEqual(ask("SyncGroup", 3, instance=None, assignments=[], **member)["error"], REBALANCE)
        join = ask("JoinGroup", 5, group="g", member="m", instance=None, protocols=[])
        self.assertEqual((join["error"], join["member"]), (LOADING, "m"))
        self.assertEqual(ask("LeaveGroup", 1, group="g", member="m")["error"], LOADING)
        self.assertEqual(self.commit(ask, 6), LOADING)
        self.assertEqual(self.fetch(ask), (LOADING, []))
        self.assertEqual(ask("FindCoordinator", 2, key="g")["error"], 0)
        self.assertNotIn(READY, server.seen)
        self.say("hold", False)
        server.wait_for(READY)
        self.assertRegex(server.seen, r"muster: log: start 2, 1 records read from 1 segments, 0 set aside, 0 blocks lost, in \d+ ms\n")
        self.assertEqual(self.fetch(ask), (0, 5))
        self.assertEqual(self.commit(ask, 6), 0)
        self.stop(server)

    def test_stopped_while_it_loads(self):
        self.stop(self.serve())
        self.say("hold")
        server = self.serve(ready="muster: log: durable")
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("muster: stopping on SIGTERM")
        self.say("hold", False)
        self.assertEqual(server.ends(10)[0], 0, server.rest())


class Damage(LogCase):
    def damaged(self):
        """A log of 20 commits with a bad byte in the fifth block."""
        server = self.serve()
        ask = self.asker(server)
        for i in range(20):
            self.assertEqual(self.commit(ask, i), 0)
        self.stop(server)
        self.segment = min(glob.glob(f"{self.log}/00000001-*.seg"))
        with open(self.segment, "r+b") as segment:
            segment.seek(5 * BLOCK + 100)
            byte = segment.read(1)
            segment.seek(5 * BLOCK + 100)
            segment.write(bytes([byte[0] ^ 1]))

    def test_refused_then_skipped_then_forgotten(self):
        self.damaged()
        name = os.path.basename(self.segment)
        server = self.serve(ready=None)
        self.assertEqual(server.ends(20)[0], 3, server.rest())
        self.assertIn(f"muster: log: {name}: block 5 at byte {5 * BLOCK} was durable and is damaged", server.rest())
        server = self.serve("--recover=skip-damaged")
        self.assertIn(f"log: {name}: LOST: blocks 5 to 5 at byte {5 * BLOCK}\n", server.seen)
        self.assertRegex(server.seen, r"LOST: shard \d+, offsets 4 to 4\n")
        self.assertIn("19 records read from 1 segments, 0 set aside, 1 blocks lost", server.seen)
        self.assertEqual(self.fetch(self.asker(server)), (0, 19))
        self.stop(server)
        self.assertTrue(os.path.exists(f"{self.segment}-{5 * BLOCK:x}.damaged"))
        server = self.serve()
        self.assertNotIn("LOST", server.seen)
        self.assertIn("0 blocks lost", server.seen)
        self.stop(server)

    def test_recover_takes_two_words(self):
        done = subprocess.run([MUSTER, *SETTINGS, "--recover=maybe"], capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--recover: maybe: allowed: refuse, skip-damaged", done.stderr)


class Workers(LogCase):
    def test_their_number_changes(self):
        """Each shard's records are found whoever wrote them: the logs of one, three and two workers."""
        wanted = {}
        for start, workers in enumerate((1, 3, 2, 1), 1):
            server = self.serve("--set", f"workers={workers}", ready="muster: ready, ")
            ask = self.asker(server)
            for group, offset in wanted.items():
                self.assertEqual(self.fetch(ask, group), (0, offset), f"{group} after a start with {workers} workers")
            for n in range(12):
                if n % start == 0:
                    self.assertEqual(self.commit(ask, 100 * start + n, f"group-{n}"), 0)
                    wanted[f"group-{n}"] = 100 * start + n
            self.stop(server)


class FailingDisk(LogCase):
    def test_the_program_ends(self):
        server = self.serve()
        ask = self.asker(server)
        self.assertEqual(self.commit(ask, 5), 0)
        self.say("fail")
        self.assertEqual(self.commit(ask, 6), NOT_COORDINATOR, "who waits is told before the end")
        self.assertEqual(server.ends(10)[0], 1, server.rest())
        said = server.rest()
        self.assertRegex(said, r"muster: log: FAILED: writing \S+: Input/output error; nothing is acknowledged any more")
        self.assertIn("muster: log.failure.policy=exit: the program ends", said)
        self.say("fail", False)
        server = self.serve()
        self.assertEqual(self.fetch(self.asker(server)), (0, 5))
        self.stop(server)

    def test_the_program_serves_on(self):
        server = self.serve("--set", "log.failure.policy=stop")
        ask = self.asker(server)
        self.assertEqual(self.commit(ask, 5), 0)
        self.say("fail")
        self.assertEqual(self.commit(ask, 6), NOT_COORDINATOR)
        self.say("fail", False)
        self.assertEqual(self.commit(ask, 7), NOT_COORDINATOR, "a disk that failed once is not trusted again")
        self.assertEqual(self.fetch(ask), (0, 5))
        self.assertEqual(ask("FindCoordinator", 2, key="g")["error"], 0)
        said = self.stop(server)
        self.assertEqual(said.count("FAILED"), 1)
        self.assertIn("muster: log.failure.policy=stop: commits and assignments are refused from now on", said)


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("skipped: needs root and /dev/net/tun")
        sys.exit(77)
    unittest.main()
