# tests/cluster/little_memory_test.py - under a limit of the address space a node ends: it neither hangs nor leaves half a file.
import resource
import subprocess
import unittest

import cluster
import small_run


class LittleMemory(unittest.TestCase):
    def test_a_node_without_memory_ends(self):
        # Between what the program needs to begin and what the run needs. What the libraries do without memory is theirs (oneDNN
        # ends with a signal), but nothing waits for ever.
        with cluster.Cluster() as c:
            solver = small_run.solver(c.folder, "s", iterations=2, hidden=4096)
            ends = {}
            for megabytes in range(140, 640, 80):
                def limit(size=megabytes << 20):
                    resource.setrlimit(resource.RLIMIT_AS, (size, size))
                    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                run = subprocess.run([cluster.BIN / "poseidon-node", "--solver", solver, "--devices", "cpu:1"], preexec_fn=limit,
                                     capture_output=True, text=True, timeout=cluster.DEADLINE_S)
                ends[megabytes] = (run.returncode, run.stderr.strip()[-200:])
            self.assertTrue(any(code not in (0, None) for code, _ in ends.values()), ends)
            for megabytes, (code, said) in ends.items():
                if code > 0:
                    self.assertTrue(said, f"at {megabytes} MiB it ended with {code} and no word; {ends}")
            for path in c.folder.glob("s_iter_*"):
                self.assertNotIn("tmp", path.name)


if __name__ == "__main__":
    cluster.main()
