"""Groups that are written once and then left alone, so that what the server has of them is carried from file to file by cleaning. For crash.py.

Only asked and changed while the server is up, so what must be there is known exactly: an offset, or nothing after a deletion.
"""
import random

from ledger import TOPIC, Wrong

GROUPS, CHANGES, DELETED_PERCENT = 60, 3, 40


class Quiet:
    def __init__(self, connect, seed):
        self.connect, self.random = connect, random.Random(seed)
        self.offsets = {f"quiet-{n}": None for n in range(GROUPS)}
        self.last, self.compared = 0, 0

    def commit(self, connection, group):
        self.last += 1
        answer = connection.request("OffsetCommit", 7, group=group, topics=[{"name": TOPIC, "partitions": [{"index": 0, "offset": self.last}]}])
        self.expect(group, answer["topics"][0]["partitions"][0]["error"])
        self.offsets[group] = self.last

    def delete(self, connection, group):
        self.expect(group, connection.request("DeleteGroups", 1, groups=[group])["results"][0]["error"])
        self.offsets[group] = None

    @staticmethod
    def expect(group, error):
        if error != 0:
            raise Wrong(f"{group}: a commit or deletion is answered {error}")

    def begin(self):
        with self.connect() as connection:
            for group in self.offsets:
                self.commit(connection, group)

    def change(self):
        """A few of them; the others keep what they have."""
        with self.connect() as connection:
            for group in self.random.sample(sorted(self.offsets), CHANGES):
                if self.offsets[group] is not None and self.random.randrange(100) < DELETED_PERCENT:
                    self.delete(connection, group)
                else:
                    self.commit(connection, group)

    def check(self):
        with self.connect() as connection:
            for group, wanted in self.offsets.items():
                answer = connection.request("OffsetFetch", 5, group=group, topics=[{"name": TOPIC, "partitions": [0]}])
                found = answer["topics"][0]["partitions"][0]["offset"]
                if found != (-1 if wanted is None else wanted):
                    raise Wrong(f"{'LOST' if wanted is not None else 'INVENTED'}: {group} is {found}, {wanted} was written last and left alone")
                self.compared += 1
