"""The z-step satisfies its optimality condition over random and extreme inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admm_softmax.kernels import zstep as specification
from admm_softmax.kernels.compiled import programs as compiled
from admm_softmax.kernels.softmax import minus_labels, softmax

BOTH = pytest.mark.parametrize(
    "zstep", [specification.zstep, compiled.zstep], ids=["numpy", "compiled"]
)


def excess(Z, V, labels, rho):
    """Largest gradient entry over what is allowed: 1e-10 or 64 ulp of its largest term."""
    P, _ = softmax(Z)
    C = -minus_labels(np.zeros_like(P), labels)
    g = np.abs(P - C + rho * (Z - V)).max(axis=1)
    terms = [P, C, rho * np.abs(Z), rho * np.abs(V)]
    largest = np.max([t.max(axis=1) for t in terms], axis=0)
    return float((g / np.maximum(1e-10, 64 * np.spacing(largest))).max())


def draw(seed, n, K, scale, kind):
    rng = np.random.default_rng(seed)
    V = np.clip(rng.standard_normal((n, K)) * scale, -1e4, 1e4)
    if kind == "hard":
        labels = rng.integers(0, K, n)
    elif kind == "soft":
        labels = rng.dirichlet(np.ones(K), n)
    else:
        labels = np.eye(K)[rng.integers(0, K, n)]
    start = {0: V, 1: np.zeros_like(V), 2: rng.standard_normal((n, K)) * max(1.0, scale)}[seed % 3]
    return V, labels, start


@BOTH
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    K=st.one_of(st.integers(2, 12), st.sampled_from([100, 1000])),
    log_rho=st.floats(-12, 7),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e3, 1e4]),
    kind=st.sampled_from(["hard", "soft", "one-hot"]),
)
def test_solved_to_rounding(zstep, seed, K, log_rho, scale, kind):
    V, labels, start = draw(seed, 8, K, scale, kind)
    rho = 10.0**log_rho
    Z, P, _ = zstep(V, labels, rho, start)
    assert excess(Z, V, labels, rho) <= 1.0
    np.testing.assert_allclose(P, softmax(Z)[0], rtol=1e-12, atol=1e-290)


@BOTH
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1.0, 1e7])
@pytest.mark.parametrize("K", [2, 10, 1000])
def test_extreme_logits(zstep, rho, K):
    rng = np.random.default_rng(K)
    V = 1e4 * rng.choice([-1.0, 0.0, 1.0], (30, K))
    labels = rng.integers(0, K, 30)
    for start in (V, -V, np.zeros_like(V)):
        Z, _, _ = zstep(V, labels, rho, start)
        assert excess(Z, V, labels, rho) <= 1.0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), log_rho=st.floats(-6, 3), kind=st.sampled_from(["hard", "soft"]))
def test_compiled_equals_specification(seed, log_rho, kind):
    V, labels, start = draw(seed, 20, 6, 3.0, kind)
    rho = 10.0**log_rho
    expected, P, _ = specification.zstep(V, labels, rho, start)
    got, P_got, _ = compiled.zstep(V, labels, rho, start)
    np.testing.assert_allclose(P_got, P, rtol=1e-7, atol=1e-13)
    # Along (1, …, 1) only the term ρ holds z, so that is known to eps/ρ and no better.
    np.testing.assert_allclose(
        got - got.mean(axis=1, keepdims=True),
        expected - expected.mean(axis=1, keepdims=True),
        rtol=1e-7,
        atol=1e-7,
    )


@BOTH
@pytest.mark.parametrize(("K", "rho"), [(1000, 1e-3), (500, 2e-3), (200, 5e-3)])
def test_many_classes_with_a_far_start(zstep, K, rho):
    # Newton on log Σp inside a bracket used to cycle between two points here.
    rng = np.random.default_rng(0)
    V, labels = rng.uniform(-10, 10, (1000, K)), rng.integers(0, K, 1000)
    Z, _, _ = zstep(V, labels, rho, np.zeros_like(V))
    assert excess(Z, V, labels, rho) <= 1.0


def test_warm_start_takes_few_steps():
    rng = np.random.default_rng(0)
    V, labels = rng.standard_normal((500, 10)), rng.integers(0, 10, 500)
    Z, _, _ = specification.zstep(V, labels, 0.02, V)
    _, _, steps = specification.zstep(V + 0.1 * rng.standard_normal(V.shape), labels, 0.02, Z)
    assert steps.mean() <= 5


@BOTH
def test_newton_alone_would_fail_where_the_scalar_equation_steps_in(zstep):
    V, labels = np.array([[1e4, -1e4, 0.0]]), np.array([1])
    *_, hard = specification._newton(V, labels, 1e-12, V)
    assert hard.all()
    Z, _, _ = zstep(V, labels, 1e-12, V)
    assert excess(Z, V, labels, 1e-12) <= 1.0


def test_nothing_is_written_to():
    V, labels, start = draw(1, 10, 4, 10.0, "hard")
    kept = V.copy(), start.copy()
    for zstep in (specification.zstep, compiled.zstep):
        zstep(V, labels, 1e-3, start)
        np.testing.assert_array_equal(V, kept[0])
        np.testing.assert_array_equal(start, kept[1])
