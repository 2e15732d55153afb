#!/usr/bin/env bash
# findings/gloo_reduce_changes_other_tensors.sh - PyTorch 1.13 with gloo: reduce leaves partial sums in the tensors of the processes that are not its destination.
#
# Seen with    Debian 12, python3-torch 1.13.1+dfsg-4 (CPU, with gloo), Python 3.11.
# What is run  Three processes have a tensor of four numbers, all 1, all 10 and all 100. They call torch.distributed.reduce with destination 0.
# Behaviour    One expects 111 in process 0, and that the others keep what they had, because only the destination gets the result. Process 0 has 111. Process 1
#              has 110, 110, 111, 111 and process 2 has 100, 100, 101, 101: sums of some processes, which differ along one tensor.
# So           a process that reduces its loss or its gradients and uses them afterwards uses neither its own nor the sum: it gives reduce a clone.
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
cat > "$root/sum.py" << 'PYTHON'
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def process(rank):
    dist.init_process_group("gloo", init_method="file:///meet", rank=rank, world_size=3)
    t = torch.full((4,), float(10**rank))
    dist.reduce(t, 0)
    everyone = [None] * 3
    dist.all_gather_object(everyone, t.tolist())
    if rank == 0:
        for i, numbers in enumerate(everyone):
            print("process", i, numbers)


if __name__ == "__main__":
    mp.spawn(process, nprocs=3)
PYTHON
seen=$(chroot "$root" env GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 python3 /sum.py 2> /dev/null | grep '^process') || true
expected="process 0 [111.0, 111.0, 111.0, 111.0]
process 1 [110.0, 110.0, 111.0, 111.0]
process 2 [100.0, 100.0, 101.0, 101.0]"
echo "python3-torch $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
