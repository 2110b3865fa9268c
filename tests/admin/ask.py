"""The admin socket, by the program's own commands and by hand."""
import json
import os
import socket
import subprocess

MUSTER = os.environ["MUSTER_BIN"]
PATH = os.environ["MUSTER_ADMIN_SOCKET"]


def run(*words, **options):
    """muster WORDS: status, stdout, stderr."""
    done = subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **options)
    return done.returncode, done.stdout, done.stderr


def ask(*words):
    """muster WORDS --json: its items and its last line."""
    status, out, err = run(*words, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines and lines[-1].get("done") is True, (status, out, err)
    assert (status == 0) == (lines[-1]["error"] == 0), (status, out)
    return lines[:-1], lines[-1]


def items(kind, *words):
    found, last = ask(*words)
    assert last["error"] == 0, last
    return [i for i in found if i["item"] == kind]


class Raw:
    """A client of our own making."""

    def __init__(self, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(PATH)
        self.socket.settimeout(timeout)
        self.left = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def line(self):
        """The next line; None: the server closed the connection."""
        while b"\n" not in self.left:
            try:
                block = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not block:
                return None
            self.left += block
        line, self.left = self.left.split(b"\n", 1)
        return json.loads(line)

    def answer(self, request):
        """Items and the last line."""
        self.send(request)
        lines = [self.line()]
        while not lines[-1].get("done"):
            lines.append(self.line())
        return lines[:-1], lines[-1]

    def close(self):
        self.socket.close()
