"""muster cores --auto and --check on machines that are made of files: the map that each gets, and what is said of maps that do not fit."""
import configparser
import os
import tempfile
import unittest

from program import TOP, muster

CARD = "0000:3b:00.0"


class Machine:
    """A folder with the files of sys/ and proc/ that the program reads."""

    def __init__(self, folder, cpus, cores=None, nodes=1, isolated="", allowed=None):
        """CPU c is a thread of core c mod `cores`; the cores lie on the nodes in equal blocks."""
        self.root = folder
        self.device = "net_tap0,iface=muster0"
        cores = cores or cpus
        self.write("sys/devices/system/cpu/online", f"0-{cpus - 1}" if cpus > 1 else "0")
        self.write("sys/devices/system/cpu/isolated", isolated)
        for c in range(cpus):
            here = f"sys/devices/system/cpu/cpu{c}"
            self.write(f"{here}/topology/thread_siblings_list", ",".join(str(t) for t in range(c % cores, cpus, cores)))
            os.mkdir(self.path(f"{here}/node{c % cores * nodes // cores}"))
        if allowed is not None:
            self.write("sys/fs/cgroup/cpuset.cpus.effective", allowed)

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as out:
            out.write(f"{text}\n")

    def card(self, node, queues=0):
        """A card on the bus; the kernel's driver has it, and so its queues are known, if `queues`."""
        self.device = CARD
        self.write(f"sys/bus/pci/devices/{CARD}/numa_node", node)
        for q in range(queues):
            os.makedirs(self.path(f"sys/bus/pci/devices/{CARD}/net/eth0/queues/rx-{q}"))
        return self

    def interrupt(self, number, cpus, name):
        self.write(f"proc/irq/{number}/smp_affinity_list", cpus)
        self.write(f"sys/kernel/irq/{number}/actions", name)
        return self

    def muster(self, *words):
        return muster("cores", *words, "--root", self.root, "--set", f"device={self.device}")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = os.path.join(self.folder, "map.conf")

    def machine(self, *args, **kwargs):
        return Machine(os.path.join(self.folder, "root"), *args, **kwargs)

    def auto(self, machine, *words):
        """The map of the machine, and its text."""
        done = machine.muster("--auto", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.file, "w") as out:
            out.write(done.stdout)
        parsed = configparser.ConfigParser()
        parsed.read_string(done.stdout)
        self.text = done.stdout
        for section in parsed.sections():
            keys = list(parsed[section])
            lines = self.text[self.text.index(f"[{section}]"):].splitlines()
            for key in keys:
                at = next(i for i, line in enumerate(lines) if line.startswith(f"{key} = "))
                self.assertTrue(lines[at - 1].startswith("# ") or key == "port", f"{section}: {key} without a reason")
        return parsed

    def column(self, parsed, key):
        return [parsed[f"worker {w}"][key] for w in range(len(parsed.sections()) - 1)]

    def checked(self, machine, status, *findings, text=None):
        """What --check says of the map, line by line, without the file's name and the last line, which has the numbers."""
        if text is not None:
            with open(self.file, "w") as out:
                out.write(text)
        done = machine.muster("--check", self.file)
        lines = [line.removeprefix(self.file + ":").strip() for line in done.stdout.splitlines()]
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        self.assertEqual(len(lines), len(findings) + 1, done.stdout)
        for line, start in zip(lines, findings):
            self.assertTrue(line.startswith(start), f"{line}\n{start}")
        if not findings:
            self.assertEqual(lines, ["good"])


NOT_ISOLATED = "costs: no CPU here is isolated"


class Auto(Case):
    """The maps that machines get, and that --check finds in them nothing but what the machine itself costs."""

    def test_virtual_machine_of_two_cpus(self):
        machine = self.machine(2)
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", ["1"]))
        self.assertEqual(self.column(parsed, "idle.policy"), ["adaptive"])
        self.checked(machine, 1, NOT_ISOLATED)

    def test_one_cpu(self):
        machine = self.machine(1)
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", ["0"]))
        self.checked(machine, 1, "13: costs: worker 0: cpu: 0 is also housekeeping's", NOT_ISOLATED)

    def test_one_core_of_two_threads(self):
        machine = self.machine(2, cores=1)
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", ["1"]))
        self.checked(machine, 1, "13: costs: worker 0: cpu: 1 and housekeeping's CPU 0 are two threads of one core", NOT_ISOLATED)

    def test_a_socket_with_two_threads_a_core(self):
        machine = self.machine(16, cores=8).card(-1, queues=32).interrupt(45, "3", "nvme0q3").interrupt(46, "0-15", "usb").interrupt(47, "3", "")
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", list("1234567")))
        self.assertEqual(self.column(parsed, "queue"), list("0123456"))
        self.assertIn("16 CPUs on 8 cores", self.text)
        self.assertIn("# costs: worker 2: cpu: 3 also serves 1 interrupt, the first is 45 (nvme0q3); move it:", self.text)
        at = self.text.splitlines().index("cpu = 3") + 1
        self.checked(machine, 1, f"{at}: costs: worker 2: cpu: 3 also serves 1 interrupt", NOT_ISOLATED)

    def test_two_sockets_with_the_card_on_the_second(self):
        machine = self.machine(16, nodes=2).card(1, queues=16)
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", ["8", "9", "10", "11", "12", "13", "14", "15"]))
        self.assertEqual(set(self.column(parsed, "numa")), {"1"})
        self.assertIn("NUMA node 1 (CPUs 8-15), 16 queues", self.text)
        self.checked(machine, 1, NOT_ISOLATED)
        parsed = self.auto(machine, "--workers", "10")
        self.assertEqual(self.column(parsed, "cpu")[8:], ["1", "2"])
        self.assertEqual(self.column(parsed, "numa")[8:], ["0", "0"])
        self.assertIn("# costs: worker 8: cpu: 1 is on NUMA node 0, the card 0000:3b:00.0 on node 1", self.text)

    def test_isolated_cpus(self):
        machine = self.machine(8, isolated="4-7").card(0, queues=8)
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("0", ["4", "5", "6", "7"]))
        self.assertEqual(set(self.column(parsed, "idle.policy")), {"spin"})
        self.checked(machine, 0)
        parsed = self.auto(machine, "--workers", "5")
        self.assertEqual(self.column(parsed, "cpu")[4], "1")
        self.assertEqual(self.column(parsed, "idle.policy")[4], "adaptive")

    def test_isolated_cpus_away_from_the_card(self):
        parsed = self.auto(self.machine(8, nodes=2, isolated="2-3").card(1, queues=8))
        self.assertEqual(self.column(parsed, "cpu"), ["4", "5", "6", "7"])

    def test_more_workers_than_queues(self):
        machine = self.machine(16).card(0, queues=2)
        self.assertEqual(self.column(self.auto(machine), "queue"), ["0", "1"])
        parsed = self.auto(machine, "--workers", "4")
        self.assertEqual(self.column(parsed, "cpu"), list("1234"))
        self.assertEqual(self.column(parsed, "queue"), ["0", "1", "none", "none"])
        none = [i + 1 for i, line in enumerate(self.text.splitlines()) if line == "queue = none"]
        self.checked(machine, 1, *(f"{at}: costs: worker {w}: queue: none" for at, w in zip(none, (2, 3))), NOT_ISOLATED)

    def test_a_machine_that_tells_nothing(self):
        machine = self.machine(1)
        os.remove(machine.path("sys/devices/system/cpu/online"))
        parsed = self.auto(machine, "--workers", "2")
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("any", ["any", "any"]))
        self.assertEqual(self.column(parsed, "numa"), ["any", "any"])
        self.checked(machine, 1, "costs: this machine does not tell its CPUs")

    def test_a_control_group_with_some_of_the_cpus(self):
        machine = self.machine(8, allowed="2-4")
        parsed = self.auto(machine)
        self.assertEqual((parsed["housekeeping"]["cpu"], self.column(parsed, "cpu")), ("2", ["3", "4"]))
        self.checked(machine, 1, NOT_ISOLATED)

    def test_second_threads_come_last(self):
        parsed = self.auto(self.machine(8, cores=4), "--workers", "8")
        self.assertEqual(self.column(parsed, "cpu"), ["1", "2", "3", "4", "5", "6", "7", "any"])

    def test_more_than_there_is_room_for(self):
        machine = self.machine(4)
        done = machine.muster("--auto", "--workers", "4", "--set", "port=65533")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "muster: --workers: so many leave no room for their ports or node ids; lower port or node.id\n")
        done = machine.muster("--auto", "--workers", "4", "--set", "offsets.topic.num.partitions=3")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(len(self.auto(machine, "--set", "offsets.topic.num.partitions=2").sections()), 3)


class Check(Case):
    def test_cpus(self):
        machine = self.machine(8, cores=4, isolated="2,6", allowed="0-6").card(0, queues=4)
        self.checked(machine, 2, "2: error: housekeeping: cpu: there is no CPU 9 here, or it is offline; allowed: 0-6, or any",
                     "4: error: worker 0: cpu: there is no CPU 8 here", "7: error: worker 1: cpu: the control group keeps this program off CPU 7",
                     text="[housekeeping]\ncpu = 9\n[worker 0]\ncpu = 8\nqueue = 0\n[worker 1]\ncpu = 7\nqueue = 1\n")
        self.checked(machine, 1, "costs: housekeeping: cpu: any", "2: costs: worker 0: cpu: 1 is not isolated, and other CPUs here are",
                     "5: costs: worker 1: cpu: 5 and CPU 1 of worker 0 are two threads of one core", "5: costs: worker 1: cpu: 5 is not isolated",
                     text="[worker 0]\ncpu = 1\nqueue = 0\n[worker 1]\ncpu = 5\nqueue = 1\n")
        self.checked(machine, 2, "5: error: worker 1: cpu: 2 has worker 0 already, by line 2",
                     text="[worker 0]\ncpu = 2\nqueue = 0\n[worker 1]\ncpu = 2\nqueue = 1\n")
        self.checked(machine, 0, text="[housekeeping]\ncpu = 0\n[worker 0]\ncpu = 2\nqueue = 0\n")

    def test_nodes(self):
        machine = self.machine(4, nodes=2, isolated="2-3").card(1, queues=4)
        head = "[housekeeping]\ncpu = 0\n[worker 0]\nqueue = 0\n"
        self.checked(machine, 1, "5: costs: worker 0: cpu: 1 is not isolated", f"5: costs: worker 0: cpu: 1 is on NUMA node 0, the card {CARD} on node 1",
                     text=head + "cpu = 1\n")
        self.checked(machine, 1, "6: costs: worker 0: numa: 0, but its CPU 2 is on node 1", text=head + "cpu = 2\nnuma = 0\n")
        self.checked(machine, 2, "6: error: worker 0: numa: there is no NUMA node 2 with CPUs here", text=head + "cpu = 2\nnuma = 2\n")
        self.checked(machine, 0, text=head + "cpu = 2\nnuma = 1\n")

    def test_queues(self):
        machine = self.machine(4, isolated="1-3").card(0, queues=1)
        head = "[housekeeping]\ncpu = 0\n[worker 0]\ncpu = 1\nqueue = 0\n[worker 1]\ncpu = 2\n"
        self.checked(machine, 2, f"8: error: worker 1: queue: 1, and {CARD} has 1; allowed: 0 to 0, or none", text=head + "queue = 1\n")
        self.checked(machine, 1, "6: costs: worker 1: queue: none", text=head)
        machine.device = "net_af_packet0,iface=veth0,qpairs=2"
        self.checked(machine, 0, text=head + "queue = 1\n")

    def test_shards(self):
        machine = self.machine(4, isolated="1-3")
        head = "[housekeeping]\ncpu = 0\n[worker 0]\ncpu = 1\nqueue = 0\nshards = 0-49\n[worker 1]\ncpu = 2\nqueue = 1\n"
        self.checked(machine, 1, "10: costs: worker 1: shards: none: it owns no group", text=head + "shards = none\n")
        self.checked(machine, 2, "10: error: worker 1: shards: 7 has worker 0 already, by line 6", text=head + "shards = 7\n")

    def test_every_fault_has_its_line(self):
        self.checked(self.machine(2), 2, "2: error: worker 0: cpu:", "3: error: qeue: a worker has no such key; nearest: queue", "4: error: [wrker 1]:",
                     text="[worker 0]\ncpu = x\nqeue = 0\n[wrker 1]\ncpu = 1\n")

    def test_the_maps_in_deploy(self):
        done = muster("cores", "--check", f"{TOP}/deploy/core-map.conf", "--root", self.machine(4).root)
        self.assertEqual(done.returncode, 1, done.stdout)
        done = muster("cores", "--check", f"{TOP}/deploy/core-map-two-sockets.conf", "--set", f"device={CARD}", "--root",
                      self.machine_of_the_example().root)
        self.assertEqual((done.returncode, done.stdout), (0, f"{TOP}/deploy/core-map-two-sockets.conf: good\n"))

    def machine_of_the_example(self):
        return Machine(os.path.join(self.folder, "example"), 32, cores=16, nodes=2, isolated="9-15").card(1)


class Words(Case):
    def test_command_lines(self):
        for words in (["--auto", "--check", "x"], ["--auto", "x"], ["--check", "x", "--workers", "3"]):
            done = muster("cores", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, "muster: muster cores takes --auto [--workers N], or --check MAP; see muster cores --auto --help\n")
        self.assertEqual(muster("cores", "--auto", "--workers", "65").stderr, "muster: --workers: \"65\" is no such number; allowed: 1 to 64\n")
        self.assertEqual(muster("cores", "--check").stderr, "muster: --check: its value is missing; see muster cores --auto --help\n")
        self.assertTrue(muster("cores", "--auto", "--help").stdout.startswith("usage: muster cores --auto"))
        self.assertEqual(muster("cores", "--auto", "--set", "port=x").returncode, 2)

    def test_a_map_that_is_not_there(self):
        done = muster("cores", "--check", f"{self.folder}/gone")
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stdout.startswith(f"{self.folder}/gone: error: cannot be opened: No such file or directory; allowed: a readable file\n"))

    def test_the_real_machine(self):
        parsed = self.auto(type("Real", (), {"muster": lambda self, *words: muster("cores", *words)})())
        self.assertGreaterEqual(len(parsed.sections()), 2)
        self.assertLess(muster("cores", "--check", self.file).returncode, 2)


if __name__ == "__main__":
    unittest.main()
