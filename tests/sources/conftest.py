"""Blocks of a few rows, so that small data have many."""

import pytest

from admm_softmax.design import reader


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reader, "READ_BLOCK_BYTES", 500)
    monkeypatch.setattr(reader, "LEAST_READ_ROWS", 1)
