"""Start and stop of the program, each time in a network namespace of its own, which goes away with the process."""
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import MUSTER, TOP

READY = "muster: ready, bootstrap.servers=10.77.0.2:19092\n"
SETTINGS = ["--set", "device=net_tap0,iface=muster0", "--set", "huge.pages=false", "--set", "max.connections=64", "--set", "buffer.memory=16777216"]
# Holds a connection whose peer vanishes: once the interface is down nobody acknowledges anything.
CONNECT = "import socket; socket.create_connection(('10.77.0.2', 19092), 10)"
HOLD = "import socket, sys; c = socket.create_connection(('10.77.0.2', 19092), 10); print('held', flush=True); sys.stdin.read()"


class Server:
    """A running muster; its output is a pipe that only wait_for and rest read."""

    def __init__(self, *words):
        self.process = subprocess.Popen(["unshare", "--net", MUSTER, *SETTINGS, *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.seen = ""
        os.set_blocking(self.process.stdout.fileno(), False)

    def wait_for(self, text, seconds=30):
        """Reads until `text` was seen."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while text not in self.seen:
                if not ready.select(max(0, end - time.monotonic())):
                    raise AssertionError(f"no {text!r} within {seconds} s in:\n{self.seen}")
                block = os.read(self.process.stdout.fileno(), 65536)
                if not block:
                    raise AssertionError(f"ended with {self.process.wait()} before {text!r}:\n{self.seen}")
                self.seen += block.decode()

    def rest(self):
        os.set_blocking(self.process.stdout.fileno(), True)
        self.seen += self.process.stdout.read().decode()
        return self.seen

    def inside(self, *words):
        return ["nsenter", "--net", f"--target={self.process.pid}", *words]

    def link_up(self):
        for words in (["addr", "add", "10.77.0.1/24", "dev", "muster0"], ["link", "set", "muster0", "up"]):
            subprocess.run(self.inside("ip", *words), check=True)

    def ends(self, seconds):
        """Exit status and how long it took."""
        start = time.monotonic()
        return self.process.wait(seconds), time.monotonic() - start

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Case(unittest.TestCase):
    def start(self, *words, ready=READY):
        server = Server(*words)
        self.addCleanup(server.kill)
        if ready:
            server.wait_for(ready)
        return server

    def hold(self, server):
        """A connection that can not be closed in order."""
        server.link_up()
        holder = subprocess.Popen(server.inside(sys.executable, "-c", HOLD), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: (holder.stdin.close(), holder.kill(), holder.wait(), holder.stdout.close()))
        self.assertEqual(holder.stdout.readline(), b"held\n")
        subprocess.run(server.inside("ip", "link", "set", "muster0", "down"), check=True)


    @staticmethod
    def waits_for_sigterm(pid):
        """It is muster (no longer unshare), and takes SIGTERM by waiting for it."""
        with open(f"/proc/{pid}/status") as text:
            status = {name: value.strip() for name, _, value in (line.partition(":") for line in text)}
        return status["Name"] == "muster" and int(status["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1 == 1


class StartAndStop(Case):
    def test_banner(self):
        server = self.start("--set", "node.id=7", "--set", "cluster.id=abc")
        self.assertRegex(server.seen, r"(?m)^muster: version \d")
        self.assertRegex(server.seen, r"(?m)^muster: port: net_tap,")
        self.assertIn("muster: node 7 of cluster abc\n", server.seen)
        self.assertIn("muster: topics: NONE", server.seen)
        self.assertIn("muster: log: MEMORY ONLY, nothing survives a restart (log.dir names no folder)\n", server.seen)
        self.assertNotIn("FAULT INJECTION", server.seen)

    def test_advertised_host_and_faults(self):
        server = self.start("--set", "advertised.host=example.org", "--set", "fault.inject.loss.ppm=1",
                            ready="muster: ready, bootstrap.servers=example.org:19092\n")
        self.assertIn("FAULT INJECTION IS ON", server.seen)

    def test_each_signal_stops_it(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(how=how):
                server = self.start()
                server.process.send_signal(how)
                status, seconds = server.ends(10)
                self.assertEqual(status, 0, server.rest())
                self.assertLess(seconds, 5)
                self.assertTrue(server.rest().endswith("muster: stopped\n"), server.seen)

    def test_a_signal_during_the_start_stops_it_too(self):
        server = self.start(ready=None)
        end = time.monotonic() + 10
        while not self.waits_for_sigterm(server.process.pid):
            self.assertLess(time.monotonic(), end)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.ends(20)[0], 0, server.rest())

    def test_a_peer_that_is_gone_does_not_hold_up_the_stop(self):
        server = self.start()
        self.hold(server)
        server.process.send_signal(signal.SIGTERM)
        status, seconds = server.ends(10)
        self.assertEqual(status, 0, server.rest())
        self.assertLess(seconds, 5)

    def test_the_second_signal_stops_at_once(self):
        server = self.start()
        self.hold(server)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("muster: stopping on SIGTERM; once more stops at once\n")
        server.process.send_signal(signal.SIGINT)
        status, seconds = server.ends(10)
        self.assertEqual(status, 128 + signal.SIGINT, server.rest())
        self.assertLess(seconds, 1)

    def test_counters(self):
        server = self.start("--stats")
        server.link_up()
        subprocess.run(server.inside(sys.executable, "-c", CONNECT), check=True)
        server.process.send_signal(signal.SIGUSR1)
        server.wait_for("stats: worker 0: tcp_accepted 1\n")
        self.assertNotRegex(server.seen, r"(?m)^stats: .* 0$")
        before = server.seen.count("stats: worker 0: tcp_accepted 1\n")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.ends(10)[0], 0)
        self.assertEqual(server.rest().count("stats: worker 0: tcp_accepted 1\n"), before + 1)

    def test_nobody_reads_its_output(self):
        """The pipe fills up with counters; the server still answers and stops."""
        server = self.start()
        server.link_up()
        for _ in range(400):
            server.process.send_signal(signal.SIGUSR1)
            time.sleep(0.002)
        subprocess.run(server.inside(sys.executable, "-c", CONNECT), check=True)
        server.process.send_signal(signal.SIGTERM)
        status, seconds = server.ends(10)
        self.assertEqual(status, 0)
        self.assertLess(seconds, 5)

    def test_two_may_run_at_once(self):
        first, second = self.start(), self.start()
        self.assertIsNone(first.process.poll())
        self.assertIsNone(second.process.poll())

    def test_a_device_that_is_not_there(self):
        server = self.start("--set", "device=net_af_packet0,iface=nosuch0", ready=None)
        self.assertEqual(server.ends(20)[0], 1)
        self.assertRegex(server.rest(), r"(?m)^muster: [^\n]*net_af_packet0,iface=nosuch0")


# From inside: what every node says of the cluster, and that the owner of each of 40 groups answers for it, whoever is asked.
ASK_NODES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from kafka import Connection
ports, owners = json.loads(sys.argv[2]), set()
for port in ports:
    with Connection(("10.77.0.2", port), timeout=10) as c:
        print(sorted((n["id"], n["port"]) for n in c.request("Metadata", 9, topics=[])["nodes"]))
        for i in range(40):
            owners.add(c.request("FindCoordinator", 3, key=f"g{i}")["port"])
            assert c.request("Heartbeat", 0, group=f"g{i}", generation=1, member="x")["error"] == 25
print(sorted(owners))
"""


class CoreMap(Case):
    def affinity(self, server):
        """CPUs of each thread by its name; of several with the program's, those of the first, which is worker 0."""
        tasks = f"/proc/{server.process.pid}/task"
        found = {}
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/status") as text:
                status = {name: value.strip() for name, _, value in (line.partition(":") for line in text)}
            if status["Name"] != "muster" or task == str(server.process.pid):
                found[status["Name"]] = status["Cpus_allowed_list"]
        return found

    def test_workers_are_where_the_map_says(self):
        cpus = sorted(os.sched_getaffinity(0))
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as core_map:
            core_map.write(f"[housekeeping]\ncpu = {cpus[0]}\n[worker 0]\ncpu = {cpus[-1]}\nqueue = 0\nport = 9092\nnode.id = 5\nshards = 0-9\n"
                           "[worker 1]\nqueue = none\nport = 40000\nnode.id = 3\n")
            core_map.flush()
            server = self.start("--set", f"core.map.file={core_map.name}", ready="muster: ready, bootstrap.servers=10.77.0.2:9092\n")
        self.assertIn(f"muster: worker 0: CPU {cpus[-1]}, queue 0, node 5, port 9092, shards 0-9, adaptive\n", server.seen)
        self.assertIn("muster: worker 1: CPU any, queue none, node 3, port 40000, shards 10-49, adaptive\n", server.seen)
        self.assertIn(", 1 queue, RSS off, steered by handover between workers,", server.seen)
        end = time.monotonic() + 10
        while "muster-house" not in (threads := self.affinity(server)):  # it names itself once it runs
            self.assertLess(time.monotonic(), end, threads)
            time.sleep(0.01)
        self.assertEqual((threads["muster"], threads["muster-house"]), (str(cpus[-1]), str(cpus[0])), threads)
        if len(cpus) == 2:
            self.assertEqual(threads["rte-worker-1"], str(cpus[0]), "off the CPU of the other")
        server.link_up()
        done = subprocess.run(server.inside(sys.executable, "-c", ASK_NODES, f"{TOP}/tests/wire", "[9092, 40000]"), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "[(3, 40000), (5, 9092)]\n" * 2 + "[9092, 40000]\n"), done.stderr)

    def test_a_map_that_cannot_be_starts_nothing(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as core_map:
            core_map.write("[worker 0]\nqueue = 0\nnuma = 31\n")
            core_map.flush()
            server = self.start("--set", f"core.map.file={core_map.name}", ready=None)
            self.assertEqual(server.ends(20)[0], 2)
            self.assertRegex(server.rest(), rf"^muster: {core_map.name}:3: worker 0: numa: there is no NUMA node 31 with CPUs here; [^\n]*\n$")


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("skipped: needs root and /dev/net/tun")
        sys.exit(77)
    unittest.main()
