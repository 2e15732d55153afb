# tests/cluster/shared_state_test.py - what worker 0's program has is on all workers when the run begins: shared state and first values. What
# is equal already does not travel; versions that worker 0 gives arrive with its bits.
import re
import unittest

import cluster
import programs

HEAD = """
import array, ctypes, os, struct, sys, threading, time
from poseidon.library import GIVEN, MEAN, PoseidonError, Run, options_from
first = "POSEIDON_JOIN" not in os.environ

def pattern(size, seed):
    return bytes((i * 7 + (i >> 8) + seed) % 251 for i in range(min(size, 65537))) * (size // 65537 + 1)

def memory(content):
    return (ctypes.c_char * max(1, len(content))).from_buffer(bytearray(content) or bytearray(1))

class Worker:
    def __init__(self, parameters, shared, kinds=None, sizes=None):
        self.run, self.kept = Run(options_from({})), [array.array("f", values) if values else None for _, values in parameters]
        self.shared = [(memory(content), len(content)) for _, _, content in shared]
        sizes = sizes or [len(values) for _, values in parameters]
        self.run.declare([(name, (size,), kept.buffer_info()[0] if kept else None)
                          for (name, _), size, kept in zip(parameters, sizes, self.kept)], kinds)
        if shared:
            self.run.share([(name, kind, ctypes.addressof(at), size) for (name, kind, _), (at, size) in zip(shared, self.shared)])
    def bytes(self):
        return [at.raw[:size] for at, size in self.shared]
    def values(self, parameter, version, count):
        return list(self.run.memory(self.run.values(parameter, version), count))
"""

# Sizes around a piece of 2 MiB; the last two entries are equal everywhere.
SIZES = HEAD + """
sizes = [0, 1, 7, 1 << 21, (1 << 21) + 1, 5000001, 3, 1 << 20]
wanted = [pattern(size, seed)[:size] for seed, size in enumerate(sizes)]
other = [content if i >= 6 else bytes(len(content)) for i, content in enumerate(wanted)]
w = Worker([("p", [1, 2, 3])], [(f"b{i}", f"bytes [{size}]", content) for i, (size, content) in enumerate(zip(sizes, wanted if first else other))])
w.run.begin()
assert w.bytes() == wanted, [a == b for a, b in zip(w.bytes(), wanted)]
w.run.leave()
print("equal", flush=True)
"""

MANY = HEAD + """
wanted = [struct.pack("<q", i * i) for i in range(10000)]
w = Worker([("p", [1, 2, 3])], [(f"block{i}.num_batches_tracked", "buffer torch.int64 []", content if first or i % 3 == 0 else bytes(8))
                                for i, content in enumerate(wanted)])
w.run.begin()
assert w.bytes() == wanted
w.run.leave()
print("equal", flush=True)
"""

# How many bytes this worker's links have received when the run begins, as the kernel counts them. Words: whether the first values of 8 MB
# are "equal", "other" ones or not given ("null"), and whether shared state of 8 MB is equal.
BYTES = HEAD + """
import socket
def received():
    total = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(fd))) as link:
                total += struct.unpack_from("<Q", link.getsockopt(socket.IPPROTO_TCP, 11, 256), 128)[0]  # tcpi_bytes_received
        except OSError:
            pass  # no socket, or not TCP's
    return total

values, state, size = sys.argv[1], sys.argv[2], 2000000
mine = "equal" if first else values
w = Worker([("large", [0.5] * size if mine == "equal" else [0.] * size if mine == "other" else None), ("small", [1., 2., 3.])],
           [("frozen", "parameter", pattern(4 * size, 0 if first or state == "equal" else 1)[:4 * size])], sizes=[size, 3])
w.run.begin()
assert w.values(0, 0, 3) == [0.5] * 3 and w.values(0, 0, size)[-1] == 0.5 and w.values(1, 0, 3) == [1., 2., 3.]
assert w.bytes()[0] == pattern(4 * size, 0)[:4 * size]
print("received", received(), flush=True)
w.run.leave()
print("equal", flush=True)
"""

GIVEN = HEAD + """
words = [0x7fa12345, 0xffc00001, 0x80000000, 1, 0x807fffff, 7, 0x7f800000]  # signalling and quiet NaNs with payloads, -0.0, denormals, an integer
bits = struct.pack("<7I", *words)
optimizer = int(sys.argv[1])
w = Worker([("mean", [1., 2., 3.]), ("given", [0.] * 7), ("large", [0.] * 700001)], [], [MEAN, GIVEN, GIVEN])
if optimizer:
    w.run.optimize(optimizer, [0, 0, 0])
w.run.begin()
if optimizer:
    from poseidon.library import Hyperparameters
    w.run.step(0, Hyperparameters(rate=0.5))
rank, kept = w.run.worker, []
for clock in range(5):
    mean, large = array.array("f", [1.] * 3), array.array("I", [clock * 1000003 + i for i in range(700001)])
    given = memory(bits)
    kept.append((mean, large, given))
    w.run.push(0, clock, mean.buffer_info()[0], 12)
    if rank == 0 and clock != 3:
        w.run.push(1, clock, ctypes.addressof(given), 28)
        w.run.push(2, clock, large.buffer_info()[0], 4 * 700001)
    else:
        if rank != 0:
            try:
                w.run.push(1, clock, ctypes.addressof(given), 28)
                print("not refused")
            except PoseidonError as e:
                print("refused:", e)
        w.run.push_nothing(1, clock)
        w.run.push_nothing(2, clock)
    assert w.run.wait(0, clock + 1)
    assert w.run.wait(1, clock + 1) == w.run.wait(2, clock + 1) == (clock != 3)
    if clock != 3:
        assert ctypes.string_at(w.run.values(1, clock + 1), 28) == bits
        assert ctypes.string_at(w.run.values(2, clock + 1), 4 * 700001) == large.tobytes()
w.run.leave()
print("equal", flush=True)
"""

DIFFER = HEAD + """
mine = eval(sys.argv[1 if first else 2])
w = Worker([("p", [1, 2, 3])], mine.get("shared", []), [mine.get("kind", MEAN)])
try:
    w.run.begin()
    print("not refused")
except PoseidonError as e:
    print("refused:", e, flush=True)
"""

# Worker 0 gives up as soon as the other ones have the first bytes of many.
LEAVES = HEAD + """
from pathlib import Path
heard = [Path(sys.argv[1]) / f"heard{i}" for i in (1, 2)]
w = Worker([("p", [1, 2, 3])], [("frozen", "parameter", (b"x" if first else b"y") * (64 << 20))])
if first:
    while w.run._library.begin(w.run._run, 0.05) == 1 and not all(h.exists() for h in heard):
        pass
    w.run.give_up("its user has changed his mind")
    try:
        w.run.leave()
    except PoseidonError as e:
        print("left:", e, flush=True)
else:
    def watch():
        while w.shared[0][0][0] != b"x":
            time.sleep(0.01)
        heard[int(os.environ["PLACE"]) - 1].touch()
    threading.Thread(target=watch, daemon=True).start()
    try:
        w.run.begin()
        print("not refused")
    except PoseidonError as e:
        print("refused:", e, flush=True)
"""


class SharedState(unittest.TestCase):
    def equal(self, script, number, *words):
        with programs.Programs() as c:
            workers = c.workers(script, number, *words, env={"POSEIDON_ROUTES": "ps"})  # else the links are timed, with megabytes
            for w in workers:
                self.assertEqual(w.wait(), 0, w)
                self.assertIn("equal", w.output, w)
            return workers

    def test_all_sizes(self):
        for number in (1, 2, 3):
            with self.subTest(number):
                self.equal(SIZES, number)

    def test_many_small_entries(self):
        self.equal(MANY, 2)

    def test_given_versions_have_the_bits_of_worker_0(self):
        for number, optimizer in ((1, 0), (2, 0), (3, 0), (2, 1)):
            with self.subTest(f"{number} workers, optimizer {optimizer}"):
                workers = self.equal(GIVEN, number, optimizer)
                for w in workers[1:]:
                    self.assertIn("whose versions worker 0 gives: call poseidon_push_nothing", w.output, w)
                    self.assertNotIn("not refused", w.output, w)

    def test_what_is_equal_costs_no_bytes(self):
        for values, state, least in (("equal", "equal", 0), ("other", "equal", 8000000), ("null", "equal", 8000000),
                                     ("equal", "other", 8000000), ("other", "other", 16000000)):
            with self.subTest(f"values {values}, state {state}"):
                for w in self.equal(BYTES, 3, values, state)[1:]:
                    received = int(re.search(r"received (\d+)", w.output).group(1))
                    self.assertGreaterEqual(received, least, w)
                    self.assertLess(received, least + 100000, w)

    def test_what_differs_is_named(self):
        one = '("mean", "buffer torch.float32 [2]", bytes(8))'
        for name, (there, here, text) in {
                "name": (f'{{"shared": [{one}]}}', '{"shared": [("var", "buffer torch.float32 [2]", bytes(8))]}',
                         r'shared state 0 is "mean" \(buffer torch.float32 \[2\], 8 bytes\) on worker 0 and "var" \(buffer '),
                "kind": (f'{{"shared": [{one}]}}', '{"shared": [("mean", "buffer torch.int64 [1]", bytes(8))]}',
                         r'on worker 0 and "mean" \(buffer torch.int64 \[1\], 8 bytes\) here. All workers need the same program and model'),
                "size": (f'{{"shared": [{one}]}}', '{"shared": [("mean", "buffer torch.float32 [2]", bytes(1))]}',
                         r'8 bytes\) on worker 0 and "mean" \(buffer torch.float32 \[2\], 1 byte\) here'),
                "number": (f'{{"shared": [{one}]}}', "{}",
                           r'worker 0 shares 1 pieces of state and this worker 0; the first that only one has is "mean" \(buffer'),
                "kind of a parameter": ('{"kind": GIVEN}', "{}",
                                        r'parameter 0 is "p" 3 \(given by worker 0\) on worker 0 and "p" 3 here')}.items():
            with self.subTest(name), programs.Programs() as c:
                workers = c.workers(DIFFER, 2, there, here)
                for w in workers:
                    self.assertEqual(w.wait(), 0, w)
                    self.assertNotIn("not refused", w.output, w)
                self.assertRegex(workers[1].output, "refused: .*" + text, workers[1])

    def test_worker_0_leaves_in_the_middle(self):
        with programs.Programs() as c:
            workers = c.workers(LEAVES, 3, c.folder, env={"POSEIDON_LINK_MBIT": 16}, each=lambda place: {"PLACE": place})
            for w in workers:
                self.assertEqual(w.wait(), 0, w)
            for w in workers[1:]:
                self.assertRegex(w.output, "refused: .*its user has changed his mind", w)


if __name__ == "__main__":
    cluster.main()
