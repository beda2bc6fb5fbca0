"""Watches for tensors that leave their device, on a machine that has no other device.

Methods that bring a tensor to Python or NumPy, and functions that make a tensor from an array, are
replaced by ones that look at the number of rows first. Inside torch a dispatch mode looks at every
operation of this thread, for copies to another device and for float64.
"""

from contextlib import contextmanager

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

LEAVING = ("cpu", "numpy", "tolist", "item", "__array__", "__iter__", "__dlpack__")
ENTERING = ("as_tensor", "from_numpy", "tensor")


class CrossedError(AssertionError):
    """Rows have left their device, or have come to it."""


class Operations(TorchDispatchMode):
    """Refuses copies of many rows to another device, and float64 where there is none."""

    def __init__(self, n_rows, double):
        super().__init__()
        self.n_rows, self.double, self.seen = n_rows, double, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        found = function(*args, **kwargs)
        self.seen += 1
        name = function.overloadpacket.__name__
        if name in ("_to_copy", "copy_"):
            tensors = [a for a in args if isinstance(a, torch.Tensor)]
            devices = {t.device for t in tensors} | {kwargs.get("device") or tensors[0].device}
            if len(devices) > 1 and any(_is_long(t.shape, self.n_rows) for t in tensors):
                raise CrossedError(f"{name} of {[tuple(t.shape) for t in tensors]} to {devices}")
        for made in found if isinstance(found, tuple | list) else [found]:
            if not self.double and getattr(made, "dtype", None) == torch.float64:
                raise CrossedError(f"{name} made float64 of shape {tuple(made.shape)}")
        return found


def _is_long(shape, n_rows):
    return any(size >= n_rows for size in shape)


@contextmanager
def watched(monkeypatch, n_rows, double=True, entering=True):
    """While this lasts, nothing with `n_rows` rows or more may cross.

    With entering=False it may come to the device, and still not leave it.
    """

    def leaving(name, method):
        def guarded(tensor, *args, **kwargs):
            if _is_long(tensor.shape, n_rows):
                raise CrossedError(f"{name} of a tensor of shape {tuple(tensor.shape)}")
            return method(tensor, *args, **kwargs)

        return guarded

    def refuse_entering(name, function):
        def guarded(data, *args, **kwargs):
            if isinstance(data, np.ndarray) and _is_long(data.shape, n_rows):
                raise CrossedError(f"{name} of an array of shape {data.shape}")
            return function(data, *args, **kwargs)

        return guarded

    with monkeypatch.context() as patch, Operations(n_rows, double) as operations:
        for name in LEAVING:
            patch.setattr(torch.Tensor, name, leaving(name, getattr(torch.Tensor, name)))
        for name in ENTERING if entering else ():
            patch.setattr(torch, name, refuse_entering(name, getattr(torch, name)))
        yield operations
    assert operations.seen, "nothing was computed while watched"
