# tests/cluster/library_test.py - libposeidon.so as a file: programs in C, its symbols, and no trace in a process that never joins.
import os
import pathlib
import re
import subprocess
import tempfile
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

    def test_every_function_answers_in_every_phase(self):
        self.passes("test_library_phases")

    def test_a_second_thread_ends_a_begin_that_waits(self):
        self.passes("test_library_threads")

    def passes(self, program):
        with programs.Programs() as c, cluster.reserved_address() as address:
            program = c.start(str(cluster.BIN / program), address, name="program")
            self.assertEqual(program.wait(), 0, program)

    def test_opened_and_closed_again_and_again(self):
        with programs.Programs() as c:
            program = c.start(str(cluster.BIN / "test_library_reopen"), str(programs.LIBRARY), name="program")
            self.assertEqual(program.wait(), 0, program)

    def test_another_caffe_proto_in_the_process(self):
        """Protobuf ends a process in which a file, or a message, is registered twice."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("caffe", "package caffe; message BlobProto { optional int32 num = 1; }"), ("profile", "message Profile {}")):
                (pathlib.Path(folder) / f"{name}.proto").write_text('syntax = "proto2"; ' + text)
                subprocess.run(["protoc", "--cpp_out=.", f"{name}.proto"], cwd=folder, check=True)
            subprocess.run(["g++", "-shared", "-fPIC", "-o", "libother.so", "caffe.pb.cc", "profile.pb.cc", "-lprotobuf"], cwd=folder, check=True)
            libraries = [f"{folder}/libother.so", str(programs.LIBRARY)]
            for order in libraries, libraries[::-1]:
                done = subprocess.run(["python3", "-c", "import ctypes, sys\nfor file in sys.argv[1:]: ctypes.CDLL(file)\nprint('both')", *order],
                                      text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stdout), (0, "both\n"), done.stderr)

    def test_begin_takes_many_parameters(self):
        script = ("import array\n"
                  "from poseidon.library import Run\n"
                  "values = array.array('f', [1])\n"
                  "run = Run({})\n"
                  "run.declare([(f'{i}.weight', (1,), values.buffer_info()[0]) for i in range(65536)])\n"
                  "run.begin()\n"
                  "print('began')\n"
                  "run.leave()\n")
        with programs.Programs() as c:
            (worker,) = c.workers(script, 1)
            self.assertEqual(worker.wait(), 0, worker)  # a step for each pair of parameters would take minutes
            self.assertIn("began", worker.output, worker)

    def test_addresses_that_others_reach_want_a_token(self):
        """In poseidon-node's words, with options as a script gives them."""
        script = ("import sys\n"
                  "from poseidon.library import PoseidonError, Run, options_from\n"
                  "try:\n"
                  "    Run(options_from(eval(sys.argv[1])))\n"
                  "except PoseidonError as error:\n"
                  "    print('refused:', error)\n")
        with programs.Programs() as c:
            endless, silent = "/dev/zero", c.folder / "silent"
            os.mkfifo(silent)
            for options, text in ((dict(listen="0.0.0.0:7", nodes=2), r"listen=0\.0\.0\.0:7 can be reached from other machines, .* token_file=FILE \(the same"),
                                  (dict(listen="[::]:7", nodes=2), r"listen=\[::\]:7 can be reached"),
                                  (dict(web="0.0.0.0:7"), r"web=0\.0\.0\.0:7 can be reached from .* web_token_file=FILE, or serve"),
                                  (dict(join="10.0.0.1:7"), r"join=10\.0\.0\.1:7 leads to another machine, .* token_file=FILE, the first"),
                                  (dict(token_file=endless), rf"token_file={endless}: its first line has more than 4096 bytes"),
                                  (dict(token_file=str(silent)), rf"token_file={silent}: cannot read a token"),
                                  (dict(nodes="two"), r'option nodes="two": expected a number'),
                                  (dict(progress_limit="soon"), r'option progress_limit="soon": expected a number')):
                with self.subTest(options):
                    (worker,) = c.workers(script, 1, repr(options))
                    worker.wait()
                    self.assertRegex(worker.output, "refused: .*" + text, worker)
                    self.assertNotIn("--", worker.output, worker)
            for options in (dict(listen="127.0.0.1:7", nodes=2), dict(listen="0.0.0.0:7", nodes=2, token="secret"), dict(join="localhost:7")):
                with self.subTest(options):
                    (worker,) = c.workers(script, 1, repr(options))
                    self.assertEqual((worker.wait(), worker.output), (0, ""), worker)


if __name__ == "__main__":
    cluster.main()
