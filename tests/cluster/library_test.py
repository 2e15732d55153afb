# tests/cluster/library_test.py - libposeidon.so as a file: a program in C, its symbols, and no trace in a process that never joins.
import os
import re
import subprocess
import unittest

import cluster
import programs


class Library(unittest.TestCase):
    def test_a_program_in_c(self):
        with programs.Programs() as c, cluster.reserved_address() as address:
            program = c.start(str(cluster.BIN / "test_library"), address, name="program")
            self.assertEqual(program.wait(), 0, program)

    def test_the_header_is_c99(self):
        done = subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"],
                              input=f'#include "{cluster.ROOT}/apps/library/poseidon.h"\n', text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_symbols(self):
        done = subprocess.run(["nm", "-D", "--defined-only", str(programs.LIBRARY)], text=True, capture_output=True, check=True)
        shown = {line.split()[-1] for line in done.stdout.splitlines()}
        header = (cluster.ROOT / "apps/library/poseidon.h").read_text()
        self.assertEqual(shown, set(re.findall(r"POSEIDON_API .*?\b(poseidon_\w+)\(", header)))

    def test_no_effect_before_join(self):
        script = ("import ctypes, os, signal\n"
                  "handlers = [signal.getsignal(n) for n in range(1, 32)]\n"
                  f"ctypes.CDLL({str(programs.LIBRARY)!r})\n"
                  "assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')\n"
                  "assert handlers == [signal.getsignal(n) for n in range(1, 32)]\n"
                  "status = open('/proc/self/status').read()\n"
                  "print([line for line in status.splitlines() if line.startswith(('SigCgt', 'SigIgn'))])\n")
        done = subprocess.run(["python3", "-c", script], text=True, capture_output=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        without = subprocess.run(["python3", "-c", re.sub(r"(?m)^ctypes\.CDLL.*\n", "", script)], text=True, capture_output=True)
        self.assertEqual(done.stdout, without.stdout)


    def test_any_thread_ends_what_another_one_has_begun(self):
        script = ("import array, sys, threading\n"
                  "from poseidon.library import Run\n"
                  "def in_thread(work):\n"
                  "    (thread := threading.Thread(target=work, daemon=True)).start()\n"
                  "    thread.join()\n"
                  "values = array.array('f', [1, 2])\n"
                  "for begins, leaves in ((lambda w: w(), in_thread), (in_thread, lambda w: w())):\n"
                  "    run = Run({})\n"
                  "    run.declare([('w', (2,), values.buffer_info()[0])])\n"
                  "    begins(run.begin)\n"
                  "    leaves(run.leave)\n"
                  "print('left')\n")
        with programs.Programs() as c:
            (worker,) = c.workers(script, 1)
            self.assertEqual(worker.wait(), 0, worker)
            self.assertIn("left", worker.output, worker)


if __name__ == "__main__":
    cluster.main()
