# tests/cluster/documents_test.py - what documents tell people to type: blocks marked sh run, all options exist, links lead somewhere.
"""A block of commands in a document is marked as one of two:

    ```sh        runs on one machine, in the order of the document: this test runs it
    ```console   needs several machines, data or hours, or runs until it is ended: only its programs and options are looked at

Both run in a folder that looks like the checkout, where training ends after a few iterations.
"""
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

import cluster

DOCUMENTS = ["README.md", "docs/pytorch.md", "docs/user-guide.md", "docs/coming-from-caffe.md", "docs/coming-from-ddp.md", "docs/how-it-works.md", "tools/launch/README.md"]
ITERATIONS = 4  # in place of LeNet's 2300
FOREIGN = {"openssl", "python3", "echo", "kubectl", "sbatch", "systemctl", "ssh", "apt-get", "cmake", "podman", "pip", "source"}


def blocks(document):
    """(language, number of the first line, text) of each fenced block."""
    found, language, begin, lines = [], None, 0, []
    for number, line in enumerate((cluster.ROOT / document).read_text().splitlines(), 1):
        fence = re.match(r"\s*```(\w*)", line)
        if fence and language is None:
            language, begin, lines = fence[1], number + 1, []
        elif fence:
            found.append((language, begin, "\n".join(lines)))
            language = None
        elif language is not None:
            lines.append(line.strip())
    return found


def commands(document):
    """(number of the line, words) of each line of the blocks of commands, and of `code` that begins with a program of ours."""
    for language, begin, text in blocks(document):
        if language in ("sh", "console"):
            for number, line in enumerate(text.splitlines(), begin):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words:
                    yield number, words
    for number, line in enumerate((cluster.ROOT / document).read_text().splitlines(), 1):
        for code in re.findall(r"`((?:tools/|poseidon-)[^`]* --[^`]*)`", line):
            yield number, shlex.split(code)


@functools.cache
def help_of(*words):
    done = subprocess.run([*words, "--help"], capture_output=True, text=True, cwd=cluster.ROOT, timeout=cluster.DEADLINE_S)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def wrong_options(words):
    """What the program does not know, of one command."""
    words = [w for w in words if not re.match(r"\w+=", w)] if re.match(r"\w+=", words[0]) else words
    if words[0] in FOREIGN:
        return []
    if words[0] in ("tools/launch/local", "poseidon-launch"):
        words = ["tools/launch/local", *words[1:2]]  # the others are the script's
    name = pathlib.Path(words[0]).name
    if words[0] == "tools/launch/ssh" and "--" in words:
        at = words.index("--")
        its = [] if "--script" in words[:at] else wrong_options(["poseidon-node", *words[at + 1:]])
        return wrong_options(words[:at]) + its
    if name.startswith("poseidon-"):
        program = cluster.BIN / name
        verbs = [w for w in words[1:3] if re.fullmatch(r"[a-z][\w-]*", w)]
    else:
        program, verbs = cluster.ROOT / words[0], []
    if not program.is_file():
        return [f"{words[0]} does not exist"]
    text = ""
    for count in range(len(verbs), -1, -1):  # `convert mnist` has options of its own, `time` too; a file is no verb
        try:
            text = help_of(program, *verbs[:count])
            break
        except AssertionError:
            continue
    return [f"{' '.join([name, *verbs[:count]])} has no option {word}" for word in words[1:]
            if re.match(r"--[a-z]", word) and not re.search(rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])", text)]


def anchors(path):
    """As GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", path.read_text(), re.M)}


class Documents(unittest.TestCase):
    def test_every_option_in_a_command_is_one_of_its_program(self):
        wrong, seen = [], 0
        for document in DOCUMENTS:
            for number, words in commands(document):
                seen += 1
                wrong += [f"{document}:{number}: {text}" for text in wrong_options(words)]
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 30)

    def test_a_block_of_commands_is_marked(self):
        for document in DOCUMENTS:
            for language, begin, text in blocks(document):
                if re.search(r"^(\$ )?(build/release/bin/|tools/|poseidon-)", text, re.M):
                    self.assertIn(language, ("sh", "console"), f"{document}:{begin}")

    def test_every_option_of_poseidon_node_is_in_the_guide(self):
        guide = (cluster.ROOT / "docs/user-guide.md").read_text()
        options = set(re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", help_of(cluster.BIN / "poseidon-node"), re.M))
        missing = [o for o in sorted(options - {"--help", "--version"}) if f"`{o}" not in guide and f" {o}" not in guide]
        self.assertGreater(len(options), 20)
        self.assertEqual(missing, [])

    def test_a_script_names_the_option_that_it_does_not_know(self):
        for script in ("build", "bundle", "check", "container", "dependencies", "docs", "fuzz", "newer_torch", "other_debian", "package",
                       "quickstart", "repeat", "wheel"):
            done = subprocess.run([cluster.ROOT / "tools" / script, "--no-such-option"], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=cluster.DEADLINE_S)
            self.assertEqual(done.returncode, 2, script)
            self.assertIn("--no-such-option", done.stderr.splitlines()[-1], script)

    def test_code_that_a_document_has_from_an_example_stands_there(self):
        found = 0
        for document in DOCUMENTS:
            for file, text in re.findall(r"<!-- from (\S+) -->\n```python\n(.*?)```", (cluster.ROOT / document).read_text(), re.S):
                found += 1
                lines = [[line.strip() for line in t.splitlines()] for t in ((cluster.ROOT / file).read_text(), text)]
                self.assertIn("\n".join(lines[1]), "\n".join(lines[0]), f"{document}: {file}")
        self.assertGreater(found, 1)

    def test_every_option_of_a_script_is_on_its_page(self):
        package, page = cluster.ROOT / "apps/python/poseidon", (cluster.ROOT / "docs/pytorch.md").read_text()
        lists = re.findall(r"^(?:OPTIONS|OF_PYTORCH) = \((.*?)\)", (package / "options.py").read_text(), re.M | re.S)
        names = re.findall(r'"([a-z-]+)"', " ".join(lists))
        self.assertGreater(len(names), 10)
        keywords = re.search(r"^def join\(.*?, \*, (.*?)\*\*options", (package / "torch/__init__.py").read_text(), re.M | re.S)[1]
        names = [name.replace("-", "_") for name in names]
        missing = [f"POSEIDON_{name.upper()}" for name in names if f"`POSEIDON_{name.upper()}`" not in page]
        missing += [name for name in [*names, *re.findall(r"(\w+):", keywords)] if not re.search(rf"^\|.*`{name}`.*\|.*\|$", page, re.M)]
        self.assertEqual(missing, [])

    def test_links_between_documents_lead_somewhere(self):
        for path in [cluster.ROOT / "README.md", *cluster.ROOT.glob("docs/**/*.md"), *cluster.ROOT.glob("tools/**/*.md")]:
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if re.match(r"\w+:", target):
                    continue
                file, _, anchor = target.partition("#")
                other = path.parent / file if file else path
                self.assertTrue(other.exists(), f"{path}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(other), f"{path}: {target}")

    def test_commands_that_can_run_here_do(self):
        if not pathlib.Path("/usr/share/datasets/fashion-mnist").is_dir():
            self.skipTest("dataset-fashion-mnist is not installed")
        with cluster.Cluster() as c:
            place = c.folder / "checkout"
            (place / "build/release").mkdir(parents=True)
            (place / "build/release/bin").symlink_to(cluster.BIN.resolve())
            shutil.copytree(cluster.ROOT / "models", place / "models")
            shutil.copytree(cluster.ROOT / "tools/launch", place / "tools/launch")
            solver = place / "models/zoo/lenet/solver.prototxt"
            text = re.sub(r"max_iter: \d+", f"max_iter: {ITERATIONS}", solver.read_text())
            solver.write_text(re.sub(r"test_iter: \d+", "test_iter: 2", text))
            ran = 0
            for document in DOCUMENTS:
                for language, begin, text in blocks(document):
                    if language != "sh":
                        continue
                    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text.replace("_iter_2300.", f"_iter_{ITERATIONS}.")],
                                          cwd=place, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                          timeout=cluster.DEADLINE_S, env={**os.environ, "NO_COLOR": "1"})
                    self.assertEqual(done.returncode, 0, f"{document}:{begin}:\n{text}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
                    ran += 1
            self.assertGreater(ran, 4)
            # What the guide signs passes the checks that Python makes since 3.13.
            strict = subprocess.run(["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "head.pem"],
                                    cwd=place, capture_output=True, text=True)
            self.assertEqual(strict.returncode, 0, strict.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data", "poseidon-graph")
    cluster.main()
