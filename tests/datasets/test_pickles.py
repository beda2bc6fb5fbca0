"""Pickles may hold arrays. They may not run anything."""

import os
import pickle

import numpy as np
import pytest

from admm_softmax.datasets.files import read
from admm_softmax.datasets.pickles import load_arrays
from admm_softmax.datasets.spec import DatasetError
from tests.datasets import makers


class Payload:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "u1", "<i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_and_containers(protocol, dtype, order):
    array = np.arange(6).reshape(2, 3).astype(dtype, order=order)
    expected = {"a": array, "b": [1, "two", (None,)]}
    got = load_arrays(pickle.dumps(expected, protocol))
    assert np.asarray(got["a"]).dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(got["a"]), array)
    assert got["b"] == expected["b"]


def test_the_old_name_of_numpy():
    content = makers.python_files()["test_batch"]
    assert b"numpy.core.multiarray" in content
    batch = load_arrays(content)
    assert np.asarray(batch[b"data"]).shape == (2, 3072)
    assert batch[b"labels"] == makers.PHOTOS["test_labels"].tolist()


@pytest.mark.parametrize(
    "function", [os.system, os.mkdir, eval, exec, getattr, __import__, np.load, np.fromfile]
)
def test_functions_are_refused(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argument = "open('ran', 'w')" if function in (eval, exec) else "touch ran"
    with pytest.raises(pickle.UnpicklingError, match=f"arrays only, not .*{function.__name__}"):
        load_arrays(pickle.dumps(Payload(function, argument)))
    assert not (tmp_path / "ran").exists()


def test_functions_inside_an_array_are_refused(tmp_path):
    ran = tmp_path / "ran"
    hidden = np.array([Payload(os.mkdir, str(ran))], dtype=object)
    with pytest.raises(pickle.UnpicklingError, match="plain numbers, got 'O8'"):
        load_arrays(pickle.dumps({"data": hidden}))
    assert not ran.exists()


def test_a_hostile_batch_is_refused_by_name(tmp_path):
    ran = tmp_path / "ran"
    files = {**makers.python_files(), "data_batch_4": pickle.dumps(Payload(os.mkdir, str(ran)))}
    folder = makers.write(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(DatasetError, match=r"data_batch_4.* arrays only, not (posix|nt)\.mkdir"):
        read(makers.TINY_CIFAR, folder.parent)
    assert not ran.exists()


@pytest.mark.parametrize(
    "payload",
    [
        Payload(np.ndarray, (1, 3072), "O", b"A" * 8 * 3072),  # bytes taken for addresses
        Payload(np.ndarray, (2**34,), "u1"),  # memory without end
        Payload(np.dtype, "O"),
        Payload(np.dtype, "V8"),
        Payload(np.dtype, [("a", "O")]),
    ],
)
def test_numpy_itself_is_not_called(payload):
    with pytest.raises((pickle.UnpicklingError, TypeError)):
        load_arrays(pickle.dumps(payload))


@pytest.mark.parametrize("order", ["V3,", "M8[s],", "(4,)", "O,", ""])
def test_an_order_is_no_type(order):
    class Odd:
        def __reduce__(self):
            return np.dtype, ("u1", False, True), (3, order, None, None, None, -1, -1, 0)

    with pytest.raises(pickle.UnpicklingError, match="order of bytes"):
        load_arrays(pickle.dumps(Odd(), 4))


@pytest.mark.parametrize(
    "state",
    [
        (1, (2,), "u1", False, b"ab"),  # a type that is none
        (1, (3,), np.dtype("u1"), False, b"ab"),  # too few bytes
        (1, (2,), np.dtype("u1"), False, [1, 2]),
        (1,),
        {"values": 3},
    ],
)
def test_a_state_that_does_not_fit_is_refused(state):
    class Odd:
        def __reduce__(self):
            return (*np.empty(0).__reduce__()[:2], state)

    with pytest.raises((pickle.UnpicklingError, ValueError)):
        load_arrays(pickle.dumps(Odd(), 4))
