# tests/cluster/torch_launch_test.py - PyTorch scripts that tools/launch/local and tools/launch/ssh --script start as torchrun would.
import gzip
import random
import unittest

import cluster
import programs

LAUNCH = cluster.ROOT / "tools/launch"
# Nothing but PyTorch's own words; what is printed is the same on all workers, and with Poseidon's class the same as with PyTorch's.
SCRIPT = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
assert dist.is_torchelastic_launched()
assert (dist.get_rank(), dist.get_world_size()) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
torch.manual_seed(1)
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
for step in range(3):
    optimizer.zero_grad()
    model(torch.full((2, 4), float(1 + step + dist.get_rank()))).sum().backward()
    optimizer.step()
print("weight", model.module.weight.sum().item(), "of", dist.get_world_size())
dist.barrier()
"""
OURS = SCRIPT.replace("from torch.nn.parallel", "from poseidon.torch")
assert OURS != SCRIPT

# Whether two checkpoints have the same bits.
SAME = """
import sys
import torch

def flat(value, path=""):
    if isinstance(value, (dict, list, tuple)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, inner in entries for k, v in flat(inner, f"{path}/{key}").items()}
    return {path: value}

one, other = (flat(torch.load(file)) for file in sys.argv[1:])
assert one.keys() == other.keys(), one.keys() ^ other.keys()
assert any(isinstance(value, torch.Tensor) for value in one.values())
for path, value in one.items():
    same = torch.equal(value, other[path]) if isinstance(value, torch.Tensor) else value == other[path]
    assert same, (path, value, other[path])
"""


class TorchLaunch(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster(env={"PYTHONDONTWRITEBYTECODE": "1", "POSEIDON_LIBRARY": str(programs.LIBRARY)})
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def script(self, text):
        path = self.folder / "script.py"
        path.write_text(text)
        return path

    def local(self, script, *words, workers=2):
        run = self.cluster.start(LAUNCH / "local", workers, programs.python(), script, *words)
        self.assertEqual(run.wait(), 0, run)
        return run

    def weights(self, run):
        """What each worker has printed, without its name."""
        return [line.partition("weight ")[2] for line in run.lines if "weight " in line]

    def test_a_ddp_script_starts_as_it_is_and_with_one_import_changed(self):
        plain = self.weights(self.local(self.script(SCRIPT)))
        self.assertEqual(len(plain), 2)
        self.assertEqual(plain[0], plain[1])
        self.assertTrue(plain[0].endswith(" of 2"), plain)
        self.assertEqual(self.weights(self.local(self.script(OURS))), plain)

    def test_our_class_finds_a_free_port_with_torchruns_variables_alone(self):
        without = "import os\nfor name in 'LISTEN', 'NODES', 'JOIN':\n    os.environ.pop('POSEIDON_' + name)\n"
        self.assertEqual(len(self.weights(self.local(self.script(without + OURS)))), 2)

    def test_the_ddp_example(self):
        run = self.local(self.script((cluster.ROOT / "examples/torch_ddp.py").read_text()))
        self.assertRegex(run.output, r"0 \| loss 0\.\d+ \['module\.0\.bias'")

    def small_set(self):
        """Fashion-MNIST's files, with few images of noise."""
        numbers = random.Random(1)
        for name, images in ("train", 200), ("t10k", 20):
            for kind, header, size in ("images-idx3", 16, 784 * images), ("labels-idx1", 8, images):
                values = numbers.choices(range(10), k=size)
                (self.folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(bytes(header) + bytes(values)))
        return self.folder

    def said_of_test(self, run, workers):
        """Which images are right, by all workers alike."""
        said = [line.rpartition("| ")[2] for line in run.lines if line.endswith("of 20 test images are right")]
        self.assertEqual(len(said), workers, run)
        self.assertEqual(len(set(said)), 1, run)

    def test_the_loop_example(self):
        run = self.local(self.script((cluster.ROOT / "examples/torch_loop.py").read_text()), self.small_set())
        self.said_of_test(run, 2)

    def test_the_elastic_example_loses_a_worker_and_another_one_joins(self):
        text = (cluster.ROOT / "examples/torch_elastic.py").read_text()
        # It trains until the newcomer, whose number is 3, has made some steps; slowly, to leave the processors to that one.
        for old, new in ("EPOCHS, BATCH = 3, 32", "EPOCHS, BATCH = 10**6, 32"), ("        schedule.step()\n", """        schedule.step()
        __import__("time").sleep(0.02)
        if any(3 in view.seats and progress.step > view.first_clock + 5 for view in poseidon.Client.current.views):
            break
"""):
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "torch_elastic.py").write_text(text)
        show = self.folder / "torch_elastic_show.py"
        text = (cluster.ROOT / "examples/torch_elastic_show.py").read_text()
        for old, new in ("sys.executable", repr(str(programs.python()))), ("step 200:", "step 50:"):
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        show.write_text(text)
        run = self.local(show, self.small_set(), workers=1)
        self.said_of_test(run, 3)
        for line in "second [|] poseidon: worker 0 is gone: 2 workers go on", r"third [|] poseidon: worker 3 joined: 3 workers go on", \
                r"new [|] begins with step [1-9]\d+, as one of 3 workers", "exit codes 0, 0, 0":
            run.wait_for(line)

    def test_the_example_that_resumes_ends_with_the_bits_of_a_run_without_a_stop(self):
        text = (cluster.ROOT / "examples/torch_resume.py").read_text()
        joins = "poseidon.join(model, optimizer)"
        self.assertEqual(text.count(joins), 1)
        for mode in ("ddp", "local", "shards") if cluster.ALL else ("ddp",):
            with self.subTest(mode):
                script = self.script(text.replace(joins, f'poseidon.join(model, optimizer, mode="{mode}")'))
                whole, parts = self.folder / f"{mode}_whole.pt", self.folder / f"{mode}_parts.pt"
                said = [self.said_of_samples(self.local(script, file, epochs)) for file, epochs in ((whole, 3), (parts, 2), (parts, 3))]
                self.assertEqual([len(lines) for lines in said], [3, 2, 1])
                self.assertEqual(said[0], said[1] + said[2])
                same = self.cluster.start(programs.python(), "-c", SAME, whole, parts)
                self.assertEqual(same.wait(), 0, same)

    def said_of_samples(self, run):
        """By worker 0 alone."""
        lines = [line for line in run.lines if "samples are right" in line]
        self.assertTrue(all(line.startswith("0 | epoch ") for line in lines), run)
        return lines

    def test_a_ddp_script_on_the_machines_of_a_host_file(self):
        (self.folder / "hosts").write_text("127.0.0.1\nbeta slots=2\n")
        ssh = self.folder / "ssh"
        ssh.write_text('#!/bin/sh\nexec sh -c "$2"\n')
        ssh.chmod(0o755)
        self.cluster.env["GLOO_SOCKET_IFNAME"] = "lo"  # beta is this machine
        found = []
        for text in SCRIPT, OURS:
            script = self.script(text)
            run = self.cluster.start(LAUNCH / "ssh", self.folder / "hosts", "--script", "--address", "127.0.0.1", "--port", "0", "--directory", self.folder,
                                     "--ssh", ssh, "--", programs.python(), script)
            self.assertEqual(run.wait(), 0, run)
            found.append(self.weights(run))
            self.assertEqual(len(found[-1]), 3, run)
            self.assertTrue(found[-1][0].endswith(" of 3"), run)
        self.assertEqual(found[0], found[1])

    def test_a_worker_that_is_killed_ends_the_run_with_137(self):
        died = "import os, signal\nif os.environ['RANK'] == '1':\n    torch.optim.SGD.step = lambda *_: os.kill(os.getpid(), 9)\n"
        script = self.script(OURS.replace("dist.init_process_group", died + "dist.init_process_group", 1))
        run = self.cluster.start(LAUNCH / "local", 2, programs.python(), script)
        self.assertEqual(run.wait(), 137, run)
        self.assertRegex(run.errors[-1], "^launch: 1: .* was ended by SIGKILL")


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
