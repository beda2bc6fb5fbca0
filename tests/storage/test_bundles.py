"""Numbers, texts and arrays in one file come back as they were."""

import numpy as np
import pytest

from admm_softmax.storage import bundles


def test_what_is_written_comes_back(tmp_path):
    W, F = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3))
    content = {
        "W": W,
        "again": [W, {"deep": W}],
        "F": F,
        "state": 2**100,
        "odd": [np.inf, -np.inf, 0.1 + 0.2],
        "nan": np.nan,
        "numpy": np.float64(1.5),
        "flag": np.bool_(True),
        "none": None,
        "empty": np.zeros((0, 3), np.float32),
        "text": "ρ",
    }
    bundles.write(tmp_path / "a.npz", content)
    found = bundles.read(tmp_path / "a.npz")
    np.testing.assert_array_equal(found["W"], W)
    assert found["again"][0] is found["W"]
    assert found["again"][1]["deep"] is found["W"]
    assert found["F"].flags.f_contiguous  # sums over an array depend on its order
    assert found["empty"].dtype == np.float32
    assert found["empty"].shape == (0, 3)
    assert np.isnan(found["nan"])
    same = ("state", "odd", "numpy", "flag", "none", "text")
    assert {k: found[k] for k in same} == {k: content[k] for k in same}
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_no_file_is_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert bundles.read(tmp_path / "a.npz") is None
    assert bundles.read(tmp_path / "file" / "a.npz") is None


@pytest.mark.parametrize("how", ["truncated", "empty", "flipped", "text", "pickle", "list"])
def test_damage_is_found(tmp_path, how):
    path = tmp_path / "a.npz"
    bundles.write(path, {"W": np.zeros((50, 3))})
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        path.write_bytes(whole[:600] + bytes([whole[600] ^ 1]) + whole[601:])
    elif how == "text":
        path.write_text("not a checkpoint")
    elif how == "pickle":
        np.savez(path, structure=np.array([{}], dtype=object))
    else:
        np.savez(path, structure=np.frombuffer(b"[1]", np.uint8))
    with pytest.raises(bundles.DamagedError):
        bundles.read(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npz"
    bundles.write(path, {"number": 1})
    with pytest.raises(TypeError):
        bundles.write(path, {"number": object()})
    assert bundles.read(path) == {"number": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
