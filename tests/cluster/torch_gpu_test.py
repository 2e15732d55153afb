# tests/cluster/torch_gpu_test.py - a model on a GPU is refused unless POSEIDON_CUDA=1 says otherwise; where a GPU is, it then trains.
import subprocess
import unittest

import cluster
import programs
from torch_refusals_test import HEAD

# No GPU is needed to be refused.
REFUSED = """
import types
from poseidon.torch.client import require_exchangeable
there = types.SimpleNamespace(is_sparse=False, is_meta=False, is_cuda=True, device="cuda:0", dtype=torch.float32)
refused(lambda: require_exchangeable("0.weight", there))
"""

# The same steps with and without Poseidon, on the GPU.
TRAINED = """
mode = sys.argv[1]
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).cuda()
alone = copy.deepcopy(net)
optimizers = [torch.optim.Adam(n.parameters(), .01) for n in (net, alone)]
poseidon.join(net, optimizers[0], mode=mode)
for clock in range(6):
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(clock)).cuda()
    for n, o in zip((net, alone), optimizers):
        o.zero_grad(set_to_none=True)
        n(x).pow(2).sum().backward()
        o.step()
poseidon.leave()
assert all(p.is_cuda for p in net.parameters())
far = max(float((a - b).abs().max()) for a, b in zip(net.parameters(), alone.parameters()))
print("near" if far < 1e-5 else f"far: {far}", flush=True)
"""


def has_gpu():
    asked = subprocess.run([programs.PYTHON, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    return asked.stdout.strip() == "True"


class Gpu(unittest.TestCase):
    def test_it_is_refused_by_default(self):
        text = r'"0\.weight" is on cuda:0\. This client has never run with a GPU: POSEIDON_CUDA=1 tries it'
        programs.each_is_refused(self, HEAD, {"by default": (REFUSED, text)})

    def test_where_it_is_wanted_it_trains(self):
        if not has_gpu():
            self.skipTest("PyTorch sees no GPU here")
        for mode in "local", "shards", "ddp":
            with self.subTest(mode), programs.Programs() as c:
                (worker,) = c.workers(HEAD + TRAINED, 1, mode, env=(("POSEIDON_CUDA", "1"),))
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("near", worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
