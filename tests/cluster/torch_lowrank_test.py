# tests/cluster/torch_lowrank_test.py - gradients of low rank under PyTorch: all workers have the same bits, and these are what the algorithm, written
# once more with PyTorch, makes of all workers' gradients.
import os
import re
import signal
import unittest

import cluster
import programs
from lowrank_world import WORLD

TRAIN = WORLD + """
how = ast.literal_eval(sys.argv[1])
BAD, dies = how.get("bad", False), how.get("dies")
state, run = PowerSGD(how["hook"]) if "hook" in how else None, net
if how.get("ddp"):
    run = poseidon.DistributedDataParallel(net, **how["ddp"])
    if state is not None:
        run.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
else:
    poseidon.join(net, optimizer, **how.get("options", {}))
client = poseidon.Client.current
seat = poseidon.rank()
before = All(net)
wrong = ""
for step in range(10):  # what rounding makes different grows by each
    optimizer.zero_grad(set_to_none=True)
    if dies == [seat, step]:
        net.first.weight.register_hook(lambda g: os.kill(os.getpid(), 9))  # others have left
    loss_of(run, step, seat).backward()
    means = before.means(step, list(client.members.views))
    for name, p in net.named_parameters():
        wrong += difference(f"step {step}, {name}", means[name], p.grad, before.of[name].is_low)
    if not any(p.grad is not None and bool(p.grad.isnan().any()) for p in net.parameters()):  # as a GradScaler
        optimizer.step()
    else:
        print("not finite in step", step, flush=True)
poseidon.leave()
print("by low rank", sorted(name for name, o in before.of.items() if o.is_low), flush=True)
print("digest", digest(net), wrong or "right", flush=True)
"""
HOOK = """
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
def PowerSGD(words):
    return powerSGD_hook.PowerSGDState(process_group=None, **words)
"""
LOW = (("POSEIDON_ROUTES", "lowrank"),)
LOW_8 = (*LOW, ("POSEIDON_RANK", "8"))
OTHER_RANK = """
run = poseidon.DistributedDataParallel(net)
refused(lambda: run.register_comm_hook(PowerSGD({"matrix_approximation_rank": 4}), powerSGD_hook.powerSGD_hook))
loss_of(run, 0, poseidon.rank()).backward()
poseidon.leave()
"""
# The means have the rank of low rank, before and after.
JOINS = """
class Step:
    now = 0
    def state_dict(self):
        return {"now": self.now}
    def load_state_dict(self, state):
        self.now = state["now"]

step = Step()
poseidon.join(net, optimizer, state=[step])
client, wrong = poseidon.Client.current, ""
while True:
    if step.now == 3:
        print("trains", flush=True)
    optimizer.zero_grad(set_to_none=True)
    loss_of(net, step.now, poseidon.rank()).backward()
    views = list(client.members.views)
    wrong += above_rank(net)
    optimizer.step()
    step.now += 1
    if len(views[-1][1]) == 3 and step.now == views[-1][0] + 6:
        break
poseidon.leave()
print("digest", digest(net), wrong or "right", flush=True)
"""
# By low rank goes what is a matrix in memory, whatever the order of the parameter's axes.
IN_ANOTHER_ORDER = """
net.first.weight = nn.Parameter(net.first.weight.detach().t().contiguous().t())
net.conv.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), .05)
poseidon.join(net, optimizer)
wrong = ""
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    loss_of(net, step, poseidon.rank()).backward()
    assert net.first.weight.grad.stride() == (1, 64)
    wrong += above_rank(net)
    optimizer.step()
poseidon.leave()
print("digest", digest(net), wrong or "right", flush=True)
"""
ADVISED = """
client = poseidon.join(net, optimizer)
client._waits.trained = lambda times: 'mode="local" would hide it'
loss_of(net, 0, poseidon.rank()).backward()
poseidon.leave()
"""
_HOOKED = "run = poseidon.DistributedDataParallel(net)\nrefused(lambda: run.register_comm_hook(PowerSGD({}), powerSGD_hook.powerSGD_hook))"
REFUSALS = {
    "local": ('refused(lambda: poseidon.join(net, optimizer, mode="local", routes="lowrank"))', r'routes is "lowrank", and .*mode="ddp" has low rank'),
    "shards": ('refused(lambda: poseidon.join(net, optimizer, mode="shards", routes="lowrank"))', r'routes is "lowrank", and .*mode="ddp" has low rank'),
    "outer": ('refused(lambda: poseidon.join(net, optimizer, outer=poseidon.Outer(every=2), routes="lowrank"))', r'routes is "lowrank", and with outer='),
    "optimizer": ('refused(lambda: poseidon.DistributedDataParallel(net, optimizer=optimizer, routes="lowrank"))', r'routes is "lowrank", and .*optimizer='),
    "rank 3": ('refused(lambda: poseidon.join(net, optimizer, routes="lowrank", rank=3))', r'option rank="3": expected 4 or 8'),
    "rank alone": ('refused(lambda: poseidon.join(net, optimizer, rank=8))', "rank=8 is for routes=lowrank, which is not given"),
    "rank with ps": ('refused(lambda: poseidon.DistributedDataParallel(net, routes="ps", rank=8))', "rank=8 is for routes=lowrank, which is not given"),
    "begins alone": ('refused(lambda: poseidon.join(net, optimizer, state=[], routes="lowrank", listen="127.0.0.1:0", nodes=1))',
                     "routes=lowrank with nodes=1, where others join later: .*Begin with two"),
    "hook's rank": (_HOOKED.format('{"matrix_approximation_rank": 1}'), "powerSGD_hook.: matrix_approximation_rank is 1, expected 4 or 8: write .*=4"),
    "hook's memory": (_HOOKED.format('{"matrix_approximation_rank": 4, "use_error_feedback": False}'), "powerSGD_hook.: use_error_feedback is False"),
    "hook's Q": (_HOOKED.format('{"matrix_approximation_rank": 8, "warm_start": False}'), "powerSGD_hook.: warm_start is False"),
}
MATRICES = ["conv.weight", "first.weight", "out.weight", "sometimes.weight"]


class Lowrank(unittest.TestCase):
    def train(self, number, how, env=LOW, lost=()):
        """All survivors are right, with the same bits. Returns them."""
        with programs.Programs() as c:
            workers = c.workers((HOOK if "hook" in how else "") + TRAIN, number, repr(how), env=env)
            survivors, lines = [], set()
            for worker in workers:
                if worker.wait() == -signal.SIGKILL and lost:
                    continue
                self.assertEqual(worker.wait(), 0, worker)
                self.assertRegex(worker.output, "(?m)^digest [0-9a-f]{16} right$", worker)
                lines.update(line for line in worker.output.splitlines() if line.startswith(("digest ", "by low rank", "not finite")))
                survivors.append(worker)
            self.assertEqual(len(survivors), number - len(lost), "\n".join(map(str, workers)))
            self.assertEqual(len([line for line in lines if line.startswith("digest ")]), 1, lines)
            return survivors, lines

    def test_all_workers_have_the_means_of_the_algorithm(self):
        for number, env, taken in (2, LOW, MATRICES), (3, LOW, MATRICES), (2, LOW_8, [name for name in MATRICES if name != "out.weight"]):
            with self.subTest(number=number, env=env):
                _, lines = self.train(number, {}, env)
                self.assertIn(f"by low rank {taken}", lines)

    def test_options_and_the_first_lines(self):
        for how in {"options": {"routes": "lowrank", "rank": 8}}, {"ddp": {"routes": "lowrank", "rank": 8}}:
            with self.subTest(**how):
                workers, _ = self.train(2, how, env=LOW_8[1:])
                for worker in workers:
                    self.assertIn("poseidon: results: not those of one process: by low rank (rank 8) 3 parameters send a part of each gradient and the rest "
                                  "later; routes=ps keeps the bits", "\n".join(worker.errors))
                self.assertTrue(any("routes: lowrank_8 for 3 parameters of 8" in line for line in workers[0].errors + workers[1].errors))

    def test_after_a_step_that_is_not_finite_the_next_ones_are_right(self):
        _, lines = self.train(2, {"bad": True})
        self.assertEqual([line for line in lines if line.startswith("not finite")], ["not finite in step 4"])

    def test_a_worker_is_lost_and_the_others_go_on_with_what_they_have_kept(self):
        for seat in 0, 2:
            with self.subTest(seat=seat):
                self.train(3, {"dies": [seat, 5]}, lost=(seat,))


    def test_powersgd_hook_stays_where_the_run_has_begun_with_its_rank(self):
        for rank, env in (4, LOW), (8, LOW_8):
            with self.subTest(rank=rank):
                workers, _ = self.train(2, {"ddp": {"broadcast_buffers": True}, "hook": {"matrix_approximation_rank": rank}}, env=env)
                said = [line for worker in workers for line in worker.errors if "without effect" in line]
                self.assertEqual(said, ["poseidon: powerSGD_hook: without effect: start_powerSGD_iter=1000: low rank begins with the first step"])

    def test_a_hook_of_another_rank_than_the_runs_is_refused(self):
        for env, now in ((), "sends whole gradients"), (LOW_8, "has begun with low rank of rank 8"):
            with self.subTest(env=env), programs.Programs() as c:
                for worker in c.workers(WORLD + HOOK + OTHER_RANK, 2, env=env):
                    self.assertEqual(worker.wait(), 0, worker)
                    self.assertRegex(worker.output, rf'refused: .*powerSGD_hook\): its rank is 4, and the run {now}\. Write .*routes="lowrank", rank=4\)', worker)
                    self.assertNotIn("not refused", worker.output)

    def test_what_cannot_be_is_refused_in_one_line(self):
        for name, (script, text) in REFUSALS.items():
            with self.subTest(name), programs.Programs() as c:
                (worker,) = c.workers(WORLD + HOOK + script, 1)
                worker.wait()
                self.assertRegex(worker.output, "refused: .*" + text, worker)
                self.assertNotIn("not refused", worker.output, worker)

    def alike(self, workers):
        """All have ended, with the same bits, and what they have seen is right."""
        self.assertIn("right", programs.same_digest(self, workers))

    def test_parameters_that_lie_in_another_order_go_as_they_lie(self):
        with programs.Programs() as c:
            self.alike(c.workers(WORLD + IN_ANOTHER_ORDER, 2, env=LOW))

    def test_nobody_is_advised_of_a_mode_that_has_no_low_rank(self):
        for env, times in (LOW, 0), ((("POSEIDON_ROUTES", "ps"),), 1):
            with self.subTest(env=env), programs.Programs() as c:
                workers = c.workers(WORLD + ADVISED, 2, env=env)
                self.assertEqual([worker.wait() for worker in workers], [0, 0], workers)
                self.assertEqual(sum('mode="local" would hide it' in line for worker in workers for line in worker.errors), times, workers)

    def test_one_joins_and_has_the_same_bits(self):
        self.check_that_one_joins(LOW)

    def test_with_a_format_P_and_Q_are_rounded_and_one_that_joins_has_the_same_bits(self):
        workers = self.check_that_one_joins((*LOW, ("POSEIDON_WIRE", "int4")))
        said = "\n".join(line for worker in workers for line in worker.errors)
        self.assertIn("routes: lowrank_4 for 4 parameters of 8, P and Q of 2 as bfloat16", said)

    def check_that_one_joins(self, env):
        """All three workers have the same bits, and means of that rank."""
        with programs.Programs() as c, cluster.reserved_address() as address:
            first = [{"POSEIDON_LISTEN": address, "POSEIDON_NODES": 2}, {"POSEIDON_JOIN": address}]
            workers = c.workers(WORLD + JOINS, 2, env=env, each=lambda place: first[place])
            workers[0].wait_for("^trains")
            workers += c.workers(WORLD + JOINS, 1, env=(("POSEIDON_JOIN", address),))
            self.alike(workers)
            return workers


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
