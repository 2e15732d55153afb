# tests/cluster/signals_test.py - a signal ends a run, or has a snapshot written, whatever the run is doing.
import itertools
import signal
import subprocess
import time
import unittest

import cluster
import small_run

TEST_DATA = """
layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: TEST }} transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: TRAIN }} transform"""
WITH_TESTS = small_run.NET.replace('layer {{ name: "data" type: "Data" top: "data" top: "label" transform', TEST_DATA.lstrip())
LONG_TEST = "test_iter: 100000000 test_interval: {}"


class TheFirstMilliseconds(small_run.MadeUp):
    def test_a_signal_before_the_run_has_begun_ends_it_with_a_word(self):
        self.solver.write_text(f'net: "{self.net}" base_lr: 0.1 lr_policy: "fixed" max_iter: {cluster.ENDLESS} '
                               f'snapshot_prefix: "{self.folder}/s" snapshot_after_train: false')
        heard = 0
        for step in itertools.count():  # later and later, until the program itself has heard some
            if heard == 10:
                break
            node = subprocess.Popen([cluster.BIN / "poseidon-node", "--solver", self.solver], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(step / 2000)  # any moment will do
            node.terminate()
            said, error = node.communicate(timeout=cluster.DEADLINE_S)
            if node.returncode == -signal.SIGTERM:  # it was no program of ours yet
                continue
            self.assertEqual(node.returncode, 143, error)
            self.assertTrue("ended by a signal" in error or "told to end" in error or "SIGTERM" in said + error, (said, error))
            heard += 1


class Signals(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def two_nodes(self, name, **of_solver):
        path = small_run.solver(self.cluster.folder, name, iterations=cluster.ENDLESS, **of_solver)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1", "--log-level", "debug")
        address = first.wait_for(cluster.LISTENING)[1]
        return [first, self.cluster.node("--join", address, "--devices", "cpu:1", "--log-level", "debug")]

    def snapshots(self, name):
        return sorted(path.name for path in self.cluster.folder.glob(f"{name}_iter_*"))

    def test_ctrl_c_in_the_test_before_the_first_iteration_ends_the_run_and_writes_nothing(self):
        for signalled in (0, 1):
            with self.subTest(worker=signalled):
                nodes = self.two_nodes("early", text=WITH_TESTS, more=LONG_TEST.format(1000))
                for node in nodes:
                    node.wait_for(r"membership: all are ready")
                nodes[signalled].signal(signal.SIGINT)
                for node in nodes:
                    node.wait_for(rf"^ending before the first iteration: worker {signalled} got SIGINT$")
                self.assertEqual([nodes[signalled].wait(), nodes[1 - signalled].wait()], [130, 0], nodes[0].output)
                self.assertEqual(self.snapshots("early"), [])

    def test_ctrl_c_in_a_test_phase_ends_the_run_with_a_snapshot(self):
        nodes = self.two_nodes("late", text=WITH_TESTS, more="test_initialization: false " + LONG_TEST.format(3))
        nodes[0].wait_for(r"^iteration 2/")  # the test phase comes next, and never ends
        nodes[0].signal(signal.SIGINT)
        for node in nodes:
            node.wait_for(r"^ending after iteration 2: worker 0 got SIGINT$")
        self.assertEqual([node.wait() for node in nodes], [130, 0], nodes[0].output)
        self.assertEqual(self.snapshots("late"), ["late_iter_3.caffemodel", "late_iter_3.solverstate"])

    def test_sighup_on_any_node_writes_a_snapshot_and_training_goes_on(self):
        nodes = self.two_nodes("kept", more="snapshot_after_train: false")
        nodes[0].wait_for(r"^iteration 1/")
        for node in nodes:
            before = len(self.snapshots("kept"))
            node.signal(signal.SIGHUP)
            cluster.wait_until(lambda: len(self.snapshots("kept")) == before + 2, "a snapshot has been written")
            reached = max(int(name.split("_iter_")[1].split(".")[0]) for name in self.snapshots("kept"))
            nodes[0].wait_for(rf"^iteration ({reached + 5}|\d{{{len(str(reached)) + 1},}})/")
        nodes[0].stop()
        self.assertEqual(nodes[1].wait(), 0, nodes[1].output)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
