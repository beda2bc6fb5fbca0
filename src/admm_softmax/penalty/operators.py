"""Regularisation operators L as SciPy sparse matrices.

Image features are flattened in C order (the last axis varies fastest), channels first.
Each operator is a plain sparse matrix: scale, stack and combine them as such.

>>> L = laplacian((28, 28), spacing=1 / 28)
>>> L.shape
(784, 784)
>>> per_channel(L, 9).shape
(7056, 7056)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

Boundary: TypeAlias = Literal["dirichlet", "neumann", "periodic"]
BOUNDARIES: tuple[Boundary, ...] = ("dirichlet", "neumann", "periodic")


def identity(n: int) -> Any:
    """The n × n identity: the plain ridge.

    >>> identity(3).nnz
    3
    """
    return sp.eye_array(_count(n, "n"), format="csr")


def gradient(shape: int | Sequence[int], spacing: float | Sequence[float] = 1.0) -> Any:
    """Forward differences along every axis, stacked: Σ_axes (n_axis − 1) · (n / n_axis) rows.

    Its null space holds the constants. LᵀL is minus the Neumann Laplacian.

    >>> gradient(3).toarray()
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    sizes, steps = _grid(shape, spacing)
    parts = []
    for axis, (n, h) in enumerate(zip(sizes, steps, strict=True)):
        difference = sp.eye_array(n - 1, n, k=1) - sp.eye_array(n - 1, n)
        parts.append(_along(axis, difference / h, sizes))
    return sp.csr_array(sp.vstack(parts))


def laplacian(
    shape: int | Sequence[int],
    spacing: float | Sequence[float] = 1.0,
    boundary: Boundary = "dirichlet",
) -> Any:
    """The second-order Laplacian (three, five or seven points in 1-D, 2-D, 3-D).

    `boundary` says what lies outside the grid: zeros ("dirichlet", as in the paper),
    a mirror ("neumann"; constants are in the null space) or the other side ("periodic").

    >>> laplacian(3).toarray()
    array([[-2.,  1.,  0.],
           [ 1., -2.,  1.],
           [ 0.,  1., -2.]])
    """
    if boundary not in BOUNDARIES:
        raise ValueError(f"boundary must be one of {BOUNDARIES}, got {boundary!r}")
    sizes, steps = _grid(shape, spacing)
    total = sp.csr_array((int(np.prod(sizes)),) * 2)
    for axis, (n, h) in enumerate(zip(sizes, steps, strict=True)):
        total = total + _along(axis, _second_difference(n, boundary) / h**2, sizes)
    return sp.csr_array(total)


def per_channel(operator: Any, channels: int) -> Any:
    """The same operator on each of `channels` consecutive feature blocks.

    >>> per_channel(identity(2), 3).shape
    (6, 6)
    """
    if not sp.issparse(operator):
        operator = sp.csr_array(np.atleast_2d(np.asarray(operator, dtype=np.float64)))
    return sp.block_diag([operator] * _count(channels, "channels"), format="csr")


def _second_difference(n: int, boundary: Boundary) -> Any:
    D = sp.eye_array(n, k=-1) - 2.0 * sp.eye_array(n) + sp.eye_array(n, k=1)
    D = D.tolil()
    if boundary == "neumann":
        D[0, 0] += 1.0
        D[n - 1, n - 1] += 1.0
    elif boundary == "periodic":
        D[0, n - 1] += 1.0
        D[n - 1, 0] += 1.0
    return D.tocsr()


def _along(axis: int, operator: Any, sizes: tuple[int, ...]) -> Any:
    before, after = int(np.prod(sizes[:axis])), int(np.prod(sizes[axis + 1 :]))
    return sp.kron(sp.kron(sp.eye_array(before), operator), sp.eye_array(after))


def _grid(
    shape: int | Sequence[int], spacing: float | Sequence[float]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    sizes = tuple(_count(n, "shape") for n in np.atleast_1d(np.asarray(shape)).tolist())
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"shape must have 1, 2 or 3 axes, got {len(sizes)}: {sizes}")
    steps = tuple(float(h) for h in np.atleast_1d(np.asarray(spacing, dtype=np.float64)))
    if len(steps) == 1:
        steps *= len(sizes)
    if len(steps) != len(sizes):
        raise ValueError(f"spacing has {len(steps)} entries for {len(sizes)} axes")
    if not all(np.isfinite(h) and h > 0 for h in steps):
        raise ValueError(f"spacing must be positive, got {spacing}")
    return sizes, steps


def _count(n: Any, name: str) -> int:
    if int(n) != n or n < 1:
        raise ValueError(f"{name} must be a positive whole number, got {n}")
    return int(n)
