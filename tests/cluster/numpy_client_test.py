# tests/cluster/numpy_client_test.py - a program without a framework, through ctypes: two workers equal one process, bit for bit.
import unittest

import cluster
import programs

SCRIPT = """
import numpy as np, sys
import poseidon.numpy

HALF = len(sys.argv) > 1  # the script's word: float16
CLOCKS, RATE = 15, np.float32(.05)
shapes = {"a.weight": (16, 5), "a.bias": (16,), "b.weight": (3, 16), "scale": (), "large": (700001,)}

def first_values(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(.3) if shape else np.array(1, np.float32)
            for name, shape in shapes.items()}

def batch(clock, worker):
    rng = np.random.default_rng(100 * clock + worker)
    return rng.standard_normal((8, 5), dtype=np.float32), rng.standard_normal((8, 3), dtype=np.float32)

def gradients(v, clock, worker):
    x, y = batch(clock, worker)
    h = np.tanh(x @ v["a.weight"].T + v["a.bias"])
    e = h @ v["b.weight"].T - y
    d = (e @ v["b.weight"]) * (1 - h * h)
    large = None if clock % 4 == 3 or clock % 4 == 2 and worker == 0 else np.full(700001, clock + worker + .1, np.float32)
    return {"b.weight": e.T @ h, "a.bias": d.sum(0), "a.weight": d.T @ x, "scale": np.array(e.sum(), np.float32), "large": large}

def rounded(g):
    return g.astype(np.float16).astype(np.float32) if HALF else g

def one_process(workers):
    v = first_values(1)
    for clock in range(CLOCKS):
        sums = {}
        for worker in range(workers):
            for name, g in gradients(v, clock, worker).items():
                if g is not None:
                    g = rounded(g)
                    sums[name] = sums[name] + g if name in sums else g
        for name, g in sums.items():
            v[name] = v[name] - RATE * rounded(g * np.float32(1 / workers))
    return v

v = first_values(1 if "POSEIDON_JOIN" not in __import__("os").environ else 2)
with poseidon.numpy.Worker(v, **({"wire": sys.argv[1]} if HALF else {})) as worker:
    v = {name: worker.first(name) for name in v}
    for clock in range(CLOCKS):
        for name, g in gradients(v, clock, worker.rank).items():
            worker.push(name, g)
        for name in v:
            mean = worker.mean(name)
            if mean is not None:
                v[name] = v[name] - RATE * mean
        worker.report(float(clock), 8)
    wanted = one_process(worker.size)
    try:
        worker.push("a.bias", np.ones(3, np.float32))
    except poseidon.PoseidonError as e:
        print("refused:", e)
print("equal" if all(np.array_equal(v[n], wanted[n]) for n in v) else "different", flush=True)
"""


class NumPy(unittest.TestCase):
    def test_workers_equal_one_process(self):
        for number in 1, 2, 3:
            with self.subTest(number), programs.Programs() as c:
                for worker in c.workers(SCRIPT, number):
                    self.assertEqual(worker.wait(), 0, worker)
                    self.assertTrue(worker.output.endswith("\nequal"), worker.output)
                    self.assertIn('refused: "a.bias" is float32 (3,), expected float32 (16,)', worker.output, worker)

    def test_they_do_where_gradients_are_rounded(self):
        with programs.Programs() as c:
            for worker in c.workers(SCRIPT, 3, "float16"):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertTrue(worker.output.endswith("\nequal"), worker.output)


if __name__ == "__main__":
    programs.need("numpy")
    cluster.main()
