"""A full disk or a read-only folder at every write: the previous good file stays, and in words.

`RLIMIT_FSIZE` makes the kernel refuse to let files grow beyond a size, as a full disk would: a
write ends in the middle with OSError.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from admm_softmax import Problem, SoftmaxRegression, probe, softmax_path, sweep_rho_alpha
from admm_softmax.cli import exporting, predictions, probing
from admm_softmax.datasets import cache
from admm_softmax.datasets.spec import DatasetError
from admm_softmax.estimators.model_folder import load, save
from admm_softmax.exchange import npz, skops
from admm_softmax.report.page import Page, write_page
from admm_softmax.report.summary import write_summary
from admm_softmax.storage import arrays, bundles, records
from tests.datasets.makers import DIGITS, TINY_MNIST, same
from tests.problems import make
from tests.trust.effort import effort

pytestmark = [
    pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no such limit"),
    # An older NumPy leaves the archive that it could not write to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
X, Y = make(60, 5, 3)


@contextmanager
def full_disk(most):
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # OSError instead of the end
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


#: A user without rights, for root, who may write anywhere.
NOBODY = 65534


@contextmanager
def read_only(folder):
    """Nothing may be created in the folder."""
    folder.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


def array_file(folder):
    path = folder / "x.npy"
    new = np.arange(4000.0)
    return (
        lambda: arrays.save(path, np.zeros(4000)),
        lambda: arrays.save(path, new),
        lambda: np.load(path).any(),
    )


def checkpoint_file(folder):
    path = folder / "fit.npz"
    return (
        lambda: bundles.write(path, {"a": np.zeros(4000)}),
        lambda: bundles.write(path, {"a": np.ones(4000)}),
        lambda: bundles.read(path)["a"].any(),
    )


def record_file(folder):
    path = folder / "run.json"
    return (
        lambda: records.write_json(path, {"a": [0] * 4000}),
        lambda: records.write_json(path, {"a": [1] * 4000}),
        lambda: "1" in path.read_text(encoding="utf-8"),
    )


def models():
    """Two models that differ in everything, and how to tell the first from the second."""
    old = SoftmaxRegression(0.1).fit(X, Y)
    return old, SoftmaxRegression(1e-3, tol=1e-9).fit(3 * X, Y)


def model_folder(folder):
    old, new = models()

    def is_new():
        # Coefficients are in one file, settings in the other: both of the same model.
        found = load(folder)
        assert (found.tol == 1e-9) == np.array_equal(found.coef_, new.coef_)
        return found.tol == 1e-9

    return lambda: save(old, folder), lambda: save(new, folder), is_new


def model_arrays(folder):
    path = folder / "model.npz"
    old, new = models()
    return (
        lambda: npz.write(old, path),
        lambda: npz.write(new, path),
        lambda: np.array_equal(load(path).coef_, new.coef_),
    )


def predictions_in(name):
    """Predictions of one class and then of another, in a file of some kind."""

    def writer(folder):
        path, header = folder / name, predictions.Header("id", [0, 1], True)

        def write(label):
            with predictions.writer(str(path), header, False) as block:
                block(np.arange(500), np.full(500, label), np.full((500, 2), 0.25 + label / 2))

        mark = {"npy": np.full(1, 0.75).tobytes()}.get(name[2:], b"0.75")
        return lambda: write(0), lambda: write(1), lambda: mark in path.read_bytes()

    return writer


def parquet_predictions(folder):
    import pyarrow.parquet as pq

    path, header = folder / "p.parquet", predictions.Header("id", [0, 1], True)

    def write(label):
        with predictions.writer(str(path), header, False) as block:
            for first in (0, 500):
                ids = np.arange(first, first + 500)
                block(ids, np.full(500, label), np.random.default_rng(0).random((500, 2)))

    return (
        lambda: write(0),
        lambda: write(1),
        lambda: bool(pq.read_table(path)["label"][0].as_py()),
    )


def page(folder):
    path = folder / "report.html"

    def write(title):
        write_page(Page(title=title, summary="words " * 50, sections=[]), path)

    return lambda: write("Before"), lambda: write("After"), lambda: "After" in path.read_text()


def summary_page(folder):
    path = folder / "summary.html"
    old, new = models()

    def write(model, title):
        write_summary(path, model=model, title=title)

    return (
        lambda: write(old, "Before"),
        lambda: write(new, "After"),
        lambda: "After" in path.read_text(encoding="utf-8"),
    )


def skops_file(folder):
    path = folder / "model.skops"
    old, new = (model.to_sklearn() for model in models())
    return (
        lambda: skops.write(old, path),
        lambda: skops.write(new, path),
        lambda: np.array_equal(skops.read(path).coef_, new.coef_),
    )


def onnx_file(folder):
    path = folder / "model.onnx"
    old, new = models()

    def write(model):
        exporting._write(model, model, path, False)

    write(new)
    written = path.read_bytes()
    return lambda: write(old), lambda: write(new), lambda: path.read_bytes() == written


def torch_file(name):
    """Weight and bias as tensors, in a file of either kind."""

    def writer(folder):
        pytest.importorskip("torch")
        from admm_softmax.exchange import torch as tensors

        path = folder / name
        old, new = models()
        tensors.write(new, path)
        written = path.read_bytes()
        return (
            lambda: tensors.write(old, path),
            lambda: tensors.write(new, path),
            lambda: path.read_bytes() == written,
        )

    return writer


class Drawn:
    """The result of a probe, whose plot is drawn once, with a height of its own."""

    def __init__(self, found, inches):
        self.figure = found.plot()
        self.figure.set_size_inches(3, inches)

    def plot(self):
        return self.figure


def plot_of_a_probe(folder):
    path, found = folder / "plot.png", probe((X, Y), Cs=[0.1, 1.0], samples=10)

    def write(drawn):
        probing._written(drawn, None, None, path)

    old, new = Drawn(found, 2), Drawn(found, 3)
    write(new)
    height = path.read_bytes()[20:24]
    return lambda: write(old), lambda: write(new), lambda: path.read_bytes()[20:24] == height


WRITERS = [
    pytest.param(array_file, id="array"),
    pytest.param(checkpoint_file, id="checkpoint"),
    pytest.param(record_file, id="record"),
    pytest.param(model_folder, id="model folder"),
    pytest.param(model_arrays, id="model in .npz"),
    pytest.param(predictions_in("p.csv"), id="csv"),
    pytest.param(predictions_in("p.jsonl"), id="jsonl"),
    pytest.param(predictions_in("p.npy"), id="npy"),
    pytest.param(parquet_predictions, id="parquet"),
    pytest.param(page, id="page"),
    pytest.param(summary_page, id="summary"),
    pytest.param(skops_file, id="skops"),
    pytest.param(onnx_file, id="onnx"),
    pytest.param(plot_of_a_probe, id="plot of a probe"),
    pytest.param(torch_file("m.pt"), id="torch", marks=pytest.mark.torch),
    pytest.param(torch_file("m.safetensors"), id="safetensors", marks=pytest.mark.torch),
]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_that_fails_anywhere_leaves_the_old_file(writer, tmp_path):
    old, new, is_new = writer(tmp_path)
    new()
    size = max(path.stat().st_size for path in tmp_path.iterdir())
    old()
    names = sorted(tmp_path.iterdir())
    for most in np.linspace(0, size - 1, effort(6, 60), dtype=int):
        with full_disk(int(most)), pytest.raises(OSError, match=r"File too large|requested and"):
            new()
        assert not is_new()
        assert sorted(tmp_path.iterdir()) == names, "a part is left"
    new()
    assert is_new()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_read_only_folder_leaves_the_old_file(writer):
    # Not in pytest's folder, which other users may not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old, new, is_new = writer(folder)
        old()
        with read_only(folder):
            with pytest.raises(PermissionError):
                new()
            assert not is_new()


def test_a_data_set_that_cannot_be_kept_is_said_so(tmp_path, monkeypatch):
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(tmp_path))
    path = cache.save(TINY_MNIST, DIGITS, "here")
    with full_disk(1000), pytest.raises(DatasetError, match="make room, or set ADMM_SOFTMAX_CACHE"):
        cache.save(TINY_MNIST, DIGITS, "elsewhere")
    assert [*tmp_path.iterdir()] == [path]
    found, source = cache.load(TINY_MNIST)
    same(found, DIGITS)
    assert source == "here"


@pytest.mark.parametrize("most", [0, 700, 3000])
def test_fits_go_on_without_checkpoints_when_the_disk_is_full(tmp_path, most):
    for name, call in (
        (
            "fit",
            lambda folder: (
                SoftmaxRegression(0.1, checkpoint=folder, checkpoint_every=0.0).fit(X, Y).coef_
            ),
        ),
        (
            "path",
            lambda folder: (
                softmax_path(X, Y, [1.0, 0.1], checkpoint=folder, checkpoint_every=0.0).coefs
            ),
        ),
    ):
        expected = call(None)
        folder = tmp_path / f"{name}-{most}"
        with full_disk(most), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(call(folder), expected)
        # One warning, whatever the number of fits; none if there was room for what is small.
        assert len(caught) <= 1
        assert caught or most
        assert all("going on without" in str(w.message) for w in caught)
        # With room again, the same call writes what it could not, and ends with the same answer.
        np.testing.assert_allclose(call(folder), expected, atol=1e-4)


def test_a_sweep_on_a_full_disk_keeps_what_was_written(tmp_path):
    problem, validation = Problem.of(X, Y), Problem.of(X[:20], Y[:20])

    def sweep():
        return sweep_rho_alpha(
            problem,
            [1e-2, 1e-1],
            [1e-2, 1e-1],
            validation=validation,
            max_iter=2,
            directory=tmp_path,
        )

    file = tmp_path / "cells.jsonl"
    expected = sweep()
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    with full_disk(len(b"".join(lines[:2])) + 20), pytest.raises(OSError, match="File too large"):
        sweep()
    again = sweep()
    np.testing.assert_array_equal(again.table("condition"), expected.table("condition"))
    assert len(file.read_bytes().splitlines()) == len(lines)
