# tests/cluster/slow_disk.py - a disk that does not answer while a test wants it so.
import contextlib
import fcntl
import os
import pathlib
import signal
import time


class SlowDisk:
    """While it is stopped nobody else's open() of these files returns: this process holds a lease on them, which the kernel makes
    others wait for (fcntl(2), F_SETLEASE), up to /proc/sys/fs/lease-break-time seconds."""

    def __init__(self, files):
        self.files = [pathlib.Path(f) for f in files]
        self.held = []

    def stop(self, seconds=20):
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody opens one: would end this process
        deadline = time.monotonic() + seconds
        for path in self.files:
            descriptor = os.open(path, os.O_RDONLY)
            self.held.append(descriptor)
            while True:
                try:
                    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                    break
                except BlockingIOError:  # is being read just now
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.001)

    def go_on(self):
        for descriptor in self.held:
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os.close(descriptor)
        self.held.clear()
