# tests/cluster/torch_damaged_test.py - a block with a newcomer's state whose content is damaged, and whose checksum is right, is refused whole.
"""Runs under the Python that has PyTorch. Walks are seeded: a failure names its seed."""
import json
import random
import resource
import struct
import unittest
import warnings
import zlib

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

import numpy  # noqa: E402
import torch  # noqa: E402

from newcomer_world import Joined  # noqa: E402
from poseidon.library import PoseidonError  # noqa: E402
from poseidon.torch.agreed import Progress  # noqa: E402
from poseidon.torch.carried import Carried  # noqa: E402
from poseidon.torch.epochs import View  # noqa: E402
from poseidon.torch.newcomers import name_of_run  # noqa: E402
from poseidon.torch.sampler import Sampler  # noqa: E402
from sampler_world import Drawing, Run  # noqa: E402

HEAD = struct.Struct("<8sIIQQ")
MOST_MEMORY = 300 << 20  # by which a walk may grow, in bytes
TENSOR = ["t", "float32", [1], 0]
STRANGE = [None, True, False, -1, 0, 7, 1 << 62, 1 << 63, -(1 << 70), 0.5, 1e308, "", "x", "t", "i", "\ud800", [], {}, [[]], {"a": 1}, ["t"], ["i", "0x"], ["i", "-0x1"],
           ["c", 3], ["f", "00"], ["f", "000000000000f87f"], ["z", "00"], ["b", "0"], ["s", 3], ["dict", [[["list", []], ["c", None]]]], ["dict", [[["c", None]]]],
           ["set", [["list", []]]], ["list", [["c", None]] * 3], ["Size", [["s", "a"]]], ["defaultdict", [], "eval"], ["dtype", "torch.nn"], ["dtype", 3],
           ["device", "nowhere"], ["t", "float32", [1 << 40], 0], ["t", "float32", [1 << 62, 1 << 62], 0], ["t", "float32", [0, 1 << 62], 0],
           ["t", "float32", [0, 1 << 62, 1 << 62], 0], ["t", "float32", [-1, -4], 0], ["t", "float64", [1], 1], ["t", "quint8", [4], 0], ["t", "qint32", [1], 0],
           ["t", "quint4x2", [4], 0], ["t", "nn", [1], 0], ["t", "complex32", [1], 0], ["t", "bool", [1], 1 << 40], ["n", "<f8", [-1], False, ["uint8", [8], 0]],
           ["n", "<f8", [1 << 40], False, ["uint8", [8], 0]], ["n", "O", [1], False, ["uint8", [8], 0]], ["n", "(2,f8", [1], False, ["uint8", [8], 0]],
           ["n", "<f8", [], True, ["uint8", [0], 0]], ["m", -1, "step"], ["m", 0, "step"], ["m", 0, "__class__"], ["m", "0", "step"], ["w", 0, "state_dict"],
           ["w", 1 << 70, "step"]]


def nested(depth):
    node = ["list", []]
    for _ in range(depth):
        node = ["list", [node]]
    return node


class Holder:
    def __init__(self):
        self.state = {"a": [None, True, -3 ** 90, 1j, "ü", b"\0", (1, 2)], 2: {3, 1}, "n": numpy.arange(3.), "t": torch.arange(6.), "d": torch.float16}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = {"a": state["a"], **state}


class Script:
    def __init__(self, seed, samplers=()):
        torch.manual_seed(seed)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model(torch.randn(8, 3)).pow(2).mean().backward()
            self.optimizer.step()
            self.schedulers = [torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=20),
                               torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer)]
        self.progress = Progress(epoch=seed, best=0.5)
        objects = [*self.schedulers, self.progress, torch.optim.swa_utils.AveragedModel(self.model), Holder()]
        self.carried = Carried(self.model, self.optimizer, objects, True)
        self.samplers = list(samplers)

    def pack(self):
        return self.carried.pack(dict(self.model.named_buffers()), [{"run": "00" * 16}, *self.samplers])[0]


class Section:
    def __init__(self, raw):
        self.magic, self.version, _, text, tensors = HEAD.unpack(raw[:HEAD.size])
        self.tree = json.loads(raw[HEAD.size:HEAD.size + text])
        begin = -(-(HEAD.size + text) // 16) * 16
        self.tensors, self.size = raw[begin:begin + tensors], begin + tensors

    def bytes(self, text=None, lies=(0, 0)):
        text = json.dumps(self.tree).encode() if text is None else text
        padded = text + bytes(-(HEAD.size + len(text)) % 16)
        lengths = [(length + lie) % (1 << 64) for length, lie in zip((len(text), len(self.tensors)), lies)]
        body = struct.pack("<QQ", *lengths) + padded + self.tensors
        size = -(-(HEAD.size + lengths[0]) // 16) * 16 + lengths[1] - 16
        return struct.pack("<8sII", self.magic, self.version, zlib.crc32(body[:size])) + body


def sections(block):
    raw = block.numpy().tobytes()
    first = Section(raw)
    return [first, Section(raw[first.size:])]


def block_of(parts):
    return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)


def places(node, out):
    """All places of a tree: the list or dict that has it, and its index there."""
    for at in range(len(node)) if isinstance(node, list) else node if isinstance(node, dict) else ():
        out.append((node, at))
        places(node[at], out)
    return out


def copied(tree):
    return json.loads(json.dumps(tree))


def changed(at, tree):
    """One thing is another one."""
    there = places(tree, [])
    inside, place = at.choice(there)
    other, its = at.choice(there)
    now = inside[place]
    how = at.random()
    if how < 0.5:
        inside[place] = copied(at.choice(STRANGE))
    elif how < 0.65:
        inside[place] = copied(other[its])
    elif how < 0.75 and isinstance(inside, list):
        del inside[place]
    elif how < 0.85 and isinstance(inside, list):
        inside.insert(place, copied(other[its]))
    elif how < 0.9:
        inside[place] = nested(at.choice([10, 100, 150]))
    elif type(now) is int:
        inside[place] = now + at.choice([-16, -1, 1, 16, 1 << 40])
    elif isinstance(now, str) and now:
        inside[place] = now[:-1] if at.random() < 0.5 else now + at.choice("0z[")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class DamagedTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(Run.silence_all)
        self.block, self.before = Script(1).pack(), peak()

    def tried(self, script, was, block, what):
        """Whether it is refused; then nothing has changed."""
        try:
            script.carried.unpack(block, name_of_run)
        except PoseidonError as error:
            self.assertTrue(torch.equal(script.pack(), was), f"{what}: half loaded: {error}")
            return True
        except BaseException as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        return False

    def test_the_same_tree_is_the_same_state(self):
        script = Script(2)
        self.assertFalse(self.tried(script, None, block_of(part.bytes() for part in sections(self.block)), "unchanged"))
        self.assertTrue(torch.equal(script.pack(), self.block))

    def test_changed_trees(self):
        script = Script(2)
        was, refused = script.pack(), 0
        for seed in range(3000):
            at = random.Random(seed)
            parts = sections(self.block)
            part = parts[at.random() < 0.9]
            for _ in range(at.choice([1, 1, 2, 3])):
                changed(at, part.tree)
            if self.tried(script, was, block_of(part.bytes() for part in parts), f"seed {seed}"):
                refused += 1
            else:
                script = Script(2)  # a number or a text is another one
        self.assertGreater(refused, 2000)
        self.assertLess(peak() - self.before, MOST_MEMORY)

    def test_lying_heads(self):
        script = Script(2)
        was = script.pack()
        lies = [-1, 1, -16, 16, 1 << 20, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1 << 4]
        for place in 0, 1:
            for lie in [(lie, 0) for lie in lies] + [(0, lie) for lie in lies] + [(lie, -lie) for lie in lies]:
                parts = sections(self.block)
                block = block_of(part.bytes(lies=lie if number == place else (0, 0)) for number, part in enumerate(parts))
                self.assertTrue(self.tried(script, was, block, f"section {place}, {lie}"))
        self.assertLess(peak() - self.before, MOST_MEMORY)

    def test_texts_that_are_no_trees(self):
        script = Script(2)
        was = script.pack()
        for text in b"", b"3", b"{}", b"[" * 100000, b"[" * 100000 + b"]" * 100000, b"\xff\xfe", b"[1e999, 1]", b"[" + b"9" * 100000 + b"]":
            first, second = sections(self.block)
            for parts in (first.bytes(text), second.bytes()), (first.bytes(), second.bytes(text)):
                self.assertTrue(self.tried(script, was, block_of(parts), text[:10]))
        first, second = sections(self.block)
        deep = json.dumps(second.tree).replace("null", '["list",[' * 450 + "]]" * 450, 1)
        self.assertTrue(self.tried(script, was, block_of([first.bytes(), second.bytes(deep.encode())]), "nested"))

    def test_one_tensor_many_times_takes_no_memory(self):
        big = Holder()
        big.state["big"] = torch.zeros(1 << 20)
        model = torch.nn.Linear(1, 1)
        first, second = sections(Carried(model, None, [big], True).pack({}, [{"run": "00" * 16}])[0])
        node = next(inside[at] for inside, at in places(second.tree, []) if isinstance(inside[at], list) and inside[at][:3] == ["t", "float32", [1 << 20]])
        node[:] = ["list", [list(node) for _ in range(1000)]]  # 4 GiB
        with self.assertRaisesRegex(PoseidonError, "other tensors have all but"):
            Carried(model, None, [Holder()], True).unpack(block_of([first.bytes(), second.bytes()]))
        self.assertLess(peak() - self.before, MOST_MEMORY)

    def test_the_last_object_refuses_and_nothing_is_loaded(self):
        script = Script(2)
        was = script.pack()
        first, second = sections(self.block)
        states = second.tree[3]
        states[-1][1] = [pair for pair in states[-1][1] if pair[0] != ["s", "a"]]
        with self.assertRaisesRegex(PoseidonError, r"state\[4\] \(Holder\): load_state_dict\(\) refuses the other workers' state: KeyError: 'a'"):
            script.carried.unpack(block_of([first.bytes(), second.bytes()]))
        self.assertTrue(torch.equal(script.pack(), was))

    def test_groups_that_lack_a_setting(self):
        script = Script(2)
        first, second = sections(self.block)
        groups = next(value for name, value in second.tree[3][0][1] if name == ["s", "param_groups"])
        groups[1][0][1] = [pair for pair in groups[1][0][1] if pair[0] != ["s", "momentum"]]
        with self.assertRaisesRegex(PoseidonError, r"optimizer \(SGD\): a group of parameters of the other workers' lacks 'momentum'"):
            script.carried.unpack(block_of([first.bytes(), second.bytes()]))

    def test_a_run_without_a_name(self):
        for states in [], [{}], [{"run": 3}], [{"run": "0g"}], [{"run": "00"}]:
            with self.assertRaisesRegex(PoseidonError, "the run"):
                name_of_run(states)

    def test_a_samplers_state(self):
        """Refused, or trained."""
        others = Joined("a run", 0, 0, [View(0, (0, 1))])
        sampler = Sampler(40, run=others, batch_size=2, ahead=2)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 2))
        for _ in range(4):
            next(loop)
            others.clock += 1
        (state,) = others.samplers.states()
        without = {**state, "past": [{**state["now"], "views": []}]}
        with self.assertRaisesRegex(PoseidonError, r"ValueError: members \[\]"):
            Sampler(40, run=Joined("a run", 2, 4, [View(4, (0, 1, 2))], [without]), batch_size=2, ahead=2)
        refused = 0
        for seed in range(3000):
            at, bad = random.Random(seed), copied([state])
            changed(at, bad)
            run = Joined("a run", 2, 4, [View(4, (0, 1, 2))], bad)
            try:
                newcomer = Sampler(40, run=run, batch_size=2, ahead=2)
                for _ in newcomer.batches(Drawing(newcomer.batch_sampler, 2)):
                    run.clock += 1
                    if run.clock > 60:
                        break
            except PoseidonError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"seed {seed}: {bad}: {type(error).__name__}: {error}") from error
        self.assertGreater(refused, 1000)
        self.assertLess(peak() - self.before, MOST_MEMORY)


if __name__ == "__main__":
    cluster.main()
