#!/usr/bin/env bash
# findings/pytorch_takes_itself_apart.sh - PyTorch 1.13: a process that was forked after "import torch" and has nothing left to do touches 80 MB of memory in order to end.
#
# Seen with    Debian 12, python3-torch 1.13.1+dfsg-4 (CPU), Python 3.11, Linux 6.18.
# What is run  A process imports torch and forks twice. One child ends by sys.exit(), the other one runs what is registered with atexit and ends by os._exit().
#              Both have added two tensors before. Page faults and processor time are those that the kernel counts of each child.
# Behaviour    One expects the two to cost about the same, since a process's memory goes with it. The one that ends by sys.exit() takes 0.6 to 0.9 s of processor
#              time and more than 20,000 page faults, the other one 0.02 to 0.04 s and 500 to 1,100: at the end of the process the dispatcher takes the kernels of all
#              operators out of its tables, one by one, and Python frees its objects. The child has shared these pages with its parent so far, so the kernel copies each that
#              this writes to.
# So           whoever forks many short processes from one that has imported PyTorch (tests, workers that fork) lets them end by os._exit() after
#              atexit's functions and a flush. Two tests of ours that fork 100 such processes each took 309 s of processor time, and then 89 s.
# Needs        root's rights, debootstrap, apt's sources for Debian, 1.5 GiB and some minutes. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=1.13.1+dfsg-4
skip() {
  echo "cannot be run here: $*"
  exit 77
}
((EUID == 0)) || skip "a root folder needs root's rights"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
mirror=$(apt-get indextargets --format "\$(SITE)|\$(ORIGIN)" | awk -F'|' '$2 == "Debian" { print $1; exit }')
[[ -n $mirror ]] || skip "apt knows no mirror of Debian"
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" > /dev/null || skip "debootstrap made no Debian 12"
chroot "$root" apt-get install --yes --no-install-recommends "python3-torch=$version" > /dev/null 2>&1 ||
  skip "python3-torch $version is not to be had any more"
cat > "$root/ends.py" << 'PYTHON'
import atexit
import os
import sys

import torch


def cost(ends_at_once):
    """(page faults, seconds of processor time) of a child."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        torch.ones(2) + torch.ones(2)
        if ends_at_once:
            atexit._run_exitfuncs()
            os._exit(0)
        sys.exit(0)
    used = os.wait4(pid, 0)[2]
    return used.ru_minflt, used.ru_utime + used.ru_stime


plain, at_once = (min(cost(kind) for _ in range(3)) for kind in (False, True))
print(f"sys.exit(): {plain[0]} page faults, {plain[1]:.2f} s; os._exit(): {at_once[0]} page faults, {at_once[1]:.2f} s")
sys.exit(0 if plain[0] > 5 * at_once[0] else 3)
PYTHON
echo "PyTorch $version:"
code=0
chroot "$root" env OMP_NUM_THREADS=1 python3 /ends.py 2> /dev/null || code=$?
if ((code != 0)); then
  echo "this has changed: a plain end took more than five times as many page faults"
  exit 1
fi
