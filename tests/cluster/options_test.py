# tests/cluster/options_test.py - every option of poseidon-node is taken, idle or refused as the table says, for each kind of node and beside each other one.
"""The table comes from `poseidon-node option-table`, and what follows from it is reckoned here a second time. With arguments the same verb
takes these as training would, and begins none: it says the node's role and its warnings, or refuses them with exit code 2. With "-" alone it
answers one line after the other, each a command, which is how a thousand are tried here; test_the_messages starts a process for each."""
import fnmatch
import json
import random
import subprocess
import unittest

import certificates
import cluster

ROLES = ("alone", "first", "joiner", "witness")
# A value for each option that has one. A second one where a rule looks at the value.
VALUES = {
    "--solver": ["s.prototxt"], "--weights": ["w.caffemodel"], "--snapshot": ["s.solverstate"], "--keep-snapshots": [2],
    "--keep-best": ["accuracy"], "--stop-at": ["accuracy=0.9"], "--seed": [3], "--data-root": ["d"], "--readers": [2],
    "--synthetic": [None, "3x8x8"], "--devices": ["0", "cpu:2", "replay:p", "replay:p,fifo"], "--gpu": ["0"], "--math": ["fp32", "bf16", "auto"],
    "--layout": ["nchw"], "--gpu-plugin": ["p.so"], "--listen": ["127.0.0.1:0"], "--nodes": [2, 1], "--join": ["127.0.0.1:1"],
    "--token-file": ["token"], "--tls-cert": [None], "--tls-key": [None], "--tls-ca": [None], "--silence-limit": [3, "auto"],
    "--progress-limit": [9], "--survive": [1], "--lost-state": ["zero", "end"], "--batch-share": ["3,1", "equal"],
    "--global-batch": ["keep", "scale"], "--views": ["views"], "--routes": ["ps", "auto:100", "auto"], "--rank": [8], "--explain-routes": [None, "json"],
    "--wire": ["float16"], "--lossy": ["int8", "none"], "--staleness": [1], "--link-mbit": [10], "--bandwidth-budget": [10], "--web": [None, "127.0.0.1:0"],
    "--web-token-file": ["token"], "--trace": ["t"], "--graph": ["g"], "--csv": ["c"], "--tensorboard": ["b"],
    "--log-level": ["debug", "quiet"], "--level": [1], "--stage": ["a"], "--sigint-effect": ["none"], "--sighup-effect": ["stop"],
    "--log-format": ["caffe", "text"], "--log-dir": ["."], "--logical-devices": [2]}
FLAGS = ("--own-data", "--autotune", "--witness", "--no-rejoin", "--quiet", "--json")
# Said here once more, by hand: nobody takes an option from a joiner or gives it one by mistake.
OF_THE_FIRST = set("""--solver --weights --snapshot --keep-snapshots --keep-best --stop-at --seed --synthetic --nodes --survive --lost-state --batch-share
    --views --routes --rank --explain-routes --wire --lossy --staleness --csv --tensorboard --level --stage""".split())
OF_WITNESSES = set("""--witness --join --listen --token-file --tls-cert --tls-key --tls-ca --silence-limit --progress-limit --no-rejoin --log-level --quiet
    --json --log-format --log-dir""".split())


def name_of(option):
    return option["names"].split(",")[0]


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        table = json.loads(cluster.run("poseidon-node", "option-table").stdout)
        cls.table, cls.rules = {name_of(o): o for o in table["options"]}, table["rules"]
        cls.checked = set()  # what one test has tried, another one need not

    def setUp(self):
        self.cluster = self.enterContext(cluster.Cluster())
        self.folder = self.cluster.folder
        token = self.folder / "token"
        token.write_text("a-token-of-these-tests\n")
        token.chmod(0o600)
        authority = certificates.Authority(self.folder)
        certificate, key = authority.sign("node")
        key.chmod(0o600)
        self.files = {"--tls-cert": certificate, "--tls-key": key, "--tls-ca": authority.file}
        self.judge = self.enterContext(subprocess.Popen([cluster.BIN / "poseidon-node", "option-table", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                        text=True, cwd=self.folder, preexec_fn=cluster.die_with_parent))

    def answer_to(self, words):
        self.judge.stdin.write("\t".join(map(str, words)) + "\n")
        self.judge.stdin.flush()
        line = self.judge.stdout.readline()
        self.assertTrue(line, f"{words} ended it with {self.judge.poll()}")
        return json.loads(line)

    # -- what is reckoned a second time ---------------------------------------------------------------------------

    @staticmethod
    def holds(given, conditions):
        for word in conditions.split():
            option, _, pattern = word.partition("=")
            negated, option = option.endswith("!"), option.rstrip("!")
            if option not in given or (pattern and fnmatch.fnmatchcase(str(given[option] or ""), pattern) == negated):
                return False
        return True

    def role_of(self, given):
        if "--witness" in given:
            return "witness"
        if "--join" in given and "--solver" not in given:
            return "joiner"
        return "first" if "--listen" in given or self.holds(given, "--nodes!=1") else "alone"

    def verdict(self, given):
        """(words that the refusal has, one of these sets), or None: it is taken."""
        role = self.role_of(given)
        refused = [name for name in given if self.table[name]["uses"][role] == "refused"]
        if refused:
            of_outputs = {"--csv", "--tensorboard"} if role == "joiner" else set()
            named = [n for n in refused if n not in of_outputs] or refused
            return ["--witness" if role == "witness" else "--join", *named, "Leave "]
        for rule in self.rules:
            if not self.holds(given, rule["one"]) or (rule["unless"] and self.holds(given, rule["unless"])):
                continue
            options = [w.split("=")[0].rstrip("!") for w in (rule["one"] + " " + rule["other"]).split()]
            missing = [w.split("=")[0].rstrip("!") for w in rule["other"].split() if not self.holds(given, w)]
            if rule["kind"] == "excludes" and not missing:
                return [*options, "does not go with", rule["why"]]
            if rule["kind"] == "needs" and missing:
                return [*[o.split("=")[0].rstrip("!") for o in rule["one"].split()], *missing, " need", rule["why"]]
        of_gpus = [name for name in self.table if name in given and self.table[name]["of_gpus"]]
        cpu = not str(given.get("--gpu", given.get("--devices", "cpu"))).isdigit()
        if of_gpus and cpu and ("--devices" in given or "--join" in given):
            return [of_gpus[0] + " belongs to GPUs, as in --devices 0."]
        if "--solver" not in given and "--join" not in given:
            return ["nothing to do: give --solver FILE"]
        return None

    def idle_in(self, given):
        role = self.role_of(given)
        unless = {name: self.table[name]["idle_unless"] for name in given}
        return {name for name in given if self.table[name]["uses"][role] == "idle" and not (unless[name] and unless[name] in given)}

    # -- what the program does ------------------------------------------------------------------------------------

    def command(self, given):
        words = []
        for option, value in given.items():
            value = self.files.get(option, value)
            if option == "--explain-routes" and value:
                words.append(f"{option}={value}")  # how the guide writes it
            else:
                words += [option] if value is None else [option, str(value)]
        return words

    def check(self, given):
        plain = tuple(sorted(given.items(), key=str))
        if plain in self.checked:
            return
        self.checked.add(plain)
        expected, words = self.verdict(given), self.command(given)
        said = self.answer_to(words)
        if expected is None:
            self.assertNotIn("error", said, words)
            self.assertEqual(said["role"], self.role_of(given), words)
            idle = self.idle_in(given)
            line = next((w for w in said["warnings"] if "no effect: this node trains alone" in w), "")
            self.assertEqual(set(line.split(" ha")[0].split(", ")) if line else set(), idle, (words, said))
            return
        self.assertEqual(said.get("code"), 2, (words, expected, said))
        self.assertEqual(len(said["error"].splitlines()), 1, (words, said))
        for word in expected:
            self.assertIn(word, said["error"], words)

    @staticmethod
    def base(role):
        return {"alone": {"--solver": "s.prototxt"}, "first": {"--solver": "s.prototxt", "--listen": "127.0.0.1:0", "--nodes": 2},
                "joiner": {"--join": "127.0.0.1:1"}, "witness": {"--witness": None, "--join": "127.0.0.1:1"}}[role]

    def values_of(self, option):
        return VALUES.get(option, [None])

    # -- tests ----------------------------------------------------------------------------------------------------

    def test_the_table_has_all_options_and_says_of_each_whose_it_is(self):
        self.assertEqual(set(self.table), set(VALUES) | set(FLAGS))
        self.assertEqual({n for n, o in self.table.items() if o["uses"]["joiner"] == "refused"}, OF_THE_FIRST)
        self.assertEqual({n for n, o in self.table.items() if o["uses"]["witness"] == "taken"}, OF_WITNESSES)
        for name, option in self.table.items():
            self.assertEqual(set(option["uses"]), set(ROLES), name)
            self.assertNotIn("refused", (option["uses"]["alone"], option["uses"]["first"]), name)
        for rule in self.rules:
            for word in f"{rule['one']} {rule['other']} {rule['unless']}".split():
                self.assertIn(word.split("=")[0].rstrip("!"), self.table, rule)
            self.assertRegex(rule["why"], r"\.$", rule)

    def test_every_option_at_every_node(self):
        for role in ROLES:
            for option in self.table:
                for value in self.values_of(option):
                    with self.subTest(role, option=option, value=value):
                        self.check({**self.base(role), option: value})

    def test_every_rule_at_every_node(self):
        """Both sides of each rule, and what it looks at that lets it not hold."""
        for role in ROLES:
            for rule in self.rules:
                sides = [w.split("=")[0].rstrip("!") for w in f"{rule['one']} {rule['other']}".split()]
                for unless in ([], rule["unless"].split()):
                    for first in self.values_of(sides[0]):
                        for last in self.values_of(sides[-1]):
                            given = {**self.base(role), **{s: self.values_of(s)[0] for s in sides}, **{u: VALUES.get(u, [None])[0] for u in unless},
                                     sides[0]: first, sides[-1]: last}
                            with self.subTest(role, rule=rule["one"] + " " + rule["other"], given=given):
                                self.check(given)

    def test_any_options_together(self):
        seed = random.randrange(2**32)
        drawn = random.Random(seed)
        for number in range(250):
            given = self.base(drawn.choice(ROLES))
            for option in drawn.sample(sorted(self.table), drawn.randint(2, 6)):
                given[option] = drawn.choice(self.values_of(option))
            with self.subTest(seed=seed, number=number, given=given):
                self.check(given)

    def test_a_node_that_comes_back_or_begins_may_have_the_first_nodes_options(self):
        both = {**self.base("first"), "--join": "127.0.0.1:1"}
        for option in OF_THE_FIRST - {"--explain-routes"}:
            with self.subTest(option):
                self.check({**both, option: self.values_of(option)[0]})
        self.check({"--solver": "s.prototxt", "--join": "127.0.0.1:1"})  # which needs --listen

    def test_a_switch_that_is_off_is_not_given(self):
        done = cluster.run("poseidon-node", "option-table", "--solver", "s", "--log-level", "debug", "--quiet=false", "--noautotune")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_one_command_a_process_is_told_the_same_as_one_of_many(self):
        for given in (self.base("witness"), {**self.base("joiner"), "--seed": 1}, {**self.base("first"), "--quiet": None, "--log-level": "debug"},
                      {**self.base("alone"), "--tls-cert": None, "--tls-key": None, "--tls-ca": None}):
            words = self.command(given)
            done = subprocess.run([cluster.BIN / "poseidon-node", "option-table", *words], capture_output=True, text=True, timeout=cluster.DEADLINE_S,
                                  cwd=self.folder)
            said = {"code": done.returncode, "error": done.stderr.rstrip("\n")} if done.returncode else json.loads(done.stdout)
            self.assertEqual(said, self.answer_to(words))

    def test_the_messages(self):
        for words, text in (
                (["--join", "a:1", "--seed", "1"], "--join does not go with --seed: that belongs to the first node, whose choice holds for all nodes. Leave it out here, and "
                 "give it to the first node. With --solver it is for the run that this node begins where there is none."),
                (["--join", "a:1", "--wire", "float16", "--weights", "w"], "--join does not go with --weights, --wire: those belong to the first node, whose choice "
                 "holds for all nodes. Leave them out here, and give them to the first node. With --solver they are for the run that this node begins where there is none."),
                (["--join", "a:1", "--csv", "c"], "--join does not go with --csv: that belongs to the first node, because only it knows the outputs of all nodes. Leave it out"),
                (["--solver", "s", "--nodes", "3"], "--nodes 3 needs --listen HOST:PORT: that is the address that the other nodes join."),
                (["--solver", "s", "--join", "a:1"], "--join and --solver together need --listen HOST:PORT: a node that has both joins the run at --join"),
                (["--solver", "s", "--explain-routes"], "--explain-routes needs --nodes N: routes lead from node to node, so there are two or more."),
                (["--solver", "s", "--gpu", "0", "--devices", "1"], "--gpu 0 does not go with --devices 1: both name devices. Give one of them."),
                (["--solver", "s", "--devices", "replay:p", "--weights", "w"], "--devices replay:p does not go with --weights: sleeping layers train no model."),
                (["--solver", "s", "--own-data", "--batch-share", "auto", "--listen", "localhost:0", "--nodes", "2"],
                 "--own-data does not go with --batch-share auto: a node with a larger share"),
                (["--solver", "s", "--web-token-file", "t"], "--web-token-file needs --web: it says who may read that page."),
                (["--solver", "s", "--tls-cert", "c", "--tls-key", "k"], "--tls-cert needs --tls-ca FILE: both sides of a link prove who they are."),
                (["--solver", "s", "--quiet", "--log-level", "debug"], "--quiet does not go with --log-level debug: --quiet is --log-level quiet.")):
            with self.subTest(words):
                done = cluster.run("poseidon-node", *words)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(text, done.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
