"""Files of every kind give the rows that were written, and say what is wrong with them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.preprocessing import StandardScaler

from admm_softmax import RowBlocks, SoftmaxRegression, as_design
from admm_softmax.features import RandomConvolution
from admm_softmax.kernels.widening import widen
from admm_softmax.sources import open_rows
from admm_softmax.sources.base import clipped
from admm_softmax.sources.memory import free_memory, memory_bytes
from tests.sources.makers import HALVES, KINDS, shards

N, D = 83, 5


def rows(dtype=np.float64):
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)).astype(dtype), rng.integers(0, 3, N)


def matrix(X):
    """Everything a source holds, as a design reads it."""
    return as_design(X, intercept=False).block(slice(0, N))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_and_labels_are_those_written(kind, dtype, tmp_path, small_blocks):
    X, y = rows(dtype)
    opened, labels = open_rows(*KINDS[kind](tmp_path, X, y))
    assert (opened.n_rows, opened.n_features, opened.working_dtype) == (N, D, X.dtype)
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(matrix(opened), X)


@pytest.mark.parametrize("kind", KINDS)
def test_any_slices_can_be_read(kind, tmp_path):
    X, y = rows()
    opened, _ = open_rows(*KINDS[kind](tmp_path, X, y))
    wanted = [slice(0, 2), slice(2, 9), slice(30, 55), slice(80, N)]
    places = []
    for first, piece in opened.read(wanted):
        np.testing.assert_array_equal(piece, X[first : first + len(piece)])
        places.extend(range(first, first + len(piece)))
        assert any(s.start <= first and first + len(piece) <= s.stop for s in wanted)
    assert places == [i for s in wanted for i in range(s.start, s.stop)]


@pytest.mark.parametrize("kind", HALVES)
def test_float16_is_read_as_it_is_and_widened(kind, tmp_path, small_blocks):
    X, y = rows(np.float16)
    opened, _ = open_rows(*KINDS[kind](tmp_path, X, y))
    assert (opened.dtype, opened.working_dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(matrix(opened), X.astype(np.float32))


@pytest.mark.parametrize("kind", ["npy", "npy_pattern", "safetensors", "h5py_dataset"])
def test_bfloat16_is_read_as_it_is_and_widened(kind, tmp_path, small_blocks):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    X, y = rows()
    X = X.astype(bfloat16)
    opened, _ = open_rows(*KINDS[kind](tmp_path, X, y))
    assert opened.dtype.itemsize == 2
    np.testing.assert_array_equal(matrix(opened), X.astype(np.float32))


def test_every_float16_is_widened_exactly_by_compiled_code():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    out, expected = np.empty((2, 1 << 16), np.float32)
    widen(halves, out, compiled=True)
    widen(halves, expected)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))


@pytest.mark.parametrize(
    ("stored", "working"),
    [
        ("uint8", "float32"),
        ("int16", "float32"),
        ("int32", "float64"),
        (">f4", "float32"),
        ("?", "float32"),
    ],
)
def test_other_types(stored, working, tmp_path):
    X = (10 * rows()[0]).astype(stored)
    np.save(tmp_path / "x.npy", X)
    assert RowBlocks(tmp_path / "x.npy").working_dtype == working
    np.testing.assert_array_equal(matrix(tmp_path / "x.npy"), X.astype(working))
    assert RowBlocks(tmp_path / "x.npy", dtype=np.float64).working_dtype == np.float64


def test_a_part_of_a_memory_map_is_read_from_its_file(tmp_path):
    X, _ = rows()
    np.save(tmp_path / "x.npy", np.vstack([X, X]))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert RowBlocks(mapped[N:]).source.name == str(tmp_path / "x.npy")
    for part in (
        mapped[N:],
        mapped[N:][:, 1:],
        mapped[1::2],
        np.load(tmp_path / "x.npy", mmap_mode="c"),
    ):
        found = as_design(RowBlocks(part), intercept=False).block(slice(0, len(part)))
        np.testing.assert_array_equal(found, part)


def test_functions_and_transformers_sit_between_file_and_solver(tmp_path, small_blocks):
    X, _ = rows()
    np.save(tmp_path / "x.npy", X)
    scaler = StandardScaler().fit(X)
    blocks = RowBlocks(tmp_path / "x.npy", transform=scaler, n_features=D)
    np.testing.assert_allclose(matrix(blocks), scaler.transform(X), rtol=1e-12)
    twice = RowBlocks(blocks, transform=lambda block: np.hstack([block, block**2]))
    assert twice.n_features == 2 * D
    np.testing.assert_allclose(matrix(twice)[:, D:], scaler.transform(X) ** 2, rtol=1e-12)
    with pytest.raises(ValueError, match="one row per row"):
        RowBlocks(X, transform=lambda block: block[:, 0])
    with pytest.raises(TypeError, match="transform must be a function"):
        RowBlocks(X, transform=3)


def test_a_convolution_need_not_be_fitted(tmp_path):
    images = np.random.default_rng(0).random((20, 6, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", images)
    blocks = RowBlocks(tmp_path / "x.npy", transform=RandomConvolution(2))
    expected = RandomConvolution(2).fit_transform(images)
    found = as_design(blocks, intercept=False).block(slice(0, 20))
    np.testing.assert_array_equal(found, expected)


def test_pieces_are_clipped_to_slices():
    pieces = [(0, "ab"), (2, ""), (2, "cdef"), (6, "gh")]
    assert list(clipped(pieces, [])) == []
    assert list(clipped(pieces, [slice(0, 8)])) == [(0, "ab"), (2, "cdef"), (6, "gh")]
    assert list(clipped(pieces, [slice(3, 4), slice(5, 7)])) == [(3, "d"), (5, "f"), (6, "g")]


def test_memory_limits():
    assert memory_bytes("2MB") == 2 << 20
    assert memory_bytes("1 GiB") == 1 << 30
    assert 0 < memory_bytes(None) <= free_memory()
    for wrong in ("much", "-1", 0, True):
        with pytest.raises(ValueError, match="memory_limit must be"):
            RowBlocks(np.ones((3, 2)), memory_limit=wrong)
    with pytest.raises(ValueError, match="memory_limit must be at least 48 bytes"):
        as_design(RowBlocks(np.ones((3, 2)), memory_limit=40))


# ---- what is wrong with files ----


def test_shards_of_other_width_or_type_are_named(tmp_path):
    X, y = rows()
    shards(tmp_path, X, y)
    np.save(tmp_path / "x-2.npy", X[40:, :3])
    with pytest.raises(ValueError, match=r"shard 2, .*x-2.npy, has rows of shape \(3,\)"):
        as_design(str(tmp_path / "x-*.npy"))
    np.save(tmp_path / "x-2.npy", X[40:].astype(np.float32))
    with pytest.raises(ValueError, match=r"shard 2, .*x-2.npy, holds float32"):
        as_design(str(tmp_path / "x-*.npy"))


def test_labels_of_another_length_are_named(tmp_path):
    X, y = rows()
    shards(tmp_path, X, y)
    np.save(tmp_path / "y-1.npy", y[:5])
    with pytest.raises(ValueError, match=r"y-1.npy has 5 labels for 33 rows of .*x-1.npy"):
        SoftmaxRegression().fit(str(tmp_path / "x-*.npy"), str(tmp_path / "y-*.npy"))
    with pytest.raises(ValueError, match="2 shards for 3 shards"):
        SoftmaxRegression().fit(str(tmp_path / "x-*.npy"), str(tmp_path / "y-[01].npy"))
    with pytest.raises(ValueError, match="y has 82 entries for 83 rows"):
        SoftmaxRegression().fit(str(tmp_path / "x-*.npy"), y[1:])
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"o.npy does not hold labels"):
        SoftmaxRegression().fit(str(tmp_path / "x-*.npy"), tmp_path / "o.npy")


def test_shards_without_rows_have_labels_beside_them_too(tmp_path):
    X, y = rows()
    shards(tmp_path, X, y, cuts=(0, 40, 40))
    fitted = SoftmaxRegression(tol=1e-8).fit(str(tmp_path / "x-*.npy"), str(tmp_path / "y-*.npy"))
    expected = SoftmaxRegression(tol=1e-8).fit(X, y).coef_
    np.testing.assert_allclose(fitted.coef_, expected, rtol=1e-8, atol=1e-12)
    np.save(tmp_path / "y-0.npy", y[:1])
    with pytest.raises(ValueError, match=r"y-0.npy has 1 labels for 0 rows of .*x-0.npy"):
        SoftmaxRegression().fit(str(tmp_path / "x-*.npy"), str(tmp_path / "y-*.npy"))


def test_nan_is_found_in_the_first_pass_by_file_and_row(tmp_path, small_blocks):
    X, y = rows()
    X[61, 2] = np.nan
    shards(tmp_path, X, y)
    with pytest.raises(ValueError, match=r"NaN or infinity in row 21 of .*x-2.npy"):
        SoftmaxRegression(solver="lbfgs").fit(str(tmp_path / "x-*.npy"), y)


def test_a_large_sum_is_not_taken_for_infinity():
    X = np.full((3, 2), 1e38, np.float32)
    assert as_design(RowBlocks(X)).block(slice(0, 3)).shape == (3, 2)


def wrong_npy(path, content):
    path.write_bytes(content)
    return path


def test_malformed_npy_files(tmp_path):
    X, _ = rows()
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    cases = {
        "truncated?": wrong_npy(tmp_path / "short.npy", whole[:-9]),
        "is not a .npy file": wrong_npy(tmp_path / "text.npy", b"no rows here"),
    }
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    cases["stored column by column"] = tmp_path / "f.npy"
    np.save(tmp_path / "cube.npy", X.reshape(N, D, 1))
    cases["must be two-dimensional"] = tmp_path / "cube.npy"
    np.save(tmp_path / "empty.npy", X[:0])
    cases["holds no rows"] = tmp_path / "empty.npy"
    for words, path in cases.items():
        with pytest.raises(ValueError, match=words) as error:
            as_design(path)
        assert path.name in str(error.value)
    np.save(tmp_path / "o.npy", X.astype(object), allow_pickle=True)
    with pytest.raises(TypeError, match=r"o.npy must hold real numbers, got type object"):
        as_design(tmp_path / "o.npy")
    np.save(tmp_path / "c.npy", X.astype(complex))
    with pytest.raises(TypeError, match=r"c.npy must hold real numbers, got type complex128"):
        as_design(tmp_path / "c.npy")


def test_a_file_that_becomes_shorter_is_an_error(tmp_path):
    X, _ = rows()
    np.save(tmp_path / "x.npy", X)
    design = as_design(tmp_path / "x.npy")
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-100])
    with pytest.raises(ValueError, match=r"x.npy ends at row"):
        design.block(slice(0, N))


def test_missing_and_unknown_files(tmp_path):
    for missing in (tmp_path / "x.npy", str(tmp_path / "x-*.npy"), [str(tmp_path / "a.npy")]):
        with pytest.raises(FileNotFoundError, match=r"x|a.npy"):
            SoftmaxRegression().fit(missing, [0, 1])
    (tmp_path / "x.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"x.csv must be one of .npy"):
        as_design(tmp_path / "x.csv")


def test_malformed_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="not a safetensors file"):
        as_design(path)
    header = json.dumps(
        {"x": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}}
    ).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(TypeError, match=r"must hold real numbers, got type F8_E4M3"):
        as_design(path)
    with pytest.raises(ValueError, match=r"has no tensor 'z'; it holds \['x'\]"):
        RowBlocks(path, key="z")


@pytest.mark.parametrize("kind", ["hdf5", "zarr_path"])
def test_malformed_containers(kind, tmp_path):
    X, y = rows()
    path, _ = KINDS[kind](tmp_path, X, y)
    if kind == "hdf5":
        np.testing.assert_array_equal(matrix(RowBlocks(path, key="rows/x")), X)
        with pytest.raises(ValueError, match="has no data set 'z'"):
            RowBlocks(path, key="z")
    wrong = tmp_path / f"wrong{path.suffix if kind == 'hdf5' else '.zarr'}"
    wrong.write_bytes(b"nothing") if kind == "hdf5" else wrong.mkdir()
    with pytest.raises(ValueError, match=r"wrong.* is not a"):
        as_design(wrong)


def test_columns_of_parquet_files(tmp_path):
    X, y = rows()
    path, _ = KINDS["columns"](tmp_path, X, y)
    np.testing.assert_array_equal(matrix(RowBlocks(path, key=["c3", "c0"])), X[:, [3, 0]])
    with pytest.raises(ValueError, match="has no column 'z'"):
        open_rows(path, "z")
    with pytest.raises(ValueError, match="has no column 'z'"):
        RowBlocks(path, key="z")
    table = pq.read_table(path)
    pq.write_table(table.append_column("s", pa.array(["a"] * N)), tmp_path / "s.parquet")
    with pytest.raises(TypeError, match=r"column 's' of .*s.parquet must hold numbers, got string"):
        as_design(tmp_path / "s.parquet")
    # Rows that were opened before the labels were named lose the column of the labels.
    opened, labels = open_rows(RowBlocks(path), "label")
    assert opened.feature_names == [f"c{j}" for j in range(D)]
    np.testing.assert_array_equal(labels, y)


def test_malformed_parquet_files(tmp_path):
    X, y = rows()
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no rows here, too")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        as_design(path)
    pq.write_table(pa.table({"a": pa.array([1.0, None])}), path)
    with pytest.raises(ValueError, match=r"x.parquet or after: column 'a' has nulls"):
        as_design(path).block(slice(0, 2))
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), path)
    with pytest.raises(ValueError, match="the vectors of column 'v' must all have"):
        as_design(path).block(slice(0, 2))
    folder = tmp_path / "files"
    folder.mkdir()
    KINDS["vectors"](folder, X, y)
    pq.write_table(pa.table({"vector": [1.0]}), folder / "v-2.parquet")
    with pytest.raises(ValueError, match=r"file 2, .*v-2.parquet, has double in column 'vector'"):
        as_design(str(folder / "v-*.parquet"))


def test_blocks_that_differ_from_what_was_said(small_blocks):
    X, y = rows()
    wide = RowBlocks(lambda: iter([X[:40], X[40:, :2]]), n_rows=N)
    with pytest.raises(ValueError, match=r"block 1 of the blocks has rows of shape \(2,\)"):
        SoftmaxRegression().fit(wide, y)
    for n_rows, words in (
        (N + 1, f"hold {N} rows, n_rows is {N + 1}"),
        (N - 1, "more rows than n_rows"),
    ):
        blocks = RowBlocks(lambda: iter([X[:40], X[40:]]), n_rows=n_rows)
        with pytest.raises(ValueError, match=words):
            SoftmaxRegression().fit(blocks, np.arange(n_rows) % 3)
    with pytest.raises(ValueError, match="5 columns in block 0, n_features is 4"):
        RowBlocks(lambda: iter([X]), n_features=4)
    with pytest.raises(TypeError, match="readable more than once"):
        RowBlocks(iter([X]))
    with pytest.raises(TypeError, match="rows must be files, arrays or blocks"):
        RowBlocks(3)
    with pytest.raises(ValueError, match="n_rows is 4"):
        RowBlocks(X, n_rows=4)
