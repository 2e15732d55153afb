# tests/cluster/torch_wire_test.py - gradients that travel rounded: what all workers read, which bytes are saved, and what is refused.
import socket
import threading
import unittest

import cluster
import programs

HEAD = """
import sys
import torch
from torch import nn
import poseidon.torch as poseidon
torch.set_num_threads(1)
mode, form = sys.argv[1:3]
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}

TOPS = {"int8": 127, "int4": 7}

def rounds(t, form=form):
    return form in DTYPES and form != "float32" or form in TOPS and t.numel() >= 4096

def cast(t, form=form):
    if form in DTYPES:
        return t.to(DTYPES[form]).float()
    return torch.cat([block(b, TOPS[form]) for b in t.reshape(-1).split(256)]).reshape(t.shape) if rounds(t, form) else t

def block(b, top):
    # The step is the largest magnitude's part, rounded up to a bfloat16.
    step = ((b.abs().max() / top).view(torch.int32) + 0xffff >> 16 << 16).view(torch.float32)
    return torch.zeros_like(b) if step == 0 else torch.round(b / step).clamp(-top, top) * step

class Net(nn.Module):
    # 47 small parameters, which travel together in mode ddp, more than 4,096 values; a large one; a branch that one worker leaves out, and one that all do.
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(6, 16)
        self.more = nn.ModuleList(nn.Linear(16, 16) for _ in range(20))
        self.branch, self.unused = nn.Linear(16, 16), nn.Linear(3, 3)
        self.large = nn.Linear(16, 515)

    def forward(self, x, branches):
        x = self.first(x)
        for layer in self.more:
            x = x + .1 * torch.tanh(layer(x))
        x = x + .01 * torch.tanh(self.large(x)).pow(3).sum(1, keepdim=True)
        return self.branch(x) if branches else x

def loss(net, step, worker):
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(100 * step + worker))
    return net(x, worker != 1).pow(2).mean()
""" + programs.REFUSED

TRAINS = HEAD + """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), .5)
how = sys.argv[3]
if how == "hook":
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, quantization_hooks
    net = poseidon.DistributedDataParallel(net)
    hook = {"float16": default_hooks.fp16_compress_hook, "bfloat16": default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
            "int8": quantization_hooks.quantization_perchannel_hook}[form]
    net.register_comm_hook(None, hook)
else:
    poseidon.join(net, optimizer, mode=mode, **({"wire": form} if how == "option" and poseidon_first else {}))
me, workers = poseidon.rank(), poseidon.size()
for step in range(5):
    optimizer.zero_grad(set_to_none=True)
    loss(net, step, me).backward()
    optimizer.step()
poseidon.synchronize()
values = [p.detach().clone() for p in net.parameters()]

# One process, which rounds as they do.
alone = Net()
parameters = list(alone.parameters())
theirs = torch.optim.SGD(parameters, .5)
exact, kept = [p.detach().clone() for p in parameters], {}
for step in range(5):
    there = [[] for _ in parameters]
    for worker in range(workers):
        theirs.zero_grad(set_to_none=True)
        loss(alone, step, worker).backward()
        for i, p in enumerate(parameters):
            if p.grad is None:
                continue
            g = p.grad
            if mode == "shards":
                g = g + kept.get((worker, i), 0)
                kept[worker, i] = g - cast(g)
            there[i].append(cast(g))
    before = [p.detach().clone() for p in parameters]
    for i, (p, parts) in enumerate(zip(parameters, there)):
        p.grad = None
        if parts:
            total = parts[0]
            for g in parts[1:]:
                total = total + g
            mean = total * torch.tensor(1 / workers, dtype=torch.float32)
            p.grad = mean if mode == "shards" else cast(mean)
    if mode == "shards":
        for p, e in zip(parameters, exact):
            p.data.copy_(e)
    theirs.step()
    if mode == "shards":
        for i, p in enumerate(parameters):
            exact[i] = p.detach().clone()
            p.data.copy_(before[i] + cast(exact[i] - before[i]) if rounds(p) else exact[i])
same = all(torch.equal(a, b) for a, b in zip(values, parameters))
assert net.unused.weight.grad is None if how != "hook" else net.module.unused.weight.grad is None
print("equal" if same else "different", workers, flush=True)
""".replace("poseidon_first", '__import__("os").environ.get("POSEIDON_LISTEN")')

RANGE = HEAD + """
net = nn.Linear(4, 1, bias=False)
poseidon.join(net, mode="ddp", wire=form)
me = poseidon.rank()
x = torch.tensor([[1e6, 60000., 1e-9, 0.]]) if me else torch.tensor([[1., 65000., 0., float("nan")]])
net(x).sum().backward()
print("mean", *net.weight.grad.flatten().tolist(), flush=True)
"""

BLOCKS = HEAD + """
net = nn.Linear(5000, 1)
poseidon.join(net, mode="ddp", wire=form)
x = torch.ones(1, 5000)
if poseidon.rank() == 1:
    x[0, 300] = float("inf")
net(x).sum().backward()
g = net.weight.grad.flatten()
print("not a number", *g.isnan().nonzero()[[0, -1]].flatten().tolist(), int(g.isnan().sum()), "mean", g[0].item(), net.bias.grad.item(), flush=True)
"""

HALF = HEAD + """
net = nn.Linear(1024, 1024, bias=False)
optimizer = torch.optim.SGD(net.parameters(), .1)
poseidon.join(net, optimizer, mode=mode, wire=form, routes="ps", broadcast_buffers=False)
for step in range(6):
    optimizer.zero_grad()
    net(torch.ones(2, 1024)).pow(2).sum().backward()
    optimizer.step()
poseidon.leave()
print("done", flush=True)
"""

ANOTHER = HEAD + """
import os
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), .1)
refused(lambda: poseidon.join(net, optimizer, mode=mode, wire="float16" if "POSEIDON_LISTEN" in os.environ else form))
"""

ONE_HOOK = HEAD + """
import os
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
net = poseidon.DistributedDataParallel(nn.Linear(4, 2, bias=BIAS))
if "POSEIDON_LISTEN" in os.environ:
    net.register_comm_hook(None, default_hooks.fp16_compress_hook)
refused(lambda: net(torch.ones(2, 4)).sum().backward())
"""

HOOKS = HEAD + """
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook, post_localSGD_hook, quantization_hooks
net = poseidon.DistributedDataParallel(nn.Linear(4, 2))
net.register_comm_hook(None, default_hooks.allreduce_hook)
net.register_comm_hook(None, default_hooks.bf16_compress_hook)
net.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
net._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)

def fp16_compress_hook(state, bucket):
    "A user's own, by that name."

net.register_comm_hook(None, quantization_hooks.quantization_pertensor_hook)
net.register_comm_hook(None, quantization_hooks.quantization_perchannel_hook)

for hook in (powerSGD_hook.powerSGD_hook, default_hooks.fp16_compress_wrapper(quantization_hooks.quantization_pertensor_hook), post_localSGD_hook.post_localSGD_hook, fp16_compress_hook,
             default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook),
             default_hooks.fp16_compress_wrapper(default_hooks.bf16_compress_hook)):
    refused(lambda: net.register_comm_hook(None, hook))
net(torch.ones(2, 4)).sum().backward()
print("fine", flush=True)
"""


class Relay:
    """Between a worker that joins and the first one: counts what goes through."""

    def __init__(self, to):
        self._to, self.bytes = to, 0
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listens.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near = self._listens.accept()[0]
                host, port = self._to.split(":")
                far = socket.create_connection((host, int(port)))
            except OSError:  # the first worker does not listen yet: the other one tries again
                if self._listens.fileno() < 0:
                    return
                near.close()
                continue
            for a, b in (near, far), (far, near):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        try:
            while part := a.recv(1 << 16):
                self.bytes += len(part)
                b.sendall(part)
        except OSError:
            pass
        for s in a, b:
            s.close()

    def close(self):
        self._listens.close()


class Wire(unittest.TestCase):
    def outputs(self, script, number, *words, each=None):
        with programs.Programs() as c:
            started = c.workers(script, number, *words, each=each)
            for worker in started:
                self.assertEqual(worker.wait(), 0, worker)
            return [worker.output for worker in started]

    def test_all_workers_read_what_one_process_rounds(self):
        for mode, form, how, number in (("ddp", "float16", "option", 2), ("ddp", "bfloat16", "option", 3), ("local", "float16", "option", 3),
                                        ("local", "bfloat16", "option", 2), ("shards", "float16", "option", 2), ("shards", "bfloat16", "option", 3),
                                        ("ddp", "float16", "hook", 3), ("ddp", "bfloat16", "hook", 2), ("ddp", "float32", "option", 2),
                                        ("ddp", "int8", "option", 3), ("ddp", "int4", "option", 2), ("local", "int8", "option", 2),
                                        ("local", "int4", "option", 3), ("shards", "int8", "option", 3), ("shards", "int4", "option", 2),
                                        ("ddp", "int8", "hook", 2)):
            with self.subTest(f"{mode} {form} {how} {number}"):
                for output in self.outputs(TRAINS, number, mode, form, how):
                    self.assertIn(f"equal {number}", output, output)

    def test_a_worker_alone_rounds_nothing(self):
        (output,) = self.outputs(TRAINS.replace("cast(t, form=form)", 'cast(t, form="float32")'), 1, "ddp", "float16", "option")
        self.assertIn("equal 1", output)

    def test_what_a_format_has_not_is_infinite(self):
        for output in self.outputs(RANGE, 2, "ddp", "float16"):
            self.assertIn("mean inf 62496.0 0.0 nan", output)
        for output in self.outputs(RANGE, 2, "ddp", "bfloat16"):
            self.assertRegex(output, r"mean 499712\.0 62464\.0 [45]\.\d+e-10 nan")

    def test_a_value_that_is_not_finite_makes_its_block_nan(self):
        for form in "int8", "int4":
            for output in self.outputs(BLOCKS, 2, "ddp", form):
                self.assertRegex(output, r"not a number 256 511 256 mean (0\.999|1\.00)\d* 1\.0")

    def test_the_bytes_are_fewer(self):
        # Of each value a gradient goes from one of two workers to the other, and what it has come to goes back.
        exact = 6 * 2 * 4 * 1024 * 1024
        for mode in "ddp", "local", "shards":
            with self.subTest(mode):
                sent = {form: self.bytes_of(mode, form) for form in ("float32", "float16", "int8", "int4")}
                self.assertGreater(sent["float32"], exact)
                for form, of_block in ("float16", 512), ("int8", 258), ("int4", 130):
                    self.assertAlmostEqual((sent["float32"] - sent[form]) / exact, 1 - of_block / 1024, delta=.01, msg=sent)

    def bytes_of(self, mode, form):
        with cluster.reserved_address() as address:
            relay = Relay(address)
            try:
                self.outputs(HALF, 2, mode, form, each=lambda place: {"POSEIDON_LISTEN": address} if place == 0 else {"POSEIDON_JOIN": relay.address})
            finally:
                relay.close()
            return relay.bytes

    def test_a_worker_that_asks_for_another_format_is_refused(self):
        for mode in "ddp", "shards":
            with self.subTest(mode):
                for form in "bfloat16", "int8":
                    for output in self.outputs(ANOTHER, 2, mode, form):
                        self.assertRegex(output, rf"refused: .*given wire={form}, and worker 0 has wire=float16")

    def test_a_hook_on_one_worker_is_refused(self):
        # Without a bias one worker alone has the shard, and compares.
        for bias in "True", "False":
            with self.subTest(bias=bias):
                for output in self.outputs(ONE_HOOK.replace("BIAS", bias), 2, "ddp", "float16"):
                    self.assertRegex(output, r"refused: .*worker [01] sends float(16|32), worker [01] float(16|32)\. Was a communication hook registered")

    def test_hooks(self):
        (output,) = self.outputs(HOOKS, 1, "ddp", "float16")
        said = [line for line in output.splitlines() if "refused" in line]
        for line, name in zip(said, ("powerSGD_hook", r"fp16_compress_wrapper\(quantization_pertensor_hook\)", "post_localSGD_hook", "fp16_compress_hook", "powerSGD_hook",
                                     r"fp16_compress_wrapper\(bf16_compress_hook\)"), strict=True):
            self.assertRegex(line, rf"^refused: register_comm_hook\({name}\): .*(hook|wrapper)")
        self.assertIn("fine", output)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
