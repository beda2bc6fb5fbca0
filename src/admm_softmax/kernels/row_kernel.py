"""`RowKernel`: the declaration of a row kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from admm_softmax._arrays import Array

#: R (or None), new rows (or None), and the sums in their declared order.
Outcome: TypeAlias = tuple[Array | None, Array | None, Array]
Input: TypeAlias = Literal["labels", "weights", "state"]


@dataclass(frozen=True)
class RowKernel:
    """What happens to a block of X W between the two products with X.

    With b rows in a block and K columns of W (or of the state, where W has none) ::

        kernel(scores, *rows) -> (R, new_rows, sums)

    name : what it is called, in errors and in the cache of compiled code
    function : the NumPy function, which is the specification
    inputs : the row arrays it takes after the scores, in order: "labels" (codes (b,) or
        soft labels (b, K)), "weights" (b,) and "state" (b, K)
    results : columns of R in units of K; 0 where there is none
    new_rows : columns of the new rows in units of K; 0 where there are none
    sums : names of the scalars that are added up over all rows
    settings : names of the numbers that `bind` sets
    twin : its compiled version, as "module:function"; None runs the NumPy function
    single : another for passes over X in single precision, with labels that are codes, if any
    restart : for a kernel that takes and returns state, a kernel without state whose new rows,
        at the same W, can take the place of rows that were lost; None where nothing can

    A kernel never writes to its arguments, so that a design may run a block twice.
    """

    name: str
    function: Callable[..., Outcome]
    inputs: tuple[Input, ...] = ()
    results: int = 0
    new_rows: int = 0
    sums: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    twin: str | None = None
    single: str | None = None
    values: tuple[float, ...] = ()
    restart: RowKernel | None = None

    def bind(self, **settings: float) -> RowKernel:
        """The same kernel with its settings."""
        if set(settings) != set(self.settings):
            raise TypeError(f"{self.name} takes the settings {self.settings}, got {[*settings]}")
        return replace(self, values=tuple(settings[name] for name in self.settings))

    @property
    def kind(self) -> Hashable:
        """Kernels of one kind differ in their settings only, and can share a pass."""
        return self.name, self.function

    def __call__(self, scores: Array, *rows: Any) -> Outcome:
        """Run the NumPy function on a block, with the settings bound."""
        return self.function(scores, *rows, **dict(zip(self.settings, self.values, strict=True)))

    @property
    def remaker(self) -> RowKernel | None:
        """What makes new rows again from W alone: the kernel itself, unless it takes state."""
        return self.restart if "state" in self.inputs else self

    def __reduce__(self) -> Any:
        # By name: under the function's name its module has the declared kernel, so that pickle
        # would not find the function. Kernels are pickled with passes that workers run.
        module, name = self.function.__module__, self.function.__name__
        found = getattr(sys.modules.get(module), name, None)
        if module != "__main__" and isinstance(found, RowKernel) and found.kind == self.kind:
            return _named, (module, name, self.values)
        return RowKernel, tuple(getattr(self, field.name) for field in fields(self))


def _named(module: str, name: str, values: tuple[float, ...]) -> RowKernel:
    """A declared kernel by its name, with its settings."""
    kernel: RowKernel = getattr(import_module(module), name)
    return replace(kernel, values=values) if values else kernel


class Sums:
    """Scalars summed over rows, by name: `sums.loss`.

    >>> import numpy as np
    >>> (Sums(("loss",), np.array([1.0])) + Sums(("loss",), np.array([2.0]))).loss
    3.0
    """

    __slots__ = ("names", "values")

    def __init__(self, names: tuple[str, ...], values: Array) -> None:
        self.names, self.values = names, values

    def __getattr__(self, name: str) -> float:
        if name.startswith("_") or name not in self.names:
            raise AttributeError(f"there is no sum {name!r}; the sums are {self.names}")
        return float(self.values[self.names.index(name)])

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.names, self.values + other.values)

    def __repr__(self) -> str:
        parts = zip(self.names, self.values, strict=True)
        return f"Sums({', '.join(f'{name}={value:g}' for name, value in parts)})"

    def __reduce__(self) -> Any:
        return Sums, (self.names, self.values)


def declared(
    **facts: Any,
) -> Callable[[Callable[..., Outcome]], RowKernel]:
    """Declare a NumPy function as a row kernel; `facts` are the fields of `RowKernel`."""

    def declare(function: Callable[..., Outcome]) -> RowKernel:
        kernel = RowKernel(function.__name__, function, **facts)
        object.__setattr__(kernel, "__doc__", function.__doc__)
        return kernel

    return declare
