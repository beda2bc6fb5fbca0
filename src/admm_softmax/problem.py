"""Problem = design + labels + weights + penalty. What is minimised, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax._cached import cached_property
from admm_softmax._reprs import as_html, as_text
from admm_softmax._validation import (
    check_labels,
    check_reference,
    check_soft_labels,
    check_total_weight,
    check_weight_entries,
    check_weights,
)
from admm_softmax.design import Design, Fold, Rows, as_design, is_tensor
from admm_softmax.kernels import rows
from admm_softmax.penalty import Penalty, Tikhonov
from admm_softmax.prepared import Prepared, Workspace
from admm_softmax.sources import open_rows


class Evaluation(NamedTuple):
    """Loss and accuracy of some W on some rows."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Point:
    """F and its gradient at one W, with the other figures of the same read."""

    W: Array
    objective: float
    loss: float
    accuracy: float
    #: The gradient of the loss alone; that of F, the same array, where `slope_at` wrote over it.
    loss_gradient: Array
    #: The gradient of loss and smooth part of the penalty; ∇F where the penalty is smooth.
    gradient: Array
    #: What is zero at a solution (`Penalty.optimality`); ∇F where the penalty is smooth.
    optimality: Array
    #: Σᵢ wᵢ mean_j p_ij(1 − p_ij), the mean diagonal of the loss's Hessian in the scores.
    curvature: float

    @cached_property
    def residual(self) -> float:
        """The largest absolute entry of `optimality`: what `tol` bounds for every solver."""
        return float(max(self.optimality.max(), -self.optimality.min()))


@dataclass(frozen=True)
class Linearisation(Point):
    """A point with its Hessian, one read of X per product."""

    hessian_product: Callable[[Array], Array]


@dataclass(frozen=True)
class Problem:
    """Softmax regression with a penalty.

    Minimise over W (d × K) ::

        F(W) = Σᵢ wᵢ [ logsumexp(xᵢW) − cᵢ·xᵢW ] + penalty(W)

    with wᵢ = sᵢ / S: the weights are normalised here and nowhere else, so that the loss
    is a mean, α does not depend on n, and integer weights equal repeated rows. The usual
    penalty is `Tikhonov`, (α/2) ‖L (W − W_ref)‖²_F.

    design : rows xᵢ (n × d, the last column constant if there is an intercept)
    labels : class codes (n,) or rows cᵢ of the simplex (n × K), held by the design
    weights : wᵢ ≥ 0 with sum 1, held by the design
    total_weight : S
    penalty : the second term
    n_classes : K

    >>> import numpy as np
    >>> problem = Problem.of(np.eye(3), [0, 1, 2], alpha=0.1)
    >>> round(problem.evaluate(np.zeros(problem.shape)).loss, 4)  # log 3
    1.0986
    """

    design: Design
    labels: Rows
    weights: Rows
    total_weight: float
    penalty: Penalty
    n_classes: int
    #: What was computed from the rows; shared by `with_alpha` copies and by all runs.
    prepared: Prepared = field(repr=False, compare=False)
    #: What a run changes.
    workspace: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    def __repr__(self) -> str:
        return as_text("Problem", self._facts())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return as_html("Problem", self._facts())

    def _facts(self) -> dict[str, str]:
        n, (d, K) = self.design.n_rows, self.shape
        features = d - int(self.design.intercept)
        return {
            "rows": f"{n:,}, weights {self.total_weight:g} in all",
            "features": f"{features:,}{' and an intercept' if self.design.intercept else ''}",
            "classes": f"{K:,}",
            "data": f"{type(self.design).__name__}, {self.design.dtype}",
            "penalty": f"{type(self.penalty).__name__}, alpha = {self.penalty.alpha:g}",
        }

    @classmethod
    def of(
        cls,
        X: Any,
        labels: Any,
        alpha: float = 0.0,
        *,
        sample_weight: Any = None,
        n_classes: int | None = None,
        penalty: Any = None,
        operator: Any = None,
        reference: Any = None,
        intercept: bool = True,
        penalize_intercept: bool = False,
        check_finite: bool = True,
    ) -> Problem:
        """Build a problem from arrays.

        `labels` are class codes 0 … K−1 or a matrix of soft labels; `X` is a dense or
        sparse matrix, files (see `RowBlocks`; labels may then be in files too), or a Design
        (which has its own intercept). Labels and weights may also be handles of that design,
        already checked. `penalty` is an object with
        a method `over` (see `Penalty`); without one it is Tikhonov's, with this operator.
        """
        X, labels = open_rows(X, labels)
        design = as_design(X, intercept=intercept, check_finite=check_finite)
        placed, K = _placed_labels(design, labels, n_classes)
        weights, total = _placed_weights(design, sample_weight)
        settings: dict[str, Any] = {
            "reference": check_reference(reference, (design.n_features, K)),
            "intercept": design.intercept,
            "penalize_intercept": penalize_intercept,
        }
        if penalty is None:
            penalty, settings = Tikhonov, {**settings, "operator": operator}
        elif operator is not None:
            raise ValueError("operator belongs to the Tikhonov penalty: give penalty or operator")
        elif not hasattr(penalty, "over"):
            raise TypeError(f"penalty must be None or an object with over(), got {penalty!r}")
        bound = penalty.over(design.n_features - design.intercept, alpha, **settings)
        return cls.on_rows(design, placed, weights, total, bound, K)

    @classmethod
    def on_rows(
        cls,
        design: Design,
        labels: Rows,
        weights: Rows,
        total_weight: float,
        penalty: Penalty,
        n_classes: int,
        prepared: Prepared | None = None,
    ) -> Problem:
        """Build a problem from handles; `weights` have the sum 1."""
        prepared = prepared or Prepared(weights)
        return cls(design, labels, weights, total_weight, penalty, n_classes, prepared)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W: d × K."""
        return self.design.n_features, self.n_classes

    def evaluate(self, W: Array) -> Evaluation:
        """Loss (without penalty) and accuracy at W. One read."""
        self._check(W)
        sums = self.design.fold(W, rows.evaluate, (self.labels, self.weights)).sums
        return Evaluation(sums.loss, sums.accuracy)

    def objective(self, W: Array) -> float:
        """F(W). One read."""
        return self.evaluate(W).loss + self.penalty.value(W)

    def at(self, W: Array) -> Point:
        """F(W) and its gradient, Σᵢ wᵢ xᵢᵀ(pᵢ − cᵢ) and the penalty's. One read."""
        self._check(W)
        return self.point(W, self.design.fold(W, rows.gradient, (self.labels, self.weights)))

    def slope_at(self, W: Array) -> Point:
        """As `at`, for a smooth penalty, without keeping the gradient of the loss. One read.

        The gradient of F is written over it: another array for it costs more than the sum, where
        W is large and X is sparse.
        """
        self._check(W)
        fold = self.design.fold(W, rows.gradient, (self.labels, self.weights))
        # Fits that share a pass have columns of one product; what an engine sends is read-only.
        gradient, sums = np.require(fold.product, requirements=["C", "W"]), fold.sums
        value = self.penalty.quadratic.add_gradient(W, gradient)
        return Point(
            W=W,
            objective=sums.loss + value,
            loss=sums.loss,
            accuracy=sums.accuracy,
            loss_gradient=gradient,
            gradient=gradient,
            optimality=gradient,
            curvature=sums.curvature,
        )

    def point(self, W: Array, fold: Fold) -> Point:
        """F and its gradient at W from a pass there, which no penalty has a part in. No read."""
        return Point(**self._point(W, fold))

    def linearise(self, W: Array) -> Linearisation:
        """F, its gradient and the Hessian at W. One read now, one for each Hessian product."""
        self._check(W)
        fold = self.design.fold(W, rows.linearise, (self.labels, self.weights))
        P = fold.new_rows

        def hessian_product(V: Array) -> Array:
            self._check(V)
            inner = self.design.fold(V, rows.hessian_product, (P, self.weights)).product
            return inner + self.penalty.hessian_product(V)

        return Linearisation(**self._point(W, fold), hessian_product=hessian_product)

    def gram(self, dtype: Any = np.float64) -> Any:
        """X̃ᵀ diag(w) X̃, d × d: formed once, then kept. Do not write to it."""
        return self.prepared.gram(self.design, dtype)

    def column_squares(self) -> Array:
        """The diagonal of the Gram matrix, also computed once."""
        return self.prepared.column_squares(self.design)

    def gram_product(self, V: Array) -> Array:
        """X̃ᵀ diag(w) X̃ V. One read."""
        return self.design.fold(V, rows.weigh, (self.weights,)).product

    def subsample(self, n_rows: int, seed: int) -> Problem:
        """The same problem on rows drawn at random; the others stay at weight zero.

        No row is copied: a Gram matrix of the sample picks its rows as it goes.
        """
        return self.on(self.design.drawn(n_rows, seed, self.weights))

    def on(self, chosen: Any) -> Problem:
        """The same problem on some rows, given by index or mask; the others stay at weight zero.

        A row that is named twice counts twice. Problems on parts of the same rows share the
        design, and so may share its reads.
        """
        weights = self.design.subset(self.weights, chosen)
        total = self.design.total(weights)
        if not total > 0:
            count = int(self.design.total(self.design.counts(chosen)))
            raise ValueError(f"the {count} rows chosen must have weight, got a sum of 0")
        weights = self.design.map_rows(lambda w: w / total, weights)
        prepared = Prepared(weights, row_basis=self.prepared.row_basis)
        return Problem.on_rows(
            self.design,
            self.labels,
            weights,
            self.total_weight * total,
            self.penalty,
            self.n_classes,
            prepared,
        )

    def with_alpha(self, alpha: float) -> Problem:
        """The same data under another strength of the penalty."""
        return self.with_penalty(self.penalty.with_alpha(alpha))

    def with_penalty(self, penalty: Penalty) -> Problem:
        """The same data under another penalty."""
        return replace(self, penalty=penalty, workspace=Workspace())

    def fresh(self) -> Problem:
        """The same problem with nothing computed yet, as if just built."""
        return self._prepared_by(Prepared(self.weights, self.prepared.make_gram))

    def with_gram(self, make_gram: Callable[[Any], Any]) -> Problem:
        """The same problem, its Gram matrix formed by `make_gram(dtype)`."""
        return self._prepared_by(Prepared(self.weights, make_gram, self.prepared.row_basis))

    def _prepared_by(self, prepared: Prepared) -> Problem:
        return replace(self, prepared=prepared, workspace=Workspace())

    def with_loaded_code(self) -> Problem:
        """The same problem for a solver that loads compiled code whatever the size of X."""
        return replace(self, design=self.design.with_loaded_code())

    def for_run(self) -> Problem:
        """The same problem for one run, with its own count of reads and its own W-step."""
        return replace(self, design=self.design.view(), workspace=Workspace())

    def _check(self, W: Array) -> None:
        if W.shape != self.shape:
            raise ValueError(f"W must have the shape {self.shape}, got {W.shape}")

    def _point(self, W: Array, fold: Fold) -> dict[str, Any]:
        sums, penalty = fold.sums, self.penalty
        if penalty.is_smooth or penalty.quadratic.strength > 0:
            pull = penalty.gradient(W)
            value = penalty.quadratic.value_given(W, pull) + penalty.rough_value(W)
            gradient = np.add(fold.product, pull, out=pull)  # fresh memory costs more than the sum
        else:
            value, gradient = penalty.rough_value(W), fold.product
        return {
            "W": W,
            "objective": sums.loss + value,
            "loss": sums.loss,
            "accuracy": sums.accuracy,
            "loss_gradient": fold.product,
            "gradient": gradient,
            "optimality": gradient if penalty.is_smooth else penalty.optimality(W, fold.product),
            "curvature": sums.curvature,
        }


def _placed_labels(design: Design, labels: Any, n_classes: int | None) -> tuple[Rows, int]:
    """Labels beside the rows, and K."""
    if design.rows_stay and is_tensor(labels):
        return _checked_there(design, design.place(labels, "labels"), n_classes)
    if not isinstance(labels, Rows):
        codes, K = check_labels(labels, design.n_rows, n_classes)
        return design.place(codes), K
    if n_classes is None:
        raise ValueError("labels that are a handle do not tell the number of classes: set it")
    return design.place(labels, "labels"), n_classes


def _checked_there(design: Design, labels: Rows, n_classes: int | None) -> tuple[Rows, int]:
    """Labels that were tensors, checked beside the rows, and K."""
    if labels.columns is not None:
        soft = design.map_rows(check_soft_labels, labels)
        return soft, n_classes or labels.columns
    ((least, most),) = design.per_part(lambda c: (int(c.min()), int(c.max())), labels)
    check_labels(np.array([least, most]), 2, n_classes)
    return labels, n_classes or most + 1


def _placed_weights(design: Design, sample_weight: Any) -> tuple[Rows, float]:
    """Weights beside the rows with the sum 1, and their sum before."""
    if design.rows_stay and is_tensor(sample_weight):
        given = design.place(sample_weight, "sample_weight")
        sample_weight = design.map_rows(lambda s: check_weight_entries(s, "sample_weight"), given)
        check_total_weight(design.total(sample_weight), design.n_rows, "sample_weight")
    elif design.rows_stay and sample_weight is None:
        sample_weight = design.map_rows(
            lambda a: np.full_like(a, 1.0, dtype=np.float64, shape=len(a)), design.zeros(1)
        )
    if not isinstance(sample_weight, Rows):
        s = check_weights(sample_weight, design.n_rows)
        total = float(s.sum())
        return design.place(s / total), total
    total = design.total(sample_weight)
    return design.map_rows(lambda s: s / total, sample_weight), total
