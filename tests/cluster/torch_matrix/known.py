# tests/cluster/torch_matrix/known.py - failures that are known and not mended yet; tools/torch_matrix runs and reports them all the same.

LATE = ("local", "shards")
ALL = ("ddp", "wrapped", *LATE)
DDP = ("ddp", "wrapped")
KEPT = "the kept gradient of a parameter that no worker reaches is added N times and divided by N, which rounds for 3 workers"
WRITES_GRADIENT = "the optimizer writes into .grad while frames still leave from that memory"
WRITTEN = "values that are written after the step are neither taken over nor refused"
FORGOTTEN = "gradients that were not cleared are cleared"
ZEROS = "zeros that zero_grad keeps move parameters that nothing reaches; here nothing moves them"
SECOND = "the second optimizer's gradients are exchanged by nobody, and join() does not say so"
FAST = ("the fast path of TransformerEncoderLayer in evaluation, which reads parameters of its inner modules, is not taken because these are "
        "stale: rounding, and other types under autocast")
TRACED = "the step that was put off is traced, or made under a transform"
REWRITTEN = "worker 0's buffers are written at the end of the first pass, also where they are equal; the graph that is kept has saved one of them"
SAVED = "with PyTorch 2.6 the parameter that _Linear unpacks takes the hooks of the real one with it when it ends (clocks 2 and 3)"
SECOND_ORDER = "a second backward pass through _Linear (clocks 2 and 3) rounds otherwise than through F.linear where the input has three dimensions"

# By pieces that meet in a case: the modes in which it may fail, and what happens. Whoever mends one takes it from this list.
OPEN = {
    "model=a parameter without values": (ALL, "join() refuses it, and names no remedy"),
    **{f"{piece}; zero={zero}": (ALL, KEPT) for piece in ("model=unused parameters", "more=frozen for a while")
       for zero in ("never", "every second step")},
    **{f"{piece}; loop=one graph and two backward passes": (DDP, REWRITTEN) for piece in ("model=orthogonal", "more=prunes")},
    **{f"optimizer={name}": (("local",), WRITES_GRADIENT) for name in (
        "SGD foreach nesterov", "own WritesGradient",
        *(f"{name} foreach decay" for name in ("Adam", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop")))},
    "optimizer=own Clips": (("local",), "a step that looks at all gradients is called for one parameter at a time"),
    "optimizer=foreach on some workers": (("local",), "nobody compares foreach, and NAdam's bits depend on it"),
    "optimizer=two optimizers": (LATE, SECOND),
    "zero=never": (LATE, FORGOTTEN),
    "zero=every second step": (LATE, FORGOTTEN),
    **{f"{piece}; zero={zero}": (LATE, ZEROS) for piece in ("model=unused parameters", "more=frozen for a while")
       for zero in ("keeps zeros", "the model keeps zeros", "by hand", "as this PyTorch does")},
    **{f"more={name}": (("shards",), WRITTEN) for name in (
        "writes values before the step", "shrinks values", "clamps values", "clamps values past autograd", "copies values", "gives other memory",
        "writes through NumPy", "writes through a view")},
    **{f"model=Transformer; more={name}": (("local",), FAST) for name in ("evaluates", "evaluates in inference_mode", "evaluates under autocast",
                                                                          "evaluates on one worker")},
    **{f"more={name}": (LATE, TRACED) for name in ("make_fx", "jit.trace", "func.grad", "func.grad of inputs", "vmap", "export",
                                                   "symbolic_trace", "compile between steps")},
    "forward=compile fullgraph": (LATE, TRACED),
    "forward=functional_call": (LATE, TRACED),
    **{f"optimizer={name} fused; loop={loop}": (("local",), "the scale is only set while scaler.step() runs; the real step comes later")
       for name in ("SGD", "Adam", "AdamW", "Adagrad") for loop in ("GradScaler", "GradScaler that clips")},
    "forward=autocast bf16; optimizer=Adafactor": (("local",), "the step that was put off is made under autocast, where its products round"),
    "more=distributed.checkpoint": (LATE, "PyTorch makes a step of its own where the optimizer has no state yet"),
    **{f"forward={how}; more={hooks}": (ALL, SAVED) for how in ("saved on hooks", "saved on the CPU")
       for hooks in ("tensor hooks", "tensor hooks after join")},
    "model=Transformer; forward=gradient penalty": (ALL, SECOND_ORDER),
}


def open_reason(parts, mode):
    """Why a case with these parts ("slot", "name") is known to fail; None: it has to pass."""
    there = {f"{slot}={name}" for slot, name in parts}
    return next((reason for case, (modes, reason) in OPEN.items() if mode in modes and set(case.split("; ")) <= there), None)
