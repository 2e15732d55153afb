# tests/cluster/little_memory_test.py - under a limit of the address space a node ends: it neither hangs nor leaves half a file.
import resource
import subprocess
import unittest

import cluster
import small_run

# How much was wanted; a library that does not say it; a thread and its stack.
AMOUNT = r"[\d.]+ (MB|bytes) were wanted|does not say how much|a thread cannot be started, because memory \(its stack takes [\d.]+ MB\)"


def ended(solver, megabytes):
    """Exit code and last words of a node that may have so many MiB of addresses."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run = subprocess.run([cluster.BIN / "poseidon-node", "--solver", solver, "--devices", "cpu:1"], preexec_fn=limit,
                         capture_output=True, text=True, timeout=cluster.DEADLINE_S)
    return run.returncode, run.stderr.strip()[-400:]


class LittleMemory(unittest.TestCase):
    def test_a_node_without_memory_ends(self):
        # Between what the program needs to begin and what the run needs: whoever asks in vain, no signal ends it, and nothing
        # waits for ever.
        with cluster.Cluster() as c:
            solver = small_run.solver(c.folder, "s", iterations=2, hidden=4096)
            ends = {megabytes: ended(solver, megabytes) for megabytes in range(100, 640, 60)}
            self.assertTrue(any(code not in (0, None) for code, _ in ends.values()), ends)
            for megabytes, (code, said) in ends.items():
                self.assertGreaterEqual(code, 0, f"at {megabytes} MiB; {ends}")
                if code > 0:
                    self.assertRegex(said, AMOUNT, f"at {megabytes} MiB; {ends}")
            for path in c.folder.glob("s_iter_*"):
                self.assertNotIn("tmp", path.name)

    def test_one_line_says_how_much_was_wanted_for_what(self):
        # One piece is larger than the limit, all else is small.
        with cluster.Cluster() as c:
            wide = small_run.solver(c.folder, "wide", hidden=400_000)
            code, said = ended(wide, 1500)
            self.assertEqual(code, 1, said)
            self.assertRegex(said, r'^not enough memory for parameter "ip1/0": 1843\.2 MB were wanted\. [^\n]*ulimit -v[^\n]*$')
            many = small_run.solver(c.folder, "many", batch=200_000)
            code, said = ended(many, 1500)
            self.assertEqual(code, 1, said)
            self.assertRegex(said, r'^not enough memory for the blobs of net "small": [\d.]+ MB were wanted\. [^\n]*$')


if __name__ == "__main__":
    cluster.main()
