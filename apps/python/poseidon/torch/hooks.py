"""Being called when a backward pass has reached a parameter."""

from typing import Callable

import torch
from torch import nn


def leaf_hook(p: nn.Parameter, call: Callable[..., None], keep: list) -> None:
    """Calls `call` after a backward pass has written p.grad, or has left it alone because no gradient came: the newer
    register_post_accumulate_grad_hook would not tell of that, and the factors of a weight would stay here."""
    with torch.enable_grad():
        node = p.expand_as(p).grad_fn.next_functions[0][0]
    handle = node.register_hook(call)
    keep.append(handle)
    keep.append(node)  # the graph refers to it weakly
