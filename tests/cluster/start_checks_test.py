# tests/cluster/start_checks_test.py - what poseidon-node says, or refuses, before training begins.

import cluster
import small_run

DEPLOY = """
name: "deploy"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 6 } } }
layer { name: "scores" type: "InnerProduct" bottom: "data" top: "scores" inner_product_param { num_output: 4 } }
"""


class StartChecks(small_run.MadeUp):
    def write(self, *lines, without=()):
        fields = {"net": f'"{self.folder}/net.prototxt"', "base_lr": "0.1", "lr_policy": '"fixed"', "max_iter": "2",
                  "snapshot_prefix": f'"{self.folder}/small"'}
        self.solver.write_text("".join(f"{key}: {value}\n" for key, value in fields.items() if key not in without)
                               + "\n".join(lines) + "\n")

    def node(self, *words, cwd=None):
        return cluster.run("poseidon-node", *words, cwd=cwd)

    def train(self, *words):
        return self.node("--solver", self.solver, *words)

    def assert_refused(self, done, pattern):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def assert_warned(self, done, pattern):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, pattern)

    def test_a_solver_that_is_complete_gets_no_warning(self):
        self.write()
        done = self.train()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_max_iter_nothing_would_be_trained(self):
        self.write(without=("max_iter",))
        self.assert_refused(self.train(), r"solver\.prototxt: it has no max_iter, so nothing would be trained\. .*max_iter: 10000")

    def test_fields_that_are_hardly_meant_are_said_with_their_line(self):
        for line, text in (("test_interval: 500", "6: test_interval is 500, but there is no test_iter, so nothing is tested"),
                           ("momentum: 1", "6: momentum is 1: at 1 or above")):
            self.write(line)
            self.assert_warned(self.train(), rf"solver\.prototxt:{text}")
        self.write("base_lr: -0.1", without=("base_lr",))
        self.assert_warned(self.train(), r"solver\.prototxt:5: base_lr is -0\.1: below 0, each step makes the loss larger")
        self.write(without=("base_lr",))
        self.assert_warned(self.train(), r"solver\.prototxt:2: base_lr is missing, so it is 0 and nothing is learned")
        self.write('lr_policy: "step"', "stepsize: 1", without=("lr_policy",))
        self.assert_warned(self.train(), r'solver\.prototxt:5: lr_policy "step" without gamma: gamma is 0')
        self.write("base_lr: nan", without=("base_lr",))
        self.assert_refused(self.train(), r"solver\.prototxt:5: base_lr is nan, it must be a finite number")

    def test_a_snapshot_prefix_that_cannot_be_written_is_refused_at_the_start(self):
        self.write(f'snapshot_prefix: "{self.folder}/net.prototxt/small"', without=("snapshot_prefix",))
        self.assert_refused(self.train(), r'solver\.prototxt: no snapshot can be written to snapshot_prefix ".*small": Not a directory')
        self.write("snapshot_after_train: false", f'snapshot_prefix: "{self.folder}/net.prototxt/small"', without=("snapshot_prefix",))
        self.assertEqual(self.train().returncode, 0)  # no snapshot is due
        self.write(f'snapshot_prefix: "{self.folder}/new/small"', without=("snapshot_prefix",))
        self.assertEqual(self.train().returncode, 0)
        self.assertEqual(sorted(p.name for p in (self.folder / "new").iterdir()), ["small_iter_2.caffemodel", "small_iter_2.solverstate", "small_run.json"])

    def test_solver_mode_gpu_without_a_gpu_is_said_and_the_cpu_trains(self):
        self.write("solver_mode: GPU", "device_id: 1")
        done = self.train()
        if "solver_mode" not in done.stderr:
            self.skipTest("this machine has a GPU")
        self.assert_warned(done, r"solver\.prototxt: solver_mode: GPU asks for GPU 1, and the CPU trains: .*--devices cpu trains without this line")
        done = self.train("--devices", "cpu")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.write("solver_mode: CPU", "device_id: 1")
        self.assertEqual(self.train().stderr, "")

    def test_solver_mode_gpu_trains_on_the_gpu_that_device_id_names(self):
        plugin = cluster.BIN / "libposeidon_gpu_simulated.so"
        if not plugin.exists():
            self.skipTest("no simulated GPU in this build")
        self.write("solver_mode: GPU", "device_id: 1")
        graph = self.folder / "graph.json"
        for words, on_gpu in ((), True), (("--devices", "cpu"), False):
            done = self.train(*(words or ("--gpu-plugin", plugin)), "--graph", graph)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual("copy_out" in graph.read_text(), on_gpu)  # only replicas on GPUs have one
        self.write("solver_mode: GPU", "device_id: 64")
        self.assertRegex(self.train("--log-level", "debug").stderr, "asks for GPU 64, and the CPU trains")
        self.write()
        self.assert_refused(self.train("--gpu-plugin", plugin), "--gpu-plugin belongs to GPUs, as in --devices 0")

    def test_options_of_clusters_are_said_on_a_node_alone(self):
        self.write()
        self.assert_warned(self.train("--wire", "float16", "--own-data"), "^--own-data, --wire have no effect: this node trains alone")
        self.assert_warned(self.train("--staleness", "2"), "^--staleness has no effect: this node trains alone")

    def test_own_data_on_one_node_of_two_is_said_by_the_node_that_joins(self):
        self.write()
        first = self.cluster.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", "2", "--devices", "cpu:1", "--own-data")
        second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:1")
        second.wait_for("^--own-data is given to the first node and not to this one: .* Give it to all nodes, or to none")
        self.assertEqual((first.wait(), second.wait()), (0, 0))

    def test_staleness_with_a_large_momentum_is_said(self):
        for momentum, said in ((0.9, True), (0.5, False)):
            self.write(f"momentum: {momentum}")
            first = self.cluster.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", "2", "--devices", "cpu:1", "--staleness", "1")
            second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:1")
            self.assertEqual((first.wait(), second.wait()), (0, 0))
            self.assertEqual("staleness 1 with momentum 0.9 may diverge" in "\n".join(first.errors), said, first.errors)

    def test_a_deploy_net_is_nothing_to_test(self):
        deploy = self.folder / "deploy.prototxt"
        deploy.write_text(DEPLOY)
        self.write()
        self.assertEqual(self.train().returncode, 0)
        done = self.node("test", "--model", deploy, "--weights", self.folder / "small_iter_2.caffemodel")
        self.assert_refused(done, "has no data layer but an input: it is a deploy net")

    def test_files_of_another_kind_are_named(self):
        self.write()
        net, weights = self.folder / "net.prototxt", self.folder / "small_iter_2.caffemodel"
        self.assertEqual(self.train().returncode, 0)
        self.assert_refused(self.train("--snapshot", weights), r"--snapshot .*small_iter_2\.caffemodel: these are weights\. --weights starts from them")
        self.assert_refused(self.train("--weights", weights.with_suffix(".solverstate")), "this is the state of a solver. --snapshot resumes")
        self.assert_refused(self.node("--solver", net), "net.prototxt: this is a net, and a solver is needed here")
        for verb in "test", "time":
            self.assert_refused(self.node(verb, "--model", self.solver, "--weights", weights), "solver.prototxt: this is a solver, and a net is needed here")

    def test_a_page_that_is_not_there_is_not_a_cluster_that_is_not_there(self):
        done = self.node("status", "--attach", "127.0.0.1:1")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^poseidon-node status: no page at 127\.0\.0\.1:1: .* A node serves its page if it is started with --web")
        drawn = cluster.run("poseidon-graph", "--attach", "127.0.0.1:1")
        self.assertIn("started with --web", drawn.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
