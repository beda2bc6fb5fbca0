"""Rows in files keep the contract of designs, for any size of blocks and any cache."""

import numpy as np
import pytest

from admm_softmax import RowBlocks
from admm_softmax.contracts import check_design
from admm_softmax.design import Design, StreamedDesign, reader
from tests.sources.makers import KINDS

#: Bytes of a block, and the limit of memory: all blocks fit, or about half of them.
ONE, MANY, FEW_KEPT = (1 << 20, None), (8 * 7 * 5, None), (8 * 7 * 5, 3800)


def check(kind, blocks, folder, monkeypatch, **settings):
    size, limit = blocks
    monkeypatch.setattr(reader, "LEAST_READ_ROWS", 1)
    monkeypatch.setattr(reader, "READ_BLOCK_BYTES", size)

    def factory(X, intercept):
        place = folder / str(len(list(folder.iterdir())))
        place.mkdir()
        rows, _ = KINDS[kind](place, X, np.zeros(len(X), int))
        return StreamedDesign(RowBlocks(rows, memory_limit=limit, **settings), intercept=intercept)

    check_design(factory)


@pytest.mark.parametrize(
    ("kind", "blocks"),
    [
        ("npy", ONE),
        ("npy_pattern", MANY),
        ("npy_pattern", FEW_KEPT),
        ("vectors", FEW_KEPT),
        ("function", FEW_KEPT),
        ("in_memory", MANY),
        ("transformed", MANY),
    ],
)
def test_the_contract(kind, blocks, tmp_path, monkeypatch):
    check(kind, blocks, tmp_path, monkeypatch)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_contract_in_compiled_passes(dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(Design, "compiles", lambda self, columns, **_: True)
    check("npy_pattern", MANY, tmp_path, monkeypatch, dtype=dtype)


@pytest.mark.parametrize("state_dtype", [np.float32, np.float64])
def test_the_contract_with_row_state_in_files(state_dtype, tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    settings = {"state_dtype": state_dtype, "state_dir": tmp_path / "state"}
    check("npy", MANY, tmp_path / "files", monkeypatch, **settings)
    assert list((tmp_path / "state").iterdir()) == []
