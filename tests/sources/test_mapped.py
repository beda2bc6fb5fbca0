"""Rows in the page cache are used where they lie; halves stay halves; both give the same sums."""

import numpy as np
import pytest

from admm_softmax import Problem, RowBlocks
from admm_softmax._parallel import use_threads
from admm_softmax.design import Design, StreamedDesign, reader
from admm_softmax.kernels import rows, thresholds
from admm_softmax.sources import files, mapping
from admm_softmax.sources.files import npy_rows
from admm_softmax.sources.mapping import is_mapped
from tests.problems import make

N, D, K = 501, 6, 3
SLICES = [slice(3, 40), slice(40, 41), slice(100, N)]

needs_linux = pytest.mark.skipif(mapping._mincore() is None, reason="the kernel cannot be asked")


def written(folder, dtype=np.float64):
    X, y = make(N, D, K)
    X = X.astype(dtype)
    np.save(folder / "x.npy", X)
    return X, y


def not_in_memory(monkeypatch):
    """As if the page cache had dropped all files."""
    monkeypatch.setattr(files, "mapped", lambda *given: None)


def gradient(design, y):
    labels, w = design.place(y), design.place(np.full(N, 1 / N))
    W = np.random.default_rng(1).standard_normal((design.n_features, K))
    return design.fold(W, rows.gradient, (labels, w)).product


@needs_linux
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8])
def test_rows_in_the_page_cache_are_not_copied(tmp_path, dtype):
    X, _ = written(tmp_path, dtype)
    pieces = list(npy_rows(tmp_path / "x.npy").read(SLICES))
    assert [first for first, _ in pieces] == [part.start for part in SLICES]
    for part, (_, piece) in zip(SLICES, pieces, strict=True):  # they last
        assert is_mapped(piece)
        np.testing.assert_array_equal(piece, X[part])
        assert not piece.flags.writeable
    assert not is_mapped(X)


def test_rows_that_are_not_there_are_read(tmp_path, monkeypatch):
    X, y = written(tmp_path)
    expected = gradient(StreamedDesign(RowBlocks(tmp_path / "x.npy")), y)
    not_in_memory(monkeypatch)
    found = [(start, piece.copy()) for start, piece in npy_rows(tmp_path / "x.npy").read(SLICES)]
    np.testing.assert_array_equal(
        np.concatenate([piece for _, piece in found]), np.concatenate([X[part] for part in SLICES])
    )
    np.testing.assert_array_equal(
        gradient(StreamedDesign(RowBlocks(tmp_path / "x.npy")), y), expected
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_any_slice_is_read_to_its_place(tmp_path, dtype):
    X, _ = written(tmp_path, dtype)
    for i, part in enumerate(np.split(X, [7, 7, 40])):
        np.save(tmp_path / f"x-{i}.npy", part)
    for source in (RowBlocks(tmp_path / "x.npy"), RowBlocks(tmp_path / "x-*.npy")):
        assert source.fills
        for rows_of in [slice(0, N), slice(6, 41), slice(7, 8), slice(39, 40)]:
            out = np.empty_like(X[rows_of])
            source.fill(rows_of, out)
            np.testing.assert_array_equal(out, X[rows_of])
    assert source.mapped(slice(6, 8)) is None  # in two files
    assert not RowBlocks(tmp_path / "x.npy", transform=np.abs).fills
    assert not source.picked(np.arange(0, N, 2)).fills


def test_blocks_of_the_type_to_compute_in_are_read_without_a_copy(
    tmp_path, monkeypatch, small_blocks
):
    X, y = written(tmp_path)
    expected = gradient(StreamedDesign(RowBlocks(X)), y)
    not_in_memory(monkeypatch)
    monkeypatch.setattr(files.FileRows, "read", None)
    design = StreamedDesign(RowBlocks(tmp_path / "x.npy", memory_limit="20kB"))
    design.reader.keeps = False
    np.testing.assert_array_equal(gradient(design, y), expected)
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(128 + 300 * 8 * D + 1)
    with pytest.raises(ValueError, match=r"x.npy ends at row 300: it became shorter"):
        gradient(design, y)


@needs_linux
def test_neighbours_are_mapped_together(tmp_path, monkeypatch, small_blocks):
    X, y = written(tmp_path)
    for i, part in enumerate(np.split(X, [300])):
        np.save(tmp_path / f"x-{i}.npy", part)
    expected, asked = gradient(StreamedDesign(RowBlocks(X)), y), []

    def noted(file, offset, shape, dtype):
        asked.append(shape[0])
        return mapping.mapped(file, offset, shape, dtype)

    monkeypatch.setattr(files, "mapped", noted)
    design = StreamedDesign(RowBlocks(tmp_path / "x-*.npy"))
    design.reader.keeps = False
    np.testing.assert_array_equal(gradient(design, y), expected)
    blocks, rows_each = len(design.reader.cuts), design.reader.block_rows
    assert max(asked) == reader.BLOCKS_TOGETHER * rows_each
    # Where one file ends and the next begins, the blocks around are mapped one by one.
    assert len(asked) <= blocks / reader.BLOCKS_TOGETHER + reader.BLOCKS_TOGETHER + 1
    order = [7, 2, 5, 6, 4, 0, 9, 8]
    for number, block in zip(order, design.reader.blocks(0, order), strict=True):
        assert block.number == number
        np.testing.assert_array_equal(block.X, X[block.rows])


@needs_linux
def test_pages_that_the_kernel_does_not_hold_are_not_mapped(tmp_path, monkeypatch):
    X, _ = written(tmp_path)
    asked = []

    def nothing_there(address, size, answer):
        asked.append(address % mapping.mmap.PAGESIZE)
        answer[0] = 0
        return 0

    monkeypatch.setattr(mapping, "_mincore", lambda: nothing_there)
    ((_, piece),) = npy_rows(tmp_path / "x.npy").read([slice(0, N)])
    assert asked == [0]
    assert not is_mapped(piece)
    np.testing.assert_array_equal(piece, X)


@needs_linux
def test_blocks_that_are_kept_are_copies(tmp_path, small_blocks):
    _, y = written(tmp_path)
    design = StreamedDesign(RowBlocks(tmp_path / "x.npy"))
    before = gradient(design, y)
    assert len(design.reader.cache) == len(design.reader.cuts) > 1
    assert not any(map(is_mapped, design.reader.cache.values()))
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(200)
    np.testing.assert_array_equal(gradient(design, y), before)


def halves(kind):
    return pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.float16


@pytest.fixture
def always_compiled(monkeypatch):
    monkeypatch.setattr(thresholds, "COMPILED_FROM_ENTRIES", 0)
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("in_page_cache", [True, False])
def test_halves_are_widened_in_the_pass(
    tmp_path, monkeypatch, small_blocks, always_compiled, kind, in_page_cache
):
    if not in_page_cache:
        not_in_memory(monkeypatch)
    X, y = make(N, D, K)
    X = X.astype(halves(kind))
    for i, part in enumerate(np.split(X, [7, 40])):  # blocks that begin in one file end in another
        np.save(tmp_path / f"x-{i}.npy", part)
    wide = StreamedDesign(RowBlocks(X.astype(np.float32)))
    expected = gradient(wide, y)
    for limit in ("20kB", "1MB"):
        for threads in (1, 3):
            design = StreamedDesign(RowBlocks(tmp_path / "x-*.npy", memory_limit=limit))
            assert design.reader.half == kind
            with use_threads(threads):
                for _ in range(2):
                    np.testing.assert_array_equal(gradient(design, y), expected)
            assert {block.dtype for block in design.reader.cache.values()} <= {np.dtype("u2")}
    # Everything else widens a block at a time.
    np.testing.assert_array_equal(design.rows_at(np.arange(N)), X.astype(np.float32))
    w = np.full(N, 1 / N)
    np.testing.assert_array_equal(design.gram(design.place(w)), wide.gram(wide.place(w)))
    W = np.random.default_rng(1).standard_normal((D + 1, K))
    np.testing.assert_array_equal(
        design.map_scores(W, lambda S: S), wide.map_scores(W, lambda S: S)
    )


def test_twice_as_many_halves_fit(tmp_path, small_blocks, always_compiled):
    X, y = written(tmp_path, np.float16)
    np.save(tmp_path / "wide.npy", X.astype(np.float32))
    kept = {}
    for name in ("x.npy", "wide.npy"):
        design = StreamedDesign(RowBlocks(tmp_path / name, memory_limit="6kB"))
        gradient(design, y)
        kept[name] = len(design.reader.cache)
    assert kept["x.npy"] >= 2 * kept["wide.npy"] > 0


def test_nan_among_halves_is_found(tmp_path, small_blocks, always_compiled):
    X, y = written(tmp_path, np.float16)
    for value in (np.nan, np.inf, -np.inf):
        X[123, 2] = value
        np.save(tmp_path / "x.npy", X)
        with pytest.raises(ValueError, match=r"NaN or infinity in row 123 of .*x\.npy"):
            Problem.of(RowBlocks(tmp_path / "x.npy"), y).at(np.zeros((D + 1, K)))
