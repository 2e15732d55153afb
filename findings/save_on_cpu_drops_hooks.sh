#!/usr/bin/env bash
# findings/save_on_cpu_drops_hooks.sh - PyTorch 2.6: a Parameter that a custom autograd.Function saves loses its hooks under save_on_cpu.
#
# Seen with    Debian 13, python3-torch 2.6.0+dfsg-7 (CPU), Python 3.13.
# What is run  A Parameter has a hook (register_hook) that counts its calls. Two steps each: y = f(x, w); y.sum().backward(). f is a Function that saves w by
#              ctx.save_for_backward, or PyTorch's own product; the forward pass runs plainly, or under torch.autograd.graph.save_on_cpu().
# Behaviour    Own Function under save_on_cpu: the hook is never called, nothing says so, and the gradient is written. In the other three cases it is called
#              in each step. PyTorch 1.13 (Debian 12) and 2.14 (Debian testing) call it in all four.
# So           whoever saves a parameter in a Function saves w.detach() where it has to work with 2.6: what is unpacked is no leaf then.
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
cat > "$root/hooks.py" << 'PYTHON'
import contextlib
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy * w, (dy * x).sum(0)


def calls_in_two_steps(within, product):
    w, seen = torch.nn.Parameter(torch.ones(3)), []
    w.register_hook(lambda gradient: seen.append(gradient))
    for _ in range(2):
        with within():
            y = product(torch.ones(2, 3), w)
        y.sum().backward()
        del y
    assert w.grad is not None
    return len(seen)


for name, within in ("plain", contextlib.nullcontext), ("save_on_cpu", torch.autograd.graph.save_on_cpu):
    print(name, "own", calls_in_two_steps(within, Product.apply), "PyTorch's", calls_in_two_steps(within, torch.mul))
PYTHON
seen=$(chroot "$root" python3 /hooks.py 2> /dev/null | grep ' own ')  # without what its libraries say of the machine
expected="plain own 2 PyTorch's 2
save_on_cpu own 0 PyTorch's 2"
echo "python3-torch $version, calls of the hook in two steps:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
