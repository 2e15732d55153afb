# tests/cluster/wheel_test.py - the wheel of this build: pip installs it, two workers train with it, and its libraries live beside Debian's.
import ast
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import cluster
import programs

TOOLS = cluster.ROOT / "tools/lib"
sys.path.insert(0, str(TOOLS))
import elf  # noqa: E402


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="poseidon-wheel-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.wheel = cls.make("once")
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.folder / "unpacked")
        cls.libraries = sorted((cls.folder / "unpacked/poseidon/lib").iterdir())

    @classmethod
    def make(cls, out):
        done = subprocess.run([sys.executable, "-B", TOOLS / "wheel.py", "--build", cluster.BIN.parent, "--out", cls.folder / out],
                              capture_output=True, text=True, check=False)
        if "build the wheel on Debian 12" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())  # this system is newer than the wheel's name allows
        assert done.returncode == 0, done.stderr
        return pathlib.Path(done.stdout.strip())

    def test_pip_installs_it_and_two_workers_train_what_one_process_trains(self):
        done = subprocess.run([programs.PYTHON, "-B", TOOLS / "wheel_smoke.py", self.wheel], capture_output=True, text=True,
                              timeout=5 * cluster.DEADLINE_S)  # a virtual environment, pip and three trainings
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("have trained the same parameters", done.stdout)

    def test_two_runs_write_the_same_bytes(self):
        self.assertEqual(self.make("twice").read_bytes(), self.wheel.read_bytes())

    def test_no_library_has_a_name_or_a_unique_symbol_that_another_copy_in_the_process_may_have(self):
        # With Debian 12's own names, `import ssl` failed on Debian 13 after the library had been opened: its OpenSSL was taken for the system's.
        self.assertGreater(len(self.libraries), 20)
        for path in self.libraries:
            with self.subTest(path.name):
                file = elf.Elf(path)
                self.assertEqual(file.soname, path.name)
                self.assertTrue(path.name == "libposeidon.so" or path.name.startswith("psd"))
                self.assertFalse(any("/usr" in place or place == "" for place in file.paths), file.paths)
                symbols = subprocess.run(["nm", "--dynamic", "--demangle", "--defined-only", path], capture_output=True, text=True, check=True).stdout
                unique = re.findall(r"(?m)^\w+ u (?:guard variable for )?(.*)$", symbols)
                self.assertEqual([name for name in unique if not name.startswith("std::")], [])

    def test_a_name_that_does_not_fit_into_its_place_is_refused(self):
        file = elf.Elf(self.libraries[-1])
        with self.assertRaisesRegex(elf.NotElf, f"the name {self.libraries[-1].name} cannot become x.so, because they differ in length"):
            file.rename({self.libraries[-1].name: "x.so"})
        with self.assertRaisesRegex(elf.NotElf, "is no little-endian ELF file"):
            elf.Elf(pathlib.Path(__file__))

    def test_each_packed_library_has_its_licence(self):
        folder, = (self.folder / "unpacked").glob("*.dist-info/licenses")
        lines = (folder / "libraries.txt").read_text().split("\n\n", 1)[1].splitlines()
        self.assertEqual(len(lines), len(self.libraries) - 1)
        for line in lines:
            name, package = re.match(r"lib(\S+): (\S+) ", line).groups()
            self.assertIn(f"psd{name}", [path.name for path in self.libraries])
            self.assertGreater((folder / package / "copyright").stat().st_size, 100)

    def test_a_library_that_needs_a_newer_system_is_refused(self):
        text = (TOOLS / "wheel.py").read_text()
        old = text.replace('"GLIBC": (2, 36)', '"GLIBC": (2, 17)')
        self.assertNotEqual(old, text)
        tools = self.folder / "tools/lib"
        tools.mkdir(parents=True)
        (tools / "wheel.py").write_text(old)
        for name in ("elf.py", "packed_libraries.py"):
            (tools / name).symlink_to(TOOLS / name)
        done = subprocess.run([sys.executable, "-B", tools / "wheel.py", "--build", cluster.BIN.parent, "--out", self.folder / "old"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, r"needs symbols of GLIBC_2\.\d+, and a system of the tag manylinux_2_36_x86_64 has GLIBC_2\.17: build the wheel on Debian 12")

    def test_no_annotation_needs_a_newer_python_than_the_wheel_asks_for(self):
        # The launcher failed on Python 3.9: "int | None" in a data class is evaluated there.
        metadata, = (self.folder / "unpacked").glob("*.dist-info/METADATA")
        self.assertIn("Requires-Python: >=3.9\n", metadata.read_text())
        files = [path for path in (self.folder / "unpacked/poseidon").rglob("*") if path.suffix == ".py" or path.name == "local"]
        self.assertGreater(len(files), 20)
        for path in files:
            tree = ast.parse(path.read_text(), feature_version=(3, 9))
            annotations = [node.annotation for node in ast.walk(tree) if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation]
            newer = [part for one in annotations for part in ast.walk(one) if isinstance(part, ast.BinOp)]
            self.assertTrue(not newer or "from __future__ import annotations" in path.read_text(), path.name)

    def test_the_plain_package_has_the_name_and_the_version_of_the_wheel(self):
        project = (cluster.ROOT / "apps/python/pyproject.toml").read_text()
        name, version = (re.search(rf'^{key} = "(.*)"', project, re.M)[1] for key in ("name", "version"))
        self.assertEqual(self.wheel.name, f"{name}-{version}-py3-none-manylinux_2_36_x86_64.whl")
        packages = re.search(r"^packages = (.*)$", project, re.M)[1]
        self.assertEqual(set(re.findall(r'"(.*?)"', packages)),
                         {str(p.parent.relative_to(cluster.ROOT / "apps/python")).replace("/", ".") for p in (cluster.ROOT / "apps/python").rglob("__init__.py")})


if __name__ == "__main__":
    programs.need("torch", "venv", "ensurepip")
    if not programs.LIBRARY.exists():
        print(f"skipped: there is no {programs.LIBRARY}")
        sys.exit(cluster.SKIPPED)
    cluster.main()
