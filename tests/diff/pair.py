"""Sequences on both servers, again and again: what differs each time, and the shortest that still does."""
import asyncio
import os
import time

import compare
import sequences
from known import KNOWN
from play import Player

REPLAYS = 8  # times that a sequence which differed is played again
SHRINK_SECONDS = 120


def agree(kafka, muster, phase):
    """Known differences apart; one that ends the comparison must come behind `phase`, else it proves nothing about that."""
    for difference in compare.differences(kafka, muster, compare.names_of(kafka, muster)):
        entry = next((k for k in KNOWN if k.explains(difference)), None)
        if entry is None:
            return False
        if entry.ends:
            return difference.phase() > phase
    return True


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
        players[0].partner, players[1].partner = players[1], players[0]
        await asyncio.gather(*(p.play() for p in players))
        return players if max(p.late for p in players) <= 1 else None

    async def play_patiently(self, sequence, tries=5):
        for _ in range(tries):
            players = await self.play(sequence)
            if players is not None:
                return players
        return None

    async def judged(self, sequence, first):
        """Plays a sequence that differed (`first`: its two Players) again: "differs", "raced" or "wavers".

        All plays of Kafka are compared with all of Muster: a difference stays when no two agree where the first did not, however often one changes its mind.
        Where two do, Kafka that does not answer each time the same has raced by its own evidence; else it was Muster alone that answered in two ways.
        Nothing needs to be played again where both answered in the same moment, at the edge of a slot: that raced.
        """
        difference = compare.compare(*first, KNOWN)[0]
        if difference.at_an_edge():
            return "raced"
        phase = difference.phase()
        again = await asyncio.gather(*(self.play_patiently(sequence) for _ in range(REPLAYS)))
        kafkas, musters = zip(first, *(players for players in again if players is not None))
        if not any(agree(k, m, phase) for k in kafkas for m in musters):
            return "differs"
        steady = all(compare.compare(kafkas[0], k, KNOWN)[0] is None for k in kafkas[1:])
        return "wavers" if steady else "raced"

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
                if difference is None and entry.rare:
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
