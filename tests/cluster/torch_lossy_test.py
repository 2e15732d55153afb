# tests/cluster/torch_lossy_test.py - lossy=FORMAT under PyTorch: the workers choose a format by what they measure, all the same one before the same step, and take it back where it
# does not pay.
"""Times are made up: nothing here depends on how fast the machine is."""
import unittest

import cluster
import programs

# A step of each format, as Times has it: what is waited for shrinks with the bytes.
FASTER = {"float32": (1.0, 0.2, 0.6), "bfloat16": (0.7, 0.2, 0.3), "int8": (0.5, 0.2, 0.1), "int4": (0.45, 0.2, 0.05)}
NOT_FASTER = {form: (1.0, 0.2, 0.6) for form in FASTER}
HIDDEN = {form: (1.0, 0.2, 0.01) for form in FASTER}

CHOICES = """
from poseidon.torch.ladder import Ladder, predicted, RUNGS, VALUES
from poseidon.torch.waits import Times
from poseidon.library import View

def close(a, b):
    assert abs(a - b) < 1e-6, (a, b)

# What waits for nothing gains nothing; of what is all wire a step shrinks with the bytes.
assert predicted([Times(1.0, 0.2, 0.0)], 1.0) == [1.0] * 4
steps = predicted([Times(1.0, 0.2, 0.79)], 1.0)
for step, part in zip(steps[1:], (1 / 2, 258 / 1024, 130 / 1024)):
    close(step, 0.2 + (0.01 ** 4 + (0.8 * part) ** 4) ** 0.25)
assert predicted([Times(1.0, 0.2, 0.79)], 0.0) == [1.0] * 4  # all are small
close(predicted([Times(9.0, 0.2, 8.0), *[Times(1.0, 0.2, 0.79)] * 2], 1.0)[3], steps[3])  # one that was late

class Told(Ladder):
    def run(self, times, clocks, workers=(0, 1), first=0, mean=lambda vote: vote):
        said = []
        for clock in range(first, first + clocks):
            vote = self.vote(lambda: 1.0)
            self.follow(View(first, workers))
            self.trained(clock, Times(*times(self.form)))
            if vote is not None:
                decision = self.decide(clock + 1, mean(vote))
                said.append((clock + 1, decision.form, decision.line))
        return said

FASTER = {"float32": (1.0, 0.2, 0.79), "bfloat16": (0.6, 0.2, 0.39), "int8": (0.4, 0.2, 0.19), "int4": (0.3, 0.2, 0.1)}
for harshest, form in ("int4", "int4"), ("int8", "int8"), ("bfloat16", "bfloat16"):
    (at, now, line), (again, stays, nothing) = Told(harshest).run(FASTER.get, 100)
    assert (at, now, stays, nothing) == (21, form, form, "") and "no longer that of one process" in line, line
    assert again == 32, again
# The mildest one that is as fast as the fastest: from int8 on the pass is what takes long.
said = Told("int4").run(lambda form: (1.0, 0.2, 0.4) if form == "float32" else (0.6, 0.2, 0.0), 100)
assert [form for _, form, _ in said] == ["int8", "int8"], said
# One that does not pay is taken back, once.
said = Told("int4").run(lambda form: (1.0, 0.2, 0.79), 200)
assert [form for _, form, _ in said] == ["int4", "float32"] and "float32 again: a step took 1e+03 ms in int4" in said[1][2], said
(only,) = Told("int4").run(lambda form: (1.0, 0.2, 0.0), 200)
assert only[1] == "float32" and "stay float32" in only[2], only
# Three of four have no vote: the mean says a fourth of everything.
assert [form for _, form, _ in Told("int8").run(FASTER.get, 40, mean=lambda vote: [v / 4 for v in vote])] == ["int8", "int8"]
# Who is alone does not choose, and who has others then does.
ladder = Told("int8")
assert ladder.run(FASTER.get, 100, workers=(0,)) == [] and [at for at, _, _ in ladder.run(FASTER.get, 40, first=100)] == [121, 132]
# Others come while a format is on trial: what was measured before says nothing of them, and the format stays.
ladder = Told("int8")
ladder.run(FASTER.get, 25)
assert ladder.run(lambda form: (5.0, 0.2, 0.79), 100, workers=(0, 1, 2), first=25) == [] and ladder.form == "int8"
other = Told("int8")
assert other.came(ladder.state()) == "int8" and other.run(FASTER.get, 100, first=25) == []
print("fine", flush=True)
"""

# Workers that come and go at any step, whose votes are lost or counted with those who were lost later: what all are told is all that counts.
WALK = """
import random, sys
from poseidon.library import View
from poseidon.torch.ladder import Ladder, RUNGS
from poseidon.torch.waits import Times

def walk(seed):
    at = random.Random(seed)
    harshest = at.choice(RUNGS[1:])
    workers, number, changes = {n: Ladder(harshest) for n in range(at.choice([1, 2, 3]))}, 9, 0
    view = View(0, tuple(workers))
    knows = {n: view for n in workers}
    speed = {form: at.uniform(0.1, 1) for form in RUNGS}
    for clock in range(120):
        if at.random() < 0.04:
            if len(workers) > 1 and at.random() < 0.5:
                del workers[at.choice(list(workers))]
            else:
                number += 1
                workers[number] = Ladder(harshest)
                workers[number].came(next(iter(workers.values())).state())
            view = View(clock, tuple(workers))
            knows = {n: view if at.random() < 0.5 or n not in knows else knows[n] for n in workers}  # some hear of it a step later
        votes = [vote for vote in (ladder.vote(lambda: at.random()) for ladder in workers.values()) if vote is not None and at.random() < 0.9]
        for n, ladder in workers.items():
            ladder.follow(knows[n])
            knows[n] = view
            step = speed[ladder.form] * at.uniform(0.9, 1.5)
            ladder.trained(clock, None if at.random() < 0.05 else Times(step, 0.1 * step, at.uniform(0, 0.9) * step))
        if votes:
            mean = [sum(values) / len(workers) for values in zip(*votes)]
            decided = {ladder.decide(clock + 1, mean) for ladder in workers.values()}
            assert len({d.form for d in decided}) == 1, (seed, clock, decided)
            changes += 1
        forms = {ladder.form for ladder in workers.values()}
        assert len(forms) == 1, (seed, clock, forms)
        assert RUNGS.index(forms.pop()) <= RUNGS.index(harshest), seed
    return changes

found = [walk(seed) for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2]))]
assert sum(found) > len(found) / 2, found
print("fine", flush=True)
"""

WORLD = programs.REFUSED + """
import ast, hashlib, os, sys
import torch
from torch import nn
import poseidon.torch as poseidon
from poseidon.torch.client import Client
from poseidon.torch.waits import Clockwork, Times

how = ast.literal_eval(sys.argv[1]) if len(sys.argv) > 1 else {}
torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 40), nn.ReLU(), nn.Linear(40, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
progress = poseidon.Progress(step=0)
state = [progress] if how.get("state") else None
form = lambda: Client.current.votes.ladder.form
Clockwork.end = lambda self, since, now: Times(*how["times"][form()])

def joined():
    if not how.get("ddp"):
        poseidon.join(net, optimizer, state=state, lossy=how["lossy"])
        return net
    return poseidon.DistributedDataParallel(net, state=state and [optimizer, *state], lossy=how["lossy"])

def step(run):
    optimizer.zero_grad()
    x = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(1000 * progress.step + seat))
    run(x).square().mean().backward()
    if how.get("dies") == (seat, progress.step):
        os.kill(os.getpid(), 9)
    optimizer.step()
    progress.step += 1

def ended():
    print("format", form(), flush=True)
    poseidon.leave()
    print("digest", hashlib.sha256(b"".join(v.numpy().tobytes() for v in net.state_dict().values())).hexdigest(), flush=True)
"""
TRAIN = WORLD + """
run = joined()
seat, forms = poseidon.rank(), [(0, form())]
while progress.step < 60:
    step(run)
    if form() != forms[-1][1]:
        forms.append((progress.step, form()))
print("forms", forms, flush=True)
ended()
"""
JOINS = WORLD + """
run = joined()
seat = Client.current.seat
print("begins in", form(), flush=True)
last = None
while progress.step != last:
    step(run)
    if progress.step == 40:
        print("trains", flush=True)
    view = Client.current.members.views[-1]
    last = view.first_clock + 6 if len(view.seats) == 3 else None
ended()
"""
_JOIN = "refused(lambda: poseidon.join(net, optimizer, {}))\n"
REFUSALS = {
    "no rung": (_JOIN.format('lossy="int2"'), 'lossy is "int2", expected one of: none, bfloat16, int8, int4'),
    "float16": (_JOIN.format('lossy="float16"'), 'lossy is "float16", expected one of'),
    "low rank": (_JOIN.format('lossy="lowrank"'), 'lossy is "lowrank", which a script asks for by name'),
    "with wire": (_JOIN.format('lossy="int8", wire="bfloat16"'), 'lossy="int8" and wire="bfloat16" exclude each other'),
    "with routes": (_JOIN.format('lossy="int8", routes="lowrank"'), 'lossy="int8" and routes="lowrank" exclude each other'),
    "local": (_JOIN.format('mode="local", lossy="int8"'), 'lossy is "int8", and mode "local"'),
    "shards": (_JOIN.format('mode="shards", lossy="int8"'), 'lossy is "int8", and in mode "shards"'),
    "outer": (_JOIN.format('outer=poseidon.Outer(every=2), lossy="int8"'), 'lossy is "int8", and with outer='),
    "optimizer": ('refused(lambda: poseidon.DistributedDataParallel(net, optimizer=optimizer, lossy="int8"))', 'lossy is "int8", and mode "local" and optimizer='),
}
AMONG_OTHERS = WORLD + """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
run = joined()
refused(lambda: run.register_comm_hook(None, default_hooks.fp16_compress_hook))
def uneven():
    with run.join():
        pass
refused(uneven)
poseidon.leave()
"""


class Lossy(unittest.TestCase):
    def trained(self, times, lossy="int4", **how):
        """The line of formats, and the digest, of two workers, and what worker 0 has said."""
        with programs.Programs() as c:
            workers = c.workers(TRAIN, 2, repr({"times": times, "lossy": lossy, **how}))
            digest = programs.same_digest(self, workers)
            forms = {worker.wait_for("^forms (.*)")[1] for worker in workers}
            self.assertEqual(len(forms), 1, forms)
            return forms.pop(), digest, "\n".join(workers[0].errors)

    def test_what_is_chosen(self):
        programs.each_is_fine(self, "import torch\n", {"choices": CHOICES})

    def test_all_take_the_same_whoever_comes_and_goes(self):
        with programs.Programs() as c:
            (worker,) = c.workers("import torch\n" + WALK, 1, 1, 10000 if cluster.ALL else 400)
            self.assertEqual(worker.wait(), 0, worker)

    def test_two_workers_choose_and_stay_equal(self):
        digests = set()
        for form in "int4", "int8":
            forms, digest, said = self.trained(FASTER, form)
            self.assertEqual(forms, f"[(0, 'float32'), (21, '{form}')]")
            self.assertRegex(said, f"from step 21 on gradients travel as {form}: .*no longer that of one process")
            digests.add(digest)
        self.assertEqual(len(digests), 2, "gradients are rounded, and otherwise")

    def test_what_does_not_pay_is_taken_back_and_what_waits_for_nothing_is_exact(self):
        forms, _, said = self.trained(NOT_FASTER, ddp=True)
        self.assertEqual(forms, "[(0, 'float32'), (21, 'int4'), (32, 'float32')]")
        self.assertIn("from step 32 on gradients travel as float32 again", said)
        forms, exact, said = self.trained(HIDDEN)
        self.assertEqual(forms, "[(0, 'float32')]")
        self.assertIn("gradients stay float32", said)
        self.assertEqual(exact, self.trained(HIDDEN, "bfloat16", ddp=True)[1])

    def test_one_that_joins_has_the_format_of_the_others(self):
        how = repr({"times": FASTER, "lossy": "int8", "state": True})
        with programs.Programs() as c, cluster.reserved_address() as address:
            first = [{"POSEIDON_LISTEN": address, "POSEIDON_NODES": 2}, {"POSEIDON_JOIN": address}]
            workers = c.workers(JOINS, 2, how, each=lambda place: first[place])
            workers[0].wait_for("^trains")
            workers += c.workers(JOINS, 1, how, env=(("POSEIDON_JOIN", address), ("POSEIDON_SILENCE_LIMIT", cluster.PATIENT_SILENCE_S)))
            programs.same_digest(self, workers)
            workers[2].wait_for("^begins in int8")

    def test_who_is_left_stays_equal(self):
        for dies in (19, 20, 21, 31):
            with self.subTest(dies), programs.Programs() as c:
                workers = c.workers(TRAIN, 3, repr({"times": FASTER, "lossy": "int4", "dies": (1, dies)}))
                died = [worker for worker in workers if worker.wait() == -9]
                self.assertEqual(len(died), 1, workers)
                programs.same_digest(self, [worker for worker in workers if worker not in died])

    def test_what_is_refused(self):
        programs.each_is_refused(self, WORLD, REFUSALS)
        with programs.Programs() as c:
            for worker in c.workers(AMONG_OTHERS, 2, repr({"times": HIDDEN, "lossy": "int8", "ddp": True})):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertRegex(worker.output, r'(?s)refused: register_comm_hook\(\) and lossy="int8" exclude.*refused: DistributedDataParallel.join\(\) with lossy=')

    def test_workers_that_say_something_else_are_refused(self):
        for other in ("int4", "none"):
            with self.subTest(other), programs.Programs() as c:
                lossy = ["int8", other]
                address = self.enterContext(cluster.reserved_address())
                first = [{"POSEIDON_LISTEN": address, "POSEIDON_NODES": 2}, {"POSEIDON_JOIN": address}]
                workers = [c.workers(TRAIN, 1, repr({"times": HIDDEN, "lossy": lossy[place]}), env=first[place].items())[0] for place in (0, 1)]
                self.assertNotEqual(workers[1].wait(), 0, workers[1])
                self.assertIn("lossy=int8", workers[1].output)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
