"""Bytes that are not requests: wrong lengths, truncated bodies, counts beyond the bytes, noise; and right ones in odd pieces."""

import random
import struct
import time
import unittest

from harness import Counted, NONE, TOPIC, UNKNOWN_MEMBER, WireCase, fresh, ours
from kafka import API, Closed, encode_request, frame, header, uvarint

# One well-formed request per API, with something in every array.
SAMPLE = {
    "Produce": {"topics": [{"name": TOPIC, "partitions": [{"index": 0, "records": b"12345"}]}]},
    "Fetch": {"max_wait_ms": 1, "topics": [{"name": TOPIC, "partitions": [{"index": 0, "offset": 0}]}],
              "forgotten": [{"name": "t", "partitions": [1, 2]}], "rack": "r"},
    "ListOffsets": {"topics": [{"name": TOPIC, "partitions": [{"index": 0}]}]},
    "Metadata": {"topics": [{"name": TOPIC}]},
    "OffsetCommit": {"group": "g", "topics": [{"name": TOPIC, "partitions": [{"index": 0, "offset": 1, "metadata": "m"}]}]},
    "OffsetFetch": {"group": "g", "topics": [{"name": TOPIC, "partitions": [0]}],
                    "groups": [{"group": "g", "topics": [{"name": TOPIC, "partitions": [0]}]}]},
    "FindCoordinator": {"key": "g", "keys": ["g", "h"]},
    "JoinGroup": {"group": "g", "member": "m", "protocols": [{"name": "range", "metadata": b"abc"}]},
    "Heartbeat": {"group": "g", "generation": 1, "member": "m"},
    "LeaveGroup": {"group": "g", "member": "m", "members": [{"member": "m", "instance": None}]},
    "SyncGroup": {"group": "g", "generation": 1, "member": "m", "protocol_type": "consumer", "protocol": "range",
                  "assignments": [{"member": "m", "assignment": b"abc"}]},
    "ApiVersions": {},
    "OffsetForLeaderEpoch": {"topics": [{"name": TOPIC, "partitions": [{"index": 0, "epoch": 0}]}]},
    "DescribeCluster": {},
}


class Framing(WireCase):
    def test_lengths_that_close(self):
        for counter, lengths in (("frame_bad_length", (0, -1, -2, -2147483648)), ("frame_too_large", (2147483647, 104857601))):
            with Counted(self, counter, len(lengths)):
                for n in lengths:
                    c = self.connect()
                    c.send_raw(struct.pack(">i", n))
                    self.assertClosed(c, "length %d" % n)

    def test_lengths_that_close_behind_a_request(self):
        """The request in front of the fault may be answered or lost, the connection ends."""
        for n in (0, -1, 2147483647):
            c = self.connect()
            c.send_raw(frame(encode_request("ApiVersions", 0, 1, {})) + struct.pack(">i", n) + b"x" * 100)
            self.assertClosed(c, "length %d" % n)

    def test_shorter_than_a_header(self):
        whole = header(3, 1, 1, "c", False)
        with Counted(self, "session_bad_header", 1):
            for n in range(1, len(whole)):
                c = self.connect()
                c.send_raw(frame(whole[:n]))
                self.assertClosed(c, "%d bytes" % n)

    def test_client_id_beyond_the_frame(self):
        for n in (2, 100, 32767):
            c = self.connect()
            c.send_raw(frame(struct.pack(">hhih", 12, 0, 1, n) + b"c"))
            self.assertClosed(c, "client id of %d" % n)

    def test_truncated_bodies(self):
        """Every request cut short at every byte, its length field telling the truth."""
        with Counted(self, "session_bad_request", 500):
            self.truncate_all()

    def truncate_all(self):
        for name, values in SAMPLE.items():
            api = API[name]
            for version in sorted({max(api.flexible - 1, 3 if name == "Produce" else 0), api.highest}):
                whole = encode_request(name, version, 1, {k: v for k, v in values.items()})
                head = 8 + 2 + len("wire-test")
                self.each_is_closed(name, version, [whole[:n] for n in range(head, len(whole))])

    def each_is_closed(self, name, version, payloads):
        """Sends each on its own connection, all at once."""
        connections = []
        for payload in payloads:
            connections.append(self.connect())
            connections[-1].send_raw(frame(payload))
        for payload, c in zip(payloads, connections):
            self.assertClosed(c, "%s version %d, %d bytes: %s" % (name, version, len(payload), payload.hex()))
            c.close()
        self.opened.clear()

    def test_bytes_left_over_are_ignored(self):
        """As a reference does."""
        c = self.connect()
        c.send_raw(frame(encode_request("Heartbeat", 3, 77, {"group": "g", "generation": 1, "member": "m", "instance": None}) + b"more"))
        self.assertEqual(c.receive_frame(), struct.pack(">iih", 77, 0, UNKNOWN_MEMBER))
        self.assertServes(c)

    def test_counts_beyond_the_bytes(self):
        for n in (1, 2, 1000, 0x7FFFFFFF):
            bodies = {
                ("Metadata", 0): struct.pack(">i", n),
                ("JoinGroup", 0): b"\0\1g" + struct.pack(">i", 10000) + b"\0\0\0\1c" + struct.pack(">i", n),
                ("SyncGroup", 0): b"\0\1g" + struct.pack(">i", 1) + b"\0\1m" + struct.pack(">i", n),
                ("LeaveGroup", 3): b"\0\1g" + struct.pack(">i", n),
                ("OffsetCommit", 2): b"\0\1g" + struct.pack(">i", -1) + b"\0\0" + struct.pack(">q", -1) + struct.pack(">i", n),
                ("OffsetFetch", 1): b"\0\1g\0\0\0\1\0\1t" + struct.pack(">i", n),
                ("FindCoordinator", 6): b"\0" + uvarint(n + 1),
                ("Metadata", 9): b"\0" + uvarint(n + 1),
            }
            for (name, version), body in bodies.items():
                c = self.connect()
                c.send_raw(frame(header(API[name].key, version, 1, "c", False) + body))
                self.assertClosed(c, "%s version %d, count %d" % (name, version, n))

    def test_many_of_the_smallest(self):
        """The largest count that the bytes allow; the elements are empty."""
        c = self.connect()
        c.send_raw(frame(header(3, 0, 5, "c", False) + struct.pack(">i", 20000) + b"\0\0" * 20000))
        outcome = c.closed(0.001)  # whatever the answer is, the server lives
        self.assertIn(outcome, (None, "closed", "reset"))

    def test_lengths_inside_that_close(self):
        for body in (b"\xff\xff" + b"\0\0\0\1" + b"\0\1m",            # group null where it may not be
                     b"\x7f\xff" + b"g" * 100,                          # string beyond the bytes
                     b"\0\1g" + b"\0\0\0\1" + b"\x00\x05m"):
            c = self.connect()
            c.send_raw(frame(header(12, 0, 1, "c", False) + body))
            self.assertClosed(c, body.hex())

    def test_varints_that_close(self):
        for v in (b"\xff\xff\xff\xff\xff\xff", b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x0f", b"\x80"):
            c = self.connect()
            c.send_raw(frame(header(12, 4, 1, "c", True) + v))
            self.assertClosed(c, v.hex())

    def test_bad_tags_close(self):
        good = header(12, 4, 1, "c", False), b"\x02g" + b"\0\0\0\1" + b"\x02m" + b"\0"
        for header_tags, body_tags in ((b"\x01", b"\0"), (b"\x01\x00\x05ab", b"\0"), (b"\0", b"\x01\x00\x7f"), (b"\0", b"\x7f")):
            payload = good[0] + header_tags + (good[1] + body_tags if header_tags == b"\0" else b"")
            c = self.connect()
            c.send_raw(frame(payload))
            self.assertClosed(c, payload.hex())

    @ours("a reference takes the count for negative, and that for none")
    def test_tag_count_of_32_bits_closes(self):
        c = self.connect()
        c.send_raw(frame(header(12, 4, 1, "c", True) + b"\x02g\0\0\0\1\x02m\0\xff\xff\xff\xff\x0f"))
        self.assertClosed(c)

    def test_noise(self):
        """Random bytes: raw, in a frame, behind a good header. The seed is fixed; the server must answer or close or wait for more."""
        rng = random.Random(20)
        for i in range(150):
            c = self.connect()
            junk = rng.randbytes(rng.randrange(1, 3000))
            c.send_raw(junk)
            if struct.unpack(">i", (junk + b"\0\0\0\0")[:4])[0] <= 0 and len(junk) >= 4:
                self.assertClosed(c, junk[:16].hex())
            c.close()
        for i in range(300):
            name = rng.choice(sorted(set(API) - {"Produce"}))
            version = rng.randrange(API[name].lowest, API[name].highest + 1)
            payload = rng.randbytes(rng.randrange(1, 200))
            if i % 2:
                payload = header(API[name].key, version, 1, "c", version >= API[name].flexible) + payload
            c = self.connect()
            try:
                c.send_raw(frame(payload) + frame(encode_request("ApiVersions", 0, 2, {})))
                c.receive_frame(timeout=10)
            except Closed:
                pass
            c.close()

    def test_flipped_bytes(self):
        """Good requests with one byte changed: an answer or a close, within seconds."""
        rng = random.Random(21)
        for name in sorted(set(SAMPLE) - {"Fetch", "JoinGroup", "Produce"}):
            api = API[name]
            for version in (api.lowest, api.highest):
                whole = bytearray(encode_request(name, version, 1, SAMPLE[name]))
                for _ in range(12):
                    at = rng.randrange(8, len(whole))
                    payload = bytes(whole[:at]) + bytes([rng.randrange(256)]) + bytes(whole[at + 1:])
                    c = self.connect()
                    try:
                        c.send_raw(frame(payload))
                        c.receive_frame(timeout=10)
                    except Closed:
                        pass
                    c.close()

    def test_byte_by_byte(self):
        c = self.connect()
        data = b"".join((c.encode("ApiVersions", 4, {}), c.encode("Metadata", 9, {"topics": [{"name": TOPIC}]}),
                         c.encode("Heartbeat", 4, {"group": "g", "generation": 1, "member": "m"})))
        for b in data:
            c.send_raw(bytes([b]))
            time.sleep(0.0005)
        self.assertEqual(c.receive()["error"], NONE)
        self.assertEqual(c.receive()["topics"][0]["name"], TOPIC)
        self.assertEqual(c.receive()["error"], UNKNOWN_MEMBER)

    def test_odd_pieces(self):
        """500 pipelined requests cut at random places; all answered, in order."""
        rng = random.Random(22)
        c = self.connect()
        data = b"".join(c.encode("Heartbeat", 4, {"group": "g%d" % i, "generation": 1, "member": "m" * rng.randrange(1, 300)}) for i in range(500))
        while data:
            n = rng.choice((1, 2, 3, 4, 5, 100, 1400, 5000))
            c.send_raw(data[:n])
            data = data[n:]
        for _ in range(500):
            self.assertEqual(c.receive()["error"], UNKNOWN_MEMBER)

    def test_one_large_request(self):
        """A request of many segments: 300,000 bytes of subscription."""
        c = self.connect()
        answer = c.request("JoinGroup", 4, timeout=30, group=fresh(), protocols=[{"name": "range", "metadata": b"x" * 300000}])
        self.assertEqual(answer["error"], 79)

    @ours("a reference sets the memory aside at once")
    def test_an_announced_frame_that_never_comes(self):
        """Half a frame holds nobody up."""
        held = [self.connect() for _ in range(50)]
        for c in held:
            c.send_raw(struct.pack(">i", 50_000_000) + b"\0\x03\0\0" + b"x" * 1000)
        self.assertServes(self.connect())
        self.live.check()

    def test_answers_that_nobody_reads(self):
        """The server stops reading from who does not read, and goes on when the answers are taken."""
        c = self.connect()
        c.sock.setblocking(False)
        one, sent, out = None, 0, b""
        end, quiet = time.monotonic() + 20, time.monotonic()
        while sent < 30000 and time.monotonic() - quiet < 1.0 and time.monotonic() < end:
            if not out:
                one = c.encode("Metadata", 9, {"topics": None})
                out, sent = one, sent + 1
            try:
                n = c.sock.send(out)
                out, quiet = out[n:], time.monotonic()
            except BlockingIOError:
                time.sleep(0.005)
        self.live.check()
        if out and len(out) == len(one):
            c.pending.pop()
            sent, out = sent - 1, b""
        c.sock.setblocking(True)
        half = len(c.pending) // 2
        for _ in range(half):
            self.assertEqual(c.receive()["topics"][0]["error"], NONE)
        if out:
            c.send_raw(out)
        while c.pending:
            c.receive()
        self.assertServes(c)


if __name__ == "__main__":
    unittest.main()
