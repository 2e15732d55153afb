# tools/bench/lib/layer_times.py - "poseidon-node time" of a net of models/zoo on random images.
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NODE = ROOT / "build/release/bin/poseidon-node"
SAMPLES = {"lenet": "1x28x28", "cifar10_quick": "3x32x32", "cifar10_full": "3x32x32"}  # of nets whose files do not say


def events(net, threads, iterations, *words, node=NODE):
    """What it says, an event a dictionary: "layer" for each layer, "update", "result". `words`: more of its options; `node`: the program of another build."""
    command = [node, "time", "--model", ROOT / f"models/zoo/{net}/train_val.prototxt", "--synthetic", *([SAMPLES[net]] if net in SAMPLES else []),
               "--devices", f"cpu:{threads}", "--iterations", str(iterations), "--json", *words]
    return [json.loads(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()]


def only(found, kind):
    """The first event of this kind."""
    return next(e for e in found if e["event"] == kind)
