"""`TorchDesign` keeps the contract of designs, in every precision and for any block size."""

import hashlib
import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from admm_softmax import ADMM, LBFGS, Problem, as_design, run  # noqa: E402
from admm_softmax.contracts import check_design  # noqa: E402
from admm_softmax.design import DenseDesign, ScaledDesign  # noqa: E402
from admm_softmax.design.torch import TorchDesign, factor  # noqa: E402
from admm_softmax.design.torch import design as torch_design  # noqa: E402
from admm_softmax.kernels import targets  # noqa: E402
from admm_softmax.kernels.row_kernel import RowKernel  # noqa: E402
from tests.problems import make  # noqa: E402

pytestmark = pytest.mark.torch


def of(dtype, **settings):
    return lambda X, intercept: TorchDesign(
        torch.tensor(X).to(dtype), intercept=intercept, **settings
    )


FACTORIES = {
    "float64": of(torch.float64),
    "float32": of(torch.float32),
    "float16": of(torch.float16),
    "bfloat16": of(torch.bfloat16),
    "no float64 on the device": of(torch.float32, double=False),
    "bfloat16 and no float64": of(torch.bfloat16, double=False),
    "state in float32": of(torch.float64, state_dtype=np.float32),
    "columns in order": lambda X, intercept: TorchDesign(
        torch.tensor(np.asfortranarray(X)), intercept=intercept
    ),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_the_contract(name):
    check_design(FACTORIES[name])


@pytest.mark.parametrize("name", ["float64", "no float64 on the device"])
def test_the_contract_in_small_blocks(name, monkeypatch):
    monkeypatch.setattr(TorchDesign, "block_rows", lambda self, columns=1: 7)
    monkeypatch.setattr(torch_design, "COLUMN_PANELS", 3)
    check_design(FACTORIES[name])


def test_in_other_units():
    def scaled(X, intercept):
        scale = np.ones(X.shape[1] + intercept)
        return ScaledDesign(TorchDesign(torch.tensor(X), intercept=intercept), scale)

    check_design(scaled)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_of_many_targets(n_classes, double):
    rng = np.random.default_rng(0)
    n, d, T = 60, 5, 4
    width = 1 if n_classes == 2 else n_classes
    X = rng.standard_normal((n, d)).astype(np.float32)
    W = rng.standard_normal((d + 1, T * width))
    C = rng.standard_normal((n, T)) * (rng.random((n, T)) < 0.8)
    if n_classes > 2:
        C = (np.eye(n_classes)[rng.integers(0, n_classes, (n, T))] * np.abs(C)[..., None]).reshape(
            n, -1
        )
    kernel = targets.kernel_of(T, n_classes)
    ours, theirs = DenseDesign(X), TorchDesign(torch.tensor(X), double=double)
    expected, found = (design.fold(W, kernel, (design.place(C),)) for design in (ours, theirs))
    np.testing.assert_allclose(found.product, expected.product, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(found.sums.values, expected.sums.values, rtol=1e-4, atol=1e-4)


def test_a_kernel_without_a_torch_version_is_named():
    design = TorchDesign(torch.ones(3, 2))
    own = RowKernel("my_kernel", lambda scores: (None, scores, np.zeros(0)), new_rows=1)
    with pytest.raises(NotImplementedError, match="the kernel my_kernel has no torch version"):
        design.fold(np.ones((3, 2)), own)


def test_digests_see_every_entry_its_place_and_its_type():
    X = torch.arange(12.0).reshape(4, 3)
    others = [X.double(), X.flip(0), X.reshape(3, 4), X + torch.eye(4, 3) * 1e-6]

    def digest(X):
        found = hashlib.sha256()
        TorchDesign(X).fingerprint(found)
        return found.hexdigest()

    assert digest(X) == digest(X.clone())
    assert len({digest(A) for A in [X, *others]}) == 5


def test_samples_are_those_of_other_designs():
    X, y = make(300, 5, 3)
    w = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    ours, theirs = DenseDesign(X), TorchDesign(torch.tensor(X))
    found = theirs.sample(40, 7, theirs.place(w), theirs.place(y))
    expected = ours.sample(40, 7, ours.place(w), ours.place(y))
    np.testing.assert_array_equal(found.design.X.numpy(), expected.design.X)
    np.testing.assert_array_equal(found.design.gather(found.rows[0]), expected.rows[0].held)


def test_gram_matrices_of_few_rows_read_few_rows():
    design = TorchDesign(torch.randn(1000, 4))
    w = np.zeros(1000)
    w[::100] = 1.0
    design.gram(design.place(w))
    assert design.reads == pytest.approx(0.01)


# ---- factors ----


def problem(double=True, alpha=1e-2, dtype=torch.float64):
    X, y = make(200, 8, 3)
    return Problem.of(TorchDesign(torch.tensor(X).to(dtype), double=double), y, alpha)


def test_factors_live_on_the_device(monkeypatch):
    made = []

    class Spy(factor.DeviceFactor):
        def __init__(self, H):
            super().__init__(H)
            made.append(self)

    monkeypatch.setattr(factor, "DeviceFactor", Spy)
    expected = run(problem(), LBFGS(), tol=1e-9).W
    for solver in (ADMM(rho="auto", relaxation=1.7), LBFGS(20, "gram")):
        made.clear()
        found = run(problem(), solver, tol=1e-7, max_iter=2000)
        assert made
        assert all(isinstance(f.L, torch.Tensor) for f in made)
        np.testing.assert_allclose(found.W, expected, atol=1e-5)


def test_an_estimate_of_the_condition():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 30))
    H = A @ A.T + 1e-3 * np.eye(30)
    found = factor.factorised(H, "cpu", True)
    exact = 1 / np.linalg.cond(H, 1)
    assert exact <= found.rcond <= 3 * exact
    np.testing.assert_allclose(found.solve(H @ A), A, atol=1e-8)
    assert factor.factorised(-H, "cpu", True).info == 1


def test_without_room_or_precision_the_factor_is_made_here(monkeypatch):
    assert factor.factorised(np.eye(3), "cpu", False) is None

    def full(H):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(factor, "DeviceFactor", full)
    assert run(problem(), LBFGS(20, "gram"), tol=1e-6).status == "converged"


def test_a_factor_that_breaks_down_is_replaced(caplog):
    X, y = make(200, 8, 3)
    X[:, 1] = X[:, 0]
    singular = Problem.of(TorchDesign(torch.tensor(X)), y, 0.0)
    with caplog.at_level(logging.WARNING, "admm_softmax"):
        found = run(singular, ADMM(rho=0.1, relaxation=1.7), tol=1e-4, max_iter=500)
    assert "falls back to QR" in caplog.text
    assert found.status == "converged"


# ---- what is refused ----


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (lambda X: X.to_sparse(), "must be dense, got the layout torch.sparse_coo"),
        (lambda X: X.to("meta"), "must be on one of the devices .* got one on meta"),
        (lambda X: X.to(torch.complex64), "must hold real numbers"),
    ],
)
def test_other_tensors_are_refused(X, words):
    with pytest.raises(TypeError, match=words):
        TorchDesign(X(torch.ones(3, 2)))


def test_float64_is_refused_where_there_is_none():
    with pytest.raises(TypeError, match="float32 or narrower"):
        TorchDesign(torch.ones(3, 2, dtype=torch.float64), double=False)


def test_shapes_and_rows_are_checked():
    with pytest.raises(ValueError, match="two-dimensional, got 1"):
        TorchDesign(torch.ones(3))
    design = TorchDesign(torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"weights must have the length 3, got shape \(2,\)"):
        design.place(torch.ones(2), "weights")
    with pytest.raises(TypeError, match="must be numbers"):
        design.place(np.array(["a", "b", "c"]))
    assert not TorchDesign(torch.tensor([[1.0], [np.inf]])).is_finite()
    with pytest.raises(TypeError, match="rows stay on cpu"):
        design.map_rows(np.asarray, design.place(np.ones(3)))


def test_whole_numbers_become_float64():
    assert TorchDesign(torch.ones(3, 2, dtype=torch.int32)).dtype == np.float64
    assert TorchDesign([[1, 2], [3, 4]]).dtype == np.float64


def test_tensors_elsewhere_become_a_torch_design(monkeypatch):
    monkeypatch.setattr("admm_softmax.design.is_on_device", lambda X: True)
    assert isinstance(as_design(torch.ones(3, 2)), TorchDesign)
    with pytest.raises(ValueError, match="must be finite"):
        as_design(torch.full((3, 2), np.nan))


def test_labels_and_weights_that_are_tensors_are_checked_on_the_device():
    design = TorchDesign(torch.ones(3, 2))
    with pytest.raises(ValueError, match="labels must lie in 0 … 1"):
        Problem.of(design, torch.tensor([0, 1, 2]), n_classes=2)
    with pytest.raises(ValueError, match="sample_weight must be ≥ 0, got -1"):
        Problem.of(design, torch.tensor([0, 1, 2]), sample_weight=torch.tensor([1.0, -1.0, 0.0]))
    with pytest.raises(ValueError, match=r"must sum to 1, got 1\.5 in row 1"):
        Problem.of(design, torch.tensor([[0.5, 0.5], [1.0, 0.5], [1.0, 0.0]]))
    assert Problem.of(design, torch.tensor([0, 1, 2])).n_classes == 3
