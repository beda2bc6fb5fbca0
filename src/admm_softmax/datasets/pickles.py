"""Pickles of NumPy arrays and plain containers, and of nothing else."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

#: The only names a pickle may ask for. Old files say `numpy.core`, new ones `numpy._core`.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
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
    """Unpickle; the strings of Python 2 become bytes."""
    return _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
