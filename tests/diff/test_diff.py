"""The classic group protocol of Muster against that of a real Kafka broker: random sequences of requests to both, the answers compared.

usage: test_diff.py [--core N] [--seconds N] [--sequences N] [--seed N] [--at-once N] [--slot S] [--replay SEED]... [--without WORDS]
                    [--keep FOLDER] | --expiry

  --core N       plays the sequences 1 to N first, whatever the time (0)
  --seconds N    starts further sequences for so long (75), with seeds from the clock on, which the first line of the result names
  --sequences N  instead of --seconds: exactly so many further sequences
  --seed N       instead of the clock: sequences have seeds N, N+1, ...
  --at-once N    so many sequences at the same time (300), fewer where the machine is too slow for it
  --slot S       length of a slot in seconds; by itself 2 to 6, the longer the busier the machine is
  --expiry       only a few fixed sequences, with servers that look for expired offsets all the time
  --replay SEED  plays only that one, prints the transcripts; may be given more than once
  --without WORDS  as if known.py had no entry whose name has these words: shows what that entry explains, shrunk
  --keep FOLDER  Kafka's log goes there, and the transcripts of all sequences that differed

It starts itself again beside a Muster (deploy/with-muster), in its network namespace, and starts Kafka there on the loopback interface.
Exit status 77, with the reason, where there is no root, no TAP device, no java or no Kafka. known.py lists the differences that are meant.
"""
import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time

import broker
import compare
import sequences
from known import KNOWN
from once import EXPIRING, ONCE
from pair import Fixed, Pair
from play import Side
from run import Run

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")


def settings(options):
    check_ms = round(sequences.SLOT * 250) if options.expiry else 86400000  # else a long run would see empty groups go, on each server in its own time
    return {
        "group.initial.rebalance.delay.ms": round(sequences.INITIAL_DELAY * sequences.SLOT * 1000),
        "group.min.session.timeout.ms": sequences.MIN_SESSION_MS, "group.max.session.timeout.ms": sequences.MAX_SESSION_MS,
        "group.max.size": sequences.MAX_SIZE, "offset.metadata.max.bytes": sequences.METADATA_MAX,
        "offsets.topic.num.partitions": sequences.PARTITIONS, "offsets.retention.check.interval.ms": check_ms,
        "offsets.retention.minutes": 1 if options.expiry else 10080,
    }


async def replay(pair, seed):
    players = await pair.play_patiently(sequences.make(seed))
    if players is None:
        print("this machine is too slow for it")
        return 1
    difference, met, _ = compare.compare(*players, KNOWN)
    print(f"seed {seed}", *compare.story(*players), sep="\n")
    print(f"known differences met: {met}")
    print(f"difference: {difference.signature() if difference else 'none'}")
    return difference is not None


async def inside(options, folder):
    host, _, port = os.environ["MUSTER_BOOTSTRAP"].rpartition(":")
    pair = Pair(Side("Kafka", broker.ADDRESS), Side("Muster", (host, int(port))))
    await pair.get_ready()
    if options.replay:
        return max(await asyncio.gather(*(replay(pair, seed) for seed in options.replay)))
    if options.expiry:
        return 1 if await Fixed(pair, [], EXPIRING).run() else 0
    fixed = await Fixed(pair, KNOWN, ONCE).run()
    return 1 if await Run(pair, options).run() + fixed else 0


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    parser.add_argument("--at-once", type=int, default=300)
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    parser.add_argument("--slot", type=float, default=min(max(sequences.SLOT, round(busy)), 3 * sequences.SLOT))
    parser.add_argument("--expiry", action="store_true")
    parser.add_argument("--replay", type=int, action="append")
    parser.add_argument("--without")
    parser.add_argument("--keep")
    parser.add_argument("--jars", help=argparse.SUPPRESS)  # inside: where they are
    return parser.parse_args(argv)


def main():
    options = parse(sys.argv[1:])
    sequences.SLOT = options.slot
    if options.without:
        KNOWN[:] = [entry for entry in KNOWN if options.without not in entry.name]
    if options.jars is None:
        try:
            jars = broker.jars()
        except broker.Missing as e:
            print(f"skip: {e}")
            sys.exit(77)
        words = ["--set", "journal.output=none"]
        for name, value in settings(options).items():
            words += ["--set", f"{name}={value}"]
        words += ["--set", f"node.id={broker.NODE_ID}", "--set", f"cluster.id={broker.CLUSTER_ID}"]
        for name, partitions in sequences.TOPICS.items():
            words += ["--topic", f"{name}:{partitions}"]
        with_muster = os.path.join(TOP, "deploy", "with-muster")
        os.execv(with_muster, [with_muster, *words, "--", sys.executable, os.path.realpath(__file__), *sys.argv[1:], "--slot", str(options.slot), "--jars", jars])
    folder = tempfile.mkdtemp(prefix="kafka-", dir=os.path.dirname(os.environ["MUSTER_RESTART"]))  # with-muster removes it whatever happens
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    kafka = broker.Broker(options.jars, folder, settings(options))
    try:
        kafka.start()
        status = asyncio.run(inside(options, folder))
    finally:
        kafka.stop()
        if options.keep:
            shutil.copy(kafka.log, options.keep)
    sys.exit(status)


if __name__ == "__main__":
    main()
