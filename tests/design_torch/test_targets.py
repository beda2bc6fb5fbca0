"""Many targets, and probes, of tensors on a device are those of arrays."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from admm_softmax import (  # noqa: E402
    MultiOutputSoftmaxRegression,
    MultiOutputSoftmaxRegressionCV,
    probe,
)
from admm_softmax.design.torch import TorchDesign  # noqa: E402
from admm_softmax.probes.metrics import METRICS  # noqa: E402
from tests.problems import make  # noqa: E402

pytestmark = pytest.mark.torch

N, D, K = 400, 6, 4


@pytest.fixture(params=[True, False], ids=["double", "single"])
def rows(request):
    """An array, labels of three targets, and the rows as a design."""
    X, y = make(N, D, K)
    X = X.astype(np.float64 if request.param else np.float32)
    Y = np.stack([y, (X[:, 0] > 0).astype(int), (y + (X[:, 1] > 0)) % 3], axis=1)
    return X, Y, TorchDesign(torch.tensor(X), double=request.param)


def agree(found, expected, design):
    atol = 1e-6 if design.double else 2e-3
    for t, coef in enumerate(expected.coef_):
        np.testing.assert_array_equal(found.classes_[t], expected.classes_[t])
        np.testing.assert_allclose(found.coef_[t], coef, atol=atol)
        np.testing.assert_allclose(found.intercept_[t], expected.intercept_[t], atol=atol)


def tolerance(design):
    return {"tol": 1e-8 if design.double else 1e-5}


@pytest.mark.parametrize("kind", ["tensor", "array", "list of tensors", "mixed", "text"])
def test_labels_of_every_kind(rows, kind):
    X, Y, design = rows
    columns = list(Y.T)
    if kind == "text":
        columns[0] = np.array(["a", "b", "c", "d"])[columns[0]]
    there = [torch.tensor(y) if y.dtype.kind == "i" else y for y in columns]
    given = {
        "tensor": torch.tensor(Y),
        "array": Y,
        "list of tensors": there,
        "mixed": [there[0], columns[1], there[2]],
        "text": there,
    }[kind]
    expected = MultiOutputSoftmaxRegression(C=0.5, **tolerance(design)).fit(X, columns)
    found = MultiOutputSoftmaxRegression(C=0.5, **tolerance(design)).fit(design, given)
    agree(found, expected, design)
    answer = found.predict(design)
    assert isinstance(answer, np.ndarray if kind == "text" else torch.Tensor)
    np.testing.assert_array_equal(np.asarray(answer), expected.predict(X))
    pairs = [
        (found.predict_proba(design), expected.predict_proba(X)),
        (found.decision_function(design), expected.decision_function(X)),
    ]
    for ours, theirs in pairs:
        for own, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(own.numpy(), other, atol=1e-5 if design.double else 5e-3)
    other = [(column + 1) % 2 if t == 1 else column for t, column in enumerate(there)]
    moved = [(column + 1) % 2 if t == 1 else column for t, column in enumerate(columns)]
    for ours, theirs in ((given, columns), (other, moved)):
        assert found.score(design, ours) == pytest.approx(expected.score(X, theirs), rel=1e-6)
    unseen = [*there[:2], there[2] + 7]
    assert found.score(design, unseen) == 0.0
    assert found.score(design, [*columns[:2], columns[2] + 7]) == 0.0


@pytest.mark.parametrize("missing", [np.nan, -1])
def test_missing_labels_weights_and_classes(rows, missing):
    X, Y, design = rows
    gone = np.random.default_rng(0).random(Y.shape) < 0.3
    given = np.where(gone, missing, Y)
    w = np.linspace(0.0, 2.0, N)
    settings = {"C": 1.0, "class_weight": "balanced", **tolerance(design)}
    marked = None if missing != missing else missing
    clf = MultiOutputSoftmaxRegression(missing=marked, **settings)
    expected = clf.fit(X, given, w)
    found = MultiOutputSoftmaxRegression(missing=marked, **settings)
    found.fit(design, torch.tensor(given), torch.tensor(w.astype(X.dtype)))
    agree(found, expected, design)
    scores = found.score(design, torch.tensor(given), w), expected.score(X, given, w)
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_of_the_rows(rows, few, weighted):
    X, Y, design = rows
    rng = np.random.default_rng(1)
    samples = [rng.integers(0, N, 60), np.arange(N) % 7 == 3]
    samples += [] if few else [rng.integers(0, N, N)]
    w = np.linspace(0.5, 2.0, N) if weighted else None
    settings = {"alpha": 1e-2, "class_weight": "balanced", **tolerance(design)}
    expected = MultiOutputSoftmaxRegression(**settings).fit_subsets(X, Y[:, 0], samples, w)
    found = MultiOutputSoftmaxRegression(**settings)
    found.fit_subsets(design, torch.tensor(Y[:, 0]), [torch.tensor(s) for s in samples], w)
    agree(found, expected, design)


def test_an_alpha_for_each_target(rows):
    X, Y, design = rows
    settings = {"alphas": [1.0, 1e-1, 1e-3], "cv": 3, **tolerance(design)}
    expected = MultiOutputSoftmaxRegressionCV(**settings).fit(X, Y)
    found = MultiOutputSoftmaxRegressionCV(**settings).fit(design, torch.tensor(Y))
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-3)
    np.testing.assert_array_equal(found.alpha_, expected.alpha_)


def test_what_is_wrong_is_named(rows):
    _, Y, design = rows
    clf = MultiOutputSoftmaxRegression()
    with pytest.raises(ValueError, match="Y must have a column per target, got 1 dim"):
        clf.fit(design, torch.tensor(Y[:, 0]))
    with pytest.raises(ValueError, match="target 1 must have labels of at least two classes"):
        clf.fit(design, torch.tensor(Y * [1, 0, 1]))
    with pytest.raises(ValueError, match=r"Y\[0\] must have the length 400"):
        clf.fit(design, torch.tensor(Y[:-1]))
    with pytest.raises(ValueError, match="each subset must hold at least two classes"):
        clf.fit_subsets(design, torch.tensor(Y[:, 1]), [np.flatnonzero(Y[:, 1])])
    with pytest.raises(ValueError, match="y must have 3 targets, got 2"):
        clf.fit(design, torch.tensor(Y)).score(design, torch.tensor(Y[:, :2]))


@pytest.mark.parametrize("normalize", ["none", "l2", "standardize"])
def test_a_probe_is_that_of_arrays(rows, normalize):
    X, Y, design = rows
    y = Y[:, 0]
    cuts = slice(250), slice(250, 320), slice(320, None)
    here = [(X[part], y[part]) for part in cuts]
    double = {"double": design.double}
    there = [(TorchDesign(torch.tensor(x), **double), torch.tensor(c)) for x, c in here]
    settings = {
        "Cs": [1e-2, 1.0, 100.0],
        "normalize": normalize,
        "metric": "log_loss",
        "report": list(METRICS),
        "shots": (2, 4),
        "repeats": 2,
        "samples": 20,
        "tol": 1e-6 if design.double else 1e-4,
    }
    expected, found = probe(*here, **settings), probe(*there, **settings)
    atol = 1e-5 if design.double else 5e-3
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=atol)
    assert found.C == expected.C
    for name, interval in expected.test.items():
        np.testing.assert_allclose(found.test[name], interval, atol=0.02, err_msg=name)
    for ours, theirs in zip(found.shots, expected.shots, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=10 * atol)
    text = np.array(["a", "b", "c", "d"])
    named = [(x, text[c]) for (x, _), (_, c) in zip(there, here, strict=True)]
    again = probe(*named, **settings)
    np.testing.assert_allclose(again.val_scores, found.val_scores, rtol=1e-6)
    with pytest.raises(ValueError, match="val holds labels never seen"):
        probe(there[0], (there[1][0], there[1][1] + 9), Cs=[1.0])


def test_a_probe_of_an_indicator_matrix(rows):
    X, Y, design = rows
    marks = (np.stack([Y[:, 0] == 1, Y[:, 1] == 1], axis=1)).astype(int)
    settings = {"Cs": [1e-2, 1.0], "samples": 20, "tol": 1e-6}
    expected = probe((X, marks), test=(X, marks), **settings)
    there = design, torch.tensor(marks)
    found = probe(there, test=there, **settings)
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=0.01)
    for name, interval in expected.test.items():
        np.testing.assert_allclose(found.test[name], interval, atol=0.01, err_msg=name)


def test_rows_through_a_function_are_those_that_went_through_it(rows):
    X, _, design = rows
    made = design.transformed(lambda block: block * block + 1.0)
    expected = TorchDesign(torch.tensor(X * X + 1), double=design.double)
    w = np.linspace(0.0, 1.0, N)
    places = np.array([3, 5, 200])
    for first, second in (
        (made, expected),
        (made.take(places).design, expected.take(places).design),
        (made.columns([1, 4]), expected.columns([1, 4])),
        (made.with_rows(made), expected.with_rows(expected)),
    ):
        own = np.resize(w, first.n_rows)
        np.testing.assert_allclose(
            first.gram(first.place(own)), second.gram(second.place(own)), rtol=1e-5
        )
    digests = []
    for each in (design, made):
        bits = []
        each.fingerprint(
            type("Digest", (), {"update": lambda self, b, bits=bits: bits.append(b)})()
        )
        digests.append(bits)
    assert digests[0] != digests[1]
