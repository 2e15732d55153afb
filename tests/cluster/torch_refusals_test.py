# tests/cluster/torch_refusals_test.py - what would train another model, or nothing, is refused with what to do; and when a worker
# fails, nobody hangs.
import signal
import unittest

import cluster
import programs

HEAD = """
import copy, os, sys, threading
import torch, torch.nn.functional as F
from torch import nn
import poseidon.torch as poseidon
torch.set_num_threads(1)
torch.manual_seed(1)

def made(**of_linear):
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    return net, torch.optim.SGD(net.parameters(), .1)

def step(net, optimizer, passes=1):
    for _ in range(passes):
        net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        raise ValueError("in backward")

def raise_in_backward(net):
    try:
        net(Raises.apply(torch.ones(2, 4, requires_grad=True))).sum().backward()
    except ValueError:
        pass
""" + programs.REFUSED

# By name: the script of the only worker, and what it prints.
ALONE = {
    "clipping in local": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), .01))
""", r'the gradient of "[01]\.(weight|bias)" is read or was changed after backward\(\).*mode="ddp"'),
    "clipping past the version": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(lambda: net[1].weight.grad.data.clamp_(max=.01))
""", r'the gradient of "1\.weight" is read or was changed'),
    "another gradient": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
net[0].bias.grad = torch.ones(3)
refused(optimizer.step)
""", r'"0\.bias" was replaced after backward\(\)'),
    "a closure": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
refused(lambda: optimizer.step(lambda: 0))
""", r'step\(closure\).*mode="ddp"'),
    "more passes than in the first step": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
refused(lambda: step(net, optimizer, passes=2))
""", r"has reached \"1\.(bias|weight)\" 2 times in this step, in its first step 1.*no_sync"),
    "zero_grad in the middle": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(optimizer.zero_grad)
""", r"zero_grad\(\) after backward\(\)"),
    "half precision": ("""
net, optimizer = made()
refused(lambda: poseidon.join(net.double(), optimizer))
""", r'"0\.weight" is torch\.float64, expected torch\.float32'),
    "gaps": ("""
net, optimizer = made()
net[0].weight.data = torch.ones(3, 8)[:, ::2]
refused(lambda: poseidon.join(net, optimizer, mode="local"))
""", r'"0\.weight" has gaps in memory.*make it contiguous'),
    "a lazy parameter": ("""
net = nn.Sequential(nn.LazyLinear(3))
refused(lambda: poseidon.join(net, mode="ddp"))
""", r'"0\.weight" has no shape yet: run one forward pass'),
    "DataParallel": ("""
net, optimizer = made()
refused(lambda: poseidon.join(nn.DataParallel(net), optimizer))
""", r"join its \.module"),
    "a script module": ("""
net, optimizer = made()
refused(lambda: poseidon.join(torch.jit.script(net), optimizer, mode="local"))
""", r'ScriptModule.*mode="ddp"'),
    "a parameter from elsewhere": ("""
net, _ = made()
refused(lambda: poseidon.join(net, torch.optim.SGD([nn.Parameter(torch.ones(1))], .1)))
""", r"1 of its 1 parameters from elsewhere"),
    "no parameters": ("""
refused(lambda: poseidon.join(nn.ReLU(), mode="ddp"))
""", r"no parameter is declared"),
    "a parameter that trains later": ("""
net, _ = made()
net[0].weight.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), .1)
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
net[0].weight.requires_grad_(True)
refused(lambda: step(net, optimizer))
""", r'"0\.weight" trains, and was frozen at join\(\)'),
    "a parameter that trains later, in ddp": ("""
net, _ = made()
net[0].weight.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), .1)
poseidon.join(net, optimizer, mode="ddp")
step(net, optimizer)
net[0].weight.requires_grad_(True)
refused(lambda: step(net, optimizer))
""", r'"0\.weight" trains, and was frozen at join\(\).*Freeze after join\(\)'),
    "a group that is added": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
refused(lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))
""", r"add_param_group\(\) after join\(\)"),
    "a sparse gradient": ("""
net = nn.Embedding(5, 3, sparse=True)
optimizer = torch.optim.SGD(net.parameters(), .1)
poseidon.join(net, optimizer, mode="local")
net(torch.tensor([1])).sum().backward()
refused(optimizer.step)
""", r'the gradient of "weight" is sparse'),
    "LBFGS": ("""
net, _ = made()
refused(lambda: poseidon.join(net, torch.optim.LBFGS(net.parameters()), mode="local"))
""", r'LBFGS.*mode="ddp"'),
    "joining twice": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
refused(lambda: poseidon.join(*made(), mode="local"))
""", r"has joined already: leave\(\) first"),
    "an unknown option": ("""
refused(lambda: poseidon.join(*made(), listem="x"))
""", r'no option "listem"'),
    "a wrong value": ("""
refused(lambda: poseidon.join(*made(), listen="127.0.0.1:7600", nodes="two"))
""", r'option nodes="two": expected a number'),
    "listen without nodes": ("""
refused(lambda: poseidon.join(*made(), listen="127.0.0.1:7600"))
""", r"nodes=1: nobody would join"),
    "not joined": ("refused(poseidon.rank)\n", r"has not joined"),
    "a fork": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
child = os.fork()
if child == 0:
    refused(lambda: step(net, optimizer))
    os._exit(0)
os.waitpid(child, 0)
step(net, optimizer)
""", r'is a fork of a worker and reads "0\.weight".*mode="ddp"'),
}

# What works: each prints "fine".
FINE = {
    "leave, and go on alone; join again": """
net, optimizer = made()
for _ in range(2):
    with poseidon.join(net, optimizer, mode="local"):
        step(net, optimizer)
    before = net[0].weight.clone()
    step(net, optimizer)
    assert not torch.equal(before, net[0].weight) and type(net[0].weight) is nn.Parameter
print("fine", flush=True)
""",
    "copies and files": """
import io
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
copied = copy.deepcopy(net)
step(net, optimizer)
kept = io.BytesIO()
torch.save(net, kept)
kept.seek(0)
again = torch.load(kept, weights_only=False)
assert torch.equal(again[0].weight, net[0].weight) and type(again[0].weight) is nn.Parameter
assert not torch.equal(copied[0].weight, net[0].weight)
step(copied, torch.optim.SGD(copied.parameters(), .1))  # a copy trains alone
print("fine", flush=True)
""",
    "del model": """
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
del net, optimizer
import gc
gc.collect()
print("fine", flush=True)
""",
    "a file of a joined model can be read without this package": """
import subprocess, tempfile
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
with tempfile.TemporaryDirectory() as folder:
    torch.save(net, folder + "/net")
    read = "import sys, torch; sys.modules['poseidon'] = None; net = torch.load(sys.argv[1], **eval(sys.argv[2])); print(net(torch.ones(2, 4)).sum().item())"
    without = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", read, folder + "/net", "dict(weights_only=False)" if torch.__version__[0] > "1" else "{}"],
                          env=without, capture_output=True, text=True)
assert done.returncode == 0, done.stderr
assert abs(float(done.stdout) - net(torch.ones(2, 4)).sum().item()) < 1e-6
print("fine", flush=True)
""",
    "another thread trains": """
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
thread = threading.Thread(target=lambda: [step(net, optimizer) for _ in range(3)])
thread.start()
thread.join()
step(net, optimizer)
print("fine", flush=True)
""",
    "a backward pass that raised, on one worker alone, in ddp": """
net, optimizer = made()
alone = copy.deepcopy(net)
other = torch.optim.SGD(alone.parameters(), .1)
poseidon.join(net, optimizer, mode="ddp")
for n, o in (net, optimizer), (alone, other):
    step(n, o)
    raise_in_backward(n)
    step(n, o)  # with what the pass before has left in .grad
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
    "a first backward pass that raised, in ddp": """
net, optimizer = made()
client = poseidon.join(net, optimizer, mode="ddp")
raise_in_backward(net)
optimizer.zero_grad(set_to_none=True)
step(net, optimizer)
step(net, optimizer)
assert client.clock == 2, client.clock  # each of them was exchanged
print("fine", flush=True)
""",
    "NaN travels": """
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
for _ in range(5):
    (net(torch.ones(2, 4)).sum() * float("nan")).backward()
    optimizer.step()
assert torch.isnan(net[0].weight).all()
print("fine", flush=True)
""",
    "no effect without joining": """
import signal
assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == before_import
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("fine", flush=True)
""",
}

TWO = HEAD + """
case = sys.argv[1]
first = "POSEIDON_LISTEN" in os.environ
net, optimizer = made()
if case == "another model" and not first:
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
    optimizer = torch.optim.SGD(net.parameters(), .1)
if case == "fewer parameters" and not first:
    net = nn.Sequential(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(net.parameters(), .1)
if case == "alone" and not first:
    import time
    time.sleep(1e6)
print("joins", flush=True)
poseidon.join(net, optimizer, mode="local")
for clock in range(6):
    if case == "endless" and clock == 5:
        print("trains", flush=True)
        while True:
            step(net, optimizer)
    if case == "unequal batches" and first and clock == 4:
        break
    if case == "dies" and not first and clock == 3:
        os.kill(os.getpid(), 9)
    if case == "raises" and not first and clock == 3:
        raise ValueError("a bad sample")
    step(net, optimizer)
net(torch.ones(2, 4))
print("trained", flush=True)
"""


class Refusals(unittest.TestCase):
    def test_ctrl_c_while_others_are_waited_for(self):
        with programs.Programs() as c:
            first, _ = c.workers(TWO, 2, "alone")
            first.wait_for("joins")
            first.signal(signal.SIGINT)
            self.assertNotEqual(first.wait(), 0, first)
            self.assertIn("KeyboardInterrupt", first.output, first)

    def test_ctrl_c_in_training(self):
        with programs.Programs() as c:
            first, second = c.workers(TWO, 2, "endless")
            first.wait_for("trains")
            second.wait_for("trains")
            second.signal(signal.SIGINT)
            self.assertNotEqual(first.wait(), 0, first)
            self.assertNotEqual(second.wait(), 0, second)
            self.assertRegex(first.output, "PoseidonError: .*worker 1.*its program ended by KeyboardInterrupt", first)

    def test_alone(self):
        programs.each_is_refused(self, HEAD, ALONE)

    def test_what_works(self):
        count = "import os\nimport torch\nbefore_import = len(os.listdir('/proc/self/task'))\n"
        programs.each_is_fine(self, count + HEAD, FINE)

    def two(self, case):
        """The ends and the outputs of two workers."""
        with programs.Programs() as c:
            workers = c.workers(TWO, 2, case)
            return [w.wait() for w in workers], [w.output for w in workers], workers

    def test_another_model(self):
        codes, texts, workers = self.two("another model")
        self.assertTrue(all(codes), workers)
        said = r'parameter 2 is "1\.weight" \[?2[ x,]+3\]? on worker 0 and "1\.weight" \[?5[ x,]+3\]? here'
        for text in texts:
            self.assertRegex(text, said)

    def test_fewer_parameters(self):
        codes, texts, workers = self.two("fewer parameters")
        self.assertTrue(all(codes), workers)
        for text in texts:
            self.assertRegex(text, r'worker 0 has 4 parameters and this worker 2; the first that only one has is "1\.weight"')

    def test_unequal_batches(self):
        _, texts, workers = self.two("unequal batches")
        self.assertRegex(texts[1], r"worker 0 left after 4 steps, and this worker trains step 4.*drop_last", workers)
        self.assertIn("trained", texts[0], workers)

    def test_a_worker_that_dies(self):
        codes, texts, workers = self.two("dies")
        self.assertNotEqual(codes[0], 0, workers)
        self.assertRegex(texts[0], r"PoseidonError: .*worker 1", workers)

    def test_a_worker_that_raises(self):
        codes, texts, workers = self.two("raises")
        self.assertNotEqual(codes[0], 0, workers)
        self.assertRegex(texts[0], r"PoseidonError: .*worker 1.*its program ended by ValueError: a bad sample", workers)
        self.assertIn("ValueError: a bad sample", texts[1], workers)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
