# tests/cluster/launchers_script_test.py - the batch file, the manifest and the unit of tools/launch with a PyTorch script, without their systems.
import os
import pathlib
import re
import shlex
import signal
import subprocess
import unittest

import cluster
import launchers_test
import programs
from elastic_world import EXACT
from launchers_test import LAUNCH, yaml
from torch_restarts_test import ELASTIC, KILL

# As srun --label does: lines of several tasks do not mix, nor those of a task's two streams.
LABELLED = '>(trap "" TERM; exec sed -u "s/^/$i: /")'
SRUN = launchers_test.SRUN.replace('"$@" < /dev/null &', f'"$@" < /dev/null 2> {LABELLED} > {LABELLED} &')
assert SRUN != launchers_test.SRUN
SAVES = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(3)))
print("waits", flush=True)
while True:
    signal.pause()
"""


class Scripts(launchers_test.Starts):
    def setUp(self):
        super().setUp()
        self.cluster.env = {**{k: v for k, v in self.cluster.env.items() if not k.startswith("POSEIDON_")}, "POSEIDON_LIBRARY": str(programs.LIBRARY),
                            "PYTHONPATH": str(programs.PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                            "POSEIDON_SILENCE_LIMIT": str(cluster.PATIENT_SILENCE_S), **EXACT}

    def elastic(self, wanted, *, without=(), ends=None):
        """The command of a worker that trains until so many are there, and none of the seats `without`."""
        script = self.folder / "script.py"
        script.write_text(ELASTIC)
        return [programs.PYTHON, script, *map(repr, ({}, (wanted, without), "all", ends or {}))]

    def are_equal(self, workers, text):
        digests = re.findall(r"(?m)digest (\d+ \w+)$", text)
        self.assertEqual((len(digests), len(set(digests))), (workers, 1), text)
        self.assertNotIn("different", text)


class Slurm(Scripts):
    def batch(self, tasks, *words):
        self.program("srun", SRUN)
        self.program("scontrol", "#!/bin/sh\necho 127.0.0.1\n")
        ports = [self.reserved_port() for _ in range(tasks)]
        self.cluster.env.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_ID="7", SLURM_NTASKS=str(tasks),
                                PORTS=" ".join(ports), POSEIDON_PORT=str(int(ports[0]) - 1), TORCHELASTIC_RESTART_COUNT="9")
        return self.cluster.start(LAUNCH / "slurm.sbatch", *words, cwd=self.folder)

    def test_worker_0_is_killed_and_joins_those_that_have_gone_on(self):
        job = self.batch(3, "--script", *self.elastic(3, without=(0,), ends={0: (3, "after the step", KILL)}))
        self.assertEqual(job.wait(), 0, job)
        self.are_equal(3, job.output)
        job.wait_for("^0: the worker ended with code 137; it joins the others in 3 s, restart 1 of 10$")
        job.wait_for("^0: restart 1 10$")
        self.assertEqual(list(self.folder.glob(".poseidon-*")), [])

    def test_one_that_always_fails_ends_nobody_else(self):
        self.cluster.env["POSEIDON_MAX_RESTARTS"] = "1"
        text = """
            echo "poseidon: joined: worker $RANK of 3" >&2
            if [ $RANK = 1 ]; then read x < fifo; exit 7; fi
            read x < fifo$RANK"""
        for name in "fifo", "fifo0", "fifo2":
            os.mkfifo(self.folder / name)
        job = self.batch(3, "--script", "sh", "-c", text)
        members = self.folder / ".poseidon-members-7"
        cluster.wait_until(lambda: {p.name for p in members.glob("*")} == set("012"), "all are members")
        (self.folder / "fifo").write_text("go\n")
        job.wait_for("restart 1 of 1$")
        (self.folder / "fifo").write_text("go\n")
        job.wait_for("^1: the worker ended with code 7; the others go on without it$")
        for name in "fifo0", "fifo2":
            (self.folder / name).write_text("go\n")
        self.assertEqual(job.wait(), 0, job)

    def test_one_that_was_never_a_member_is_not_started_again(self):
        job = self.batch(2, "--script", "sh", "-c", 'echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"; exit $((RANK * 7))')
        self.assertEqual(job.wait(), 7, job)
        self.assertNotIn("it joins the others", job.output)
        job.wait_for(f"^1: 1 of 2 at 127.0.0.1:{self.cluster.env['POSEIDON_PORT']}$")

    def saves_at_the_signal(self):
        """A job of two tasks whose scripts wait for Slurm's signal, and hear it."""
        script = self.folder / "saves.py"
        script.write_text(SAVES)
        job = self.batch(2, "--script", programs.PYTHON, script)
        cluster.wait_until(lambda: job.output.count("waits") == 2, "both wait")
        srun, = cluster.processes_of(self.folder / "bin/srun")
        os.kill(srun, signal.SIGTERM)
        return job

    def test_the_signal_before_the_time_is_over_reaches_the_script_which_is_not_started_again(self):
        job = self.saves_at_the_signal()
        self.assertEqual(job.wait(), 3, job)
        self.assertEqual(job.output.count("saved"), 2)

    def test_a_script_that_ends_as_its_task_hears_the_signal_keeps_its_code(self):
        # A task asks whether its script is there still: here it hears no before it has waited again.
        self.cluster.env["BASH_FUNC_kill%%"] = '() { while builtin kill "$@" 2> /dev/null; do sleep 0.05; done; return 1; }'
        job = self.saves_at_the_signal()
        self.assertEqual(job.wait(), 3, job)

    def test_without_a_command_it_says_what_is_missing(self):
        job = self.batch(2, "--script")
        self.assertEqual(job.wait(), 2, job)
        self.assertIn("or --script and a command", job.output)


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Kubernetes(Scripts):
    def setUp(self):
        super().setUp()
        self.by_kind = {d["kind"]: d for d in yaml.safe_load_all((LAUNCH / "kubernetes-script.yaml").read_text())}
        self.set = self.by_kind["StatefulSet"]["spec"]
        self.pod = self.set["template"]["spec"]
        self.container, = self.pod["containers"]
        self.env = {e["name"]: e.get("value") for e in self.container["env"]}

    def test_names_numbers_and_mounts_that_have_to_agree_do(self):
        service = self.by_kind["Service"]
        self.assertEqual(self.env["WORKERS"], str(self.set["replicas"]))
        name, domain, port = re.fullmatch(r"([\w-]+)\.([\w-]+):(\d+)", self.env["POSEIDON_HEAD"]).groups()
        self.assertEqual(name, self.by_kind["StatefulSet"]["metadata"]["name"] + "-0")
        self.assertEqual([domain, domain], [service["metadata"]["name"], self.set["serviceName"]])
        self.assertEqual([int(port)] * 2, [self.container["ports"][0]["containerPort"], service["spec"]["ports"][0]["port"]])
        labels = self.set["template"]["metadata"]["labels"]
        self.assertEqual([labels, labels], [self.set["selector"]["matchLabels"], service["spec"]["selector"]])
        mounts = {m["name"]: m["mountPath"] for m in self.container["volumeMounts"]}
        self.assertEqual(set(mounts), {v["name"] for v in self.pod["volumes"]} | {v["metadata"]["name"] for v in self.set["volumeClaimTemplates"]})
        self.assertEqual(self.container["workingDir"], mounts["work"])
        self.assertEqual(self.container["command"][-1], mounts["run"] + "/pod.sh")
        self.assertEqual(self.env["POSEIDON_TOKEN_FILE"], mounts["token"] + "/token")
        other, = (d for d in yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text()) if d["kind"] == "StatefulSet")
        self.assertEqual(other["spec"]["template"]["spec"]["containers"][0]["readinessProbe"], self.container["readinessProbe"])

    def start_pod(self, number, *command):
        script, work = self.folder / "pod.sh", self.folder / f"work{number}"
        if not script.exists():  # bash reads a script while it runs
            script.write_text(self.by_kind["ConfigMap"]["data"]["pod.sh"])
        work.mkdir(exist_ok=True)
        self.cluster.env["POSEIDON_POD"] = f"poseidon-script-{number}"
        return self.cluster.start("/bin/bash", script, *command, cwd=work, name=f"pod{number}.{len(self.cluster.nodes)}")

    def test_pods_begin_come_back_with_one_command_and_stay_when_the_run_has_ended(self):
        self.cluster.env.update(WORKERS="3", POSEIDON_PODS=" ".join(f"127.0.0.1:{self.reserved_port()}" for _ in range(3)),
                                POSEIDON_HEAD="unused", POSEIDON_TOKEN_FILE=str(self.cluster.token_file()), TORCHELASTIC_RESTART_COUNT="0",
                                TORCHELASTIC_MAX_RESTARTS="0")
        command = self.elastic(3, without=(0,), ends={0: (3, "after the step", KILL)})
        pods = [self.start_pod(number, *command) for number in range(3)]
        self.assertEqual(pods[0].wait(), 137, pods[0])  # Kubernetes starts the pod again
        pods[0].wait_for("^poseidon: nobody at join is in a run: this worker begins it")
        pods[0] = self.start_pod(0, *command)
        pods[0].wait_for("^poseidon: the worker at .* is in a run: this worker joins it")
        for pod in pods:
            pod.wait_for("^this worker has ended")
        self.are_equal(3, "\n".join(pod.output for pod in pods))
        for pod in pods:
            pod.signal(signal.SIGTERM)
            self.assertEqual(pod.wait(), 143, pod)
        self.start_pod(0, *command).wait_for("^this worker has ended")  # its machine has been drained

    def test_the_addresses_of_the_pods_follow_from_that_of_pod_0(self):
        self.cluster.env.update(WORKERS="3", POSEIDON_HEAD=self.env["POSEIDON_HEAD"])
        said = 'echo "$POSEIDON_LISTEN ${POSEIDON_NODES:-none} $POSEIDON_JOIN"'
        for number, nodes, others in (0, "3", (2, 1)), (1, "none", (2, 0)), (4, "none", (2, 1, 0)):
            joins = ",".join(f"poseidon-script-{other}.poseidon-script:7600" for other in others)
            self.start_pod(number, "sh", "-c", said).wait_for(f"^0.0.0.0:7600 {nodes} {joins}$")


class Systemd(launchers_test.Systemd):
    def setUp(self):
        super().setUp()
        self.text = (LAUNCH / "poseidon-script@.service").read_text()
        self.unit = self.folder / "poseidon-script@some.service"
        self.unit.write_text(self.text)

    def test_its_start_line_is_one_that_poseidon_node_takes(self):
        """The command line and the variables of the example reach the script."""
        variables = dict(line.split("=", 1) for line in (LAUNCH / "script.options").read_text().splitlines() if re.match(r"\w+=", line))
        line = re.search(r"^ExecStart=(.*)$", self.text, re.M)[1]
        self.assertEqual(shlex.split(line.replace("$COMMAND", variables.pop("COMMAND"))), ["/usr/bin/env", "python3", "/opt/train.py", "--epochs", "3"])
        self.assertEqual(variables, {"POSEIDON_JOIN": "c:7600,head:7600", "POSEIDON_LISTEN": "0.0.0.0:7600"})
        token = re.search(r"^Environment=.*POSEIDON_TOKEN_FILE=%d/(\w+)$", self.text, re.M)[1]
        self.assertIn(f"LoadCredential={token}:", self.text)

    def test_what_confines_a_script_is_what_confines_a_node(self):
        parts = [re.search(r"(?ms)^DynamicUser=.*", text)[0] for text in (self.text, (LAUNCH / "poseidon-node@.service").read_text())]
        self.assertEqual(*parts)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
