# tests/cluster/library_waits_test.py - what programs around libposeidon.so say while they wait for each other.
import os
import unittest

import cluster
import programs

# Who stands at the gate goes on when the test opens it.
SCRIPT = """
import array, os, sys
from poseidon.library import PoseidonError, Run, options_from
is_first, gate = "POSEIDON_LISTEN" in os.environ, sys.argv[1]
def at_gate():
    if is_first:
        open(gate).read()
def train(run, clocks):
    for clock in clocks:
        run.push(0, clock, gradient.buffer_info()[0], 4)
        run.wait(0, clock + 1)
gradient = array.array("f", [1])
values = array.array("f", [1])
def joined(**options):
    run = Run(options_from(options), quiet=len(sys.argv) > 2 and sys.argv[2] == "quiet")
    run.declare([("w", (1,), values.buffer_info()[0])])
    run.begin()
    return run
"""


class LibraryWaits(unittest.TestCase):
    def setUp(self):
        self.programs = self.enterContext(programs.Programs())
        self.gate = self.programs.folder / "gate"
        os.mkfifo(self.gate)

    def open_gate(self):
        self.gate.write_text("")

    def workers(self, script, *words, number=2):
        return self.programs.workers(SCRIPT + script, number, self.gate, *words)

    def test_who_listens_and_how_many_are_missing(self):
        first, *others = self.workers("at_gate()\nrun = joined()\ntrain(run, range(2))\nrun.leave()\n", number=3)
        addresses = [o.wait_for(r"^poseidon: nobody listens at (\S+) yet; trying for \d+ s more$")[1] for o in others]
        self.open_gate()
        self.assertEqual([w.wait() for w in (first, *others)], [0, 0, 0], first)
        self.assertRegex(first.output, rf"(?m)^poseidon: listening on {addresses[0]}; waiting for 2 workers$", first)
        self.assertRegex(first.output, r"(?m)^poseidon: waiting for 1 more worker: 2 of 3 are here$", first)
        for other in others:
            self.assertRegex(other.output, rf"(?m)^poseidon: reached the first worker, {addresses[0]}; waiting until all are there$", other)
        self.assertIn("poseidon: waiting for 1 more worker: 2 of 3 are here", others[0].output + others[1].output, others)

    def test_quiet(self):
        first, other = self.workers("run = joined()\ntrain(run, range(2))\nprint('done')\nrun.leave()\n", "quiet")
        self.assertEqual([first.wait(), other.wait()], [0, 0], first)
        self.assertEqual([first.output.strip(), other.output.strip()], ["done", "done"], first)

    def test_a_node_that_is_no_program_does_not_end_those_that_wait(self):
        first, other = self.workers("if not is_first:\n    open(gate).read()\nrun = joined()\ntrain(run, range(2))\nrun.leave()\n")
        address = first.wait_for(r"^poseidon: listening on (\S+); waiting for 1 worker$")[1]
        node = self.programs.node("--join", address)
        self.assertNotEqual(node.wait(), 0, node)
        self.assertIn("Every other worker has to be such a program, too", node.output, node)
        first.wait_for("^poseidon: refused .*: it is a poseidon-node, and worker 0 is a program")
        self.open_gate()
        self.assertEqual([first.wait(), other.wait()], [0, 0], first)

    def test_who_computes_alone_is_named(self):
        script = ("run = joined(progress_limit=4)\n"
                  "train(run, range(2))\n"
                  "at_gate()\n"  # it evaluates
                  "try:\n"
                  "    train(run, range(2, 4))\n"
                  "except PoseidonError as error:\n"
                  "    print('failed:', error)\n")
        first, other = self.workers(script)
        other.wait()
        self.open_gate()
        first.wait()
        for worker in first, other:
            self.assertRegex(worker.output, r"failed: .*worker 0 has not called Poseidon for \d+\.\d s "
                             r"\(limit 4\.0 s, progress_limit=, POSEIDON_PROGRESS_LIMIT\).*a larger progress_limit=S", worker)


if __name__ == "__main__":
    cluster.main()
