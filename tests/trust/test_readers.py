"""Files that are cut, changed or hostile: the right content, or an error of ours; soon, and small.

Every reader gets files that begin as good ones, are damaged at random places, and must then either
be read or be refused by one of the errors that callers are told to expect. Memory is limited to a
few hundred megabytes above what the process has, so that a header that promises terabytes ends a
reader that believes it.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import warnings
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admm_softmax import SoftmaxRegression
from admm_softmax.datasets import cache, files
from admm_softmax.datasets.pickles import load_arrays
from admm_softmax.datasets.spec import DatasetError
from admm_softmax.design import as_design
from admm_softmax.storage import arrays, bundles
from admm_softmax.storage.cells import Store
from admm_softmax.storage.records import Records
from tests.datasets import makers
from tests.sources.makers import KINDS
from tests.trust.damage import damages, limited_memory
from tests.trust.effort import examples

#: What a reader of rows may raise: never a bare KeyError, AttributeError or worse.
OURS = (ValueError, TypeError, OSError)


X = np.random.default_rng(0).standard_normal((90, 5))
Y = np.arange(90) % 3
PATHS = ["npy", "columns", "vectors", "safetensors", "hdf5", "zarr_path"]


@pytest.fixture(scope="module", params=PATHS)
def good(request, tmp_path_factory):
    """A folder with files of one kind, as they are read, and their names."""
    folder = tmp_path_factory.mktemp(request.param)
    source, _ = KINDS[request.param](folder, X, Y)
    return request.param, folder, Path(str(source)).name


@given(damage=damages(), pick=st.integers(0, 50))
@examples(25, 400)
def test_rows_in_damaged_files_are_read_or_refused(good, tmp_path_factory, damage, pick):
    _, folder, name = good
    own = tmp_path_factory.mktemp("damaged")
    shutil.copytree(folder, own, dirs_exist_ok=True)
    found = sorted(path for path in own.rglob("*") if path.is_file())
    target = found[pick % len(found)]
    target.write_bytes(damage(target.read_bytes()))
    with warnings.catch_warnings(), limited_memory():
        warnings.simplefilter("ignore")
        try:
            design = as_design(own / name if "*" not in name else str(own / name))
            read = design.block(slice(0, design.n_rows))
        except OURS:
            return
        finally:
            shutil.rmtree(own)
    assert np.asarray(read).ndim == 2


@given(damage=damages(), pick=st.integers(0, 50))
@examples(40, 400)
@pytest.mark.parametrize("kind", ["idx", "idx.gz", "binary", "python", "png", "keras", "tar"])
def test_damaged_data_sets_are_refused(kind, tmp_path_factory, damage, pick):
    folder = tmp_path_factory.mktemp("set")
    spec, content = {
        "idx": (makers.TINY_MNIST, makers.idx_files),
        "idx.gz": (makers.TINY_MNIST, lambda: makers.zipped(makers.idx_files())),
        "binary": (makers.TINY_CIFAR, makers.binary_files),
        "python": (makers.TINY_CIFAR, makers.python_files),
        "png": (makers.TINY_CIFAR, makers.png_files),
        "keras": (makers.TINY_MNIST, lambda: {"mnist.npz": makers.keras_file(makers.DIGITS)}),
        "tar": (makers.TINY_CIFAR, makers.binary_files),
    }[kind]
    if kind == "tar":
        archive = makers.write_tar(folder / "cifar-10-binary.tar.gz", content(), "batches/")
        written = [archive]
    else:
        makers.write(folder, content())
        written = sorted(folder.iterdir())
    target = written[pick % len(written)]
    before = target.read_bytes()
    target.write_bytes(damage(before))
    changed = target.read_bytes() != before
    with warnings.catch_warnings(), limited_memory():
        warnings.simplefilter("ignore")
        try:
            found = files.read(spec, folder)
        except DatasetError:
            assert changed
            return
        finally:
            shutil.rmtree(folder)
    # What is read has the SHA-256 of the original, whatever the container looks like.
    makers.same(found, makers.DIGITS if spec is makers.TINY_MNIST else makers.PHOTOS)


@given(damage=damages())
@examples(60, 600)
def test_damaged_pickles_run_nothing(damage):
    for content in makers.python_files().values():
        with limited_memory():
            try:
                load_arrays(damage(content))
            except Exception as error:  # a damaged pickle can raise anything; `files.read` wraps it
                assert not isinstance(error, MemoryError)


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def hostile_files(folder, trap):
    """Files of every kind that would run code if their reader unpickled them."""
    payload = np.array([Hostile(trap)], dtype=object)
    made = {}
    np.save(folder / "x.npy", payload.reshape(1, 1), allow_pickle=True)
    made["npy"] = lambda: as_design(folder / "x.npy")
    made["labels"] = lambda: SoftmaxRegression().fit(X[:1], folder / "x.npy")
    np.savez(folder / "fit.npz", structure=payload, a0=payload)
    made["checkpoint"] = lambda: bundles.read(folder / "fit.npz")
    made["array"] = lambda: arrays.load(folder / "x.npy", (1, 1), float)
    makers.write(folder, {"mnist.npz": _npz(x_train=payload)})
    made["keras"] = lambda: files.read(makers.TINY_MNIST, folder)
    batch = pickle.dumps(Hostile(trap))
    other = folder / "cifar"
    makers.write(other, {**makers.python_files(), "data_batch_3": batch})
    made["batches"] = lambda: files.read(makers.TINY_CIFAR, other)
    made["pickle"] = lambda: load_arrays(batch)
    return made


def _npz(**content):
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


def test_no_reader_runs_code_from_a_file(tmp_path):
    trap = tmp_path / "trap"
    for name, read in hostile_files(tmp_path, trap).items():
        refused = (ValueError, TypeError, DatasetError, bundles.DamagedError, pickle.PickleError)
        with suppress(*refused):
            assert read() is None, name
        assert not trap.exists(), f"{name} ran code"
    pickle.loads(pickle.dumps(Hostile(trap)))
    assert trap.exists(), "the trap works"


def header(shape, dtype="<f8"):
    """The beginning of a .npy file, and nothing after it."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize("shape", [(10**12, 5), (90, 2**60), (2**40,), (0, 2**62)])
def test_headers_that_promise_terabytes(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(header(shape) + bytes(64))
    with limited_memory():
        with pytest.raises(ValueError, match=r"x\.npy"):
            as_design(tmp_path / "x.npy")
        assert arrays.load(tmp_path / "x.npy", (90, 5), float) is None
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "fit.npz", "w", method) as archive:
            archive.writestr("structure.npy", header(shape, "|u1") + bytes(64))
        if shape == (0, 2**62) and method == zipfile.ZIP_STORED:
            continue  # an array without entries, which is no JSON: any error of json's is fine
        with limited_memory(), pytest.raises(bundles.DamagedError):
            bundles.read(tmp_path / "fit.npz")


# ---- what the library itself writes ----

CHECKPOINT = {"identity": {"format": 1}, "content": {"W": X, "numbers": [1.5, None, "text"]}}


@given(damage=damages())
@examples(60, 600)
def test_damaged_checkpoints_are_read_or_called_damaged(tmp_path_factory, damage):
    path = tmp_path_factory.mktemp("checkpoint") / "fit.npz"
    bundles.write(path, CHECKPOINT)
    path.write_bytes(damage(path.read_bytes()))
    with limited_memory():
        try:
            found = bundles.read(path)
        except bundles.DamagedError:
            return
        finally:
            shutil.rmtree(path.parent)
    assert isinstance(found, dict)


@given(damage=damages())
@examples(30, 300)
def test_a_fit_goes_on_beside_a_damaged_checkpoint(tmp_path_factory, damage):
    folder = tmp_path_factory.mktemp("fit")
    clf = SoftmaxRegression(0.1, checkpoint=str(folder))
    expected = clf.fit(X, Y).coef_
    (path,) = folder.glob("*.npz")
    path.write_bytes(damage(path.read_bytes()))
    with warnings.catch_warnings(), limited_memory():
        warnings.simplefilter("ignore")
        try:
            found = clf.fit(X, Y).coef_
        except ValueError as error:
            assert "belongs to another call" in str(error)
            return
        finally:
            shutil.rmtree(folder)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@given(damage=damages())
@examples(40, 300)
def test_damaged_arrays_of_the_cache_are_made_again(tmp_path_factory, damage):
    path = tmp_path_factory.mktemp("cache") / "x.npy"
    arrays.save(path, X)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    with limited_memory():
        found = arrays.load(path, X.shape, X.dtype)
    assert found is None or found.shape == X.shape
    shutil.rmtree(path.parent)


@given(damage=damages())
@examples(30, 200)
def test_a_damaged_data_cache_is_removed(tmp_path_factory, damage):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADMM_SOFTMAX_CACHE", str(folder))
        path = cache.save(makers.TINY_MNIST, makers.DIGITS, "here")
        before = path.read_bytes()
        path.write_bytes(damage(before))
        with limited_memory():
            found = cache.load(makers.TINY_MNIST)
        assert path.exists() == (found is not None)
    shutil.rmtree(folder)


@given(damage=damages())
@examples(40, 300)
def test_damaged_sweeps_keep_whole_cells(tmp_path_factory, damage):
    folder = tmp_path_factory.mktemp("sweep")
    with Store(folder, lambda: {"a": 1}) as store:
        for i in range(5):
            store.add({"cell": i})
    path = folder / "cells.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    try:
        with Store(folder, lambda: {"a": 1}) as store:
            assert all(isinstance(cell, dict) for cell in store.cells)
    except ValueError as error:
        assert "damaged" in str(error) or "belongs to another call" in str(error)
    shutil.rmtree(folder)


@dataclass
class Figures:
    loss: float


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe{}", b"1e999999"])
def test_json_that_is_not_ours(tmp_path, content):
    (tmp_path / "cells.jsonl").write_bytes(
        json.dumps({"sweep": {"a": 1}}).encode() + b"\n" + content + b"\n"
    )
    with Store(tmp_path, lambda: {"a": 1}) as store:
        assert store.cells == []
    (tmp_path / "run.json").write_bytes(content)
    records = Records(tmp_path, lambda: {"host": "here"})
    assert records(Figures, "run", "settings", lambda: Figures(2.0)) == Figures(2.0)
    assert records(Figures, "run", "settings", lambda: Figures(3.0)) == Figures(2.0)
