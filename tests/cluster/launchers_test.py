# tests/cluster/launchers_test.py - the batch file, the manifests and the unit of tools/launch, without their systems.
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import cluster
import small_run

try:
    import yaml
except ImportError:
    yaml = None

LAUNCH = cluster.ROOT / "tools/launch"
# In place of Slurm: all tasks on this machine, numbered, their nodes at the ports of PORTS. A signal reaches all their processes.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
ports=($PORTS)
for ((i = 0; i < SLURM_NTASKS; i++)); do
  SLURM_PROCID=$i SLURM_LOCALID=$((${ports[i]:-0} - ports[0])) SLURMD_NODENAME=127.0.0.1 "$@" < /dev/null & tasks[i]=$!
done
trap 'for task in "${tasks[@]}"; do kill -TERM "$task" $(cat "/proc/$task/task/$task/children"); done' TERM
worst=0
for task in "${tasks[@]}"; do
  wait "$task"
  while kill -0 "$task" 2> /dev/null; do wait "$task"; done
  wait "$task"; code=$?
  ((code <= worst)) || worst=$code
done
exit $worst
"""


class Starts(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def reserved_port(self):
        return self.enterContext(cluster.reserved_address()).split(":")[1]


class Slurm(Starts):
    def batch(self, tasks, *node):
        self.program("srun", SRUN)
        self.program("scontrol", "#!/bin/sh\necho \"$*\" > \"${0%/*}/asked\"\necho 127.0.0.1\nseq -f n%g 20000\n")
        self.cluster.env.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_ID="7",
                                SLURM_NTASKS=str(tasks), POSEIDON_PROGRAM=str(cluster.BIN / "poseidon-node"),
                                POSEIDON_EACH=f"--devices cpu:1 --data-root {self.folder}",
                                PORTS=" ".join(ports := [self.reserved_port() for _ in range(tasks)]), POSEIDON_PORT=ports[0])
        return self.cluster.start(LAUNCH / "slurm.sbatch", *node, cwd=self.folder)

    def test_the_first_task_listens_and_the_others_join(self):
        job = self.batch(3, "--solver", small_run.solver(self.folder, "s", iterations=5))
        self.assertEqual(job.wait(), 0, job.output)
        self.assertRegex(job.output, r"(?m)^listening on 0\.0\.0\.0:\d+; waiting for 2 nodes$")
        self.assertTrue(small_run.snapshot_of(self.folder, "s", 5).exists(), job.output)
        self.assertEqual((self.folder / "bin/asked").read_text(), "show hostnames n[1-2]\n")
        self.assertEqual(list(self.folder.glob(".poseidon-*")), [])

    def test_the_token_is_this_users_alone(self):
        job = self.batch(2, "--solver", small_run.solver(self.folder, "s", iterations=cluster.ENDLESS))
        job.wait_for("^iteration 2/")
        token, = self.folder.glob(".poseidon-token*")
        self.assertEqual(token.stat().st_mode & 0o777, 0o600)
        self.assertRegex(token.read_text(), r"^[0-9a-f]{64}\n$")

    def test_one_task_trains_alone(self):
        job = self.batch(1, "--solver", small_run.solver(self.folder, "s", iterations=2))
        self.assertEqual(job.wait(), 0, job.output)
        self.assertNotIn("listening", job.output)

    def test_the_signal_before_the_time_is_over_leaves_one_snapshot(self):
        job = self.batch(2, "--solver", small_run.solver(self.folder, "s", iterations=cluster.ENDLESS))
        job.wait_for("^iteration 5/")
        srun, = (pid for pid in cluster.processes_of(self.folder / "bin/srun"))
        os.kill(srun, signal.SIGTERM)  # Slurm signals all tasks: #SBATCH --signal without B:
        self.assertEqual(job.wait(), 143, job.output)
        self.assertEqual(len(list(self.folder.glob("s_iter_*.solverstate"))), 1, job.output)
        self.assertIn("#SBATCH --signal=TERM@", (LAUNCH / "slurm.sbatch").read_text())

    def test_a_node_that_dies_joins_those_that_have_gone_on(self):
        job = self.batch(3, "--solver", small_run.solver(self.folder, "s", iterations=cluster.ENDLESS))
        job.wait_for("^iteration 5/")

        def node_with(option):
            return next(p for p in cluster.processes_of(cluster.BIN / "poseidon-node")
                        if re.search(rf"{option}\0.*{self.folder}", pathlib.Path(f"/proc/{p}/cmdline").read_text()))

        os.kill(node_with("--join"), signal.SIGKILL)
        job.wait_for("^the node ended with code 137; it joins the others in 3 s")
        job.wait_for(r"^view \d+: worker 3 .* joined; 3 nodes train")
        # Until all have trained in that view: of what began with it the newcomer alone may not have all.
        for _ in range(2):
            job.wait_for("^iteration", since=len(job.lines))
        os.kill(node_with("--nodes"), signal.SIGKILL)
        job.wait_for("^joined: worker 4 of 3")
        srun, = cluster.processes_of(self.folder / "bin/srun")
        os.kill(srun, signal.SIGTERM)
        self.assertEqual(job.wait(), 143, job.output)
        self.assertEqual(list(self.folder.glob(".poseidon-*")), [])

    def test_without_options_it_says_what_is_missing(self):
        job = self.batch(2)
        self.assertEqual(job.wait(), 2, job.output)
        self.assertIn("at least --solver", job.output)


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Kubernetes(Starts):
    def setUp(self):
        super().setUp()
        documents = list(yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text()))
        self.by_kind = {d["kind"]: d for d in documents}
        self.assertEqual(len(self.by_kind), len(documents))
        self.set = self.by_kind["StatefulSet"]["spec"]
        self.pod = self.set["template"]["spec"]
        self.container, = self.pod["containers"]
        self.env = {e["name"]: e.get("value") for e in self.container["env"]}
        self.files = self.by_kind["ConfigMap"]["data"]

    def test_names_and_numbers_that_have_to_agree_do(self):
        service = self.by_kind["Service"]
        self.assertEqual(self.env["POSEIDON_NODES"], str(self.set["replicas"]))
        name, domain, port = re.fullmatch(r"([\w-]+)\.([\w-]+):(\d+)", self.env["POSEIDON_HEAD"]).groups()
        self.assertEqual(name, self.by_kind["StatefulSet"]["metadata"]["name"] + "-0")
        self.assertEqual(domain, service["metadata"]["name"])
        self.assertEqual(domain, self.set["serviceName"])
        self.assertEqual(int(port), self.container["ports"][0]["containerPort"])
        self.assertEqual(int(port), service["spec"]["ports"][0]["port"])
        labels = self.set["template"]["metadata"]["labels"]
        self.assertEqual(self.set["selector"]["matchLabels"], labels)
        self.assertEqual(service["spec"]["selector"], labels)

    def test_the_pods_find_each_other_before_they_are_ready(self):
        service = self.by_kind["Service"]["spec"]
        self.assertEqual(service["clusterIP"], "None")
        self.assertIs(service["publishNotReadyAddresses"], True)
        self.assertEqual(self.set["podManagementPolicy"], "Parallel")

    def test_every_mount_has_its_volume_and_every_path_its_mount(self):
        volumes = {v["name"] for v in self.pod["volumes"]} | {v["metadata"]["name"] for v in self.set["volumeClaimTemplates"]}
        mounts = {m["name"]: m["mountPath"] for m in self.container["volumeMounts"]}
        self.assertEqual(set(mounts), volumes)
        for path in (self.env["POSEIDON_SOLVER"], self.env["POSEIDON_SNAPSHOTS"], self.env["POSEIDON_TOKEN_FILE"]):
            self.assertTrue(any((path + "/").startswith(m + "/") for m in mounts.values()), path)
        config = next(v for v in self.pod["volumes"] if "configMap" in v)
        self.assertEqual(config["configMap"]["name"], self.by_kind["ConfigMap"]["metadata"]["name"])
        for file in (self.env["POSEIDON_SOLVER"], self.container["command"][-1]):
            self.assertIn(pathlib.Path(file).name, self.files)
            self.assertEqual(str(pathlib.Path(file).parent), mounts[config["name"]])
        self.assertIn(f'snapshot_prefix: "{self.env["POSEIDON_SNAPSHOTS"]}/run"', self.files["solver.prototxt"])
        self.assertNotIn("Secret", self.by_kind)  # applying the file must not replace the token by one that all know

    def test_the_solver_is_one_that_poseidon_reads(self):
        solver = self.folder / "solver.prototxt"
        solver.write_text(self.files["solver.prototxt"])
        done = subprocess.run([cluster.BIN / "poseidon-graph", solver, "--input", "1x28x28", "--nodes", "3", "-o",
                               self.folder / "x.json"], cwd=cluster.ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_ready_is_a_pod_that_listens(self):
        probe = self.container["readinessProbe"]["exec"]["command"]
        table = "  sl  local_address rem_address   st\n   0: 00000000:1DB0 00000000:0000 {} 00000000\n"
        for state, code in ("0A", 0), ("01", 1):
            (self.folder / "tcp").write_text(table.format(state))
            command = [word.replace("/proc/net/tcp6", "").replace("/proc/net/tcp", str(self.folder / "tcp")) for word in probe]
            self.assertEqual(subprocess.run(command).returncode, code)

    def start_pod(self, number):
        script = self.folder / "pod.sh"
        if not script.exists():  # bash reads a script while it runs
            script.write_text(self.files["pod.sh"])
        return self.cluster.start("/bin/bash", script, name=f"poseidon-{number}.{len(self.cluster.nodes)}")

    def pods(self, iterations):
        """Pods 0 and 1, as they start at first."""
        (self.folder / "snapshots").mkdir()
        solver = small_run.solver(self.folder, "s", iterations=iterations, prefix=self.folder / "snapshots/run")
        solver.write_text(re.sub(r"(max_iter: \d+)", r"\n\1\n", solver.read_text()))
        at = [f"127.0.0.1:{self.reserved_port()}" for _ in range(3)]
        self.cluster.env.update(
            POSEIDON_NODES="2", POSEIDON_HEAD=at[0], POSEIDON_PODS=" ".join(at), POSEIDON_SURVIVE="1", POSEIDON_SOLVER=str(solver),
            POSEIDON_SNAPSHOTS=str(self.folder / "snapshots"), POSEIDON_TOKEN_FILE=str(self.cluster.token_file()),
            POSEIDON_EACH=f"--devices cpu:1 --data-root {self.folder}", POSEIDON_PROGRAM=str(cluster.BIN / "poseidon-node"))
        self.solver = solver
        return [self.pod_number(0), self.pod_number(1)]

    def pod_number(self, number):
        self.cluster.env["POSEIDON_POD"] = f"poseidon-{number}"
        return self.start_pod(number)

    def test_pod_0_listens_the_other_joins_and_a_finished_run_stays(self):
        first, other = self.pods(4)
        first.wait_for("^the run has ended")
        self.assertTrue((self.folder / "snapshots/run_iter_4.caffemodel").exists())
        other.wait_for("^joined: worker 1 of 2")
        other.wait_for("^joining", since=1 + max(i for i, line in enumerate(other.lines) if line.startswith("joined: worker 1 of 2")))
        for pod in (first, other):
            pod.signal(signal.SIGTERM)
            self.assertEqual(pod.wait(), 143, pod.output)

    def test_a_pod_that_is_moved_leaves_and_comes_back_while_pod_0_trains_on(self):
        first, other = self.pods(cluster.ENDLESS)
        first.wait_for("^iteration 5/")
        other.signal(signal.SIGTERM)  # as when its machine is drained
        self.assertEqual(other.wait(), 143, other.output)
        first.wait_for("^view 2: worker 1 .* left; 1 node trains")
        again = self.pod_number(1)
        again.wait_for("^joined: worker 2 of 2")
        first.wait_for(r"^view \d+: worker 2 .* joined; 2 nodes train")

    def node_of(self, pod):
        """The process of poseidon-node that this pod runs."""
        number = re.search(r"poseidon-(\d)", pod.name)[1]
        port = self.cluster.env["POSEIDON_PODS"].split()[int(number)]
        pid, = (p for p in cluster.processes_of(cluster.BIN / "poseidon-node")
                if f"0.0.0.0:{port.split(':')[1]}".encode() in pathlib.Path(f"/proc/{p}/cmdline").read_bytes())
        return pid

    def test_each_pod_that_dies_joins_those_that_have_gone_on(self):
        first, other = self.pods(cluster.ENDLESS)
        first.wait_for("^iteration 5/")
        os.kill(self.node_of(other), signal.SIGKILL)
        first.wait_for(r"^view \d+: worker 2 .* joined; 2 nodes train")
        other.wait_for("^joined: worker 2 of 2")
        # Until both have trained in that view: of what began with it the newcomer alone may not have all.
        joined = 1 + next(i for i, line in enumerate(first.lines) if re.match(r"view \d+: worker 2 .* joined", line))
        first.wait_for("^iteration", since=joined)
        first.wait_for("^iteration", since=len(first.lines))
        os.kill(self.node_of(first), signal.SIGKILL)
        self.assertEqual(first.wait(), 137, first.output)  # Kubernetes starts the pod again
        # Routes may have changed once more in between, which is a view, too.
        other.wait_for(r"^view \d+: worker 0 .* is lost; 1 node trains")
        again = self.pod_number(0)
        again.wait_for("^the node at .* is in a run: this node joins it")
        again.wait_for("^joined: worker 3 of 2")
        other.wait_for(r"^view \d+: worker 3 .* joined; 2 nodes train")

    def test_the_addresses_of_the_pods_follow_from_that_of_pod_0(self):
        asked = self.program("node", "#!/bin/sh\necho \"$*\"; sleep 60\n")
        self.pods(4)[1].kill()
        self.cluster.env.update(POSEIDON_PODS="", POSEIDON_NODES="3", POSEIDON_HEAD="poseidon-0.poseidon:7600", POSEIDON_PROGRAM=str(asked))
        self.pod_number(1).wait_for("^--join poseidon-2.poseidon:7600,poseidon-0.poseidon:7600 --listen 0.0.0.0:7600 ")
        self.pod_number(3).wait_for("^--join poseidon-2.poseidon:7600,poseidon-1.poseidon:7600,poseidon-0.poseidon:7600 ")
        self.pod_number(0).wait_for("--join poseidon-2.poseidon:7600,poseidon-1.poseidon:7600 --nodes 3 --survive 1 ")

    def test_pod_0_that_is_stopped_writes_a_snapshot_from_which_it_goes_on(self):
        first, other = self.pods(cluster.ENDLESS)
        first.wait_for("^iteration 5/")
        first.signal(signal.SIGTERM)
        self.assertEqual(first.wait(), 143, first.output)
        state, = (self.folder / "snapshots").glob("*.solverstate")
        reached = int(re.search(r"_iter_(\d+)", state.name)[1])
        self.solver.write_text(re.sub(r"max_iter: \d+", f"max_iter: {reached + 3}", self.solver.read_text()))
        again = self.pod_number(0)
        again.wait_for("^the run has ended")
        self.assertIn(f"iteration {reached + 2}/{reached + 3}", again.output)
        self.assertNotIn(f"iteration {reached - 1}/", again.output)


class Systemd(Starts):
    def setUp(self):
        super().setUp()
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        text = (LAUNCH / "poseidon-node@.service").read_text()
        self.unit = self.folder / "poseidon-node@some.service"
        self.unit.write_text(text.replace("/usr/local/bin/poseidon-node", str(cluster.BIN / "poseidon-node")))
        self.text = text

    def test_systemd_has_nothing_to_say_about_the_unit(self):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.unit], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_it_is_confined_and_not_by_what_would_break_it(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", self.unit],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)  # exposure of at most 3.0 of 10
        settings = dict(line.split("=", 1) for line in self.text.splitlines() if re.match(r"\w+=", line))
        for broken in ("MemoryDenyWriteExecute", "PrivateDevices", "PrivateNetwork"):
            self.assertNotIn(broken, settings)

    def test_its_start_line_is_one_that_poseidon_node_takes(self):
        line = re.search(r"^ExecStart=\S+ (.*)$", self.text, re.M)[1]
        solver = small_run.solver(self.folder, "s", iterations=1)
        words = line.replace("%d/token", str(self.cluster.token_file())).replace("$OPTIONS", f"--solver {solver}").split()
        node = self.cluster.node(*words)
        self.assertEqual(node.wait(), 0, node.output)


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
