# tests/cluster/systems_test.py - the tools that are for another release of Debian: what they leave behind, and what they leave out.
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

import cluster

sys.path.insert(0, str(cluster.ROOT / "tools/lib"))
import clang_format  # noqa: E402

# A mirror that is never asked, because the Debian is there already.
APT = """#!/bin/bash
[[ $1 == indextargets ]] && echo "http://mirror|Debian|Debian"
echo "$*" >> "${0%/*}/asked"
exit 0
"""


def pretend(folder, **programs):
    """A PATH in which these come first."""
    folder.mkdir(exist_ok=True)
    for name, text in programs.items():
        program = folder / name.replace("_", "-")
        program.write_text(text)
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


class OtherDebian(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder
        self.tool = cluster.ROOT / "tools/other_debian"

    def run_tool(self, *words, env=None):
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env,
                              timeout=cluster.DEADLINE_S)

    def test_a_release_that_it_does_not_know_is_wrong_use(self):
        done = self.run_tool(self.tool, "woody", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the release is \"woody\", expected bookworm (12), trixie (13) or testing", done.stderr)

    def test_without_debootstrap_it_is_skipped_with_the_reason(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for name in ("bash", "dirname"):
            (programs / name).symlink_to(shutil.which(name))
        done = self.run_tool(self.tool, "trixie", "true", env={"PATH": str(programs)})
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertRegex(done.stdout, "skipped: (debootstrap is not installed|a root folder needs root's rights)")

    def test_a_command_sees_a_copy_and_leaves_no_process_and_no_mount(self):
        if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode or not pathlib.Path("/bin").is_symlink():
            self.skipTest("needs the right to mount, and /bin in /usr")
        # This machine's own programs stand for a release.
        root = self.folder / "roots/trixie"
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        for name in ("proc", "dev", "sys", "tmp", "etc", "root"):
            (root / name).mkdir()
        (root / "etc/os-release").write_text('PRETTY_NAME="Debian of a test"\n')
        (root / "made").write_text("debootstrap trixie\napt git\n")
        env = {**pretend(self.folder / "programs", apt_get=APT, debootstrap="#!/bin/bash\nexit 1\n"), "STRANGE": "1"}
        copy = root / str(cluster.ROOT.resolve())[1:]
        (copy / "build").mkdir(parents=True)
        for name in ("build/kept", "of_a_former_copy"):
            (copy / name).touch()
        # What was built of the one stays, and of the other one it is old, whenever it was built.
        shutil.copy(cluster.ROOT / "README.md", copy)
        (copy / "LICENSE").write_text("another one")
        for name in "README.md", "LICENSE":
            os.utime(copy / name, (1000000000, 1000000000))
        began = time.time()
        mark = f"left-behind-{os.getpid()}"
        # Python collects no process that is not its own child: one whose parent has ended is for process 1.
        script = f"""
import os, subprocess, sys, time
assert os.path.exists("README.md") and os.path.exists("build/kept") and not os.path.exists("of_a_former_copy")
assert os.stat("README.md").st_mtime == 1000000000 and os.stat("LICENSE").st_mtime >= {began:.0f} - 1 and os.stat("LICENSE").st_size > 100
assert "STRANGE" not in os.environ and os.path.exists("/proc/self/mounts") and os.path.exists("/dev/null")
subprocess.run(["git", "ls-files", "--error-unmatch", "tools/other_debian"], check=True)
subprocess.Popen(["bash", "-c", "exec -a {mark} sleep 1000"])
orphan = subprocess.run(["bash", "-c", "sleep 0.1 > /dev/null & echo $!"], capture_output=True, text=True, check=True).stdout.strip()
deadline = time.monotonic() + {cluster.DEADLINE_S / 2}
while os.path.exists("/proc/" + orphan):
    assert time.monotonic() < deadline, "process " + orphan + " is still there"
    time.sleep(0.01)
sys.exit(5)"""
        try:
            around = f'mount --bind /usr "{root}/usr"; code=0; "$@" || code=$?; grep "{root}" /proc/mounts; exit "$code"'
            done = self.run_tool("unshare", "--mount", "bash", "-c", around, "bash", self.tool, "--keep", root.parent, "13", "python3", "-c",
                                 script, env=env)
        finally:
            shutil.rmtree(copy)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("other_debian: on Debian of a test python3", done.stdout)
        mounted = [line.split()[1] for line in done.stdout.splitlines() if f" {root}/" in line]
        self.assertEqual(mounted, [f"{root}/usr"])
        self.assertEqual(subprocess.run(["pgrep", "--full", f"^{mark}"], capture_output=True).returncode, 1)


class Dependencies(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.programs = self.cluster.folder / "programs"

    def install(self, *options, madison=""):
        """(what it said, the packages that apt-get was asked for)"""
        env = pretend(self.programs, apt_get=APT, dpkg_query="#!/bin/bash\necho not-installed\n", sudo='#!/bin/bash\nexec "$@"\n',
                      apt_cache=f"#!/bin/bash\n[[ $1 != madison ]] || echo -n '{madison}'\n")
        done = subprocess.run([cluster.ROOT / "tools/dependencies", *options], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=env, timeout=cluster.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        asked = [line.split() for line in (self.programs / "asked").read_text().splitlines()]
        return done.stdout, {word for line in asked if "install" in line for word in line if not word.startswith("-")}

    def test_only_developers_need_clang_format(self):
        _, packages = self.install()
        self.assertIn("libdnnl-dev", packages)
        self.assertFalse({"clang-format-14", "shellcheck"} & packages)

    def test_developers_get_it_where_the_release_has_it(self):
        _, packages = self.install("--developers", madison="clang-format-14 | 1:14.0.6-12 | mirror")
        self.assertLess({"clang-format-14", "shellcheck", "libdnnl-dev"}, packages)

    def test_where_the_release_has_none_the_others_are_installed(self):
        said, packages = self.install("--developers")
        self.assertIn(" has no clang-format-14, which is Debian 12's: tools/check and tools/format leave the formatting out", said)
        self.assertNotIn("clang-format-14", packages)
        self.assertLess({"shellcheck", "libdnnl-dev"}, packages)


class Formatting(unittest.TestCase):
    def found(self, programs, release):
        """What is found of {name: version} on a release."""
        says = lambda words, **_: subprocess.CompletedProcess(words, 0, f"Debian clang-format version {programs[words[0]]}\n", "")
        with mock.patch("shutil.which", lambda name: name if name in programs else None), mock.patch("subprocess.run", says), \
                mock.patch("platform.freedesktop_os_release", lambda: {"VERSION_CODENAME": release}):
            return clang_format.find()

    def test_version_14_is_taken_by_either_name(self):
        self.assertEqual(self.found({"clang-format-14": "14.0.6", "clang-format": "19.1.7"}, "trixie"), "clang-format-14")
        self.assertEqual(self.found({"clang-format": "14.0.6"}, "bookworm"), "clang-format")

    def test_another_version_is_not_asked(self):
        self.assertIsNone(self.found({"clang-format": "19.1.7"}, "trixie"))

    def test_on_debian_12_it_only_has_to_be_installed(self):
        with self.assertRaisesRegex(clang_format.Missing, "^clang-format-14 is not installed. Run tools/dependencies --developers.$"):
            self.found({"clang-format": "16.0.6"}, "bookworm")


if __name__ == "__main__":
    cluster.main()
