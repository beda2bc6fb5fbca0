"""What the tests of checkpoints share."""

import pytest

from admm_softmax.storage import bundles


@pytest.fixture
def writes(monkeypatch):
    """The names of the files that are written, in order."""
    names = []
    write = bundles.write

    def noted(path, content):
        names.append(path.stem)
        write(path, content)

    monkeypatch.setattr(bundles, "write", noted)
    return names
