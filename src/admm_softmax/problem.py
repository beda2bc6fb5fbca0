"""Problem = design + labels + weights + penalty. What is minimised, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax.design import Design, Fold, as_design
from admm_softmax.kernels import rows
from admm_softmax.penalty import Tikhonov

#: How far a row of soft labels may be from summing to one.
SIMPLEX_TOLERANCE = 1e-6


class Evaluation(NamedTuple):
    """Loss and accuracy of some weights on some rows."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Point:
    """F and ∇F at one W, and what came with them."""

    W: Array
    objective: float
    loss: float
    accuracy: float
    gradient: Array
    #: Σᵢ wᵢ mean_j p_ij(1 − p_ij), the mean diagonal of the loss's Hessian in the scores.
    curvature: float


@dataclass(frozen=True)
class Linearisation(Point):
    """A point with its Hessian, one read of X a product."""

    hessian_product: Callable[[Array], Array]


@dataclass(frozen=True)
class Problem:
    """Softmax regression with a Tikhonov penalty.

    Minimise over W (d × K) ::

        F(W) = Σᵢ wᵢ [ logsumexp(xᵢW) − cᵢ·xᵢW ] + (α/2) ‖L (W − W_ref)‖²_F

    with wᵢ = sᵢ / S: the weights are normalised here and nowhere else, so that the loss
    is a mean, α does not depend on n, and integer weights equal repeated rows.

    design : rows xᵢ (n × d, the last column constant if there is an intercept)
    labels : class codes (n,) or rows cᵢ of the simplex (n × K)
    weights : wᵢ ≥ 0 with sum 1
    total_weight : S
    penalty : the second term
    n_classes : K

    >>> import numpy as np
    >>> problem = Problem.of(np.eye(3), [0, 1, 2], alpha=0.1)
    >>> round(problem.evaluate(np.zeros(problem.shape)).loss, 4)  # log 3
    1.0986
    """

    design: Design
    labels: Labels
    weights: Array
    total_weight: float
    penalty: Tikhonov
    n_classes: int
    #: What depends on the rows alone (the Gram matrix), shared by `with_alpha` copies.
    cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Forms the Gram matrix in a given precision, where there is a cheaper way than a product.
    make_gram: Callable[[Any], Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        X: Any,
        labels: Any,
        alpha: float = 0.0,
        *,
        sample_weight: Any = None,
        n_classes: int | None = None,
        operator: Any = None,
        reference: Any = None,
        intercept: bool = True,
        penalize_intercept: bool = False,
        n_threads: int | None = None,
        check_finite: bool = True,
    ) -> Problem:
        """Build a problem from arrays.

        `labels` are class codes 0 … K−1 or a matrix of soft labels; `X` is a dense or
        sparse matrix or a Design (which has its own intercept and threads).
        """
        design = as_design(X, intercept=intercept, n_threads=n_threads, check_finite=check_finite)
        labels, K = check_labels(labels, design.n_rows, n_classes)
        s = check_weights(sample_weight, design.n_rows)
        total = float(s.sum())
        penalty = Tikhonov.over(
            design.n_features - design.intercept,
            alpha,
            operator=operator,
            reference=_check_reference(reference, design, K),
            intercept=design.intercept,
            penalize_intercept=penalize_intercept,
        )
        return cls(design, labels, s / total, total, penalty, K)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W: d × K."""
        return self.design.n_features, self.n_classes

    def evaluate(self, W: Array) -> Evaluation:
        """Loss (without penalty) and accuracy at W. One read."""
        self._check(W)
        loss, accuracy = self.design.fold(W, rows.evaluate, (self.labels, self.weights)).sums
        return Evaluation(float(loss), float(accuracy))

    def objective(self, W: Array) -> float:
        """F(W). One read."""
        return self.evaluate(W).loss + self.penalty.value(W)

    def at(self, W: Array) -> Point:
        """F(W) and ∇F(W) = Σᵢ wᵢ xᵢᵀ(pᵢ − cᵢ) + α LᵀL (W − W_ref). One read."""
        self._check(W)
        fold = self.design.fold(W, rows.gradient, (self.labels, self.weights))
        return Point(**self._point(W, fold))

    def linearise(self, W: Array) -> Linearisation:
        """F, ∇F and the Hessian at W. One read now, one for each Hessian product."""
        self._check(W)
        fold = self.design.fold(W, rows.linearise, (self.labels, self.weights))
        (P,) = fold.rows

        def hessian_product(V: Array) -> Array:
            self._check(V)
            inner = self.design.fold(V, rows.hessian_product, (P, self.weights)).product
            return inner + self.penalty.hessian_product(V)

        return Linearisation(**self._point(W, fold), hessian_product=hessian_product)

    def gram(self, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃, d × d: formed once, then kept. Do not write to it.

        Where float32 will do, one in float64 that is there already does too.
        """
        kept = self.cache.get("gram")
        if kept is None or kept.dtype.itemsize < np.dtype(dtype).itemsize:
            kept = (self.make_gram or partial(self.design.gram, self.weights))(dtype)
            if kept.dtype == np.float32 and not np.isfinite(kept.diagonal()).all():
                kept = self.design.gram(self.weights)
            if not np.isfinite(kept.diagonal()).all():
                raise ValueError("X is too large: the squares of its entries overflow; scale it")
            self.cache["gram"] = kept
        return kept

    def column_squares(self) -> Array:
        """The diagonal of the Gram matrix, from it if it is there, else by a read of its own."""
        if "squares" not in self.cache:
            kept = self.cache.get("gram")
            squares = self.design.column_squares(self.weights) if kept is None else kept.diagonal()
            self.cache["squares"] = np.asarray(squares, dtype=np.float64)
        known: Array = self.cache["squares"]
        return known

    def gram_product(self, V: Array) -> Array:
        """X̃ᵀ diag(w) X̃ V. One read."""
        return self.design.fold(V, rows.weigh, (self.weights,)).product

    def subsample(self, n_rows: int, seed: int) -> Problem:
        """The same problem on rows drawn at random, without those of weight zero."""
        candidates = np.flatnonzero(self.weights)
        count = min(n_rows, len(candidates))
        drawn = np.sort(np.random.default_rng(seed).choice(candidates, count, replace=False))
        weights, design = self.weights[drawn], self.design.take(drawn, self.design.n_threads)
        total = float(weights.sum())
        return replace(
            self,
            design=design,
            labels=self.labels[drawn],
            weights=weights / total,
            total_weight=self.total_weight * total,
            cache={},
            make_gram=None,
        )

    def row_counts(self, chosen: Any) -> Any:
        """How often each row is chosen, by index or mask."""
        chosen = np.asarray(chosen)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return np.bincount(chosen, minlength=self.design.n_rows)

    def on(self, chosen: Any) -> Problem:
        """The same problem on some rows, given by index or mask; the others stay at weight zero.

        A row that is named twice counts twice. Problems on parts of the same rows share the
        design, and so may share its reads.
        """
        weights = self.weights * self.row_counts(chosen)
        total = float(weights.sum())
        if not total > 0:
            raise ValueError(
                f"the {len(chosen)} rows chosen must have weight, got a sum of {total}"
            )
        return replace(
            self,
            weights=weights / total,
            total_weight=self.total_weight * total,
            cache={},
            make_gram=None,
        )

    def _check(self, W: Array) -> None:
        if W.shape != self.shape:
            raise ValueError(f"W must have the shape {self.shape}, got {W.shape}")

    def _point(self, W: Array, fold: Fold) -> dict[str, Any]:
        loss, accuracy, curvature = (float(x) for x in fold.sums)
        return {
            "W": W,
            "objective": loss + self.penalty.value(W),
            "loss": loss,
            "accuracy": accuracy,
            "gradient": fold.product + self.penalty.gradient(W),
            "curvature": curvature,
        }

    def with_alpha(self, alpha: float) -> Problem:
        """The same data under another strength of the penalty."""
        return replace(self, penalty=self.penalty.with_alpha(alpha))


def check_labels(labels: Any, n_rows: int, n_classes: int | None) -> tuple[Labels, int]:
    """Return labels in their internal form and K."""
    labels = np.asarray(labels)
    if labels.ndim == 0 or len(labels) != n_rows:
        raise ValueError(f"labels have {labels.size} entries for {n_rows} rows")
    if labels.ndim == 2:
        labels = check_soft_labels(labels)
        if n_classes not in (None, labels.shape[1]):
            raise ValueError(f"labels have {labels.shape[1]} columns for {n_classes} classes")
        return labels, _check_classes(labels.shape[1])
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TypeError(
            "labels must be whole numbers of shape (n,) or a matrix of shape (n, K), got "
            f"type {labels.dtype} of shape {labels.shape}"
        )
    K = int(labels.max()) + 1 if n_classes is None else n_classes
    if labels.min() < 0 or labels.max() >= K:
        raise ValueError(
            f"labels must lie in 0 … {K - 1}, got values from {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.intp), _check_classes(K)


def _check_classes(n_classes: int) -> int:
    if n_classes < 2:
        raise ValueError(f"labels must be of at least two classes, got {n_classes}")
    return n_classes


def check_soft_labels(labels: Any, name: str = "soft labels") -> Array:
    """Return soft labels as float64 rows that sum to one exactly up to rounding."""
    labels = np.asarray(labels, dtype=np.float64)
    if not np.isfinite(labels).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if labels.min() < 0:
        i, k = np.unravel_index(labels.argmin(), labels.shape)
        raise ValueError(f"{name} must be ≥ 0, got {labels[i, k]} in row {i}, column {k}")
    totals = labels.sum(axis=1)
    worst = int(np.abs(totals - 1.0).argmax())
    if abs(totals[worst] - 1.0) > SIMPLEX_TOLERANCE:
        raise ValueError(
            f"each row of {name} must sum to 1, got {totals[worst]:.6g} in row {worst}"
        )
    return np.asarray(labels / totals[:, None], dtype=np.float64)


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return weights as float64 of shape (n,): finite, non-negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    s = np.asarray(sample_weight, dtype=np.float64)
    if s.shape == ():
        s = np.full(n_rows, float(s))
    if s.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {s.shape}")
    if len(s) != n_rows:
        raise ValueError(f"{name} has {len(s)} entries for {n_rows} rows")
    if not np.isfinite(s).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if s.min() < 0:
        raise ValueError(f"{name} must be ≥ 0, got {s.min()} at position {s.argmin()}")
    with np.errstate(over="ignore"):
        total = s.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} must have a finite sum, got entries up to {s.max():g}")
    if total <= 0:
        raise ValueError(f"{name} must have a positive sum, got 0: all {n_rows} entries are zero")
    return s


def _check_reference(reference: Any, design: Design, n_classes: int) -> Array | None:
    if reference is None:
        return None
    W_ref: Array = np.asarray(reference, dtype=np.float64)
    expected = (design.n_features, n_classes)
    if W_ref.shape != expected:
        raise ValueError(f"reference must have the shape {expected} of W, got {W_ref.shape}")
    if not np.isfinite(W_ref).all():
        raise ValueError("reference must be finite, got NaN or infinity")
    return W_ref
