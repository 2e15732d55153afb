"""Poseidon for Python: a script computes gradients, and a cluster of ordinary machines exchanges them while it goes on.

`poseidon.torch` is for PyTorch, `poseidon.numpy` for programs without a framework. Both use `libposeidon.so`, which joins
the cluster inside the script's process. Importing this package loads neither the library nor a framework.
"""

from .library import PoseidonError, Run, version

__all__ = ["PoseidonError", "Run", "version"]
