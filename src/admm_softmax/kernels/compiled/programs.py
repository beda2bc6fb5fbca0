"""Which row kernel is which compiled one, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax.kernels import rows as specification
from admm_softmax.kernels.compiled import rows
from admm_softmax.kernels.compiled.folds import run_rows, solve_rows


class _Shape(NamedTuple):
    """What a kernel takes and gives: columns of R and of new rows in units of K."""

    code: int
    inputs: tuple[str, ...]
    results: int = 0
    new_rows: int = 0
    sums: int = 0


_LABELLED = ("labels", "weights")
_SHAPES: dict[Any, _Shape] = {
    specification.predict: _Shape(rows.PREDICT, (), new_rows=1),
    specification.hand_over: _Shape(rows.HAND_OVER, ("state",), results=1),
    specification.evaluate: _Shape(rows.EVALUATE, _LABELLED, sums=2),
    specification.gradient: _Shape(rows.GRADIENT, _LABELLED, results=1, sums=3),
    specification.linearise: _Shape(rows.LINEARISE, _LABELLED, results=1, new_rows=1, sums=3),
    specification.hessian_product: _Shape(rows.HESSIAN_PRODUCT, ("state", "weights"), results=1),
    specification.weigh: _Shape(rows.WEIGH, ("weights",), results=1),
    specification.start: _Shape(rows.START, _LABELLED, results=2, new_rows=1),
    specification.admm: _Shape(rows.ADMM, (*_LABELLED, "state"), results=2, new_rows=1, sums=7),
    specification.misfit: _Shape(rows.MISFIT, (*_LABELLED, "state"), results=1),
}

_NO_CODES, _NO_ROWS, _NO_WEIGHTS = np.zeros(0, np.intp), np.zeros((0, 0)), np.zeros(0)


@dataclass(frozen=True)
class Program:
    """A row kernel ready to run in a compiled pass, with its row inputs."""

    code: int
    settings: Array
    codes: Any
    soft: Array
    weights: Array
    state: Array
    #: Columns of R, and of the new rows.
    n_results: int
    n_new: int
    n_sums: int

    @classmethod
    def of(cls, kernel: Callable[..., Any], inputs: Sequence[Any], n_classes: int) -> Program:
        """Look a kernel up; `inputs` are its row arrays."""
        function, settings = kernel, {}
        if isinstance(kernel, partial):
            function, settings = kernel.func, kernel.keywords
        shape = _SHAPES[function]
        given = dict(zip(shape.inputs, inputs, strict=True))
        codes, soft = _split(given.get("labels", _NO_CODES))
        state = given.get("state", _NO_ROWS)
        width = state.shape[1] if function is specification.hand_over else n_classes
        results = shape.results if settings.get("with_gradient", True) else 1
        return cls(
            code=shape.code,
            settings=np.array(
                [
                    settings.get("rho", 1.0),
                    settings.get("relaxation", 1.0),
                    settings.get("dual_is_zero", False),
                ],
                dtype=np.float64,
            ),
            codes=codes,
            soft=soft,
            weights=given.get("weights", _NO_WEIGHTS),
            state=np.ascontiguousarray(state),
            n_results=results * width,
            n_new=shape.new_rows * n_classes,
            n_sums=shape.sums,
        )

    @staticmethod
    def knows(kernel: Callable[..., Any]) -> bool:
        """Whether this kernel has a compiled twin."""
        return (kernel.func if isinstance(kernel, partial) else kernel) in _SHAPES


def run(kernel: Callable[..., Any], scores: Array, *inputs: Any) -> specification.Outcome:
    """Run the compiled twin of a row kernel on a block of scores."""
    program = Program.of(kernel, inputs, scores.shape[1])
    b = len(scores)
    R, new_rows = np.empty((b, program.n_results)), np.empty((b, program.n_new))
    sums = np.zeros(program.n_sums)
    run_rows(
        program.code, program.settings, np.ascontiguousarray(scores), program.codes,
        program.soft, program.weights, program.state, R, new_rows, sums,
    )  # fmt: skip
    return R if program.n_results else None, (new_rows,) if program.n_new else (), sums


def zstep(V: Array, labels: Labels, rho: float, Z: Array) -> tuple[Array, Array, Array]:
    """The compiled twin of `admm_softmax.kernels.zstep.zstep`."""
    Z_new, P, steps = np.empty(V.shape), np.empty(V.shape), np.empty(len(V))
    codes, soft = _split(labels)
    start, target = (np.ascontiguousarray(A, dtype=np.float64) for A in (Z, V))
    solve_rows(target, codes, soft, rho, start, Z_new, P, steps)
    return Z_new, P, steps


def _split(labels: Labels) -> tuple[Labels, Array]:
    """Codes and soft labels, one of them empty."""
    if labels.ndim == 1:
        return labels, _NO_ROWS
    return _NO_CODES, np.ascontiguousarray(labels, dtype=np.float64)
