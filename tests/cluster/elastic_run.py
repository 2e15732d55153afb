# tests/cluster/elastic_run.py - scripts of PyTorch whose workers come and go: how they are started, and that all have the same bits in the end.
"""Real processes. All train until a view of so many workers as are wanted stands, and six steps more. Who is to end before that does so by itself, at a step
and in a place of it."""
import unittest

import cluster
import programs
from elastic_world import EXACT, WORLD

SCRIPT = WORLD + """
options, wanted, state_is, ends = (ast.literal_eval(word) for word in sys.argv[1:5])

def scheduled(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 3, .9)

net, optimizer = made()
scheduler, progress = scheduled(optimizer), poseidon.Progress(step=0)
state = {"all": [scheduler, progress], "less": [progress], "none": None}[state_is]
try:
    if options.pop("ddp", False):
        run = poseidon.DistributedDataParallel(net, state=[optimizer, *state])
        joined = poseidon.Client.current
    else:
        run, joined = net, poseidon.join(net, optimizer, state=state, **options)
except poseidon.PoseidonError as error:
    print("refused:", error, flush=True)
    sys.exit(3)
seat, first = joined.seat, joined.clock

def changed(change):
    print("change", tuple(change), "in step", progress.step, flush=True)
    here = (poseidon.size(), poseidon.rank(), progress.step)
    assert (change.size, change.rank, change.step) == here, (change, here, joined.members.all_views[-4:])

if joined.outlives_losses:
    poseidon.on_change(changed)
print("seat", seat, "from", progress.step, first, flush=True)
while True:
    pace()
    here = (progress.step - first, seat)
    optimizer.zero_grad(set_to_none=True)
    backward(run, progress.step, seat)
    optimizer.step()
    scheduler.step()
    progress.step += 1
    if progress.step == first + 3:
        print("trains", flush=True)
    end_at("after the step")
    last = last_step(joined.members.views, wanted)
    if last is not None and progress.step >= last:
        break
joined.synchronize()
views = list(joined.members.views)
print("now", poseidon.rank(), poseidon.size(), flush=True)
values = values_of(net, optimizer)
poseidon.leave()
ends = {}
print("digest", progress.step, hashlib.sha256(b"".join(v.numpy().tobytes() for v in values.values())).hexdigest(), flush=True)
if first == 0:
    alone = values_of(*one_process(views, progress.step, scheduled))
    different = [name for name in alone if not torch.equal(alone[name], values[name])]
    print("oracle", f"different: {different}" if different else "equal", flush=True)
"""


class Elastic(unittest.TestCase):
    whole_ends = False

    def setUp(self):
        self.c = self.enterContext(programs.Programs(whole_ends=self.whole_ends))
        self.address = self.enterContext(cluster.reserved_address())

    def started(self, wanted, *, without=(), first=0, state="all", options=None, ends=None, env=()):
        """One worker: the first of so many, or one that joins. The run ends with so many that are wanted, and `without` those seats."""
        who = {"POSEIDON_LISTEN": self.address, "POSEIDON_NODES": first} if first else {"POSEIDON_JOIN": self.address}
        variables = {**EXACT, **who, **dict(env)}
        (worker,) = self.c.workers(SCRIPT, 1, repr(options or {}), repr((wanted, without)), repr(state), repr(ends or {}), env=variables)
        return worker

    def pair(self, wanted, **more):
        workers = [self.started(wanted, first=2, **more), self.started(wanted, **more)]
        for worker in workers:
            worker.wait_for("^trains")
        return workers

    def are_equal(self, workers):
        """All that are there in the end."""
        places, digests = {}, set()
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker)
            seat, step, clock = map(int, worker.wait_for(r"^seat (\d+) from (\d+) (\d+)").groups())
            self.assertEqual(step, clock, worker)
            places[seat] = tuple(map(int, worker.wait_for(r"^now (\d+) (\d+)").groups()))
            digests.add(worker.wait_for("^digest (.*)")[1])
            if clock == 0:
                worker.wait_for("^oracle equal")
        self.assertEqual([places[seat] for seat in sorted(places)], [(place, len(workers)) for place in range(len(workers))])
        self.assertEqual(len(digests), 1, "\n".join(map(str, workers)))
