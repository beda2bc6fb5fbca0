"""X as a tensor, and row tensors beside it: labels, weights, row state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from admm_softmax.design.base import Design
from admm_softmax.design.rows import Rows
from admm_softmax.design.torch.arrays import DeviceArray, to_device, torch_type

#: Devices that torch computes on; of these MPS has no float64.
DEVICES = ("cpu", "cuda", "xpu", "mps")
WITHOUT_DOUBLE = ("mps",)
TORCH_FLOATS = (torch.float64, torch.float32)
TORCH_HALVES = (torch.float16, torch.bfloat16)
#: Odd constants of a mixing function (Steele, Lea & Flood 2014), as signed 64-bit numbers.
_MIX = (-7046029254386353131, -4658895280553007687, -7723592293110705685)


class TensorRows(Design):
    """The half of `TorchDesign` that places rows: one tensor on X's device for each array.

    X, state_dtype, double : see `TorchDesign`
    """

    is_remote = True
    rows_stay = True
    can_take_columns = True

    def __init__(
        self,
        X: Any,
        *,
        intercept: bool = True,
        state_dtype: Any = np.float64,
        double: bool | None = None,
    ) -> None:
        self.X = _checked(X)
        self.device = self.X.device
        self.double = self.device.type not in WITHOUT_DOUBLE if double is None else bool(double)
        if not self.double and self.X.dtype == torch.float64:
            raise TypeError(f"X must be float32 or narrower without float64 on {self.device}")
        dtype = np.float64 if self.X.dtype == torch.float64 else np.float32
        super().__init__(tuple(self.X.shape), dtype, intercept)
        #: What products with X are computed in, what follows them, and what row state is kept in.
        self.product_type = torch_type(dtype, self.double)
        self.exact_type = torch_type(np.float64, self.double)
        self.state_type = torch_type(state_dtype, self.double)

    @property
    def entries(self) -> int:
        """The number of entries of X."""
        return int(self.X.numel())

    def place(self, array: Any, name: str = "rows") -> Rows:
        """Put rows on X's device; a tensor that is there already stays as it is."""
        if not isinstance(array, torch.Tensor):
            return super().place(array, name)
        if array.ndim not in (1, 2) or len(array) != self.n_rows:
            shape = tuple(array.shape)
            raise ValueError(f"{name} must have the length {self.n_rows}, got shape {shape}")
        return self._handle(self._settled(array.detach().to(self.device)))

    def _placed(self, array: Any) -> Rows:
        if array.dtype.kind not in "fiub":
            raise TypeError(f"rows on {self.device} must be numbers, got type {array.dtype}")
        kind = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}[array.dtype.kind]
        kept = array.dtype if array.dtype == np.float32 else kind
        # A copy: the caller may write to the array.
        return self._handle(to_device(array.copy(), torch_type(kept, self.double), self.device))

    def _settled(self, tensor: Any) -> Any:
        """Rows in one of the types that kernels take."""
        if tensor.dtype.is_floating_point:
            wide = tensor.dtype == torch.float64
            return tensor.to(self.exact_type if wide else torch.float32)
        return tensor if tensor.dtype == torch.bool else tensor.to(torch.int64)

    def _handle(self, tensor: Any) -> Rows:
        return Rows(tensor, len(tensor), None if tensor.ndim == 1 else tensor.shape[1])

    def zeros(self, columns: int) -> Rows:
        """Zeros on the device."""
        shape = (self.n_rows, columns)
        return self._handle(torch.zeros(shape, dtype=self.state_type, device=self.device))

    def gather(self, rows: Rows) -> Any:
        """The rows as a NumPy array: the only way by which rows leave the device."""
        self._check_rows(rows)
        return rows.held.cpu().numpy()

    def beside(self, rows: Rows) -> Any:
        """The tensor behind the handle, not a copy."""
        self._check_rows(rows)
        return rows.held

    def map_rows(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function applied to tensors, as `DeviceArray`."""
        found = function(*self._arrays(rows))
        if not isinstance(found, DeviceArray):
            return self.place(found)
        return self._handle(self._settled(found.tensor))

    def per_part(self, function: Callable[..., Any], *rows: Rows) -> list[Any]:
        """The function's result on all rows, brought here."""
        return [_here(function(*self._arrays(rows)))]

    def map_parts(self, function: Callable[..., Any], values: Any, *rows: Rows) -> Rows:
        """The function applied to tensors, after the only value."""
        (value,) = values
        return self.map_rows(partial(function, value), *rows)

    def total(self, rows: Rows) -> float:
        """The sum, in the widest precision of the device."""
        self._check_rows(rows)
        return float(rows.held.sum(dtype=self.exact_type))

    def count(self, weights: Rows) -> int:
        """How many rows have weight."""
        self._check_rows(weights)
        return int(torch.count_nonzero(weights.held))

    def subset(self, weights: Rows, chosen: Any) -> Rows:
        """The weights times how often each row is chosen."""
        self._check_rows(weights)
        return self._handle(self._settled(weights.held * self.counts(chosen).held))

    def counts(self, chosen: Any) -> Rows:
        """How often each row is chosen, by index or mask; a handle says so itself."""
        if isinstance(chosen, Rows):
            return chosen
        places = self.indices(chosen)
        if places.dtype == torch.bool:
            return self._handle(places.to(torch.int64))
        return self._handle(torch.bincount(places, minlength=self.n_rows))

    def indices(self, chosen: Any) -> Any:
        """Positions, or a mask, on the device."""
        if isinstance(chosen, torch.Tensor):
            return chosen.to(self.device)
        chosen = np.asarray(chosen)
        return to_device(chosen, torch.bool if chosen.dtype == bool else torch.int64, self.device)

    def row_digests(self, rows: Rows) -> list[bytes]:
        """One digest of all rows, computed on the device."""
        self._check_rows(rows)
        return [digest_of(rows.held, 0)]

    def _arrays(self, rows: tuple[Rows, ...]) -> list[DeviceArray]:
        for handle in rows:
            self._check_rows(handle)
        return [DeviceArray(handle.held, self.double) for handle in rows]


def _checked(X: Any) -> Any:
    """A dense matrix of real numbers on a device that torch computes on."""
    if not isinstance(X, torch.Tensor):
        X = torch.as_tensor(np.asarray(X))
    if X.layout != torch.strided:
        raise TypeError(f"tensors must be dense, got the layout {X.layout}")
    if X.device.type not in DEVICES:
        raise TypeError(f"tensors must be on one of the devices {DEVICES}, got one on {X.device}")
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
    if X.dtype.is_complex:
        raise TypeError(f"X must hold real numbers, got type {X.dtype}")
    X = X.detach()
    if X.dtype in TORCH_FLOATS or X.dtype in TORCH_HALVES:
        return X
    return X.to(torch.float32 if X.device.type in WITHOUT_DOUBLE else torch.float64)


def _here(found: Any) -> Any:
    """A small result as a NumPy array, or as it is."""
    return found.tensor.cpu().numpy() if isinstance(found, DeviceArray) else found


def digest_of(tensor: Any, start: int) -> bytes:
    """128 bits that depend on every entry, its place, the type and the shape; not cryptographic.

    start : the place of the first entry among all
    """
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = tensor.contiguous().reshape(-1)
    bits = flat.view(sizes[flat.element_size()]).to(torch.int64)
    places = torch.arange(start, start + len(bits), device=tensor.device)
    sums = []
    for odd in _MIX[1:]:
        mixed = (bits ^ (places * _MIX[0])) * odd
        mixed = (mixed ^ (mixed >> 29)) * _MIX[0]
        sums.append(int((mixed ^ (mixed >> 32)).sum()))
    return f"{tensor.dtype} {tuple(tensor.shape)} {sums}".encode()
