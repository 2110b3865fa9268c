"""muster log dump and verify: what they print of a log that was written from its format alone, what they say about damage, exit statuses."""
import fcntl
import glob
import json
import os
import subprocess
import tempfile
import unittest

import records as r

MUSTER = os.environ["MUSTER_BIN"]
SHARDS = 4
MEMBERS = [("m-1", "i-1", r.subscription("demo", "other"), r.assignment("demo", 0, 2)), ("m-2", None, b"\1", b"")]


def muster(*words, status=0, **more):
    done = subprocess.run([MUSTER, "log", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, **more)
    assert done.returncode == status, f"status {done.returncode}, {done.stdout}{done.stderr}"
    return done


class Case(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="muster-")
        self.addCleanup(top.cleanup)
        self.top = os.path.realpath(top.name)
        self.folder = os.path.join(self.top, "log")

    def sound(self):
        first = [[(1, r.batch(0, [(r.group_key("g"), r.group_value(7, MEMBERS, leader="m-1"))], epoch=3))],
                 [(1, r.batch(1, [(r.offset_key("g", "demo", 5), r.offset_value(99, "note")), (r.offset_key("g", "demo", 6), None)], ms=1800000000000)),
                  (2, r.batch(4, [(r.member_key(5, "k", "x"), b"\0\0abc")]))]]
        second = [[(1, r.batch(3, [(r.group_key("h"), r.group_value(1, version=0))]))], [(0, r.batch(0, [(b"\x7f\0zz", b"??")]))]]
        return r.log(self.folder, SHARDS, (1, 1, first, True), (2, 1, second, False))

    def json(self, *words, status=0):
        return [json.loads(line) for line in muster("dump", "--json", "--log", self.folder, *words, status=status).stdout.splitlines()]

    def flip(self, name, at):
        with open(os.path.join(self.folder, name), "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 4]))


class Dump(Case):
    def test_json(self):
        self.sound()
        got = self.json()
        self.assertEqual([(x["shard"], x["offset"], x["type"]) for x in got],
                         [(1, 0, "GroupMetadata"), (1, 1, "OffsetCommit"), (1, 2, "OffsetCommit"), (2, 4, "ConsumerGroupMemberMetadata"),
                          (1, 3, "GroupMetadata"), (0, 0, "Unknown")])
        self.assertEqual(got[0]["value"]["members"][0], {
            "id": "m-1", "instance": "i-1", "client": "client", "host": "/10.0.0.1", "rebalance_timeout_ms": 60000, "session_timeout_ms": 10000,
            "subscription_bytes": len(MEMBERS[0][2]), "assignment_bytes": len(MEMBERS[0][3]), "topics": ["demo", "other"],
            "assigned": ["demo-0", "demo-2"]})
        self.assertNotIn("topics", got[0]["value"]["members"][1])
        self.assertEqual((got[0]["leader_epoch"], got[0]["timestamp"], got[0]["version"]), (3, 1700000000000, 3))
        self.assertEqual(got[1]["key"], {"group": "g", "topic": "demo", "partition": 5})
        self.assertEqual(got[1]["value"], {"offset": 99, "leader_epoch": -1, "metadata": "note", "committed": 1000})
        self.assertIsNone(got[2]["value"])
        self.assertEqual((got[3]["key"], got[3]["value"]), ({"group": "k", "member": "x"}, {"value_bytes": 5}))
        self.assertEqual((got[5]["type_number"], got[5]["key"]), (0x7F00, {"key_bytes": 4}))

    def test_people(self):
        self.sound()
        lines = muster("dump", "--log", self.folder, "--shard", "1").stdout.splitlines()
        self.assertIn("shard=1 at=1 time=2027-01-15T08:00:00.000Z epoch=0 OffsetCommit group=g topic=demo partition=5 version=3 offset=99 "
                      "leader_epoch=-1 metadata=note committed=1970-01-01T00:00:01.000Z", lines)
        self.assertTrue(lines[1].startswith("    member id=m-1 instance=i-1 "), lines[1])
        self.assertTrue(lines[1].endswith("topics=demo,other assigned=demo-0,demo-2"), lines[1])
        self.assertTrue(lines[4].endswith("partition=6 TOMBSTONE"), lines[4])

    def test_filters(self):
        self.sound()
        self.assertEqual([x["offset"] for x in self.json("--group", "g")], [0, 1, 2])
        self.assertEqual([x["offset"] for x in self.json("--group", "k")], [4])
        self.assertEqual([x["offset"] for x in self.json("--from", "2027-01-01")], [1, 2])
        self.assertEqual([x["offset"] for x in self.json("--to", "1799999999999", "--shard", "1")], [0, 3])
        self.assertEqual(self.json("--from", "2027-01-15T08:00:01Z", "--to", "2027-01-15T08:00:02"), [])

    def test_all_value_versions(self):
        values = [r.group_value(5, MEMBERS[:1], version) for version in range(4)]
        blocks = [[(0, r.batch(i, [(r.group_key("g"), value)])) for i, value in enumerate(values)]]
        r.log(self.folder, SHARDS, (1, 1, blocks, True))
        got = self.json()
        self.assertEqual([x["version"] for x in got], [0, 1, 2, 3])
        self.assertEqual([x["value"]["members"][0]["id"] for x in got], ["m-1"] * 4)

    def test_group_in_parts(self):
        r.log(self.folder, SHARDS, (1, 1, [[(0, r.batch(0, r.group_in_parts("g", 7, 3, MEMBERS)))]], True))
        got = self.json("--group", "g")
        self.assertEqual([x["type"] for x in got], ["MusterGroupPart", "MusterGroupPart", "GroupMetadata"])
        self.assertEqual(got[0]["key"], {"group": "g", "member": "m-1", "slot": 0})
        self.assertEqual({name: got[0]["value"][name] for name in ("edition", "generation", "id", "instance", "assigned")},
                         {"edition": 3, "generation": 7, "id": "m-1", "instance": "i-1", "assigned": ["demo-0", "demo-2"]})
        self.assertEqual({name: got[2]["value"][name] for name in ("parts", "edition", "slot", "members")}, {"parts": 2, "edition": 3, "slot": 0, "members": []})
        muster("verify", "--log", self.folder)

    def test_strange_bytes(self):
        names = [b'a"b\\c\n', "gr\u00fc\u00dfe \U0001f600".encode(), b"\xff\xc0\x80x", b""]
        blocks = [[(0, r.batch(i, [(r.offset_key(name, "t", 0), r.offset_value(1))])) for i, name in enumerate(names)]]
        r.log(self.folder, SHARDS, (1, 1, blocks, True))
        self.assertEqual([x["key"]["group"] for x in self.json()], ['a"b\\c\n', "gr\u00fc\u00dfe \U0001f600", "\ufffd\ufffd\ufffdx", ""])
        people = muster("dump", "--log", self.folder).stdout
        self.assertIn(r'group="a\x22b\x5cc\x0a" ', people)
        self.assertIn(r'group="\xff\xc0\x80x" ', people)

    def test_a_value_that_cannot_be_read(self):
        r.log(self.folder, SHARDS, (1, 1, [[(0, r.batch(0, [(r.group_key("g"), b"\0\3\0"), (b"\0", None)]))]], True))
        got = self.json()
        self.assertEqual((got[0]["error"], got[0]["value"]), ("UNREADABLE", {"value_bytes": 3}))
        self.assertEqual(got[1]["type"], "UNREADABLE")
        said = muster("verify", "--log", self.folder, status=1)
        self.assertIn("shard 0, offset 0: the value of a record cannot be read", said.stderr)
        self.assertIn("shard 0, offset 1: the key of a record cannot be read", said.stderr)

    def test_a_full_disk_is_told_by_the_status(self):
        self.sound()
        with open("/dev/full", "w") as full:
            self.assertEqual(subprocess.run([MUSTER, "log", "dump", "--log", self.folder], stdout=full, timeout=20).returncode, 1)


class Verify(Case):
    def verify(self, status, *says):
        done = muster("verify", "--log", self.folder, status=status)
        for text in says:
            self.assertIn(text, done.stderr)
        return done

    def test_sound(self):
        self.sound()
        self.assertEqual(self.verify(0).stdout.split(": ", 2)[2],
                         f"GOOD: 2 segments, 4 blocks, 5 batches, 6 records, {4 * r.ALIGN + 5 * r.ALIGN} bytes, 4 shards; 0 damages\n")

    def test_every_bit_counts(self):
        """A flipped bit anywhere in what is not padding is found; the place is said."""
        self.sound()
        name = "00000001-0000-00000001.seg"
        for at, says in ((20, "its first block"), (r.ALIGN + 10, "block 1 at byte 4096: 1 blocks were durable"), (r.ALIGN + 70, "block 1 at byte 4096"),
                         (2 * r.ALIGN + 30, "block 2 at byte 8192"), (3 * r.ALIGN + 5, "block 3 at byte 12288")):
            self.flip(name, at)
            done = self.verify(1, f"DAMAGED: {name}", says)
            self.assertIn("DAMAGED: ", done.stdout)
            self.assertEqual(muster("dump", "--log", self.folder, status=1).returncode, 1)
            self.flip(name, at)
        self.verify(0)

    def test_damage_inside_of_a_good_block(self):
        good = r.batch(0, [(r.group_key("g"), None)])
        bad = bytearray(good)
        bad[70] ^= 1
        blocks = [[(3, bytes(bad)), (0, good), (0, good), (9, good), (1, r.batch(0, [(r.group_key("g"), None)] * 2, deltas=[1, 1]))], []]
        r.log(self.folder, SHARDS, (1, 1, blocks, True))
        self.verify(1, "block 1 at byte 4096: shard 3: a batch cannot be read", "shard 0, offset 0: a batch stands behind one with higher offsets",
                    "shard 9: there is no such shard", "shard 1, offset 1: a record does not stand in the order")

    def test_torn_tail_is_no_damage(self):
        blocks = [[(0, r.batch(0, [(r.group_key("g"), None)]))], [(0, r.batch(1, [(r.group_key("g"), None)]))]]
        r.log(self.folder, SHARDS, (1, 1, blocks, False))
        self.flip("00000001-0000-00000001.seg", 2 * r.ALIGN + 80)
        self.verify(0, "note: 00000001-0000-00000001.seg, block 2 at byte 8192: a write was under way")

    def test_end_is_missing(self):
        r.log(self.folder, SHARDS, (1, 1, [[]], False), (2, 1, [[]], False))
        self.verify(1, "00000001-0000-00000001.seg, block 2 at byte 8192: the segment ends here without its END block")

    def test_segment_is_missing(self):
        r.log(self.folder, SHARDS, (1, 1, [[]], True), (1, 3, [[]], False))
        self.verify(1, "the segments between this one and 00000001-0000-00000003.seg are missing")

    def test_lengths_that_lie(self):
        """Any four bytes of a block's payload may say anything."""
        good = r.batch(0, [(r.group_key("g"), r.group_value(1, MEMBERS))])
        for at in range(0, len(good) + 8, 5):
            for lie in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\xff\xff"):
                payload = bytearray(b"\0\0\0\0" + len(good).to_bytes(4, "big") + good)
                payload[at:at + 4] = lie
                if at >= 29:
                    payload[25:29] = r.crc32c(payload[29:]).to_bytes(4, "big")
                self.folder = os.path.join(self.top, f"log-{at}-{lie[2]}-{lie[0]}")
                r.log(self.folder, SHARDS)
                with open(os.path.join(self.folder, "00000001-0000-00000001.seg"), "wb") as out:
                    out.write(r.block(1, 0, r.identity(SHARDS, 1, 0, 1)) + r.block(2, 1, bytes(payload), safe=1) + r.block(3, 2, safe=2))
                for verb in ("verify", "dump"):
                    done = subprocess.run([MUSTER, "log", verb, "--log", self.folder], capture_output=True, timeout=20)
                    self.assertIn(done.returncode, (0, 1), (at, lie, done.stderr))


class Arguments(Case):
    def refused(self, line, *words, **more):
        done = muster(*words, status=2, **more)
        self.assertEqual((done.stdout, done.stderr), ("", f"muster: {line}\n"))

    def test_wrong_words(self):
        self.refused("muster log takes one of dump, verify, export, import; see muster log --help")
        self.refused("muster log takes one of dump, verify, export, import; see muster log --help", "eat")
        self.refused("which log? give --log FOLDER, or --config FILE with log.dir in it", "dump")
        self.refused("--json: does not belong to muster log verify", "verify", "--json")
        self.refused("--frob: there is no such option; see muster log --help", "dump", "--frob")
        self.refused("--shard: its value is missing; see muster log --help", "dump", "--shard")
        self.refused('--shard: "x1" is no number of a shard', "dump", "--shard", "x1")
        self.refused('--from: "yesterday" is no time; allowed: YYYY-MM-DD, YYYY-MM-DDTHH:MM:SS (UTC), or milliseconds since 1970',
                     "dump", "--from", "yesterday")
        self.refused("x: is no option; the log's folder is given by --log FOLDER", "dump", "x")
        self.assertIn("log.dirs", muster("dump", "--set", "log.dirs=x", status=2).stderr)

    def test_help(self):
        for words in (["--help"], ["dump", "--help"]):
            self.assertIn("usage: muster log dump", muster(*words).stdout)

    def test_no_such_log(self):
        self.refused(f"{self.folder}: No such file or directory", "dump", "--log", self.folder)
        self.assertFalse(os.path.exists(self.folder))
        os.mkdir(self.folder)
        self.refused(f"{self.folder}: this is no log: it holds no file named meta", "verify", "--log", self.folder)
        with open(os.path.join(self.folder, "meta"), "wb") as out:
            out.write(bytes(r.ALIGN))
        self.refused(f"{self.folder}/meta: it is damaged or of another version of the format", "verify", "--log", self.folder)

    def test_wrong_shard(self):
        self.sound()
        self.refused("--shard: the log has the shards 0 to 3", "dump", "--log", self.folder, "--shard", "4")

    def test_locked(self):
        self.sound()
        fd = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.refused(f"{self.folder}: a running server uses this log; stop it first, or look at a copy of the folder", "dump", "--log", self.folder)
        fcntl.flock(fd, fcntl.LOCK_SH)
        muster("dump", "--log", self.folder)  # another reader is none

    def test_log_dir_of_the_settings(self):
        self.sound()
        path = os.path.join(self.top, "muster.conf")
        with open(path, "w") as out:
            out.write("[log]\nlog.dir = log\n")
        self.assertEqual(len(muster("dump", "--json", "--config", path).stdout.splitlines()), 6)
        self.assertEqual(len(muster("dump", "--json", "--set", f"log.dir={self.folder}").stdout.splitlines()), 6)

    def test_nothing_is_changed(self):
        self.sound()
        def read(name):
            with open(name, "rb") as f:
                return os.stat(name).st_mtime_ns, f.read()

        def state():
            return {name: read(name) for name in glob.glob(f"{self.folder}/*")}

        before = state()
        muster("dump", "--log", self.folder)
        muster("verify", "--log", self.folder)
        self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
