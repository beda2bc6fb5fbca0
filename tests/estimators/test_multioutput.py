"""Many targets on one X: every fit is that of its target alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multioutput import MultiOutputClassifier

from admm_softmax import (
    MultiOutputSoftmaxRegression,
    MultiOutputSoftmaxRegressionCV,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    as_design,
)
from admm_softmax.design import Design
from admm_softmax.targets import minimise

N, D = 300, 6


def rows(seed=0, n=N, d=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    scores = X @ rng.standard_normal((d, 4)) + 2 * rng.logistic(size=(n, 4))
    indicator = (scores > 0).astype(int)
    names = np.array(["a", "b", "c"])[np.digitize(scores[:, 0], [-2, 2])]
    return X, indicator, [indicator[:, 0], names, np.digitize(scores[:, 1], [-3, 0, 3]) * 10]


def single(X, y, sample_weight=None, **settings):
    return SoftmaxRegression(tol=1e-7, **settings).fit(X, y, sample_weight)


def many(**settings):
    return MultiOutputSoftmaxRegression(tol=1e-7, **settings)


def agree(found, t, expected, atol=2e-5):
    np.testing.assert_array_equal(found.classes_[t], expected.classes_)
    np.testing.assert_allclose(found.coef_[t], expected.coef_, atol=atol)
    np.testing.assert_allclose(found.intercept_[t], expected.intercept_, atol=atol)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "settings", [{"alpha": 1e-2}, {"C": 0.3}, {"alpha": 0.1, "fit_intercept": False}]
)
def test_an_indicator_matrix(settings, compiled, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: compiled)
    X, Y, _ = rows()
    found = many(**settings).fit(X, Y)
    for t in range(4):
        agree(found, t, single(X, Y[:, t], **settings))
    assert all(status == "converged" for status in found.status_)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_list_with_different_numbers_of_classes(compiled, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: compiled)
    X, _, ys = rows()
    found = many(alpha=1e-2).fit(X, ys)
    for t, y in enumerate(ys):
        agree(found, t, single(X, y, alpha=1e-2))
    assert [coef.shape for coef in found.coef_] == [(1, D), (3, D), (4, D)]


def test_answers_are_those_of_MultiOutputClassifier():
    X, Y, _ = rows()
    ours, theirs = (
        many(C=1.0).fit(X, Y),
        MultiOutputClassifier(SoftmaxRegression(tol=1e-7)).fit(X, Y),
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.predict(X).dtype == theirs.predict(X).dtype
    for own, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)
    for scores, other in zip(ours.decision_function(X), theirs.estimators_, strict=True):
        np.testing.assert_allclose(scores, other.decision_function(X), atol=1e-4)
    assert ours.score(X, Y) == theirs.score(X, Y)


def test_the_score_of_text_beside_numbers():
    """A matrix of predictions has one type, here text; labels are compared in their own."""
    X, _, ys = rows()
    found = many(alpha=1e-2).fit(X, ys)
    fits = [single(X, y, alpha=1e-2) for y in ys]
    right = np.all([clf.predict(X) == y for clf, y in zip(fits, ys, strict=True)], axis=0)
    assert 0 < found.score(X, ys) == right.mean()


@pytest.mark.parametrize("missing", ["nan", "none", "minus one"])
def test_missing_labels(missing):
    X, Y, _ = rows()
    gone = np.random.default_rng(5).random(Y.shape) < 0.3
    if missing == "nan":
        given = np.where(gone, np.nan, Y)
    elif missing == "none":
        given = np.where(gone, None, Y.astype(object))
    else:
        given = np.where(gone, -1, Y)
    found = many(C=1.0, missing=-1 if missing == "minus one" else None).fit(X, given)
    for t in range(4):
        there = ~gone[:, t]
        expected = single(X[there], given[there, t].astype(int), C=1.0)
        np.testing.assert_allclose(found.coef_[t], expected.coef_, atol=2e-5)
    everywhere = found.score(X, np.where(gone, given, found.predict(X)))
    assert everywhere == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_samples_are_those_of_single_fits(weighted):
    """Class weights are those of the sample, not of all rows."""
    X, _, ys = rows()
    rng = np.random.default_rng(3)
    samples = [np.flatnonzero((ys[1] != "a") | (rng.random(N) < 0.3)), rng.integers(0, N, N)]
    w = rng.random(N) if weighted else None
    found = many(C=1.0, class_weight="balanced").fit_subsets(X, ys[1], samples, w)
    for t, chosen in enumerate(samples):
        own = None if w is None else w[chosen]
        agree(found, t, single(X[chosen], ys[1][chosen], own, C=1.0, class_weight="balanced"))


def test_sample_and_class_weights():
    X, Y, ys = rows()
    weights = np.random.default_rng(1).integers(0, 4, N)
    found = many(C=1.0, class_weight="balanced").fit(X, ys, weights)
    for t, y in enumerate(ys):
        agree(found, t, single(X, y, weights, C=1.0, class_weight="balanced"))
    repeated = np.repeat(np.arange(N), weights)
    again = many(C=1.0).fit(X[repeated], Y[repeated])
    for t, coef in enumerate(many(C=1.0).fit(X, Y, weights).coef_):
        np.testing.assert_allclose(coef, again.coef_[t], atol=2e-5)


@pytest.mark.parametrize("kind", ["sparse", "float32", "float16", "frame", "design", "file"])
def test_other_kinds_of_rows(kind, tmp_path):
    X, Y, _ = rows()
    tol = 1e-6 if kind in ("float32", "float16") else 1e-7
    if kind == "sparse":
        given = sp.csr_array(X)
    elif kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(X).add_prefix("x")
    elif kind == "design":
        given = as_design(X)
    elif kind == "file":
        given = tmp_path / "x.npy"
        np.save(given, X)
    else:
        given = X.astype(kind)
        X = given.astype(np.float64)
    found = MultiOutputSoftmaxRegression(alpha=1e-2, tol=tol).fit(given, Y)
    for t in range(4):
        agree(found, t, single(X, Y[:, t], alpha=1e-2), atol=1e-4)
    np.testing.assert_array_equal(
        found.predict(given)[:, 0], single(X, Y[:, 0], alpha=1e-2).predict(X)
    )


def test_targets_take_turns_where_memory_or_columns_are_few(monkeypatch):
    X, Y, ys = rows()
    whole = many(alpha=1e-2).fit(X, Y)
    bounded = many(alpha=1e-2, memory_limit=2 * 4 * N).fit(X, Y)
    monkeypatch.setattr(minimise, "TARGET_COLUMNS", 3)
    few = many(alpha=1e-2).fit(X, [*Y.T, *ys])
    for t in range(4):
        np.testing.assert_allclose(bounded.coef_[t], whole.coef_[t], atol=2e-5)
        np.testing.assert_allclose(few.coef_[t], whole.coef_[t], atol=2e-5)
    assert minimise.capacity_of(as_design(X), 1, 2 * 4 * N) == 2
    assert minimise.capacity_of(as_design(X), 3, 1) == 1


def test_passes_are_shared():
    X, Y, _ = rows()
    design = as_design(X)
    found = many(alpha=1e-2).fit(design, np.tile(Y, 10))
    # The Gram matrix, and one pass per step of the slowest, and a few shortened steps.
    assert design.reads <= 2 + 2 * found.n_iter_.max()


def test_subsets_equal_single_fits():
    X, _, ys = rows()
    rng = np.random.default_rng(0)
    y = ys[1]
    mask = rng.random(N) < 0.7
    shots = np.concatenate([np.flatnonzero(y == c)[:8] for c in "ac"])  # without class b
    subsets = [rng.integers(0, N, N), mask, shots]
    found = many(C=1.0).fit_subsets(X, y, subsets)
    for t, chosen in enumerate([subsets[0], np.flatnonzero(mask), shots]):
        agree(found, t, single(X[chosen], y[chosen], C=1.0), atol=1e-4)


def test_few_rows_are_taken_out_for_their_subsets():
    X, Y, _ = rows()
    subsets = [np.arange(0, 40), np.arange(20, 60)]
    weights = np.linspace(1, 2, N)
    design = as_design(X)
    found = many(C=1.0).fit_subsets(design, Y[:, 0], subsets, weights)
    assert design.reads < 1
    for t, chosen in enumerate(subsets):
        agree(found, t, single(X[chosen], Y[chosen, 0], weights[chosen], C=1.0))


def test_permuted_labels_are_targets():
    X, Y, _ = rows()
    rng = np.random.default_rng(0)
    permuted = np.stack([rng.permutation(Y[:, 0]) for _ in range(5)], axis=1)
    found = many(alpha=1e-1).fit(X, permuted)
    agree(found, 3, single(X, permuted[:, 3], alpha=1e-1))


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_each_target_has_its_own_alpha(scoring):
    X, _, ys = rows()
    noise = np.random.default_rng(3).integers(0, 2, N)
    alphas, cv = (
        [1e-4, 10.0, 1e-2],
        [(np.arange(100, N), np.arange(100)), (np.arange(200), np.arange(200, N))],
    )
    given = [ys[1], noise]
    found = MultiOutputSoftmaxRegressionCV(alphas=alphas, cv=cv, scoring=scoring, tol=1e-7).fit(
        X, given
    )
    assert found.scores_.shape == (2, 2, 3)
    for t, y in enumerate(given):
        for f, (train, test) in enumerate(cv):
            for a, alpha in enumerate(alphas):
                clf = single(X[train], y[train], alpha=alpha)
                P = clf.predict_proba(X[test])
                places = np.searchsorted(clf.classes_, y[test])
                loss = -np.log(P[np.arange(len(test)), places]).mean()
                expected = -loss if scoring == "loss" else (P.argmax(axis=1) == places).mean()
                np.testing.assert_allclose(found.scores_[t, f, a], expected, atol=1e-4)
        best = found.scores_[t].mean(axis=0)
        assert best[alphas.index(found.alpha_[t])] == best.max()
        agree(found, t, single(X, y, alpha=found.alpha_[t]), atol=1e-4)
    assert found.alpha_[1] == 10.0 or scoring == "accuracy"


def test_folds_by_number_and_settings_are_cloned():
    X, Y, _ = rows()
    cv = MultiOutputSoftmaxRegressionCV(alphas=(1e-1,), cv=3)
    assert clone(cv).fit(X, Y).scores_.shape == (4, 3, 1)


def test_what_is_wrong_is_named():
    X, Y, _ = rows()
    with pytest.raises(ValueError, match="give alpha or C"):
        many(alpha=1.0, C=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="alpha must be ≥ 0, got -1"):
        many(alpha=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="column per target, got 1 dimensions"):
        many().fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"Y\[1\] must have one label for each of 300 rows"):
        many().fit(X, [Y[:, 0], Y[:-1, 1]])
    with pytest.raises(
        ValueError, match="target 0 must have labels of at least two classes, got 1 only"
    ):
        many().fit(X, np.ones((N, 1), int))
    with pytest.raises(ValueError, match="at least one target"):
        many().fit(X, [])
    with pytest.raises(ValueError, match="subsets must hold at least one"):
        many().fit_subsets(X, Y[:, 0], [])
    with pytest.raises(ValueError, match="each subset must hold at least two classes, got 1"):
        many().fit_subsets(X, Y[:, 0], [np.flatnonzero(Y[:, 0])])
    with pytest.raises(ValueError, match="max_iter"):
        many(max_iter=-1).fit(X, Y)
    with pytest.raises(ValueError, match="scoring must be"):
        MultiOutputSoftmaxRegressionCV(scoring="f1").fit(X, Y)
    with pytest.raises(ValueError, match="alphas must"):
        MultiOutputSoftmaxRegressionCV(alphas=[]).fit(X, Y)
    found = many(alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="must have 4 targets, got 3"):
        found.score(X, Y[:, :3])
    with pytest.raises(ValueError, match="expecting 6 features"):
        found.predict(X[:, :3])


def test_too_few_iterations_are_warned_about_once():
    X, Y, _ = rows()
    with pytest.warns(ConvergenceWarning, match="4 of 4 fits did not reach tol") as caught:
        found = many(alpha=1e-3, max_iter=1).fit(X, Y)
    assert len(caught) == 1
    assert (found.n_iter_ == 1).all()


def test_a_column_of_zeros_without_penalty_falls_back_to_diagonals():
    X, Y, _ = rows()
    X = np.column_stack([X, np.zeros(N)])
    found = MultiOutputSoftmaxRegression(alpha=0.0, tol=1e-5).fit(X, Y)
    expected = SoftmaxRegression(alpha=0.0, tol=1e-6).fit(X[:, :D], Y[:, 0])
    np.testing.assert_allclose(found.coef_[0][:, :D], expected.coef_, atol=1e-2)


def test_separable_labels_converge():
    X, _, _ = rows()
    found = many(alpha=1e-6).fit(X, np.stack([X[:, 0] > 0, X[:, 1] > 1], axis=1))
    agree(found, 0, SoftmaxRegression(alpha=1e-6, tol=1e-8).fit(X, X[:, 0] > 0), atol=2.0)
    assert all(status == "converged" for status in found.status_)


def test_labels_of_frames_booleans_and_sparse_indicators():
    pandas = pytest.importorskip("pandas")
    X, Y, _ = rows()
    expected = many(alpha=1e-2).fit(X, Y)
    for given in (pandas.DataFrame(Y), Y.astype(bool), sp.csr_array(Y), Y.astype(float)):
        found = many(alpha=1e-2).fit(X, given)
        np.testing.assert_allclose(found.coef_[2], expected.coef_[2], atol=1e-6)
    far = many(alpha=1e-2).fit(X, Y * 1_000_000)
    np.testing.assert_array_equal(far.classes_[0], [0, 1_000_000])


@pytest.mark.parametrize("estimator", [SoftmaxRegression(), SoftmaxRegressionCV(alphas=2, cv=2)])
@pytest.mark.parametrize("kind", ["codes", "indicator", "text", "list", "list of text", "missing"])
def test_estimators_of_one_target_name_the_other_class(estimator, kind):
    X, Y, ys = rows()
    given = {
        "codes": np.stack([Y[:, 0], ys[2]], axis=1),
        "indicator": Y,
        "text": np.stack([ys[1], ys[1]], axis=1),
        "list": [Y[:, 0], ys[2]],
        "list of text": [ys[1], ys[1]],
        "missing": np.where(Y == 1, np.nan, Y),
    }[kind]
    with pytest.raises(ValueError, match="MultiOutputSoftmaxRegression takes the labels of sev"):
        estimator.fit(X, given)


def test_one_hot_rows_are_soft_labels_of_one_target():
    X, _, ys = rows()
    one_hot = np.eye(4, dtype=int)[ys[2] // 10]
    found = SoftmaxRegression(alpha=1e-2, tol=1e-7).fit(X, one_hot)
    np.testing.assert_allclose(found.coef_, single(X, ys[2], alpha=1e-2).coef_, atol=2e-5)
