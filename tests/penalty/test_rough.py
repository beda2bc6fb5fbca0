"""Penalties with kinks: their definitions, by property."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from admm_softmax import operators, penalties
from admm_softmax.contracts import check_penalty
from admm_softmax.penalty.groups import group_codes
from admm_softmax.penalty.variation import constant_where

GROUPS = [[0, 2], [1, 3, 4], [5]]
PENALTIES = {
    "lasso": penalties.Lasso(),
    "lasso, factors and ridge": penalties.Lasso(factors=[0, 1, 2, 3, 1, 1], ridge=0.3),
    "lasso and operator": penalties.Lasso(ridge=0.5, operator=operators.gradient(6)),
    "elastic net": penalties.ElasticNet(0.3),
    "elastic net without l1": penalties.ElasticNet(0.0),
    "group lasso": penalties.GroupLasso(),
    "groups and ridge": penalties.GroupLasso(GROUPS, ridge=0.2),
    "groups with factors": penalties.GroupLasso(GROUPS, factors=[1.0, 0.5, 0.0]),
    "sparse groups": penalties.SparseGroupLasso(GROUPS, l1_ratio=0.4),
    "total variation": penalties.TotalVariation(operators.gradient(6)),
    "total variation of an image": penalties.TotalVariation(operators.gradient((2, 3)), ridge=0.1),
    "nuclear norm": penalties.NuclearNorm(),
    "nuclear norm and ridge": penalties.NuclearNorm(ridge=0.5),
    "non-negative": penalties.Bounds(),
    "box": penalties.Bounds(-0.5, [1, 2, 3, 0.1, 0.2, 0.3], ridge=0.0),
}
#: Those that are norms of W, but for a ridge.
NORMS = ["lasso", "elastic net", "group lasso", "sparse groups", "nuclear norm"]
MATRICES = arrays(np.float64, (7, 3), elements=st.floats(-3, 3, width=32))


def bound(name, alpha=0.3, reference=None):
    return PENALTIES[name].over(
        6, alpha, intercept=True, penalize_intercept=False, reference=reference
    )


@pytest.mark.parametrize("name", PENALTIES)
def test_they_keep_the_contract(name):
    check_penalty(PENALTIES[name])


@pytest.mark.parametrize("name", PENALTIES)
@settings(max_examples=15, deadline=None)
@given(V=MATRICES, other=MATRICES, step=st.floats(0.05, 5.0))
def test_the_prox_minimises_its_definition(name, V, other, step):
    penalty = bound(name)
    P = penalty.prox(V, step)

    def cost(W):
        return penalty.rough_value(W) + ((W - V) ** 2).sum() / (2 * step)

    assert np.isfinite(cost(P))
    assert cost(P) <= cost(other) + 1e-8
    assert cost(P) <= cost(0.99 * P + 0.01 * other) + 1e-8
    residual = penalty.optimality(P, (P - V) / step - penalty.gradient(P))
    assert np.abs(residual).max() <= 1e-7


@pytest.mark.parametrize("name", NORMS)
@settings(max_examples=15, deadline=None)
@given(V=MATRICES, step=st.floats(0.05, 5.0))
def test_moreau_splits_a_matrix_into_prox_and_projection(name, V, step):
    """V = P + step Y with Y in the dual ball, and h(P) = ⟨P, Y⟩."""
    penalty = bound(name)
    V[-1] = 0.0
    P = penalty.prox(V, step)
    Y = (V - P) / step
    assert penalty.alpha_max(Y) <= penalty.alpha * (1 + 1e-9) + 1e-12
    assert penalty.rough_value(P) == pytest.approx(float(np.vdot(P, Y)), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", [n for n in PENALTIES if "variation" not in n])
@pytest.mark.parametrize("with_reference", [False, True])
@settings(max_examples=15, deadline=None)
@given(W=MATRICES, V=MATRICES)
def test_fenchel_and_young(name, with_reference, W, V):
    reference = 0.05 * np.arange(21.0).reshape(7, 3) if with_reference else None
    if with_reference and name in ("non-negative", "box"):
        reference[:] = 0.01
    penalty = bound(name, reference=reference)
    V[-1] = 0.0
    W = penalty.prox(W, 1.0)
    value, conjugate = penalty.value(W), penalty.conjugate(V)
    assert value + conjugate >= float(np.vdot(W, V)) - 1e-8
    if name == "lasso and operator":
        assert conjugate == np.inf  # L couples features: no formula
        return
    # With V in the subdifferential, both sides agree.
    smooth = penalty.gradient(W)
    step = 0.7
    P = penalty.prox(V, step)
    slope = (V - P) / step + penalty.gradient(P)
    if penalty.scale[:6].min() > 0:
        both = penalty.value(P) + penalty.conjugate(slope * (1 - 1e-13))
        assert both == pytest.approx(float(np.vdot(P, slope)), rel=1e-6, abs=1e-6)
    assert smooth.shape == W.shape


def test_zero_is_left_exactly_below_alpha_max():
    G = np.random.default_rng(2).standard_normal((7, 3))
    G[-1] = 0.0
    for name in [*NORMS, "total variation"]:
        gradient = G - (G[:6].mean(axis=0) if name == "total variation" else 0.0)
        gradient[-1] = 0.0
        largest = bound(name).alpha_max(gradient)
        zero = np.zeros((7, 3))
        above, below = (
            bound(name, f * largest).optimality(zero, gradient) for f in (1.0001, 0.999)
        )
        assert np.abs(above).max() <= 1e-7, name
        assert np.abs(below).max() >= 1e-5, name


def test_groups_are_lists_or_numbers():
    np.testing.assert_array_equal(group_codes(GROUPS, 6), [0, 1, 0, 1, 1, 2])
    np.testing.assert_array_equal(group_codes(["b", "a", "b"], 3), [1, 0, 1])
    np.testing.assert_array_equal(group_codes(None, 3), [0, 1, 2])
    V = np.random.default_rng(0).standard_normal((7, 3))
    by_lists, by_numbers = (
        penalties.GroupLasso(g).over(
            6, 0.5, intercept=True, penalize_intercept=False, reference=None
        )
        for g in (GROUPS, [0, 1, 0, 1, 1, 2])
    )
    np.testing.assert_array_equal(by_lists.prox(V, 1.0), by_numbers.prox(V, 1.0))


def test_what_is_joined_becomes_constant():
    D, rng = operators.gradient((2, 3)), np.random.default_rng(0)
    W = rng.standard_normal((6, 2))
    zero = rng.random((D.shape[0], 2)) < 0.5
    found = constant_where(D, W, zero)
    assert np.abs((D @ found)[zero]).max() == 0
    general = constant_where(operators.laplacian(6, boundary="neumann"), W, np.ones((6, 2), bool))
    assert np.ptp(general, axis=0).max() < 1e-9  # only constants have no second differences
    np.testing.assert_allclose(general[0], W.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: penalties.ElasticNet(1.5), "l1_ratio must be a number from 0 to 1, got 1.5"),
        (lambda: penalties.ElasticNet(-0.1), "l1_ratio must be a number from 0 to 1, got -0.1"),
        (lambda: penalties.SparseGroupLasso(l1_ratio=2), "l1_ratio must be a number from 0 to 1"),
        (lambda: penalties.ElasticNet(0.5, ridge=1.0), "has its ridge from l1_ratio"),
        (lambda: penalties.Lasso(ridge=-1.0), "ridge must be a number ≥ 0, got -1.0"),
        (lambda: bound_of(penalties.Lasso(factors=[1, 2])), "factors must have one entry per feat"),
        (lambda: bound_of(penalties.Lasso(factors=[-1] * 6)), "factors must be finite and ≥ 0"),
        (lambda: bound_of(penalties.GroupLasso([[0, 1], [2, 3]])), "feature 4 is in none"),
        (
            lambda: bound_of(penalties.GroupLasso([[0, 1, 2], [2, 3, 4, 5]])),
            "7 entries from 0 to 5",
        ),
        (lambda: bound_of(penalties.GroupLasso([])), "each of 6 features once, got no group"),
        (lambda: bound_of(penalties.GroupLasso([range(6), []])), "and group 1 has none"),
        (
            lambda: bound_of(penalties.GroupLasso([0, 1])),
            "groups must number all 6 features, got 2",
        ),
        (
            lambda: bound_of(penalties.Bounds([0, 1])).limits,
            "lower must have one entry per feature",
        ),
        (lambda: bound_of(penalties.Bounds(1.0, 0.0)).blocks, "lower must be ≤ upper"),
        (lambda: penalties.Bounds(np.nan), "lower must be a number"),
        (
            lambda: bound_of(penalties.TotalVariation(operators.gradient(5))),
            "differences must have one column per feature, 6 in all, got 5",
        ),
        (lambda: penalties.Lasso().quadratic, "Lasso needs features first"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_total_variation_needs_a_matrix():
    with pytest.raises(TypeError, match="TotalVariation needs a matrix"):
        penalties.TotalVariation()


def bound_of(penalty):
    return penalty.over(6, 1.0, intercept=True, penalize_intercept=False, reference=None)
