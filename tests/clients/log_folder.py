"""The folder of the server's log, looked at from outside while files come and go. For crash.py and soak.py."""
import os
import time

LOOK_SECONDS = 0.002


class LogFolder:
    def __init__(self):
        self.path = os.environ["MUSTER_LOG_DIR"]
        self.cleaned, self.segments, self.there = set(), set(), set()  # every name ever seen; the names of the last look

    def look(self):
        try:
            self.there = set(os.listdir(self.path))
        except FileNotFoundError:
            self.there = set()
        self.cleaned |= {name for name in self.there if name.endswith(".cln")}
        self.segments |= {name for name in self.there if name.endswith(".seg")}

    def removed(self):
        """How many files that the last look did not find any more, cleaned ones and segments."""
        return len(self.cleaned - self.there), len(self.segments - self.there)

    def wait_for_cleaned(self, seconds):
        """Until a cleaned file appears that was never seen, or that long."""
        self.look()
        had, end = len(self.cleaned), time.monotonic() + seconds
        while len(self.cleaned) == had and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
            self.look()

    def size(self):
        """Bytes that the files take on the disk, unfinished ones too."""
        total = 0
        for name in os.listdir(self.path):
            try:
                total += os.stat(os.path.join(self.path, name)).st_blocks * 512
            except FileNotFoundError:
                pass
        return total
