# tests/cluster/launch_test.py - tools/launch/ssh: host files, real runs on loopback, and how they end.
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import cluster
import small_run

TOOL = cluster.ROOT / "tools/launch/ssh"
# In place of ssh: hosts are names for this machine. `gone` cannot be reached. It writes its arguments to the
# file `calls`, and like ssh it passes standard input on but no signals.
SSH = """#!/bin/sh
echo "$*" | head -n 1 >> "${0%/*}/calls"
case $1 in gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;; esac
HOST=$1 exec sh -c "$2"
"""


def words_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


class HostFiles(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.file = self.cluster.folder / "hosts"

    def dry_run(self, text, *options, node=("--solver", "s.prototxt")):
        self.file.write_text(text)
        done = subprocess.run([TOOL, self.file, "--directory", "/run", "--program", "bin/node", "--ssh", "sh -e", *options,
                               "--dry-run", "--", *node], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def assert_runs(self, text, expected, *options, **more):
        code, lines, errors = self.dry_run(text, *options, **more)
        self.assertEqual((code, errors), (0, ""))
        wanted = []
        for name, host, rest in expected:
            line = f"cd /run && bin/node {rest} --token-file TOKEN"
            wanted.append(f"{name}: " + (f"sh -e {host} '{line}'" if host else line))
        self.assertEqual(lines, wanted)

    def assert_refused(self, text, *errors, options=(), node=("--solver", "s.prototxt")):
        """The messages, one a line, each with the file and where it fits the line."""
        code, lines, said = self.dry_run(text, *options, node=node)
        self.assertEqual((code, lines), (2, []))
        said = said.splitlines()
        self.assertEqual(len(said), len(errors), said)
        for line, wanted in zip(said, errors):
            self.assertTrue(line.startswith("tools/launch/ssh: "), line)
            self.assertIn(wanted.replace("FILE", str(self.file)), line)

    def test_names_ports_slots_users_and_comments(self):
        self.assert_runs("# the cluster\n\nhead:7700 # listens\n  big slots=2\t\nme@10.0.0.9:1\n", [
            ("head", "head", "--solver s.prototxt --listen 0.0.0.0:7700 --nodes 4"),
            ("big/0", "big", "--join head:7700"),
            ("big/1", "big", "--join head:7700"),
            ("10.0.0.9", "me@10.0.0.9", "--join head:7700")])

    def test_petuum_lines_in_the_order_of_their_ids(self):
        self.assert_runs("1 10.0.0.2 9999\n0\t10.0.0.1 9998\n2 10.0.0.2 10999\n", [
            ("10.0.0.1", "10.0.0.1", "--solver s.prototxt --listen 0.0.0.0:9998 --nodes 3"),
            ("10.0.0.2/0", "10.0.0.2", "--join 10.0.0.1:9998"),
            ("10.0.0.2/1", "10.0.0.2", "--join 10.0.0.1:9998")])

    def test_addresses_with_colons(self):
        code, lines, _ = self.dry_run("[fd00::1]:7700\nfd00::2\n[fd00::3]")
        self.assertEqual(code, 0)
        self.assertIn("--listen [::]:7700 --nodes 3", lines[0].replace("'\"'\"'", ""))
        for line, host in zip(lines[1:], ("fd00::2", "fd00::3")):
            self.assertTrue(line.startswith(f"{host}: sh -e {host} "), line)
            self.assertIn("--join [fd00::1]:7700", line.replace("'\"'\"'", ""))

    def test_this_machine_needs_no_ssh_and_one_node_no_listener(self):
        self.assert_runs("localhost slots=2\n", [
            ("localhost/0", None, "--solver s.prototxt --listen localhost:7600 --nodes 2"),
            ("localhost/1", None, "--join localhost:7600")])
        self.assert_runs("127.0.0.1\n", [("127.0.0.1", None, "--solver s.prototxt")])

    def test_the_first_node_gets_all_options_and_the_others_what_each_needs(self):
        self.assert_runs("a\nb\n", [
            ("a", "a", "--solver s --devices cpu:2 --staleness 1 --data-root=/d --trace t --listen 0.0.0.0:7 --nodes 2"),
            ("b", "b", "--join fast-a:7 --devices cpu:2 --data-root=/d")], "--port", "7", "--address", "fast-a",
            node="--solver s --devices cpu:2 --staleness 1 --data-root=/d --trace t".split())

    def test_the_options_of_each_node_are_options_that_a_joiner_takes(self):
        each = re.findall(r'"(--[\w-]+)"', re.search(r"^EACH = \(([^)]*)\)", TOOL.read_text(), re.M)[1])
        self.assertIn("--devices", each)
        node = cluster.BIN / "poseidon-node"
        table = json.loads(subprocess.run([node, "option-table"], capture_output=True, text=True, check=True).stdout)["options"]
        taken = {name for option in table if option["uses"]["joiner"] == "taken" for name in option["names"].split(",")}
        self.assertEqual(set(each) - taken, set())

    def test_every_bad_line_is_named_with_its_number_and_what_is_wrong(self):
        self.assert_refused("good\nbad:port\nc:70000\n-oProxyCommand=x\nd slots=0\ne 7600\n10.0.0.300\n[fd00::1\n@f\n",
                            'FILE:2: "port" is no port', 'FILE:3: "70000" is no port', 'FILE:4: "-oProxyCommand=x" is neither',
                            'FILE:5: "slots=0" is not understood', 'FILE:6: "7600" is not understood',
                            'FILE:7: "10.0.0.300" is no address', 'FILE:8: "[fd00::1" is neither', 'FILE:9: "" is no name')
        self.assert_refused("0 10.0.0.1 9999\n0 10.0.0.2 9999\n", "FILE:2: id 0 is there twice, first in line 1")
        self.assert_refused("0 10.0.0.1 9999\nhead\n", "FILE:2: another form")
        self.assert_refused("head\n0 10.0.0.1 9999\n", "FILE:2: `id ip port` after lines")
        self.assert_refused("# nothing\n\n", "FILE: names no host")
        self.assert_refused("localhost\nbeta\n", "FILE: the others cannot reach the first host as localhost")

    def test_wrong_use(self):
        self.assert_refused("a\nb\n", "--join after `--`", node=("--join", "x:1"))
        self.assert_refused("a\nb\n", "--nodes=3 after `--`", node=("--solver", "s", "--nodes=3"))
        self.assert_refused("a\nb\n", "nothing to do", node=())
        self.assert_refused("a\nb\n", "unrecognized arguments: --hosts", options=("--hosts", "4"))
        self.assert_refused("a\nb\n", '"70000" is no port', options=("--port", "70000"))
        self.assert_refused("a\nb\n", 'there is no such program', options=("--ssh", "no-such-ssh -x"))
        done = subprocess.run([TOOL, self.cluster.folder / "none", "--", "--solver", "s"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none: cannot be read: No such file", done.stderr)

    def test_an_empty_or_missing_token_file_is_refused_before_anything_starts(self):
        self.file.write_text("localhost slots=2\n")
        empty = self.cluster.folder / "empty"
        empty.write_text("\n")
        for path, says in (empty, "its first line is empty"), (self.cluster.folder / "none", "cannot be read"):
            done = subprocess.run([TOOL, self.file, "--token-file", path, "--", "--solver", "s"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"--token-file {path}: {says}", done.stderr)

    def test_help_names_every_option(self):
        done = subprocess.run([TOOL, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        for option in re.findall(r'add_argument\("(--[\w-]+)"', TOOL.read_text()):
            self.assertIn(f"\n  {option} ", done.stdout)


class Runs(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder
        self.ssh = self.folder / "ssh"
        self.ssh.write_text(SSH)
        self.ssh.chmod(0o755)

    def launch(self, hosts, *node, options=()):
        """The first host is 127.0.0.1, on a free port; others are what the stand-in takes for hosts."""
        file = self.folder / "hosts"
        file.write_text(hosts)
        return self.cluster.start(TOOL, file, "--address", "127.0.0.1", "--port", "0", "--directory", self.folder,
                                  "--program", cluster.BIN / "poseidon-node", "--ssh", self.ssh, *options, "--",
                                  *node, "--devices", "cpu:1", "--data-root", self.folder)  # so that all name the folder

    def endless(self):
        return small_run.solver(self.folder, "s", iterations=cluster.ENDLESS)

    def nodes(self, what):
        """Pids of the poseidon-node processes (not of their sh) whose command line has `what`."""
        program = (cluster.BIN / "poseidon-node").resolve()
        return [pid for pid in cluster.processes_of(self.folder)
                if pathlib.Path(f"/proc/{pid}/exe").resolve() == program and what in words_of(pid)]

    def assert_ended(self, run, code, last):
        self.assertEqual(run.wait(), code, run.output)
        self.assertRegex(run.errors[-1], last)
        cluster.wait_until(lambda: cluster.processes_of(self.folder) == [], "all processes have ended")

    def test_three_nodes_on_two_hosts_train_what_one_node_trains(self):
        one = small_run.solver(self.folder, "one", iterations=6, iter_size=3)
        alone = self.cluster.node("--solver", one, "--devices", "cpu:1")
        self.assertEqual(alone.wait(), 0, alone.output)
        three = small_run.solver(self.folder, "three", iterations=6)
        run = self.launch("127.0.0.1\nbeta slots=2 # two nodes\n", "--solver", three, "--routes", "ps")
        self.assertEqual(run.wait(), 0, run.output)
        self.assertEqual(run.errors, [])
        cluster.assert_same_weights(small_run.snapshot_of(self.folder, "one", 6), small_run.snapshot_of(self.folder, "three", 6))
        for name, text in ("127.0.0.1", "listening on"), ("beta/0", "joining"), ("beta/1", "joining"), ("127.0.0.1", "iteration 5/6"):
            self.assertTrue(any(line.startswith(f"{name}: {text}") for line in run.lines), run.output)
        calls = (self.folder / "calls").read_text()
        self.assertEqual(calls.count("beta"), 2, calls)

    def test_machines_are_added_to_a_run_and_leave_it_again(self):
        token = self.cluster.token_file("of both launchers")
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.endless(), options=("--token-file", token))
        at = run.wait_for(r"127\.0\.0\.1: listening on (\S+:\d+)")[1]
        run.wait_for(r"127\.0\.0\.1: iteration 2/")
        more = self.folder / "more"
        more.write_text("gamma slots=2\n")
        added = self.cluster.start(TOOL, more, "--add", at, "--token-file", token, "--directory", self.folder, "--program",
                                   cluster.BIN / "poseidon-node", "--ssh", self.ssh, "--", "--devices", "cpu:1", "--data-root", self.folder)
        run.wait_for(r"127\.0\.0\.1: view \d+: .*4 nodes train")
        added.signal(signal.SIGINT)
        self.assertEqual(added.wait(), 130, added.output)
        run.wait_for(r"127\.0\.0\.1: view \d+: .* left; 2 nodes train")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertRegex(run.output, r"(?m)^127\.0\.0\.1: snapshot .*/s_iter_\d+\.caffemodel$")

    def test_machines_cannot_be_added_without_the_token_or_a_run(self):
        more = self.folder / "more"
        more.write_text("gamma\n")
        for words, says in ((("--add", "127.0.0.1:7600"), "--token-file"), (("--add", "nonsense", "--token-file", self.cluster.token_file("t")), "nonsense")):
            done = subprocess.run([TOOL, more, *words, "--directory", self.folder, "--program", cluster.BIN / "poseidon-node", "--ssh", self.ssh, "--"],
                                  capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=cluster.DEADLINE_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)

    def test_the_secret_is_in_no_command_line_and_in_no_file(self):
        secret = "a secret for tests only"
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.endless(),
                          options=("--token-file", self.cluster.token_file(secret)))
        run.wait_for(r"127\.0\.0\.1: iteration 2/")
        self.assertEqual(len(self.nodes("--join")), 1)
        for pid in cluster.processes_of(self.folder):
            self.assertNotIn(secret, words_of(pid))
        holding = [p.name for p in self.folder.iterdir() if p.is_file() and secret.encode() in p.read_bytes()]
        self.assertEqual(holding, ["token0"])
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run.output)

    def test_every_run_draws_another_secret(self):
        fake = self.folder / "node"
        fake.write_text('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --token-file ] && cat "$2"; shift; done\n')
        fake.chmod(0o755)
        seen = []
        for _ in range(2):
            run = self.launch("127.0.0.1\n", "--solver", "s", options=("--program", fake))
            self.assertEqual(run.wait(), 0, run.output)
            seen.append(run.lines[0])
            self.assertRegex(seen[-1], r"^127\.0\.0\.1: [0-9a-f]{64}$")
        self.assertNotEqual(*seen)

    def test_ctrl_c_ends_all_in_order_with_a_snapshot_of_the_first_node(self):
        run = self.launch("127.0.0.1\nbeta\ngamma\n", "--solver", self.endless())
        run.wait_for(r"127\.0\.0\.1: iteration 5/")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertRegex(run.output, r"(?m)^127\.0\.0\.1: snapshot .*/s_iter_\d+\.caffemodel$")
        self.assertNotIn("SIGKILL", run.output)

    def test_ctrl_c_while_nodes_are_missing_ends_those_that_wait(self):
        # beta's program never joins, so the first node waits for it.
        (self.folder / "ssh").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.endless(), options=("--grace", "1"))
        run.wait_for("listening on")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertIn("launch: beta still runs: SIGKILL", run.output)  # this stand-in does not hear, ssh would not either
        self.assertIn("launch: beta does not answer", run.output)

    def test_a_second_ctrl_c_kills(self):
        stubborn = self.folder / "node"
        stubborn.write_text('#!/bin/sh\ntrap "" INT TERM\necho "up $*"\nwhile :; do sleep 1; done\n')
        stubborn.chmod(0o755)
        run = self.launch("127.0.0.1\n", "--solver", "s", options=("--program", stubborn, "--grace", "1000"))
        run.wait_for("up --solver")
        run.signal(signal.SIGINT)
        run.wait_for("once more kills")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "stopped by SIGINT")
        self.assertIn("launch: 127.0.0.1 still runs: SIGKILL", run.errors)

    def test_a_node_that_does_not_heed_sigterm_is_killed_after_the_grace_period(self):
        stubborn = self.folder / "node"
        stubborn.write_text('#!/bin/sh\ntrap "" INT TERM\ncase "$*" in *--join*) exit 7 ;; esac\n'
                            'echo "listening on 127.0.0.1:1; waiting"\nwhile :; do sleep 1; done\n')
        stubborn.chmod(0o755)
        run = self.launch("127.0.0.1\nbeta\n", "--solver", "s", options=("--program", stubborn, "--grace", "1"))
        self.assert_ended(run, 7, "^launch: beta: poseidon-node ended with code 7$")
        self.assertIn("launch: 127.0.0.1 still runs: SIGKILL", run.errors)

    def test_a_dead_node_that_nobody_survives_is_named_and_the_others_end_with_a_snapshot(self):
        run = self.launch("127.0.0.1\nbeta\ngamma\n", "--solver", self.endless(), "--survive", "0")
        run.wait_for(r"127\.0\.0\.1: iteration 20/")
        os.kill(self.nodes("--join")[0], signal.SIGKILL)
        self.assert_ended(run, 137, "^launch: (beta|gamma): poseidon-node was ended by SIGKILL")
        self.assertRegex(run.output, r"(?m)^127\.0\.0\.1: snapshot .*/s_iter_\d+\.caffemodel$")

    def test_each_node_that_dies_is_started_again_and_joins_those_that_have_gone_on(self):
        run = self.launch("127.0.0.1\nbeta\ngamma\n", "--solver", self.endless())
        run.wait_for(r"127\.0\.0\.1: iteration 20/")
        os.kill(self.nodes("--join")[0], signal.SIGKILL)
        name = run.wait_for(r"^launch: (beta|gamma): poseidon-node was ended by SIGKILL.* it is started again in 3 s")[1]
        run.wait_for(f"^{name}: joined: worker 3 of 3")
        # Until all have trained in that view: of what began with it the newcomer alone may not have all.
        run.wait_for(r"^127\.0\.0\.1: view \d+: worker 3 .* joined; 3 nodes train")
        for _ in range(2):
            run.wait_for(r"^127\.0\.0\.1: iteration", since=len(run.lines))
        os.kill(self.nodes("--solver")[0], signal.SIGKILL)
        run.wait_for(r"^launch: 127\.0\.0\.1: poseidon-node was ended by SIGKILL.* it is started again")
        run.wait_for(r"^127\.0\.0\.1: joined: worker 4 of 3")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertRegex(run.output, r"(?m)^\S+: snapshot .*/s_iter_\d+\.caffemodel$")

    def test_a_run_that_ends_while_a_node_is_on_its_way_back_has_ended_well(self):
        joined = 'echo "joined: worker {} of 3; this node listens on 127.0.0.1:{}"'
        run = self.fake("listen; until_gamma; exit 0",
                        "if [[ -e died ]]; then trap 'exit 143' TERM; echo \"back $2\"; touch back; forever; fi; "
                        + joined.format(1, 5) + "; touch died; kill -9 $$",
                        "until [[ -e died ]]; do sleep 0.1; done; " + joined.format(2, 6)
                        + "; until [[ -e back ]]; do sleep 0.1; done; touch up; exit 0")
        self.assertEqual(run.wait(), 0, run.output)
        self.assertIn("beta: back 127.0.0.1:1,127.0.0.1:6", run.lines)
        self.assertNotIn("still runs: SIGKILL", run.output)

    def fake(self, of_first, of_beta, of_gamma, options=()):
        """A program with one script per host; the first host's has to listen, gamma's to write the file `up`."""
        path = self.folder / "node"
        path.write_text('#!/bin/bash\nlisten() { echo "listening on 127.0.0.1:1; waiting"; }\n'
                        'forever() { while :; do sleep 0.1; done; }\nuntil_gamma() { until [[ -e up ]]; do sleep 0.1; done; }\n'
                        f'case ${{HOST:-first}} in\nfirst) {of_first} ;;\n'
                        f'beta) {of_beta} ;;\ngamma) {of_gamma} ;;\nesac\n')
        path.chmod(0o755)
        return self.launch("127.0.0.1\nbeta\ngamma\n", "--solver", "s", *options, options=("--program", path))

    def test_a_node_that_lost_a_peer_is_not_blamed_where_another_one_failed(self):
        run = self.fake("trap 'exit 143' TERM; listen; forever", "until_gamma; exit 3",
                        "trap 'exit 7' TERM; touch up; forever")  # so gamma's end is heard after beta's
        self.assert_ended(run, 7, "^launch: gamma: poseidon-node ended with code 7$")

    def test_nodes_that_know_each_other_may_finish_by_themselves_when_one_is_lost(self):
        # A SIGTERM in the midst of the last snapshot would end it, so none comes.
        run = self.fake("trap 'echo cut short; exit 143' TERM; listen; until_gamma; sleep 1; echo written; touch written; exit 3",
                        "echo joined: worker 1 of 3; until_gamma; exit 7",
                        "touch up; until [[ -e written ]]; do sleep 0.1; done; exit 3", options=("--survive", "0"))
        self.assert_ended(run, 7, "^launch: beta: poseidon-node ended with code 7$")
        self.assertIn("127.0.0.1: written", run.lines)
        self.assertNotIn("cut short", run.output)

    def test_a_host_that_cannot_be_reached_is_named_and_not_waited_for(self):
        run = self.launch("127.0.0.1\nbeta\ngone\n", "--solver", self.endless())
        self.assert_ended(run, 255, "^launch: gone: ssh could not reach it, or lost it: ssh: connect to host gone .*No route")
        self.assertIn("gone: ssh: connect to host gone port 22: No route to host", run.errors)

    def test_a_mistake_in_the_solver_starts_no_other_node(self):
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.folder / "none.prototxt")
        self.assert_ended(run, 2, r"^launch: 127\.0\.0\.1: poseidon-node ended with code 2: .*none\.prototxt")
        self.assertFalse((self.folder / "calls").exists())

    def test_a_wrong_option_of_poseidon_node(self):
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.endless(), "--no-such-option")
        self.assert_ended(run, 2, r"^launch: 127\.0\.0\.1: poseidon-node ended with code 2: .*--no-such-option")

    def test_a_missing_program_or_folder_says_which_options_say_where_they_are(self):
        run = self.launch("127.0.0.1\n", "--solver", "s", options=("--program", "bin/nothing"))
        self.assert_ended(run, 127, r"^launch: 127\.0\.0\.1: bin/nothing cannot be run in .*\(--program, --directory\): .*not found")
        run = self.launch("127.0.0.1\n", "--solver", "s", options=("--directory", self.folder / "none"))
        self.assert_ended(run, 126, r"^launch: 127\.0\.0\.1: .*/poseidon-node cannot be run in .*none \(--program, --directory\)")

    def test_nodes_end_when_the_launcher_is_killed_outright(self):
        run = self.launch("127.0.0.1\nbeta\n", "--solver", self.endless())
        run.wait_for(r"127\.0\.0\.1: iteration 5/")
        run.kill()
        run.wait()
        cluster.wait_until(lambda: cluster.processes_of(self.folder) == [], "all nodes have ended")
        self.assertEqual(len(list(self.folder.glob("s_iter_*.solverstate"))), 1)

    def test_a_quiet_run_starts_all_nodes_at_once(self):
        solver = small_run.solver(self.folder, "s", iterations=3)
        for words in ("--log-level", "quiet"), ("--quiet",):
            with self.subTest(words):
                with cluster.reserved_address() as address:
                    run = self.launch(f"{address}\nbeta\n", "--solver", solver, *words)
                    self.assertEqual(run.wait(), 0, run.output)
                self.assertEqual(len(run.lines), 1, run.output)
                self.assertRegex(run.lines[0], r"^127\.0\.0\.1: snapshot ")


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
