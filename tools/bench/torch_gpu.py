#!/usr/bin/env python3
# tools/bench/torch_gpu.py - PyTorch's training step of a net of the zoo on a GPU, for tools/gpu-check to compare with.
"""Asks   How many images per second does PyTorch train on this GPU: forward, loss, backward, SGD with momentum?
Shapes  any net of models/zoo, made of PyTorch's own modules from its train_val.prototxt; a BatchNorm and the Scale after it
        are one BatchNorm2d. Every step copies one batch of random images from pinned memory, on a GPU beside the step
        before it, as loaders do; no data is read.
Checks  nothing.

usage: tools/bench/torch_gpu.py --net NET [--batch B] [--seconds S] [--settings LIST] [--device cuda|cpu]

Settings, in this order unless LIST (with commas) says otherwise: channels_last, compile (torch.compile of channels_last)
and eager, each in tf32 and in bf16 (autocast). Reads: a line of JSON for each as soon as it is known; images_per_s
is the median of groups of 5 steps, nothing waiting within a group, after 5 steps that warm up; or "error" in its place.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys
import time
import traceback
import warnings

import torch
from torch import nn
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETTINGS = ("channels_last tf32", "channels_last bf16", "compile tf32", "compile bf16", "eager tf32", "eager bf16")
GROUP = 5  # steps


def parse(text):
    """Protobuf's text form as dictionaries of lists."""
    tokens = iter(re.findall(r'"[^"]*"|[{}:]|[^\s{}:"]+', re.sub(r"#[^\n]*", "", text)))

    def message():
        fields = {}
        for name in tokens:
            if name == "}":
                break
            mark = next(tokens)
            fields.setdefault(name, []).append(message() if mark == "{" else value(next(tokens)))
        return fields

    def value(token):
        if token == "{":
            return message()
        try:
            return float(token) if re.search(r"[.eE]", token) and token[0] != '"' else int(token)
        except ValueError:
            return {"true": True, "false": False}.get(token, token.strip('"'))

    return message()


def pair(fields, name, default):
    """kernel_size, or kernel_h and kernel_w; pad and stride the same way."""
    short = name.replace("_size", "")
    both = fields.get(name, [default])
    return (fields.get(short + "_h", both[:1])[0], fields.get(short + "_w", both[-1:])[0])


class Net(nn.Module):
    """Layers of the phase TRAIN in the file's order. forward(images, labels) is the sum of its losses."""

    def __init__(self, layers):
        super().__init__()
        self.parts = nn.ModuleList()
        self.steps = []  # (type, bottoms, tops, module or None, argument)
        scaled = {l["bottom"][0] for l in layers if l["type"][0] == "Scale"}
        for layer in layers:
            kind, bottoms, tops = layer["type"][0], layer.get("bottom", []), layer.get("top", [])
            if kind in ("Data", "Accuracy") or "TEST" in [i.get("phase", [""])[0] for i in layer.get("include", [])]:
                continue
            module, argument = self.make(kind, layer, bottoms == tops, scaled)
            if module is not None:
                self.parts.append(module)
            self.steps.append((kind, bottoms, tops, len(self.parts) - 1 if module is not None else None, argument))

    @staticmethod
    def make(kind, layer, in_place, scaled):
        def of(name):
            return layer.get(name, [{}])[0]

        if kind == "Convolution":
            p = of("convolution_param")
            return nn.LazyConv2d(p["num_output"][0], pair(p, "kernel_size", 1), pair(p, "stride", 1), pair(p, "pad", 0),
                                 groups=p.get("group", [1])[0], bias=p.get("bias_term", [True])[0]), None
        if kind == "InnerProduct":
            p = of("inner_product_param")
            return nn.LazyLinear(p["num_output"][0], bias=p.get("bias_term", [True])[0]), None
        if kind == "Pooling":
            p = of("pooling_param")
            if p.get("global_pooling", [False])[0]:
                return nn.AdaptiveAvgPool2d(1) if p["pool"] == ["AVE"] else nn.AdaptiveMaxPool2d(1), None
            make = nn.AvgPool2d if p.get("pool") == ["AVE"] else nn.MaxPool2d
            return make(pair(p, "kernel_size", 1), pair(p, "stride", 1), pair(p, "pad", 0), ceil_mode=True), None
        if kind == "LRN":
            p = of("lrn_param")
            return nn.LocalResponseNorm(p["local_size"][0], p["alpha"][0], p["beta"][0], p.get("k", [1])[0]), None
        if kind == "BatchNorm":
            return nn.LazyBatchNorm2d(affine=layer["top"][0] in scaled), None
        if kind == "ReLU":
            return nn.ReLU(inplace=in_place), None
        if kind == "Dropout":
            return nn.Dropout(of("dropout_param").get("dropout_ratio", [0.5])[0]), None
        if kind == "SoftmaxWithLoss":
            return None, layer.get("loss_weight", [1])[0]
        if kind in ("Scale", "Eltwise", "Concat", "Flatten"):
            return None, None
        sys.exit(f"torch_gpu.py: a layer of type {kind}, which it does not know")

    def forward(self, images, labels):
        blobs, loss = {"data": images, "label": labels}, 0
        for kind, bottoms, tops, module, argument in self.steps:
            x = [blobs[b] for b in bottoms]
            if kind == "SoftmaxWithLoss":
                loss = loss + argument * functional.cross_entropy(x[0].float().flatten(1), labels)
                continue
            if kind == "Eltwise":
                y = sum(x[1:], x[0])
            elif kind == "Concat":
                y = torch.cat(x, 1)
            elif kind == "Flatten":
                y = x[0].flatten(1)
            elif kind == "Scale":
                y = x[0]  # the BatchNorm before it
            else:
                y = self.parts[module](x[0].flatten(1) if kind == "InnerProduct" else x[0])
            blobs[tops[0]] = y
        return loss


def sample_shape(net, layers):
    crop = layers[0].get("transform_param", [{}])[0].get("crop_size")
    return (3, crop[0], crop[0]) if crop else (1, 28, 28) if net == "lenet" else (3, 32, 32)


def timed(options, layers, setting):
    """Images per second of the median step."""
    mode, precision = setting.split()
    gpu = options.device == "cuda"
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    layout = torch.contiguous_format if mode == "eager" else torch.channels_last
    host = torch.randn(options.batch, *sample_shape(options.net, layers)).contiguous(memory_format=layout)
    host_labels = torch.randint(0, 10, (options.batch,))
    if gpu:
        host, host_labels = host.pin_memory(), host_labels.pin_memory()
    net = Net(layers).to(options.device)
    with torch.no_grad():
        net(host[:2].to(options.device), host_labels[:2].to(options.device))  # the lazy modules get their shapes
    net = net.to(memory_format=layout).train()
    run = torch.compile(net) if mode == "compile" else net
    rule = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, **({"fused": True} if gpu else {}))
    beside = torch.cuda.Stream() if gpu else None

    def fetch():
        if not gpu:
            return host, host_labels
        with torch.cuda.stream(beside):
            return host.to(options.device, non_blocking=True), host_labels.to(options.device, non_blocking=True)

    batches = [fetch()]

    def step():
        images, labels = batches.pop()
        if gpu:
            compute = torch.cuda.current_stream()
            compute.wait_stream(beside)
            images.record_stream(compute)
            labels.record_stream(compute)
        batches.append(fetch())
        rule.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = run(images, labels)
        loss.backward()
        rule.step()

    def group():
        start = time.perf_counter()
        for _ in range(GROUP):
            step()
        if gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / GROUP

    group()  # warms up, and compiles
    times, began = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - began < options.seconds:
        times.append(group())
    return options.batch / statistics.median(times), sum(p.numel() for p in net.parameters())


def cause(why):
    """A compiler's errors begin with the wrapper's name and end with advice; the line between that names a cause."""
    lines = [line.strip() for line in f"{type(why).__name__}: {why}".splitlines() if line.strip()]
    named = [line for line in lines[1:] if re.search(r"error|not found|No such|missing", line, re.I)]
    return " / ".join([lines[0], *named[:1]])[:400]


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/torch_gpu.py", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--settings", default=",".join(SETTINGS), type=str)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Lazy modules")
    layers = parse((ROOT / f"models/zoo/{options.net}/train_val.prototxt").read_text())["layer"]
    for setting in options.settings.split(","):
        line = {"framework": "torch " + torch.__version__, "net": options.net, "batch": options.batch, "setting": setting}
        try:
            rate, parameters = timed(options, layers, setting)
            line |= {"images_per_s": round(rate, 2), "parameters": parameters}
        except Exception as why:  # out of memory, a compiler that is missing: the next setting may do
            traceback.print_exc()
            line["error"] = cause(why)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
