#!/usr/bin/env bash
# findings/averaged_model_follows_buffers.sh - PyTorch 2: AveragedModel averages parameters, and takes the newest buffers as they are.
#
# Seen with    Debian 13, python3-torch 2.6.0+dfsg-7 (CPU), Python 3.13.
# What is run  A BatchNorm1d with running_mean 1 and weight 1 is wrapped in torch.optim.swa_utils.AveragedModel (use_buffers=False, the default). Twice both values
#              of the model are changed (to 3, then to 5) and update_parameters(model) is called.
# Behaviour    The averaged weight is the mean of 3 and 5. The averaged running_mean is 5: each update copies the model's. PyTorch 1.13 (Debian 12) leaves it as
#              it was when AveragedModel was made, 1. PyTorch's documentation says only that buffers are not averaged.
# So           where each worker has statistics of BatchNorm of its own, each one's AveragedModel differs, too, though all have averaged the same parameters.
# Needs        root's rights, debootstrap, apt's sources for Debian, 1.5 GiB and some minutes. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=2.6.0+dfsg-7
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
debootstrap --variant=minbase --include=ca-certificates trixie "$root" "$mirror" > /dev/null || skip "debootstrap made no Debian 13"
chroot "$root" apt-get install --yes --no-install-recommends "python3-torch=$version" > /dev/null 2>&1 ||
  skip "python3-torch $version is not to be had any more"
cat > "$root/averaged.py" << 'PYTHON'
import torch
from torch.optim.swa_utils import AveragedModel

model = torch.nn.BatchNorm1d(1)
model.running_mean.fill_(1)
averaged = AveragedModel(model)
for value in 3, 5:
    with torch.no_grad():
        model.weight.fill_(value)
        model.running_mean.fill_(value)
    averaged.update_parameters(model)
print("weight", averaged.module.weight.item(), "running_mean", averaged.module.running_mean.item())
PYTHON
seen=$(chroot "$root" python3 /averaged.py 2> /dev/null | grep '^weight ')  # without what its libraries say of the machine
expected="weight 4.0 running_mean 5.0"
echo "python3-torch $version: $seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was: $expected"; exit 1; }
