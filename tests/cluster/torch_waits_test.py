# tests/cluster/torch_waits_test.py - a script whose backward() waits for the others is told, once, what mode "local" would hide.
"""Times are made up: nothing here depends on how fast the machine is."""
import unittest

import cluster
import programs

SCRIPT = """
from poseidon.torch.waits import Clockwork, Waits

def said(forward, backward, wait, clocks=200):
    clockwork, waits, now, lines = Clockwork(), Waits(), 0.0, []
    for clock in range(clocks):
        slow = 50.0 if clock < 5 else 0.0  # routes change
        clockwork.gradient(now + slow + forward)
        clockwork.gradient(now + slow + forward + backward / 2)
        since = now + slow + forward + backward
        now = since + wait
        lines.append(waits.trained(clockwork.end(since, now)))
    return [line for line in lines if line is not None]

(line,) = said(0.3, 0.6, 1.1)
assert "waits 1100 of 2000 ms a step" in line and "up to 300 ms of that" in line, line
(line,) = said(0.5, 0.3, 0.2)
assert "waits 200 of 1000 ms a step" in line and "up to 200 ms of that" in line, line
assert said(0.5, 0.4, 0.05) == []  # too little is waited for
assert said(0.05, 0.4, 0.9) == []  # and here too little of it could be hidden
assert said(0.001, 0.001, 0.001) == []  # a step of milliseconds
assert said(0.3, 0.6, 1.1, clocks=20) == []
print("fine", flush=True)
"""


class Waits(unittest.TestCase):
    def test_what_is_said(self):
        with programs.Programs() as c:
            (worker,) = c.workers(SCRIPT, 1)
            self.assertEqual(worker.wait(), 0, worker)
            self.assertIn("fine", worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
