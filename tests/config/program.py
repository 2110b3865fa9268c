"""Runs the program for the tests of this folder."""
import os
import subprocess

MUSTER = os.environ["MUSTER_BIN"]
TOP = os.environ["MUSTER_TOP"]


def muster(*arguments, **options):
    """Runs it to its end; stdout and stderr as text."""
    return subprocess.run([MUSTER, *arguments], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, **options)
