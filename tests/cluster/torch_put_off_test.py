# tests/cluster/torch_put_off_test.py - modes "local" and "shards": whoever reads a parameter after step(), in any thread and order, reads it fresh.
import unittest

import cluster
import programs
from torch_refusals_test import HEAD

# Two threads read the model after each step, beginning at its two ends, as one process does that has made the step already.
THREADS = HEAD + """
mode = sys.argv[1]
net = nn.Sequential(nn.Linear(300, 900), nn.ReLU(), nn.Linear(900, 900), nn.ReLU(), nn.Linear(900, 3))
alone = copy.deepcopy(net)

def input_of(clock, half):
    return torch.randn(3, 300, generator=torch.Generator().manual_seed(2 * clock + half))

def loss_of(net, clock):
    halves, together = [None, None], threading.Barrier(2)
    def make(half):
        together.wait()
        for p in list(net.parameters())[::2 * half - 1]:
            p.sum()
        halves[half] = net(input_of(clock, half)).pow(2).sum()
    threads = [threading.Thread(target=make, args=(half,)) for half in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return halves[0] + halves[1]

def trained(net, optimizer):
    losses = []
    for clock in range(12):
        optimizer.zero_grad()
        loss = loss_of(net, clock)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses

wanted = trained(alone, torch.optim.Adam(alone.parameters(), .001))
optimizer = torch.optim.Adam(net.parameters(), .001)
with poseidon.join(net, optimizer, mode=mode):
    assert trained(net, optimizer) == wanted
assert all(map(torch.equal, net.parameters(), alone.parameters()))
print("fine", flush=True)
"""

# The parameter that is read first is used last, and its mean comes while the step of a large one is made: that one brings both.
COMES_MEANWHILE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.first = nn.Linear(600, 3), nn.Linear(600, 600)

    def forward(self, x):
        return self.last(self.first(x))

def trained(net, optimizer, before_reading):
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.ones(2, 600)).pow(2).mean().backward()
        optimizer.step()
    before_reading()
    return net.last.weight.sum().item()

net = Net()
alone = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), .1)
client = poseidon.join(net, optimizer, mode="local")
last, look, asked = client.names.index("last.weight"), client.run.look, []

def meanwhile():
    for i in range(len(client.parameters)):
        client.run.wait(i, client.clock)
    client.run.look = lambda i, clock: asked.append(i) if i == last and last not in asked else look(i, clock)

assert trained(net, optimizer, meanwhile) == trained(alone, torch.optim.SGD(alone.parameters(), .1), lambda: None)
assert asked == [last]
print("fine", flush=True)
"""

A_FORK = """
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
def told_by_a_fork(call):
    reads, writes = os.pipe()
    if os.fork() == 0:
        try:
            told = str(call())
        except poseidon.PoseidonError as e:
            told = f"refused: {e}"
        os.write(writes, told.encode())
        os._exit(0)
    os.close(writes)
    os.wait()
    return os.read(reads, 1000).decode()
print(told_by_a_fork(lambda: net[0].weight.sum().item()), flush=True)
poseidon.synchronize()
assert told_by_a_fork(lambda: net(torch.ones(2, 4)).sum().item()) == str(net(torch.ones(2, 4)).sum().item())
step(net, optimizer)
"""


class PutOff(unittest.TestCase):
    def test_threads(self):
        for mode in "local", "shards":
            with self.subTest(mode), programs.Programs() as c:
                (worker,) = c.workers(THREADS, 1, mode)
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("fine", worker.output, worker)

    def test_a_mean_that_comes_meanwhile(self):
        programs.each_is_fine(self, HEAD, {"a mean that comes meanwhile": COMES_MEANWHILE})

    def test_a_fork_is_told_what_to_do(self):
        programs.each_is_refused(self, HEAD, {"a fork": (A_FORK, r'a fork of a worker and reads "0\.weight".*poseidon\.synchronize\(\).*mode="ddp"')})


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
