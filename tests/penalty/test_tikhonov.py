"""Tikhonov's penalty: value, gradient, intercept, operators and references."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from admm_softmax import operators
from admm_softmax.penalty import Tikhonov
from tests.problems import assert_close


def random_penalty(d=5, K=3, **settings):
    rng = np.random.default_rng(0)
    L = sp.csr_array(rng.standard_normal((7, d)))
    return Tikhonov.over(d, 0.3, operator=L, reference=rng.standard_normal((d + 1, K)), **settings)


@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_gradient_and_hessian_by_finite_differences(penalize_intercept):
    penalty = random_penalty(penalize_intercept=penalize_intercept)
    rng = np.random.default_rng(1)
    W, V = rng.standard_normal((2, 6, 3))
    h = 1e-6
    slope = (penalty.value(W + h * V) - penalty.value(W - h * V)) / (2 * h)
    assert slope == pytest.approx(np.vdot(penalty.gradient(W), V), rel=1e-7)
    change = (penalty.gradient(W + h * V) - penalty.gradient(W - h * V)) / (2 * h)
    np.testing.assert_allclose(change, penalty.hessian_product(V), rtol=1e-6, atol=1e-8)
    pull = penalty.quadratic.pull(3)
    assert_close(penalty.gradient(W), penalty.hessian_product(W) - pull, 1e-12)


def test_intercept_is_penalised_only_when_asked():
    W = np.zeros((4, 2))
    W[-1] = 3.0
    assert Tikhonov.over(3, 1.0).value(W) == 0
    assert Tikhonov.over(3, 1.0, penalize_intercept=True).value(W) == pytest.approx(9.0)
    own = operators.identity(4) * 0.5
    assert Tikhonov.over(3, 1.0, operator=own, penalize_intercept=True).value(W) == pytest.approx(
        2.25
    )


def test_without_intercept_the_operator_is_taken_as_it_is():
    L = operators.gradient(4)
    assert (Tikhonov.over(4, 1.0, operator=L, intercept=False).L != L).nnz == 0


@pytest.mark.parametrize("alpha", [-1e-3, np.nan, np.inf])
def test_bad_alpha(alpha):
    with pytest.raises(ValueError, match=f"alpha must be a finite number ≥ 0, got {alpha}"):
        Tikhonov.over(3, alpha)


def test_bad_operators():
    with pytest.raises(ValueError, match="operator must have 3 columns, one per feature; got 5"):
        Tikhonov.over(3, 1.0, operator=sp.eye_array(5))
    with pytest.raises(ValueError, match=r"operator must have 3 columns.*got 4"):
        Tikhonov.over(3, 1.0, operator=sp.eye_array(4))
    with pytest.raises(ValueError, match=r"3 columns, one per feature, or 4 with.*got 5"):
        Tikhonov.over(3, 1.0, operator=sp.eye_array(5), penalize_intercept=True)
    with pytest.raises(ValueError, match="operator must be 'identity' or a matrix, got 'ridge'"):
        Tikhonov.over(3, 1.0, operator="ridge")
    with pytest.raises(TypeError, match="operator must be None, 'identity', or a two-dim"):
        Tikhonov.over(3, 1.0, operator=np.ones(3))
    with pytest.raises(ValueError, match="operator contains NaN"):
        Tikhonov.over(2, 1.0, operator=np.array([[1.0, np.nan]]))


def test_the_whole_penalty_is_its_quadratic():
    penalty = random_penalty()
    assert penalty.is_smooth
    q = penalty.quadratic
    assert (q.strength, q.L, q.reference) == (penalty.alpha, penalty.L, penalty.reference)
    W = np.random.default_rng(1).standard_normal((6, 3))
    assert penalty.value(W) == q.value(W)
    assert Tikhonov.from_quadratic(q).quadratic is q


def test_another_alpha_keeps_what_was_made_of_the_operator():
    penalty = random_penalty()
    LtL = penalty.quadratic.LtL
    other = penalty.with_alpha(0.7)
    assert (other.alpha, other.quadratic.strength) == (0.7, 0.7)
    assert other.quadratic.LtL is LtL
    assert (other.L, other.reference) == (penalty.L, penalty.reference)
    assert penalty.alpha == 0.3
    with pytest.raises(ValueError, match="alpha must be a finite number ≥ 0, got -1"):
        penalty.with_alpha(-1.0)


def test_an_operator_that_is_only_an_action_is_assembled():
    L = operators.laplacian((30, 40))
    acted = Tikhonov.over(1200, 1.0, operator=aslinearoperator(L), intercept=False).L
    assert (acted != L).nnz == 0
