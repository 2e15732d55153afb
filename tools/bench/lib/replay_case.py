# tools/bench/lib/replay_case.py - one net on P replayed hosts over links of one rate: prepared, trained, counted.
"""Used by tools/bench/cluster and tools/bench/routes, whose options say what `options` has: iterations, byte_scale,
time_scale, traces (a folder or None), ddp (a command or None).
"""
import argparse
import json
import math
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import time

import lab as labs
import theory

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NODE = ROOT / "build/release/bin/poseidon-node"
WARM_UP = 2  # iterations that do not count: the first has no parameters to wait for
# name: (folder of the zoo, layers that are left out). GoogLeNet without its auxiliary heads is what other
# frameworks train under that name; with them it is called googlenet_heads here.
NETS = {
    "alexnet": ("alexnet", None), "vgg19": ("vgg19", None), "vgg19_22k": ("vgg19_22k", None),
    "googlenet": ("googlenet", ("loss1/", "loss2/")), "googlenet_heads": ("googlenet", None),
    "inception_v3": ("inception_v3", None), "resnet152": ("resnet152", None), "resnet50": ("resnet50", None),
}
PROFILES = ("titan_x.profile", "h100.profile")  # the first that the zoo has of a net


def bits_per_s(text):
    found = re.fullmatch(r"([\d.]+)([kmg])bit", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is no rate: write 100mbit, 1gbit")
    return float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2]]


def without(text, prefixes):
    """A prototxt without the layers whose names begin so. Layers begin in column 0 and end there, as tools/zoo writes."""
    parts = re.split(r"(?m)^(?=layer \{)", text)
    return "".join(p for p in parts if not re.search(r'\bname: "(' + "|".join(map(re.escape, prefixes)) + ")", p))


def prepare(folder, name, batch, iterations, images_s=None):
    """Solver and profile of a net, in `folder`. `images_s`: of a device that is as fast, in place of the zoo's profile."""
    source, dropped = NETS[name]
    zoo = ROOT / "models/zoo" / source
    net = re.sub(r"\bbatch_size: \d+", f"batch_size: {batch}", (zoo / "train_val.prototxt").read_text())
    profile = next(zoo / name for name in PROFILES if (zoo / name).exists()).read_text()
    net_file, solver_file, profile_file = (folder / f"{name}.{kind}" for kind in ("net", "solver", "profile"))
    net_file.write_text(without(net, dropped) if dropped else net)
    solver_file.write_text(f'net: "{net_file}" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005 '
                           f'max_iter: {iterations} display: 1 snapshot_prefix: "{folder}/none"\n')
    profile_file.write_text(profile)
    if dropped or images_s:  # the whole throughput, over the layers that are left
        rate = images_s or re.search(r'measured: "([\d.]+) images/s', profile)[1]
        subprocess.run([NODE, "time", "--model", net_file, "--synthetic", "--images-s", str(rate), "--profile-out", profile_file],
                       check=True, stdout=subprocess.DEVNULL)
    return solver_file, profile_file


def compute_seconds(profile, batch):
    text = profile.read_text()
    ms = sum(float(v) for v in re.findall(r"(?:forward|backward)_ms: ([\d.e+-]+)", text))
    return ms / 1e3 * batch / int(re.search(r"(?m)^batch: (\d+)", text)[1])


def busy_seconds():
    """CPU time of all cores since the machine started."""
    fields = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for(process, pattern, what, seconds=120):
    """The first match of `pattern` in the process's output."""
    deadline = time.monotonic() + seconds
    while True:
        text = process.output.read_text(errors="replace")
        found = re.search(pattern, text, re.M)
        if found:
            return found
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"tools/bench/cluster: {what} did not come; the end of its output:\n{text[-800:]}")
        time.sleep(0.005)


def wait_all(processes, what, seconds):
    deadline = time.monotonic() + seconds
    for process in processes:
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = f"no end after {seconds} s"
        if code != 0:
            raise SystemExit(f"tools/bench/cluster: {what} ended with {code}:\n{process.output.read_text()[-800:]}")


def forward_begins(trace, layer):
    """When the layer's forward passes began on the first host, in seconds, by clock."""
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    return {e["args"]["clock"]: e["ts"] / 1e6 for e in events
            if e.get("ph") == "X" and e["name"] == layer and e["cat"] == "forward"}


def travelling(log):
    """(layer, place in the layer, number of values) of each parameter that travels, from the node's list of routes."""
    for layer, place, extents in re.findall(r"(?m)^debug \S+ route (\S+)/(\d+): ([\dx]+|scalar),", log):
        yield layer, int(place), 1 if extents == "scalar" else math.prod(map(int, extents.split("x")))


def parameter_bytes(log):
    """The bytes of the parameters that travel, as float32."""
    return 4 * sum(values for _, _, values in travelling(log))


def route_bytes(solver, hosts):
    """layer -> (bytes by the server, bytes as factors) that a host sends in an iteration."""
    said = subprocess.run([NODE, "--solver", solver, "--nodes", str(hosts), "--synthetic", "--routes", "ps",
                           "--explain-routes=json"], check=True, capture_output=True, text=True).stdout
    return {r["layer"]: (r["parameter_server"]["bytes"], r["factor_broadcast"]["bytes"]) for r in json.loads(said)["routes"]}


def run_script(command, words, hosts, rate, options, folder, seconds):
    """Runs a command on each host of a lab, with `words` and the host's rank replaced in it. One record of a round."""
    with labs.Lab(hosts) as lab:
        lab.shape(rate * options.byte_scale / options.time_scale, options.byte_scale)
        busy, begin = busy_seconds(), time.monotonic()
        ranks = []
        for h in range(hosts):
            all_words = {**words, "rank": h, "world": hosts, "master": lab.address(0), "byte_scale": options.byte_scale, "time_scale": options.time_scale}
            filled = [re.sub(r"\{(\w+)\}", lambda m: str(all_words.get(m[1], m[0])), w) for w in shlex.split(command)]
            ranks.append(lab.start(h, *filled, output=folder / f"ddp{h}.log"))
        wait_all(ranks, " ".join(filled), seconds)
        busy = (busy_seconds() - busy) / (time.monotonic() - begin)
    text = ranks[0].output.read_text()
    line = next((x for x in reversed(text.splitlines()) if x.startswith("{")), None)
    said = json.loads(line) if line else {}
    if "median_s" not in said:
        raise SystemExit(f"{' '.join(filled)} printed no JSON with median_s:\n{text[-800:]}")
    return {"times": [said["median_s"] / options.time_scale], "busy": busy,
            **({"out": 1e6 * said["wire_MB"] / options.byte_scale} if said.get("wire_MB") else {})}


class Case:
    def __init__(self, net, hosts, rate, routes, options, folder, batch=32, words=(), images_s=None):
        """`words`: more options of the first node; `images_s` as of prepare()."""
        self.net, self.hosts, self.rate, self.batch, self.words = net, hosts, rate, batch, words
        self.routes, _, fifo = routes.partition(":") if isinstance(routes, str) else (routes, "", "")
        self.label = ", ".join(["poseidon-node", str(self.routes), *([" ".join(map(str, words))] if words else [])] + (["fifo and barrier"] if fifo else []))
        self.fifo = ",fifo" if fifo else ""
        self.options, self.folder = options, folder
        self.solver, self.profile = prepare(folder, net, batch, options.iterations + WARM_UP, images_s)
        self.first_layer = re.search(r'(?m)^layer \{ name: "([^"]+)"', self.profile.read_text())[1]
        self.compute_s = compute_seconds(self.profile, batch)
        self.link = rate * options.byte_scale / options.time_scale  # of the lab
        self.route_bytes = route_bytes(self.solver, hosts)
        self.ours, self.theirs = [], {}  # one record a round; of DDP by the name of its way

    def seconds(self):
        """What a run may take, generously."""
        return 120 + 20 * (self.options.iterations + WARM_UP) * self.options.time_scale * (self.compute_s + 5e9 / self.rate)

    def train(self, number):
        o = self.options
        token = self.folder / "token"
        token.write_text("a token for one benchmark\n")
        trace = self.folder / "trace.json"
        trace.unlink(missing_ok=True)
        devices, common = f"replay:{self.profile}", ["--token-file", token]
        routes = f"auto:{self.link / 1e6}" if self.routes == "auto" else self.routes
        with labs.Lab(self.hosts) as lab:
            first = lab.start(0, NODE, "--solver", self.solver, "--listen", f"{lab.address(0)}:7600", "--nodes", self.hosts,
                              *common, "--routes", routes, *self.words,
                              "--devices", f"{devices},bytes={o.byte_scale},time={o.time_scale}{self.fifo}", "--trace", trace,
                              "--log-level", "debug", output=self.folder / "first.log")
            wait_for(first, r"^listening on", "the first node's address")
            traced = lambda h: ["--trace", self.folder / f"trace{h}.json"] if o.traces else []
            others = [lab.start(h, NODE, "--join", f"{lab.address(0)}:7600", *common, "--devices", devices, *traced(h), output=self.folder / f"{h}.log")
                      for h in range(1, self.hosts)]
            # The first values travel over links without limit; all have them when all have a loss.
            wait_for(first, r"^iteration 0/", "the first iteration")
            lab.shape(self.link, self.options.byte_scale)
            busy, begin = busy_seconds(), time.monotonic()
            wait_all([first, *others], "poseidon-node", self.seconds())
            busy = (busy_seconds() - busy) / (time.monotonic() - begin)
            moved = [lab.bytes(h) for h in range(self.hosts)]
        begins = forward_begins(trace, self.first_layer)
        if o.traces:
            o.traces.mkdir(parents=True, exist_ok=True)
            for h, file in enumerate([trace] + [self.folder / f"trace{h}.json" for h in range(1, self.hosts)]):
                file.replace(o.traces / f"{self.net}-{self.hosts}-{self.rate:.0f}-{number}-host{h}.json")
        iterations = o.iterations + WARM_UP
        times = [(begins[c + 1] - begins[c]) / o.time_scale for c in range(WARM_UP, iterations - 1)]
        said = first.output.read_text()
        values = parameter_bytes(said)
        chosen = re.search(r"(?m)^routes: factor_broadcast for (.*)$", said)
        self.factors = chosen[1].split(", ") if chosen else []
        # The first values, which the first host sends to each of the others, are no iteration's.
        out = [sent - (values * (self.hosts - 1) if h == 0 else 0) for h, (sent, _) in enumerate(moved)]
        into = [received - (values if h > 0 else 0) for h, (_, received) in enumerate(moved)]
        self.parameter_bytes = values / o.byte_scale
        self.ours.append({"times": times, "busy": busy, "out": max(out) / iterations / o.byte_scale,
                          "in": max(into) / iterations / o.byte_scale})

    def train_ddp(self, command, name="DDP, gloo"):
        words = {"net": self.net, "batch": self.batch, "compute_s": self.compute_s, "dashed": self.net.replace("_", "-")}
        said = run_script(command, words, self.hosts, self.rate, self.options, self.folder, self.seconds())
        self.theirs.setdefault(name, []).append(said)

    def rows(self):
        server = theory.server_bytes(self.parameter_bytes, self.hosts)
        moves = server - sum(ps - sfb for ps, sfb in (self.route_bytes[layer] for layer in self.factors))
        least = server - sum(max(0, ps - sfb) for ps, sfb in self.route_bytes.values())
        bound = theory.bound_seconds(self.compute_s, least, self.rate)
        for program, rounds in [(self.label, self.ours), *self.theirs.items()]:
            times = [t for r in rounds for t in r["times"]]
            median = statistics.median(times)
            traffic = [statistics.median(r[k] for r in rounds) / 1e6 if k in rounds[0] else None for k in ("out", "in")]
            yield {"net": self.net, "P": self.hosts, "rate": self.rate, "program": program, "compute_s": self.compute_s,
                   "bound_s": bound, "iteration_s": median, "mad_s": statistics.median(abs(t - median) for t in times),
                   "out_MB": traffic[0], "in_MB": traffic[1], "theory_MB": moves / 1e6,
                   "busy": statistics.median(r["busy"] for r in rounds)}
