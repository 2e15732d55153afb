# tests/cluster/launch_script_test.py - tools/launch/local and ssh --script: what a worker of a script is given, and how the workers end.
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import cluster

LAUNCH = cluster.ROOT / "tools/launch"
# In place of ssh, as in launch_test.py: hosts are names for this machine, and `gone` cannot be reached.
SSH = """#!/bin/sh
case $1 in gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;; esac
echo "$*" >> "${0%/*}/calls"
HOST=$1 exec sh -c "$2"
"""
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
FOREVER = "while :; do read x < fifo; done"  # nobody opens it to write
PATIENT = """
import os, signal, sys
try:
    print("up", os.environ["RANK"], flush=True)
    signal.pause()
finally:
    print("put away", flush=True)
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster(env={"PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder
        self.cluster.env = {k: v for k, v in self.cluster.env.items() if k != "OMP_NUM_THREADS" and not k.startswith("POSEIDON_")}
        os.mkfifo(self.folder / "fifo")

    def local(self, workers, *command):
        return self.cluster.start(LAUNCH / "local", workers, *command, cwd=self.folder)

    def sh(self, workers, text):
        return self.local(workers, "sh", "-c", text, self.folder)  # so that processes_of() finds them

    def ssh(self, hosts, *command, options=("--port", "0")):
        (self.folder / "hosts").write_text(hosts)
        (self.folder / "ssh").write_text(SSH)
        (self.folder / "ssh").chmod(0o755)
        return self.cluster.start(LAUNCH / "ssh", self.folder / "hosts", "--script", "--address", "127.0.0.1", "--directory", self.folder,
                                  "--ssh", self.folder / "ssh", *options, "--", *command)

    def assert_ended(self, run, code, last):
        self.assertEqual(run.wait(), code, run)
        self.assertRegex(run.errors[-1], last)
        cluster.wait_until(lambda: cluster.processes_of(self.folder) == [], "all processes have ended")

    def environments(self, run, names):
        """By worker, what SHOW has printed."""
        self.assertEqual(run.wait(), 0, run)
        found = dict(re.match(r"(\S+?)(?:: | \| )(\{.*)", line).groups() for line in run.lines if "{" in line)
        self.assertEqual(sorted(found), sorted(names), run)
        return [json.loads(found[name]) for name in names]


class Local(Scripts):
    def test_workers_find_what_torchrun_sets_and_what_poseidon_wants(self):
        seen = self.environments(self.local(3, sys.executable, "-c", SHOW), "012")
        port = int(seen[0]["MASTER_PORT"])
        for place, env in enumerate(seen):
            for name, value in {"RANK": place, "WORLD_SIZE": 3, "LOCAL_RANK": place, "LOCAL_WORLD_SIZE": 3, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
                                "ROLE_NAME": "default", "ROLE_RANK": place, "ROLE_WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                                "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_USE_AGENT_STORE": False,
                                "OMP_NUM_THREADS": 1, "USE_LIBUV": 0, "GLOO_SOCKET_IFNAME": "lo",
                                "POSEIDON_LISTEN": "" if place else f"127.0.0.1:{port + 1}", "POSEIDON_NODES": "" if place else 3,
                                "POSEIDON_JOIN": f"127.0.0.1:{port + 1}" if place else ""}.items():
                self.assertEqual(env.get(name), str(value), name)
        self.assertEqual(len({env["TORCHELASTIC_RUN_ID"] for env in seen}), 1)
        self.assertEqual(len({env["POSEIDON_TOKEN"] for env in seen}), 1)
        self.assertRegex(seen[0]["POSEIDON_TOKEN"], "^[0-9a-f]{64}$")

    def test_what_the_user_has_set_stays_and_an_agents_store_does_not(self):
        self.cluster.env.update(OMP_NUM_THREADS="3", USE_LIBUV="1", POSEIDON_TOKEN_FILE="mine", POSEIDON_JOIN="old:1", TORCHELASTIC_USE_AGENT_STORE="True")
        run = self.local(2, sys.executable, "-c", SHOW)
        first, _ = self.environments(run, "01")
        self.assertEqual([first[n] for n in ("OMP_NUM_THREADS", "USE_LIBUV", "POSEIDON_TOKEN_FILE", "POSEIDON_JOIN", "TORCHELASTIC_USE_AGENT_STORE")],
                         ["3", "1", "mine", "", "False"])
        self.assertNotIn("POSEIDON_TOKEN", first)
        self.assertNotIn("OMP_NUM_THREADS=", run.output)

    def test_one_worker_is_alone_and_has_all_threads(self):
        run = self.local(1, sys.executable, "-c", SHOW)
        only, = self.environments(run, "0")
        self.assertEqual((only["RANK"], only["WORLD_SIZE"]), ("0", "1"))
        for name in "POSEIDON_LISTEN", "POSEIDON_JOIN", "OMP_NUM_THREADS":
            self.assertNotIn(name, only)
        self.assertEqual(run.errors, [])

    def test_both_ports_are_held_also_where_a_worker_listens_and_no_other_process_gets_them(self):
        listens = ("import os, socket, sys; s = socket.create_server(('', int(os.environ['MASTER_PORT']))); print('up', os.environ['MASTER_PORT'], flush=True); "
                   "os.open('fifo', os.O_RDONLY)")
        run = self.local(1, sys.executable, "-c", listens)
        port = int(run.wait_for(r"up (\d+)")[1])
        for host, taken in ("127.0.0.1", port), ("", port), ("127.0.0.1", port + 1):
            with socket.socket() as other, self.assertRaises(OSError) as refused:
                other.bind((host, taken))
            self.assertEqual(refused.exception.errno, errno.EADDRINUSE)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143, run)

    def test_output_is_shown_by_line_whatever_it_consists_of(self):
        run = self.sh(2, 'printf "10 %%\\r100 %%\\nbytes \\377\\nno end of line"; echo wrong >&2; cat; echo read')
        self.assertEqual(run.wait(), 0, run)
        for place in "01":
            for text in "100 %", "bytes \N{REPLACEMENT CHARACTER}", "no end of lineread":
                self.assertIn(f"{place} | {text}", run.lines)
            self.assertIn(f"{place} | wrong", run.errors)

    def test_the_exit_code_is_that_of_the_worker_that_failed_first_as_a_shell_has_it(self):
        self.assert_ended(self.sh(3, f"if [ $RANK = 1 ]; then kill -9 $$; fi; {FOREVER}"), 137, "^launch: 1: sh was ended by SIGKILL$")
        self.assert_ended(self.sh(3, f"[ $RANK = 0 ] && exit 0; [ $RANK = 2 ] && echo why >&2 && exit 7; trap 'exit 9' TERM; {FOREVER}"), 7,
                          "^launch: 2: sh ended with code 7: why$")
        self.assert_ended(self.local(2, "no-such-program"), 127, "^launch: [01]: no-such-program cannot be run in .*: No such file")

    def test_a_worker_that_ends_well_leaves_the_others_their_time(self):
        run = self.sh(2, 'if [ $RANK = 0 ]; then echo done; exit 0; fi; read x < fifo; echo "also $x"')
        run.wait_for("^0 . done")
        (self.folder / "fifo").write_text("done\n")
        self.assertEqual(run.wait(), 0, run)
        self.assertIn("1 | also done", run.lines)

    def test_what_a_worker_leaves_behind_is_not_waited_for(self):
        self.assertEqual(self.sh(2, f"({FOREVER}) & exit 0").wait(), 0)
        cluster.wait_until(lambda: cluster.processes_of(self.folder) == [], "all processes have ended")

    def test_ctrl_c_reaches_each_worker_as_pythons_interrupt(self):
        run = self.local(2, sys.executable, "-c", PATIENT, self.folder)
        for place in "01":
            run.wait_for(f"{place} . up")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        for place in "01":
            self.assertIn(f"{place} | put away", run.lines)

    def test_a_second_ctrl_c_kills(self):
        run = self.sh(2, f'trap "" INT TERM; echo up; {FOREVER}')
        for place in "01":
            run.wait_for(f"{place} . up")
        run.signal(signal.SIGINT)
        run.wait_for("once more kills")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertIn("launch: 1 still runs: SIGKILL", run.errors)

    def test_workers_end_when_the_launcher_is_killed_outright(self):
        run = self.local(2, sys.executable, "-c", PATIENT, self.folder)
        for place in "01":
            run.wait_for(f"{place} . up")
        run.kill()
        run.wait()
        cluster.wait_until(lambda: cluster.processes_of(self.folder) == [], "all workers have ended")

    def test_a_python_without_a_module_is_named_with_what_helps(self):
        run = self.local(2, sys.executable, "-c", "raise ModuleNotFoundError(\"No module named 'torch'\")")
        self.assert_ended(run, 1, f"No module named 'torch'. That was \"{sys.executable}\": tools/dependencies --python installs PyTorch")

    def test_a_library_that_is_missing_is_built_once_and_the_user_is_told(self):
        shutil.copytree(LAUNCH, self.folder / "tools/launch")
        build = self.folder / "tools/build"
        build.write_text('#!/bin/sh\ncd "${0%/*}/.."; echo "builds $*"; [ ! -e broken ] || exit 3; mkdir -p build/release/lib; touch build/release/lib/libposeidon.so\n')
        build.chmod(0o755)
        (self.folder / "broken").touch()
        command = (self.folder / "tools/launch/local", 2, "sh", "-c", "echo $POSEIDON_LIBRARY $PYTHONPATH")
        failed = self.cluster.start(*command)
        self.assert_ended(failed, 3, "^launch: the build failed with code 3 .*tools/dependencies")
        (self.folder / "broken").unlink()
        run = self.cluster.start(*command)
        self.assertEqual(run.wait(), 0, run)
        self.assertIn("launch: build/release/lib/libposeidon.so is not built yet: tools/build poseidon builds it now, which takes some minutes", run.errors)
        self.assertIn("builds poseidon", run.errors)
        self.assertTrue(any(line.startswith(f"1 | {self.folder}/build/release/lib/libposeidon.so {self.folder}/apps/python") for line in run.lines), run)
        again = self.cluster.start(*command)
        self.assertEqual(again.wait(), 0, again)
        self.assertNotIn("built", again.output)

    def test_wrong_options(self):
        for words, says in ((("--max-restarts", "x", "2", "true"), '"x" is no number of restarts: 0 or more is needed. See'),
                            (("2", "--max-restarts", "1", "true"), "--max-restarts after the number of workers: options come before it"),
                            (("--add", "127.0.0.1:1", "2", "true"), "the run has a token of its own; give its file with --token-file"),
                            (("--token-file", "none", "2", "true"), "none: cannot be read: No such file"),
                            (("--nodes", "2", "true"), "unrecognized arguments: --nodes")):
            with self.subTest(says):
                self.assert_ended(self.local(*words), 2, "^tools/launch/local: .*" + re.escape(says))

    def test_one_worker_with_a_token_file_listens_for_those_that_are_added_later(self):
        seen, = self.environments(self.local("--token-file", self.cluster.token_file(), 1, sys.executable, "-c", SHOW), "0")
        self.assertEqual((seen["POSEIDON_NODES"], seen["POSEIDON_JOIN"]), ("1", ""))
        self.assertRegex(seen["POSEIDON_LISTEN"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(seen["POSEIDON_TOKEN"], "a token for tests only")

    def test_workers_that_are_added_know_members_and_no_rank(self):
        where = "10.0.0.1:7601,[fe80::1]:41735"
        for place, env in enumerate(self.environments(self.local("--add", where, "--token-file", self.cluster.token_file(), 2, sys.executable, "-c", SHOW), "01")):
            self.assertEqual([env[f"POSEIDON_{name}"] for name in ("JOIN", "LISTEN", "NODES", "TOKEN")], [where, "", "", "a token for tests only"])
            self.assertEqual((env["LOCAL_RANK"], env["LOCAL_WORLD_SIZE"]), (str(place), "2"))
            for name in "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT":
                self.assertNotIn(name, env)

    def test_help_and_wrong_use(self):
        for words, code in (("--help",), 0), ((), 2), (("2",), 2), (("0", "true"), 2), (("two", "true"), 2):
            done = subprocess.run([LAUNCH / "local", *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, (done.stderr if code else done.stdout)[:6]), (code, "usage:"))


class Ssh(Scripts):
    def test_workers_are_counted_by_host_and_neighbours(self):
        run = self.ssh("127.0.0.1\nbeta slots=2\ngamma\n127.0.0.1\n", sys.executable, "-c", SHOW)
        seen = self.environments(run, ["127.0.0.1/0", "127.0.0.1/1", "beta/0", "beta/1", "gamma"])
        self.assertEqual([env.get("HOST") for env in seen], [None, None, "beta", "beta", "gamma"])
        for name, wanted in {"RANK": "01234", "WORLD_SIZE": "55555", "LOCAL_RANK": "01010", "LOCAL_WORLD_SIZE": "22221", "GROUP_RANK": "00112",
                             "GROUP_WORLD_SIZE": "33333"}.items():
            self.assertEqual("".join(env[name] for env in seen), wanted, name)
        port = int(seen[0]["MASTER_PORT"])
        self.assertEqual([env["MASTER_PORT"] for env in seen], [str(port)] * 5)
        self.assertEqual([env.get("OMP_NUM_THREADS") for env in seen], ["1", "1", "1", "1", None])
        self.assertEqual([env["POSEIDON_LISTEN"] + env["POSEIDON_JOIN"] for env in seen], [f"127.0.0.1:{port + 1}"] * 5)

    def test_the_secret_is_in_the_environment_alone(self):
        secret = "a secret: 'for' \"tests\" $only"
        token = self.cluster.token_file(secret)
        run = self.ssh("127.0.0.1\nbeta\n", sys.executable, "-c", PATIENT, self.folder, options=("--port", "0", "--token-file", token))
        for place in "01":
            run.wait_for(f"up {place}")
        holding = 0
        for pid in cluster.processes_of(self.folder):
            process = pathlib.Path(f"/proc/{pid}")
            self.assertNotIn(secret, (process / "cmdline").read_text())
            self.assertEqual((process / "environ").stat().st_mode & 0o777, 0o400)
            holding += f"POSEIDON_TOKEN={secret}\0".encode() in (process / "environ").read_bytes()
        self.assertEqual(holding, 2)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.is_file() and secret.encode() in p.read_bytes()], [pathlib.Path(token).name])
        run.signal(signal.SIGTERM)
        self.assert_ended(run, 143, "^launch: stopped by SIGTERM$")

    def test_the_first_worker_that_fails_ends_all_and_is_named(self):
        run = self.ssh("127.0.0.1\nbeta slots=2\n", "sh", "-c", f"if [ $RANK = 2 ]; then kill -9 $$; fi; {FOREVER}", self.folder)
        self.assert_ended(run, 137, "^launch: beta/1: sh was ended by SIGKILL$")
        run = self.ssh("127.0.0.1\ngone\n", "sh", "-c", FOREVER, self.folder)
        self.assert_ended(run, 255, "^launch: gone: ssh could not reach it, or lost it: ssh: connect .*No route")

    def test_ctrl_c_reaches_the_workers_of_all_hosts(self):
        run = self.ssh("127.0.0.1\nbeta\n", sys.executable, "-c", PATIENT, self.folder)
        for place in "01":
            run.wait_for(f"up {place}")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertIn("beta: put away", run.lines)

    def test_wrong_use(self):
        with cluster.reserved_address() as address, socket.create_server(("127.0.0.1", int(address.split(":")[1]))):
            taken = address.split(":")[1]
            for hosts, command, options, says in (("127.0.0.1\n", (), (), "after `--` comes the command line of a script"),
                                                  ("127.0.0.1\n", ("--solver", "s"), (), "after `--` comes the command line of a script"),
                                                  ("127.0.0.1\n", ("true",), ("--add", "x:1"), "the run has a token of its own; give its file"),
                                                  ("127.0.0.1\n", ("true",), ("--add", "x", "--token-file", "t"), "--add x: HOST:PORT is needed"),
                                                  ("127.0.0.1\n", ("true",), ("--max-restarts", "-1"), "\"-1\" is no number of restarts"),
                                                  ("127.0.0.1\n", ("true",), ("--max-restarts", "two"), "\"two\" is no number of restarts"),
                                                  ("127.0.0.1\n", ("true",), ("--program", "x"), "--script does not go with --program"),
                                                  ("127.0.0.1\n", ("true",), ("--port", taken), f"port {taken} or the one after it cannot be had"),
                                                  ("beta\n", ("true",), ("--port", "0"), "beta: the workers of a script have to know its port")):
                with self.subTest(says):
                    run = self.ssh(hosts, *command, options=options)
                    self.assert_ended(run, 2, "^tools/launch/ssh: .*" + re.escape(says))


if __name__ == "__main__":
    cluster.main()
