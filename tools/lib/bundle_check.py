# tools/lib/bundle_check.py - the proof that a bundle needs nothing of the machine on which it runs: tools/bundle --check and --smoke.
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from packed_libraries import Failed, SYSTEM, output_of

TOOLS = pathlib.Path(__file__).resolve().parent.parent
WEIGHTS = "check_iter_3.caffemodel"


class Skipped(Exception):
    """Why this machine cannot prove it, one line."""


NET = """
name: "lenet"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 4 dim: 1 dim: 28 dim: 28 } shape { dim: 4 } data_filler { type: "gaussian" std: 1 } data_filler { value: 3 } } }
"""


def write_lenet(folder):
    """The zoo's LeNet on made numbers, and solvers of 3 iterations, the second of which writes its snapshots in HDF5."""
    text = (folder / "models/zoo/lenet/train_val.prototxt").read_text()
    layers = re.findall(r"(?ms)^layer \{.*?^\}\n", text)
    kept = "".join(l for l in layers if not re.search(r'type: "(Data|Accuracy)"', l))
    (folder / "check.net.prototxt").write_text(NET + kept)
    solver = 'net: "check.net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 3 display: 1 random_seed: 1 '
    (folder / "check.prototxt").write_text(solver + 'snapshot_prefix: "check"\n')
    (folder / "hdf5.prototxt").write_text(solver + 'snapshot_prefix: "other" snapshot_format: HDF5\n')


def runs_of(folder):
    """The commands, relative to the bundle, each with what it has to say."""
    train = ["bin/poseidon-node", "--solver", "check.prototxt", "--devices"]
    runs = [(["bin/poseidon-node", "--version"], "poseidon-node "), (["bin/poseidon-graph", "--help"], "poseidon-graph"),
            (["bin/poseidon-data", "--help"], "poseidon-data"), (["bin/poseidon-oracle"], "usage: poseidon-oracle"),
            ([*train, "cpu:1"], f"snapshot {WEIGHTS}"),
            (["bin/poseidon-node", "--solver", "hdf5.prototxt"], "snapshot other_iter_3.caffemodel.h5"),
            (["bin/poseidon-data", "info", "other_iter_3.caffemodel.h5"], "weights"),
            ([*train, "0", "--gpu-plugin", "bin/libposeidon_gpu_simulated.so"], f"snapshot {WEIGHTS}")]
    if (folder / "bin/test_gpu_plugin").exists():
        runs.append((["bin/test_gpu_plugin", "--test-case=*ReLU*", "--gpu-plugin", "bin/libposeidon_gpu_simulated.so"], "0 failed"))
    return runs


def strangers(record, folder):
    """Libraries of the dynamic linker's record (LD_DEBUG=libs) that are neither of the bundle nor of the system."""
    loaded = {pathlib.Path(p) for p in re.findall(r"calling init: (.+)$", record, re.M)}
    if not loaded:
        raise Failed("the dynamic linker left no record: is this a glibc system?")
    return sorted(str(p) for p in loaded if folder not in pathlib.Path(os.path.normpath(p)).parents and not SYSTEM.match(p.name))


def run_all(folder, root=None):
    """Without an environment. With `root` as the root folder, in which `folder` lies. Returns the hashes of the weights that it has trained."""
    inside = pathlib.Path("/") / folder.relative_to(root) if root else folder

    def enter():
        os.chroot(root)
        os.chdir(inside)

    trained = []
    for command, wanted in runs_of(folder):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              env={"LD_DEBUG": "libs"}, preexec_fn=enter if root else None)
        said = done.stdout + "\n".join(line for line in done.stderr.splitlines() if not re.match(r"\s+\d+:\s", line))
        if wanted not in said:
            raise Failed(f"{' '.join(command)} ended with {done.returncode} and did not say \"{wanted}\":\n{said[-1500:]}")
        outside = strangers(done.stderr, inside)
        if outside:
            raise Failed(f"{' '.join(command)} loaded from outside the bundle: {', '.join(outside)}")
        print(f"ok  {' '.join(command)}{' (bare root)' if root else ''}", flush=True)
        if WEIGHTS in wanted:
            trained.append(hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest())
    return trained


def run_in_bare_root(folder, root):
    """`root` gets the bundle, glibc, libstdc++, libgcc_s, /proc (for $ORIGIN) and /dev; no shell, no /usr. In a mount
    namespace of its own, so that what is mounted goes with this process."""
    place = root / "any where/poseidon"
    shutil.copytree(folder, place)
    needed = "".join(output_of(["ldd", place / file]) for file in ("bin/poseidon-node", "lib/libposeidon_hdf5.so"))
    for name, path in re.findall(r"(?m)^\s*(\S+) (?:=> (\S+) )?\(0x", needed):
        library = pathlib.Path(path or name)
        if library.is_absolute() and SYSTEM.match(library.name):
            to = root / ("lib64" if library.name.startswith("ld-") else "lib/x86_64-linux-gnu") / library.name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, to)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    output_of(["mount", "-t", "proc", "proc", root / "proc"])
    output_of(["mount", "--bind", "/dev", root / "dev"])
    run_all(place, root)


def check(folder):
    """`folder` is a bundle, which is left alone."""
    with tempfile.TemporaryDirectory(prefix="poseidon-bundle-") as name:
        place = pathlib.Path(name).resolve() / "any where/poseidon"
        shutil.copytree(folder, place)
        write_lenet(place)
        print("weights", *run_all(place))
        root = pathlib.Path(name).resolve() / "root"
        root.mkdir()
        namespace = ["unshare", "--mount", "--propagation", "private"]
        try_mount = [*namespace, "mount", "-t", "proc", "proc", root]  # gone with its namespace
        if os.geteuid() != 0 or subprocess.run(try_mount, capture_output=True).returncode:
            print("left out: the bare root, which needs root's rights and mount namespaces")
        elif subprocess.run([*namespace, sys.executable, TOOLS / "bundle", "--bare-root", root, place]).returncode:
            raise Failed("the bundle does not run in a bare root (above)")


def in_root(release, root, bundle):
    """What --check says in a bare Debian of this release."""
    script = ('. "$0/lib/debian_root.sh"; need_debian_roots && debian_root "$1" "$2" python3 || { echo "$debian_root_why"; exit 77; }; '
              'in_debian_root "$2" --bind "$0" /opt/tools --bind "$3" /opt/poseidon python3 -B /opt/tools/bundle --check /opt/poseidon')
    done = subprocess.run(["bash", "-c", script, TOOLS, release, root, bundle], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 77:
        raise Skipped(done.stdout.strip())
    if done.returncode:
        raise Failed(f"the bundle does not run on a bare Debian {release}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def smoke(bundle, roots):
    """`bundle` runs in a bare Debian of each release, with the same bits."""
    first = None
    for release in ("bookworm", "trixie", "testing"):
        said = in_root(release, roots.resolve() / release, bundle)
        weights = re.search(r"(?m)^weights (.+)$", said)[1]
        print(f"ok  {said.count('ok  ')} commands on a bare Debian {release}, weights {weights[:16]}", flush=True)
        if weights != (first := first or weights):
            raise Failed(f"trained weights differ: on bookworm {first}, on {release} {weights}. Is it glibc's libm? docs/systems.md says what may differ")
    print("smoke: the bundle runs and trains on Debian 12, 13 and testing, with the same bits")
