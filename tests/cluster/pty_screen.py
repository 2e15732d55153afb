# tests/cluster/pty_screen.py - a program on a terminal of its own, and what a person sees there.
"""For tests of what poseidon's programs draw.

    with Terminal(columns=80) as t:
        t.start(BIN / "poseidon-node", "--solver", solver)
        t.wait_for(lambda s: any("iter" in line for line in s.lines), "the live lines")
        print(t.screen.lines)

`Screen` understands the few sequences that the programs may send, and remembers any other one as a fault. It keeps every
drawing, so that `wait_for` finds what was on the screen for a moment however late it looks. Rules as in cluster.py:
deadlines, no sleeps as synchronisation, nothing is left behind.
"""
import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import typing

import cluster


class Drawing(typing.NamedTuple):
    """What a program had drawn when it had written "\\033[J", the end of each drawing."""
    lines: list
    columns: int


class Screen:
    """Rows of text, those that have scrolled away included, and the cursor."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [""]        # one text per row from the very first on
        self.continued = [False]  # row i continues row i - 1, which was full
        self.row = self.column = 0
        self.wrap_pending = False
        self.top = 0             # the first row that is still on the screen
        self.sgr = set()         # parameters of SGR sequences
        self.faults = []         # what is no text and none of the sequences below
        self.drawings = []       # all of them, in order
        self._rest = ""

    @property
    def lines(self):
        """All rows from the first on, without the empty ones at the end."""
        rows = [row.rstrip() for row in self.cells]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def feed(self, text):
        text = self._rest + text
        self._rest = ""
        while text:
            if text[0] == "\033":
                found = re.match(r"\033\[([\d;?]*)([A-Za-z])", text)
                if not found:
                    if len(text) < 16:
                        self._rest = text
                        return
                    self.faults.append(text[:16])
                    text = text[1:]
                    continue
                self._obey(found[2], found[1])
                text = text[found.end():]
            else:
                self._put(text[0])
                text = text[1:]

    def _obey(self, letter, parameters):
        if letter == "A":
            self.row = max(self.top, self.row - int(parameters or 1))
            self.wrap_pending = False
        elif letter == "K" and parameters in ("", "0"):
            self.cells[self.row] = self.cells[self.row][:self.column]
        elif letter == "J" and parameters in ("", "0"):
            self.cells[self.row] = self.cells[self.row][:self.column]
            del self.cells[self.row + 1:], self.continued[self.row + 1:]
            self.drawings.append(Drawing(self.lines, self.columns))
        elif letter == "m":
            self.sgr.add(parameters)
        else:
            self.faults.append(f"ESC[{parameters}{letter}")

    def _down(self, continued):
        self.row += 1
        if self.row == len(self.cells):
            self.cells.append("")
            self.continued.append(continued)
        self.top = max(self.top, self.row - self.rows + 1)

    def _put(self, c):
        if c == "\r":
            self.column, self.wrap_pending = 0, False
        elif c == "\n":
            self._down(False)
            self.wrap_pending = False
        elif ord(c) < 32 or ord(c) == 127:
            self.faults.append(repr(c))
        else:
            if self.wrap_pending:
                self._down(True)
                self.column, self.wrap_pending = 0, False
            row = self.cells[self.row].ljust(self.column)
            self.cells[self.row] = row[:self.column] + c + row[self.column + 1:]
            self.column += 1
            if self.column == self.columns:
                self.column, self.wrap_pending = self.columns - 1, True

    def resize(self, columns):
        """As most terminals of today do it: lines are broken again."""
        lines, place = [], None
        for i, (row, continued) in enumerate(zip(self.cells, self.continued)):
            if continued:
                lines[-1] += row
            else:
                lines.append(row)
            if i == self.row:
                place = (len(lines) - 1, len(lines[-1]) - len(row) + self.column)
        self.columns = columns
        self.cells, self.continued = [], []
        for i, line in enumerate(lines):
            parts = [line[at:at + columns] for at in range(0, len(line), columns)] or [""]
            if i == place[0]:
                self.row, self.column = len(self.cells) + min(place[1] // columns, len(parts) - 1), place[1] % columns
            self.cells += parts
            self.continued += [False] + [True] * (len(parts) - 1)
        self.top = max(0, len(self.cells) - self.rows)
        self.wrap_pending = False


class Terminal:
    """A terminal with one program in its foreground."""

    def __init__(self, columns=80, rows=24, env=None):
        self.master, self.slave = pty.openpty()
        self.screen = Screen(columns, rows)
        self.frames = []   # what is on the screen after each piece that came
        self.raw = ""
        self._looked_at = 0  # drawings
        self.env = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        for name in ("NO_COLOR", "CLICOLOR"):
            if name not in (env or {}):
                self.env.pop(name, None)
        self._set_size(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        self._changed = threading.Condition()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
        self._close_slave()
        if self._reader.is_alive():
            self._reader.join(10)
        os.close(self.master)

    def _close_slave(self):
        if self.slave is not None:
            os.close(self.slave)
            self.slave = None

    def start(self, *command, stdout=None, cwd=cluster.ROOT):
        """`stdout`: a file in the terminal's place."""
        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            os.tcsetpgrp(0, os.getpid())
            cluster.die_with_parent()
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.slave, stdout=stdout or self.slave,
                                        stderr=self.slave, cwd=cwd, env=self.env, preexec_fn=lead)
        self._reader.start()
        return self

    def _read(self):
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 1 << 16):
                with self._changed:
                    self._take(self._decoder.decode(data))

    def _take(self, text):
        self.raw += text
        self.screen.feed(text)
        self.frames.append([row.rstrip() for row in self.screen.cells[-self.screen.rows:]])
        self._changed.notify_all()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def others_write(self, text):
        """As another program, a shell, writes to the same terminal."""
        with self._changed:
            self._take(text)

    def _set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns):
        """Right after a drawing, with the next one a fifth of a second away. False where something for the old size was on
        its way all the same: a terminal shows that broken, whatever the program does."""
        with self._changed:
            drawn = len(self.screen.drawings)
            self._changed.wait_for(lambda: len(self.screen.drawings) > drawn, cluster.DEADLINE_S)
            self.screen.resize(columns)
            self._set_size(columns, self.screen.rows)
            return self.raw.endswith("\033[J") and not select.select([self.master], [], [], 0)[0]

    def wait_for(self, condition, what, seconds=cluster.PATIENCE_S):
        """The lines of the first drawing since the last call, or else of the screen as it is, of which `condition` holds."""
        cluster.pause()
        deadline = time.monotonic() + seconds * cluster.SLACK
        while True:
            with self._changed:
                while self._looked_at < len(self.screen.drawings):
                    drawing = self.screen.drawings[self._looked_at]
                    self._looked_at += 1
                    if condition(drawing):
                        return drawing.lines
                if condition(self.screen):
                    return self.screen.lines
                left = deadline - time.monotonic()
                if left <= 0 or not self._reader.is_alive():
                    raise AssertionError(f"never seen: {what}; the screen is\n" + "\n".join("  | " + line for line in self.screen.lines[-30:]))
                self._changed.wait(min(left, 0.5))
            if self.process.poll() is not None:
                self._read_to_the_end()

    def wait(self, seconds=cluster.PATIENCE_S):
        """The exit code, after all that was written has been read."""
        code = self.process.wait(seconds * cluster.SLACK)
        self._read_to_the_end()
        return code

    def _read_to_the_end(self):
        self._close_slave()
        self._reader.join(cluster.DEADLINE_S)
