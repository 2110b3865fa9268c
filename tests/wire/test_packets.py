"""Frames and segments that no decent host sends, beside a live group that must not notice."""

import random
import socket
import struct
import time
import unittest

from harness import Counted, NONE, WireCase, address, connect, ours
from kafka import decode_response, encode_request, frame
from packet import ACK, ARP, BROADCAST, FIN, IPV4, PSH, RST, SYN, URG, Host, RawConnection, Wire, checksum, find_option, ip4, ipv4, tcp

REQUEST = frame(encode_request("ApiVersions", 0, 7, {}))


@ours("the packets are ours to make only beside our own server")
class Packets(WireCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wire = Wire(address())
        cls.host = Host(cls.wire, 66)

    @classmethod
    def tearDownClass(cls):
        cls.wire.close()
        super().tearDownClass()

    def tearDown(self):
        with connect() as c:
            self.assertServes(c)
        super().tearDown()

    def assertWorks(self, c, message=None):
        """The raw connection is established and answers a request; it is reset then."""
        self.assertTrue(c.established(), message)
        answer = c.exchange(REQUEST)
        self.assertIsNotNone(answer, message)
        self.assertEqual(decode_response("ApiVersions", 0, answer)[1]["error"], NONE)
        c.reset()

    def assertSilent(self, port, message=None, timeout=0.15):
        s = self.host.wait_tcp(timeout, port)
        self.assertIsNone(s, message)

    # ---- TCP options ----

    def test_syn_options_that_are_well_formed(self):
        mss, sack, stamps, scale = b"\2\4\5\xb4", b"\4\2", b"\x08\x0a\0\0\0\1\0\0\0\0", b"\3\3\7"
        cases = {"none": b"", "mss": mss, "all": mss + sack + stamps + b"\1" + scale, "nops": b"\1" * 40, "end": b"\0\2\4\1", "zeros": b"\0" * 40,
                 "unknown": b"\xfe\4ab" + b"\x1e\x0c" + b"\0" * 10 + mss, "unknown of length 2": b"\xfd\2\xfd\2" + mss, "fast open": b"\x22\2" + mss,
                 "mss 536": b"\2\4\2\x18", "mss 65535": b"\2\4\xff\xff", "mss twice": mss + b"\2\4\2\0", "scale 14": b"\3\3\x0e",
                 "scale 255": b"\3\3\xff",
                 "timestamps alone": stamps, "auth": b"\x1d\x10" + b"\1" * 14 + mss}
        for name, options in cases.items():
            self.assertWorks(RawConnection(self.host, options), name)

    def test_options_that_were_not_offered(self):
        """The SYN-ACK takes up what the SYN offered and nothing else; the segment size it may state in any case."""
        for offered in ((), (3,), (4,), (8,), (3, 8), (3, 4, 8)):
            each = {3: b"\3\3\7", 4: b"\4\2", 8: b"\x08\x0a\0\0\0\1\0\0\0\0"}
            c = RawConnection(self.host, b"\2\4\5\xb4" + b"".join(each[k] for k in offered))
            self.assertTrue(c.established())
            for kind in each:
                self.assertEqual(find_option(c.syn_ack.options, kind) is not None, kind in offered, "offered %s, kind %d" % (offered, kind))
            self.assertGreaterEqual(struct.unpack(">H", find_option(c.syn_ack.options, 2))[0], 536)
            c.reset()

    def test_tiny_mss(self):
        """Too small a segment size is raised to something usable, not obeyed into a flood of tiny segments."""
        for mss in (0, 1, 2, 63):
            c = RawConnection(self.host, b"\2\4" + struct.pack(">H", mss))
            self.assertTrue(c.established(), "mss %d" % mss)
            c.send(REQUEST)
            s = self.host.wait_tcp(3, c.sport, lambda s: s.payload)
            self.assertIsNotNone(s)
            self.assertGreaterEqual(len(s.payload), 32, "mss %d" % mss)
            c.reset()

    def test_syn_options_that_are_malformed(self):
        """Served without them or not at all; never read beyond the header, never a loop."""
        with Counted(self, "tcp_bad_option", 5):
            cases = (b"\2\0", b"\x63\0\x63\0", b"\1\1\1\2", b"\2\1\5\xb4", b"\2\x28\5\xb4", b"\2\3\5", b"\2\5\5\xb4\0", b"\3\2",
                     b"\3\4\7\7", b"\4\3\0",
                     b"\x08\x09" + b"\0" * 7, b"\x08\x0b" + b"\0" * 9, b"\x08\xff" + b"\0" * 10, b"\xfe\xff", b"\xfe",
                     b"\1" * 39 + b"\2", b"\1" * 38 + b"\2\4",
                     b"\5\x0a" + b"\0" * 8, b"\5\3\0", b"\xff" * 40)
            for options in cases:
                c = RawConnection(self.host, options, timeout=0.3)
                if c.established():
                    self.assertWorks(c, options.hex())
                else:
                    self.assertIsNone(c.syn_ack, options.hex())

    def test_random_options(self):
        rng = random.Random(30)
        for _ in range(150):
            port = self.host.port()
            self.host.send_tcp(port, 1, 0, SYN, options=rng.randbytes(rng.randrange(1, 41)))
            if rng.random() < 0.5:
                self.host.send_tcp(port, 2, rng.getrandbits(32), ACK, options=rng.randbytes(rng.randrange(1, 41)))

    def test_options_on_data(self):
        """A malformed or unknown option on an established connection breaks nothing."""
        c = RawConnection(self.host)
        for options in (b"\xfe\0", b"\5\x12" + b"\xff" * 16, b"\2\4\0\1", b"\xff" * 40):
            self.host.send_tcp(c.sport, c.seq, c.ack, ACK, options=options)
        self.assertWorks(c)

    # ---- TCP headers ----

    def test_data_offset(self):
        with Counted(self, "tcp_bad_header", 1):
            for offset in (0, 1, 4, 6, 15):
                port = self.host.port()
                self.host.send_tcp(port, 1, 0, SYN, offset=offset)
                self.assertSilent(port, "offset %d" % offset)

    def test_short_segments(self):
        whole = tcp(self.host.ip, self.wire.server, self.host.port(), self.wire.port, 1, 0, SYN)
        for n in range(len(whole)):
            self.host.send_ip(whole[:n])

    def test_bad_tcp_checksum(self):
        with Counted(self, "tcp_bad_checksum", 6):
            good = RawConnection(self.host)
            for value in (0, 0xFFFF, 0x1234):
                port = self.host.port()
                self.host.send_tcp(port, 1, 0, SYN, checksum=value)
                self.assertSilent(port, "SYN")
                good.send(REQUEST, checksum=value)
                self.assertIsNone(self.host.wait_tcp(0.15, good.sport, lambda s: s.payload or s.ack != good.seq), "data")
            self.assertWorks(good)

    def test_bad_ip_checksum(self):
        with Counted(self, "ipv4_bad_checksum", 3):
            for value in (0, 0xFFFF, 0x1234):
                port = self.host.port()
                self.host.send_tcp(port, 1, 0, SYN, ip={"checksum": value})
                self.assertSilent(port)
            self.assertWorks(RawConnection(self.host))

    def test_reset_of_a_closed_port(self):
        with Counted(self, "tcp_refused_port", 1):
            port = self.host.port()
            self.host.send_tcp(port, 5, 0, SYN, dport=9)
            s = self.host.wait_tcp(2, port)
            self.assertIsNotNone(s)
            self.assertEqual((s.flags & (RST | ACK), s.ack), (RST | ACK, 6))
            self.host.send_tcp(port, 5, 777, ACK, dport=9)
            s = self.host.wait_tcp(2, port)
            self.assertEqual((s.flags & RST, s.seq), (RST, 777))
            self.host.send_tcp(port, 5, 777, RST, dport=9)
            self.assertSilent(port, "no reset for a reset")

    def test_flags_of_strangers(self):
        """All 64 combinations, without and with data, to the open port from nowhere: nothing gets established, a SYN-ACK only for a SYN."""
        for flags in range(64):
            for data in (b"", b"x" * 10):
                port = self.host.port()
                self.host.send_tcp(port, 9, 9, flags, data)
                s = self.host.wait_tcp(0.02, port)
                if s is not None and s.flags & SYN:
                    self.assertTrue(flags & SYN and not flags & (RST | ACK), "flags %#x" % flags)
                if flags & RST:
                    self.assertIsNone(s, "flags %#x" % flags)
                self.host.send_tcp(port, 10, 0, RST)

    def test_flags_on_a_connection(self):
        """Segments outside the window, stale SYNs and blind resets leave a connection alone."""
        c = RawConnection(self.host)
        far = c.seq + 0x40000000
        for flags in (SYN, SYN | ACK, RST, RST | ACK, FIN | ACK, ACK, PSH | ACK, URG | ACK, 0, FIN, SYN | FIN):
            self.host.send_tcp(c.sport, far, c.ack, flags, b"" if flags & (SYN | RST) else b"stale")
            self.host.send_tcp(c.sport, far, c.ack + 0x40000000, flags)
        self.host.send_tcp(c.sport, c.seq, c.ack, SYN)
        self.host.send_tcp(c.sport, c.seq + 10, c.ack, RST)
        self.assertWorks(c)

    def test_urgent_data_is_data(self):
        c = RawConnection(self.host)
        self.host.send_tcp(c.sport, c.seq, c.ack, PSH | ACK | URG, REQUEST[:5], urgent=3)
        c.seq += 5
        answer = c.exchange(REQUEST[5:])
        self.assertEqual(decode_response("ApiVersions", 0, answer)[0], 7)
        c.reset()

    def test_overlapping_and_reordered_data(self):
        """The pieces of a request last to first, each twice, overlapping."""
        c = RawConnection(self.host)
        for at in range(len(REQUEST) - 3, 0, -3):
            for _ in range(2):
                self.host.send_tcp(c.sport, c.seq + at, c.ack, PSH | ACK, REQUEST[at:at + 6])
        answer = c.exchange(REQUEST[:5])
        self.assertEqual(decode_response("ApiVersions", 0, answer)[0], 7)
        c.reset()

    def test_zero_window(self):
        """Nothing but probes of a byte goes to a peer without room; all of it once there is room."""
        c = RawConnection(self.host)
        self.host.send_tcp(c.sport, c.seq, c.ack, PSH | ACK, REQUEST, window=0)
        s = self.host.wait_tcp(0.5, c.sport, lambda s: len(s.payload) > 1)
        self.assertIsNone(s)
        c.seq += len(REQUEST)
        self.host.send_tcp(c.sport, c.seq, c.ack, ACK, window=60000)
        s = self.host.wait_tcp(3, c.sport, lambda s: len(s.payload) > 1)
        self.assertIsNotNone(s)
        c.reset()

    def test_syn_flood(self):
        """2,000 half-open connections from 100 hosts that do not exist."""
        for i in range(2000):
            src = "%s.%d" % (self.wire.server.rsplit(".", 1)[0], 100 + i % 100)
            segment = tcp(src, self.wire.server, 3000 + i, self.wire.port, i, 0, SYN, options=b"\2\4\5\xb4")
            self.wire.send(self.host.ethernet(ipv4(src, self.wire.server, segment), src=b"\x02\0\0\1\0" + bytes([100 + i % 100])))
            if i % 100 == 0:
                time.sleep(0.005)
        self.live.check()

    # ---- IPv4 ----

    def test_ipv4_headers(self):
        with Counted(self, "ipv4_bad_header", 5):
            for odd in ({"version": 6}, {"version": 0}, {"ihl": 0}, {"ihl": 4}, {"ihl": 15}, {"total": 0}, {"total": 19},
                        {"total": 39}, {"total": 41},
                        {"total": 1500}, {"total": 65535}):
                port = self.host.port()
                self.host.send_tcp(port, 1, 0, SYN, ip=odd)
                self.assertSilent(port, odd)

    def test_bytes_behind_the_packet_do_not_count(self):
        """Short frames are padded by hardware; the packet's own length says where it ends."""
        port = self.host.port()
        packet = ipv4(self.host.ip, self.wire.server, tcp(self.host.ip, self.wire.server, port, self.wire.port, 1, 0, SYN))
        self.wire.send(self.host.ethernet(packet + b"\xee" * 100))
        s = self.host.wait_tcp(2, port)
        self.assertEqual(s.flags & (SYN | ACK), SYN | ACK)
        self.host.send_tcp(port, 2, 0, RST)

    def test_fragments(self):
        with Counted(self, "ipv4_fragments", 5):
            for fragment in (0x2000, 0x2001, 0x0001, 0x1FFF, 0x3FFF):
                port = self.host.port()
                self.host.send_tcp(port, 1, 0, SYN, ip={"fragment": fragment})
                self.assertSilent(port, hex(fragment))

    def test_ip_options(self):
        """Dropped or served, nothing else."""
        for options in (b"\1\1\1\0", b"\x94\4\0\0", b"\7\0\0\0", b"\x44\xff\0\0", b"\x83\3\0\0" * 10):
            port = self.host.port()
            segment = tcp(self.host.ip, self.wire.server, port, self.wire.port, 1, 0, SYN)
            self.host.send_ip(segment, options=options)
            self.host.wait_tcp(0.05, port)
            self.host.send_tcp(port, 2, 0, RST)

    def test_addresses(self):
        """Not for us, or from an address that nobody can have: our own among them."""
        odd = ("10.77.0.3", "255.255.255.255", "224.0.0.1")
        senders = (self.wire.server, "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1")
        for src, dst in (*((self.host.ip, a) for a in odd), *((a, self.wire.server) for a in senders)):
            port = self.host.port()
            segment = tcp(src, dst, port, self.wire.port, 1, 0, SYN)
            self.wire.send(self.host.ethernet(ipv4(src, dst, segment)))
            self.assertSilent(port, "%s to %s" % (src, dst), 0.05)
        port = self.wire.port
        self.wire.send(self.host.ethernet(ipv4(self.wire.server, self.wire.server, tcp(self.wire.server, self.wire.server, port, port, 1, 0, SYN))))

    def test_protocols(self):
        rng = random.Random(31)
        for protocol in range(256):
            self.host.send_ip(rng.randbytes(rng.randrange(0, 60)), protocol)

    # ---- Ethernet ----

    def test_frames_of_all_sizes(self):
        """1 to 9,000 bytes, of unknown types, as IPv4, as ARP; with the interface's largest packet raised as far as that."""
        before = self.wire.mtu()
        rng = random.Random(32)
        try:
            try:
                self.wire.mtu(9000)
            except OSError:
                pass
            sizes = [*range(1, 130), *range(1400, 1530, 7), *range(1600, 9001, 397), 9000]
            for kind in (IPV4, ARP, 0x88B5, 0x8100, 0x86DD, 0, 0x05DC):
                for n in sizes:
                    data = self.host.ethernet(bytes([0x45]) + rng.randbytes(max(n - 15, 0)), kind)[:n]
                    self.wire.send(data)
                self.live.check()
            for n in (100, 1500, 3000, 8900):
                self.host.send_tcp(self.host.port(), 1, 0, ACK, b"x" * (n - 40))
        finally:
            self.wire.mtu(before)

    def test_noise(self):
        rng = random.Random(33)
        for i in range(3000):
            kind = rng.choice((IPV4, IPV4, ARP, rng.getrandbits(16)))
            dst = rng.choice((self.wire.server_mac, BROADCAST, rng.randbytes(6)))
            self.wire.send(self.host.ethernet(rng.randbytes(rng.randrange(0, 300)), kind, dst=dst))
            if i % 200 == 0:
                time.sleep(0.005)

    def test_other_macs(self):
        """A packet for us in a frame for somebody else is not ours; a broadcast one neither."""
        for dst in (b"\x02\0\0\0\0\x99", BROADCAST, b"\1\0\x5e\0\0\1"):
            port = self.host.port()
            segment = tcp(self.host.ip, self.wire.server, port, self.wire.port, 1, 0, SYN)
            self.wire.send(self.host.ethernet(ipv4(self.host.ip, self.wire.server, segment), dst=dst))
            if dst != BROADCAST and not dst[0] & 1:
                self.assertSilent(port)

    # ---- ARP ----

    def arp_answer(self, timeout=0.5):
        return self.host.wait(timeout, lambda kind, p, f: (f, p) if kind == ARP and p[6:8] == b"\0\2" else None)

    def test_arp(self):
        self.wire.send(self.host.ethernet(self.host.arp(1, self.host.mac, self.host.ip, b"\0" * 6, self.wire.server), ARP, dst=BROADCAST))
        frame_, answer = self.arp_answer(2)
        self.assertEqual(frame_[:12], self.host.mac + self.wire.server_mac)
        self.assertEqual(answer[8:28], self.wire.server_mac + ip4(self.wire.server) + self.host.mac + ip4(self.host.ip))

    def test_arp_probe(self):
        """RFC 5227: asked by somebody who has no address yet."""
        self.wire.send(self.host.ethernet(self.host.arp(1, self.host.mac, "0.0.0.0", b"\0" * 6, self.wire.server), ARP, dst=BROADCAST))
        self.assertIsNotNone(self.arp_answer(2))

    def test_arp_oddities(self):
        with Counted(self, "arp_bad", 5):
            zero, server = b"\0" * 6, self.wire.server
            good = self.host.arp(1, self.host.mac, self.host.ip, zero, server)
            me = self.host.mac, self.host.ip, zero
            odd = [self.host.arp(1, *me, "10.77.0.3"), self.host.arp(1, *me, server, hardware=15), self.host.arp(1, *me, server, protocol=0x86DD),
                   self.host.arp(1, *me, server, hlen=8), self.host.arp(1, *me, server, plen=16), self.host.arp(3, *me, server),
                   self.host.arp(0, *me, server), good[:27], good[:8], good[:1], b"",
                   self.host.arp(2, self.host.mac, self.host.ip, self.wire.server_mac, server)]
            for payload in odd:
                self.wire.send(self.host.ethernet(payload, ARP, dst=BROADCAST))
                self.assertIsNone(self.arp_answer(0.05), payload.hex())
            # a frame that the interface pads is long enough all the same: only what ARP says counts
            self.wire.send(self.host.ethernet(good + b"\0" * 18, ARP, dst=BROADCAST))
            self.assertIsNotNone(self.arp_answer(2))

    def test_arp_replies_that_nobody_asked_for(self):
        """They do not redirect the answers of others."""
        live_host = self.wire.server.rsplit(".", 1)[0] + ".1"
        for i in range(200):
            for mac in (self.host.mac, BROADCAST, b"\0" * 6, self.wire.server_mac):
                self.wire.send(self.host.ethernet(self.host.arp(2, mac, live_host, self.wire.server_mac, self.wire.server), ARP))
        self.live.check()

    def test_arp_flood(self):
        """Requests from 250 addresses, and of our own address: the cache is bounded, and the address stays ours."""
        for i in range(1000):
            sender = "%s.%d" % (self.wire.server.rsplit(".", 1)[0], 3 + i % 250)
            if sender != self.host.ip:
                packet = self.host.arp(1, rand_mac(i), sender, b"\0" * 6, self.wire.server)
                self.wire.send(self.host.ethernet(packet, ARP, dst=BROADCAST, src=rand_mac(i)))
        self.wire.send(self.host.ethernet(self.host.arp(1, self.host.mac, self.wire.server, b"\0" * 6, self.wire.server), ARP, dst=BROADCAST))
        self.live.check()

    # ---- ICMP ----

    def ping(self, payload, **odd):
        body = struct.pack(">BBHHH", odd.get("kind", 8), odd.get("code", 0), 0, 77, 1) + payload
        value = odd.get("checksum", checksum(body))
        self.host.send_ip(body[:2] + struct.pack(">H", value) + body[4:], 1)

    def pong(self, timeout=0.3):
        return self.host.wait_ip(timeout, 1, lambda data: data if data[0] == 0 else None)

    def test_ping(self):
        time.sleep(1)  # whatever other cases have used up of the allowance
        for n in (0, 1, 7, 56, 1000, 1472):
            payload = bytes(i & 255 for i in range(n))
            self.ping(payload)
            answer = self.pong(2)
            self.assertIsNotNone(answer, "%d bytes" % n)
            self.assertEqual((answer[4:8], answer[8:], checksum(answer)), (struct.pack(">HH", 77, 1), payload, 0))

    def test_odd_pings(self):
        self.ping(b"x", checksum=0x1111)
        self.assertIsNone(self.pong(0.1))
        for kind in (0, 3, 5, 9, 13, 255):
            self.ping(b"x" * 40, kind=kind)
        for n in range(8):
            self.host.send_ip(b"\x08\0\xf7\xff\0\0\0\0"[:n], 1)
        self.assertIsNone(self.pong(0.1))

    def test_ping_flood(self):
        """Some are answered, most are not."""
        with Counted(self, "icmp_limited", 1000):
            sent = answers = 0
            for _ in range(100):
                for _ in range(100):
                    self.ping(b"x" * 56)
                    sent += 1
                while self.pong(0.001) is not None:
                    answers += 1
            self.live.check()
            self.assertGreater(answers, 0)
            self.assertLess(answers, sent // 2, "the rate is limited")

    def test_unreachable_for_a_connection(self):
        """An ICMP error, which anyone can send, ends no connection."""
        c = RawConnection(self.host)
        inner = ipv4(self.wire.server, self.host.ip, struct.pack(">HHI", self.wire.port, c.sport, c.ack))
        for kind, code in ((3, 0), (3, 1), (3, 3), (3, 4), (11, 0)):
            body = struct.pack(">BBHI", kind, code, 0, 68) + inner
            self.host.send_ip(body[:2] + struct.pack(">H", checksum(body)) + body[4:], 1)
        self.assertWorks(c)


def rand_mac(seed):
    return b"\x02" + random.Random(seed).randbytes(5)


if __name__ == "__main__":
    unittest.main()
