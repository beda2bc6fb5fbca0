"""Folders that results are kept in."""

import pytest

from admm_softmax.storage.folders import cache_folder, make_writable


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.delenv("ADMM_SOFTMAX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "admm-softmax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "admm-softmax"


def test_a_folder_that_cannot_be_made(tmp_path):
    make_writable(tmp_path / "a" / "b")
    assert not list((tmp_path / "a" / "b").iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_writable(tmp_path / "file")
