"""The estimators on Dask data: same results, nothing gathered, errors that name the partition."""

import runpy
import sys
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed, is_dask_collection
from sklearn.model_selection import KFold, StratifiedKFold

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV, softmax_path
from admm_softmax.design.dask import DaskDesign
from admm_softmax.design.dask.cluster import Cluster
from admm_softmax.estimators.distributed_labels import stratified
from tests.problems import make

N, D, K = 151, 5, 3
LENGTHS = (40, 0, 61, 50)
X, CODES = make(N, D, K)
NAMES = np.array(["ant", "bee", "cicada"])[CODES]
WEIGHTS = np.random.default_rng(5).integers(0, 4, N).astype(float)


def dask_array(array):
    return da.from_array(array, chunks=(LENGTHS, *array.shape[1:]))


def pieces(array, wrap=np.asarray):
    return [delayed(wrap)(part) for part in np.split(array, np.cumsum(LENGTHS)[:-1])]


def frame(columns=tuple("abcde")):
    return dd.from_pandas(pd.DataFrame(X, columns=list(columns)), npartitions=3)


def model(**settings):
    return SoftmaxRegression(**{"alpha": 1e-2, "tol": 1e-9, "solver": "lbfgs", **settings})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, NAMES)


def kinds(client):
    series = dd.from_pandas(pd.Series(NAMES), npartitions=3)
    unknown = dask_array(X)[dask_array(X)[:, 0] > -1e9]
    return {
        "arrays": (dask_array(X), dask_array(NAMES)),
        "column chunks": (dask_array(X).rechunk({1: 2}), dask_array(NAMES)),
        "labels cut otherwise": (dask_array(X), da.from_array(NAMES, chunks=100)),
        "unknown lengths": (unknown, dask_array(NAMES)),
        "labels here": (unknown, NAMES),
        "frames": (frame(), series),
        "categories": (frame(), series.astype("category")),
        "frame of labels": (frame(), series.to_frame()),
        "delayed": (pieces(X), pieces(NAMES)),
        "sparse": (pieces(X, sp.csr_array), pieces(NAMES)),
        "futures": (
            client.scatter([X[:90], X[90:]], hash=False),
            client.scatter([NAMES[:90], NAMES[90:]], hash=False),
        ),
    }


@pytest.mark.parametrize("kind", [
    "arrays", "column chunks", "labels cut otherwise", "unknown lengths", "labels here", "frames",
    "categories", "frame of labels", "delayed", "sparse", "futures",
])  # fmt: skip
def test_every_kind_of_data_gives_the_same_model(client, fitted, kind):
    found = model().fit(*kinds(client)[kind])
    assert found.classes_.tolist() == fitted.classes_.tolist()
    np.testing.assert_allclose(
        found.coef_, fitted.coef_, rtol=0, atol=1e-10 * np.abs(fitted.coef_).max()
    )
    assert found.n_features_in_ == D


def same(there, here, atol=1e-8):
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", {"ant": 2.0, "bee": 1.0, "cicada": 0.5}]
)
def test_weights_and_class_weights(client, class_weight):
    settings = {"class_weight": class_weight, "C": 0.5, "alpha": None}
    here = model(**settings).fit(X, NAMES, WEIGHTS)
    same(model(**settings).fit(dask_array(X), dask_array(NAMES), dask_array(WEIGHTS)), here)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_soft_labels(client, class_weight):
    soft = np.random.default_rng(3).dirichlet(np.ones(K), N)
    here = model(class_weight=class_weight).fit(X, soft)
    there = model(class_weight=class_weight).fit(dask_array(X), dask_array(soft))
    same(there, here)
    assert float(there.score(dask_array(X), dask_array(soft))) == pytest.approx(here.score(X, soft))


def test_float32_stays_float32_and_two_classes_work(client):
    y = CODES > 0
    here = model(tol=1e-4).fit(X.astype(np.float32), y)
    there = model(tol=1e-4).fit(dask_array(X.astype(np.float32)), dask_array(y))
    assert there.coef_.dtype == np.float32
    same(there, here, 1e-3)
    lazy = there.decision_function(dask_array(X))
    assert lazy.shape == (N,)
    np.testing.assert_allclose(lazy.compute(), there.decision_function(X))


def test_validation_rows(client):
    here = model(tol=1e-4).fit(
        X, NAMES, X_val=X[:60], y_val=NAMES[:60], sample_weight_val=WEIGHTS[:60]
    )
    X_val, y_val, w_val = (da.from_array(a[:60], chunks=25) for a in (X, NAMES, WEIGHTS))
    there = model(tol=1e-4).fit(
        dask_array(X),
        dask_array(NAMES),
        X_val=X_val.rechunk({1: -1}),
        y_val=y_val,
        sample_weight_val=w_val,
    )
    np.testing.assert_allclose(there.history_["val_loss"], here.history_["val_loss"], rtol=1e-9)


def test_predictions_and_scores_are_lazy(client, fitted):
    dX, dy = dask_array(X), dask_array(NAMES)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        expected, lazy = getattr(fitted, method)(X), getattr(fitted, method)(dX)
        assert is_dask_collection(lazy)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        assert lazy.chunks[0] == LENGTHS
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), expected)
        else:
            np.testing.assert_array_equal(lazy.compute(), expected)
    score = fitted.score(dX, dy, dask_array(WEIGHTS))
    assert is_dask_collection(score)
    assert float(score) == pytest.approx(fitted.score(X, NAMES, WEIGHTS))
    assert float(fitted.score(dX, NAMES)) == pytest.approx(fitted.score(X, NAMES))
    parts = fitted.predict(pieces(X))
    assert [len(part.compute()) for part in parts] == list(LENGTHS)


def test_frames_keep_their_names(client):
    found = model(tol=1e-3).fit(frame(), dd.from_pandas(pd.Series(CODES), npartitions=3))
    assert found.feature_names_in_.tolist() == list("abcde")
    assert is_dask_collection(found.predict_proba(frame()))
    np.testing.assert_allclose(
        found.predict_proba(frame()).compute(),
        found.predict_proba(pd.DataFrame(X, columns=list("abcde"))),
    )
    with pytest.raises(ValueError, match=r"X has the columns .* fitted to"):
        found.predict(frame("vwxyz"))


def test_cross_validation_has_the_folds_and_scores_of_one_machine(client):
    settings = {"alphas": [0.1, 0.01], "cv": 3, "tol": 1e-6, "class_weight": "balanced"}
    here = SoftmaxRegressionCV(**settings).fit(X, NAMES)
    there = SoftmaxRegressionCV(**settings).fit(dask_array(X), dask_array(NAMES))
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-8)
    assert there.alpha_ == here.alpha_
    score = there.score(dask_array(X), dask_array(NAMES))
    assert is_dask_collection(score)
    assert float(score) == pytest.approx(here.score(X, NAMES), rel=1e-4)
    with pytest.raises(ValueError, match="scoring='f1_macro' needs the rows on this machine"):
        SoftmaxRegressionCV(alphas=[0.1], cv=2, scoring="f1_macro").fit(
            dask_array(X), dask_array(NAMES)
        )
    with pytest.raises(ValueError, match="cv must be a number, a splitter that needs no labels"):
        SoftmaxRegressionCV(alphas=[0.1], cv=StratifiedKFold(2)).fit(
            dask_array(X), dask_array(NAMES)
        )


def test_other_splitters(client):
    settings = {
        "alphas": [0.1],
        "cv": KFold(2, shuffle=True, random_state=0),
        "refit": False,
        "scoring": "accuracy",
    }
    here = SoftmaxRegressionCV(**settings).fit(X, NAMES)
    there = SoftmaxRegressionCV(**settings).fit(dask_array(X), dask_array(NAMES))
    np.testing.assert_allclose(there.scores_, here.scores_)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_stratified_folds_are_those_of_scikit_learn(client, n_folds):
    codes = np.random.default_rng(n_folds).integers(0, 4, N)
    design = DaskDesign(dask_array(X))
    found = stratified(design, design.place(codes), 4, n_folds)
    expected = StratifiedKFold(n_folds).split(X, codes)
    for (fit, hold_out), (rows_to_fit, held_out) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(design.gather(fit)), rows_to_fit)
        np.testing.assert_array_equal(np.flatnonzero(design.gather(hold_out)), held_out)


def test_paths(client):
    here = softmax_path(X, NAMES, 3)
    there = softmax_path(dask_array(X), dask_array(NAMES), 3)
    np.testing.assert_allclose(there.alphas, here.alphas)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-6)
    assert there.reads == here.reads


def test_no_rows_come_to_the_client(client, monkeypatch):
    n = 4000
    large = da.random.default_rng(0).standard_normal((n, 3), chunks=(1000, 3))
    y = (large[:, 0] > 0).astype(int)
    sizes = []
    original = Cluster.gather

    def gather(self, futures):
        results = original(self, futures)
        sizes.append(max(_size(result) for result in np.atleast_1d(np.array(results, object))))
        return results

    monkeypatch.setattr(Cluster, "gather", gather)
    monkeypatch.setattr(DaskDesign, "gather", lambda self, rows: pytest.fail("rows were gathered"))
    model(tol=1e-4).fit(large, y)
    model(tol=1e-2, solver="admm").fit(large, y, da.ones(n, chunks=1000))
    assert sizes
    assert max(sizes) < 100


def _size(result):
    if isinstance(result, tuple | list):
        return max(map(_size, result), default=0)
    return np.size(result)


def wrong(change):
    parts = np.split(X.copy(), [50, 100])
    parts[1] = change(parts[1])
    return [delayed(part) for part in parts]


def poisoned(block):
    block[3, 2] = np.nan
    return block


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            lambda b: b.astype(np.float32),
            TypeError,
            "partition 1 of X has the type float32, partition 0 has float64",
        ),
        (lambda b: b[:, :4], ValueError, "partition 1 of X has 4 columns, partition 0 has 5"),
        (lambda b: b[:, 0], ValueError, "partition 1 of X: X must be two-dimensional, got 1"),
        (lambda b: b.astype(str), TypeError, "partition 1 of X: X must hold real numbers"),
        (poisoned, ValueError, "partition 1 of X: X must be finite, got NaN"),
    ],
    ids=["type", "width", "dimensions", "text", "nan"],
)
def test_errors_in_x_name_the_partition(client, change, error, words):
    with pytest.raises(error, match=words):
        model().fit(wrong(change), NAMES)


def text(values):
    return delayed(np.array(values, dtype=object))


def test_errors_in_labels_and_weights_name_the_partition(client):
    dX = dask_array(X)
    pairs = pieces(NAMES)
    short = [*pairs[:3], delayed(NAMES[:40])]
    with pytest.raises(ValueError, match="partition 3 of y has 40 rows for 50 rows of X"):
        model().fit(dX, short)
    with pytest.raises(ValueError, match="y has 3 partitions for 4 of X"):
        model().fit(dX, pairs[:3])
    with pytest.raises(
        ValueError, match="y has 100 rows for 151 rows of X: its partition 2 has 20 for 61"
    ):
        model().fit(
            dX, da.from_array(NAMES[:100], chunks=((40, 40, 20),)).rechunk(((40, 0, 20, 40),))
        )
    gap = [*pairs[:2], text(["ant"] * 60 + [None]), pairs[3]]
    with pytest.raises(
        ValueError, match=r"partition 2: Input y contains NaN or infinity, in row 60"
    ):
        model().fit(dX, gap)
    with pytest.raises(
        ValueError, match=r"partition 2: sample_weight must be ≥ 0, got -1.0 at position 1"
    ):
        model().fit(dX, NAMES, dask_array(np.where(np.arange(N) == 41, -1.0, 1.0)))
    with pytest.raises(ValueError, match="sample_weight must have a positive sum, got 0"):
        model().fit(dX, NAMES, da.zeros(N, chunks=(LENGTHS,)))
    with pytest.raises(
        ValueError, match="y must hold at least two classes, got one class only: 'ant'"
    ):
        model().fit(dX, np.full(N, "ant"))
    with pytest.raises(
        ValueError, match="partition 3: y_val holds labels never seen in y: \\['wasp'\\]"
    ):
        model().fit(dX, NAMES, X_val=dX, y_val=np.where(np.arange(N) == 150, "wasp", NAMES))
    with pytest.raises(ValueError, match="every partition is empty"):
        model().fit([delayed(X[:0])], NAMES)
    with pytest.raises(
        TypeError, match="partition 1 of X must be a delayed object or a future, got ndarray"
    ):
        model().fit([delayed(X[:90]), X[90:]], NAMES)


def test_widths_are_checked_before_a_prediction(client, fitted):
    with pytest.raises(ValueError, match="X has 4 features, but SoftmaxRegression is expecting 5"):
        fitted.predict(dask_array(X)[:, :4])


def test_the_example_runs_against_a_scheduler(client, monkeypatch, capsys):
    path = Path(__file__).parents[2] / "examples" / "dask_cluster.py"
    sizes = ["--rows", "3000", "--features", "6", "--classes", "3", "--partitions", "3"]
    monkeypatch.setattr(sys, "argv", [str(path), client.scheduler.address, *sizes])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "1 workers, 2 threads" in printed
    assert "converged after" in printed
    assert "accuracy on 300 rows held out" in printed
