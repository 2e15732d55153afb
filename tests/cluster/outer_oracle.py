# tests/cluster/outer_oracle.py - a run of nets with outer steps, computed by ordinary runs of one process each.
#
# In an outer step each worker makes H iterations by itself. That is a resume of an ordinary run: from the parameters that all have, with the
# worker's own solver state, at the worker's place in the data. What the workers have moved makes the outer step, here in float32 as the nodes
# make it, so all bits have to be the same.
import pathlib
import re

import cluster
import numpy as np
import view_oracle


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value, kind=None):
    """A field of a message: a number, or bytes, which are a text or a message unless `kind` is a number of fixed size."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if kind in (1, 5):
        return varint(number << 3 | kind) + value
    return varint(number << 3 | 2) + varint(len(value)) + value


def replaced(message, number, make):
    """A message with make(value) in place of each value of this field."""
    return b"".join(field(n, make(value) if n == number else value, kind) for n, kind, value in cluster._fields(message))


def values_of(message, number):
    return [value for n, _, value in cluster._fields(message) if n == number]


def with_blobs(path, values, to):
    """Writes a .caffemodel that has these values, {"conv1/0": array}, in place of those of the file at `path`."""
    def layer(of):
        name, place = values_of(of, 1)[0].decode(), iter(range(100))
        return replaced(of, 7, lambda blob: replaced(blob, 5, lambda _: values[f"{name}/{next(place)}"].tobytes()))
    to.write_bytes(replaced(pathlib.Path(path).read_bytes(), 100, layer))
    return to


def arrays(path):
    return {name: np.frombuffer(data, dtype=np.float32).copy() for name, data in cluster.weights(path).items()}


def state_of(path):
    """History blobs of a .solverstate, encoded, and the next sample."""
    data = pathlib.Path(path).read_bytes()
    return values_of(data, 3), values_of(values_of(data, 10001)[0], 1)[0]


def write_state(path, iteration, weights, histories, samples):
    parts = [(1, iteration), (2, str(weights).encode()), *((3, h) for h in histories), (10001, field(1, samples))]
    path.write_bytes(b"".join(field(*part) for part in parts))
    return path


def zeros_of(path):
    """Encoded history blobs like those of a state, with zeros."""
    return [replaced(blob, 5, lambda data: bytes(len(data))) for blob in state_of(path)[0]]


class Worker:
    """The worker's solver state; `histories` are encoded blobs."""

    def __init__(self, zeros):
        self.histories = zeros


class Outer:
    """Outer steps of one run from weights on, with `averages`: names of blobs of running statistics."""

    def __init__(self, nodes, solver, weights, every, rate, momentum, nesterov=True, averages=()):
        self.nodes, self.text, self.every = nodes, pathlib.Path(solver).read_text(), every
        self.text = re.sub(r"poseidon *\{[^}]*\}", "", self.text)
        self.text = re.sub(r"(snapshot|test_interval): *\d+", "", self.text)
        self.rate, self.momentum, self.nesterov = (np.float32(x) for x in (rate, momentum, nesterov))
        self.template, self.values = weights, arrays(weights)
        self.moved = {name: np.zeros_like(v) for name, v in self.values.items()}
        self.averages, self.runs, self.clock, self.samples = set(averages), 0, 0, 0

    def path(self, suffix):
        return self.nodes.folder / f"oracle{self.runs}{suffix}"

    def iterations(self, worker, samples):
        """This worker's values after one clock's iterations, and a new state; `samples`: where they begin in the data."""
        self.runs += 1
        begin = self.clock * self.every
        weights = with_blobs(self.template, self.values, self.path(".anchor.caffemodel"))
        state = write_state(self.path(".anchor.solverstate"), begin, weights, worker.histories, samples)
        text = view_oracle.with_field(self.text, "max_iter", begin + self.every)
        solver = self.path(".prototxt")
        solver.write_text(view_oracle.with_field(text, "snapshot_prefix", f'"{self.path("")}"'))
        node = self.nodes.node("--solver", solver, "--devices", "cpu:1", "--snapshot", state)
        assert node.wait() == 0, node
        end = self.path(f"_iter_{begin + self.every}")
        worker.histories, samples = state_of(f"{end}.solverstate")
        return arrays(f"{end}.caffemodel"), samples

    def step(self, workers):
        """One outer step of these workers, in their order."""
        own = []
        for worker in workers:
            values, self.samples = self.iterations(worker, self.samples)
            own.append(values)
        share = np.float32(1) / np.float32(len(workers))
        for name, anchor in self.values.items():
            average = name in self.averages
            sent = [(o[name] - anchor) * share if average else anchor - o[name] for o in own]
            total = sent[0]
            for more in sent[1:]:
                total = total + more
            self.values[name] = anchor + total if average else anchor - self.update(name, total * share)
        self.clock += 1

    def update(self, name, gradient):
        before = self.moved[name]
        self.moved[name] = after = self.rate * gradient + self.momentum * before
        if not (self.nesterov and self.momentum > 0):
            return after
        return (np.float32(1) + self.momentum) * after - self.momentum * before

    def check(self, snapshot):
        """Fails with the first value of a snapshot that differs."""
        expected = with_blobs(self.template, self.values, self.path(".expected.caffemodel"))
        cluster.assert_same_weights(expected, snapshot)
