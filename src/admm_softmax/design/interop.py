"""Data of other libraries, recognised without importing them."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np

#: Types of two bytes per entry, by their names.
HALVES = ("float16", "bfloat16")


def is_tensor(data: Any) -> bool:
    """Whether data are a torch tensor; asked without loading torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.Tensor)


def is_on_device(data: Any) -> bool:
    """Whether data are a tensor elsewhere than in this machine's memory."""
    return is_tensor(data) and data.device.type != "cpu"


def joined(first: Any, second: Any) -> Any:
    """Two arrays, or tensors of one device, one after the other.

    >>> joined(np.zeros(2), np.ones(1))
    array([0., 0., 1.])
    """
    if not is_tensor(first):
        return np.concatenate([first, second])
    torch = sys.modules["torch"]
    return torch.cat([first, torch.as_tensor(second).to(first.device)])


def as_stored(data: Any) -> tuple[Any, str | None]:
    """Arrays of other libraries as NumPy arrays of the same memory, where that is possible.

    Torch tensors in the memory of this machine, and whatever else has `__dlpack__`. NumPy has
    no bfloat16: such a tensor becomes its bits. Also returned is "float16" or "bfloat16" where
    entries are of that type.

    >>> as_stored(np.ones(2, np.float16))
    (array([1., 1.], dtype=float16), 'float16')
    """
    half: str | None = None
    if is_tensor(data):
        if data.device.type != "cpu":
            raise TypeError(
                f"tensors must be in this machine's memory, got one on {data.device}: use .cpu()"
            )
        if str(data.layout) != "torch.strided":
            raise TypeError(f"tensors must be dense, got the layout {data.layout}")
        data, half = _of_tensor(data)
    elif not isinstance(data, np.ndarray) and hasattr(data, "__dlpack__"):
        # Not of a device or a type that NumPy does not have: whoever wants an array says so.
        # What has both ways is asked for an array: pyarrow's strings are none of DLPack's types,
        # and asking for them that way warns.
        with suppress(BufferError, RuntimeError, TypeError, ValueError):
            data = np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
    if isinstance(data, np.ndarray) and data.dtype.name in HALVES:
        half = data.dtype.name
    return data, half


def _of_tensor(tensor: Any) -> tuple[Any, str | None]:
    torch = sys.modules["torch"]
    tensor = tensor.detach()
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy(), None
    return tensor.view(torch.int16).numpy().view(np.uint16), "bfloat16"


def is_dask(data: Any) -> bool:
    """Whether data are a Dask collection, or a list of delayed objects or futures.

    >>> is_dask([[1.0, 2.0]])
    False
    """
    if isinstance(data, list | tuple):
        return bool(data) and _is_piece(data[0])
    return hasattr(data, "__dask_graph__") and not isinstance(data, type)


def _is_piece(piece: Any) -> bool:
    """Whether this is one lazy or remote partition."""
    kind = type(piece)
    return hasattr(piece, "__dask_graph__") or (
        kind.__module__.startswith("distributed.") and kind.__name__ == "Future"
    )
