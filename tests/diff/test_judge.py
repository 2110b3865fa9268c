"""What is made of a sequence that differed, by how it went when it was played again: without servers, with one answer for each play."""
import asyncio
import unittest

import compare
from pair import REPLAYS, Pair
from play import Entry


class Side:
    topic_ids, address = {}, ("nowhere", 0)


class Played:
    """A Player that has sent one Heartbeat."""

    def __init__(self, error):
        self.group, self.side, self.sequence = "g", Side, {"seed": 1, "actors": [], "steps": [("heartbeat", 0, 0)]}
        entry = Entry(0, 0, "Heartbeat", 3, {}, 0)
        entry.answer, entry.answered = {"error": error}, 0
        self.entries = [entry]


def judged(*errors):
    """Of plays in which Kafka and Muster answered so; None is one that came to nothing."""
    plays = [e and (Played(e[0]), Played(e[1])) for e in errors]
    pair, again = Pair(None, None), iter(plays[1:])

    async def play_patiently(_):
        return next(again)

    pair.play_patiently = play_patiently
    assert len(plays) == 1 + REPLAYS and compare.compare(*plays[0], [])[0] is not None
    return asyncio.run(pair.judged({}, plays[0]))


def parted(kafka, muster, *steps):
    """The difference of answers that came at these times, in these steps."""
    entries = [Entry(0, 0, "JoinGroup", 3, {}, 0) for _ in steps]
    for phase, (entry, moment) in enumerate(zip(entries, (kafka, muster))):
        entry.answer, entry.answered, entry.moment = {"error": 0}, phase, moment
    difference = compare.Difference(0, entries[0], "phase", *(e.answer for e in entries))
    difference.kafka_entry, difference.muster_entry, difference.steps = *entries, list(steps)
    return difference


class Judge(unittest.TestCase):
    def test_a_difference_that_stays(self):
        self.assertEqual("differs", judged(*[(0, 27)] * 9))

    def test_muster_with_two_answers_of_which_kafka_gives_none(self):
        self.assertEqual("differs", judged(*[(0, 27)] * 5, *[(0, 25)] * 4))

    def test_kafka_with_two_answers_of_which_muster_gives_none(self):
        self.assertEqual("differs", judged(*[(0, 27)] * 5, *[(25, 27)] * 4))

    def test_nothing_could_be_played_again(self):
        self.assertEqual("differs", judged((0, 27), *[None] * 8))

    def test_kafka_that_also_gives_the_answer_of_muster(self):
        self.assertEqual("raced", judged((0, 27), (27, 27), *[(0, 27)] * 7))

    def test_muster_that_also_gives_the_answer_of_kafka(self):
        self.assertEqual("wavers", judged((0, 27), *[(0, 0)] * 8))

    def test_answers_of_one_moment_on_two_sides_of_an_edge(self):
        self.assertTrue(parted(4.99, 5.01, "tick", "auto").at_an_edge())

    def test_answers_apart_in_time(self):
        self.assertFalse(parted(4.99, 5.2, "tick", "auto").at_an_edge())

    def test_answers_to_two_requests(self):
        self.assertFalse(parted(4.99, 5.01, "auto", "auto").at_an_edge())


if __name__ == "__main__":
    unittest.main()
