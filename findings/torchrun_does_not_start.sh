#!/usr/bin/env bash
# findings/torchrun_does_not_start.sh - Debian 12's torchrun ends before it starts a worker, unless two of its options are given.
#
# Seen with    Debian 12, python3-torch 1.13.1+dfsg-4, Python 3.11.
# What is run  torchrun with a script that prints its RANK, on one worker: with the default options; with -r 1; with -r 1 -t 1.
# Behaviour    By default, and with -r 1 alone: AttributeError: 'NoneType' object has no attribute 'get', exit code 1. With -r 1 -t 1 the worker starts.
#              The values of --redirects and --tee are "0" by default, which PyTorch 1.13 looks up by iterating over an enum.IntFlag; Python 3.11
#              leaves the member with the value 0 out of that iteration, and the look-up finds nothing.
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
trap 'umount --quiet --lazy "$root/dev" || true; grep --quiet " $root/" /proc/mounts || rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" > /dev/null || skip "debootstrap made no Debian 12"
chroot "$root" apt-get install --yes --no-install-recommends "python3-torch=$version" > /dev/null 2>&1 ||
  skip "python3-torch $version is not to be had any more"
mount --bind /dev "$root/dev"
echo 'import os; print("worker", os.environ["RANK"], "has started")' > "$root/worker.py"
said() {
  chroot "$root" python3 -m torch.distributed.run "$@" --nproc_per_node 1 /worker.py 2>&1 | grep -oE "AttributeError: .*|worker 0 has started" | tail -n 1
}
seen="default: $(said)
-r 1: $(said -r 1)
-r 1 -t 1: $(said -r 1 -t 1)"
error="AttributeError: 'NoneType' object has no attribute 'get'"
expected="default: $error
-r 1: $error
-r 1 -t 1: worker 0 has started"
echo "python3-torch $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
