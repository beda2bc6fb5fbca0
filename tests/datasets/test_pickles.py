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
def test_arrays_and_containers(protocol):
    expected = {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3), "b": [1, "two", (None,)]}
    got = load_arrays(pickle.dumps(expected, protocol))
    np.testing.assert_array_equal(got["a"], expected["a"])
    assert got["b"] == expected["b"]


def test_the_old_name_of_numpy():
    content = makers.python_files()["test_batch"]
    assert b"numpy.core.multiarray" in content
    batch = load_arrays(content)
    assert batch[b"data"].shape == (2, 3072)
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
    with pytest.raises(pickle.UnpicklingError, match=r"not (posix|nt)\.mkdir"):
        load_arrays(pickle.dumps({"data": hidden}))
    assert not ran.exists()


def test_a_hostile_batch_is_refused_by_name(tmp_path):
    ran = tmp_path / "ran"
    files = {**makers.python_files(), "data_batch_4": pickle.dumps(Payload(os.mkdir, str(ran)))}
    folder = makers.write(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(DatasetError, match=r"data_batch_4.* arrays only, not (posix|nt)\.mkdir"):
        read(makers.TINY_CIFAR, folder.parent)
    assert not ran.exists()
