# tests/cluster/torch_matrix/walk.py - which cases there are: the list, and random combinations.
import random

# Pieces that meet where it matters, besides each piece alone.
MEETINGS = [
    *(f"model={model}; zero={zero}; optimizer={optimizer}" for model in ("unused parameters", "frozen parameters")
      for zero in ("keeps zeros", "never", "by hand") for optimizer in ("SGD momentum", "Adam decay")),
    *(f"optimizer={optimizer}; loop=GradScaler" for optimizer in ("SGD fused", "Adam fused", "Adam")),
    *(f"model={model}; loop={loop}" for model in ("unused parameters", "BatchNorm", "tied weights", "dropout")
      for loop in ("accumulates", "accumulates in no_sync", "one pass or two")),
    *(f"model={model}; more=buffers differ at join, parameters differ at join" for model in
      ("buffers", "BatchNorm", "frozen parameters", "convolutions", "spectral_norm")),
    *(f"model=BatchNorm; more={more}" for more in ("evaluates", "evaluates in inference_mode", "EMA", "deepcopy", "evaluates on one worker")),
    "model=GAN; optimizer=two optimizers; loop=the critic and then the generator", "model=GAN; optimizer=two optimizers",
    "optimizer=LBFGS; loop=a closure", "forward=autocast bf16; optimizer=Adafactor", "more=EMA, clips by norm",
    *(f"forward={forward}; more=tensor hooks" for forward in ("saved on hooks", "saved on the CPU", "checkpoint", "gradient penalty")),
    *(f"forward=gradient penalty; model={model}" for model in ("wide", "Transformer", "LSTM", "convolutions")),
    "model=unused parameters; more=frozen for a while; zero=keeps zeros", "model=small; more=frozen for a while; zero=keeps zeros",
    "model=LSTM; forward=autocast bf16", "model=checkpoint; loop=accumulates", "model=reentrant checkpoint; loop=accumulates",
    "more=StepLR, the optimizer's hooks at join", "more=trained before; optimizer=Adam", "more=trained before, saves both; optimizer=AdamW",
    "model=odd shapes; optimizer=AdamW", "model=wide; optimizer=Adam foreach decay",
]


def listed(catalogue):
    """Each piece with the first ones of the other slots, and the meetings. Those that this PyTorch lacks are left out."""
    slots = catalogue["slots"]
    alone = [f"{slot}={name}" for slot, of in slots.items() for name, p in of.items() if p["here"] and p["weight"]]
    return alone + [case for case in MEETINGS if all(slots[slot][name]["here"] for slot, name in parts(case))]


def parts(case):
    """(slot, name) of each piece that it names."""
    for part in case.split(";"):
        slot, _, names = part.strip().partition("=")
        for name in names.split(",") if slot == "more" else [names]:
            yield slot, name.strip()


def least(catalogue, case):
    """Of workers."""
    return max(catalogue["slots"][slot][name]["least"] for slot, name in parts(case))


def spread(catalogue, cases, modes, workers, each=None):
    """(case, mode, number of workers) of all; `each`: of every case in every mode so many numbers, a fixed choice."""
    chooser, out = random.Random(1), []
    for case in cases:
        possible = [number for number in workers if number >= least(catalogue, case)]
        for mode in modes:
            numbers = possible if each is None else chooser.sample(possible, min(each, len(possible)))
            out += [(case, mode, number) for number in sorted(numbers)]
    return out


def random_cases(catalogue, seed, count, modes, workers):
    """A walk: (case, mode, number) `count` times, the same for the same seed and version of PyTorch."""
    chooser, slots = random.Random(seed), catalogue["slots"]

    def one(slot):
        here = {name: p["weight"] for name, p in slots[slot].items() if p["here"]}
        return chooser.choices(list(here), list(here.values()))[0]

    for _ in range(count):
        chosen = {slot: one(slot) for slot in slots if slot != "more" and chooser.random() < .6}
        extra = list(dict.fromkeys(one("more") for _ in range(chooser.choice((0, 1, 1, 2, 3)))))
        if extra:
            chosen["more"] = ", ".join(extra)
        yield "; ".join(f"{slot}={name}" for slot, name in chosen.items()), chooser.choice(modes), chooser.choice(workers)
