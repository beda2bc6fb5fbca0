"""`DeviceArray`: a tensor that NumPy's functions take, computed on its device.

Functions of rows (`Design.map_rows`, `per_part`, `map_scores`) are written for NumPy arrays. They
get tensors in this form, so that the same functions run where the rows are: operators and ufuncs
come by `__array_ufunc__`, functions such as `np.unique` by `__array_function__`. What has no torch
version here raises TypeError; nothing is ever turned into a NumPy array on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

_TO_TORCH = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.float16): torch.float16,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.int16): torch.int16,
    np.dtype(np.int8): torch.int8,
    np.dtype(np.uint8): torch.uint8,
    np.dtype(np.bool_): torch.bool,
}
_TO_NUMPY = {theirs: ours for ours, theirs in _TO_TORCH.items()}
#: Ufuncs whose torch functions have other names; the rest have the same.
_UFUNCS = {"equal": torch.eq, "invert": torch.bitwise_not}


def torch_type(dtype: Any, double: bool) -> Any:
    """torch's type of a NumPy type; float32 for float64 where the device has no double."""
    found = _TO_TORCH[np.dtype(dtype)]
    return torch.float32 if found == torch.float64 and not double else found


def numpy_type(dtype: Any) -> Any:
    """NumPy's type of a torch type."""
    return _TO_NUMPY[dtype]


def to_device(array: Any, kind: Any, device: Any) -> Any:
    """An array of this machine as a tensor; converted here, as the device may not have its type."""
    made = np.ascontiguousarray(array, dtype=numpy_type(kind))
    return torch.as_tensor(made if made.flags.writeable else made.copy()).to(device)


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor with the methods and functions of a NumPy array that row functions use.

    tensor : the tensor
    double : whether its device has float64; without it, float32 takes its place
    """

    __slots__ = ("double", "tensor")

    def __init__(self, tensor: Any, double: bool) -> None:
        self.tensor, self.double = tensor, double

    @property
    def dtype(self) -> Any:
        """NumPy's name of the type."""
        return numpy_type(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, as a tuple of numbers."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.tensor.ndim)

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, key: Any) -> DeviceArray:
        keys = key if isinstance(key, tuple) else (key,)
        found = tuple(k.tensor if isinstance(k, DeviceArray) else k for k in keys)
        return self._like(self.tensor[found])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"rows stay on {self.tensor.device}: a NumPy array was asked for")

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __format__(self, spec: str) -> str:
        return format(self.tensor.item(), spec)

    def tolist(self) -> Any:
        """Python numbers, of few entries."""
        return self.tensor.tolist()

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        """A copy of another type, or itself where it has that type."""
        return self._like(self.tensor.to(torch_type(dtype, self.double)))

    def copy(self) -> DeviceArray:
        """A copy on the same device."""
        return self._like(self.tensor.clone())

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same entries in another shape."""
        return self._like(self.tensor.reshape(*shape))

    def sum(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """Sums along an axis, or of all entries."""
        return self._reduced(torch.sum, axis, keepdims)

    def max(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """Largest entries."""
        return self._reduced(torch.amax, axis, keepdims)

    def min(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """Smallest entries."""
        return self._reduced(torch.amin, axis, keepdims)

    def any(self) -> DeviceArray:
        """Whether an entry is not zero."""
        return self._like(self.tensor.any())

    def all(self) -> DeviceArray:
        """Whether no entry is zero."""
        return self._like(self.tensor.all())

    def argmax(self, axis: int | None = None) -> DeviceArray:
        """The first place of the largest entry."""
        tensor = self.tensor.to(torch.uint8) if self.tensor.dtype == torch.bool else self.tensor
        return self._like(tensor.argmax(dim=axis))

    def argmin(self, axis: int | None = None) -> DeviceArray:
        """The first place of the smallest entry."""
        return self._like(self.tensor.argmin(dim=axis))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        out = settings.pop("out", None)
        function = _UFUNCS.get(ufunc.__name__, getattr(torch, ufunc.__name__, None))
        if method != "__call__" or settings or function is None:
            return NotImplemented
        found = function(*[self._tensor(value) for value in inputs])
        if out is None:
            return self._like(found)
        (target,) = out
        target.tensor.copy_(found)
        return target

    def __array_function__(self, function: Any, types: Any, given: Any, settings: Any) -> Any:
        own = _FUNCTIONS.get(function)
        return NotImplemented if own is None else own(self, *given, **settings)

    def _reduced(self, function: Any, axis: int | None, keepdims: bool) -> DeviceArray:
        dims = tuple(range(self.ndim)) if axis is None else axis
        return self._like(function(self.tensor, dim=dims, keepdim=keepdims))

    def _like(self, tensor: Any) -> DeviceArray:
        return DeviceArray(tensor, self.double)

    def _tensor(self, value: Any) -> Any:
        """An operand on this device: arrays of this machine (means, classes, …) go there."""
        if isinstance(value, DeviceArray):
            return value.tensor
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            return to_device(value, torch_type(value.dtype, self.double), self.tensor.device)
        if isinstance(value, bool | int | float):
            kind = self._floating() if isinstance(value, float) else self._whole(value)
            return torch.as_tensor(value, dtype=kind, device=self.tensor.device)
        return value

    def _whole(self, value: int) -> Any:
        to_bool = self.tensor.dtype == torch.bool and not isinstance(value, bool)
        return torch.int64 if to_bool else self.tensor.dtype

    def _floating(self) -> Any:
        if self.tensor.dtype.is_floating_point:
            return self.tensor.dtype
        return torch.float64 if self.double else torch.float32


# ---- NumPy's functions; `like` is the array that NumPy asked, for its device ----


def _where(like: DeviceArray, condition: Any, this: Any, other: Any) -> DeviceArray:
    return like._like(torch.where(*[like._tensor(v) for v in (condition, this, other)]))


def _unique(
    like: DeviceArray, values: Any, return_index: bool = False, return_inverse: bool = False
) -> Any:
    tensor = like._tensor(values)
    found, inverse = torch.unique(tensor, return_inverse=True)
    results = [like._like(found)]
    if return_index:
        places = torch.arange(len(tensor), device=tensor.device)
        first = places.new_full((len(found),), len(tensor))
        results.append(like._like(first.scatter_reduce(0, inverse, places, "amin")))
    if return_inverse:
        results.append(like._like(inverse))
    return results[0] if len(results) == 1 else tuple(results)


def _bincount(like: DeviceArray, x: Any, weights: Any = None, minlength: int = 0) -> DeviceArray:
    of_rows = None if weights is None else like._tensor(weights)
    return like._like(torch.bincount(like._tensor(x), of_rows, minlength))


def _searchsorted(like: DeviceArray, values: Any, v: Any, side: str = "left") -> DeviceArray:
    wanted = like._tensor(v).contiguous()
    wanted = wanted.to(torch.uint8) if wanted.dtype == torch.bool else wanted
    return like._like(torch.searchsorted(like._tensor(values).to(wanted.dtype), wanted, side=side))


def _take_along_axis(like: DeviceArray, values: Any, indices: Any, axis: int) -> DeviceArray:
    return like._like(torch.gather(like._tensor(values), axis, like._tensor(indices)))


def _full_like(
    like: DeviceArray, a: Any, value: float, dtype: Any = None, shape: Any = None
) -> DeviceArray:
    kind = like.tensor.dtype if dtype is None else torch_type(dtype, like.double)
    size = like.shape if shape is None else (shape,) if isinstance(shape, int) else shape
    return like._like(torch.full(size, value, dtype=kind, device=like.tensor.device))


def _ones_like(like: DeviceArray, a: Any) -> DeviceArray:
    return like._like(torch.ones_like(a.tensor))


def _argsort(like: DeviceArray, a: Any, kind: str | None = None) -> DeviceArray:
    return like._like(torch.argsort(a.tensor, stable=kind == "stable"))


def _cumsum(like: DeviceArray, a: Any) -> DeviceArray:
    return like._like(torch.cumsum(a.tensor, dim=0))


def _stack(like: DeviceArray, arrays: Any, axis: int = 0) -> DeviceArray:
    return like._like(torch.stack([like._tensor(a) for a in arrays], dim=axis))


def _concatenate(like: DeviceArray, arrays: Any, axis: int = 0) -> DeviceArray:
    return like._like(torch.cat([like._tensor(a) for a in arrays], dim=axis))


def _repeat(like: DeviceArray, a: Any, repeats: Any) -> DeviceArray:
    return like._like(torch.repeat_interleave(like._tensor(a), like._tensor(repeats)))


def _count_nonzero(like: DeviceArray, a: Any) -> int:
    return int(torch.count_nonzero(a.tensor))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.unique: _unique,
    np.bincount: _bincount,
    np.searchsorted: _searchsorted,
    np.take_along_axis: _take_along_axis,
    np.full_like: _full_like,
    np.ones_like: _ones_like,
    np.argsort: _argsort,
    np.cumsum: _cumsum,
    np.stack: _stack,
    np.concatenate: _concatenate,
    np.repeat: _repeat,
    np.count_nonzero: _count_nonzero,
    np.sum: lambda like, a, **settings: a.sum(**settings),
}
