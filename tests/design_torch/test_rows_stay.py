"""No tensor with as many rows as X leaves its device, whatever is fitted or predicted."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from admm_softmax import (  # noqa: E402
    ADMM,
    LBFGS,
    SGD,
    MultiOutputSoftmaxRegression,
    MultiOutputSoftmaxRegressionCV,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    penalties,
    probe,
    run,
    softmax_path,
)
from admm_softmax.design.torch import TorchDesign  # noqa: E402
from admm_softmax.probes.metrics import METRICS  # noqa: E402
from admm_softmax.solvers.newton import Newton  # noqa: E402
from tests.design_torch.watching import CrossedError, watched  # noqa: E402

pytestmark = pytest.mark.torch

N, D, K = 1200, 6, 3
#: Far more than d and K, far less than n: parts of the rows count too.
MANY = 100


def rows(double):
    made = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=made, dtype=torch.float64 if double else torch.float32)
    scores = X @ torch.randn(D, K, generator=made, dtype=X.dtype)
    noise = torch.rand(N, K, generator=made, dtype=X.dtype)
    return TorchDesign(X, double=double), (scores - (-noise.log()).log()).argmax(dim=1)


SOLVERS = {
    "ADMM": ADMM(rho="auto", relaxation=1.7),
    "ADMM with residuals": ADMM(rho=0.1, adaptive_rho=True, least_squares="qr"),
    "ADMM by PCG": ADMM(rho=0.1, least_squares="pcg"),
    "LBFGS": LBFGS(20, "gram"),
    "LBFGS on a sample": LBFGS(20, "gram", subsample=90),
    "Jacobi": LBFGS(10, "jacobi"),
    "NewtonCG": NewtonCG(20, preconditioner="gram"),
    "Newton": Newton(),
    "SGD": SGD(0.1, batch_size=64, preconditioner="jacobi"),
}


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name, double, monkeypatch):
    design, y = rows(double)
    with watched(monkeypatch, MANY, double):
        result = run(Problem.of(design, y, 1e-2), SOLVERS[name], tol=1e-4, max_iter=3)
    assert np.isfinite(result.W).all()
    assert result.n_iter > 1


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
def test_an_estimator(double, monkeypatch, tmp_path):
    design, y = rows(double)
    weights = torch.linspace(0.5, 1.5, N, dtype=design.X.dtype)
    with watched(monkeypatch, MANY, double):
        clf = SoftmaxRegression(
            alpha=1e-2,
            class_weight="balanced",
            standardize=True,
            checkpoint=tmp_path / "fit",
            checkpoint_every=0.0,
        )
        clf.fit(design, y, sample_weight=weights, X_val=design, y_val=y)
        found = [
            clf.predict(design),
            clf.predict_proba(design),
            clf.predict_log_proba(design),
            clf.decision_function(design),
        ]
        accuracy = clf.score(design, y, weights)
    assert all(isinstance(f, torch.Tensor) and len(f) == N for f in found)
    assert isinstance(clf.coef_, np.ndarray)
    hits = (found[0] == y).to(weights.dtype)
    assert accuracy == pytest.approx(float(weights @ hits / weights.sum()), rel=1e-5)


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
def test_paths_and_cross_validation(double, monkeypatch):
    design, y = rows(double)
    with watched(monkeypatch, MANY, double):
        path = softmax_path(design, y, 3)
        model = SoftmaxRegressionCV(alphas=2, cv=3).fit(design, y)
        score = model.score(design, y)
    assert len(path.alphas) == 3
    assert -1.0 < score < 0.0


def test_penalties_with_kinks(monkeypatch):
    design, y = rows(True)
    with watched(monkeypatch, MANY):
        lasso = SoftmaxRegression(alpha=1e-2, l1_ratio=1.0).fit(design, y)
        path = softmax_path(design, y, [0.1, 0.03], penalty=penalties.GroupLasso())
    assert lasso.status_ == "converged"
    assert len(path.alphas) == 2


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
def test_many_targets(double, monkeypatch):
    design, y = rows(double)
    Y = torch.stack([y, y % 2, (y + 1) % K], dim=1)
    weights = torch.linspace(0.5, 1.5, N, dtype=design.X.dtype)
    samples = [torch.arange(N) < 300, torch.randint(0, N, (N,))]
    with watched(monkeypatch, MANY, double):
        clf = MultiOutputSoftmaxRegression(alpha=1e-2, missing=2, class_weight="balanced")
        clf.fit(design, Y, weights)
        found = [clf.predict(design), *clf.predict_proba(design), *clf.decision_function(design)]
        accuracy = clf.score(design, Y, weights)
        drawn = MultiOutputSoftmaxRegression(alpha=1e-2).fit_subsets(design, y, samples, weights)
    assert all(isinstance(each, torch.Tensor) and len(each) == N for each in found)
    assert 0.2 < accuracy < 1.0
    assert len(drawn.coef_) == 2


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
def test_what_is_drawn_enters_and_nothing_leaves(double, monkeypatch, tmp_path):
    """Folds, draws of few rows and bootstrap samples are drawn on this machine."""
    design, y = rows(double)
    Y = torch.stack([y == 0, y == 1], dim=1).long()
    every = {"metric": "top5", "report": [*METRICS, _share], "samples": 3, "Cs": [0.1, 1.0]}
    with watched(monkeypatch, MANY, double, entering=False):
        model = MultiOutputSoftmaxRegressionCV(alphas=[1e-1, 1e-2], cv=3).fit(design, Y)
        found = [
            probe((design, y), test=(design, y), shots=(2,), repeats=1, normalize=kind, **every)
            for kind in ("none", "l2", "standardize")
        ]
        kept = probe((design, y), (design, y), Cs=[0.1], folder=tmp_path)
        several = probe((design, Y), test=(design, Y), Cs=[0.1, 1.0], normalize="l2", samples=3)
    assert model.alpha_.shape == (2,)
    assert all(set(each.test) == {*METRICS, "_share"} for each in found)
    assert all(0.3 < each.test["accuracy"].value < 1.0 for each in [*found, kept] if each.test)
    assert 0.3 < several.test["map"].value < 1.0


def _share(codes, P):
    assert isinstance(P, torch.Tensor)
    return float(P.gather(1, codes[:, None]).mean())


def test_what_is_watched_is_seen(monkeypatch):
    design, y = rows(True)
    leaving = [
        lambda t: t.cpu(),
        lambda t: t.numpy(),
        lambda t: t.tolist(),
        np.asarray,
        list,
        lambda t: t.to("meta"),
        lambda t: design.gather(design.place(t)),
        lambda t: design.place(np.zeros(N)),
    ]
    for leave in leaving:
        with watched(monkeypatch, MANY), pytest.raises(CrossedError):
            leave(y + 1)
    with watched(monkeypatch, MANY, double=False), pytest.raises(CrossedError, match="float64"):
        y.to(torch.float64)
