import tempfile

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and a folder for temporary files that must be empty in the end."""
    folder = tmp_path / "cache"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(folder))
    monkeypatch.delenv("ADMM_SOFTMAX_DATA", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield folder
    assert not list(scratch.iterdir())
    assert all(path.suffix == ".npz" and path.name[0] != "." for path in folder.glob("*"))
