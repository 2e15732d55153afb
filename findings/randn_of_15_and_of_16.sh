#!/usr/bin/env bash
# findings/randn_of_15_and_of_16.sh - PyTorch 1.13: with the same seed, torch.randn(15) and torch.randn(16) have no number in common on a CPU.
#
# Seen with    Debian 12, python3-torch 1.13.1+dfsg-4 (CPU), Python 3.11.
# What is run  The seed is set, one tensor is drawn; the seed is set again, a longer one is drawn. The numbers at the same place are compared: 14 with 15, 15 with
#              16, 32 with 48, 32 with 33. The same by torch.rand.
# Behaviour    One expects that the longer tensor begins with the numbers of the shorter one. torch.rand does so in all four cases, and randn for 14 with 15 and
#              32 with 48. randn has two ways: fewer than 16 numbers are drawn one by one; 16 or more are drawn in blocks of 16, and where the length is
#              no multiple of 16, the last 16 are drawn anew. So 15 with 16 have none in common, and 32 with 33 have 17, not 32.
# So           initial weights are no longer the same when a layer of another size, for example one more class, is compared with the old one under the old seed.
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
cat > "$root/draw.py" << 'PYTHON'
import torch


def common(draw, shorter, longer):
    torch.manual_seed(1)
    a = draw(shorter)
    torch.manual_seed(1)
    return int((a == draw(longer)[:shorter]).sum())


for draw in torch.rand, torch.randn:
    for lengths in (14, 15), (15, 16), (32, 48), (32, 33):
        print("draw:", draw.__name__, *lengths, "common", common(draw, *lengths))
PYTHON
seen=$(chroot "$root" python3 /draw.py 2> /dev/null | grep '^draw:')  # without what its libraries say of the machine
expected="draw: rand 14 15 common 14
draw: rand 15 16 common 15
draw: rand 32 48 common 32
draw: rand 32 33 common 32
draw: randn 14 15 common 14
draw: randn 15 16 common 0
draw: randn 32 48 common 32
draw: randn 32 33 common 17"
echo "python3-torch $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
