"""A run: many random sequences at the same time, what came of them, and what they asked for."""
import asyncio
import collections
import itertools
import os
import time

import compare
import sequences
from known import KNOWN
from pair import REPLAYS

SHRUNK_MOST = 6
FEWEST = 10  # a run that compares fewer has failed
ENOUGH = 2000  # so many sequences must have asked for every version
RACES = 500  # at most one sequence in so many may differ in some of its plays only, and FEW_RACES in a short run
FEW_RACES = 2
JUDGED_MOST = 100  # of more suspects than that the others count as differences
LATE_MOST = 15  # times that a sequence is played in vain before it counts as not compared


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
        self.same, self.ended, self.requests = 0, 0, 0
        self.late, self.late_of, self.recent = 0, collections.Counter(), collections.deque(maxlen=100)
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
        await asyncio.sleep(sequences.SLOT * 8 * number / self.options.at_once)
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
        """When a quarter of the latest was late; all that are late by the same hiccup count once."""
        if sum(self.recent) * 4 > len(self.recent) and time.monotonic() - self.slowed > 5:
            self.at_once, self.slowed = max(10, self.options.at_once / 4, self.at_once * 0.8), time.monotonic()

    async def one(self, sequence):
        seed = sequence["seed"]
        players = await self.pair.play(sequence)
        self.recent.append(players is None)
        if players is None:
            self.late_of[seed] += 1
            self.slow_down()
            if self.late_of[seed] < LATE_MOST:
                self.seeds.append(seed)
            else:
                self.late += 1
            return
        self.at_once = min(self.options.at_once, self.at_once + 1)
        self.requests += len(players[0].entries)
        self.coverage.add(players)
        difference, met, ended = compare.compare(*players, KNOWN)
        self.met.update(met)
        if difference is not None:
            self.suspects.append((difference.signature(), sequence, players))
            self.tell_suspect(seed, difference.signature(), compare.story(*players))
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
        """Replays what looked different; returns the number of failures."""
        if not self.suspects:
            return 0
        print(f"{len(self.suspects)} sequences differ; each is played again, {REPLAYS} times", flush=True)
        found, counts = {}, collections.Counter()
        for at in range(0, min(len(self.suspects), JUDGED_MOST), 5):
            part = self.suspects[at:at + 5]
            for (signature, sequence, _), word in zip(part, await asyncio.gather(*(self.pair.judged(s[1], s[2]) for s in part))):
                counts[word] += 1
                if word == "differs":
                    found.setdefault(signature, []).append(sequence)
                print(f"  {word}: seed {sequence['seed']}: {signature}", flush=True)
        for signature, sequence, _ in self.suspects[JUDGED_MOST:]:
            found.setdefault(signature, []).append(sequence)
        await self.show_all(sorted(found.items(), key=lambda f: -len(f[1])))
        differing = sum(map(len, found.values()))
        if differing:
            print(f"\n{differing} sequences with a difference that known.py does not list")
        return differing + self.races(counts["raced"], counts["wavers"])

    def races(self, raced, wavers):
        """Tells how many differed in some plays only; 1 when that is too many for the moments of timers to explain, else 0."""
        compared = self.same + self.ended + len(self.suspects)
        most = max(FEW_RACES, compared // RACES)
        print(f"of {compared} sequences {raced} raced (Kafka does not answer each time the same, or both answered in one moment at the edge of a slot), "
              f"and in {wavers} Muster alone answers in two ways; at most {most} may")
        return 1 if raced + wavers > most else 0

    async def show_all(self, found):
        """[(signature, sequences)]: the most frequent shrunk, with their transcripts."""
        sequences_of = [min(cases, key=lambda s: len(s["steps"])) for _, cases in found]
        shrunk = await asyncio.gather(*(self.pair.shrink(s) for s in sequences_of[:SHRUNK_MOST]))
        for (signature, cases), sequence in zip(found, shrunk):
            await self.show(len(cases), signature, sequence)
        for (signature, cases), sequence in list(zip(found, sequences_of))[SHRUNK_MOST:]:
            print(f"\nDIFFERENCE ({len(cases)} sequences, not shrunk), seed {sequence['seed']}: {signature}")

    def tell_suspect(self, seed, signature, lines):
        print(f"  seed {seed}: {signature}", flush=True)
        if self.options.keep:
            with open(os.path.join(self.options.keep, f"{seed}.txt"), "w") as out:
                out.writelines(f"{line}\n" for line in [signature, *lines])

    async def show(self, times, signature, sequence):
        print(f"\nDIFFERENCE ({times} sequences), seed {sequence['seed']}: {signature}")
        players = await self.pair.play_patiently(sequence)
        if players is not None:
            print(f"  steps {sequence['steps']}")
            print("\n".join(compare.story(*players)), flush=True)
