"""The classic group protocol of Muster against that of a real Kafka broker: random sequences of requests to both, the answers compared.

usage: test_diff.py [--seconds N] [--sequences N] [--seed N] [--at-once N] [--slot S] [--replay SEED]... [--without WORDS] [--keep FOLDER]

  --seconds N    starts new sequences for so long (75)
  --sequences N  ends when so many were compared, whatever the time
  --seed N       the first seed; by itself it is taken from the clock; sequences have seeds N, N+1, ...
  --at-once N    so many sequences at the same time, fewer where the machine is too slow for it
  --slot S       length of a slot in seconds (2); longer for a machine that is busy, with more at once
  --replay SEED  plays only that one, prints the transcripts; may be given more than once
  --without WORDS  as if known.py had no entry whose name has these words: shows what that entry explains, shrunk
  --keep FOLDER  Kafka's log goes there, and the transcripts of differences that did not show again

It starts itself again beside a Muster (deploy/with-muster), in its network namespace, and starts Kafka there on the loopback interface.
Exit status 77, with the reason, where there is no root, no TAP device, no java or no Kafka. known.py lists the differences that are meant.
"""
import argparse
import asyncio
import collections
import os
import shutil
import sys
import tempfile
import time

import broker
import compare
import sequences
from known import KNOWN
from play import Broken, Player, Side

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
REPLAYS = 3  # a difference counts when it shows this many times in a row, and Kafka says the same each time
SHRUNK_MOST = 6
FEWEST = 10  # a run that compares fewer has failed
SHRINK_SECONDS = 60


def settings():
    return {
        "group.initial.rebalance.delay.ms": round(sequences.INITIAL_DELAY * sequences.SLOT * 1000),
        "group.min.session.timeout.ms": sequences.MIN_SESSION_MS, "group.max.session.timeout.ms": sequences.MAX_SESSION_MS,
        "group.max.size": sequences.MAX_SIZE, "offset.metadata.max.bytes": sequences.METADATA_MAX,
        "offsets.topic.num.partitions": sequences.PARTITIONS,
    }


class Pair:
    """The two servers, and sequences on both."""

    # Served from version 0 by Muster; what Kafka does not serve any more it is asked in the lowest version that it does, which says the same.
    OLDER = ("OffsetCommit", "OffsetFetch")

    def __init__(self, kafka, muster):
        self.kafka, self.muster, self.count = kafka, muster, 0
        self.served = {}

    async def get_ready(self):
        await asyncio.gather(self.kafka.get_ready(), self.muster.get_ready())
        for name, (low, high) in self.kafka.served.items():
            if name in self.muster.served:
                lowest = 0 if name in self.OLDER else max(low, self.muster.served[name][0])
                self.served[name] = lowest, min(high, self.muster.served[name][1])

    async def play(self, sequence):
        """(Kafka's, Muster's) Player, both played to the end; or None when the machine was too slow for the timing to mean anything."""
        self.count += 1
        group = f"g{os.getpid()}-{self.count}"
        players = [Player(side, self.served, sequence, group) for side in (self.kafka, self.muster)]
        await asyncio.gather(*(p.play() for p in players))
        return players if max(p.late for p in players) <= 1 else None

    async def play_patiently(self, sequence, tries=5):
        for _ in range(tries):
            players = await self.play(sequence)
            if players is not None:
                return players
        return None

    async def confirmed(self, sequence):
        """The difference, if it shows each time; else None."""
        found = await self.differences(sequence, REPLAYS)
        same = None not in found and len({difference.signature() for difference in found}) == 1
        return found[0] if same else None

    async def differences(self, sequence, times):
        """The first unexplained difference, or None, of each of so many plays."""
        plays = await asyncio.gather(*(self.play_patiently(sequence, 3) for _ in range(times)))
        return [players and compare.compare(*players, KNOWN)[0] for players in plays]

    async def shrink(self, sequence, signature):
        """The shortest sequence found that still shows a difference of that signature."""
        end = time.monotonic() + SHRINK_SECONDS
        best, size = sequence, max(1, len(sequence["steps"]) // 2)
        while time.monotonic() < end:
            tries = []
            for at in range(0, len(best["steps"]), size):
                tries.append(dict(best, steps=best["steps"][:at] + best["steps"][at + size:]))
            if size == 1:
                tries += [dict(best, steps=[*best["steps"][:i], ("tick", 1, 0), *best["steps"][i + 1:]])
                          for i, step in enumerate(best["steps"]) if step[0] == "tick" and step[1] > 1]
            results = await asyncio.gather(*(self.still(t, signature) for t in tries))
            good = [t for t, same in zip(tries, results) if same]
            if good:
                best = good[-1]
                size = min(size, max(1, len(best["steps"]) // 2))
            elif size > 1:
                size = size // 2
            else:
                break
        return best

    async def still(self, sequence, signature):
        return all(d is not None and d.signature() == signature for d in await self.differences(sequence, 2))


class Needed:
    """Shows that every entry of known.py is needed."""

    TRIES = 12  # some depend on the order of Kafka's hash maps, which is random

    def __init__(self, pair):
        self.pair = pair

    async def run(self):
        """The number of entries that no difference asked for."""
        results = await asyncio.gather(*(self.shown(entry) for entry in KNOWN))
        for entry, why in zip(KNOWN, results):
            if why:
                print(f"known difference \"{entry.name}\" is not shown by its sequence: {why}", flush=True)
        return sum(1 for why in results if why)

    async def shown(self, entry):
        """None, or why not."""
        why = "it has none"
        for _ in range(self.TRIES):
            for sequence in entry.shown_by:
                players = await self.pair.play_patiently(sequence)
                if players is None:
                    why = "this machine is too slow"
                    continue
                difference, met, _ = compare.compare(*players, KNOWN)
                if entry.name in met:
                    return None
                why = difference.signature() if difference else f"Kafka and Muster agree (apart from {met})"
        return why


class Run:
    """Many sequences, and what came of them."""

    def __init__(self, pair, options):
        self.pair, self.options = pair, options
        self.next_seed = options.seed
        self.at_once = options.at_once  # as many as this machine can do in time
        self.same, self.ended, self.late, self.unstable, self.requests = 0, 0, 0, 0, 0
        self.met, self.suspects = collections.Counter(), []
        self.end, self.slowed = time.monotonic() + options.seconds, 0

    def more(self):
        if self.options.sequences:
            return self.same + self.ended + len(self.suspects) < self.options.sequences
        return time.monotonic() < self.end

    async def worker(self, number):
        await asyncio.sleep(sequences.SLOT * 4 * number / self.options.at_once)
        while self.more():
            if number >= self.at_once:
                await asyncio.sleep(sequences.SLOT)
                continue
            seed, self.next_seed = self.next_seed, self.next_seed + 1
            await self.one(sequences.make(seed))

    def slow_down(self):
        """All that are late by the same hiccup count once."""
        if time.monotonic() - self.slowed > 5:
            self.at_once, self.slowed = max(10, self.at_once * 0.8), time.monotonic()

    async def one(self, sequence):
        players = await self.pair.play(sequence)
        if players is None:
            self.late += 1
            self.slow_down()
            return
        self.at_once = min(self.options.at_once, self.at_once + 0.5)
        self.requests += len(players[0].entries)
        difference, met, ended = compare.compare(*players, KNOWN)
        self.met.update(met)
        if difference is not None:
            self.suspects.append((difference.signature(), sequence, compare.story(*players)))
        elif ended:
            self.ended += 1
        else:
            self.same += 1

    async def run(self):
        await asyncio.gather(*(self.worker(i) for i in range(self.options.at_once)))
        print(f"seeds {self.options.seed} to {self.next_seed - 1}: {self.same} sequences alike to the end, {self.ended} up to a known difference, "
              f"{self.late} not counted because this machine was too slow, {self.requests} requests to each server", flush=True)
        for name, times in self.met.most_common():
            print(f"  known difference met {times} times: {name}")
        return await self.judge()

    async def judge(self):
        """Replays what looked different; returns the number of differences that stay."""
        by_signature = {}
        for signature, sequence, lines in sorted(self.suspects, key=lambda s: len(s[1]["steps"])):
            by_signature.setdefault(signature, []).append((sequence, lines))
        if not by_signature:
            return 0
        print(f"{len(self.suspects)} sequences differ, in {len(by_signature)} ways; replaying", flush=True)
        for signature, cases in sorted(by_signature.items(), key=lambda s: -len(s[1])):
            print(f"  {len(cases)}: seed {cases[0][0]['seed']}: {signature}", flush=True)
        found = []
        names = list(by_signature)
        for at in range(0, len(names), 20):
            part = names[at:at + 20]
            results = await asyncio.gather(*(self.confirm(by_signature[s]) for s in part))
            for signature, result in zip(part, results):
                if result is None:
                    self.unstable += len(by_signature[signature])
                    self.tell_unstable(signature, *by_signature[signature][0], len(by_signature[signature]))
                else:
                    found.append((len(by_signature[signature]), *result))
        found.sort(key=lambda f: -f[0])
        shrunk = await asyncio.gather(*(self.pair.shrink(f[1], f[2]) for f in found[:SHRUNK_MOST]))
        for (times, _, signature), sequence in zip(found, shrunk):
            await self.show(times, signature, sequence)
        for times, sequence, signature in found[SHRUNK_MOST:]:
            print(f"\nDIFFERENCE ({times} sequences, not shrunk), seed {sequence['seed']}: {signature}")
        return sum(f[0] for f in found)

    def tell_unstable(self, signature, sequence, lines, times):
        print(f"  not repeatable ({times}): seed {sequence['seed']}: {signature}")
        if self.options.keep:
            with open(os.path.join(self.options.keep, f"{sequence['seed']}.txt"), "w") as out:
                out.writelines(f"{line}\n" for line in [signature, *lines])

    async def confirm(self, cases):
        for sequence, _ in cases[:3]:
            confirmed = await self.pair.confirmed(sequence)
            if confirmed is not None:
                return sequence, confirmed.signature()
        return None

    async def show(self, times, signature, sequence):
        print(f"\nDIFFERENCE ({times} sequences), seed {sequence['seed']}: {signature}")
        players = await self.pair.play_patiently(sequence)
        if players is not None:
            print(f"  steps {sequence['steps']}")
            print("\n".join(compare.story(*players)), flush=True)


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
    needless = await Needed(pair).run()
    run = Run(pair, options)
    differing = await run.run()
    if differing:
        print(f"\n{differing} sequences with a difference that known.py does not list")
    few = run.same < FEWEST
    if few:
        print(f"only {run.same} sequences could be compared to the end: nothing is proven")
    return 1 if differing or needless or few else 0


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    parser.add_argument("--at-once", type=int, default=300)
    parser.add_argument("--slot", type=float, default=sequences.SLOT)
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
        for name, value in settings().items():
            words += ["--set", f"{name}={value}"]
        words += ["--set", f"node.id={broker.NODE_ID}", "--set", f"cluster.id={broker.CLUSTER_ID}"]
        for name, partitions in sequences.TOPICS.items():
            words += ["--topic", f"{name}:{partitions}"]
        with_muster = os.path.join(TOP, "deploy", "with-muster")
        os.execv(with_muster, [with_muster, *words, "--", sys.executable, os.path.realpath(__file__), *sys.argv[1:], "--jars", jars])
    folder = tempfile.mkdtemp(prefix="kafka-", dir=os.path.dirname(os.environ["MUSTER_RESTART"]))  # with-muster removes it whatever happens
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    kafka = broker.Broker(options.jars, folder, settings())
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
