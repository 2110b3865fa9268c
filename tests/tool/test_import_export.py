"""muster log import and export: partitions of a Kafka broker, written from the format alone, become a log and partitions again."""
import glob
import json
import os
import struct
import subprocess
import tempfile
import unittest
import zlib

import records as r

MUSTER = os.environ["MUSTER_BIN"]
SHARDS = 4


def java_hash(text):
    h = 0
    for c in text:
        h = (h * 31 + ord(c)) & 0xFFFFFFFF
    return abs(h - (1 << 32) if h >> 31 else h)


def group_of(shard, number=0):
    """A group id that belongs into a shard."""
    found = [f"group-{i}" for i in range(200) if java_hash(f"group-{i}") % SHARDS == shard]
    return found[number]


def commit(shard, partition, offset, number=0):
    return (r.offset_key(group_of(shard, number), "demo", partition), r.offset_value(offset))


def gzip(body):
    packer = zlib.compressobj(wbits=31)
    return packer.compress(body) + packer.flush()


class Case(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="muster-")
        self.addCleanup(top.cleanup)
        self.top = os.path.realpath(top.name)
        self.log, self.out = os.path.join(self.top, "log"), os.path.join(self.top, "out")

    def partition(self, shard, *segments, base="kafka"):
        """segments: bytes, or (first offset, bytes)."""
        folder = os.path.join(self.top, base, f"__consumer_offsets-{shard}")
        os.makedirs(folder, exist_ok=True)
        for segment in segments or (b"",):
            first, content = segment if isinstance(segment, tuple) else (0, segment)
            with open(os.path.join(folder, f"{first:020d}.log"), "wb") as out:
                out.write(content)
        return folder

    def partitions(self, **given):
        return [self.partition(shard, *given.get(f"p{shard}", ())) for shard in range(SHARDS)]

    def muster(self, verb, *words, status=0):
        words = [MUSTER, "log", verb, "--log", self.log, "--set", f"offsets.topic.num.partitions={SHARDS}", *words]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, f"{done.stdout}{done.stderr}")
        return done

    def dump(self):
        return [json.loads(line) for line in self.muster("dump", "--json").stdout.splitlines()]

    def offsets(self):
        return [(x["shard"], x["offset"], x["key"]["partition"], x["value"]["offset"]) for x in self.dump() if x["type"] == "OffsetCommit"]

    def refused(self, text, *words, status=2):
        done = self.muster("import", *words, status=status)
        self.assertIn(text, done.stderr)
        return done

    def exported(self, shard, base=0):
        with open(os.path.join(self.out, f"__consumer_offsets-{shard}", f"{base:020d}.log"), "rb") as f:
            return f.read()


class Import(Case):
    def test_there_and_back(self):
        """Every byte comes back, but the leader epoch, which is another cluster's; records of all types among them."""
        def first(epoch):
            return r.batch(3, [commit(1, 0, 5), (r.group_key(group_of(1)), r.group_value(2))], epoch=epoch) + \
                r.batch(9, [(r.member_key(5, group_of(1), "m"), b"\0\0x"), (b"\0\x63?", b"!"), commit(1, 1, 6)], epoch=epoch, ms=1, deltas=[0, 4, 6])

        def second(epoch):
            return r.batch(40, [(r.offset_key(group_of(1), "demo", 0), None)], epoch=epoch)

        words = self.partitions(p1=[first(7), (40, second(8))], p2=[r.batch(0, [commit(2, 0, 1)])])
        done = self.muster("import", *words)
        self.assertIn("imported 4 partitions into", done.stdout)
        self.assertIn("4 batches with 4 offset records, 1 group records, 2 others, 0 unreadable", done.stdout)
        self.assertEqual([(x["shard"], x["offset"], x["leader_epoch"]) for x in self.dump()],
                         [(1, 3, 7), (1, 4, 7), (1, 9, 7), (1, 13, 7), (1, 15, 7), (1, 40, 8), (2, 0, 0)])
        self.muster("verify")
        self.muster("export", "--all", self.out)
        self.assertEqual(self.exported(1), first(0) + second(0))
        self.assertEqual(self.exported(2), r.batch(0, [commit(2, 0, 1)]))
        self.assertEqual(self.exported(0), b"")
        with open(f"{self.out}/__consumer_offsets-1/leader-epoch-checkpoint") as text:
            self.assertEqual(text.read(), "0\n1\n0 0\n")
        back, self.log = self.log, os.path.join(self.top, "again")
        self.muster("import", *sorted(glob.glob(f"{self.out}/*")))
        again, self.log = self.dump(), back
        self.assertEqual([(x["offset"], x["key"], x["value"]) for x in again], [(x["offset"], x["key"], x["value"]) for x in self.dump()])

    def test_compressed(self):
        words = self.partitions(p0=[r.batch(0, [commit(0, p, 7) for p in range(50)], attributes=1, compress=gzip) + r.batch(50, [commit(0, 1, 8)])])
        self.assertIn("1 batches unpacked", self.muster("import", *words).stdout)
        self.assertEqual(len(self.offsets()), 51)
        self.muster("verify")
        self.muster("export", "--shard", "0", self.out)
        self.assertEqual(self.exported(0), r.batch(0, [commit(0, p, 7) for p in range(50)]) + r.batch(50, [commit(0, 1, 8)]))

    def test_damaged_compression(self):
        for codec in (1, 2, 3, 4, 5):
            words = self.partitions(p0=[r.batch(0, [commit(0, 1, 7)], attributes=codec, compress=lambda body: b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff" + body)
                                        + r.batch(1, [commit(0, 1, 8)])])
            name = (None, "gzip", "snappy", "lz4", "zstd", "unknown codec")[codec]
            self.refused(f"byte 0: a batch cannot be unpacked ({name})", *words, status=1)
            self.log += "x"
            self.assertIn("LOST", self.muster("import", "--set", "log.recover=skip.damaged", *words).stderr)
            self.assertEqual(self.offsets(), [(0, 1, 1, 8)])
            self.log += "x"

    def test_transactions(self):
        def txn(offset, producer, partition, value):
            return r.batch(offset, [commit(3, partition, value)], attributes=0x10, producer=producer)
        words = self.partitions(p3=[
            txn(0, 1, 0, 10) + txn(1, 2, 1, 20) + r.batch(2, [commit(3, 0, 11)]) + r.control(3, 1, True) + r.control(4, 2, False) + txn(5, 2, 2, 30)
            + txn(6, 1, 3, 40), (7, r.control(7, 2, True) + txn(8, 2, 4, 50) + r.control(9, 2, False))])
        done = self.muster("import", *words)
        self.assertIn("of transactions: 2 committed, 2 aborted and left out, 1 undecided", done.stdout)
        self.assertIn("offset 6: a transaction of producer 1 is not decided", done.stderr)
        self.assertEqual(self.offsets(), [(3, 0, 0, 10), (3, 2, 0, 11), (3, 5, 2, 30), (3, 6, 3, 40)])
        self.assertEqual([x.get("producer_id") for x in self.dump()], [None, None, None, 1])
        self.muster("verify")
        done = self.muster("export", "--all", self.out)
        self.assertIn("1 batches of undecided transactions were left out", done.stdout)
        # what was left out at the end leaves its last offset behind
        self.assertEqual(self.exported(3), r.batch(0, [commit(3, 0, 10)]) + r.batch(2, [commit(3, 0, 11)]) + r.batch(5, [commit(3, 2, 30)])
                         + r.batch(9, [], ms=0, last=0))

    def test_several_segments_of_ours(self):
        """More than one of our segments, blocks of a megabyte, order kept."""
        text = "x" * 4000
        batches = b"".join(r.batch(i * 10, [(r.offset_key(group_of(1), "demo", p), r.offset_value(i, text)) for p in range(10)]) for i in range(60))
        words = self.partitions(p1=[batches])
        self.muster("import", "--set", "log.segment.bytes=1048576", *words)
        self.assertEqual(len(glob.glob(f"{self.log}/*.seg")), 3)
        self.assertEqual([x["offset"] for x in self.dump()], list(range(600)))
        self.muster("verify")
        self.muster("export", "--shard", "1", self.out)
        self.assertEqual(self.exported(1), batches)

    def test_a_batch_too_large_for_a_segment(self):
        words = self.partitions(p1=[r.batch(0, [(r.offset_key(group_of(1), "demo", p), r.offset_value(1, "x" * 32000)) for p in range(40)])])
        self.refused("fits into no segment; make log.segment.bytes larger", "--set", "log.segment.bytes=1048576", *words, status=1)

    def test_more_than_the_log_may_have(self):
        words = self.partitions(p1=[r.batch(0, [commit(1, 1, 1)])])
        self.refused("log.total.bytes is 4194304; at least", "--set", "log.total.bytes=4194304", "--set", "log.segment.bytes=2097152", *words, status=1)

    def test_cut_tail(self):
        good = r.batch(0, [commit(0, 1, 1)])
        for tail in (good[:50], b"\0" * 5000, good[:12], r.batch(1, [commit(0, 1, 2)])[:-1] + b"?"):
            words = self.partitions(p0=[good + tail])
            done = self.muster("import", *words)
            self.assertIn(f"from byte {len(good)} on it holds no whole batch", done.stderr)
            self.assertEqual(self.offsets(), [(0, 0, 1, 1)])
            self.log += "x"

    def test_damage(self):
        good, more = r.batch(0, [commit(0, 1, 1)]), r.batch(1, [commit(0, 1, 2)])
        flipped = good[:-1] + bytes([good[-1] ^ 1])
        for content, at in ((flipped + more, 0), (good + r.batch(0, [commit(0, 1, 9)]) + more, len(good))):
            words = self.partitions(p0=[content])
            self.refused(f"00000000000000000000.log: byte {at}: a batch is damaged", *words, status=1)
            self.log += "x"
            self.muster("import", "--set", "log.recover=skip.damaged", *words)
            self.assertEqual(self.offsets()[-1], (0, 1, 1, 2))
            self.log += "x"
        words = self.partitions(p0=[good + b"zz", (1, more)])
        self.refused(f"byte {len(good)}: a batch is damaged", *words, status=1)

    def test_records_that_lie_behind_a_right_checksum(self):
        whole = bytearray(r.batch(0, [commit(0, 1, 1), commit(0, 2, 1)]))
        for at in range(61, len(whole)):
            for lie in (0x7F, 0xFF):
                bad = bytearray(whole)
                bad[at] = lie
                bad[17:21] = struct.pack(">I", r.crc32c(bad[21:]))
                words = self.partitions(p0=[bytes(bad)])
                done = subprocess.run([MUSTER, "log", "import", "--log", f"{self.log}-{at}-{lie}", "--set", f"offsets.topic.num.partitions={SHARDS}", *words],
                                      capture_output=True, timeout=20)
                self.assertIn(done.returncode, (0, 1), (at, lie, done.stderr))

    def test_old_formats(self):
        words = self.partitions(p0=[struct.pack(">qiIbb", 0, 60, 0, 1, 0) + bytes(60)])
        self.refused("a message of format v1 stands at byte 0; only v2 (Kafka 0.11 and later) can be read", *words, status=1)

    def test_which_folders(self):
        words = self.partitions()
        self.refused("partition 3 is missing: 3 folders are given, offsets.topic.num.partitions is 4", *words[:3])
        self.refused("offsets.topic.num.partitions is 4; set it, for this import and for the server", *words, self.partition(4))
        self.refused("partition 2 is given twice", *words, words[2])
        self.refused("the folder of a partition is named __consumer_offsets-N", *words, self.top)
        self.refused("import: which folders?")
        self.assertFalse(os.path.exists(self.log))
        self.refused("No such file", *words[:3], "/nowhere/__consumer_offsets-3", status=1)
        os.rename(os.path.join(words[0], f"{0:020d}.log"), os.path.join(words[0], f"{0:020d}.log.swap"))
        self.log += "x"
        self.refused("in the middle of a compaction", *words, status=1)
        self.log += "x"
        self.muster("import", "--partial", *words[1:3])

    def test_another_number_of_partitions(self):
        words = self.partitions(p1=[r.batch(0, [commit(2, 1, 1)])])
        self.refused(f'group "{group_of(2)}" belongs into partition 2 of 4; the broker has another number of partitions', *words, status=1)

    def test_only_into_an_empty_folder(self):
        words = self.partitions()
        self.muster("import", *words)
        self.refused("is not empty; import makes a new log", *words)


class Export(Case):
    def setUp(self):
        super().setUp()
        self.muster("import", *self.partitions(p0=[r.batch(0, [commit(0, 1, 1)])]))

    def refused_export(self, text, *words, status=2):
        self.assertIn(text, self.muster("export", *words, status=status).stderr)

    def test_arguments(self):
        self.refused_export("takes either --shard N or --all", self.out)
        self.refused_export("takes either --shard N or --all", "--all", "--shard", "1", self.out)
        self.refused_export("takes either --shard N or --all", "--all")
        self.refused_export("the log has the shards 0 to 3", "--shard", "4", self.out)

    def test_into_a_fresh_broker(self):
        folder = self.partition(0, base="out")
        for name in (f"{0:020d}.index", f"{0:020d}.timeindex", "leader-epoch-checkpoint", "partition.metadata"):
            with open(os.path.join(folder, name), "w") as out:
                out.write("old")
        self.muster("export", "--shard", "0", self.out)
        self.assertEqual(sorted(os.listdir(folder)), [f"{0:020d}.log", "leader-epoch-checkpoint", "partition.metadata"])
        with open(f"{folder}/partition.metadata") as text:
            self.assertEqual(text.read(), "old")
        self.refused_export("is in the way", "--shard", "0", self.out, status=1)

    def test_nothing_is_removed_where_something_is_in_the_way(self):
        folder = self.partition(0, base="out")
        for name in (f"{0:020d}.index", "mine.txt"):
            with open(os.path.join(folder, name), "w") as out:
                out.write("x")
        self.refused_export("mine.txt: is in the way", "--shard", "0", self.out, status=1)
        self.assertEqual(len(os.listdir(folder)), 3)

    def test_a_broker_with_more_partitions(self):
        self.partition(4, base="out")
        self.refused_export("the broker's topic has more partitions than this log, which has 4", "--all", self.out, status=1)

    def test_offsets_further_apart_than_an_index_can_say(self):
        self.log += "x"
        far = 5 * 2 ** 31
        self.muster("import", *self.partitions(p0=[r.batch(0, [commit(0, 1, 1)]) + r.batch(far, [commit(0, 1, 2)])]))
        self.muster("export", "--shard", "0", self.out)
        self.assertEqual(self.exported(0, far), r.batch(far, [commit(0, 1, 2)]))

    def test_groups_in_parts(self):
        """Become one record of Kafka's own form; a newer plain record of such a group is the one that counts."""
        members = [("m-1", None, r.subscription("demo"), r.assignment("demo", 0)), ("m-2", "i-2", r.subscription("demo"), r.assignment("demo", 1))]
        one, two = group_of(0, 0), group_of(0, 1)
        self.log += "x"
        content = r.batch(0, r.group_in_parts(one, 4, 1, members) + [commit(0, 1, 5)]) + r.batch(4, r.group_in_parts(one, 5, 2, members, slot=1)) \
            + r.batch(7, r.group_in_parts(two, 1, 1, members)) + r.batch(10, [(r.group_key(two), r.group_value(2, members[:1]))])
        self.muster("import", *self.partitions(p0=[content]))
        self.assertIn("2 groups whose members stand in records of their own", self.muster("export", "--shard", "0", self.out).stdout)
        back, self.log = self.log, os.path.join(self.top, "again")
        self.muster("import", "--partial", f"{self.out}/__consumer_offsets-0")
        got = self.dump()
        self.assertNotIn("MusterGroupPart", {x["type"] for x in got})
        newest = {x["key"]["group"]: x["value"] for x in got if x["type"] == "GroupMetadata"}
        self.assertEqual((newest[one]["generation"], [(m["id"], m["instance"], m["assigned"]) for m in newest[one]["members"]]),
                         (5, [("m-1", None, ["demo-0"]), ("m-2", "i-2", ["demo-1"])]))
        self.assertEqual((newest[two]["generation"], [m["id"] for m in newest[two]["members"]]), (2, ["m-1"]))
        self.assertEqual([x["offset"] for x in got], [3, 10, 11, 12])

    def test_damage_is_told(self):
        name = f"{self.log}/00000001-0000-00000001.seg"
        with open(name, "r+b") as f:
            f.seek(4200)
            f.write(b"?")
        self.refused_export("DAMAGED", "--shard", "0", self.out, status=1)


if __name__ == "__main__":
    unittest.main()
