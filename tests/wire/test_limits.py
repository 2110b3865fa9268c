"""What happens at the limits. Needs a server with small ones, as meson.build starts it: see LIMITS."""

import socket
import time
import unittest

from harness import NONE, Counted, WireCase, address, fresh, ours
from kafka import Closed, encode_request, frame

# Settings of the server: connections.max.idle.ms, max.connections, socket.request.max.bytes, group.max.size
IDLE_S, CONNECTIONS, REQUEST_BYTES, GROUP = 2.0, 64, 65536, 3
GROUP_MAX_SIZE_REACHED = 81


@ours("needs the server's limits to be small")
class Limits(WireCase):
    def test_idle_connections_are_closed(self):
        """After that time without a request, not before; the requests of others change nothing."""
        with Counted(self, "frame_idle", 3):
            quiet = [self.connect() for _ in range(3)]
            for c in quiet:
                self.assertServes(c)
            start = time.monotonic()
            for c in quiet:
                self.assertClosed(c, timeout=3 * IDLE_S)
                self.assertGreater(time.monotonic() - start, 0.8 * IDLE_S)

    def test_connections_in_use_stay(self):
        c = self.connect()
        end = time.monotonic() + 1.5 * IDLE_S
        while time.monotonic() < end:
            self.assertServes(c)
            time.sleep(IDLE_S / 5)

    def test_largest_request(self):
        """A request of exactly so many bytes is served, one byte more closes the connection at once, before the bytes are there."""
        head = len(encode_request("JoinGroup", 4, 1, {"group": "g", "protocols": [{"name": "range", "metadata": b""}]}))
        c = self.connect()
        fits = {"group": "g", "protocols": [{"name": "range", "metadata": b"x" * (REQUEST_BYTES - head)}]}
        self.assertEqual(len(encode_request("JoinGroup", 4, 1, fits)), REQUEST_BYTES)
        self.assertEqual(c.request("JoinGroup", 4, **fits)["error"], 79)
        with Counted(self, "frame_too_large"):
            c.send_raw((REQUEST_BYTES + 1).to_bytes(4, "big"))
            self.assertClosed(c, timeout=IDLE_S / 2)

    def test_too_many_connections(self):
        """Those that are there go on; further ones are refused; places that become free are taken."""
        held = []
        with Counted(self, "tcp_refused_full"):
            for _ in range(CONNECTIONS + 20):
                s = socket.socket()
                s.settimeout(0.3)
                try:
                    s.connect(address())
                    held.append(s)
                except OSError:
                    s.close()
            self.assertLess(len(held), CONNECTIONS)
            self.assertGreater(len(held), CONNECTIONS // 2)
            for s in held:
                s.sendall(frame(encode_request("ApiVersions", 0, 1, {})))
            for s in held:
                s.settimeout(5)
                self.assertGreater(len(s.recv(4)), 0)
            self.live.check()
        for s in held:
            s.close()
        end = time.monotonic() + 10
        while True:
            try:
                self.assertServes(self.connect(timeout=1))
                break
            except (OSError, Closed, TimeoutError):
                self.assertLess(time.monotonic(), end, "no place became free")

    def test_b24_group_size(self):
        """Ids may be handed out beyond the limit, places not."""
        group = fresh()
        members = [self.member(group, version=5) for _ in range(GROUP + 1)]
        for m in members:
            m.get_id()
        for m in members:
            m.send_join()
        errors = sorted(m.connection.receive(10)["error"] for m in members)
        self.assertEqual(errors, [NONE] * GROUP + [GROUP_MAX_SIZE_REACHED])

    def test_group_size_of_a_settled_group(self):
        members = self.group_of(GROUP, version=5)
        late = self.member(members[0].group, version=3)
        late.send_join()
        self.assertEqual(late.connection.receive()["error"], GROUP_MAX_SIZE_REACHED)
        for m in members:
            self.assertEqual(m.heartbeat(), NONE)


if __name__ == "__main__":
    unittest.main()
