"""Compiling ahead of time: `admm_softmax.warm_up()` and `admm-softmax warm-up`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax.design import Design, HalfDesign, Rows, as_design
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import RowKernel
from admm_softmax.kernels.targets import kernel_of
from admm_softmax.kernels.thresholds import COMPILED_FROM_SCORES

#: Classes of the rows to pass over: few, but with enough rows for compiled passes. And columns, so
#: few that products go by panels, and so many that they go by tiles.
K, FEW_COLUMNS, MORE_COLUMNS = 10, 9, 200


def warm_up() -> float:
    """Compile every pass, or load what an earlier process has compiled; returns the seconds.

    Otherwise each is compiled when a large problem first needs it. For images, continuous
    integration and services whose first fit should be as fast as the second.

    >>> import admm_softmax
    >>> seconds = admm_softmax.warm_up()  # doctest: +SKIP
    """
    begin = time.perf_counter()
    X = np.random.default_rng(0).standard_normal((COMPILED_FROM_SCORES // K, FEW_COLUMNS))
    wide = np.zeros((len(X), MORE_COLUMNS), np.float16)
    for dtype in (np.float16, np.float32, np.float64):
        _fold_all(as_design(X.astype(dtype)))
        _fold_all(as_design(wide.astype(dtype)))
    for rows_of_bits in (X.astype(np.float32), wide.astype(np.float32)):
        bits = (rows_of_bits.view(np.uint32) >> 16).astype(np.uint16)
        _fold_all(HalfDesign(bits, half="bfloat16"))
    for dtype in (np.float32, np.float64):
        _fold_all(as_design(sp.csr_array(X.astype(dtype))))
        _solve_triangle(dtype)
    _run_on_scores()
    _convert()
    _load_coordinate_loops()
    return time.perf_counter() - begin


def _fold_all(design: Design) -> None:
    n = design.n_rows
    inputs = {
        "labels": design.place(np.arange(n) % K),
        "soft": design.place(np.full((n, K), 1.0 / K)),
        "weights": design.place(np.full(n, 1.0 / n)),
        "state": design.zeros(K),
    }
    W, of_targets = np.zeros((design.n_features, K)), _single(design, design.zeros(K))
    for n_classes in (2, K):
        design.fold(W, kernel_of(K if n_classes == 2 else 1, n_classes), [of_targets])
    for labels, of_dtype in (("soft", np.float64), ("labels", design.dtype)):
        # Soft labels go in double. Solvers that keep their vectors in the data's precision ask
        # for products in it.
        design.fold(W.astype(of_dtype), rows.gradient, (inputs[labels], inputs["weights"]))
    for kernel in vars(rows).values():
        if isinstance(kernel, RowKernel) and kernel.twin is not None:
            bound = kernel.bind(**dict.fromkeys(kernel.settings, 1.0))
            design.fold(W, bound, [inputs[name] for name in kernel.inputs])


def _single(design: Design, state: Rows) -> Rows:
    """The labels of many targets come in single precision."""
    return design.map_rows(lambda C: C.astype(np.float32), state)


def _run_on_scores() -> None:
    """Row kernels alone, where NumPy multiplies rows that are not aligned, or of other bytes."""
    from admm_softmax.kernels.compiled import programs  # noqa: PLC0415  (loads LLVM)

    for state_dtype in (np.float32, np.float64):
        programs.run(kernel_of(K, 2), np.zeros((1, K)), np.zeros((1, K), state_dtype))


def _solve_triangle(dtype: Any) -> None:
    from admm_softmax.kernels.compiled import triangular  # noqa: PLC0415  (loads LLVM)

    triangular.solve(np.eye(2 * FEW_COLUMNS, dtype=dtype), np.ones((2 * FEW_COLUMNS, K)))


def _convert() -> None:
    from admm_softmax.kernels.compiled import passes  # noqa: PLC0415  (loads LLVM)

    passes.widen_halves(np.zeros(2, np.uint16), np.zeros(2, np.float32))
    passes.tanh_in_place(np.zeros(2, np.float32))


def _load_coordinate_loops() -> None:
    from admm_softmax.kernels.compiled import coordinates  # noqa: PLC0415  (loads LLVM)

    coordinates.load_all()
