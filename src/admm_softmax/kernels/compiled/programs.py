"""Which row kernel is which compiled one, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """Row kernels of one kind ready to run in a compiled pass, with their row inputs.

    `settings`, `state` and `which` have a row a task; see `folds`.
    """

    code: int
    settings: Array
    codes: Any
    soft: Array
    weights: Array
    which: Any
    state: Array
    #: Columns of R, all tasks together, and of one task's new rows.
    n_results: int
    n_new: int
    n_sums: int

    @classmethod
    def of(cls, tasks: Sequence[Any], n_classes: int) -> Program:
        """Look up what the tasks' kernel does; each task has a kernel and its row arrays."""
        function, _ = specification.function_and_settings(tasks[0].kernel)
        settings = [specification.function_and_settings(task.kernel)[1] for task in tasks]
        shape = _SHAPES[function]
        given = [dict(zip(shape.inputs, task.rows, strict=True)) for task in tasks]
        codes, soft = _split(given[0].get("labels", _NO_CODES))
        weights, which = _distinct([rows.get("weights", _NO_WEIGHTS) for rows in given])
        state = _stacked([rows.get("state", _NO_ROWS) for rows in given])
        width = state.shape[2] if function is specification.hand_over else n_classes
        results = shape.results if settings[0].get("with_gradient", True) else 1
        return cls(
            code=shape.code,
            settings=np.array(
                [
                    (s.get("rho", 1.0), s.get("relaxation", 1.0), s.get("dual_is_zero", False))
                    for s in settings
                ],
                dtype=np.float64,
            ),
            codes=codes,
            soft=soft,
            weights=weights,
            which=which,
            state=state,
            n_results=len(tasks) * results * width,
            n_new=shape.new_rows * n_classes,
            n_sums=shape.sums,
        )

    @staticmethod
    def knows(kernel: Callable[..., Any]) -> bool:
        """Whether this kernel has a compiled twin."""
        return specification.function_and_settings(kernel)[0] in _SHAPES

    def new_rows(self, n_rows: int) -> Array:
        """Room for the new rows, tasks × n × columns."""
        return np.empty((len(self.which), n_rows, self.n_new))

    def sums(self) -> Array:
        """Zeros to add the sums to, tasks × sums."""
        return np.zeros((len(self.which), self.n_sums))


def run(kernel: Callable[..., Any], scores: Array, *inputs: Any) -> specification.Outcome:
    """Run the compiled twin of a row kernel on a block of scores."""
    program = Program.of([_Bare(kernel, inputs)], scores.shape[1])
    b = len(scores)
    R, new_rows, sums = np.empty((b, program.n_results)), program.new_rows(b), program.sums()
    run_rows(
        program.code, program.settings, np.ascontiguousarray(scores), program.codes,
        program.soft, program.weights, program.which, program.state, R, new_rows, sums,
    )  # fmt: skip
    return R if program.n_results else None, (new_rows[0],) if program.n_new else (), sums[0]


class _Bare(NamedTuple):
    kernel: Callable[..., Any]
    rows: Sequence[Any]


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


def _distinct(arrays: Sequence[Array]) -> tuple[Array, Any]:
    """The arrays, each once, as the rows of one; and which of them is whose."""
    kept = {id(array): array for array in arrays}
    places = {key: i for i, key in enumerate(kept)}
    return _stacked(list(kept.values())), np.array([places[id(array)] for array in arrays])


def _stacked(arrays: Sequence[Array]) -> Array:
    """Arrays of one shape as one, without a copy where there is one only."""
    if len(arrays) == 1:
        return np.ascontiguousarray(arrays[0], dtype=np.float64)[None]
    return np.stack(arrays, dtype=np.float64)
