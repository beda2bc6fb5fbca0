"""Pickles of arrays of numbers and plain containers, and of nothing else.

A pickle builds arrays by calling NumPy, with arguments of its own choice; some of them make
NumPy use bytes as memory addresses. So it may call stand-ins only, which take a shape, a type
of plain numbers and the bytes, and nothing else.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ORDERS = ("<", ">", "=", "|")
_NUMBERS = {f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)} - {"f1"} | {"b1"}


class StoredType:
    """A dtype as a pickle has it: plain numbers and their byte order."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code, self.order = _text(code), "="
        if self.code not in _NUMBERS:
            raise pickle.UnpicklingError(f"arrays must be of plain numbers, got {self.code!r}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # What follows the order describes fields and the like, which plain numbers have not.
        self.order = _text(state[1])
        if self.order not in _ORDERS:
            raise pickle.UnpicklingError(
                f"the order of bytes must be <, >, = or |, got {self.order}"
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        return np.dtype(self.order + self.code)


class StoredArray:
    """An array as a pickle has it; `np.asarray` makes one of it."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, data = state
        if not (isinstance(kind, StoredType) and isinstance(data, bytes)):
            raise pickle.UnpicklingError("an array must consist of a type and of bytes")
        flat: NDArray[Any] = np.frombuffer(data, kind.dtype)
        self.values = flat.reshape(shape, order="F" if is_fortran else "C").copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype, copy=copy)


def _reconstruct(*_: Any) -> StoredArray:
    """Begin an array; its state follows."""
    return StoredArray()


#: The only names a pickle may ask for. Old files say `numpy.core`, new ones `numpy._core`.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): StoredArray,
    ("numpy", "dtype"): StoredType,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"a pickle of data may hold NumPy arrays only, not {module_name}.{global_name}"
            ) from None


def load_arrays(content: bytes) -> Any:
    """Unpickle: arrays are `StoredArray`s, and the strings of Python 2 become bytes."""
    _check_memory(content)
    return _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()


def _check_memory(content: bytes) -> None:
    """Refuse places in the unpickler's memory that would make it larger than the pickle itself."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(str(argument)) > len(content):
            raise pickle.UnpicklingError(
                f"a pickle of {len(content)} bytes may not use place {argument} of the memory"
            )


def _text(code: str | bytes) -> str:
    return code.decode("latin1") if isinstance(code, bytes) else code
