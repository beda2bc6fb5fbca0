"""Data sets in files: shards, labels beside them, and what is refused in which words."""

import io
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from admm_softmax.reading import Request, blocks, read
from admm_softmax.reading.labels import labels_in
from admm_softmax.reading.request import digests
from admm_softmax.storage.foreign_files import refusing
from tests.problems import make

pa = pytest.importorskip("pyarrow")

X, Y = make(30, 4, 3)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(kind=Y)


def in_blocks(request, columns=None, n_features=4):
    """All rows and labels, block by block."""
    parts = list(blocks(request, columns=columns, n_features=n_features))
    labels = [part.y for part in parts]
    return np.concatenate([np.asarray(part.X) for part in parts]), labels


# ---- shards and files of several arrays ----


def test_shards_of_arrays_are_put_together(tmp_path):
    for i, part in enumerate((slice(0, 10), slice(10, 30))):
        np.savez(tmp_path / f"part-{i}.npz", X=X[part], y=Y[part])
    found = read(Request(str(tmp_path)))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, Y)
    rows, labels = in_blocks(Request(str(tmp_path)))
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(np.concatenate(labels), Y)


def test_sparse_shards_are_stacked(tmp_path):
    for i, part in enumerate((slice(0, 10), slice(10, 30))):
        sp.save_npz(tmp_path / f"part-{i}.npz", sp.csr_array(X[part]))
    found = read(Request(str(tmp_path)))
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert found.y is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": ("z",)}, r"has no array 'z'; it has \['X', 'more', 'y'\]"),
        ({}, r"holds the arrays \['X', 'more', 'y'\]: name the rows by --key"),
        ({"key": "z"}, "has no array 'z'; it has"),
    ],
)
def test_arrays_that_must_be_named(tmp_path, settings, words):
    np.savez(tmp_path / "x.npz", X=X, more=X, y=Y)
    with pytest.raises(ValueError, match=words):
        read(Request(str(tmp_path / "x.npz"), **settings))
    found = read(Request(str(tmp_path / "x.npz"), key="X"))
    np.testing.assert_array_equal(found.y, Y)


def test_one_array_is_no_archive(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"x\.npz is not an \.npz file: it holds one array"):
        read(Request(str(tmp_path / "x.npz")))


def test_columns_of_svmlight_are_counted_from_one(tmp_path):
    path = tmp_path / "x.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=True)
    with pytest.raises(ValueError, match=r"columns are counted from 1|give --zero-based"):
        read(Request(str(path)))
    found = read(Request(str(path), zero_based=True))
    np.testing.assert_allclose(found.X.toarray(), X)


def test_halves_are_widened_exactly(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    halves = X.astype(ml_dtypes.bfloat16)
    safetensors.save_file({"X": halves, "y": Y}, tmp_path / "x.safetensors")
    request = Request(str(tmp_path / "x.safetensors"), key="X", target=("y",))
    rows, labels = in_blocks(request)
    np.testing.assert_array_equal(rows, halves.astype(np.float32))
    np.testing.assert_array_equal(np.concatenate(labels), Y)


# ---- tables ----


def test_arrow_streams_and_files_are_told_apart(tmp_path):
    table = pa.Table.from_pandas(FRAME)
    for name, opened in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        path = tmp_path / f"{name}.arrow"
        with opened(str(path), table.schema) as sink:
            sink.write_table(table, max_chunksize=12)
        found = read(Request(str(path), target=("kind",)))
        np.testing.assert_array_equal(found.X.to_numpy(), X)
        rows, _ = in_blocks(Request(str(path), target=("kind",)))
        np.testing.assert_array_equal(rows, X)
    (tmp_path / "none.arrow").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"none\.arrow is not an Arrow file"):
        read(Request(str(tmp_path / "none.arrow")))


def test_shards_with_other_columns_are_refused(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.rename(columns={"d": "e"}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match=r"shard .*b\.csv has the columns 'a', 'b', 'c', 'e'"):
        read(Request(str(tmp_path), target=("kind",)))


def test_a_column_of_vectors(tmp_path):
    pd.DataFrame({"v": list(X), "kind": Y}).to_parquet(tmp_path / "x.parquet")
    rows, labels = in_blocks(Request(str(tmp_path / "x.parquet"), target=("kind",)))
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(np.concatenate(labels), Y)


def test_one_column_by_name(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    found = read(Request(str(tmp_path / "x.csv"), target=("kind",), key="b"))
    assert found.X.columns.tolist() == ["b"]
    with pytest.raises(ValueError, match=r"has no column 'z', named by --key; it has"):
        read(Request(str(tmp_path / "x.csv"), target=("kind",), key="z"))


def test_weights_in_a_column_of_parquet(tmp_path):
    FRAME.assign(w=np.arange(30.0)).to_parquet(tmp_path / "x.parquet")
    found = read(Request(str(tmp_path / "x.parquet"), target=("kind",), weights="w"))
    np.testing.assert_array_equal(found.weights, np.arange(30.0))
    assert found.shape == (30, 4)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_a_table_without_rows(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    settings = {"index": False} if kind == "csv" else {}
    getattr(FRAME[:0], f"to_{kind}")(path, **settings)
    for reader in (read, in_blocks):
        with pytest.raises(ValueError, match=rf"x\.{kind} has no rows"):
            reader(Request(str(path), target=("kind",)))


def test_an_empty_shard_is_no_end(tmp_path):
    for name, part in (("a", FRAME[:10]), ("b", FRAME[:0]), ("c", FRAME[10:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    rows, _ = in_blocks(Request(str(tmp_path), target=("kind",)))
    np.testing.assert_allclose(rows, X)


def test_what_arrow_has_no_memory_for_is_refused_by_name():
    with (
        pytest.raises(
            ValueError, match=r"x\.parquet is not .*, or needs more memory than there is"
        ),
        refusing("x.parquet", "a Parquet file"),
    ):
        pa.allocate_buffer(1 << 60)
    with pytest.raises(MemoryError), refusing("x.npz", "an .npz file"):
        np.empty(1 << 60, np.uint8)


# ---- labels beside the rows ----


def test_labels_of_every_kind(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "y.txt").write_text("\n".join(map(str, Y)))
    (tmp_path / "names.txt").write_text("\n".join("abc"[y] for y in Y))
    FRAME[["kind"]].to_csv(tmp_path / "y.csv", index=False)
    FRAME.to_csv(tmp_path / "more.csv", index=False)
    for name in ("y.npy", "y.txt", "y.csv"):
        np.testing.assert_array_equal(labels_in(str(tmp_path / name)), Y)
    assert labels_in(str(tmp_path / "names.txt")).tolist() == ["abc"[y] for y in Y]
    np.testing.assert_array_equal(labels_in(str(tmp_path / "more.csv"), ("kind",)), Y)
    with pytest.raises(ValueError, match="name the labels by --target"):
        labels_in(str(tmp_path / "more.csv"))
    with pytest.raises(ValueError, match=r"labels must be in a \.npy, \.txt or table file, got"):
        labels_in(str(tmp_path / "y.doc"))


def test_labels_in_shards_beside_the_rows(tmp_path):
    for i, part in enumerate((slice(0, 10), slice(10, 30))):
        np.save(tmp_path / f"x-{i}.npy", X[part])
        np.save(tmp_path / f"y-{i}.npy", Y[part])
    found = read(Request(str(tmp_path)))
    np.testing.assert_array_equal(found.y, Y)
    _, labels = in_blocks(Request(str(tmp_path)))
    np.testing.assert_array_equal(np.concatenate(labels), Y)
    np.save(tmp_path / "few.npy", Y[:20])
    with pytest.raises(ValueError, match="there are 20 labels for 30 rows of"):
        in_blocks(Request(str(tmp_path / "x-*.npy"), labels=str(tmp_path / "few.npy")))


# ---- standard input ----


def test_standard_input(monkeypatch):
    def typed(content):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    typed(FRAME.to_csv(index=False).encode())
    found = read(Request("-", target=("kind",)))
    np.testing.assert_allclose(found.X.to_numpy(), X)
    assert digests(Request("-")) == []
    lines = io.BytesIO()
    dump_svmlight_file(X, Y, lines, zero_based=False)
    typed(lines.getvalue())
    np.testing.assert_allclose(read(Request("-", format="svmlight")).X.toarray(), X)
    with pytest.raises(ValueError, match="standard input must be csv, tsv or svmlight, got npz"):
        read(Request("-", format="npz"))


def test_folders_and_huge_files_are_not_hashed(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("admm_softmax.reading.request.HASHED_BYTES", 10)
    (facts,) = digests(Request(str(tmp_path / "x.npy")))
    assert facts == {"file": "x.npy", "bytes": (tmp_path / "x.npy").stat().st_size}
