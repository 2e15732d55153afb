# tests/cluster/faulty_wire.py - a wire between two nodes that can be cut, held, slowed and damaged while they train.
"""A proxy on loopback: the joiner dials it, it dials the first node, and the test says what happens to the bytes.

    with FaultyWire(address_of_first) as wire:
        second = c.node("--join", wire.address)
        ...
        wire.hold()          # carries nothing, both ways; the connections stay
        wire.hold(TO_FIRST)  # or one way
        wire.carry()         # again
        wire.pace(2e6)       # bytes/s each way from now on
        wire.flip()          # one bit of the next block
        wire.flap(2e5, 0.3)  # every 200 kB it carries nothing for 0.3 s
        wire.look = f        # f(block) sees every block that is carried
        wire.cut()           # resets all connections; new ones are refused
"""
import contextlib
import socket
import struct
import threading
import time

TO_FIRST, FROM_FIRST = 0, 1
BLOCK = 16384
BUFFER = 64 << 10     # bytes in the kernel at each end here: they have left their sender, which would not see that a wire is slow
SEGMENT = 1460        # bytes, as on Ethernet: loopback's segments do not fit into BUFFER, and a kernel waits long before it splits one
LATE_S = 1            # by so much a paced wire catches up, so that its rate is right where this process waits for a core
LEAST_FLIPPED = 4096  # a block as long as this holds a chunk's values, or a part of them


class FaultyWire:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._changed = threading.Condition()
        self._held = [False, False]
        self._flips = 0
        self._rate = None
        self._flap = None      # bytes from one pause to the next, seconds
        self.flaps = 0         # pauses that have ended
        self.look = None
        self._open = True
        self._sockets = []
        self.carried = [0, 0]  # bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._limit(self._listener)  # inherited by what it accepts
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def hold(self, *directions):
        with self._changed:
            for d in directions or (TO_FIRST, FROM_FIRST):
                self._held[d] = True

    def carry(self):
        with self._changed:
            self._held = [False, False]
            self._changed.notify_all()

    def pace(self, bytes_per_s):
        with self._changed:
            self._rate = bytes_per_s

    def flap(self, every_bytes, seconds):
        with self._changed:
            self._flap = (every_bytes, seconds)

    def flip(self):
        with self._changed:
            self._flips += 1

    def _pause(self, seconds):
        self.hold()
        time.sleep(seconds)  # the fault itself
        self.carry()
        with self._changed:
            self.flaps += 1

    def cut(self):
        with self._changed:
            self._open = False
            self._held = [False, False]
            self._changed.notify_all()
            ends = [self._listener, *self._sockets]
        for end in ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):  # wakes the thread that reads it, which closes it: a reset
                end.shutdown(socket.SHUT_RD)
            with contextlib.suppress(OSError):
                end.close()

    @staticmethod
    def _limit(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.socket()
                self._limit(far)
                far.connect(self._target)
            except OSError:
                return
            with self._changed:
                self._sockets += [near, far]
            for direction, source, sink in ((TO_FIRST, near, far), (FROM_FIRST, far, near)):
                threading.Thread(target=self._carry, args=(direction, source, sink), daemon=True).start()

    def _carry(self, direction, source, sink):
        free_at = 0.0  # the wire has carried everything by then, if it is paced
        with contextlib.suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: not self._held[direction])
                    rate = self._rate
                try:
                    block = source.recv(BLOCK, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    block = source.recv(BLOCK)
                    free_at = time.monotonic()  # a wire that had nothing to carry saves up nothing
                if not block:
                    break
                with self._changed:  # a block that arrived during the hold waits, too
                    self._changed.wait_for(lambda: not self._held[direction])
                    if self._flips and len(block) >= LEAST_FLIPPED:
                        self._flips -= 1
                        block = bytes([*block[:-1], block[-1] ^ 1])
                    self.carried[direction] += len(block)
                    pauses = self._flap and direction == TO_FIRST and sum(self.carried) > (self.flaps + 1) * self._flap[0]
                if self.look:
                    self.look(block)
                if pauses:
                    self._pause(self._flap[1])
                sink.sendall(block)
                now = time.monotonic()
                free_at = max(free_at, now - LATE_S) + len(block) / rate if rate else now  # a sleep that was too long shortens the next ones
                time.sleep(max(0, free_at - now))  # the wire's speed, not a wait for something
            with self._changed:
                alive = self._open
            if alive:
                sink.shutdown(socket.SHUT_WR)
