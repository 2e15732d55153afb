# tests/cluster/harness_test.py - the harness itself: what it starts, it ends, and what it is told, it compares.
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

import cluster
import preloaded
from pty_screen import Terminal


def shell(c, script):
    return c.start("/bin/bash", "-c", script + f"; : {c.folder}")


def caffemodel(path, values):
    """NetParameter { layer { name: "ip" blobs { data: values (packed) } } }"""
    def field(number, payload):
        size = len(payload)
        length = b""
        while True:
            length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
            size >>= 7
            if not size:
                break
        key = number << 3 | 2
        return (bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7])) + length + payload
    blob = field(5, struct.pack(f"<{len(values)}f", *values))
    path.write_bytes(field(100, field(1, b"ip") + field(7, blob)))
    return path


class Harness(unittest.TestCase):
    def test_a_line_is_found_whether_it_came_before_or_after_the_waiting(self):
        with cluster.Cluster() as c:
            p = shell(c, "echo one; read -r -t 60 < /dev/zero; true")
            self.assertEqual(p.wait_for(r"^(o)ne$")[1], "o")
            self.assertEqual(p.wait_for(r"^one$")[0], "one")

    def test_a_line_that_never_comes_fails_when_the_process_has_ended(self):
        with cluster.Cluster() as c:
            with self.assertRaisesRegex(AssertionError, "(?s)no line like /two/ before the end of .*one"):
                shell(c, "echo one").wait_for("two", seconds=60)

    def test_a_line_that_is_late_fails_at_the_deadline(self):
        with cluster.Cluster() as c:
            with self.assertRaisesRegex(AssertionError, r"(?s)no line like /two/ in 0.2 s.*its threads:\n  \w+: \w, in \w+.*, \d+\.\d\d s of processor time"):
                shell(c, "tail -f /dev/null").wait_for("two", seconds=0.2)

    def test_who_says_something_is_waited_for_and_who_is_silent_is_not(self):
        with cluster.Cluster() as c:
            silent = shell(c, "echo one; tail -f /dev/null")
            silent.wait_for("one")
            with self.assertRaisesRegex(AssertionError, "no end in 0.2 s"):
                silent.wait(seconds=0.2)
            slow = shell(c, f"until test -e {c.folder}/goes; do echo a line; sleep 0.01; done")
            slow.wait_for("a line")
            looked = slow.process.wait

            def wait(seconds):
                slow.wait_for("a line", since=len(slow.lines))
                if len(waits) == 3:
                    (c.folder / "goes").touch()
                    return looked()
                waits.append(seconds)
                raise subprocess.TimeoutExpired("slow", seconds)
            waits = []
            with unittest.mock.patch.object(slow.process, "wait", wait):
                self.assertEqual(slow.wait(seconds=7), 0)
            self.assertEqual(waits, [7 * cluster.SLACK] * 3)

    def test_exit_codes_and_both_streams_are_kept(self):
        with cluster.Cluster() as c:
            p = shell(c, "echo out; echo err >&2; exit 3")
            self.assertEqual(p.wait(), 3)
            self.assertEqual(sorted(p.lines), ["err", "out"])
            self.assertEqual(p.errors, ["err"])

    def test_kill_leaves_the_signal_as_exit_code(self):
        with cluster.Cluster() as c:
            p = c.start("/bin/bash", "-c", "echo up; exec tail -f /dev/null")
            p.wait_for("up")
            p.kill()
            self.assertEqual(p.wait(), -signal.SIGKILL)

    def test_no_process_survives_the_end_of_a_cluster_nor_do_its_children(self):
        with cluster.Cluster() as c:
            shell(c, f"bash -c 'echo child; tail -f /dev/null; : {c.folder}' & wait").wait_for("child")
            self.assertNotEqual(cluster.processes_of(c.folder), [])
        self.assertEqual(cluster.processes_of(c.folder), [])

    def test_a_program_that_is_forked_is_as_one_that_is_started(self):
        program = """
import os, sys
print(__name__, sys.argv[1:], os.getcwd() == os.environ["HERE"], os.getsid(0) == os.getpid(), flush=True)
print("an error", file=sys.stderr)
sys.exit(int(sys.argv[1])) if sys.argv[1:] else sys.stdin.read() or __import__("signal").pause()
"""
        with cluster.Cluster() as c:
            file = c.folder / "program.py"
            file.write_text(program)
            loader = preloaded.Preloaded(sys.executable, ["json"], cluster.die_with_parent)
            self.assertIsNone(loader.lacks())
            def begin(*words):
                process = loader.start([str(file), *words], c.folder, {**os.environ, "HERE": str(c.folder)})
                c.nodes.append(cluster.Node("forked", [file, *words], c.folder, c.env, process))
                return c.nodes[-1]
            ends, waits = begin("5"), begin()
            self.assertEqual((ends.wait(), ends.errors), (5, ["an error"]))
            self.assertIn("__main__ ['5'] True True", ends.output)
            waits.wait_for("__main__")
            waits.kill()
            self.assertEqual(waits.wait(), -signal.SIGKILL)
            lives = begin()
            lives.wait_for("__main__")
            loader.end()
            cluster.wait_until(lambda: not pathlib.Path(f"/proc/{lives.pid}").exists(), "it ends with the process that has forked it")
            c.nodes.remove(lives)
            lives.process.stdout.close()
            lives.process.stderr.close()

    def test_a_program_that_is_forked_ends_as_a_script_sees_it(self):
        """With and without the rest of Python's end: its threads, what it has registered, its output, its exit code."""
        program = """
import atexit, sys, threading
ends = threading.Event()
threading.Thread(target=lambda: (ends.wait(), print("thread"))).start()
atexit.register(print, "registered first")
atexit.register(print, "registered last")
print("no flush", end=" ")
ends.set()
{}
"""
        said = ["no flush thread", "registered last", "registered first"]
        cases = {"": (0, []), "sys.exit()": (0, []), "sys.exit(7)": (7, []), "sys.exit(-1)": (255, []), "sys.exit('a reason')": (1, ["a reason"]),
                 "raise SystemExit(True)": (1, []), "raise ValueError('bad')": (1, ["ValueError: bad"])}
        loader = preloaded.Preloaded(sys.executable, ["json"], cluster.die_with_parent)
        self.addCleanup(loader.end)
        for text, (code, last) in cases.items():
            for whole in {}, {preloaded.WHOLE_ENDS: "1"}:
                with self.subTest(text, **whole), cluster.Cluster() as c:
                    file = c.folder / "program.py"
                    file.write_text(program.format(text))
                    run = cluster.Node("forked", [file], c.folder, c.env, loader.start([str(file)], c.folder, {**os.environ, **whole}))
                    c.nodes.append(run)
                    self.assertEqual((run.wait(), run.errors[-1:]), (code, last), run)
                    self.assertEqual([line for line in run.lines if line not in run.errors], said, run)

    def test_a_stand_in_for_python_ends_as_its_program_does(self):
        program = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("in", os.getcwd() == os.environ["HERE"], sys.argv[1:], os.getpid(), flush=True)
print("an error", file=sys.stderr, flush=True)
sys.exit(3) if sys.argv[1] == "ends" else os.kill(os.getpid(), signal.SIGABRT) if sys.argv[1] == "aborts" else signal.pause()
"""
        loader = preloaded.Preloaded(sys.executable, ["json"], cluster.die_with_parent)
        self.addCleanup(loader.end)
        with cluster.Cluster() as c:
            file = c.folder / "program.py"
            file.write_text(program)
            c.env["HERE"] = str(c.folder)
            begin = lambda *words: c.start(loader.python, *words, cwd=c.folder)
            for word, code in ("ends", 3), ("aborts", -signal.SIGABRT):
                run = begin("-B", file, word)
                self.assertEqual((run.wait(), run.errors), (code, ["an error"]), run)
                self.assertIn(f"in True ['{word}']", run.output)
            told = begin(file, "waits")
            told.wait_for("^in")
            told.signal(signal.SIGTERM)
            self.assertEqual(told.wait(), 7, told)
            killed = begin(file, "waits")
            pid = killed.wait_for(r"^in .* (\d+)$")[1]
            killed.kill()
            cluster.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the program is killed, too")
            self.assertEqual(begin("-c", "import sys; sys.exit(5)").wait(), 5)

    def test_a_module_that_is_not_there_is_named(self):
        loader = preloaded.Preloaded(sys.executable, ["json", "there_is_none"], cluster.die_with_parent)
        self.assertIn("No module named 'there_is_none'", loader.lacks())
        loader.end()

    def test_no_process_survives_a_test_that_is_killed(self):
        script = textwrap.dedent("""
            import sys; sys.path.insert(0, sys.argv[1])
            import cluster
            c = cluster.Cluster()
            p = c.start("/bin/bash", "-c", "echo up; exec sleep 600")  # unlike tail, it does not mind a closed pipe
            p.wait_for("up"); print(p.pid, flush=True); p.wait()""")
        here = pathlib.Path(__file__).parent
        test = subprocess.Popen([sys.executable, "-B", "-c", script, here], stdout=subprocess.PIPE, text=True)
        pid = int(test.stdout.readline())
        pidfd = os.pidfd_open(pid)
        test.kill()
        test.wait()
        test.stdout.close()
        import select
        ended, _, _ = select.select([pidfd], [], [], 20)
        os.close(pidfd)
        self.assertTrue(ended, "the process outlived the test that started it")

    def test_what_a_terminal_showed_for_a_moment_is_found_by_a_watcher_who_looks_later(self):
        with Terminal() as t:
            t.start("/bin/bash", "-c", r"printf 'one\033[J'; printf '\r\033[Ktwo\033[J'; printf '\r\033[K\033[J'")
            self.assertEqual(t.wait(), 0)
            self.assertEqual(t.screen.lines, [])
            for word in "one", "two":
                self.assertEqual(t.wait_for(lambda s: s.lines == [word], word), [word])
            with self.assertRaisesRegex(AssertionError, "never seen: one"):
                t.wait_for(lambda s: s.lines == ["one"], "one")

    def test_a_reserved_address_refuses_until_a_node_listens_there(self):
        with cluster.reserved_address() as address:
            at = address.split(":")[0], int(address.split(":")[1])
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(at)
            with socket.create_server(at):  # it sets SO_REUSEADDR, as our nodes do
                socket.create_connection(at).close()
            with self.assertRaises(OSError), socket.socket() as other:
                other.bind(at)

    def test_repeat_counts_runs_by_load_and_keeps_the_output_of_failures(self):
        with cluster.Cluster() as c:
            once = "test -e once || { touch once; echo not yet; exit 1; }"
            (c.folder / "CTestTestfile.cmake").write_text(
                "".join(f'add_test({name} "/bin/bash" "-c" "{script}")\n' for name, script in
                        (("a.good", "true"), ("a.late", once), ("a.other", "exit 77"), ("b.not_asked", "false")))
                + 'set_tests_properties(a.other PROPERTIES SKIP_RETURN_CODE 77)\n')
            done = subprocess.run([cluster.ROOT / "tools/repeat", "--rounds", "2", "--load", "0", "--load", "1", "--jobs", "2", "--build", c.folder,
                                   "--out", c.folder / "out", "^a"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
            self.assertEqual(done.stdout.split("passed/failed\n")[1].splitlines(),
                             ["test        calm  1 spinning", "a.good       2/0         2/0", "a.late       1/1         2/0",
                              "a.other  skipped     skipped"])
            kept, = (c.folder / "out").iterdir()
            self.assertIn("not yet", kept.read_text())

    def test_a_script_that_is_told_to_end_runs_no_further_test_and_leaves_no_process(self):
        with cluster.Cluster() as c:
            script = c.folder / "two_test.py"
            script.write_text(textwrap.dedent("""
                import sys, unittest; sys.path.insert(0, sys.argv.pop(1))
                import cluster
                class Two(unittest.TestCase):
                    def test_1(self):
                        c = cluster.Cluster()
                        self.addCleanup(c.__exit__, None, None, None)
                        p = c.start("/bin/bash", "-c", "echo up; while :; do sleep 1; done; : " + sys.argv[0])
                        p.wait_for("up"); print("waits", flush=True); p.wait()
                    def test_2(self):
                        print("goes on", flush=True)
                cluster.main()"""))
            told = c.start(sys.executable, "-B", script, pathlib.Path(__file__).parent)
            told.wait_for("waits")
            told.signal(signal.SIGTERM)
            self.assertEqual(told.wait(), 143, told.output)
            self.assertNotIn("goes on", told.output)
            self.assertEqual(cluster.processes_of(script), [])

    def test_weights_are_compared_bit_for_bit(self):
        with cluster.Cluster() as c:
            one = caffemodel(c.folder / "one", [1.0, 0.0, 3.0] * 100)
            same = caffemodel(c.folder / "same", [1.0, 0.0, 3.0] * 100)
            cluster.assert_same_weights(one, same)
            other = caffemodel(c.folder / "other", [1.0, -0.0, 3.0] + [1.0, 0.0, 3.0] * 99)
            with self.assertRaisesRegex(AssertionError, r"ip/0\[1\] is 0.0 .* and -0.0 .*; 1 of 300 values"):
                cluster.assert_same_weights(one, other)

    def test_traces_are_read_by_lane_and_partial_overlaps_are_found(self):
        with cluster.Cluster() as c:
            def span(name, ts, dur):
                return {"ph": "X", "name": name, "cat": "forward", "ts": ts, "dur": dur, "pid": 0, "tid": 1,
                        "args": {"clock": ts}}
            names = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "stream compute [0]"}}
            path = c.folder / "trace.json"
            path.write_text(json.dumps({"traceEvents": [span("b", 5, 10), span("a", 0, 8), span("c", 6, 2), names]}))
            trace = cluster.Trace(path)
            self.assertEqual([e["name"] for e in trace.find(lane="stream")], ["a", "b", "c"])
            self.assertEqual(len(trace.find("a", clock=0)), 1)
            self.assertEqual([(x["name"], y["name"]) for x, y in trace.partial_overlaps()], [("a", "b")])


if __name__ == "__main__":
    cluster.main()
