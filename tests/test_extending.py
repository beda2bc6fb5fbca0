"""The examples of docs/extending pass the public checks and run through the estimators."""

import runpy
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from admm_softmax import LBFGS, SoftmaxRegression, SoftmaxRegressionCV
from admm_softmax.contracts import check_design, check_penalty, check_solver
from admm_softmax.design import DenseDesign, Design
from admm_softmax.penalties import Lasso
from admm_softmax.penalty import Penalty, Tikhonov
from tests.problems import make

FOLDER = Path(__file__).parents[1] / "docs" / "extending"
EXAMPLES = sorted(FOLDER.glob("*.py"))
LONGEST = 60


@pytest.fixture(scope="module")
def names():
    found = {}
    for path in EXAMPLES:
        found |= runpy.run_path(str(path), run_name=path.stem)
    return found


def test_the_page_has_every_capability():
    page = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
    capabilities = [name for name, kind in Design.__annotations__.items() if kind == "bool"]
    assert {"is_sparse", "can_form_row_gram"} < {*capabilities}
    for name in {*capabilities, "rounding", "cholesky"} - {"intercept"}:
        assert f"| `{name}" in page, name
    given = {"reference", "value", "gradient", "hessian_product"}  # follow from the others
    for name in {name for name in vars(Penalty) if not name.startswith("_")} - given:
        assert f"`{name}" in page, name


def test_each_example_is_short():
    assert len(EXAMPLES) == 3
    for path in EXAMPLES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST, path.name


def test_they_pass_the_public_checks(names):
    def chunked(X, intercept):
        chunks = [X[:9], X[9:10], X[10:10], X[10:]]
        return names["ChunkedDesign"](chunks, intercept=intercept)

    check_design(chunked)
    check_penalty(names["ElasticNet"](0.7))
    check_penalty(names["ElasticNet"](1.0))
    check_solver(names["GradientDescent"]())


def test_they_run_through_the_estimators(names):
    X, y = make(120, 6, 3)
    design = names["ChunkedDesign"]([X[:50], X[50:]])
    usual = SoftmaxRegression(alpha=1e-2, tol=1e-8).fit(X, y)
    fitted = SoftmaxRegression(alpha=1e-2, tol=1e-8).fit(design, y)
    np.testing.assert_allclose(fitted.coef_, usual.coef_, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(design), usual.predict_proba(X), atol=1e-6)
    assert fitted.score(design, y) == usual.score(X, y)
    slow = SoftmaxRegression(alpha=1e-2, tol=1e-7, max_iter=5000, solver=names["GradientDescent"]())
    np.testing.assert_allclose(slow.fit(X, y).coef_, usual.coef_, atol=1e-5)
    chosen = SoftmaxRegressionCV(alphas=[1e-1, 1e-2], cv=3).fit(design, y)
    assert chosen.alpha_ == SoftmaxRegressionCV(alphas=[1e-1, 1e-2], cv=3).fit(X, y).alpha_


def test_a_penalty_with_kinks_makes_zeros(names):
    X, y = make(150, 8, 3)
    settings = {"penalty": names["ElasticNet"](1.0), "solver": names["GradientDescent"]()}
    clf = SoftmaxRegression(alpha=0.05, tol=1e-6, max_iter=5000, **settings).fit(X, y)
    assert clf.status_ == "converged"
    assert 0 < (clf.coef_ == 0).sum() < clf.coef_.size


def test_solvers_that_follow_gradients_refuse_kinks_in_one_sentence(names):
    X, y = make(60, 4, 3)
    penalty = names["ElasticNet"](1.0)
    with pytest.raises(ValueError, match="LBFGS needs a smooth penalty, and ElasticNet is not"):
        SoftmaxRegression(alpha=0.1, penalty=penalty, solver=LBFGS()).fit(X, y)
    with pytest.raises(ValueError, match="solver='sgd' needs a smooth penalty, and ElasticNet"):
        SoftmaxRegression(alpha=0.1, penalty=penalty, solver="sgd").fit(X, y)


def test_the_checks_find_what_is_wrong(names):
    class ForgetsTheLastRow(DenseDesign):
        def block(self, rows):
            block = super().block(rows).copy()
            if rows.stop == self.n_rows:
                block[-1] = 0.0
            return block

    class GrowsTooSlowly(Tikhonov):
        def value(self, W):
            return 0.9 * super().value(W)

    class Impatient(names["GradientDescent"]):
        def iterates(self, problem, W0):
            yield from islice(super().iterates(problem, W0), 4)

    class ForgetsItsStep(names["GradientDescent"]):
        def iterates(self, problem, W0, state=None):
            return super().iterates(problem, W0, state and {"t": self.step})

    with pytest.raises(AssertionError, match="an iterate after the state of iterate 2 must agree"):
        check_solver(ForgetsItsStep())
    with pytest.raises(AssertionError, match=r"the fold of .* must agree"):
        check_design(ForgetsTheLastRow)
    with pytest.raises(AssertionError, match="value"):
        check_penalty(GrowsTooSlowly)
    with pytest.raises(AssertionError, match="must reach tol"):
        check_solver(Impatient())


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_conjugate_is_found(factor):
    class Wrong(Lasso):
        def conjugate(self, V):
            return factor * super().conjugate(V) + (factor - 1.0)

    with pytest.raises(AssertionError, match=r"conjugate is too (small|large)"):
        check_penalty(Wrong())


def test_a_penalty_that_writes_to_what_is_not_its_own_is_found():
    class Keeps(Tikhonov):
        def gradient(self, W):
            key = W.tobytes()
            if self.__dict__.get("newest", (None, None))[0] != key:
                self.__dict__["newest"] = key, super().gradient(W)
            return self.__dict__["newest"][1]

    class Overwrites(Lasso):
        def prox(self, V, step):
            V[:] = super().prox(V, step)
            return V

    with pytest.raises(AssertionError, match="a gradient after the last one was written to"):
        check_penalty(Keeps)
    with pytest.raises(AssertionError, match="an array that was given to a penalty"):
        check_penalty(Overwrites())


def test_a_penalty_that_forgets_its_reference_is_found():
    class Forgetful(Tikhonov):
        def value(self, W):
            return super().value(W) if self.reference is None else self.quadratic.value(0 * W)

    with pytest.raises(AssertionError, match="value"):
        check_penalty(Forgetful)
