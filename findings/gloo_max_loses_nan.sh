#!/usr/bin/env bash
# findings/gloo_max_loses_nan.sh - PyTorch 1.13 with gloo: all_reduce with MAX may lose a NaN, and a larger number of another process with it.
#
# Seen with    Debian 12, python3-torch 1.13.1+dfsg-4 (CPU, with gloo), Python 3.11.
# What is run  Three processes call all_reduce with MAX on a tensor of four numbers. Process 0 has 0, process 1 has 1 and process 2 has 2 everywhere; then one
#              of them has NaN instead.
# Behaviour    One expects NaN, as torch.max of the same numbers gives, or the maximum of the others. The result depends on the process that has the NaN, and
#              on the place in the tensor. NaN in process 2: 1 everywhere. NaN in process 1: two places have NaN, the other two have 0, though process 2
#              has 2. gloo keeps the larger number by a comparison with <, which is false for a NaN on either side. All processes get the same result.
# So           whoever looks for an overflow by the maximum of losses or norms asks isnan() in each process and sends that, as 0 or 1.
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
cat > "$root/nan.py" << 'PYTHON'
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

NAN = float("nan")


def process(rank):
    dist.init_process_group("gloo", init_method="file:///meet", rank=rank, world_size=3)
    for who in None, 0, 1, 2:
        t = torch.full((4,), NAN if rank == who else float(rank))
        dist.all_reduce(t, dist.ReduceOp.MAX)
        everyone = [None] * 3
        dist.all_gather_object(everyone, str(t.tolist()))
        if rank == 0:
            print("NaN in process", who, everyone[0], "same in all:", len(set(everyone)) == 1)


if __name__ == "__main__":
    mp.spawn(process, nprocs=3)
    print("torch.max", torch.stack([torch.tensor(0.0), torch.tensor(NAN), torch.tensor(2.0)]).max().item())
PYTHON
seen=$(chroot "$root" env GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 python3 /nan.py 2> /dev/null | grep -E '^(NaN|torch)') || true
expected="NaN in process None [2.0, 2.0, 2.0, 2.0] same in all: True
NaN in process 0 [nan, nan, 2.0, 2.0] same in all: True
NaN in process 1 [0.0, 0.0, nan, nan] same in all: True
NaN in process 2 [1.0, 1.0, 1.0, 1.0] same in all: True
torch.max nan"
echo "python3-torch $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
