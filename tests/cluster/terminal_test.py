# tests/cluster/terminal_test.py - what a person sees on a terminal, and that files and pipes get none of it.
import os
import re
import signal
import termios
import time
import unittest

import cluster
import small_run
from pty_screen import Drawing, Terminal

NODE, DATA = cluster.BIN / "poseidon-node", cluster.BIN / "poseidon-data"
ENDLESS = cluster.ENDLESS
NARROW = 10**7  # iterations whose number leaves room for all the rest in forty columns
FIRST = re.compile(r"^ iter +\d+/\d+( +\d+\.\d%)?  (\|#* *\|  )?(left \S+|waiting \d+s|)$")
FACTS = re.compile(r"^ loss \S+  [\w./-]+ \S+  [\d.e+]+ images/s")
# A test phase in the middle and at the end, values that print, snapshots: lines that go above the live ones.
TESTED = """
layer {{ name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" }}
"""
MORE = "test_iter: 2 test_interval: 200 snapshot: 250"


class Seen(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.__enter__()
        self.folder = self.cluster.folder

    def solver(self, name="seen", iterations=600, more=MORE, accuracy="accuracy", **of_solver):
        text = small_run.NET.replace("{head}", TESTED.replace("accuracy", accuracy, 2)[:-1].replace(
            'top: "accuracy"', f'top: "{accuracy}"') + "{head}")
        return small_run.solver(self.folder, name, iterations=iterations, text=text, more=more, lr=0.0001, **of_solver)

    def terminal(self, **how):
        return Terminal(**how)

    def train(self, t, solver, *options, **how):
        return t.start(NODE, "--solver", solver, "--devices", "cpu:1", *options, **how)

    def live(self, screen):
        return [line for line in screen.lines if FIRST.match(line)]

    def sees_training(self, t):
        return t.wait_for(lambda s: self.live(s) and FACTS.match(s.lines[-1]), "the two live lines")

    def stop(self, t):
        """Ctrl-C, and the run that ends after it."""
        t.type("\x03")
        self.assertEqual(t.wait(), 130, t.screen.lines)

    def check_frames(self, t):
        """Whatever was said meanwhile, there never was a second copy of the live lines, nor any code but those known."""
        self.assertEqual(t.screen.faults, [])
        for frame in t.frames:
            live = [line for line in frame if " iter " in line]
            self.assertLessEqual(len(live), 1, "\n".join(frame))
            for line in frame:
                self.assertLessEqual(len(line), t.screen.columns)

    def test_two_lines_are_drawn_in_place_and_what_is_said_goes_above_them(self):
        with self.terminal() as t:
            began = time.monotonic()
            self.train(t, self.solver(iterations=ENDLESS, more="test_iter: 2 test_interval: 1000000"))
            wanted = rf"^ iter +\d+/{ENDLESS} +0\.\d%  \|#* *\|  left \S+\n loss \S+  accuracy \S+  [\d.e+]+ images/s$"
            t.wait_for(lambda s: re.search(wanted, "\n".join(s.lines[-2:])), "the two live lines, complete")
            self.stop(t)
            took = time.monotonic() - began
            self.check_frames(t)
            said = [line for line in t.screen.lines if line]
            self.assertRegex("\n".join(said), r"^test iteration 0: .*\n(.*\n)*.*got SIGINT.*\n(.*\n)*iteration \d+/.*$")
            # Calm: a line that has something new at most five times a second.
            drawn = [tuple(line for line in drawing.lines if " iter " in line) for drawing in t.screen.drawings]
            self.assertLessEqual(len(set(drawn)), 5 * took + 3)

    def test_at_the_end_there_is_what_was_said_and_the_last_interval(self):
        with self.terminal() as t:
            self.train(t, self.solver())
            self.assertEqual(t.wait(), 0)
            self.check_frames(t)
            lines = t.screen.lines
            # After the end: what was said, and the last interval, as a file would have it.
            self.assertEqual([line for line in lines if " iter " in line], [])
            self.assertRegex(lines[-1], r"^iteration 599/600: loss \S+ lr \S+ accuracy \S+ images/s \S+$")
            said = [line for line in lines[:-1] if line]
            self.assertEqual([line.split(":")[0] for line in said if line.startswith("test")],
                             [f"test iteration {c}" for c in (0, 200, 400, 600)])
            self.assertEqual([line[-20:] for line in said if line.startswith("snapshot")],
                             [f"_iter_{c}.caffemodel" for c in (250, 500, 600)])
            self.assertEqual(len(said), 7, lines)

    def test_forty_columns_are_enough(self):
        with self.terminal(columns=40) as t:
            self.train(t, self.solver(iterations=NARROW, more="", accuracy="accuracy_of_a_net_whose_author_likes_long_names"))
            t.wait_for(lambda s: self.live(s) and s.lines[-1].startswith(" loss"), "the live lines")
            self.stop(t)
            self.check_frames(t)

    def test_a_terminal_that_gets_narrower_and_wider_shows_no_leftovers(self):
        for tries_left in (3, 2, 1, 0):
            with self.terminal(columns=100) as t:
                self.train(t, self.solver(iterations=ENDLESS, more=""))
                self.sees_training(t)
                if all(self.resized(t, columns) for columns in (50, 36, 120, 44)):
                    return
        self.fail("each time the terminal got another size in the midst of a drawing")

    def resized(self, t, columns):
        """False where the size changed in the midst of a drawing."""
        if not t.resize(columns):
            return False
        lines = t.wait_for(lambda s: isinstance(s, Drawing) and s.columns == columns, f"a drawing of {columns} columns")
        self.assertEqual(len([line for line in lines if " iter " in line]), 1, lines)
        self.assertEqual(len([line for line in lines if "loss" in line]), 1, lines)
        self.assertEqual(len(lines), 2, lines)
        return True

    def test_colour_is_for_those_who_want_it(self):
        for env, colours in (({}, True), ({"NO_COLOR": "1"}, False), ({"CLICOLOR": "0"}, False), ({"NO_COLOR": ""}, True)):
            with self.subTest(**env), self.terminal(env=env) as t:
                # Kernels that sleep, so that on any machine the bar grows at the pace at which people see it drawn.
                profile = self.folder / "slow.profile"
                profile.write_text('net: "small" measured: "made up" batch: 16 gflop_s: 10\nlayer { name: "ip1" forward_ms: 10 backward_ms: 10 }\n')
                t.start(NODE, "--solver", self.solver(iterations=500, more=""), "--devices", f"replay:{profile}")
                t.wait_for(lambda s: any("|#" in line for line in self.live(s)), "a bar that is not empty")
                self.assertEqual(bool(t.screen.sgr), colours, t.screen.sgr)

    def test_a_dumb_terminal_and_a_pipe_get_plain_lines_and_no_codes(self):
        with self.terminal(env={"TERM": "dumb"}) as t:
            self.train(t, self.solver(iterations=20, more=""))
            self.assertEqual(t.wait(), 0)
            self.assertNotRegex(t.raw.replace("\r\n", "\n"), r"[\x00-\x09\x0b-\x1f\x7f]")
            on_terminal = t.screen.lines
        node = self.cluster.node("--solver", self.solver(iterations=20, more=""), "--devices", "cpu:1")
        self.assertEqual(node.wait(), 0)
        self.assertNotRegex(node.output, r"[\x00-\x09\x0b-\x1f\x7f]")
        for lines in on_terminal, node.lines:
            self.assertEqual([line.split(":")[0] for line in lines if line.startswith("iteration")], [f"iteration {i}/20" for i in range(20)])

    def test_where_standard_output_is_a_file_the_lines_are_drawn_on_standard_error(self):
        log = self.folder / "log"
        with self.terminal() as t, open(log, "w", encoding="utf-8") as out:
            self.train(t, self.solver(iterations=ENDLESS, more=""), stdout=out)
            self.sees_training(t)
            self.stop(t)
            self.check_frames(t)
            self.assertEqual([line for line in t.screen.lines if " iter " in line], [])
        self.assertNotIn("\033", log.read_text())
        with self.terminal() as t, open(log, "w", encoding="utf-8") as out:
            self.train(t, self.solver(), stdout=out)
            self.assertEqual(t.wait(), 0)
            self.assertEqual([line for line in t.screen.lines if line], [])
        text = log.read_text()
        self.assertNotIn("\033", text)
        self.assertEqual(len(re.findall(r"(?m)^iteration \d+/600: ", text)), 600)

    def test_ctrl_c_leaves_the_terminal_as_it_was(self):
        with self.terminal() as t:
            self.train(t, self.solver(iterations=ENDLESS, more=""))
            self.sees_training(t)
            t.type("\x03")
            self.assertEqual(t.process.wait(cluster.DEADLINE_S), 130)
            self.assertEqual(termios.tcgetattr(t.slave), t.modes)
            self.assertEqual(t.wait(), 130)
            self.check_frames(t)
            self.assertEqual([line for line in t.screen.lines if " iter " in line], [])
            self.assertTrue(any("got SIGINT" in line for line in t.screen.lines), t.screen.lines)
            self.assertEqual(t.screen.column, 0)  # the prompt begins a line

    def test_a_second_signal_leaves_the_prompt_a_line_of_its_own(self):
        with self.terminal() as t:
            self.train(t, self.solver(iterations=ENDLESS, more=""))
            self.sees_training(t)
            t.process.send_signal(signal.SIGSTOP)
            t.process.send_signal(signal.SIGINT)  # both wait, and are heard one after the other
            t.process.send_signal(signal.SIGTERM)
            t.process.send_signal(signal.SIGCONT)
            self.assertEqual(t.wait(), 143)
            self.assertEqual(t.screen.faults, [])
            self.assertEqual(t.screen.column, 0)

    def test_after_a_stop_the_lines_are_drawn_below_what_the_shell_has_written(self):
        with self.terminal() as t:
            self.train(t, self.solver(iterations=ENDLESS, more=""))
            self.sees_training(t)
            t.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, t.process.pid, os.WSTOPPED | os.WNOWAIT)
            t.others_write("\r\n[1]+  Stopped\r\n$ fg\r\n")
            t.process.send_signal(signal.SIGCONT)
            lines = t.wait_for(lambda s: len(self.live(s)) == 2 and FACTS.match(s.lines[-1]), "new lines below")
            self.assertEqual([line for line in lines if line][2:4], ["[1]+  Stopped", "$ fg"], lines)
            self.assertEqual(len(lines), 6, lines)

    def test_a_job_in_the_background_does_not_draw_into_the_prompt(self):
        with self.terminal() as t:
            solver = self.solver(iterations=ENDLESS, more="test_iter: 2 test_interval: 50")
            t.start("bash", "-c", 'set -m; "$@" & wait; :', "bash", NODE, "--solver", solver, "--devices", "cpu:1")
            began = time.monotonic()
            # It says something a second after it began to train, and in that time it would have drawn.
            t.wait_for(lambda s: any(line.startswith("test iteration 50:") for line in s.lines), "what it says")
            t.wait_for(lambda s: time.monotonic() > began + 1, "a second has passed")
            said = len(t.screen.lines)
            t.wait_for(lambda s: len(s.lines) > said + 1, "what it says later")
            for pid in cluster.processes_of(solver):
                if pid != t.process.pid:
                    os.kill(pid, signal.SIGINT)
            self.assertEqual(t.wait(), 0)
            self.assertNotIn("\033", t.raw)

    def test_names_from_files_move_no_cursor(self):
        with self.terminal() as t:
            self.train(t, self.solver(iterations=ENDLESS, more="", accuracy=r"evil\\033[2J\\007".replace(r"\\", "\\")))
            t.wait_for(lambda s: any("evil?[2J?" in line for line in s.lines), "the name, without its codes")
            self.assertEqual(t.screen.faults, [])

    def test_parameters_on_their_way_have_a_bar_and_a_run_that_stands_still_says_so(self):
        solver = self.solver(iterations=ENDLESS, more="", hidden=512)
        with self.terminal() as t, self.terminal() as other:
            slow = ["--link-mbit", "2"]  # 2.4 MB of parameters take ten seconds
            self.train(t, solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", "ps", *slow)
            t.wait_for(lambda s: any("listening" in line for line in s.lines), "its address")
            address = re.search(r"listening on (\S+);", "\n".join(t.screen.lines))[1]
            other.start(NODE, "--join", address, "--devices", "cpu:1", *slow)
            t.wait_for(lambda s: re.search(r"^ sending the parameters  \|#* *\|  [\d.]+ of \d+\.\d MB", s.lines[-1] if s.lines else ""), "the bar")
            other.wait_for(lambda s: re.search(r"^ receiving the parameters  \|#* *\|  [\d.]+ of \d+\.\d MB  left \d+s", s.lines[-1] if s.lines else ""), "its bar")
            t.wait_for(lambda s: re.search(r"^ iter +\d+/\d+ .*  waiting \d+s$", s.lines[-2] if len(s.lines) > 1 else ""), "that it waits")
            other.wait_for(lambda s: re.search(r"^ iter +[1-9]\d*/\d+ ", s.lines[-2] if len(s.lines) > 1 else ""), "an iteration of the joiner", 600)
            t.wait_for(lambda s: re.search(r"^ loss \S+  accuracy \S+  \S+ images/s  net [\d.]+/[\d.]+ [kM]B/s  hidden \d+%$",
                                           s.lines[-1] if s.lines else ""), "the network", 600)
            self.assertEqual(t.screen.faults + other.screen.faults, [])

    def test_long_commands_have_a_bar_under_their_lines(self):
        solver = self.solver(iterations=2, more="", hidden=1024, batch=192)
        node = self.cluster.node("--solver", solver, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 0, node)
        net, weights = self.folder / "seen.net.prototxt", small_run.snapshot_of(self.folder, "seen", 2)
        many = 10**7
        for what, words in (("testing", ("test", "--weights", weights)), ("timing", ("time",))):
            with self.subTest(what), self.terminal() as t:
                t.start(NODE, *words, "--model", net, "--devices", "cpu:1", "--iterations", many)
                t.wait_for(lambda s: re.search(rf"^ {what}  \|#* *\|  \d+ of \d+  left \S+$", s.lines[-1] if s.lines else ""), "the bar")
                t.process.send_signal(signal.SIGTERM)
                t.wait()
                self.assertEqual(t.screen.faults, [])

    def test_converting_has_a_bar_that_goes_when_it_is_done(self):
        picture = self.folder / "one.ppm"
        picture.write_bytes(b"P6 8 8 255\n" + bytes(192))
        listed = self.folder / "list.txt"
        listed.write_text("one.ppm 1\n" * 10**6)
        with self.terminal() as t:
            t.start(DATA, "convert", "images", listed, "--root", f"{self.folder}/", "--resize-height", 512, "--resize-width", 512,
                    "--encode-type", "jpg", "--out", self.folder / "out")
            t.wait_for(lambda s: re.search(r"^ convert \S+  \|#* *\|  \d+ of 1000000  left \S+$", s.lines[-1] if s.lines else ""), "the bar")
            t.process.send_signal(signal.SIGTERM)
            t.wait()
            self.assertEqual(t.screen.faults, [])
        listed.write_text("one.ppm 1\n" * 5)
        with self.terminal() as t:
            t.start(DATA, "convert", "images", listed, "--root", f"{self.folder}/", "--out", self.folder / "short")
            self.assertEqual(t.wait(), 0)
            self.assertRegex(t.screen.lines[-1], r": 5 images of 3x8x8 in \d+\.\d s$")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data")
    cluster.main()
