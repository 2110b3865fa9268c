"""The command line: what is printed, exit statuses, and that whatever is wrong starts nothing."""
import os
import re
import subprocess
import tempfile
import unittest

from program import MUSTER, TOP, muster


def settings(text):
    """NAME -> value of a printed configuration."""
    return dict(re.findall(r"^([a-z.]+) = ?(.*?)(?: +;.*)?$", text, re.MULTILINE))


def origins(text):
    return dict(re.findall(r"^([a-z.]+) =.*? ; (.*)$", text, re.MULTILINE))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-")
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as out:
            out.write(text)
        return path

    def refused(self, line, *arguments, **options):
        """Status 2, exactly this line on stderr, nothing on stdout: neither DPDK nor a port was touched, both would speak."""
        done = muster(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"muster: {line}\n"))


class Information(Case):
    def test_help(self):
        done = muster("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: muster", done.stdout)
        self.assertIn("group.initial.rebalance.delay.ms   3000 ", done.stdout)

    def test_version(self):
        done = muster("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^muster \d+\.\d+\.\d+\n$")

    def test_a_full_disk_is_told_by_the_status(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(subprocess.run([MUSTER, "--version"], stdout=full, timeout=20).returncode, 1)


class Print(Case):
    def test_defaults(self):
        done = muster("config", "--print")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(set(origins(done.stdout).values()), {"default"})
        self.assertEqual(settings(done.stdout)["port"], "19092")
        self.assertEqual(len(settings(done.stdout)), len(origins(done.stdout)))

    def test_where_values_come_from(self):
        path = self.write("muster.conf", "[node]\nport = 5\nnode.id = 6\n[device]\nmtu = 9000\n")
        done = muster("config", "--print", "--config", path, "--set", "node.id=7", "--set=cpu=1", "--set", "cpu=0")
        values, origin = settings(done.stdout), origins(done.stdout)
        self.assertEqual([values[n] for n in ("port", "node.id", "mtu", "cpu", "journal.events")], ["5", "7", "9000", "0", "32"])
        self.assertEqual([origin[n] for n in ("port", "node.id", "mtu", "cpu", "journal.events")],
                         [f"{path}:2", "--set", f"{path}:5", "--set", "default"])

    def test_round_trip(self):
        sets = ["--set", "address=192.168.3.4/20", "--set", "eal.extra=--log-level=8 -a 0:1", "--set", "topics.file=t.conf",
                "--set", "idle.policy=spin", "--set", "mac=02:00:00:00:00:0A", "--set", "gateway=192.168.0.1"]
        first = muster("config", "--print", *sets, cwd=self.folder)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(settings(first.stdout)["topics.file"], f"{self.folder}/t.conf")
        self.assertEqual(settings(first.stdout)["mac"], "02:00:00:00:00:0a")
        second = muster("config", "--print", "--config", self.write("printed.conf", first.stdout))
        self.assertEqual(second.stderr, "")
        self.assertEqual(settings(second.stdout), settings(first.stdout))
        self.assertNotIn("default", origins(second.stdout).values())

    def test_the_example_in_deploy_is_the_programs_own(self):
        with open(f"{TOP}/deploy/muster.conf") as text:
            example = text.read()
        own = muster("config", "--example").stdout
        for name, value in (("topics.file", "topics.conf"), ("log.dir", "/var/lib/muster"), ("admin.socket", "/run/muster/admin.sock")):
            own = own.replace(f"#{name} =\n", f"{name} = {value}\n")
        self.assertEqual(example, own)


class Check(Case):
    def test_the_files_in_deploy_are_good(self):
        done = muster("config", "--check", "--config", f"{TOP}/deploy/muster.conf")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^muster: settings are good; 2 topics; \d+ MiB of memory needed, \d+ MiB free\n$")

    def test_memory_that_is_not_there(self):
        done = muster("config", "--check", "--set", "buffer.memory=1099511627776")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        found = re.fullmatch(r"muster: memory: (\d+) MiB are needed, (\d+) MiB are free, (\d+) MiB are missing; lower buffer.memory, .*\n",
                             done.stderr)
        self.assertIsNotNone(found, done.stderr)
        needed, free, missing = map(int, found.groups())
        self.assertGreaterEqual(needed, 1 << 20)
        self.assertLessEqual(abs(needed - free - missing), 1)

    def test_catalog(self):
        catalog = self.write("topics.conf", "a:3\n\nb 5\n")
        self.refused_at(f"{catalog}:3:", "config", "--check", "--set", f"topics.file={catalog}")
        self.refused_at(f"{catalog}:3:", "--set", f"topics.file={catalog}")
        catalog = self.write("topics.conf", "a:3\na:4\n")
        self.refused_at(f"{catalog}:2:", "config", "--check", "--set", f"topics.file={catalog}")
        with open(catalog, "wb") as out:
            out.write(b"a:3\nb\0:3\n")
        self.refused_at(f"{catalog}:2:", "config", "--check", "--set", f"topics.file={catalog}")
        self.write("topics.conf", "")
        self.assertIn(" 0 topics;", muster("config", "--check", "--set", f"topics.file={catalog}").stdout)

    def test_groups(self):
        groups = self.write("groups.conf", "[orders-*]\ngroup.max.size = 4\n[x]\ngroup.max.sise = 4\n")
        self.refused_at(f"{groups}:4: group.max.sise:", "config", "--check", "--set", f"groups.file={groups}")
        self.refused_at(f"{groups}:4: group.max.sise:", "--set", f"groups.file={groups}")
        groups = self.write("groups.conf", "[x]\ngroup.min.session.timeout.ms = 9000\ngroup.max.session.timeout.ms = 8000\n")
        self.refused_at(f"{groups}: [x]: group.min.session.timeout.ms", "config", "--check", "--set", f"groups.file={groups}")
        groups = self.write("groups.conf", "[orders-*]\ngroup.max.size = 4\n")
        self.assertEqual(muster("config", "--check", "--set", f"groups.file={groups}").returncode, 0)

    def test_core_map(self):
        core_map = self.write("map.conf", "[worker 0]\ncpu = 0\nqueue = 0\n[worker 1]\nqueue = 1\nprot = 5\n")
        for words in (["config", "--check"], []):
            self.refused_at(f"{core_map}:6: prot: a worker has no such key; nearest: port", *words, "--set", f"core.map.file={core_map}")
        core_map = self.write("map.conf", "[worker 0]\nqueue = 0\n[worker 1]\ncpu = 1023\nqueue = 16\n")
        self.refused_at(f"{core_map}:5: worker 1: queue: 16, and one below it has no worker:", "--set", f"core.map.file={core_map}")
        core_map = self.write("map.conf", "[worker 0]\nqueue = 0\n[worker 1]\ncpu = 1023\nqueue = 1\n")
        self.refused_at(f"{core_map}:4: worker 1: cpu: there is no CPU 1023 here, or it is offline;", "--set", f"core.map.file={core_map}")
        core_map = self.write("map.conf", "[worker 0]\nqueue = 0\n[worker 1]\nqueue = 1\n")
        self.refused_at(f"{core_map}:4: worker 1: queue: 1, and veth9 has 1; allowed: 0 to 0, or none", "--set", f"core.map.file={core_map}",
                        "--set", "device=net_af_packet0,iface=veth9")
        self.assertEqual(muster("config", "--check", "--set", f"core.map.file={core_map}", "--set", "workers=2").returncode, 0)
        for setting in ("workers=3", "cpu=0", "device.queues=1"):
            name = setting.partition("=")[0]
            self.refused(f"--set: {name}: the core map {core_map} says this; allowed: one of the two", "--set", f"core.map.file={core_map}",
                         "--set", setting)

    def refused_at(self, place, *arguments):
        done = muster(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"^muster: {re.escape(place)}(?: [^\n]+)?\n$")


class Refusals(Case):
    """Each twice: as a check, and as a start that must not happen."""

    def test_file(self):
        cases = [("[node]\nport = 70000\n", "2: port: 70000 is too large; allowed: 1 to 65535 (TCP port)"),
                 ("[node]\n\nprot = 1\n", "3: prot: there is no such setting; nearest: port"),
                 ("[group]\nport = 1\n", "2: port: does not belong in section [group]; allowed: in [node]"),
                 ("[node]\nport = 1\nport = 1\n", "3: port: is set for the second time; allowed: once, and line 2 sets it"),
                 ("[node]\nport\n", "2: neither a section nor a setting; allowed: [SECTION] or NAME = VALUE"),
                 ("[group]\ngroup.max.session.timeout.ms = 10\n",
                  "2: group.max.session.timeout.ms: 10 is less than group.min.session.timeout.ms; allowed: at least 6000")]
        for text, line in cases:
            path = self.write("muster.conf", text)
            for words in (["config", "--check"], ["config", "--print"], []):
                with self.subTest(text=text, words=words):
                    self.refused(f"{path}:{line}", *words, "--config", path)

    def test_set(self):
        for words in (["config", "--check"], []):
            self.refused("--set: max.conections: there is no such setting; nearest: max.connections", *words, "--set", "max.conections=1")
            self.refused("--set: idle.policy: \"lazy\" is none of the words; allowed: spin, adaptive", *words, "--set", "idle.policy=lazy")
            self.refused("--set: port: has no value; allowed: port=VALUE", *words, "--set", "port")

    def test_missing_files(self):
        gone = f"{self.folder}/gone.conf"
        self.refused(f"{gone}: cannot be opened: No such file or directory; allowed: a readable file", "--config", gone)
        self.refused(f"{self.folder}: cannot be read: Is a directory; allowed: a readable file", "--config", self.folder)
        self.refused(f"{gone}: topics.file: cannot be read: No such file or directory; allowed: a readable file", "--set", f"topics.file={gone}")
        path = self.write("muster.conf", "[node]\ntopics.file = gone.conf\n")
        self.refused(f"{gone}: topics.file: cannot be read: No such file or directory; allowed: a readable file", "--config", path)

    def test_arguments(self):
        self.refused("--confog: there is no such option; see muster --help", "--confog", "x")
        self.refused("--config: its value is missing; see muster --help", "--config")
        self.refused("start: is neither an option nor the word config; see muster --help", "start")
        self.refused("muster config takes one of --print, --check, --example", "config")


if __name__ == "__main__":
    unittest.main()
