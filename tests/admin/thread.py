"""Stops one thread of the server while the others run, as a core that is taken away would: by ptrace, from outside, so that the program has no part in it."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))
from harness import server_pid  # noqa: E402

SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def thread_named(name):
    pid = server_pid()
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, thread)) as comm:
            if comm.read().strip() == name:
                return int(thread)
    raise AssertionError("the server has no thread %s" % name)


def worker_thread(worker):
    return server_pid() if worker == 0 else thread_named("rte-worker-%d" % worker)


class Stopped:
    """with Stopped(thread): it does not run meanwhile. Begin and end on the same thread of ours."""

    def __init__(self, thread):
        self.thread = thread

    def __enter__(self):
        ptrace(SEIZE, self.thread)
        ptrace(INTERRUPT, self.thread)
        os.waitpid(self.thread, WALL)
        return self

    def __exit__(self, kind, value, trace):
        ptrace(DETACH, self.thread)


def may_stop():
    """Whether this machine lets us do it."""
    try:
        with Stopped(thread_named("muster-house")):
            return True
    except OSError:
        return False
