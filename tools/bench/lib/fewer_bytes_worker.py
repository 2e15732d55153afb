# tools/bench/lib/fewer_bytes_worker.py - one worker of a run of "tools/bench/convergence fewer-bytes": trains a small model with poseidon.torch.
"""usage: tools/launch/local 4 python3 fewer_bytes_worker.py --task lenet|resnet20|gpt --data PATH --seed S --iterations N
              [--mode ddp|shards] [--wire FORMAT] [--rank R] [--outer H] [--accumulate K] [--shorter K] [--page HOST:PORT]

All workers begin with the same parameters, and each draws its batches from a part of the data of its own; the seed chooses both. An iteration is a
batch on each worker. --accumulate K: a step has the gradients of K batches. --shorter K: there are N/K iterations. --page: where worker 0 reads how much
it has sent. Worker 0 prints "RESULT {...}": score (percent of the 10,000 test images, or bits per byte of 65,536 bytes of text), loss of the last batch, and sent,
the bytes that it has sent in the whole run, but for what the start needs.
"""
import argparse
import contextlib
import gzip
import json
import math
import os
import pathlib
import urllib.request

import torch
import torch.nn.functional as F
from torch import nn

import poseidon.torch as poseidon

# -- models


def lenet():
    """The zoo's LeNet."""
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + self.shortcut(x))


def resnet20():
    """The ResNet-20 of fewer_bytes_nets.py."""
    layers, inputs = [nn.Conv2d(1, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for width in (16, 32, 64):
        for _ in range(3):
            layers.append(Block(inputs, width, 1 if inputs == width else 2))
            inputs = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for p in model.parameters():
        if p.dim() == 4:
            nn.init.kaiming_normal_(p, nonlinearity="relu")
    return model


WIDTH, HEADS, LAYERS, LENGTH = 128, 4, 2, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("later", torch.full((LENGTH, LENGTH), float("-inf")).triu(1), persistent=False)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, -1).transpose(1, 2) for part in self.attention(self.norms[0](x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / (WIDTH // HEADS)**0.5 + self.later).softmax(-1)
        x = x + self.projection((weights @ v).transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrow(F.gelu(self.widen(self.norms[1](x))))


class Gpt(nn.Module):
    """Bytes in, the logits of each one's successor out. The last layer has the first one's weights. A convolution mixes the embeddings of three neighbours: without
    it a run as short as this one stays on a plateau whose end is chance, and no two runs can be compared."""

    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.neighbours = nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH, bias=False)
        self.layers, self.last = nn.Sequential(*(Attention() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, x):
        e = self.bytes(x)
        e = e + self.neighbours(F.pad(e.transpose(1, 2), (2, 0))).transpose(1, 2)
        return self.last(self.layers(e + self.places.weight)) @ self.bytes.weight.t()


# -- tasks: data, loss, score


class Pictures:
    BATCH = 32

    def __init__(self, model, rate, decay, folder):
        self.model, self.folder = model, pathlib.Path(folder)
        self.optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=decay)
        self.images, self.labels = self._read("train")

    def _read(self, part):
        def values(kind, header):
            with gzip.open(self.folder / f"{part}-{kind}-ubyte.gz") as file:
                return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)
        return values("images-idx3", 16).view(-1, 1, 28, 28), values("labels-idx1", 8).long()

    @staticmethod
    def _input(images):
        return (images.float() / 255 - 0.286) / 0.353

    def batches(self, rank, size, seed):
        own = torch.randperm(len(self.images), generator=torch.Generator().manual_seed(seed))[rank::size]
        drawn = torch.Generator().manual_seed(1000 * seed + rank)
        while True:
            order = own[torch.randperm(len(own), generator=drawn)]
            yield from order[:len(own) // self.BATCH * self.BATCH].split(self.BATCH)

    def loss(self, batch):
        return F.cross_entropy(self.model(self._input(self.images[batch])), self.labels[batch])

    def score(self):
        images, labels = self._read("t10k")
        right = sum((self.model(self._input(x)).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
        return 100 * right / len(images)


class Text:
    BATCH, HELD_OUT, SCORED = 8, 0.05, 1024

    def __init__(self, model, rate, decay, file):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=decay)
        text = torch.frombuffer(bytearray(pathlib.Path(file).read_bytes()), dtype=torch.uint8).long()
        self.text, self.rest = text.split([len(text) - int(self.HELD_OUT * len(text)), int(self.HELD_OUT * len(text))])

    def batches(self, rank, size, seed):
        length, drawn = len(self.text) // size, torch.Generator().manual_seed(1000 * seed + rank)
        while True:
            yield rank * length + torch.randint(0, length - LENGTH - 1, (self.BATCH,), generator=drawn)

    def _loss_of(self, text, **how):
        return F.cross_entropy(self.model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten(), **how)

    def loss(self, batch):
        return self._loss_of(torch.stack([self.text[at:at + LENGTH + 1] for at in batch]))

    def score(self):
        parts = self.rest[:self.SCORED * LENGTH + 1].unfold(0, LENGTH + 1, LENGTH)
        return sum(self._loss_of(part, reduction="sum").item() for part in parts.split(64)) / (len(parts) * LENGTH) / math.log(2)


TASKS = {"lenet": lambda data: Pictures(lenet(), 0.02, 5e-4, data),
         "resnet20": lambda data: Pictures(resnet20(), 0.1, 1e-4, data),
         "gpt": lambda data: Text(Gpt(), 2e-3, 0.1, data)}


def rate_at(step, steps):
    """The factor on the learning rate: 5 % of the steps to warm up, then half a cosine down to 5 %."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm)))


# -- the run


def sent_bytes(page):
    with urllib.request.urlopen(f"http://{page}/api/status.json", timeout=60) as answer:
        return json.load(answer)["workers"][0]["bytes_out"]


def train(task, o, page):
    """The last loss, and the bytes that this worker has sent in the whole run if it has a page: those after the first exchange, times what this leaves out."""
    steps, together = o.iterations // (o.accumulate * o.shorter), o.outer or 1
    schedule = torch.optim.lr_scheduler.LambdaLR(task.optimizer, lambda step: rate_at(step, steps))
    outer = poseidon.Outer(every=o.outer) if o.outer else None
    more = {**({"web": page} if page else {}), **({"routes": "lowrank", "rank": o.rank} if o.rank else {"routes": "ps"})}
    with poseidon.join(task.model, task.optimizer, mode=o.mode, outer=outer, wire=o.wire, quiet=True, **more):
        batches = task.batches(poseidon.rank(), poseidon.size(), o.seed)
        for step in range(1, steps + 1):
            task.optimizer.zero_grad(set_to_none=True)
            for left in reversed(range(o.accumulate)):
                with poseidon.no_sync() if left else contextlib.nullcontext():
                    loss = task.loss(next(batches))
                    (loss / o.accumulate).backward()
            task.optimizer.step()
            schedule.step()
            if page and step == together:
                first = sent_bytes(page)
        exchanges = steps // together
        sent = (sent_bytes(page) - first) * exchanges / (exchanges - 1) if page and exchanges > 1 else None
    return loss.item(), sent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--mode", default="ddp")
    parser.add_argument("--wire", default="float32")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--outer", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--shorter", type=int, default=1)
    parser.add_argument("--page")
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    task = TASKS[o.task](o.data)
    first = os.environ.get("RANK", "0") == "0"
    loss, sent = train(task, o, o.page if first else None)
    if first:
        task.model.eval()
        with torch.no_grad():
            print("RESULT", json.dumps({"score": task.score(), "loss": loss, "sent": sent}), flush=True)


if __name__ == "__main__":
    main()
