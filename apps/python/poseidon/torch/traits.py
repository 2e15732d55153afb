"""By what the bits of this process's gradients may differ from another worker's: versions, the kernels that are chosen, and how many threads add."""

import re
import zlib
from typing import Dict, Sequence

import torch


def traits_of(parameters: Sequence[torch.Tensor]) -> Dict[str, str]:
    """By name; "VALUE|TEXT" is compared by its value and shown as its text."""
    built = torch.__config__.show()
    usage = re.compile(r"CPU capability usage: *(.*)").search(built)
    # The rest names the libraries that it was built with; the processor is no part of it.
    libraries = zlib.crc32(re.sub(r".*CPU capability usage.*", "", built).encode())
    out = {"PyTorch": f"{torch.__version__} {libraries:08x}|{torch.__version__}"}
    gpus = sorted({p.device for p in parameters if p.is_cuda}, key=str)
    if gpus:
        names = ", ".join(f"{torch.cuda.get_device_name(gpu)} ({'.'.join(map(str, torch.cuda.get_device_capability(gpu)))})" for gpu in gpus)
        out["device"] = names
        out["CUDA and cuDNN"] = f"{torch.version.cuda} and {torch.backends.cudnn.version()}"
    if len(gpus) == 0 or any(not p.is_cuda for p in parameters):
        out["PyTorch's kernels"] = usage[1] if usage else "of an unknown kind"
        out["PyTorch's threads"] = str(torch.get_num_threads())  # sums are cut by them
    return out
