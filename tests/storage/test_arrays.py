"""Arrays on disk."""

import numpy as np
import pytest

from admm_softmax.storage import arrays


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    def interrupted(file, array):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arrays.save(tmp_path / "x.npy", np.zeros(3))
    assert not list(tmp_path.iterdir())
