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
  --keep FOLDER  Kafka's log goes there, and the transcripts of differences that did not show again

It starts itself again beside a Muster (deploy/with-muster), in its network namespace, and starts Kafka there on the loopback interface.
Exit status 77, with the reason, where there is no root, no TAP device, no java or no Kafka. known.py lists the differences that are meant.
"""
import argparse
import asyncio
import collections
import itertools
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
from play import Broken, Player, Side

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
REPLAYS = 3  # a difference counts when it shows this many times in a row, and Kafka says the same each time
SHRUNK_MOST = 6
FEWEST = 10  # a run that compares fewer has failed
ENOUGH = 2000  # so many sequences must have asked for every version
SHRINK_SECONDS = 120
LATE_MOST = 8  # times that a sequence is played in vain before it counts as not compared


def settings(options):
    expiry = {"offsets.retention.check.interval.ms": round(sequences.SLOT * 250), "offsets.retention.minutes": 1} if options.expiry else {}
    return {
        "group.initial.rebalance.delay.ms": round(sequences.INITIAL_DELAY * sequences.SLOT * 1000),
        "group.min.session.timeout.ms": sequences.MIN_SESSION_MS, "group.max.session.timeout.ms": sequences.MAX_SESSION_MS,
        "group.max.size": sequences.MAX_SIZE, "offset.metadata.max.bytes": sequences.METADATA_MAX,
        "offsets.topic.num.partitions": sequences.PARTITIONS, **expiry,
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

    async def shrink(self, sequence):
        """The shortest sequence found that still shows an unexplained difference, be it another one."""
        end = time.monotonic() + SHRINK_SECONDS
        best, size = sequence, max(1, len(sequence["steps"]) // 2)
        while time.monotonic() < end:
            tries = []
            for at in range(0, len(best["steps"]), size):
                tries.append(dict(best, steps=best["steps"][:at] + best["steps"][at + size:]))
            if size == 1:
                tries += [dict(best, steps=[*best["steps"][:i], ("tick", 1, 0), *best["steps"][i + 1:]])
                          for i, step in enumerate(best["steps"]) if step[0] == "tick" and step[1] > 1]
            results = await asyncio.gather(*(self.still(t) for t in tries))
            good = [t for t, same in zip(tries, results) if same]
            if good:
                best = min(good, key=lambda t: sum(step[1] if step[0] == "tick" else 1 for step in t["steps"]))
                size = min(size, max(1, len(best["steps"]) // 2))
            elif size > 1:
                size = size // 2
            else:
                break
        return best

    async def still(self, sequence):
        found = await self.differences(sequence, 2)
        return None not in found and found[0].signature() == found[1].signature()


class Fixed:
    """The fixed sequences: every entry of known.py is needed, and what once differed does not any more."""

    TRIES = (1, 4, 12)  # so many at the same time; some depend on the order of Kafka's hash maps, which is random

    def __init__(self, pair, different, alike):
        """Entries of known.py; {name: sequence}."""
        self.pair, self.different, self.same = pair, different, alike

    async def run(self):
        """The number of failures, which are printed."""
        start = time.monotonic()
        results = await asyncio.gather(*(self.shown(entry) for entry in self.different), *(self.alike(s) for s in self.same.values()))
        titles = [f'known difference "{entry.name}" is not shown by its sequence' for entry in self.different]
        titles += [f'"{name}" differs' for name in self.same]
        for title, why in zip(titles, results):
            if why:
                print(f"{title}: {why}", flush=True)
        print(f"slots of {sequences.SLOT} s; {len(titles)} fixed sequences in {time.monotonic() - start:.0f} s", flush=True)
        return sum(1 for why in results if why)

    async def shown(self, entry):
        """None, or why not."""
        why = "it has none"
        for tries in self.TRIES:
            for players in await asyncio.gather(*(self.pair.play_patiently(s) for s in entry.shown_by * tries)):
                if players is None:
                    why = "this machine is too slow"
                    continue
                difference, met, _ = compare.compare(*players, KNOWN)
                if entry.name in met:
                    return None
                why = difference.signature() if difference else f"Kafka and Muster agree (apart from {met})"
        return why

    async def alike(self, sequence):
        """None, or where they differ."""
        players = await self.pair.play_patiently(sequence)
        if players is None:
            return "this machine is too slow"
        difference, met, ended = compare.compare(*players, KNOWN)
        if difference is None and not ended:
            return None
        return "\n".join([difference.signature() if difference else f"it ends with {met}", *compare.story(*players)])


class Coverage:
    """What was asked for."""

    def __init__(self, pair):
        self.pair = pair
        self.asked, self.errors = collections.Counter(), collections.defaultdict(set)

    def add(self, players):
        for kafka, muster in zip(*(p.entries for p in players)):
            self.asked[kafka.name, kafka.version] += 1
            for entry in (kafka, muster):
                self.errors[entry.name].update(errors_in(entry.answer))

    def report(self):
        """Prints it; returns the versions that were never asked for."""
        missing = []
        for name in sequences.APIS:
            low, high = self.pair.served[name]
            counts = [self.asked[name, v] for v in range(low, high + 1)]
            print(f"  {name} {low}-{high}: {sum(counts)} requests, errors {' '.join(map(str, sorted(self.errors[name])))}")
            missing += [f"{name} {v}" for v, n in enumerate(counts, low) if n == 0]
        return missing


def errors_in(answer):
    if isinstance(answer, list):
        return set().union(*map(errors_in, answer))
    if isinstance(answer, dict):
        return set().union(*(errors_in(v) for v in answer.values()), [answer["error"]] if "error" in answer else [])
    return set()


class Run:
    """Many sequences, and what came of them."""

    def __init__(self, pair, options):
        self.pair, self.options = pair, options
        further = range(options.seed, options.seed + options.sequences)
        self.seeds = collections.deque([*range(1, options.core + 1), *further])
        self.fresh = itertools.count(options.seed)
        self.last = options.seed - 1 + options.sequences  # further seed
        self.at_once = options.at_once  # as many as this machine can do in time
        self.same, self.ended, self.unstable, self.requests = 0, 0, 0, 0
        self.late, self.late_of = 0, collections.Counter()
        self.met, self.suspects, self.coverage = collections.Counter(), [], Coverage(pair)
        self.end, self.slowed = time.monotonic() + options.seconds, 0

    def next_seed(self):
        if self.seeds:
            return self.seeds.popleft()
        if self.options.sequences or time.monotonic() >= self.end:
            return None
        self.last = next(self.fresh)
        return self.last

    async def worker(self, number):
        await asyncio.sleep(sequences.SLOT * 4 * number / self.options.at_once)
        while True:
            if number >= self.at_once:
                await asyncio.sleep(sequences.SLOT)
                if not self.seeds:  # the others take what is left
                    return
                continue
            seed = self.next_seed()
            if seed is None:
                return
            await self.one(sequences.make(seed))

    def slow_down(self):
        """All that are late by the same hiccup count once."""
        if time.monotonic() - self.slowed > 5:
            self.at_once, self.slowed = max(10, self.at_once * 0.8), time.monotonic()

    async def one(self, sequence):
        seed = sequence["seed"]
        players = await self.pair.play(sequence)
        if players is None:
            self.late_of[seed] += 1
            self.slow_down()
            if self.late_of[seed] < LATE_MOST:
                self.seeds.append(seed)
            else:
                self.late += 1
            return
        self.at_once = min(self.options.at_once, self.at_once + 0.5)
        self.requests += len(players[0].entries)
        self.coverage.add(players)
        difference, met, ended = compare.compare(*players, KNOWN)
        self.met.update(met)
        if difference is not None:
            self.suspects.append((difference.signature(), sequence, compare.story(*players)))
        elif ended:
            self.ended += 1
        else:
            self.same += 1

    async def tell_progress(self):
        while True:
            await asyncio.sleep(60)
            print(f"  {time.strftime('%H:%M:%S')} {self.same + self.ended} sequences compared, {len(self.suspects)} differ, {sum(self.late_of.values())} "
                  f"played again because of the time; {self.at_once:.0f} at once", flush=True)

    async def run(self):
        progress = asyncio.create_task(self.tell_progress())
        await asyncio.gather(*(self.worker(i) for i in range(self.options.at_once)))
        progress.cancel()
        core = f"1 to {self.options.core} and " if self.options.core else ""
        print(f"seeds {core}{self.options.seed} to {self.last}: {self.same} sequences alike to the end, {self.ended} up to a known difference, "
              f"{len(self.suspects)} that differ, {self.late} not compared because this machine was too slow, {self.requests} requests to each server")
        missing = self.coverage.report()
        for name, times in self.met.most_common():
            print(f"  known difference met {times} times: {name}")
        failures = await self.judge()
        if missing and self.same + self.ended >= ENOUGH:
            print(f"never asked for: {', '.join(missing)}")
            failures += 1
        if self.same < FEWEST:
            print(f"only {self.same} sequences could be compared to the end: nothing is proven")
            failures += 1
        return failures

    async def judge(self):
        """Replays what looked different; returns the number of sequences whose difference stays."""
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
        shrunk = await asyncio.gather(*(self.pair.shrink(f[1]) for f in found[:SHRUNK_MOST]))
        for (times, _, signature), sequence in zip(found, shrunk):
            await self.show(times, signature, sequence)
        for times, sequence, signature in found[SHRUNK_MOST:]:
            print(f"\nDIFFERENCE ({times} sequences, not shrunk), seed {sequence['seed']}: {signature}")
        if self.unstable:
            print(f"{self.unstable} sequences differed once and never when they were played again")
        differing = sum(f[0] for f in found)
        if differing:
            print(f"\n{differing} sequences with a difference that known.py does not list")
        return differing

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
