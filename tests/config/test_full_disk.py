"""A disk that is really full: the log of the program on a small tmpfs, in a mount namespace that goes away with the test."""
import errno
import os
import signal
import subprocess
import sys
import time
import unittest

from test_log import LogCase

NONE, NOT_AVAILABLE, REBALANCE = 0, 15, 27
TMPFS_BYTES = 16 << 20
METADATA = "m" * 4000  # of each offset: the log fills up soon
INSIDE = "--inside"


class FullDisk(LogCase):
    def setUp(self):
        super().setUp()
        self.disk = os.path.join(self.folder, "disk")
        self.log = os.path.join(self.disk, "log")
        os.mkdir(self.disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", self.disk], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", self.disk], check=True))
        self.acked, self.refused = {}, set()  # group -> offset; groups

    def fill(self):
        """The tmpfs has no byte left."""
        with open(os.path.join(self.disk, "filler"), "ab", buffering=0) as filler:
            for piece in (1 << 20, 4096):
                try:
                    while filler.write(bytes(piece)) == piece:
                        pass
                except OSError as full:
                    self.assertEqual(full.errno, errno.ENOSPC)

    def free(self):
        os.unlink(os.path.join(self.disk, "filler"))

    def commit_much(self, ask, group, offset):
        answer = ask("OffsetCommit", 7, group=group, topics=[{"name": "demo", "partitions": [
            {"index": p, "offset": offset, "metadata": METADATA} for p in range(6)]}])
        errors = {p["error"] for p in answer["topics"][0]["partitions"]}
        self.assertEqual(len(errors), 1, "one batch: all or nothing")
        error = errors.pop()
        if error == NONE:
            self.acked[group] = offset
            self.refused.discard(group)
        elif group not in self.acked:
            self.refused.add(group)
        return error

    def until_full(self, ask):
        """Ever new groups, so that cleaning has nothing to give back."""
        for n in range(1000):
            self.fill()
            error = self.commit_much(ask, f"group-{n}", 1000 + n)
            if error != NONE:
                self.assertEqual(error, NOT_AVAILABLE)
                return
        self.fail("never full")

    def until_taken(self, ask, group, offset, seconds=20):
        end = time.monotonic() + seconds
        while (error := self.commit_much(ask, group, offset)) != NONE:
            self.assertEqual(error, NOT_AVAILABLE)
            self.assertLess(time.monotonic(), end, "commits are not taken again")
            time.sleep(0.02)

    def compare(self, ask):
        for group, offset in self.acked.items():
            self.assertEqual(self.fetch(ask, group), (0, offset), group)
        for group in self.refused:
            self.assertEqual(self.fetch(ask, group), (0, -1), f"{group} was refused")

    @staticmethod
    def join(ask, member, metadata):
        return ask("JoinGroup", 5, group="living", member=member, instance=None, session_ms=60000, rebalance_ms=60000,
                   protocols=[{"name": "range", "metadata": metadata}])

    @staticmethod
    def sync(ask, member, generation, assignment):
        return ask("SyncGroup", 3, group="living", generation=generation, member=member, instance=None,
                   assignments=[{"member": member, "assignment": assignment}])

    @staticmethod
    def heartbeat(ask, member, generation):
        return ask("Heartbeat", 3, group="living", generation=generation, member=member, instance=None)["error"]

    def living(self, ask):
        """A stable group of one member; its id and generation."""
        member = self.join(ask, "", "one")["member"]
        joined = self.join(ask, member, "one")
        self.assertEqual(joined["error"], NONE)
        self.assertEqual(self.sync(ask, member, joined["generation"], "mine")["error"], NONE)
        return member, joined["generation"]

    def test_served_while_full_and_afterwards(self):
        server = self.serve()
        ask = self.asker(server)
        member, generation = self.living(ask)
        self.assertEqual(self.commit_much(ask, "deleted", 1), NONE)
        self.until_full(ask)
        server.wait_for("log: FULL: no room for more")
        self.compare(ask)
        self.assertEqual(self.heartbeat(ask, member, generation), NONE)
        joined = self.join(ask, member, "two")
        self.assertEqual((joined["error"], joined["generation"]), (NONE, generation + 1), "a rebalance needs no record up to its SyncGroup")
        self.assertEqual(self.sync(ask, member, joined["generation"], "new")["error"], NOT_AVAILABLE)
        self.assertIn(self.heartbeat(ask, member, joined["generation"]), (NONE, REBALANCE))
        self.assertEqual(self.commit_much(ask, "group-0", 5000), NOT_AVAILABLE, "an older group is refused as well")
        self.assertEqual(ask("DeleteGroups", 1, groups=["deleted"])["results"], [{"group": "deleted", "error": NONE}], "deletions go on")
        del self.acked["deleted"]
        self.refused.add("deleted")
        self.compare(ask)

        self.free()
        self.until_taken(ask, "group-0", 6000)
        server.wait_for("log: there is room again")
        joined = self.join(ask, member, "two")
        self.assertEqual(joined["error"], NONE)
        synced = self.sync(ask, member, joined["generation"], "new")
        self.assertEqual(synced["error"], NONE)
        self.compare(ask)
        self.stop(server, -signal.SIGKILL, signal.SIGKILL)

        server = self.serve()
        ask = self.asker(server)
        self.compare(ask)
        self.assertEqual(self.heartbeat(ask, member, joined["generation"]), NONE)
        self.assertEqual(self.sync(ask, member, joined["generation"], "other")["assignment"], synced["assignment"])
        self.stop(server)

    def test_killed_while_full(self):
        server = self.serve()
        ask = self.asker(server)
        self.until_full(ask)
        self.stop(server, -signal.SIGKILL, signal.SIGKILL)
        self.free()
        server = self.serve()
        ask = self.asker(server)
        self.compare(ask)
        self.assertEqual(self.commit_much(ask, "group-0", 7000), NONE)
        self.compare(ask)
        self.stop(server)


def main():
    if INSIDE in sys.argv:
        sys.argv.remove(INSIDE)
        unittest.main()
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("skipped: needs root and /dev/net/tun")
        sys.exit(77)
    probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    if probe.returncode != 0:
        print(f"skipped: no tmpfs can be mounted here: {probe.stderr.strip()}")
        sys.exit(77)
    os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv, INSIDE])


if __name__ == "__main__":
    main()
