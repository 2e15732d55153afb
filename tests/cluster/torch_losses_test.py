# tests/cluster/torch_losses_test.py - workers of a PyTorch script die: the others go on, and what they train is what one process
# trains that adds, at each step, the gradients of those that were there.
"""Real processes, which kill themselves at a given place of a given step. Which workers a step counts is what their views say; one
process repeats it and has the same bits of parameters, buffers and the optimizer's state."""
import ast
import os
import signal
import unittest

import cluster
import programs
from elastic_world import EXACT, WORLD

SCRIPT = WORLD + """
STEPS = 14
options, ends = ast.literal_eval(sys.argv[1]), ast.literal_eval(sys.argv[2])
waits_for = sys.argv[3] if len(sys.argv) > 3 else None
net, optimizer = made()
wrapped, starts_at = options.pop("ddp", False), options.pop("starts_at", None)
if wrapped:
    run = poseidon.DistributedDataParallel(net)
    joined = poseidon.Client.current
else:
    run, joined = net, poseidon.join(net, optimizer, **options)
seat = poseidon.rank()
print("seat", seat, flush=True)
if starts_at and seat in ends:
    open(starts_at).read()
for step in range(STEPS):
    here = (step, seat)
    optimizer.zero_grad(set_to_none=True)
    backward(run, step, seat)
    end_at("after backward")
    optimizer.step()
    print("step", step, flush=True)
joined.synchronize()
views = list(joined.members.views)
print("now", poseidon.rank(), poseidon.size(), flush=True)
print("views", [tuple(v) for v in views], flush=True)
values = values_of(net, optimizer)
if waits_for:
    open(waits_for + str(seat)).read()
poseidon.leave()
ends = {}
wanted = values_of(*one_process(views, STEPS))
different = [name for name in wanted if not torch.equal(wanted[name], values[name])]
far = [name for name in wanted if not torch.allclose(wanted[name].float(), values[name].float(), rtol=1e-2, atol=1e-3)]
print("oracle", "equal" if not different else f"near, {different} differ" if not far else f"far: {far}", flush=True)
print("digest", hashlib.sha256(b"".join(v.numpy().tobytes() for v in values.values())).hexdigest(), flush=True)
"""
KILL = int(signal.SIGKILL)
PLACES = "forward", "backward", "after backward"


def by_seat(workers):
    """Joiners get their seats in the order in which they come."""
    return sorted(workers, key=lambda worker: int(worker.wait_for(r"^seat (\d+)")[1]))


class Losses(unittest.TestCase):
    def started(self, c, number, ends, options=None, env=(), waits_for=(), each=None):
        """Their places in the list are their seats."""
        return by_seat(c.workers(SCRIPT, number, repr(options or {}), repr(ends), *waits_for, env=(*EXACT.items(), *env), each=each))

    def gate(self, c):
        """What workers wait at before they leave."""
        for seat in range(3):
            os.mkfifo(c.folder / f"gate{seat}")
        return c.folder / "gate"

    def open_gate(self, gate, *seats):
        for seat in seats:
            with open(f"{gate}{seat}", "w"):
                pass

    def views_of(self, workers, survivors, oracle="equal"):
        """Of those that have trained to the end, with the same bits and views."""
        seen = set()
        for seat in survivors:
            worker = workers[seat]
            self.assertEqual(worker.wait(), 0, worker)
            self.assertRegex(worker.output, f"(?m)^oracle {oracle}", worker)
            views = worker.wait_for(r"^views (.*)")[1]
            self.assertEqual(ast.literal_eval(views)[-1][1], tuple(survivors), worker)
            now = worker.wait_for(r"^now (\d+) (\d+)").groups()
            self.assertEqual(now, (str(survivors.index(seat)), str(len(survivors))), worker)
            seen.add((views, worker.wait_for("^digest (.*)")[1]))
        self.assertEqual(len(seen), 1, "\n".join(map(str, workers)))
        return ast.literal_eval(seen.pop()[0])

    def go_on(self, number, ends, *, options=None, env=(), oracle="equal", code=-KILL):
        """`ends`: by seat, the step, the place in it, and the signal, or how."""
        with self.subTest(workers=number, ends=ends, options=options), programs.Programs() as c:
            options = dict(options or {})
            at_once = any(step == 0 for step, _, _ in ends.values())
            if at_once:  # Where worker 0 ends before others have what they begin with, nothing has been trained, and nobody goes on.
                options["starts_at"] = str(c.folder / "start")
                os.mkfifo(options["starts_at"])
            workers = self.started(c, number, ends, options, env)
            if at_once:  # All have joined by now.
                with open(options["starts_at"], "w"):
                    pass
            survivors = [seat for seat in range(number) if seat not in ends]
            for seat in ends:
                self.assertEqual(workers[seat].wait(), code, workers[seat])
                self.assertIn("ends", workers[seat].lines, workers[seat])
            views = self.views_of(workers, survivors, oracle)
            # The last thing that a worker did before it ended may have reached the others, or not.
            first = max(step + (place == "after backward") for step, place, _ in ends.values())
            self.assertIn(views[-1][0], (first - 1, first), "\n".join(map(str, workers)))
            go_on = "this worker goes on alone" if len(survivors) == 1 else f"{len(survivors)} workers go on"
            for seat in survivors:
                said = "\n".join(workers[seat].errors)
                for gone in ends:
                    self.assertRegex(said, rf"poseidon: .*\bworker {gone}\b.* (is|are) gone: ", workers[seat])
                self.assertIn(f"gone: {go_on}, from step {views[-1][0]} on", said)
                self.assertLessEqual(said.count(" gone: "), len(ends), workers[seat])  # where routes change nobody is lost

    def test_the_last_worker(self):
        for place in PLACES:
            self.go_on(3, {2: (5, place, KILL)})

    def test_worker_0_which_leads_and_whose_buffers_all_have(self):
        for place in PLACES:
            self.go_on(3, {0: (5, place, KILL)})

    def test_two_at_once_of_four(self):
        self.go_on(4, {1: (5, "backward", KILL), 3: (5, "backward", KILL)})
        self.go_on(4, {0: (5, "after backward", KILL), 2: (5, "after backward", KILL)})

    def test_three_of_four_one_after_the_other(self):
        self.go_on(4, {0: (2, "backward", KILL), 3: (5, "forward", KILL), 1: (9, "after backward", KILL)})

    def test_one_of_two(self):
        self.go_on(2, {1: (5, "backward", KILL)})
        self.go_on(2, {0: (5, "backward", KILL)})

    def test_factors(self):
        """Equal on all workers; and up to rounding what one process trains."""
        for seat in 0, 2:
            self.go_on(3, {seat: (8, "backward", KILL)}, env=[("POSEIDON_ROUTES", "sfb")], oracle="(equal|near)")

    def test_the_first_and_the_last_step(self):
        for seat in 0, 2:
            self.go_on(3, {seat: (0, "forward", KILL)})
            self.go_on(3, {seat: (0, "backward", KILL)})
            self.go_on(3, {seat: (13, "backward", KILL)})

    def test_an_exception_is_the_end_of_one_worker(self):
        for place in PLACES:
            self.go_on(3, {1: (5, place, "raise")}, code=1)

    def test_an_exception_on_all_is_the_end_of_all(self):
        with programs.Programs() as c:
            for worker in self.started(c, 3, {seat: (5, "forward", "raise") for seat in range(3)}):
                self.assertEqual(worker.wait(), 1, worker)
                self.assertIn("ValueError: no more pictures", worker.output, worker)

    def test_distributed_data_parallel(self):
        for seat in 0, 2:
            self.go_on(3, {seat: (5, "backward", KILL)}, options={"ddp": True})

    def test_who_has_slept_is_told_that_the_others_have_gone_on(self):
        with programs.Programs() as c:
            gate = self.gate(c)
            workers = self.started(c, 3, {1: (5, "forward", int(signal.SIGSTOP))}, env=[("POSEIDON_SILENCE_LIMIT", 3)], waits_for=[gate])
            for seat in 0, 2:
                workers[seat].wait_for("^views")
            workers[1].signal(signal.SIGCONT)
            self.assertEqual(workers[1].wait(), 1, workers[1])
            # By its old links, which may bear the view without it still, or by asking anew.
            self.assertRegex(workers[1].output, "PoseidonError: the other workers (have gone|go) on without this one", workers[1])
            self.open_gate(gate, 0, 2)
            self.views_of(workers, [0, 2])

    def end(self, options, env=()):
        """A lost worker ends the run of all others, with one line that names it."""
        with self.subTest(options=options, env=env), programs.Programs() as c:
            workers = self.started(c, 3, {1: (5, "backward", KILL)}, options, env)
            for seat in 0, 2:
                self.assertEqual(workers[seat].wait(), 1, workers[seat])
                self.assertRegex(workers[seat].output, r"PoseidonError: .*(worker|node) 1", workers[seat])
                self.assertNotIn("go on, from step", workers[seat].output, workers[seat])

    def test_who_asks_for_it_ends_with_a_lost_worker(self):
        self.end({"on_loss": "end"})
        self.end({}, [("POSEIDON_ON_LOSS", "end")])

    def test_other_modes_end_with_a_lost_worker(self):
        for mode in "local", "shards":
            self.end({"mode": mode})

    def test_what_cannot_be_asked_for(self):
        for mode in "local", "shards":
            with self.subTest(mode), programs.Programs() as c:
                for worker in c.workers(SCRIPT, 2, repr({"mode": mode, "on_loss": "go-on"}), "{}"):
                    self.assertEqual(worker.wait(), 1, worker)
                    self.assertIn('PoseidonError: on_loss is "go-on", and in this mode a lost worker ends the run: mode="ddp" goes on', worker.output, worker)
        with programs.Programs() as c:
            (worker,) = c.workers(SCRIPT, 1, repr({"on_loss": "maybe", "listen": "127.0.0.1:0", "nodes": 2}), "{}")
            self.assertEqual(worker.wait(), 1, worker)
            self.assertRegex(worker.output, r"PoseidonError: .*on_loss.*maybe.*go-on or end", worker)

    def test_a_worker_that_dies_before_training_begins(self):
        script = """
import torch
import poseidon.torch as poseidon
net = torch.nn.Linear(2, 2)
poseidon.join(net, torch.optim.SGD(net.parameters(), .1))
"""
        with programs.Programs() as c:
            of_all = c.workers(script, 3, each=lambda place: {"POSEIDON_NODES": 4 if place == 0 else ""})
            of_all[0].wait_for("waiting for 1 more worker: 3 of 4")
            of_all[2].kill()
            for worker in of_all[:2]:
                self.assertEqual(worker.wait(), 1, worker)
                self.assertRegex(worker.output, "PoseidonError: .*worker [12]", worker)

    def test_ctrl_c_is_the_end_of_one_worker(self):
        self.go_on(3, {1: (5, "forward", int(signal.SIGINT))}, code=-int(signal.SIGINT))

    def test_workers_that_have_different_numbers_of_steps(self):
        """One of them has no more pictures: it is not lost, and the others are told what to do."""
        with programs.Programs() as c:
            workers = self.started(c, 3, {1: (9, "after backward", "leave")})
            for seat, worker in enumerate(workers):
                if seat != 1:
                    self.assertEqual(worker.wait(), 1, worker)
                    self.assertRegex(worker.output, "PoseidonError: .*worker 1 left after 10 steps.*Give all of them the same number", worker)

    def test_one_dies_when_the_others_leave(self):
        with programs.Programs() as c:
            gate = self.gate(c)
            workers = self.started(c, 3, {}, waits_for=[gate])
            for worker in workers:
                worker.wait_for("^views")
            workers[2].kill()
            workers[2].wait()
            self.open_gate(gate, 0, 1)
            for worker in workers[:2]:
                self.assertEqual(worker.wait(), 0, worker)
                self.assertRegex(worker.output, "(?m)^oracle equal", worker)

    def test_workers_agree_on_it(self):
        with programs.Programs() as c:
            of_all = c.workers(SCRIPT, 2, "{}", "{}", each=lambda place: {"POSEIDON_ON_LOSS": ("go-on", "end")[place]})
            self.assertEqual(of_all[1].wait(), 1, of_all[1])
            self.assertRegex(of_all[1].output, "PoseidonError: .*on_loss.*end.*go-on|PoseidonError: .*on_loss.*go-on.*end", of_all[1])


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
