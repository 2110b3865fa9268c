"""deploy/with-muster keeps what it promises: the status, the variables, restarts, many at once, and nothing left behind.

$MUSTER_BIN is the server. Exit status 77 with a reason where with-muster cannot run.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WITH_MUSTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "deploy", "with-muster")
CONNECT = 'exec 3<>"/dev/tcp/${MUSTER_BOOTSTRAP%:*}/${MUSTER_BOOTSTRAP##*:}"'  # bash: fails when nobody listens
AS_ROOT = "" if os.geteuid() == 0 else "sudo "
EACH_SERVER = f'for p in $({AS_ROOT}ip netns pids "$MUSTER_NETNS"); do case $(cat /proc/$p/comm) in muster) %s;; esac; done; '


def run(*words, **more):
    return subprocess.run([WITH_MUSTER, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **more)


def start(script):
    """with-muster around a bash script, its stdin and stdout ours."""
    return subprocess.Popen([WITH_MUSTER, "--", "bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def namespaces():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    return set(re.findall(r"^muster-\S+", listed, re.MULTILINE))


def wait_until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Status(unittest.TestCase):
    def test_of_the_command(self):
        self.assertEqual(run("--", "bash", "-c", CONNECT).returncode, 0)
        self.assertEqual(run("--", "bash", "-c", "exit 7").returncode, 7)
        self.assertEqual(run("--", "bash", "-c", "kill -TERM $$").returncode, 128 + signal.SIGTERM)

    def test_of_wrong_usage(self):
        for words in ([], ["--"], ["--nonsense", "--", "true"], ["--set", "port", "--", "true"], ["--topic", "a:0", "--", "true"],
                      ["--workers", "x", "--", "true"]):
            self.assertEqual(run(*words).returncode, 2, words)
        self.assertEqual(run("--", "no-such-command-anywhere").returncode, 127)

    def test_of_a_wrong_setting(self):
        done = run("--set", "no.such.setting=1", "--", "true")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no.such.setting", done.stderr)

    def test_of_a_server_that_does_not_start(self):
        done = run("--", "true", env=dict(os.environ, MUSTER_BIN="/bin/false"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("before it was ready", done.stderr)

    def test_of_a_server_that_dies(self):
        began = time.monotonic()
        done = run("--", "bash", "-c", EACH_SERVER % f'{AS_ROOT}bash -c "kill -9 $p"' + "sleep 60")
        self.assertEqual(done.returncode, 3)
        self.assertIn("signal 9 by itself", done.stderr)
        self.assertLess(time.monotonic() - began, 30)


class Surroundings(unittest.TestCase):
    def test_variables(self):
        done = run("--topic", "a:3", "--", "bash", "-c",
                   f'{CONNECT}; echo "$MUSTER_BOOTSTRAP"; test -x "$MUSTER_RESTART" && grep -c ready "$MUSTER_LOG"')
        self.assertRegex(done.stdout, r"\A10\.77\.0\.2:19092\n1\n\Z", done.stderr)

    def test_restart(self):
        pid = EACH_SERVER % "echo $p"
        done = run("--", "bash", "-c", f'set -e; {pid} "$MUSTER_RESTART" term; {pid} {CONNECT}; "$MUSTER_RESTART" kill; {pid} {CONNECT}; '
                   'grep -c ^muster:.ready, "$MUSTER_LOG"; if "$MUSTER_RESTART" nonsense; then exit 9; fi')
        self.assertEqual(done.returncode, 0, done.stderr)
        *pids, ready = done.stdout.split()
        self.assertEqual((len(set(pids)), ready), (3, "3"), done.stdout)

    def test_log_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("--log", f"{folder}/log", "--", "true").returncode, 0)
            with open(f"{folder}/log") as log:
                self.assertIn("muster: ready", log.read())

    def test_two_at_once(self):
        both = [start(f'{CONNECT} && echo "$MUSTER_NETNS" && read line && exit 5') for _ in range(2)]
        names = {process.stdout.readline().strip() for process in both}
        self.assertEqual(len(names - {""}), 2)
        self.assertLessEqual(names, namespaces())
        for process in both:
            process.communicate("go\n", timeout=30)
            self.assertEqual(process.returncode, 5)
        self.assertFalse(names & namespaces())


class Leftovers(unittest.TestCase):
    """However it ends, namespace, folder and processes are gone a moment later."""

    def end_by(self, number):
        process = start('sleep 1000 & echo "$MUSTER_NETNS $MUSTER_RESTART $! $$"; wait')
        with process:
            netns, restart, *pids = process.stdout.readline().split()
            self.assertIn(netns, namespaces())
            process.send_signal(number)
            process.wait(30)
            self.assertTrue(wait_until(lambda: netns not in namespaces()), "the namespace is still there")
            self.assertTrue(wait_until(lambda: not os.path.exists(os.path.dirname(restart))), "its folder is still there")
            for pid in pids:
                self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")), "a process is still there")

    def test_after_term(self):
        self.end_by(signal.SIGTERM)

    def test_after_kill(self):
        self.end_by(signal.SIGKILL)

    def test_after_a_command_that_leaves_one_behind(self):
        done = run("--", "bash", "-c", 'sleep 1000 >/dev/null 2>&1 & echo "$MUSTER_NETNS $!"')
        netns, pid = done.stdout.split()
        self.assertNotIn(netns, namespaces())
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")))


if __name__ == "__main__":
    probe = run("--", "true")
    if probe.returncode == 77:
        print(f"skip: {probe.stderr.strip()}")
        sys.exit(77)
    unittest.main(verbosity=2)
