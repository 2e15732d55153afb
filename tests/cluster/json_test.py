# tests/cluster/json_test.py - --json and --quiet: what programs read, and nothing else.
import json
import re
import subprocess
import unittest

import cluster
import small_run

ACCURACY = 'layer {{ name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" }}\n'
MORE = "test_iter: 2 test_interval: 4 snapshot: 4"


def run(program, *words):
    return subprocess.run([cluster.BIN / program, *map(str, words)], capture_output=True, text=True, timeout=cluster.DEADLINE_S)


class Events(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.__enter__()
        self.folder = self.cluster.folder
        self.path = small_run.solver(self.folder, "s", iterations=8, text=small_run.NET.replace("{head}", ACCURACY + "{head}"), more=MORE)

    def events(self, text):
        events = [json.loads(line) for line in text.splitlines()]
        for e in events:
            self.assertRegex(e["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual([e["event"] for e in events].count("end"), 1, text)
        self.assertEqual(events[-1]["event"], "end", text)
        return events

    def of(self, events, kind):
        return [e for e in events if e["event"] == kind]

    def test_the_events_of_a_training_say_what_its_lines_say(self):
        plain = run("poseidon-node", "--solver", self.path, "--devices", "cpu:1")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        done = run("poseidon-node", "--solver", self.path, "--devices", "cpu:1", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        events = self.events(done.stdout)
        lines = re.findall(r"(?m)^iteration (\d+)/(\d+): loss (\S+) lr (\S+) accuracy (\S+) images/s (\S+)", plain.stdout)
        shown = self.of(events, "progress")
        self.assertEqual(len(lines), 8)
        self.assertEqual([(str(e["clock"]), str(e["last_clock"]), f"{e['loss']:.4g}", f"{e['learning_rate']:.4g}",
                           f"{e['outputs']['accuracy']:.4g}") for e in shown], [line[:5] for line in lines])
        self.assertEqual([e["images"] for e in shown], [16 * (i + 1) for i in range(8)])
        for e in shown:
            self.assertGreater(e["images_per_s"], 0)
            self.assertEqual((e["hidden"], e["bytes_out_per_s"], e["bytes_in_per_s"]), (None, None, None))
            self.assertEqual(set(e["outputs"]), {"accuracy", "loss"})
        self.assertEqual([(str(e["clock"]), f"{e['outputs']['accuracy']:.6g}", f"{e['outputs']['loss']:.6g}") for e in self.of(events, "test")],
                         re.findall(r"(?m)^test iteration (\d+): accuracy (\S+) loss (\S+)", plain.stdout))
        self.assertEqual([e["path"] for e in self.of(events, "snapshot")], re.findall(r"(?m)^snapshot (\S+)", plain.stdout))
        self.assertEqual((events[-1]["exit_code"], events[-1]["reason"]), (0, ""))

    def test_the_events_of_a_cluster_tell_its_notes_its_network_and_who_joins(self):
        path = small_run.solver(self.folder, "two", iterations=30, hidden=256)
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", "ps", "--json")
        address = first.wait_for(r'"text":"listening on (\S+);')[1]
        other = self.cluster.node("--join", address, "--devices", "cpu:1", "--json", "--log-level", "debug")
        self.assertEqual(self.cluster.wait_all(), [0, 0], first)
        events = self.events(first.output)
        self.assertTrue(any(e["text"].startswith("worker 1 joined") for e in self.of(events, "note")), first.output)
        shown = self.of(events, "progress")
        hidden = [e["hidden"] for e in shown if e["hidden"] is not None]  # none where an interval ended before any update
        self.assertTrue(hidden and all(0 <= share <= 1 for share in hidden), shown)
        for rate in "bytes_out_per_s", "bytes_in_per_s":
            self.assertGreater(max(e[rate] or 0 for e in shown), 0, shown)
        self.assertTrue(self.of(self.events(other.output), "detail"), other.output)

    def test_a_run_that_fails_says_why_in_its_last_event_and_on_standard_error(self):
        missing = small_run.solver(self.folder, "missing")
        (self.folder / "missing.net.prototxt").write_text((self.folder / "missing.net.prototxt").read_text().replace("made-images", "no-images"))
        done = run("poseidon-node", "--solver", missing, "--json")
        self.assertEqual(done.returncode, 2)
        end = self.events(done.stdout)[-1]
        self.assertEqual(end["exit_code"], 2)
        self.assertIn("no-images", end["reason"])
        self.assertEqual(end["reason"] + "\n", done.stderr)
        absent = run("poseidon-node", "--solver", self.folder / "absent", "--json")
        self.assertEqual((absent.returncode, self.events(absent.stdout)[-1]["exit_code"]), (2, 2))

    def test_quiet_is_silent_but_for_results(self):
        silent = small_run.solver(self.folder, "silent", iterations=4, more="snapshot_after_train: false")
        done = run("poseidon-node", "--solver", silent, "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = run("poseidon-node", "--solver", self.path, "--quiet")
        self.assertRegex(done.stdout, r"^(test iteration \d+: \S.*\n|snapshot \S+\n)+$")
        both = run("poseidon-node", "--solver", self.path, "--quiet", "--json")
        self.assertEqual({e["event"] for e in self.events(both.stdout)}, {"test", "snapshot", "end"})
        failed = run("poseidon-node", "--solver", self.folder / "absent", "--quiet")
        self.assertEqual((failed.returncode, failed.stdout), (2, ""))
        self.assertIn("absent", failed.stderr)

    def test_words_that_contradict_each_other_are_refused(self):
        for words, text in [(("--quiet", "--log-level", "debug"), "--quiet does not go with --log-level debug: --quiet is --log-level quiet"),
                            (("--json", "--nodes", 2, "--explain-routes"), "--explain-routes=json")]:
            done = run("poseidon-node", "--solver", self.path, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        self.assertEqual(run("poseidon-node", "--solver", self.path, "--quiet", "--log-level", "quiet").returncode, 0)

    def test_the_page_about_events_names_every_verb_of_the_help(self):
        page = (cluster.ROOT / "docs/json-events.md").read_text()
        verbs = re.findall(r"(?m)^  ([a-z-]+)  ", run("poseidon-node", "--help").stdout.split("\nVerbs ")[1].split("\n\n")[0])
        self.assertIn("go-on", verbs)
        for verb in verbs:
            self.assertIn("--json", run("poseidon-node", verb, "--help").stdout, verb)
            if verb != "train":  # which the page is about
                self.assertRegex(page, rf"(?m)^\| `poseidon-node [^|]*\b{verb}`", verb)

    def test_the_other_verbs_have_events_too(self):
        self.assertEqual(run("poseidon-node", "--solver", self.path, "--quiet").returncode, 0)
        net, weights = self.folder / "s.net.prototxt", small_run.snapshot_of(self.folder, "s", 8)
        test = ["test", "--model", net, "--weights", weights, "--iterations", 3, "--devices", "cpu:1"]
        plain = run("poseidon-node", *test).stdout
        events = self.events(run("poseidon-node", *test, "--json").stdout)
        self.assertEqual([f"{e['outputs']['accuracy']:.6g}" for e in self.of(events, "batch")], re.findall(r"Batch \d, accuracy = (\S+)", plain))
        result = self.of(events, "result")[0]
        self.assertEqual(f"{result['loss']:.6g}", re.search(r"(?m)^Loss: (\S+)", plain)[1])
        self.assertEqual(f"{result['outputs']['accuracy']:.6g}", re.search(r"(?m)^accuracy = (\S+)", plain)[1])
        quiet = run("poseidon-node", *test, "--quiet").stdout
        self.assertEqual(quiet, plain[plain.index("Loss: "):])

        time = ["time", "--model", net, "--iterations", 2, "--devices", "cpu:1"]
        events = self.events(run("poseidon-node", *time, "--json").stdout)
        self.assertLess({"data", "conv1", "pool1", "ip1", "loss"}, {e["name"] for e in self.of(events, "layer")})
        self.assertGreater(self.of(events, "result")[0]["images_per_s"], 0)
        self.assertRegex(run("poseidon-node", *time, "--quiet").stdout, r"^iteration .* images/s, .*\n$")

        devices = self.of(self.events(run("poseidon-node", "device-query", "--json").stdout), "devices")[0]
        self.assertRegex(devices["cpu"], r"^cpu: \d+ cores")
        refused = run("poseidon-node", "status", "--json", "--attach", "127.0.0.1:1")
        self.assertEqual((refused.returncode, self.events(refused.stdout)[-1]["exit_code"]), (2, 2))

    def test_status_of_a_run_for_programs(self):
        path = small_run.solver(self.folder, "served", iterations=cluster.ENDLESS, lr=0.0001)
        node = self.cluster.node("--solver", path, "--devices", "cpu:1", "--web", "127.0.0.1:0")
        at = node.wait_for(r"page at http://(\S+)/")[1]
        node.wait_for("^iteration 3/")
        run_now = self.of(self.events(run("poseidon-node", "status", "--json", "--attach", at).stdout), "status")[0]["run"]
        self.assertEqual((run_now["model"], run_now["stage"], run_now["last_clock"]), ("small", "training", cluster.ENDLESS))
        self.assertGreaterEqual(run_now["clock"], 3)
        self.assertEqual([w["condition"] for w in run_now["workers"]], ["up"])

    def test_poseidon_data_has_events_for_what_it_makes(self):
        source = small_run.images(self.folder)
        out = self.folder / "out"
        words = ["convert", "db", source, "--out", out]
        events = self.events(run("poseidon-data", *words, "--json").stdout)
        self.assertEqual({k: events[0][k] for k in ("event", "command", "path", "images", "shape")},
                         {"event": "result", "command": "convert", "path": str(out), "images": 192, "shape": "1x28x28"})
        again = run("poseidon-data", "--json", *words)
        self.assertEqual((again.returncode, self.events(again.stdout)[-1]["exit_code"]), (2, 2))
        self.assertEqual(again.stderr, f"poseidon-data: {self.events(again.stdout)[-1]['reason']}\n")
        self.assertEqual(run("poseidon-data", "mean", "--source", out, "--out", self.folder / "mean", "--quiet").stdout, "")
        info = self.events(run("poseidon-data", "info", out, "--json").stdout)[0]
        self.assertEqual((info["images"], info["kind"], sum(info["labels"].values())), (192, "LMDB of Datum", 192))


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data")
    cluster.main()
