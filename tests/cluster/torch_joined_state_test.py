# tests/cluster/torch_joined_state_test.py - a worker that joins later has what the others have of each kind of object: optimizers, schedulers,
# averaged models; and what cannot be given to it is refused at join().
"""Real processes. All train until a view of so many workers as are wanted stands, and some steps more."""
import collections
import unittest

import cluster
import programs
from elastic_world import EXACT, WORLD

SCRIPT = WORLD + """
wanted, comes_later, broadcast = (ast.literal_eval(word) for word in sys.argv[1:4])
S = torch.optim.lr_scheduler

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b, self.c = nn.Linear(8, 32, bias=False), nn.BatchNorm1d(32), nn.Linear(32, 32), nn.Linear(32, 3)
        self.frozen = nn.Linear(32, 32).requires_grad_(False)

    def forward(self, x):
        return self.c(torch.relu(self.b(self.frozen(self.norm(self.a(x))))))

torch.manual_seed(2 if comes_later else 1)
net = Parts()
first = torch.optim.SGD([*net.a.parameters(), *net.norm.parameters()], .05, momentum=.9)
second = torch.optim.AdamW(net.b.parameters(), .01)
third = torch.optim.SGD([*net.c.parameters(), *net.frozen.parameters()], .05, momentum=.9, nesterov=True)
warm = S.SequentialLR(first, [S.LinearLR(first, .1, total_iters=3), S.StepLR(first, 2, .9)], [3])
cycle = S.OneCycleLR(second, .05, total_steps=100000)
plateau = S.ReduceLROnPlateau(third, patience=1)
averaged, scaler, progress = torch.optim.swa_utils.AveragedModel(net), torch.cuda.amp.GradScaler(enabled=False), poseidon.Progress(step=0)
state = [second, third, warm, cycle, plateau, averaged, scaler, progress]
joined = poseidon.join(net, first, state=state, broadcast_buffers=broadcast)
begin = joined.clock
print("from", progress.step, begin, flush=True)
while True:
    g = torch.Generator().manual_seed(100 * progress.step + joined.seat)
    for optimizer in first, second, third:
        optimizer.zero_grad()
    scaler.scale(F.cross_entropy(net(torch.randn(6, 8, generator=g)), torch.randint(0, 3, (6,), generator=g))).backward()
    for optimizer in first, second, third:
        scaler.step(optimizer)
    scaler.update()
    warm.step()
    cycle.step()
    plateau.step(sum(p.double().abs().sum().item() for p in net.parameters()))
    averaged.update_parameters(net)
    progress.step += 1
    if progress.step == begin + 3:
        print("trains", flush=True)
    last = last_step(joined.members.views, (wanted, ()))
    if last is not None and progress.step >= last:
        break
joined.synchronize()

def digest(*tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()[:16]

def plain(value):  # tensors by their bits
    if isinstance(value, torch.Tensor):
        return digest(value)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name != "anneal_func"}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value

print("parameters", digest(*net.parameters()), flush=True)
print("buffers", digest(*net.buffers()), flush=True)
for thing in [first, *state]:
    # Since PyTorch 2.0 an averaged model follows the buffers of its model, which are each worker's own where they are not broadcast.
    own = {name for name, _ in thing.named_buffers()} - {"n_averaged"} if isinstance(thing, nn.Module) and not broadcast else ()
    content = plain({name: value for name, value in thing.state_dict().items() if name not in own})
    print("object", type(thing).__name__, hashlib.sha256(repr(content).encode()).hexdigest()[:16], flush=True)
poseidon.leave()
"""
REFUSALS = WORLD + programs.REFUSED + """
class Has:
    def __init__(self, **state):
        self.state = state
    def state_dict(self):
        return self.state
    def load_state_dict(self, state):
        self.state = state

endless = []
endless.append(endless)
net, optimizer = made()
for thing in [3, "text", iter([]), Has, Has(f=lambda x: x), Has(a=[1, {"b": torch.Generator()}]), Has(s=torch.eye(2).to_sparse()), Has(m=torch.empty(1, device="meta")),
              Has(q=torch.quantize_per_tensor(torch.zeros(1), 1., 0, torch.qint8)), Has(e=endless), Has(o=object()), Has(n=net), Has(k={torch.zeros(1): 1}),
              Has(p=nn.Parameter), Has(file=sys.stdout)]:
    refused(lambda: poseidon.join(net, optimizer, state=[poseidon.Progress(a=1), thing]))
poseidon.join(net, optimizer, state=[poseidon.Progress(a=1)])  # nothing has come of them
backward(net, 0, 0)
optimizer.step()
print("trained", flush=True)
poseidon.leave()
"""
LOST_MEANWHILE = WORLD + """
import time
from torch.utils.data import DataLoader
from poseidon.torch.newcomers import Newcomers

take = Newcomers.take
def take_slowly(self, run):
    states = take(self, run)
    if states is not None:
        print("loads", flush=True)
        while 2 in run.view(0).seats:
            time.sleep(.01)
    return states
Newcomers.take = take_slowly

net, optimizer = made()
joined = poseidon.join(net, optimizer, state=[])
print("seat", joined.seat, flush=True)
print("first step", joined.clock, flush=True)
sampler = poseidon.Sampler(LENGTH, seed=1, batch_size=4)
loader = DataLoader(range(LENGTH), batch_sampler=sampler.batch_sampler)
seats = ()
while not set(seats) >= {0, 1, 3} or 2 in seats:  # epochs, however long the newcomer takes
    for batch in sampler.batches(loader):
        step = joined.clock
        optimizer.zero_grad()
        backward(net, step, joined.seat)
        optimizer.step()
        if joined.weights.now:
            print("used", sampler.epoch, step, *batch.tolist(), flush=True)
        if joined.clock == 3 and joined.size == 3:
            print("trains", flush=True)
    seats = [(), *(members for first_clock, members in joined.members.views if first_clock < joined.clock)][-1]
poseidon.leave()
"""
UNLIKE = WORLD + """
torch.manual_seed(int(os.environ["SEED"]))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), .1)
averaged = torch.optim.swa_utils.AveragedModel(net)
try:
    joined = poseidon.join(net, optimizer, state=[poseidon.Progress(a=1), averaged])
    while joined.size > 1:  # until the one that is refused has gone
        optimizer.zero_grad()
        backward(net, joined.clock, joined.seat)
        optimizer.step()
except poseidon.PoseidonError as error:
    print("refused:", error, flush=True)
    sys.exit(3)
"""
REFUSED = [r"state\[1\] is a int, which lacks state_dict", r"state\[1\] is a str,", r"state\[1\] is a list_iterator,", r"state\[1\] is a type,", r"state\[1\] \(Has\): f is a function",
           r"state\[1\] \(Has\): a\[1\]\['b'\] is a Generator", r"state\[1\] \(Has\): s is a tensor that is sparse", r"state\[1\] \(Has\): m is a tensor that is sparse.* meta",
           r"state\[1\] \(Has\): q is a tensor that is sparse, quantized", "holds itself", r"state\[1\] \(Has\): o is a object", r"state\[1\] \(Has\): n is a Net",
           r"state\[1\] \(Has\): k has a tensor as a key", r"state\[1\] \(Has\): p is a _ParameterMeta", r"state\[1\] \(Has\): file is a TextIOWrapper"]


class JoinedState(unittest.TestCase):
    def setUp(self):
        self.c = self.enterContext(programs.Programs())
        self.address = self.enterContext(cluster.reserved_address())

    def started(self, wanted, broadcast, first=0):
        who = {"POSEIDON_LISTEN": self.address, "POSEIDON_NODES": first} if first else {"POSEIDON_JOIN": self.address}
        variables = {**EXACT, **who}
        return self.c.workers(SCRIPT, 1, repr(wanted), repr(False), repr(broadcast), env=variables)[0]

    def later(self, wanted, broadcast):
        variables = {**EXACT, "POSEIDON_JOIN": self.address}
        return self.c.workers(SCRIPT, 1, repr(wanted), repr(True), repr(broadcast), env=variables)[0]

    def all_trained(self, broadcast):
        """By worker, what it prints of its content."""
        workers = [self.started(3, broadcast, first=2), self.started(3, broadcast)]
        for worker in workers:
            worker.wait_for("^trains")
        workers.append(self.later(3, broadcast))
        out = []
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker)
            step, clock = map(int, worker.wait_for(r"^from (\d+) (\d+)").groups())
            self.assertEqual(step, clock, worker)
            out.append([line for line in worker.lines if line.startswith(("parameters ", "buffers ", "object "))])
        self.assertGreater(clock, 2)
        self.assertEqual(len(out[0]), 11, out[0])
        return out

    def test_each_kind_of_object_is_given(self):
        first, *others = self.all_trained(broadcast=True)
        for other in others:
            self.assertEqual(other, first)

    def test_buffers_of_each_worker_are_its_own(self):
        def shared(lines):
            return [line for line in lines if not line.startswith("buffers")]

        trained = self.all_trained(broadcast=False)
        self.assertEqual([shared(lines) for lines in trained], [shared(trained[0])] * 3)
        self.assertEqual(len({line for lines in trained for line in lines if line.startswith("buffers")}), 3)

    def test_what_cannot_be_given_is_refused_by_all(self):
        workers = self.c.workers(REFUSALS, 2)
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker)
            worker.wait_for("^trained")
            said = [line for line in worker.lines if line.startswith(("refused:", "not refused"))]
            self.assertEqual(len(said), len(REFUSED), worker)
            for line, text in zip(said, REFUSED):
                self.assertRegex(line, "^refused: .*" + text)

    def test_what_begins_with_another_content_is_refused(self):
        """An average that is made before join() is one of the values that its own worker has begun with."""
        workers = self.c.workers(UNLIKE, 2, each=lambda place: {"SEED": place})
        self.assertEqual(workers[1].wait(), 3, workers[1])
        workers[1].wait_for(r"^refused: state\[1\] \(AveragedModel\) begins with another content than worker 0's: let all workers make it alike")
        self.assertEqual(workers[0].wait(), 0, workers[0])  # it goes on alone
        self.assertIn("worker 1 is ", "\n".join(workers[0].errors))

    def test_one_is_lost_while_a_newcomer_reads_the_state(self):
        """The view that it came with is replaced before its script goes on, and it has been given a share in it."""
        length = 240
        script = LOST_MEANWHILE.replace("LENGTH", str(length))
        listens = {"POSEIDON_LISTEN": self.address, "POSEIDON_NODES": 3}
        joins = {"POSEIDON_JOIN": self.address}
        workers = [self.c.workers(script, 1, env={**EXACT, **who})[0] for who in (listens, joins, joins)]
        for worker in workers:
            worker.wait_for("^trains")
        workers.append(self.c.workers(script, 1, env={**EXACT, **joins})[0])
        workers[3].wait_for("^loads")
        seats = [int(worker.wait_for(r"^seat (\d+)")[1]) for worker in workers[:3]]
        workers[seats.index(2)].kill()
        used = collections.defaultdict(list)  # by epoch
        for seat, worker in zip([*seats, 3], workers):
            if seat != 2:
                self.assertEqual(worker.wait(), 0, worker)
        first = int(workers[3].wait_for(r"^first step (\d+)")[1])
        for seat, worker in zip([*seats, 3], workers):
            for line in worker.lines:
                if line.startswith("used "):
                    epoch, step, *samples = map(int, line.split()[1:])
                    used[epoch] += samples if seat != 2 or step < first else []
        self.assertIn(0, used)
        for epoch, samples in used.items():
            self.assertEqual(sorted(samples), list(range(length)), epoch)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
