# tests/cluster/torch_gpu_test.py - models on a GPU: gradients leave beside the backward pass, and the bits are those of one process.
import subprocess
import unittest

import cluster
import programs
import torch_exactness_test
from torch_refusals_test import HEAD

# What pushes gradients needs no GPU: anything that is waited for takes the place of an event.
PUSHED = """
from poseidon.torch import gpu

class Never:
    def synchronize(self):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

class Done:
    def synchronize(self):
        pass

pushed = []
class Run:
    def push(self, i, clock, at, size):
        pushed.append((i, clock, size))

failures = []
pusher = gpu.Pusher(Run(), failures.append)
values = torch.zeros(5)
for i in range(100):
    pusher.push(i, 3, values, Done())
pusher.wait()
assert pushed == [(i, 3, 20) for i in range(100)], pushed
pusher.push(0, 4, values, Never())
pusher.push(1, 4, values, Done())
pusher.wait()
assert len(pushed) == 100 and "illegal memory access" in str(failures[0]) and len(failures) == 1
pusher.end()
size = gpu.mmap.PAGESIZE
assert gpu._pages([(size + 3, 5), (size + 100, 20), (3 * size, 0), (9 * size - 1, 2), (20 * size, size)]) == [
    (size, 2 * size), (8 * size, 10 * size), (20 * size, 21 * size)]
print("fine")
"""

# Worker 0's copy fails, while worker 1 waits for the mean, or still for the run to begin.
GIVEN_UP = """
from poseidon.torch import gpu

class Never:
    def synchronize(self):
        raise RuntimeError("CUDA error: unspecified launch failure")

class Gpus:
    def __init__(self, client):
        self.pusher = gpu.Pusher(client.run, client._give_up)
        self.wait_for_pushes, self.end = self.pusher.wait, self.pusher.end

def train():
    net = nn.Linear(4, 3)
    with poseidon.join(net, torch.optim.SGD(net.parameters(), .1), mode=sys.argv[1]) as client:
        if client.rank == 0:
            client.gpus = Gpus(client)
            client._send = lambda i, g: client.gpus.pusher.push(i, client.clock, g, Never())
        net(torch.ones(2, 4)).sum().backward()
        client.optimizer.step() if hasattr(client, "optimizer") else None
        client.synchronize()

refused(train)
"""

# The same steps with and without Poseidon, in what users do with a GPU: pinned batches, bfloat16, a scaler, channels last.
TRAINED = """
mode, kind = sys.argv[1:3]
torch.backends.cudnn.deterministic = True
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out, self.never = nn.Conv2d(3, 8, 3), nn.Linear(8, 3), nn.Linear(2, 2)
    def forward(self, x):
        return self.out(torch.relu(self.conv(x)).mean((2, 3)))
net = Net().cuda()
if kind == "channels last":
    net = net.to(memory_format=torch.channels_last)
alone = copy.deepcopy(net)
optimizers = [torch.optim.Adam(n.parameters(), .01) for n in (net, alone)]
scalers = [torch.cuda.amp.GradScaler(enabled=kind == "scaler", init_scale=256.) for _ in optimizers]
with poseidon.join(net, optimizers[0], mode=mode):
    for clock in range(12):
        x = torch.randn(7, 3, 6, 6, generator=torch.Generator().manual_seed(clock)).pin_memory().cuda(non_blocking=True)
        for n, o, s in zip((net, alone), optimizers, scalers):
            o.zero_grad(set_to_none=kind != "zeros")
            with torch.autocast("cuda", torch.bfloat16, enabled=kind == "bfloat16"):
                loss = n(x).float().pow(2).sum()
            s.scale(loss).backward()
            s.step(o)
            s.update()
assert all(p.is_cuda for p in net.parameters())
far = max(float((a - b).abs().max()) for a, b in zip(net.parameters(), alone.parameters()))
print("near" if far < 1e-5 else f"far: {far}", flush=True)
"""

# Inputs that the script leaves on the CPU, as PyTorch's own takes them.
WRAPPED = """
net = poseidon.DistributedDataParallel(nn.Linear(4, 3).cuda(), device_ids=[0])
net(torch.ones(2, 4)).sum().backward()
assert net.module.weight.grad.is_cuda and torch.equal(net.module.weight.grad.cpu(), 2 * torch.ones(3, 4))
poseidon.leave()
print("fine", flush=True)
"""

CAPTURED = """
net = nn.Linear(4, 3).cuda()
poseidon.join(net, torch.optim.SGD(net.parameters(), .1), mode="ddp")
x = torch.ones(2, 4, device="cuda")
net(x).sum().backward()
graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        net(x).sum().backward()
except RuntimeError as error:  # ours, or CUDA's where the hook's stream is not the one that is captured
    print("refused:", str(error).replace(chr(10), " "), flush=True)
else:
    print("not refused", flush=True)
os._exit(0)  # CUDA has invalidated what this process has on the GPU
"""


# Those that differ in what is on its way when; on a GPU some more, whose optimizers and schedules differ.
CASES = ((2, "accumulate", "local", "adamw"), (2, "early reads", "local", "adamw"), (2, "clip", "ddp", "nesterov"),
         (3, "plain", "shards", "nesterov"))
MORE_CASES = ((2, "plain", "local", "nesterov"), (2, "plain", "local", "adamw"), (2, "accumulate", "ddp", "adamw"),
              (2, "state", "shards", "adamw"))


def has_gpu():
    asked = subprocess.run([programs.PYTHON, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    return asked.stdout.strip() == "True"


with_gpu = unittest.skipUnless(has_gpu(), "PyTorch sees no GPU here")


class Gpu(unittest.TestCase):
    def test_gradients_are_pushed_when_their_copies_are_done(self):
        programs.each_is_fine(self, HEAD, {"pusher": PUSHED})

    def test_a_copy_that_fails_ends_the_run_on_all_workers(self):
        for mode in "ddp", "local":
            with self.subTest(mode), programs.Programs() as c:
                for worker in c.workers(HEAD + GIVEN_UP, 2, mode, env={"POSEIDON_ON_LOSS": "end"}):
                    worker.wait()
                    self.assertRegex(worker.output, "refused: .*CUDA error: unspecified launch failure", worker)

    @with_gpu
    def test_one_worker_trains_as_without_poseidon(self):
        for mode in "local", "shards", "ddp":
            for kind in ("plain", "channels last", "bfloat16", "zeros") if mode != "ddp" else ("plain", "bfloat16", "scaler", "zeros"):
                with self.subTest(mode=mode, kind=kind), programs.Programs() as c:
                    (worker,) = c.workers(HEAD + TRAINED, 1, mode, kind)
                    self.assertEqual(worker.wait(), 0, worker)
                    self.assertIn("near", worker.output, worker)

    def test_several_workers_give_the_bits_of_one_process_where_copies_are_late(self):
        for workers, case, mode, rule in CASES:
            torch_exactness_test.check(self, workers, case, mode, rule, "pretended")

    @with_gpu
    def test_several_workers_give_the_bits_of_one_process(self):
        for workers, case, mode, rule in CASES + MORE_CASES:
            torch_exactness_test.check(self, workers, case, mode, rule, "cuda")

    @with_gpu
    def test_a_ddp_script_need_not_move_its_inputs(self):
        programs.each_is_fine(self, HEAD, {"wrapped": WRAPPED})

    @with_gpu
    def test_what_a_graph_would_not_exchange_is_refused(self):
        programs.each_is_refused(self, HEAD, {"CUDA graph": (CAPTURED, ".*[Cc]aptur")})


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
