# tests/cluster/torch_restarts_test.py - PyTorch scripts under tools/launch whose workers are killed, come back and are added: all have the same bits.
import re
import signal
import unittest

import cluster
import elastic_run
import programs
from elastic_world import EXACT, WORLD
from torch_launch_test import SCRIPT

LAUNCH = cluster.ROOT / "tools/launch"
KILL = int(signal.SIGKILL)
# elastic_run.py's, which says how often it has been started.
ELASTIC = elastic_run.SCRIPT.replace('print("seat"', 'print("restart", *(os.environ["TORCHELASTIC_" + name] for name in ("RESTART_COUNT", "MAX_RESTARTS")), flush=True)\nprint("seat"', 1)
# Trains until a worker has seen a file, which the gradient of `end` tells all of them in one step; worker 1 fails at its first step each time.
UNTIL = WORLD + """
net, optimizer = made()
net.end = nn.Parameter(torch.zeros(1))
progress = poseidon.Progress(step=0)
poseidon.join(net, optimizer, state=[progress])
print("begins with", poseidon.size(), flush=True)
while net.end.grad is None or not net.end.grad.any():
    pace()
    optimizer.zero_grad(set_to_none=True)
    (net(torch.randn(6, 40)).sum() * 1e-3 + net.end.sum() * os.path.exists(sys.argv[1])).backward()
    optimizer.step()
    progress.step += 1
    if os.environ["RANK"] == "1":
        raise ValueError("no more pictures")
poseidon.leave()
"""


class Restarts(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster(env={"PYTHONDONTWRITEBYTECODE": "1", "POSEIDON_LIBRARY": str(programs.LIBRARY), "OMP_NUM_THREADS": "1", **EXACT})
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def script(self, text):
        path = self.folder / f"script{len(list(self.folder.glob('script*')))}.py"
        path.write_text(text)
        return path

    def elastic(self, wanted, *, without=(), ends=None):
        """The command of a worker that trains until so many are there, and none of the seats `without`."""
        return [programs.python(), self.script(ELASTIC), *map(repr, ({}, (wanted, without), "all", ends or {}))]

    def local(self, *words):
        return self.cluster.start(LAUNCH / "local", *words)

    def are_equal(self, workers, *runs):
        digests = []
        for run in runs:
            self.assertEqual(run.wait(), 0, run)
            digests += [found[1] for line in run.lines if (found := re.search(r"[|:] digest (\d+ \w+)$", line))]
            self.assertNotIn("different", run.output)
        self.assertEqual((len(digests), len(set(digests))), (workers, 1), "\n".join(map(str, runs)))

    def test_worker_0_is_killed_and_comes_back(self):
        run = self.local("--max-restarts", 2, 3, *self.elastic(3, without=(0,), ends={0: (3, "after the step", KILL)}))
        self.are_equal(3, run)
        run.wait_for("^launch: 0: .* was ended by SIGKILL.* The others go on, and it is started again in 3 s, restart 1 of 2$")
        run.wait_for("^0 [|] restart 1 2$")
        run.wait_for("^1 [|] oracle equal")

    def test_one_is_killed_and_then_worker_0(self):
        run = self.local("--max-restarts", 1, 3, *self.elastic(3, without=(0, 1), ends={1: (3, "after the step", KILL), 0: (30, "after the step", KILL)}))
        self.are_equal(3, run)
        self.assertEqual(len([line for line in run.lines if "restart 1 1" in line]), 2, run)

    def test_a_worker_of_another_host_comes_back(self):
        (self.folder / "hosts").write_text("127.0.0.1\nbeta\n")
        ssh = self.folder / "ssh"
        ssh.write_text('#!/bin/sh\nexec sh -c "$2"\n')
        ssh.chmod(0o755)
        run = self.cluster.start(LAUNCH / "ssh", self.folder / "hosts", "--script", "--address", "127.0.0.1", "--port", 0, "--ssh", ssh, "--max-restarts", 1, "--",
                                 *self.elastic(2, without=(1,), ends={1: (3, "after the step", KILL)}))
        self.are_equal(2, run)
        run.wait_for("^launch: beta: .* was ended by SIGKILL.* started again in 3 s, restart 1 of 1$")
        run.wait_for("^127.0.0.1: oracle equal")

    def test_two_are_added_to_a_run_that_trains(self):
        token = self.cluster.token_file()
        first = self.local("--token-file", token, 2, *self.elastic(4))
        address = first.wait_for(r"poseidon: listening on (\S+:\d+)")[1]
        for place in "01":
            first.wait_for(f"^{place} [|] trains")
        self.are_equal(4, first, self.local("--add", address, "--token-file", token, 2, *self.elastic(4)))

    def test_one_that_always_fails_ends_nobody_else(self):
        end = self.folder / "end"
        run = self.local("--max-restarts", 2, 3, programs.python(), self.script(UNTIL), end)
        run.wait_for("^launch: 1: .*ValueError: no more pictures. The others go on without it")
        end.touch()
        self.assertEqual(run.wait(), 0, run)
        self.assertEqual(run.errors[-1], f"launch: 1: {programs.python()} ended with code 1: ValueError: no more pictures. "
                                         "The others have gone on, and have ended well")
        self.assertEqual(len([line for line in run.lines if "1 | begins with 3" in line]), 3, run)

    def test_scripts_that_outlive_no_loss_end_with_the_code_of_the_one_that_failed(self):
        died = "import os\nif os.environ['RANK'] == '1':\n    torch.optim.SGD.step = lambda *_: os.kill(os.getpid(), 9)\n"
        scripts = {"plain DDP": SCRIPT.replace("dist.init_process_group", died + "dist.init_process_group", 1),
                   "mode local": WORLD + "net, optimizer = made()\nposeidon.join(net, optimizer, mode='local')\nfor step in range(10**9):\n"
                                         "    optimizer.zero_grad()\n    backward(net, step, 0)\n    optimizer.step()\n"
                                         "    if os.environ['RANK'] == '1' and step == 3:\n        os.kill(os.getpid(), 9)\n"}
        for name, text in scripts.items():
            with self.subTest(name):
                run = self.local("--max-restarts", 3, 2, programs.python(), self.script(text))
                self.assertEqual(run.wait(), 137, run)
                self.assertRegex(run.errors[-1], "^launch: 1: .* was ended by SIGKILL")


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
