#!/usr/bin/env python3
"""Our stack against the kernel's, and against itself: linux_peer.py PEER CASE

PEER is the program of peer.c. Everything happens in a network namespace without a name, which the kernel removes together with
its devices when the last process in it ends, however it ends; the peer is killed when this process dies.
Exit status 77: the case cannot run here (the reason is printed), 0: passed, 1: failed.
"""
import contextlib
import ctypes
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LINUX, MUSTER, PORT = "10.77.0.1", "10.77.0.2", 7000
STALL_LIMIT_S = 5.0  # longest time without a byte; a lost retransmission costs Linux 0.2 + 0.4 s
FAULTS = ["loss=10000", "duplicate=10000", "reorder=10000"]
libc = ctypes.CDLL(None, use_errno=True)


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def enter_namespace():
    if os.geteuid() != 0:
        skip("needs root for a network namespace")
    if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
        skip("cannot make a network namespace: " + os.strerror(ctypes.get_errno()))
    run("ip", "link", "set", "lo", "up")


def run(*command):
    subprocess.run(command, check=True)


class Peer:
    """A running peer.c; its counters after the end."""

    def __init__(self, mode, *options):
        # libxdp leaks a little at its end, which would fail a run with sanitizers
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0") if "net_af_xdp" in options[0] else None
        self.process = subprocess.Popen([sys.argv[1], mode, *options], stdout=subprocess.PIPE, text=True, env=env,
                                        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
        self.counters = {}
        line = self.process.stdout.readline()
        if not line.startswith("ready: "):
            raise AssertionError("peer did not start, exit status %s" % self.process.wait())
        print(mode, line.strip())
        self.mac = bytes.fromhex(re.search(r"MAC ([0-9a-f:]+)", line).group(1).replace(":", ""))

    def finish(self, timeout):
        out, _ = self.process.communicate(timeout=timeout)
        for line in out.splitlines():
            name, value = line.split()
            self.counters[name] = int(value)
        return self.process.returncode

    def stop(self):
        """SIGTERM: it has to end by itself, soon, and without complaint."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.finish(10)
        took = time.monotonic() - start
        assert status == 0, "exit status %d after SIGTERM" % status
        assert took < 5, "took %.1f s to stop" % took

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def server(device, *options):
    peer = Peer("serve", "device=" + device, "addr=" + MUSTER, "port=%d" % PORT, *options)
    try:
        if device.startswith("net_tap"):
            run("ip", "addr", "add", LINUX + "/24", "dev", "t0")
            run("ip", "link", "set", "t0", "up")
        yield peer
    finally:
        peer.kill()


def frames(seed, total):
    """Frames of 1 to 9,000 bytes that hold `total` bytes together, as one byte string."""
    rng, out, n = random.Random(seed), [], 0
    while n < total:
        size = min(rng.choice([rng.randint(1, 100), rng.randint(1, 9000)]), total - n)
        out.append(struct.pack(">i", size) + rng.randbytes(size))
        n += size
    return b"".join(out)


def connect(port=PORT):
    s = socket.create_connection((MUSTER, port), timeout=20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def receive_all(s):
    """Everything to the end of the stream, and the longest gap between two pieces."""
    got, worst, last = bytearray(), 0.0, time.monotonic()
    while True:
        piece = s.recv(65536)
        now = time.monotonic()
        worst, last = max(worst, now - last), now
        if not piece:
            return bytes(got), worst
        got += piece


def echo(seed, total, results=None, port=PORT):
    """Sends everything, half-closes, and must get all of it back before the peer's own end."""
    data, start = frames(seed, total), time.monotonic()
    with connect(port) as s:
        s.settimeout(60)

        def send():
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        got, worst = receive_all(s)
        sender.join()
    took = time.monotonic() - start
    assert got == data, "%d bytes sent, %d came back, first difference at %d" % (
        len(data), len(got), next((i for i, (a, b) in enumerate(zip(data, got)) if a != b), min(len(data), len(got))))
    assert worst < STALL_LIMIT_S, "stalled for %.2f s" % worst
    if results is not None:
        results.append(worst)
    else:
        print("%d bytes each way in %.2f s, longest gap %.3f s" % (len(data), took, worst))


def many(connections, total, workers=1):
    """At once, spread over the ports of the workers; each checks its own bytes."""
    results = []
    threads = [threading.Thread(target=echo, args=(i, total, results, PORT + i % workers)) for i in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == connections, "%d of %d connections came through" % (len(results), connections)
    print("%d connections, longest gap %.3f s" % (connections, max(results)))


def expect(peer, *names):
    for name in names:
        assert peer.counters.get(name, 0) > 0, "%s should have counted something" % name


def quiet(peer, *names):
    for name in names:
        assert peer.counters.get(name, 0) == 0, "%s is %d" % (name, peer.counters[name])


# ---- cases ----

def case_tap():
    with server("net_tap0,iface=t0") as peer:
        echo(1, 10_000_000)
        many(50, 50_000)
        peer.stop()
        quiet(peer, "tcp_bad_checksum", "ipv4_bad_checksum", "ipv4_bad_header", "tcp_timed_out")
        assert peer.counters["tcp_accepted"] == peer.counters["tcp_closed"] == 51


def case_tap_faults():
    for seed in (1, 2):
        with server("net_tap0,iface=t0", "seed=%d" % seed, *FAULTS) as peer:
            echo(seed, 10_000_000)
            peer.stop()
            expect(peer, "tcp_retransmits", "tcp_out_of_order")
    with server("net_tap0,iface=t0", "corrupt=10000", *FAULTS) as peer:
        echo(3, 2_000_000)
        many(20, 50_000)
        peer.stop()
        expect(peer, "tcp_bad_checksum", "tcp_retransmits")


def case_tap_behaviour():
    with server("net_tap0,iface=t0") as peer:
        with connect() as s:  # byte by byte
            data = frames(4, 300)
            for i in range(len(data)):
                s.send(data[i:i + 1])
            s.shutdown(socket.SHUT_WR)
            assert receive_all(s)[0] == data
        for bad in (struct.pack(">i", -1), struct.pack(">i", 0), struct.pack(">i", 0x7fffffff)):
            with connect() as s, contextlib.suppress(ConnectionResetError):
                s.sendall(bad + b"xxxx")
                assert s.recv(10) == b"", "an answer to a frame of impossible length"
        with connect() as s:  # reset from our side, in the middle of a frame
            s.sendall(frames(5, 50_000)[:20_000])
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((MUSTER, PORT + 1), timeout=5).close()
            raise AssertionError("a port that nobody listens on was accepted")
        slow_reader()
        echo(6, 100_000)
        with connect() as s:  # open while the program stops: a clean end, not a reset
            s.sendall(frames(7, 10))
            assert len(s.recv(100)) > 0
            peer.stop()
            s.settimeout(5)
            assert s.recv(100) == b""
        quiet(peer, "frame_slow_reader", "tcp_no_memory")
        expect(peer, "frame_too_large", "tcp_refused_port", "tcp_resets_in")
        assert peer.counters["frame_bad_length"] == 2


def slow_reader():
    """Does not read for a while: windows close both ways; then every byte is there."""
    data = frames(8, 4_000_000)
    with connect() as s:
        s.settimeout(60)
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        time.sleep(1.5)
        assert sender.is_alive(), "a peer that does not read was served without limit"
        got, _ = receive_all(s)
        sender.join()
    assert got == data


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data[:len(data) // 2 * 2])) + (data[-1] << 8 if len(data) % 2 else 0)
    while total > 0xffff:
        total = (total >> 16) + (total & 0xffff)
    return ~total & 0xffff


def packet(protocol, payload):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0,
                       socket.inet_aton(LINUX), socket.inet_aton(MUSTER))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def tcp_segment(rng, payload):
    usual = bytes([2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0])
    options = rng.choice([b"", usual, rng.randbytes(rng.randrange(0, 41, 4))])
    flags = rng.choice([2, 16, 18, 4, 1, 24, rng.randrange(256)])
    head = struct.pack("!HHIIBBHHH", rng.randint(1, 65535), rng.choice([PORT, PORT + 1]), rng.getrandbits(32),
                       rng.getrandbits(32), (5 + len(options) // 4) << 4, flags, rng.randrange(65536), 0, 0)
    segment = head + options + payload
    pseudo = socket.inet_aton(LINUX) + socket.inet_aton(MUSTER) + struct.pack("!BBH", 0, 6, len(segment))
    return segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]


def garbage(rng, mac, own):
    """A frame that is nearly right, so that each layer gets its share: whole, damaged, or cut."""
    kind = rng.randrange(4)
    if kind == 0:
        body, ether_type = packet(6, tcp_segment(rng, rng.randbytes(rng.choice([0, 10, 1000])))), 0x0800
    elif kind == 1:
        echo_request = b"\x08\0\0\0" + rng.randbytes(rng.randrange(0, 60))
        echo_request = echo_request[:2] + struct.pack("!H", checksum(echo_request)) + echo_request[4:]
        body, ether_type = packet(1, echo_request), 0x0800
    elif kind == 2:
        sender = socket.inet_aton("10.77.0.%d" % rng.randrange(1, 255))
        body, ether_type = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, rng.choice([1, 2]), own, sender, bytes(6),
                                       socket.inet_aton(MUSTER)), 0x0806
    else:
        body, ether_type = rng.randbytes(rng.randrange(0, 1500)), rng.choice([0x0800, 0x0806, 0x86dd, 0x8100])
    if rng.random() < 0.5 and body:
        body = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            body[rng.randrange(min(len(body), 60))] = rng.randrange(256)
    if rng.random() < 0.2:
        body = body[:rng.randrange(0, len(body) + 1)]
    return mac + own + struct.pack("!H", ether_type) + bytes(body)


def case_tap_garbage():
    """Frames made by hand, past the kernel's stack; a live connection is served meanwhile."""
    rng = random.Random(11)
    with server("net_tap0,iface=t0") as peer, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw, connect() as live:
        raw.bind(("t0", 0))
        own = raw.getsockname()[4]
        live.settimeout(10)
        for i in range(20_000):
            raw.send(garbage(rng, peer.mac, own))
            if i % 200 == 0:
                data = frames(i, 500)
                live.sendall(data)
                got = b""
                while len(got) < len(data):
                    got += live.recv(len(data) - len(got))
                assert got == data
        live.shutdown(socket.SHUT_WR)
        assert live.recv(1) == b""
        echo(12, 500_000)
        peer.stop()
        expect(peer, "ether_other_type", "arp_bad", "arp_requests", "ipv4_bad_header", "ipv4_bad_checksum", "icmp_bad",
               "icmp_echo", "tcp_bad_header", "tcp_bad_checksum", "tcp_bad_option", "tcp_refused_port")


def veth_case(device, *options):
    if shutil.which("ethtool") is None:
        skip("needs ethtool")
    run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    run("ip", "addr", "add", LINUX + "/24", "dev", "v0")
    for end in ("v0", "v1"):
        run("ip", "link", "set", end, "up")
    # the kernel would leave checksums and segments unfinished, since a veth never needs them
    subprocess.run(["ethtool", "-K", "v0", "tx", "off", "gso", "off", "tso", "off"], check=True, stdout=subprocess.DEVNULL)
    name, _, arguments = device.partition(",")
    with server(",".join(filter(None, [name, "iface=v1", arguments])), *options) as peer:
        echo(9, 3_000_000)
        many(20, 20_000, 4 if "workers=4" in options else 1)
        peer.stop()
        quiet(peer, "tcp_bad_checksum", "ipv4_bad_checksum", "tcp_timed_out")


def ping(count):
    """The answers must be as many as the questions: one worker answers, not all."""
    out = subprocess.run(["ping", "-c", str(count), "-i", "0.05", "-W", "2", MUSTER], capture_output=True, text=True, check=True).stdout
    assert "%d received" % count in out and "DUP" not in out, out


def arp_probe(name, mac):
    """One question about our address gets one answer."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)) as raw:
        raw.bind((name, 0))
        own = raw.getsockname()[4]
        raw.send(b"\xff" * 6 + own + struct.pack("!HHHBBH6s4s6s4s", 0x0806, 1, 0x0800, 6, 4, 1, own, socket.inet_aton(LINUX), bytes(6),
                                                 socket.inet_aton(MUSTER)))
        answers, end = 0, time.monotonic() + 0.5
        while (left := end - time.monotonic()) > 0:
            raw.settimeout(left)
            with contextlib.suppress(TimeoutError):
                frame = raw.recv(100)
                answers += frame[6:12] == mac and frame[20:22] == b"\0\2"
        assert answers == 1, "%d answers to one ARP request" % answers


def workers_case(workers, queues):
    """Every worker is reached on its own port, over whatever queue its frames come in; then the counters say how they came."""
    with server("net_tap0,iface=t0", "workers=%d" % workers, "queues=%d" % queues) as peer:
        many(4 * workers, 200_000, workers)
        if shutil.which("ping"):
            ping(5)
        arp_probe("t0", peer.mac)
        run("ip", "neigh", "flush", "dev", "t0")
        many(workers, 20_000, workers)
        peer.stop()
        quiet(peer, "tcp_bad_checksum", "tcp_timed_out", "tcp_refused_port", "steer_full", "arp_conflicts")
        for w in range(workers):
            assert peer.counters["worker%d_accepted" % w] == 5, "worker %d" % w
            assert (peer.counters["worker%d_rx_frames" % w] > 0) == (w < (queues or workers)), "worker %d" % w
        handed, received = peer.counters["steer_handed_over"], peer.counters["port_rx_frames"]
        print("%d workers, %d queues: %.1f %% of %d frames handed over, %d bells" % (
            workers, queues or workers, 100 * handed / received, received, peer.counters["worker_bells"]))
        assert peer.counters["steer_taken_over"] >= handed
        if queues != 0:
            expect(peer, "steer_handed_over", "steer_sent_for_others", "worker_bells")


def case_tap_workers():
    for workers, queues in ((4, 1), (4, 2), (4, 0)):
        workers_case(workers, queues)


def case_tap_workers_faults():
    with server("net_tap0,iface=t0", "workers=3", "queues=2", "corrupt=10000", *FAULTS) as peer:
        many(12, 200_000, 3)
        peer.stop()
        expect(peer, "tcp_bad_checksum", "tcp_retransmits", "steer_handed_over")


def case_af_packet_workers():
    veth_case("net_af_packet0", "workers=4")
    run("ip", "link", "del", "v0")
    veth_case("net_af_packet0,qpairs=2", "workers=4")


def case_af_xdp_workers():
    veth_case("net_af_xdp0", "workers=4")


def case_af_packet():
    veth_case("net_af_packet0")


def case_af_xdp():
    veth_case("net_af_xdp0")


def case_memif():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/memif.sock"
        for faults in ([], FAULTS + ["corrupt=10000"]):
            memif_pair(path, faults)


def memif_pair(path, faults):
    device = "net_memif0,role=%s,socket=" + path + ",socket-abstract=no"
    with server(device % "server", *faults) as peer:
        caller = Peer("call", "device=" + device % "client", "addr=" + LINUX, "to=" + MUSTER, "port=%d" % PORT,
                      "conns=8", "bytes=500000", *faults)
        try:
            status = caller.finish(60)
        finally:
            caller.kill()
        assert status == 0 and caller.counters["done"] == 8, "%s of 8 calls were right" % caller.counters.get("done")
        peer.stop()
        assert peer.counters["tcp_accepted"] == 8
        if faults:
            expect(caller, "tcp_bad_checksum", "tcp_retransmits")


def main():
    case = sys.argv[2]
    if case != "memif":
        enter_namespace()
        if case.startswith("tap") and not os.path.exists("/dev/net/tun"):
            skip("/dev/net/tun is missing")
    globals()["case_" + case]()
    print("passed")


if __name__ == "__main__":
    main()
