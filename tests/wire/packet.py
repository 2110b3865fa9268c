"""Frames made by hand: a raw socket on the interface to the server, and a host of our own on it that the kernel knows nothing of.

The host has an address and a MAC of its own, answers ARP while it waits for something, and speaks just enough TCP to open a connection and
exchange a request. Needs CAP_NET_RAW in the namespace that deploy/with-muster made.
"""

import fcntl
import os
import socket
import struct
import time

SIOCGIFHWADDR, SIOCGIFMTU, SIOCSIFMTU = 0x8927, 0x8921, 0x8922
ETH_P_ALL, PACKET_OUTGOING = 3, 4
IPV4, ARP = 0x0800, 0x0806
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
BROADCAST = b"\xff" * 6


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip4(text):
    return socket.inet_aton(text)


def ipv4(src, dst, payload, protocol=6, **odd):
    """An IPv4 packet; `odd` replaces single fields: version, ihl, total, ident, fragment, ttl, checksum, options."""
    options = odd.get("options", b"")
    ihl = odd.get("ihl", 5 + len(options) // 4)
    total = odd.get("total", 20 + len(options) + len(payload))
    head = struct.pack(">BBHHHBBH4s4s", odd.get("version", 4) << 4 | ihl, 0, total & 0xFFFF, odd.get("ident", 1), odd.get("fragment", 0x4000),
                       odd.get("ttl", 64), protocol, 0, ip4(src), ip4(dst)) + options
    value = odd.get("checksum", checksum(head))
    return head[:10] + struct.pack(">H", value) + head[12:] + payload


def tcp(src, dst, sport, dport, seq, ack, flags, payload=b"", options=b"", **odd):
    """A TCP segment for these addresses; `odd` replaces: offset, window, checksum, urgent. Options are padded with zeros to four bytes."""
    options += b"\0" * (-len(options) % 4)
    offset = odd.get("offset", 5 + len(options) // 4)
    segment = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset << 4, flags, odd.get("window", 64000), 0,
                          odd.get("urgent", 0)) + options + payload
    pseudo = ip4(src) + ip4(dst) + struct.pack(">BBH", 0, 6, len(segment))
    value = odd.get("checksum", checksum(pseudo + segment))
    return segment[:16] + struct.pack(">H", value) + segment[18:]


class Segment:
    """A received TCP segment, taken apart."""

    def __init__(self, src, dst, data):
        self.src, self.dst = src, dst
        self.sport, self.dport, self.seq, self.ack, offset, self.flags, self.window = struct.unpack(">HHIIBBH", data[:16])
        self.options, self.payload = data[20:offset >> 4 << 2], data[offset >> 4 << 2:]
        self.good = checksum(ip4(src) + ip4(dst) + struct.pack(">BBH", 0, 6, len(data)) + data) == 0


class Wire:
    """The interface that leads to the server."""

    def __init__(self, server):
        self.server, self.port = server
        self.name = self.find_interface()
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind((self.name, 0))
        self.mac = self.ioctl(SIOCGIFHWADDR)[18:24]
        socket.create_connection(server, 10).close()
        self.server_mac = self.find_server_mac()

    def close(self):
        self.sock.close()

    def find_interface(self):
        want = struct.unpack("=I", ip4(self.server))[0]
        with open("/proc/net/route") as routes:
            for line in routes.readlines()[1:]:
                name, dest, _, _, _, _, _, mask = line.split()[:8]
                if want & int(mask, 16) == int(dest, 16) and int(mask, 16):
                    return name
        raise OSError("no route to %s" % self.server)

    def find_server_mac(self):
        with open("/proc/net/arp") as neighbours:
            for line in neighbours.readlines()[1:]:
                words = line.split()
                if words[0] == self.server and words[5] == self.name:
                    return bytes.fromhex(words[3].replace(":", ""))
        raise OSError("no neighbour %s" % self.server)

    def ioctl(self, number, value=b""):
        request = struct.pack("16s16s", self.name.encode(), value)
        return fcntl.ioctl(self.sock.fileno(), number, request)

    def mtu(self, value=None):
        if value is not None:
            self.ioctl(SIOCSIFMTU, struct.pack("i", value))
        return struct.unpack("i", self.ioctl(SIOCGIFMTU)[16:20])[0]

    def send(self, frame):
        """False when the kernel itself refuses the frame."""
        try:
            self.sock.send(frame)
        except OSError:
            return False
        return True

    def receive(self, deadline):
        """The next frame that came in, or None."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.sock.settimeout(left)
            try:
                frame, where = self.sock.recvfrom(65536)
            except TimeoutError:
                return None
            if where[2] != PACKET_OUTGOING:
                return frame


class Host:
    """A host of our own on the wire."""

    def __init__(self, wire, number):
        self.wire = wire
        self.ip = "%s.%d" % (wire.server.rsplit(".", 1)[0], number)
        self.mac = b"\x02\0\0\0\0" + bytes([number])
        self.next_port = 20000 + os.getpid() % 20000

    def ethernet(self, payload, kind=IPV4, dst=None, src=None):
        return (dst or self.wire.server_mac) + (src or self.mac) + struct.pack(">H", kind) + payload

    def send_ip(self, payload, protocol=6, **odd):
        return self.wire.send(self.ethernet(ipv4(self.ip, self.wire.server, payload, protocol, **odd)))

    def arp(self, op, sender_mac, sender, target_mac, target, **odd):
        return struct.pack(">HHBBH", odd.get("hardware", 1), odd.get("protocol", IPV4), odd.get("hlen", 6), odd.get("plen", 4), op) \
            + sender_mac + ip4(sender) + target_mac + ip4(target)

    def wait(self, timeout, want):
        """Calls `want(ethertype, payload, frame)` for each frame to us (or to all) until it returns something, which is returned. Answers ARP."""
        deadline = time.monotonic() + timeout
        while True:
            frame = self.wire.receive(deadline)
            if frame is None:
                return None
            if frame[:6] not in (self.mac, BROADCAST):
                continue
            kind, payload = struct.unpack(">H", frame[12:14])[0], frame[14:]
            if kind == ARP and payload[6:8] == b"\0\1" and payload[24:28] == ip4(self.ip):
                self.wire.send(self.ethernet(self.arp(2, self.mac, self.ip, payload[8:14], self.wire.server), ARP))
            got = want(kind, payload, frame)
            if got is not None:
                return got

    def wait_ip(self, timeout, protocol, want):
        def look(kind, payload, frame):
            if kind != IPV4 or payload[9] != protocol or payload[16:20] != ip4(self.ip):
                return None
            total = struct.unpack(">H", payload[2:4])[0]
            return want(payload[(payload[0] & 15) * 4:total])
        return self.wait(timeout, look)

    def wait_tcp(self, timeout, port, accept=lambda s: True):
        def look(data):
            s = Segment(self.wire.server, self.ip, data)
            return s if s.dport == port and accept(s) else None
        return self.wait_ip(timeout, 6, look)

    def port(self):
        self.next_port += 1
        return self.next_port

    def send_tcp(self, sport, seq, ack, flags, payload=b"", options=b"", dport=None, ip=None, **odd):
        segment = tcp(self.ip, self.wire.server, sport, dport or self.wire.port, seq, ack, flags, payload, options, **odd)
        return self.send_ip(segment, **(ip or {}))


def find_option(options, kind):
    """The value of a TCP option, or None."""
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if at + 1 >= len(options) or options[at + 1] < 2:
            return None
        if options[at] == kind:
            return options[at + 2:at + options[at + 1]]
        at += options[at + 1]
    return None


class RawConnection:
    """A TCP connection of a Host. `syn_ack` is None when the server did not answer the SYN. Once the server takes up timestamps, every segment
    carries one, as RFC 7323 wants it."""

    def __init__(self, host, options=b"", timeout=2.0, seq=1000, **odd):
        self.host, self.sport = host, host.port()
        self.seq, self.ack = seq, 0
        host.send_tcp(self.sport, seq, 0, SYN, options=options, **odd)
        self.syn_ack = host.wait_tcp(timeout, self.sport)
        if self.syn_ack is not None and self.syn_ack.flags & (SYN | ACK | RST) == SYN | ACK:
            self.seq, self.ack = seq + 1, self.syn_ack.seq + 1
            self.segment(ACK)

    def segment(self, flags, data=b"", **odd):
        stamp = find_option(self.syn_ack.options, 8)
        options = b"" if stamp is None else b"\1\1\x08\x0a" + struct.pack(">I", 2) + stamp[:4]
        self.host.send_tcp(self.sport, self.seq, self.ack, flags, data, options=options, **odd)

    def established(self):
        return self.ack != 0

    def send(self, data, **odd):
        self.segment(PSH | ACK, data, **odd)

    def exchange(self, data, timeout=3.0):
        """Sends the data in one segment and returns the next whole frame that comes back, without its length field; None: nothing came."""
        self.send(data)
        self.seq += len(data)
        got = b""
        deadline = time.monotonic() + timeout
        while len(got) < 4 or len(got) < 4 + struct.unpack(">i", got[:4])[0]:
            s = self.host.wait_tcp(max(deadline - time.monotonic(), 0.001), self.sport, lambda s: s.payload or s.flags & RST)
            if s is None or s.flags & RST:
                return None
            if s.seq == self.ack & 0xFFFFFFFF and s.good:
                got += s.payload
                self.ack += len(s.payload)
            self.segment(ACK)
        return got[4:]

    def reset(self):
        self.segment(RST | ACK)
