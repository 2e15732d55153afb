# tests/cluster/disk_full_test.py - a snapshot that does not fit: training continues, and the last snapshot decides the exit code.
import ctypes
import os
import resource
import subprocess
import unittest

import cluster
import small_run

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
mounts = None  # why this process may not mount, or "" if it may


def may_mount():
    """Moves this process to mounts of its own, so that none of them outlives it. As root, or in a user namespace."""
    global mounts
    if mounts is None:
        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.getuid(), os.getgid()
        flags = CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER
        if libc.unshare(flags) != 0:
            mounts = f"this needs a file system of its own, and unshare failed: {os.strerror(ctypes.get_errno())}"
            return mounts
        if user != 0:
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        private = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False)
        mounts = "" if private.returncode == 0 else f"this needs a file system of its own: {private.stderr.strip()}"
    return mounts


class DiskFull(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def solver(self, disk, iterations):
        return small_run.solver(self.folder, "s", iterations=iterations, more="snapshot: 4", prefix=disk / "s")

    def small_disk(self, megabytes):
        if may_mount():
            self.skipTest(may_mount())
        disk = self.folder / "disk"
        disk.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", disk],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest(f"this needs a file system of its own: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        return disk

    def test_training_goes_on_without_snapshots_and_the_last_one_is_an_error(self):
        disk = self.small_disk(1)  # a snapshot is 0.6 MB: the first fits, and no other
        solver = self.solver(disk, iterations=12)
        first, second = self.cluster.first_and_others(solver, 2, "--devices", "cpu:1")
        first.wait_for(r"^snapshot \S+/s_iter_4\.caffemodel")
        whole = {path.name: path.read_bytes() for path in disk.glob("s_iter_4.*")}
        self.assertEqual(first.wait(), 1, first)
        self.assertEqual(second.wait(), 0, second)  # it has done its part
        full = r"s_iter_{}\.\w+: .*No space left on device\. Free some space"
        self.assertRegex("\n".join(first.errors), "snapshot of iteration 8 failed: .*" + full.format(8) + ".* The one before it is untouched")
        self.assertRegex(first.output, "iteration 11/12: loss")
        self.assertRegex(first.errors[-1], "^the run ends without its last snapshot, of iteration 12: .*" + full.format(12))
        self.assertEqual({path.name for path in disk.glob("s_iter_4.*")}, {"s_iter_4.caffemodel", "s_iter_4.solverstate"})
        self.assertEqual({path.name: path.read_bytes() for path in disk.glob("s_iter_4.*")}, whole)
        # No piece of a later snapshot, nor one of its two files, where that one still fitted.
        self.assertEqual({path.name for path in disk.iterdir()} - {"s.routes", "s_run.json"}, set(whole))

    def test_space_that_is_freed_is_used_by_the_next_snapshot(self):
        disk = self.small_disk(1)
        filler = disk / "filler"
        filler.write_bytes(bytes(900_000))
        first = self.cluster.node("--solver", self.solver(disk, iterations=cluster.ENDLESS), "--devices", "cpu:1")
        first.wait_for("snapshot of iteration 4 failed: .*No space left on device")
        self.assertNotIn("The one before it", "\n".join(first.errors))  # there is none yet
        filler.unlink()
        first.wait_for(r"^snapshot \S+\.caffemodel")
        first.kill()

    def test_a_limit_on_file_sizes_is_an_error_like_a_full_disk_and_no_death(self):  # also where a test may not mount
        disk = self.folder / "disk"
        disk.mkdir()
        # Children inherit it; what this process writes meanwhile is smaller.
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        solver = self.solver(disk, iterations=4)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        try:
            node = self.cluster.node("--solver", solver, "--devices", "cpu:1")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual(node.wait(), 1, node)
        self.assertRegex(node.errors[-1], "without its last snapshot, of iteration 4: .*s_iter_4.caffemodel: .*File too large")
        self.assertEqual(list(disk.iterdir()), [])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
