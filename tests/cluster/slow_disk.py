# tests/cluster/slow_disk.py - a disk that does not answer while a test stops it.
import contextlib
import fcntl
import os
import pathlib
import signal
import time


class SlowDisk:
    """While it is stopped, no other process's open() of these files returns: this process holds a lease on them, for which the
    kernel makes others wait (fcntl(2), F_SETLEASE), up to /proc/sys/fs/lease-break-time seconds."""

    def __init__(self, files):
        self.files = [pathlib.Path(f) for f in files]
        self.held = []

    def stop(self, seconds=20):
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent when another process opens one; it would end this process
        deadline = time.monotonic() + seconds
        for path in self.files:
            descriptor = os.open(path, os.O_RDONLY)
            self.held.append(descriptor)
            while True:
                try:
                    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                    break
                except BlockingIOError:  # a node reads it at this moment
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.001)

    def go_on(self):
        for descriptor in self.held:
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os.close(descriptor)
        self.held.clear()
