"""Memory of a descent's vectors: used again, never by two at once."""

from itertools import combinations

import numpy as np
import pytest

from admm_softmax import LBFGS, Problem, _vectors
from admm_softmax._arrays import add_multiple
from admm_softmax._vectors import Vectors
from tests.problems import make


def test_what_is_given_back_is_taken_again():
    room = Vectors((4, 3), np.float32)
    first, second = room.take(), room.take()
    assert first.shape == (4, 3)
    assert first.dtype == np.float32
    assert not np.shares_memory(first, second)
    room.give(first)
    assert room.take() is first


@pytest.mark.parametrize("shape", [(7, 3), (1000, 5)])
def test_vectors_of_a_block_begin_at_lines_of_the_cache_and_do_not_overlap(shape):
    room = Vectors(shape, np.float64, expected=5)
    taken = [room.take() for _ in range(11)]  # more than two blocks
    assert not any(np.shares_memory(a, b) for a, b in combinations(taken, 2))
    assert all(a.ctypes.data % 64 == 0 and a.flags.c_contiguous for a in taken)


def test_only_small_vectors_share_a_block(monkeypatch):
    monkeypatch.setattr(_vectors, "LARGE_ARRAY", 800)
    small, large = (Vectors((size, 1), np.float64, expected=3).take() for size in (99, 100))
    assert small.base.nbytes > 3 * small.nbytes
    assert large.base is None


@pytest.mark.parametrize(
    "other",
    [
        np.zeros((4, 3)),
        np.zeros((3, 4), np.float32),
        np.zeros((4, 6), np.float32)[:, ::2],
        np.broadcast_to(np.float32(0), (4, 3)),
    ],
    ids=["type", "shape", "order", "read-only"],
)
def test_arrays_that_do_not_fit_are_left_alone(other):
    room = Vectors((4, 3), np.float32)
    room.give(other)
    assert not np.shares_memory(room.take(), other)


def test_pairs_of_the_newest_state_stay_until_the_next_one_is_there(monkeypatch):
    """A run that is interrupted within a step stores the state of the last iterate."""
    X, y = make(80, 5, 3)
    problem = Problem.of(X, y, 1e-4, n_classes=3)
    kept, looks, own = {}, [], Problem.slope_at

    def slope_at(self, W):
        for array, copy in kept.get("arrays", ()):
            looks.append(np.array_equal(array, copy))
        return own(self, W)

    monkeypatch.setattr(Problem, "slope_at", slope_at)
    for _, iterate in zip(range(12), LBFGS(3, "jacobi").iterates(problem, None), strict=False):
        pairs = iterate.state["pairs"]
        kept["arrays"] = [(a, a.copy()) for pair in pairs for a in (pair["s"], pair["y"])]
    assert len(looks) > 40
    assert all(looks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 1, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_multiple_is_added_wherever_the_total_lies(dtype, offset, order):
    # An offset of 1 or 4 bytes is what arrays that came over a network may have.
    size = 6 * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    total = memory[start : start + size].view(dtype).reshape((2, 3), order=order)
    add_multiple(total, 2.0, np.arange(6, dtype=dtype).reshape(2, 3))
    np.testing.assert_array_equal(total, [[0, 2, 4], [6, 8, 10]])
