# tests/cluster/endless.py - runs that last until their test has seen what it watches, and how they leave the processors to other tests.
import contextlib
import ctypes
import os
import pathlib
import signal

ENDLESS = 10**9  # iterations: no machine trains them while a test runs
_BEHIND = 5  # niceness: a third of the time of another process


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def go_behind():
    """Of a process of an ENDLESS run: it trains on while its test waits for something else, and other tests need the processors."""
    die_with_parent()
    os.nice(_BEHIND)
    with contextlib.suppress(OSError):  # of the process among those of its session, and of the session among others
        group = os.open("/proc/self/autogroup", os.O_WRONLY)
        os.write(group, b"%d" % _BEHIND)
        os.close(group)


def is_endless(command):
    """Whether one of the files that a program gets is the solver of an ENDLESS run."""
    for word in map(str, command):
        with contextlib.suppress(OSError, ValueError):
            if word.endswith((".solver", ".prototxt")) and f"max_iter: {ENDLESS}" in pathlib.Path(word).read_text():
                return True
    return False
