# tests/cluster/torch_progress_test.py - the numbers of a script that all workers have alike.
import unittest

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

import torch  # noqa: E402

from poseidon.library import PoseidonError  # noqa: E402
from poseidon.torch.agreed import Progress  # noqa: E402


class ProgressTest(unittest.TestCase):
    def test_numbers_by_name(self):
        progress = Progress(epoch=0, best=float("inf"), done=False)
        for progress.epoch in range(3):
            pass
        progress.best -= 1
        self.assertEqual(progress.state_dict(), {"epoch": 2, "best": float("inf"), "done": False})
        other = Progress(done=True, best=0, epoch=7)
        other.load_state_dict(progress.state_dict())
        self.assertEqual((other.epoch, other.best, other.done), (2, float("inf"), False))
        self.assertEqual(repr(other), "Progress(done=False, best=inf, epoch=2)")
        self.assertFalse(hasattr(progress, "step"))

    def test_refusals(self):
        progress = Progress(epoch=0)
        for wrong in torch.tensor(1), torch.tensor([1, 2]), "1", None, [1], 1j, {}:
            with self.subTest(repr(wrong)):
                for call in (lambda: Progress(a=wrong), lambda: setattr(progress, "epoch", wrong),
                             lambda: progress.load_state_dict({"epoch": wrong})):
                    with self.assertRaisesRegex(PoseidonError, "expected a plain number"):
                        call()
                self.assertEqual(progress.epoch, 0)
        for text, call in {
                'has no number "epcoh", it has: epoch': lambda: setattr(progress, "epcoh", 1),
                'cannot be called "state_dict"': lambda: Progress(state_dict=1),
                'cannot be called "_x"': lambda: Progress(_x=1),
                "the state has the numbers step, and this Progress has epoch": lambda: progress.load_state_dict({"step": 1}),
                "the state is a list": lambda: progress.load_state_dict([])}.items():
            with self.subTest(text), self.assertRaisesRegex(PoseidonError, text):
                call()


if __name__ == "__main__":
    cluster.main()
