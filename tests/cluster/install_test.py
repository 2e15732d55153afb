# tests/cluster/install_test.py - an installed Poseidon runs from its prefix, and its pages and completions know every option.
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import cluster

BUILD = cluster.BIN.parent
PROGRAMS = ("poseidon-node", "poseidon-graph", "poseidon-data")
# Not all verbs: the ones below must be found, and of every verb that a program lists all options are looked up.
VERBS = {"poseidon-node": [["test"], ["time"], ["device-query"], ["status"]], "poseidon-graph": [["view"], ["attach"]],
         "poseidon-data": [["convert"], ["convert", "list"], ["convert", "mnist"], ["mean"], ["extract"], ["info"]]}

NET = """
name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 } data_filler { type: "gaussian" std: 1 } data_filler { value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2
  weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 3 display: 1 snapshot_prefix: "run"\n'


def said(*words, cwd=None, env=None):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd, env=env,
                          timeout=cluster.DEADLINE_S)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def options_of(text):
    """The names in a --help: words that begin with a dash, at the begin of an entry."""
    return {name for line in re.findall(r"(?m)^  (-\S+)", text) for name in line.split(",")}


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="poseidon-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        said("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def program(self, name):
        return self.prefix / "bin" / name

    def test_it_trains_from_its_prefix_with_the_plug_ins_and_the_nets_that_lie_there(self):
        moved = self.folder / "moved"
        self.prefix.rename(moved)  # nothing in it may know where it was
        self.addCleanup(moved.rename, self.prefix)
        work = self.folder / "work"
        work.mkdir()
        (work / "net.prototxt").write_text(NET)
        (work / "solver.prototxt").write_text(SOLVER)
        train = [moved / "bin/poseidon-node", "--solver", "solver.prototxt", "--devices"]
        self.assertIn("snapshot run_iter_3.caffemodel", said(*train, "cpu:1", cwd=work))
        with (work / "solver.prototxt").open("a") as solver:
            solver.write("snapshot_format: HDF5\n")
        self.assertIn("snapshot run_iter_3.caffemodel.h5", said(*train, "cpu:1", cwd=work))
        plugin = moved / "lib/poseidon/libposeidon_gpu_simulated.so"
        self.assertIn("snapshot run_iter_3.caffemodel.h5", said(*train, "0", "--gpu-plugin", plugin, cwd=work))
        drawn = said(moved / "bin/poseidon-graph", "models/zoo/lenet/solver.prototxt", "--input", "1x28x28",
                     cwd=moved / "share/poseidon")
        self.assertIn("digraph", drawn)

    def test_installed_programs_look_for_libraries_where_the_system_has_them(self):
        if not shutil.which("readelf"):
            self.skipTest("readelf is not installed")
        files = [self.program(name) for name in PROGRAMS] + list((self.prefix / "lib/poseidon").iterdir())
        for file in files:
            self.assertNotRegex(said("readelf", "--dynamic", file), r"R(UN)?PATH", file)

    def test_the_unit_starts_the_installed_program(self):
        unit = (self.prefix / "lib/systemd/system/poseidon-node@.service").read_text()
        self.assertIn(f"ExecStart={self.prefix}/bin/poseidon-node ", unit)
        script = "poseidon-script@.service"
        self.assertEqual((self.prefix / "lib/systemd/system" / script).read_text(), (cluster.ROOT / "tools/launch" / script).read_text())

    def test_below_destdir_lies_what_belongs_below_the_prefix_and_names_the_prefix_only(self):
        stage = self.folder / "stage"
        said("cmake", "--install", BUILD, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(stage)})
        self.assertEqual([p.name for p in stage.iterdir()], ["usr"])
        self.assertIn("ExecStart=/usr/bin/poseidon-node ", (stage / "usr/lib/systemd/system/poseidon-node@.service").read_text())
        for name in PROGRAMS:
            self.assertTrue((stage / "usr/bin" / name).is_file())
            self.assertTrue((stage / f"usr/share/man/man1/{name}.1.gz").is_file())
            self.assertTrue((stage / "usr/share/bash-completion/completions" / name).is_file())

    def test_what_tools_package_builds_is_all_that_is_installed(self):
        # From a fresh checkout libposeidon.so was missing, and CPack failed.
        if not shutil.which("ninja") or not (BUILD / "build.ninja").exists():
            self.skipTest("this build is not Ninja's")
        built = said("ninja", "-C", BUILD, "-t", "query", "poseidon_installed").split()
        installed = re.findall(rf'FILES "{re.escape(str(BUILD))}/((?:bin|lib)/[^"]+)"', (BUILD / "cmake_install.cmake").read_text())
        self.assertIn("bin/poseidon-node", installed)
        self.assertLessEqual(set(installed), set(built))
        self.assertIn("tools/build poseidon_installed", (cluster.ROOT / "tools/package").read_text())

    def test_the_image_of_the_containerfile_has_what_the_pods_need(self):
        pods = (cluster.ROOT / "tools/launch/kubernetes.yaml").read_text()
        folder = pathlib.Path(re.search(r"(?m)^ *workingDir: (\S+)", pods)[1])
        net = re.search(r'net: "(\S+)"', pods)[1]
        self.assertTrue((self.prefix / folder.relative_to("/usr") / net).is_file(), folder / net)
        self.assertIn(re.search(r"(?m)^ *image: (\S+)", pods)[1],
                      re.search(r"--tag (\S+)", (cluster.ROOT / "Containerfile").read_text())[1])
        program = re.search(r"POSEIDON_PROGRAM:-(\S+)}", pods)[1]
        self.assertTrue(self.program(program).is_file())

    def completed(self, words):
        """What bash offers for the last of the words."""
        name = words[0]
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  f'_{name.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        file = self.prefix / "share/bash-completion/completions" / name
        return set(said("bash", "-c", script, "bash", file, *words).split())

    def test_every_option_is_in_the_manual_page_and_is_completed(self):
        for name in PROGRAMS:
            page = said("gzip", "-dc", self.prefix / f"share/man/man1/{name}.1.gz").replace("\\-", "-")
            for verb in [[], *VERBS[name]]:
                with self.subTest(name, verb=verb):
                    options = options_of(said(self.program(name), *verb, "--help"))
                    self.assertIn("--help", options)
                    parts = re.split(r'(?m)^\.S[SH] "?(.*?)"?$', page)
                    headings = dict(zip(parts[1::2], parts[2::2]))
                    part = headings[" ".join([name, *verb]) if verb else "OPTIONS"]
                    self.assertEqual(options - set(re.findall(r"\\fB(-.*?)\\fR", part)), set(), "not in the page")
                    self.assertEqual(options - self.completed([name, *verb, "-"]), set(), "not completed")
                    if verb:
                        self.assertIn(verb[-1], self.completed([name, *verb[:-1], ""]))

    def test_every_verb_that_a_refusal_names_is_in_the_page_and_is_completed(self):
        name = "poseidon-node"
        done = subprocess.run([self.program(name), "no-such-verb"], capture_output=True, text=True)
        verbs = [word for word in dict.fromkeys(re.findall(r"\b[a-z][a-z-]+\b", done.stderr))
                 if subprocess.run([self.program(name), word, "--help"], capture_output=True).returncode == 0]
        self.assertIn("train", verbs)
        page = said("gzip", "-dc", self.prefix / f"share/man/man1/{name}.1.gz").replace("\\-", "-")
        for verb in verbs:
            self.assertIn(f'.SS "{name} {verb}"', page)
        self.assertEqual(set(verbs) - self.completed([name, ""]), set())

    def test_values_that_an_option_may_have_are_completed(self):
        self.assertEqual(self.completed(["poseidon-node", "--log-level", ""]), {"quiet", "info", "debug"})
        self.assertEqual(self.completed(["poseidon-node", "--log-level", "qu"]), {"quiet"})
        self.assertEqual(self.completed(["poseidon-node", "--solver", ""]), set())  # bash offers files

    def test_the_packages_of_a_release_are_older_than_those_of_the_next_one(self):
        system = dict(re.findall(r'(?m)^(\w+)="?(.*?)"?$', pathlib.Path("/etc/os-release").read_text()))
        release = re.search(r'CPACK_DEBIAN_PACKAGE_RELEASE "(.*)"', (BUILD / "CPackConfig.cmake").read_text())[1]
        number = system.get("VERSION_ID", "") if system.get("ID") == "debian" else ""
        self.assertEqual(release, f"1~deb{number}" if number else "1")
        for older, newer in (("1~deb12", "1~deb13"), ("1~deb13", "1")):
            subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)

    def test_the_debian_changelog_has_the_version_of_the_programs(self):
        version = said(self.program("poseidon-node"), "--version").split()[-1]
        first = (cluster.ROOT / "cmake/debian/changelog").read_text().splitlines()[0]
        self.assertIn(f"({version}-", first)


class Ignored(unittest.TestCase):
    def test_gitignore_hides_no_file_that_is_tracked(self):
        if not shutil.which("git") or not (cluster.ROOT / ".git").exists():
            self.skipTest("this is no git checkout")
        hidden = said("git", "-c", "safe.directory=*", "-C", cluster.ROOT, "ls-files", "--cached", "--ignored", "--exclude-standard")
        self.assertEqual(hidden, "")

    def test_gitignore_covers_what_runs_leave(self):
        if not shutil.which("git") or not (cluster.ROOT / ".git").exists():
            self.skipTest("this is no git checkout")
        for name in ("lenet_iter_500.caffemodel", "lenet_iter_500.solverstate", "run/x_iter_5.caffemodel.h5", "trace.json",
                     "trace-1.json", "graph.json", "token", "train_lmdb/data.mdb", "mean.binaryproto", "poseidon-42.log", "lenet.svg",
                     ".poseidon-token-42", "gpu-check.json", "poseidon.tar.xz", "poseidon_0.1.0-1_amd64.deb",
                     "poseidon-0.1.0-py3-none-manylinux_2_36_x86_64.whl"):
            with self.subTest(name):
                said("git", "-c", "safe.directory=*", "-C", cluster.ROOT, "check-ignore", "--no-index", name)


if __name__ == "__main__":
    cluster.need(*PROGRAMS)
    cluster.main()
