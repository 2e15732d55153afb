"""Trees of plain values and tensors as bytes: what state_dict() returns, without pickle. Equal trees give equal bytes in every process."""

import inspect
import json
import re
import struct
import weakref
import zlib
from collections import Counter, OrderedDict, defaultdict
from typing import Callable, Tuple

import numpy
import torch

from ..library import PoseidonError

_MAGIC, _VERSION = b"PSDCARRY", 1
_ALIGNED = 16  # bytes, of each tensor in a section, and of a section in the block
_HEAD = struct.Struct("<8sIIQQ")  # magic, version, CRC-32 of all bytes behind it, bytes of the tree as JSON, bytes of the tensors
_DICTS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_FACTORIES = {"None": None, **{made.__name__: made for made in (dict, list, set, int, float, str, bool, OrderedDict, Counter)}}  # of a defaultdict
_SEQUENCES = {"list": list, "tuple": tuple, "Size": torch.Size, "set": set, "frozenset": frozenset}
_NUMBERS = "biufc"  # kinds of numpy's types that hold plain numbers
_NUMPY_TYPE = re.compile(rf"[<>|=]?[{_NUMBERS}]\d{{1,2}}")


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


class Writer:
    """Collects a tree, then copies each tensor once into its place."""

    def __init__(self):
        self._tensors, self._bytes = [], 0

    def _tensor(self, value: torch.Tensor) -> list:
        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            raise TypeError("a tensor that is sparse, quantized or on the meta device")
        at, size = self._bytes, value.numel() * value.element_size()
        self._tensors.append((at, size, value.detach()))
        self._bytes += _up(size)
        return [str(value.dtype)[6:], list(value.shape), at]

    def _items(self, value: dict, path: str, owners) -> list:
        pairs = []
        for key, item in value.items():
            if isinstance(key, torch.Tensor):
                raise PoseidonError(f"{path} has a tensor as a key, which cannot be given to a worker that joins later")
            inner = f"{path}{key}" if path.endswith(": ") else f"{path}[{key!r}]"
            pairs.append([self.node(key, path, owners), self.node(item, inner, owners)])
        return pairs

    def node(self, value, path: str, owners=()) -> list:
        """What JSON holds of a value. `path`: where it is, for errors; `owners`: the objects whose own functions may be named."""
        kind = type(value)
        if value is None or kind is bool:
            return ["c", value]
        if kind is int:
            return ["i", hex(value)]
        if kind is float:
            return ["f", struct.pack("<d", value).hex()]
        if kind is complex:
            return ["z", struct.pack("<dd", value.real, value.imag).hex()]
        if kind is str:
            return ["s", value]
        if kind is bytes:
            return ["b", value.hex()]
        if kind in (list, tuple, torch.Size):
            return [kind.__name__, [self.node(item, f"{path}[{place}]", owners) for place, item in enumerate(value)]]
        if kind in (set, frozenset):
            try:
                return [kind.__name__, [self.node(item, path, owners) for item in sorted(value)]]
            except TypeError as error:
                raise PoseidonError(f"{path} is a set that cannot be sorted: {error}") from error
        if kind in _DICTS.values():
            return [kind.__name__, self._items(value, path, owners)]
        if kind is defaultdict and value.default_factory in _FACTORIES.values():
            return ["defaultdict", self._items(value, path, owners), getattr(value.default_factory, "__name__", "None")]
        if kind in (torch.dtype, torch.device):
            return [kind.__name__, str(value)]
        try:
            if isinstance(value, torch.Tensor):
                return ["t", *self._tensor(value)]
            if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in _NUMBERS:
                raw = torch.from_numpy(numpy.frombuffer(bytearray(value.tobytes()), numpy.uint8).copy())
                return ["n", value.dtype.str, list(value.shape), isinstance(value, numpy.generic), self._tensor(raw)]
        except TypeError as error:
            raise PoseidonError(f"{path} is {error}, which cannot be given to a worker that joins later") from error
        # The rule for functions: one that the object (or a scheduler within it) has itself, by name in its class, travels as that name, and the
        # newcomer takes its own. PyTorch 1.13 has such in OneCycleLR and SWALR (anneal_func) and CyclicLR (_scale_fn_ref, a WeakMethod). Each
        # other function is refused: LambdaLR leaves them out of its state_dict() itself.
        weak = kind is weakref.WeakMethod
        function = value() if weak else value
        name = getattr(function, "__name__", "")
        for place, owner in enumerate(owners):
            if _own_function(owner, name) and getattr(owner, name) == function:
                return ["w" if weak else "m", place, name]
        raise PoseidonError(f"{path} is a {kind.__name__}, which cannot be given to a worker that joins later")

    def section(self, tree: list) -> Tuple[int, Callable[[torch.Tensor], None]]:
        """Its size, and what writes it into a block of that size, which holds zeros."""
        text = json.dumps(tree, separators=(",", ":")).encode()
        begin = _up(_HEAD.size + len(text))

        def write(block: torch.Tensor) -> None:
            raw = block.numpy()
            for at, size, value in self._tensors:
                if size:
                    block[begin + at:begin + at + size].view(value.dtype).view(value.shape).copy_(value)
            raw[_HEAD.size:_HEAD.size + len(text)] = numpy.frombuffer(text, numpy.uint8)
            raw[:_HEAD.size] = numpy.frombuffer(_HEAD.pack(_MAGIC, _VERSION, 0, len(text), self._bytes), numpy.uint8)
            raw[12:16] = numpy.frombuffer(struct.pack("<I", zlib.crc32(raw[16:])), numpy.uint8)
        return begin + self._bytes, write


def _own_function(owner, name: str) -> bool:
    return inspect.isroutine(getattr(type(owner), name, None)) if isinstance(name, str) and name else False


class Reader:
    def __init__(self, block: torch.Tensor, of: str):
        """Begins at the block's first byte; `size`: of this section. The checksum is checked before anything else is read."""
        raw = block.numpy()
        if len(raw) < _HEAD.size:
            raise PoseidonError(f"{of} has {len(raw)} bytes, its head alone has {_HEAD.size}")
        magic, version, check, text, tensors = _HEAD.unpack(raw[:_HEAD.size].tobytes())
        if magic != _MAGIC or version != _VERSION:
            raise PoseidonError(f"{of} begins with {magic!r} and version {version}, expected {_MAGIC!r} and version {_VERSION}")
        begin = _up(_HEAD.size + text)
        self.size = begin + tensors
        if self.size > len(raw):
            raise PoseidonError(f"{of} says that it has {self.size} bytes, {len(raw)} have come")
        if zlib.crc32(raw[16:self.size]) != check:
            raise PoseidonError(f"{of} is damaged: its checksum is {zlib.crc32(raw[16:self.size]):08x}, expected {check:08x}")
        self._of, self._tensors = of, block[begin:self.size]
        self._unread = tensors  # bytes: each one belongs to one tensor
        try:
            self.tree = json.loads(raw[_HEAD.size:_HEAD.size + text].tobytes())
        except (ValueError, RecursionError) as error:
            raise PoseidonError(f"{of} cannot be read: {error}") from error

    def parts(self, count: int) -> list:
        if not isinstance(self.tree, list) or len(self.tree) != count:
            raise PoseidonError(f"{self._of} cannot be read: it does not consist of {count} parts")
        return self.tree

    def value(self, node: list, owners=(), copies: bool = True):
        """`copies`: tensors have memory of their own; else those that lie well in the block are views of it."""
        try:
            return self._value(node, owners, copies)
        except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, RuntimeError, TypeError, ValueError, struct.error) as error:
            raise PoseidonError(f"{self._of} cannot be read: {type(error).__name__}: {error}") from error

    def _tensor(self, dtype: str, shape: list, at: int, copies: bool) -> torch.Tensor:
        kind = getattr(torch, dtype)
        if not isinstance(kind, torch.dtype) or not (kind.is_floating_point or kind.is_complex or re.fullmatch(r"bool|u?int\d+", dtype)):
            raise ValueError(f"{dtype} is no type of a tensor")
        if not all(type(number) is int and number >= 0 for number in [at, *shape]):
            raise ValueError(f"a tensor of shape {shape} at {at}")
        size = torch.empty((), dtype=kind).element_size()
        for length in shape:
            size *= length
        if at + size > len(self._tensors) or size > self._unread:
            raise ValueError(f"a tensor of {size} bytes at {at}, where {len(self._tensors)} bytes have come, of which other tensors have all but {self._unread}")
        self._unread -= size
        if size == 0:
            return torch.empty(shape, dtype=kind)
        part = self._tensors[at:at + size]
        if copies or part.data_ptr() % _ALIGNED or part.storage_offset() % _ALIGNED:
            part = part.clone()
        return part.view(kind).view(shape)

    def _value(self, node: list, owners, copies: bool):
        kind, first, *rest = node
        if kind == "c" and (first is None or isinstance(first, bool)) or kind == "s" and isinstance(first, str):
            return first
        if kind == "i":
            return int(first, 16)
        if kind == "f":
            return struct.unpack("<d", bytes.fromhex(first))[0]
        if kind == "z":
            return complex(*struct.unpack("<dd", bytes.fromhex(first)))
        if kind == "b":
            return bytes.fromhex(first)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind]([self._value(item, owners, copies) for item in first])
        if kind in _DICTS or kind == "defaultdict":
            made = OrderedDict((self._value(key, owners, copies), self._value(item, owners, copies)) for key, item in first)
            return defaultdict(_FACTORIES[rest[0]], made) if kind == "defaultdict" else _DICTS[kind](made)
        if kind == "device":
            return torch.device(first)
        if kind == "dtype" and isinstance(getattr(torch, first[6:]), torch.dtype):
            return getattr(torch, first[6:])
        if kind == "t":
            return self._tensor(first, *rest, copies)
        if kind == "n" and _NUMPY_TYPE.fullmatch(first) and all(type(length) is int and length >= 0 for length in rest[0]):
            raw = bytearray(self._tensor(*rest[2], copies).numpy().tobytes())
            array = numpy.frombuffer(raw, numpy.dtype(first)).reshape(rest[0])
            return array[()] if rest[1] else array
        if kind in ("m", "w") and type(first) is int and first >= 0 and _own_function(owners[first], rest[0]):
            function = getattr(owners[first], rest[0])
            return weakref.WeakMethod(function) if kind == "w" else function
        raise ValueError(f"unknown kind {kind!r}")
