"""Checks of the `Design` contract."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from admm_softmax._arrays import Array
from admm_softmax.contracts.agreement import require, require_close, require_error
from admm_softmax.design import Design, Request
from admm_softmax.kernels import rows
from admm_softmax.kernels.row_kernel import RowKernel
from admm_softmax.problem import Problem
from admm_softmax.solvers import LBFGS, run

N, D, K = 61, 7, 3


class _Case(NamedTuple):
    """A design, and the same rows as a plain matrix with the constant column."""

    make: Callable[[], Design]
    design: Design
    X: Array
    labels: Any
    soft: Array
    weights: Array
    state: Array
    W: Array
    tolerance: float

    @property
    def rows_rounding(self) -> float:
        """How far rows may be from the float64 numbers placed, where the design has no float64."""
        kept = self.design.gather(self.design.place(self.weights)).dtype
        return 0.0 if kept == np.float64 else float(np.finfo(kept).eps)

    def arrays(self, kernel: RowKernel, soft: bool) -> list[Any]:
        """The arrays that a kernel takes, in its order."""
        labels = self.soft if soft else self.labels
        named = {"labels": labels, "weights": self.weights, "state": self.state}
        return [named[name] for name in kernel.inputs]


def check_design(factory: Callable[..., Design]) -> None:
    """Check that a kind of design keeps the contract of `Design`.

    factory : called as `factory(X, intercept=...)` with a float64 array X of shape (n, d),
        whose entries are small multiples of 1/4, so that any precision holds them

    >>> from admm_softmax.design import DenseDesign
    >>> check_design(DenseDesign)
    """
    for intercept in (True, False):
        case = _case(factory, intercept)
        _check_facts(case, intercept)
        _check_rows(case)
        for kernel in _kernels():
            for soft in (False, True):
                _check_fold(case, kernel, soft)
        _check_shared_reads(case)
        _check_matrices(case)
        _check_samples(case)
        _check_predictions(case)
        _check_columns(case)
        _check_views(case)
        _check_errors(case)
        _check_fingerprint(case, factory, intercept)
    _check_a_fit(factory)


def _case(factory: Callable[..., Design], intercept: bool) -> _Case:
    rng = np.random.default_rng(0)
    X = np.clip(np.round(4 * rng.standard_normal((N, D))), -12, 12) / 4
    X *= rng.random((N, D)) < 0.6
    make = partial(factory, X.copy(), intercept=intercept)
    design = make()
    full = np.column_stack([X, np.ones(N)]) if intercept else X
    soft = rng.dirichlet(np.ones(K), N)
    weights = rng.random(N) * (rng.random(N) < 0.8)
    return _Case(
        make,
        design,
        full,
        rng.integers(0, K, N),
        soft,
        weights / weights.sum(),
        rng.standard_normal((N, K)),
        rng.standard_normal((full.shape[1], K)),
        max(1e-12, 400 * design.rounding),
    )


def _kernels() -> list[RowKernel]:
    """All that `kernels.rows` declares, with settings."""
    declared = [kernel for kernel in vars(rows).values() if isinstance(kernel, RowKernel)]
    values = {"relaxation": 1.6, "dual_is_zero": 0.0}
    return [k.bind(**{name: values.get(name, 0.3) for name in k.settings}) for k in declared]


def _check_facts(case: _Case, intercept: bool) -> None:
    design = case.design
    require(isinstance(design, Design), f"a design must be a Design, got {type(design)}")
    require(design.shape == (N, D), f"shape must be {(N, D)}, got {design.shape}")
    require(design.n_features == D + intercept, "n_features must count the intercept")
    require(design.intercept is intercept, "intercept must be what was asked for")
    require(design.reads == 0, f"a fresh design must have read nothing, got {design.reads}")
    require(0 < design.entries <= N * D, f"entries must lie in 1 … {N * D}, got {design.entries}")
    require(0 < design.rounding < 1e-2, f"rounding must be small, got {design.rounding}")


def _check_rows(case: _Case) -> None:
    design, w = case.design, case.weights
    rounded = case.rows_rounding
    for array in (case.labels, w, case.soft):
        handle = design.place(array)
        require(handle.n_rows == N, "a handle must know its number of rows")
        require_close(design.gather(handle), array, "gather(place(rows))", rounded)
        require(design.place(handle) is handle, "place must hand a handle back as it is")
        require(design.place(array).key != handle.key, "each handle must have a key of its own")
    require_close(design.gather(design.zeros(K)), np.zeros((N, K)), "gather(zeros)", 0.0)
    handle = design.place(w)
    halved = design.map_rows(lambda v: v / 2, handle)
    require_close(design.gather(halved), w / 2, "map_rows", rounded)
    require_close(design.gather(handle), w, "rows that map_rows has read", rounded)
    require_close(design.total(handle), w.sum(), "total", max(1e-12, 10 * rounded))
    require(design.count(handle) == np.count_nonzero(w), "count must count the rows with weight")
    twice = np.array([3, 5, 5])
    counts = np.bincount(twice, minlength=N)
    require_close(
        design.gather(design.subset(handle, twice)), w * counts, "subset", 1e-15 + rounded
    )
    mask = np.arange(N) % 2 == 0
    require_close(design.gather(design.subset(handle, mask)), w * mask, "subset by mask", rounded)
    placed = design.place(mask)
    by_handle = design.gather(design.subset(handle, placed))
    require_close(by_handle, w * mask, "subset by handle", rounded)
    sizes = design.per_part(len, handle)
    require(sum(sizes) == N, f"per_part must see each of {N} rows once, got {sum(sizes)}")
    numbers = design.map_parts(lambda value, v: value + 0 * v, [*range(len(sizes))], handle)
    by_part = np.repeat(np.arange(len(sizes)), sizes)
    require_close(design.gather(numbers), by_part, "map_parts", 0.0)
    require(design.reads == 0, "rows must be placed and mapped without a read of X")


def _check_fold(case: _Case, kernel: RowKernel, soft: bool) -> None:
    design, name = case.make(), f"the fold of {kernel.name}"
    given = case.arrays(kernel, soft)
    handles = [design.place(array) for array in given]
    W = case.W[:, :0] if kernel.name == rows.hand_over.name else case.W
    fold = design.fold(W, kernel, handles)
    R, new_rows, sums = kernel(case.X @ W, *given)
    product = np.zeros((design.n_features, 0)) if R is None else case.X.T @ R
    tolerance, rounded = case.tolerance, case.rows_rounding
    if "state" in kernel.inputs and design.gather(design.zeros(1)).dtype == np.float32:
        tolerance = max(tolerance, 1e-5)  # the state that is given may be rounded
    require_close(fold.product, product, f"{name}: product", tolerance)
    # In single precision throughout, Newton needs fewer steps.
    told = [i for i, what in enumerate(kernel.sums) if what != "newton_steps" or not rounded]
    require_close(fold.sums.values[told], sums[told], f"{name}: sums", 10 * tolerance)
    require(fold.sums.names == kernel.sums, f"{name}: sums must be {kernel.sums}")
    require(
        (fold.rows is None) == (new_rows is None), f"{name} must return new rows if its kernel does"
    )
    if fold.rows is not None:
        loose = tolerance if design.gather(fold.rows).dtype == np.float64 else 1e-5
        require_close(
            design.gather(fold.rows), new_rows, f"{name}: new rows", max(loose, tolerance)
        )
    require(design.reads == 1, f"{name} must read X once, got {design.reads}")
    again = design.fold(W, kernel, handles)
    require((again.product == fold.product).all(), f"{name} must give the same bits twice")
    for handle, array in zip(handles, given, strict=True):
        after = design.gather(handle)
        require_close(after, array, f"{name}: its inputs afterwards", rounded)


def _check_shared_reads(case: _Case) -> None:
    design = case.make()
    labels, weights = design.place(case.labels), design.place(case.weights)
    other = design.place(case.weights[::-1].copy())
    requests = [
        Request(case.W, rows.gradient, (labels, weights)),
        Request(2 * case.W, rows.gradient, (labels, other)),
        Request(case.W, rows.evaluate, (labels, weights)),
    ]
    folds = design.fold_many(requests)
    require(design.reads == 2, f"requests of two kinds must take two reads, got {design.reads}")
    for request, fold in zip(requests, folds, strict=True):
        alone = design.fold(request.W, request.kernel, request.rows)
        require_close(fold.product, alone.product, "a fold that shares a read", case.tolerance)
        require_close(fold.sums.values, alone.sums.values, "its sums", case.tolerance)


def _check_matrices(case: _Case) -> None:
    design, X, w = case.make(), case.X, case.weights
    weights, tolerance = design.place(w), case.tolerance
    gram = X.T @ (X * w[:, None])
    require_close(design.gram(weights), gram, "gram", tolerance)
    single = design.gram(weights, np.float32)
    require(single.dtype == np.float32, "gram(weights, float32) must be float32")
    require_close(single, gram, "gram in float32", 1e-5)
    require_close(design.column_squares(weights), np.diag(gram), "column_squares", tolerance)
    R = design.triangle(weights)
    require_close(R.T @ R, gram, "the square of the triangle", tolerance)
    require_close(R, np.triu(R), "the triangle's lower half", 0.0)
    require(0 < design.reads <= 4, f"four matrices take four reads at most, got {design.reads}")
    if not case.make().rows_stay:
        require_close(case.make().as_matrix(), X, "as_matrix", tolerance)
    _check_share(case)
    require_close(
        design.transpose_product(case.state), X.T @ case.state, "transpose_product", tolerance
    )
    features = X[:, : design.shape[1]]
    if design.can_form_row_gram:
        products = design.row_products(lambda V: 2.0 * V)
        require_close(products, 2.0 * features @ features.T, "row_products", tolerance)
        scale = np.linspace(1, 2, D)
        require_close(
            design.row_gram(scale),
            (features * scale) @ features.T,
            "row_gram",
            max(tolerance, 1e-5),
        )
    else:
        with require_error(NotImplementedError, "row_products without can_form_row_gram"):
            design.row_products(lambda V: V)


def _check_share(case: _Case) -> None:
    """Reads of rows without weight are not counted, but where whole blocks must be read."""
    design = case.make()
    few = design.place(np.where(np.arange(N) % 10 == 4, 0.5, 0.0))
    for name, matrix in (("gram", design.gram), ("triangle", design.triangle)):
        before, share = design.reads, 6 / N
        matrix(few)
        found, most = design.reads - before, share if design.is_in_memory else 1.0
        require(
            share - 1e-12 <= found <= most + 1e-12,
            f"{name} with weight on 6 of {N} rows must count {share:.3f} reads, or up to "
            f"{most:.3f}, got {found:.3f}",
        )


def _check_samples(case: _Case) -> None:
    design = case.make()
    weights, labels = design.place(case.weights), design.place(case.labels)
    places = np.array([0, 7, 8, N - 1])
    taken = design.take(places, labels)
    require_close(_matrix(taken.design), case.X[places], "rows that were taken", 0.0)
    require_close(taken.design.gather(taken.rows[0]), case.labels[places], "their labels", 0.0)
    require(0 < design.reads < 1, f"take must count part of a read, got {design.reads}")
    sample = design.sample(12, 3, weights, weights, labels)
    require(sample.design.n_rows == 12, "sample must take as many rows as asked for")
    require(sample.design.gather(sample.rows[0]).all(), "sample must leave weights of zero out")
    again = design.sample(12, 3, weights, weights, labels)
    require_close(_matrix(sample.design), _matrix(again.design), "the same sample twice", 0.0)
    count = np.count_nonzero(case.weights)
    few = design.sample(10 * N, 0, weights)
    require(few.design.n_rows == count, f"no more than {count} rows have weight")
    batches = list(design.batches(4, np.random.default_rng(0), weights, weights, labels))
    require(len(batches) == 4, "batches must be as many as asked for")
    seen = np.concatenate([batch.design.gather(batch.rows[0]) for batch in batches])
    require_close(
        np.sort(seen),
        np.sort(case.weights[case.weights > 0]),
        "the rows of all batches",
        case.rows_rounding,
    )


def _check_predictions(case: _Case) -> None:
    design = case.make()
    found = design.gather(design.place(design.map_scores(case.W, np.tanh)))
    loose = case.tolerance if found.dtype == np.float64 else 1e-5
    require_close(found, np.tanh(case.X @ case.W), "map_scores", max(loose, case.tolerance))
    require(design.reads == 1, f"map_scores must read X once, got {design.reads}")
    places = np.array([1, 2, N // 2, N - 1])
    require_close(_matrix(design.picked(places)), case.X[places], "rows that were picked", 0.0)


def _check_columns(case: _Case) -> None:
    """Some columns on the same rows, with handles of the whole design."""
    design, chosen = case.make(), np.array([0, 2, D - 1])
    if not design.can_take_columns:
        with require_error(NotImplementedError, "columns without can_take_columns"):
            design.columns(chosen)
        return
    labels, weights = design.place(case.labels), design.place(case.weights)
    part = design.columns(chosen)
    kept = np.append(chosen, D) if design.intercept else chosen
    require_close(_matrix(part), case.X[:, kept], "columns that were taken", 0.0)
    W = np.zeros_like(case.W)
    W[kept] = case.W[kept]
    whole, some = (
        where.fold(V, rows.gradient, (labels, weights))
        for where, V in ((design, W), (part, W[kept]))
    )
    require_close(some.product, whole.product[kept], "a fold of some columns", case.tolerance)


def _matrix(design: Design) -> Array:
    """X̃ as a matrix, through folds alone."""
    return np.asarray(
        design.gather(design.fold(np.eye(design.n_features), rows.predict).new_rows),
        dtype=np.float64,
    )


def _check_views(case: _Case) -> None:
    design = case.make()
    view = design.view()
    design.fold(case.W, rows.predict)
    view.fold(case.W, rows.predict)
    require(
        (view.reads, design.reads) == (1, 2),
        "a view must count its own reads, and its design must count all",
    )
    handed: list[Request] = []

    def submit(request: Request) -> Any:
        handed.append(request)
        return design.fold_many([request])[0]

    shared = design.view(submit)
    fold = shared.view().fold(case.W, rows.predict)
    require(len(handed) == 1, "a view with submit must hand its folds over")
    require(design.reads == 3, "whoever runs a fold must count its read, once")
    alone = design.gather(design.fold(case.W, rows.predict).new_rows)
    require_close(design.gather(fold.new_rows), alone, "a fold handed over", 0.0)


def _check_errors(case: _Case) -> None:
    design, w = case.design, case.weights
    with require_error(ValueError, "a W with too few rows"):
        design.fold(case.W[:2], rows.predict)
    with require_error(ValueError, "place of too few rows"):
        design.place(w[:-1])
    with require_error(TypeError, "a fold of plain arrays instead of handles"):
        design.fold(case.W, rows.weigh, (w,))  # type: ignore[arg-type]
    with require_error(ValueError, "a fold with too few rows of input"):
        design.fold(case.W, rows.gradient, (design.place(case.labels),))


def _check_fingerprint(case: _Case, factory: Callable[..., Design], intercept: bool) -> None:
    def of(design: Design, weights: Array) -> str:
        digest = hashlib.sha256()
        design.fingerprint(digest, design.place(weights))
        return digest.hexdigest()

    X = case.X[:, :D].copy()
    same, again = of(case.make(), case.weights), of(case.make(), case.weights)
    require(same == again, "the same rows must have the same fingerprint")
    X[N // 2, 1] += 0.25
    other = factory(X, intercept=intercept)
    require(of(other, case.weights) != same, "other rows must have another fingerprint")
    require(of(case.make(), 2 * case.weights) != same, "other weights must change the fingerprint")


def _check_a_fit(factory: Callable[..., Design]) -> None:
    case = _case(factory, True)
    design = case.design
    expected = run(Problem.of(case.X[:, :D], case.labels, 0.1, n_classes=K), LBFGS(), tol=1e-7)
    tol = max(1e-7, 40 * design.rounding)
    problem = Problem.of(design, case.labels, 0.1, n_classes=K)
    found = run(problem, LBFGS(preconditioner="gram"), tol=tol)
    require(found.status == "converged", f"a fit must converge, got {found.status}")
    require_close(found.W, expected.W, "the solution of a fit", 100 * tol)
