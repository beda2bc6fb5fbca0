"""Compiling ahead of time: `admm_softmax.warm_up()` and `admm-softmax warm-up`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax.design import Design, Rows, as_design
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import RowKernel
from admm_softmax.kernels.targets import kernel_of
from admm_softmax.kernels.thresholds import COMPILED_FROM_SCORES, MANY_CLASSES

#: Classes and columns of the rows to pass over: few, but with enough rows for compiled passes.
K, D = 10, 9


def warm_up() -> float:
    """Compile every pass, or load what an earlier process has compiled; returns the seconds.

    Otherwise each is compiled when a large problem first needs it. For images, continuous
    integration and services whose first fit should be as fast as the second.

    >>> import admm_softmax
    >>> seconds = admm_softmax.warm_up()  # doctest: +SKIP
    """
    begin = time.perf_counter()
    X = np.random.default_rng(0).standard_normal((COMPILED_FROM_SCORES // K, D))
    for dtype in (np.float32, np.float64):
        for form in (np.asarray, sp.csr_array):
            _fold_all(as_design(form(X.astype(dtype))))
        _solve_triangle(dtype)
    _fold_all(as_design(X.astype(np.float16)))
    _convert()
    return time.perf_counter() - begin


def _fold_all(design: Design) -> None:
    n = design.n_rows
    inputs = {
        "labels": design.place(np.arange(n) % K),
        "weights": design.place(np.full(n, 1.0 / n)),
        "state": design.zeros(K),
    }
    for columns in (K, MANY_CLASSES):
        W, labels = np.zeros((design.n_features, columns)), _single(design, design.zeros(columns))
        for n_classes in (2, columns):
            kernel = kernel_of(columns if n_classes == 2 else 1, n_classes)
            design.fold(W, kernel, [labels])
    for columns, dtype in ((MANY_CLASSES, np.float64), (K, design.dtype)):
        # Solvers that keep their vectors in the data's precision ask for products in it.
        W = np.zeros((design.n_features, columns), dtype)
        design.fold(W, rows.gradient, (inputs["labels"], inputs["weights"]))
    for kernel in vars(rows).values():
        if isinstance(kernel, RowKernel) and kernel.twin is not None:
            bound = kernel.bind(**dict.fromkeys(kernel.settings, 1.0))
            W = np.zeros((design.n_features, K))
            design.fold(W, bound, [inputs[name] for name in kernel.inputs])


def _single(design: Design, state: Rows) -> Rows:
    """The labels of many targets come in single precision."""
    return design.map_rows(lambda C: C.astype(np.float32), state)


def _solve_triangle(dtype: Any) -> None:
    from admm_softmax.kernels.compiled import triangular  # noqa: PLC0415  (loads LLVM)

    triangular.solve(np.eye(2 * D, dtype=dtype), np.ones((2 * D, K)))


def _convert() -> None:
    from admm_softmax.kernels.compiled import passes  # noqa: PLC0415  (loads LLVM)

    passes.widen_halves(np.zeros(2, np.uint16), np.zeros(2, np.float32))
    passes.tanh_in_place(np.zeros(2, np.float32))
