# tools/lib/gpu_check/fast.py - the half of tools/gpu-check that asks how fast training is, beside PyTorch's.
import json
import re
import shlex
import statistics
import sys
import time

from gpu_check.steps import ROOT, Left, Wrong, tail

sys.path.append(str(ROOT / "tests/cluster"))
from ports import reserved_address  # noqa: E402

# Net and batch. The first are the ones that matter if time runs out.
NETS = {"resnet50": 128, "alexnet": 256, "googlenet": 128, "vgg19": 64, "inception_v3": 64, "resnet152": 64}
WORDS = {"nchw": ["--layout", "nchw"], "autotune": ["--autotune"]}  # a setting's second word -> options
SIMULATED_NETS = {"lenet": 4, "cifar10_quick": 2}
SAMPLES = {"lenet": "1x28x28", "cifar10_quick": "3x32x32"}  # where no crop_size says so


class Fast:
    def solver(self, net, batch, iterations, display, more=""):
        """The zoo's net with this batch, without tests and snapshots."""
        train = (ROOT / f"models/zoo/{net}/train_val.prototxt").read_text()
        test_data = r'(?ms)^layer \{\n  name: "data"\n(?:(?!^\}).)*phase: TEST.*?^\}\n'
        (self.folder / f"{net}.net.prototxt").write_text(
            re.sub(r"batch_size: \d+", f"batch_size: {batch}", re.sub(test_data, "", train, count=1)))
        path = self.folder / f"{net}.prototxt"
        path.write_text(f'net: "{self.folder}/{net}.net.prototxt" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 '
                        f'weight_decay: 0.0005 max_iter: {iterations} display: {display} random_seed: 1 '
                        f'snapshot_prefix: "{self.folder}/{net}" snapshot_after_train: false {more}\n')
        return path

    def words(self, net, setting):
        """The options that say on which device the net is computed, and how."""
        math, *also = setting.split()
        return ["--synthetic", *([SAMPLES[net]] if net in SAMPLES else []), "--devices", "0", "--math", math,
                *(w for a in also for w in WORDS[a]), "--gpu-plugin", self.plugin]

    def train(self, net, solver, setting, *more):
        return [self.options.bin / "poseidon-node", "--solver", solver, *self.words(net, setting), *more]

    def overlap(self, limit):
        """Two nodes share the GPU and exchange all gradients through the host: what the run calls hidden lay beneath what they computed."""
        net, batch, iterations = ("lenet", 4, 40) if self.options.simulated else ("googlenet", 64, 60)
        solver = self.solver(net, batch, iterations, iterations // 4)
        with reserved_address() as address:
            first = self.train(net, solver, "tf32", "--listen", address, "--nodes", "2", "--routes", "ps")
            other = [self.options.bin / "poseidon-node", "--join", address, "--devices", "0", "--math", "tf32", "--gpu-plugin", self.plugin]
            code, output = self.run(["sh", "-c", 'join=$1; shift; "$@" & sh -c "$join"; wait $!', "two",
                                     " ".join(shlex.quote(str(word)) for word in other), *first], limit)
        self.demand(code, output, limit)
        hidden = [int(h) for h in re.findall(r"(?m)^iteration .* hidden (\d+)%", output)]
        if not hidden:
            raise Wrong(f"no line says how much was hidden: {tail(output)}")
        rates = [float(r) for r in re.findall(r"(?m)^iteration .* images/s ([\d.e+]+)", output)]
        return {"text": f"{net} on two nodes that share the GPU: {hidden[-1]}% of the exchanges hidden, {rates[-1]:.5g} images/s together",
                "net": net, "batch": batch, "hidden": hidden[-1] / 100, "images_per_s_together": rates[-1]}

    def speed(self, net, batch, setting, seconds):
        def work(limit):
            rates, since = [], []  # and when they were said

            def watch(line):
                found = re.match(r"iteration .* images/s ([\d.e+]+)", line)
                if found:
                    rates.append(float(found[1]))
                    since.append(time.monotonic())
                return len(rates) >= 6 and since[-1] - since[2] > seconds
            display, iterations = (1, 8) if self.options.simulated else (5, 1000000)
            code, output = self.run(self.train(net, self.solver(net, batch, iterations, display), setting), limit, watch)
            # The first line is of one iteration that also makes plans.
            if len(rates) < 4:
                self.demand(code, output, limit)
                raise Wrong(f"{len(rates)} lines with images/s: {tail(output)}")
            self.demand(code or 0, output, limit)  # cut off by the limit, it has still said enough
            rate, quartiles = statistics.median(rates[2:]), statistics.quantiles(rates[2:], n=4)
            text = f"{rate:.5g} images/s, half of the intervals {quartiles[0]:.5g} to {quartiles[2]:.5g}"
            return {"text": text, "net": net, "batch": batch, "program": "poseidon", "setting": setting,
                    "images_per_s": rate, "quartiles": [quartiles[0], quartiles[2]], "n": len(rates) - 2}
        return work

    def torch(self, net, batch, seconds):
        def work(limit):
            found = []
            watch = lambda line: found.append(json.loads(line)) if line.startswith("{") else None
            settings = (["--device", "cpu", "--settings", "eager tf32"] if self.options.simulated else
                        ["--settings", ",".join(self.options.torch_settings)])
            code, output = self.run([self.options.python, ROOT / "tools/bench/torch_gpu.py", "--net", net, "--batch", batch,
                                     "--seconds", seconds, *settings], limit, watch)
            if re.search(r"No module named '(torch|numpy)'", output):
                raise Left(f"{self.options.python} has no PyTorch: --python names another one")
            rates = [f for f in found if "images_per_s" in f]
            if not rates:
                self.demand(1 if code == 0 else code, output, limit)
            text = ", ".join(f"{f['setting']} {f['images_per_s']:.5g}" if "images_per_s" in f else f"{f['setting']}: {f['error']}"
                             for f in found)
            return {"text": text + (" (and no time for more)" if code is None else ""), "net": net, "batch": batch,
                    "program": "torch", "rates": found}
        return work

    def layer_times(self, net, batch, setting):
        """For the log: what each layer takes, with a wait behind it."""
        def work(limit):
            self.solver(net, batch, 1, 1)  # writes the net
            code, output = self.run([self.options.bin / "poseidon-node", "time", "--model", self.folder / f"{net}.net.prototxt",
                                     "--iterations", 5, *self.words(net, setting)], limit)
            self.demand(code, output, limit)
            return {"text": tail(output), "net": net, "batch": batch, "setting": setting}
        return work

    def speeds(self):
        """Each net gets an equal part of the time that is left, and what it does not need the next ones get. PyTorch comes
        last, for it takes all that there is to compile."""
        nets = {n: b for n, b in (SIMULATED_NETS if self.options.simulated else NETS).items()
                if not self.options.nets or n in self.options.nets}
        nets = dict(list(nets.items())[:2]) if self.options.quick and not self.options.nets else nets
        for number, (net, batch) in enumerate(nets.items()):
            seconds = 1 if self.options.simulated else 3
            until = time.monotonic() + (self.left() - 3) / (len(nets) - number)
            for setting in self.options.settings:  # each ends by itself when it has seen enough
                self.step(f"{net} poseidon {setting}", self.speed(net, batch, setting, seconds), (until - time.monotonic()) / 2)
            self.step(f"{net} layers", self.layer_times(net, batch, self.options.settings[-1]), (until - time.monotonic()) / 4)
            if not self.options.no_torch:
                self.step(f"{net} torch", self.torch(net, batch, seconds), until - time.monotonic())

    def table(self):
        """images/s of the nets: ours by math, PyTorch's by setting, ours to the best of PyTorch's of that math."""
        rows = {}
        for s in self.report["steps"]:
            for f in ([s] if s.get("program") == "poseidon" and "images_per_s" in s else s.get("rates", [])):
                if "images_per_s" in f:
                    rows.setdefault((s["net"], s["batch"]), {})[(s["program"], f["setting"])] = f["images_per_s"]
        out = ["", f"{'net':14} {'batch':>5}  {'setting':13} {'poseidon':>9} {'best torch':>10} {'ratio':>6}  setting"]
        for (net, batch), rates in rows.items():
            for setting in self.options.settings:
                ours, math = rates.get(("poseidon", setting)), setting.split()[0]
                theirs = max(((r, s) for (p, s), r in rates.items() if p == "torch" and s.endswith(math)), default=None)
                if ours is None and (theirs is None or setting != math):
                    continue
                out.append(f"{net:14} {batch:5}  {setting:13} {ours or 0:9.5g} {theirs[0] if theirs else 0:10.5g} "
                           f"{ours / theirs[0] if ours and theirs else 0:6.2f}  {theirs[1] if theirs else '-'}"
                           f"{'' if ('torch', 'compile ' + math) in rates else ' (torch.compile not measured)'}")
        return "\n".join(out) if rows else ""
