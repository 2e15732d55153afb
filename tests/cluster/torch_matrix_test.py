# tests/cluster/torch_matrix_test.py - cases of the PyTorch client, each bit for bit one process, or refused by name (a part of tools/torch_matrix).
import pathlib
import sys
import unittest

import cluster
import programs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "torch_matrix"))
import harness  # noqa: E402
import known  # noqa: E402
import walk  # noqa: E402

# What the harness has to see, by its word for it.
FAULTS = {"broken on all workers": "different", "broken on one worker": "apart", "raises": "raised", "dies": "ended", "refuses": "refused otherwise"}


class TorchMatrix(unittest.TestCase):
    def setUp(self):
        self.matrix = self.enterContext(harness.Matrix())
        self.catalogue = self.matrix.catalogue()

    def verdict(self, case, mode, number):
        return harness.verdict(self.catalogue, case, mode, self.matrix.run(case, mode, number))

    def test_faults_are_seen_and_the_next_case_runs(self):
        for name, kind in FAULTS.items():
            with self.subTest(name):
                self.assertEqual(self.verdict(f"more={name}", "ddp", 2)[0], kind)
                self.assertEqual(self.verdict("model=small", "ddp", 2), ("equal", ""))

    def test_each_case_in_one_mode(self):
        """The next case in the next mode; with cluster.ALL in every mode."""
        failed, met = [], 0
        chosen = walk.spread(self.catalogue, walk.listed(self.catalogue), harness.MODES, [1, 2, 3], each=1)
        modes = len(harness.MODES)
        for case, mode, number in (chosen if cluster.ALL else [c for n, c in enumerate(chosen) if (n // modes + n) % modes == 0]):
            kind, text = self.verdict(case, mode, number)
            met += kind == "equal"
            if kind not in harness.PASSED:
                line = f"{kind}: {text} tools/torch_matrix --case '{case}' --modes {mode} --workers {number}"
                reason = known.open_reason(walk.parts(case), mode)
                if reason is None:
                    failed.append(line)
                else:
                    print(f"known ({reason}): {line}")
        self.assertGreater(met, 400 if cluster.ALL else 100)
        self.assertFalse(failed, "\n".join(failed))


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
