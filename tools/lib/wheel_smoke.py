#!/usr/bin/env python3
# tools/lib/wheel_smoke.py - installs a wheel into a virtual environment of this Python, and trains with nothing else of ours: for tools/wheel and a test.
"""usage: python3 -B wheel_smoke.py WHEEL

Needs python3-venv and PyTorch. The end is one line "smoke: ..." with the hash of the trained parameters, or an error and exit code 1.
One file that needs no other, because it is copied into systems that have nothing of ours."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

# A net whose gradients come from convolutions, large and small linear layers and buffers. Worker R of N takes each N-th sample; alone, the script
# adds the gradients of both in the workers' order.
TRAIN = """
import pathlib, sys
import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 64), nn.Tanh(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.0625, momentum=0.9)
images, labels = torch.randn(8, 4, 1, 28, 28), torch.randint(10, (8, 4))

def backward(step):
    nn.functional.cross_entropy(model(images[step]), labels[step]).backward()

out = pathlib.Path(sys.argv[1])
if sys.argv[2:] == ["alone"]:
    for step in range(0, 8, 2):
        optimizer.zero_grad()
        backward(step)
        backward(step + 1)
        for p in model.parameters():
            p.grad *= 0.5
        optimizer.step()
else:
    import poseidon.torch as poseidon
    assert pathlib.Path(poseidon.__file__).is_relative_to(sys.prefix), poseidon.__file__
    poseidon.join(model, optimizer)
    for step in range(0, 8, 2):
        optimizer.zero_grad()
        backward(step + poseidon.rank())
        optimizer.step()
    out = out / str(poseidon.rank())
    poseidon.leave()
    mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
    ours = [name for name in mapped if pathlib.Path(name).name == "libposeidon.so"]
    assert len(ours) == 1 and pathlib.Path(ours[0]).is_relative_to(pathlib.Path(sys.prefix).resolve()), ours
out.write_bytes(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
"""
# What the library brings into a process is the wheel's, or of every Linux.
ALONE = """
import pathlib, re, sys
def mapped():
    return {pathlib.Path(line.split(None, 5)[5].strip()) for line in open("/proc/self/maps") if ".so" in line}
import poseidon.library
before = mapped()
poseidon.library.library()
system = r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s))\\.so"
new = [p for p in mapped() - before if not re.match(system, p.name)]
wheel = pathlib.Path(sys.prefix).resolve() / "lib"
strange = [str(p) for p in new if wheel not in p.parents]
assert len(new) > 10 and not strange, strange
import ssl, torch  # which bring their own OpenSSL, protobuf, oneDNN and OpenMP
ssl.create_default_context()
torch.nn.Conv2d(3, 4, 3)(torch.randn(2, 3, 8, 8, requires_grad=True)).sum().backward()
print(len(new), "libraries of the wheel and no other come into a process; then it imports ssl and torch")
"""


# The launcher gives workers that share a machine one thread each (OMP_NUM_THREADS), and OpenBLAS looks at that, too. With another number of threads it
# computes other bits on some processors, so the process that trains alone gets one as well.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(*words, cwd, fails_with=None):
    """Without any variable that helps our package to its library. `fails_with`: what it has to say before it ends with an error."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    done = subprocess.run([str(w) for w in words], cwd=cwd, env={**kept, **ONE_THREAD, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if bool(done.returncode) != bool(fails_with) or (fails_with and fails_with not in done.stderr):
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def main(wheel):
    wheel = pathlib.Path(wheel).resolve()
    with tempfile.TemporaryDirectory(prefix="poseidon-wheel-") as name:
        folder = pathlib.Path(name)
        run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv", cwd=folder)
        python, launch = folder / "venv/bin/python3", folder / "venv/bin/poseidon-launch"
        run(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-cache-dir", wheel, cwd=folder)
        print("ok ", run(python, "-c", ALONE, cwd=folder).strip(), flush=True)
        (folder / "train.py").write_text(TRAIN)
        run(launch, 2, python, "train.py", folder, cwd=folder)
        run(python, "train.py", folder / "alone", "alone", cwd=folder)
        run(launch, 2, sys.executable, "-S", "-c", "import poseidon", cwd=folder, fails_with="Poseidon is installed for")  # a Python that has it not
        trained = {name: (folder / name).read_bytes() for name in ("0", "1", "alone")}
        different = [name for name in trained if trained[name] != trained["0"]]
        if different:
            sys.exit(f"the parameters of {different[0]} differ from those of worker 0")
        run(python, "-m", "pip", "--disable-pip-version-check", "uninstall", "--yes", "poseidon", cwd=folder)
        left = [str(p) for p in (folder / "venv").rglob("*") if "poseidon" in p.name]
        if left:
            sys.exit(f"left after pip uninstall: {left}")
        version = run(python, "-c", "import sys, torch; print('Python', sys.version.split()[0], 'and PyTorch', torch.__version__)", cwd=folder).strip()
        digest = hashlib.sha256(trained["0"]).hexdigest()[:16]
        print(f"smoke: {version}: two workers and one process have trained the same parameters, {digest}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
