# tests/cluster/torch_joins_test.py - workers join a PyTorch script that trains: they have what the others have, and what all train from then on is
# what one process trains that adds, at each step, the gradients of those that were there.
"""Real processes. All train until a view of the wanted workers stands, and six steps more."""
import re
import signal
import unittest

import cluster
import programs
from elastic_world import EXACT, WORLD

SCRIPT = WORLD + """
options, wanted, state_is, ends = (ast.literal_eval(word) for word in sys.argv[1:5])
MORE = 6

def scheduled(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 3, .9)

def last_step(views):
    return next((v.first_clock + MORE for v in views if v.seats == wanted), None)

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
print("seat", seat, "from", progress.step, first, flush=True)
while True:
    here = (progress.step - first, seat)
    optimizer.zero_grad(set_to_none=True)
    backward(run, progress.step, seat)
    optimizer.step()
    scheduler.step()
    progress.step += 1
    if progress.step == first + 3:
        print("trains", flush=True)
    end_at("after backward")
    last = last_step(joined._views)
    if last is not None and progress.step >= last:
        break
joined.synchronize()
views = list(joined._views)
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
KILL = int(signal.SIGKILL)


class Joins(unittest.TestCase):
    def setUp(self):
        self.c = self.enterContext(programs.Programs())
        self.address = self.enterContext(cluster.reserved_address())

    def started(self, wanted, *, first=0, state="all", options=None, ends=None, env=()):
        """One worker: the first of so many, or one that joins."""
        who = {"POSEIDON_LISTEN": self.address, "POSEIDON_NODES": first} if first else {"POSEIDON_JOIN": self.address}
        variables = {**EXACT, "POSEIDON_SILENCE_LIMIT": cluster.PATIENT_SILENCE_S, **who, **dict(env)}
        (worker,) = self.c.workers(SCRIPT, 1, repr(options or {}), repr(wanted), repr(state), repr(ends or {}), env=variables)
        return worker

    def pair(self, wanted, **more):
        workers = [self.started(wanted, first=2, **more), self.started(wanted, **more)]
        for worker in workers:
            worker.wait_for("^trains")
        return workers

    def are_equal(self, workers, wanted):
        seen = set()
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker)
            seat, step, clock = map(int, worker.wait_for(r"^seat (\d+) from (\d+) (\d+)").groups())
            self.assertEqual(step, clock, worker)
            self.assertEqual(worker.wait_for(r"^now (\d+) (\d+)").groups(), (str(wanted.index(seat)), str(len(wanted))), worker)
            seen.add(worker.wait_for("^digest (.*)")[1])
            if clock == 0:
                worker.wait_for("^oracle equal")
        self.assertEqual(len(seen), 1, "\n".join(map(str, workers)))

    def test_one_joins_two_and_another_one_joins_these(self):
        wanted = (0, 1, 2, 3)
        workers = self.pair(wanted)
        for seat in 2, 3:
            workers.append(self.started(wanted))
            workers[-1].wait_for("^trains")
        self.are_equal(workers, wanted)
        self.assertRegex("\n".join(workers[0].errors), r"poseidon: worker 2 joined: 3 workers go on, from step \d+ on")

    def test_three_join_at_once(self):
        wanted = (0, 1, 2, 3, 4)
        workers = self.pair(wanted)
        workers += [self.started(wanted) for _ in range(3)]
        self.are_equal(workers, wanted)

    def test_one_joins_a_run_that_begins_with_one_worker(self):
        wanted = (0, 1)
        first = self.started(wanted, first=1)
        first.wait_for("^trains")
        self.are_equal([first, self.started(wanted)], wanted)

    def test_distributed_data_parallel(self):
        wanted = (0, 1, 2)
        workers = self.pair(wanted, options={"ddp": True})
        self.are_equal([*workers, self.started(wanted, options={"ddp": True})], wanted)

    def test_the_first_worker_dies_and_another_one_comes(self):
        wanted = (1, 2)
        ends = {0: (3, "after backward", KILL)}
        first, second = self.started(wanted, first=2, ends=ends), self.started(wanted, ends=ends)
        self.assertEqual(first.wait(), -KILL, first)
        second.wait_for("^trains")
        at = re.search(r"this node listens on (\S+)", "\n".join(second.errors))[1]
        self.are_equal([second, self.started(wanted, ends=ends, env={"POSEIDON_JOIN": f"{self.address},{at}"})], wanted)

    def test_one_that_joined_dies(self):
        wanted = (0, 1, 3)
        ends = {2: (4, "after backward", KILL)}
        workers = self.pair(wanted, ends=ends)
        gone = self.started(wanted, ends=ends)
        self.assertEqual(gone.wait(), -KILL, gone)
        self.are_equal([*workers, self.started(wanted, ends=ends)], wanted)

    def test_what_is_refused(self):
        refusals = {"less": r"StepLR.*on worker 0.*Progress", "none": r"state=\[\.\.\.\], and this one with no state"}
        wanted = (0, 1, 4)  # these have got numbers, too
        workers = self.pair(wanted)
        for state, text in refusals.items():
            with self.subTest(state=state):
                other = self.started(wanted, state=state)
                self.assertEqual(other.wait(), 3, other)
                self.assertRegex(other.output, "refused: .*" + text, other)
        self.are_equal([*workers, self.started(wanted)], wanted)

    def test_nobody_joins_a_script_without_state(self):
        wanted = (0, 1, 2)
        workers = self.pair(wanted, state="none")
        other = self.started(wanted, state="none")
        self.assertEqual(other.wait(), 3, other)
        self.assertRegex(other.output, r"refused: .*without state=\[\.\.\.\]", other)
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
