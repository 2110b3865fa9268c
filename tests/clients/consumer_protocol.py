"""What the Python consumers share: their command line, and the lines that rdkafka_consumer.c describes."""
import argparse
import json
import os
import select
import sys
import time


def options():
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap", "--group", "--topic", "--assignor", "--client-id"):
        parser.add_argument(name, required=True)
    for name in ("--session-ms", "--heartbeat-ms"):
        parser.add_argument(name, type=int, required=True)
    return parser.parse_args()


def tell(event, **members):
    print(json.dumps({"t": time.monotonic(), "event": event, **members}), flush=True)


class Commands:
    """Lines of stdin, read without ever waiting; its end is a "leave"."""

    def __init__(self):
        self.text = b""

    def next(self):
        if select.select([0], [], [], 0)[0]:
            more = os.read(0, 4096)
            if not more:
                return ["leave"]
            self.text += more
        line, newline, rest = self.text.partition(b"\n")
        if not newline:
            return None
        self.text = rest
        return line.decode().split()


def run(poll, commit, committed, close):
    """The consumer's loop: poll() waits a little; commit(offset) and committed() -> {partition: offset} may raise."""
    commands = Commands()
    while True:
        try:
            poll()
            words = commands.next()
            if words is None:
                continue
            if words[0] == "commit":
                commit(int(words[1]))
                tell("committed", offset=int(words[1]))
            elif words[0] == "committed":
                tell("offsets", offsets=committed())
            elif words[0] == "leave":
                break
            else:
                sys.exit(f"unknown command {words}")
        except Exception as error:  # whatever the client raises is told, and the test judges
            tell("error", text=f"{type(error).__name__}: {error}")
    close()
    tell("closed")
