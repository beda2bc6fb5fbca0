"""AlexNetPool5 against the same network in NumPy, and its cache."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from admm_softmax.datasets import DatasetError
from admm_softmax.features import AlexNetPool5, alexnet
from admm_softmax.storage import arrays

SHAPES = [(64, 3, 11, 11), (192, 64, 5, 5), (384, 192, 3, 3), (256, 384, 3, 3), (256, 256, 3, 3)]


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    named = {}
    for k, shape in enumerate(SHAPES, 1):
        scale = np.sqrt(2 / np.prod(shape[1:]))
        named[f"w{k}"] = (scale * rng.standard_normal(shape)).astype(np.float32)
        named[f"b{k}"] = (0.1 * rng.standard_normal(shape[0])).astype(np.float32)
    return named


def photos(n=2, h=32, w=32):
    return np.random.default_rng(1).integers(0, 256, (n, h, w, 3), dtype=np.uint8)


def resized(images, side):
    """Bilinear, half-pixel centres, borders repeated; images (n, h, w, c)."""
    for axis in (1, 2):
        size = images.shape[axis]
        at = np.clip((np.arange(side) + 0.5) * size / side - 0.5, 0, None)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, size - 1)
        part = np.expand_dims(at - low, tuple(k for k in range(4) if k != axis))
        images = images.take(low, axis) * (1 - part) + images.take(high, axis) * part
    return images


def convolved(x, weight, bias, stride, padding):
    """Convolution of (n, c, h, w), as networks define it."""
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    windows = sliding_window_view(x, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    y = np.tensordot(windows, weight.astype(np.float64), ((1, 4, 5), (1, 2, 3)))
    return y.transpose(0, 3, 1, 2) + bias[:, None, None]


def network(images, weights):
    """The documented network, in float64."""
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    x = (resized(images.astype(np.float64), 227) / 255 - mean) / std
    x = x.transpose(0, 3, 1, 2)
    for k, (stride, padding) in enumerate([(4, 2), (1, 2), (1, 1), (1, 1), (1, 1)], 1):
        x = np.maximum(convolved(x, weights[f"w{k}"], weights[f"b{k}"], stride, padding), 0)
        if k in (1, 2, 5):
            x = sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5))
    assert x.shape[1:] == (256, 6, 6)
    return x.reshape(len(x), -1)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("size", [(32, 32), (240, 17)])
def test_is_the_network_in_numpy(weights, size):
    images = photos(2, *size)
    features = AlexNetPool5(weights).fit_transform(images)
    expected = network(images, weights)
    assert features.shape == (2, 9216)
    assert features.dtype == np.float32
    assert features.flags.c_contiguous
    np.testing.assert_allclose(features, expected, atol=1e-5 * expected.max())


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_batches_and_flat_images_agree(weights):
    images = photos(5, 8, 6)
    images.flags.writeable = False
    expected = AlexNetPool5(weights).fit_transform(images)
    by_two = AlexNetPool5(weights, batch_size=2).fit_transform(images)
    flat = AlexNetPool5(weights, image_shape=(8, 6, 3)).fit_transform(images.reshape(5, -1))
    np.testing.assert_allclose(by_two, expected, atol=1e-4)
    np.testing.assert_array_equal(flat, expected)


@pytest.mark.torch
def test_torch_keeps_its_threads(weights, torch, monkeypatch):
    before, seen = torch.get_num_threads(), []

    def interrupted(torch, x, tensors):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr(alexnet, "_pool5", interrupted)
    torch.set_num_threads(3)
    with pytest.raises(KeyboardInterrupt):
        AlexNetPool5(weights).fit_transform(photos())
    assert seen == [1]
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_bits_do_not_depend_on_threads(weights):
    images = photos(5)
    one, three = (
        AlexNetPool5(weights, batch_size=2, n_threads=k).fit_transform(images) for k in (1, 3)
    )
    np.testing.assert_array_equal(one, three)


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_progress_is_shown_if_asked(weights, capsys, monkeypatch):
    monkeypatch.setattr("admm_softmax.progress.SECONDS_BETWEEN_LINES", 0.0)
    AlexNetPool5(weights).fit_transform(photos(1))
    assert capsys.readouterr() == ("", "")
    AlexNetPool5(weights, verbose=True).fit_transform(photos(1))
    assert "AlexNet 1 of 1" in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_names_and_frames(weights):
    transformer = AlexNetPool5(weights).set_output(transform="pandas")
    frame = transformer.fit_transform(photos(1))
    assert list(frame.columns) == list(transformer.get_feature_names_out())
    assert frame.columns[36 + 6 + 2] == "pool5_1_1_2"


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_clones_and_pickles(weights):
    images = photos(1)
    transformer = AlexNetPool5(weights, batch_size=3).fit(images)
    with pytest.raises(NotFittedError):
        clone(transformer).transform(images)
    features = transformer.transform(images)
    for twin in (pickle.loads(pickle.dumps(transformer)), clone(transformer).fit(images)):
        assert twin.batch_size == 3
        np.testing.assert_array_equal(twin.transform(images), features)


@pytest.mark.torch
@pytest.mark.usefixtures("torch")
def test_weights_come_from_the_data_sets_by_default(weights, monkeypatch):
    monkeypatch.setattr("admm_softmax.features.alexnet.alexnet_weights", lambda: weights)
    np.testing.assert_array_equal(
        AlexNetPool5().fit_transform(photos(1)), AlexNetPool5(weights).fit_transform(photos(1))
    )


@pytest.fixture
def counted(monkeypatch):
    """Stands in for the network: quick, and counts its calls."""
    calls = []

    def compute(self, images, weights):
        calls.append(len(images))
        return np.full((len(images), 9216), len(calls), np.float32)

    monkeypatch.setattr(AlexNetPool5, "_compute", compute)
    return calls


def test_results_are_kept_on_disk(weights, tmp_path, counted, monkeypatch):
    folder = tmp_path / "a" / "b"
    transformer = AlexNetPool5(weights, cache_dir=folder).fit(photos())
    first = transformer.transform(photos())
    monkeypatch.setitem(sys.modules, "torch", None)
    np.testing.assert_array_equal(transformer.transform(photos()), first)
    assert counted == [2]
    [file] = folder.iterdir()
    assert file.name.startswith("alexnet-pool5-1-")
    assert arrays.digest([photos()]) in file.name
    np.testing.assert_array_equal(np.load(file), first)


def test_other_images_or_weights_are_other_files(weights, tmp_path, counted):
    images = photos(4, 8, 8)
    AlexNetPool5(weights, cache_dir=tmp_path).fit_transform(images)
    AlexNetPool5(weights, cache_dir=tmp_path).fit_transform(images.reshape(4, 16, 4, 3))
    AlexNetPool5(weights, cache_dir=tmp_path).fit_transform(images[::-1])
    other = {**weights, "b5": weights["b5"] + 1}
    AlexNetPool5(other, cache_dir=tmp_path).fit_transform(images)
    assert counted == [4] * 4
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("harm", ["cut", "empty", "header", "other array", "pickle"])
def test_a_damaged_file_is_computed_again(weights, tmp_path, counted, harm):
    transformer = AlexNetPool5(weights, cache_dir=tmp_path).fit(photos())
    transformer.transform(photos())
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    if harm == "other array":
        np.save(file, np.zeros((2, 9215), np.float32))
    elif harm == "pickle":
        np.save(file, np.array([{}]), allow_pickle=True)
    else:
        broken = {"cut": content[:-1], "empty": b"", "header": content.replace(b"9216", b"99}6")}
        file.write_bytes(broken[harm])
    assert transformer.transform(photos()).max() == 2
    assert transformer.transform(photos()).max() == 2
    assert counted == [2, 2]
    assert list(tmp_path.iterdir()) == [file]


def test_trouble_with_the_machine_is_not_damage(weights, tmp_path, counted, monkeypatch):
    transformer = AlexNetPool5(weights, cache_dir=tmp_path).fit(photos())
    transformer.transform(photos())

    def read(*_, **__):
        raise OSError("too many open files")

    monkeypatch.setattr(np.lib.format, "read_array", read)
    with pytest.raises(OSError, match="too many open files"):
        transformer.transform(photos())
    assert counted == [2]


def test_features_survive_a_cache_that_cannot_be_written(weights, tmp_path, counted):
    (tmp_path / "file").touch()
    transformer = AlexNetPool5(weights, cache_dir=tmp_path / "file").fit(photos())
    with pytest.warns(UserWarning, match="no cache file written"):
        assert transformer.transform(photos()).shape == (2, 9216)


def test_missing_torch_is_named(weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs torch: pip install 'admm-softmax\[torch\]'"):
        AlexNetPool5(weights).fit_transform(photos())


def test_missing_weights_are_named(monkeypatch):
    def alexnet_weights():
        raise DatasetError("no such file")

    monkeypatch.setattr("admm_softmax.features.alexnet.alexnet_weights", alexnet_weights)
    with pytest.raises(RuntimeError, match=r"no pre-trained parameters: give it `weights`"):
        AlexNetPool5().fit_transform(photos())


def test_weights_are_checked(weights):
    transformer = AlexNetPool5([1, 2]).fit(photos())
    with pytest.raises(TypeError, match="weights must be a mapping of ten arrays, got list"):
        transformer.transform(photos())
    transformer.weights = {"w1": weights["w1"]}
    with pytest.raises(ValueError, match=r"weights must be ten arrays .* got 1"):
        transformer.transform(photos())
    transformer.weights = {**weights, "w1": weights["w1"].transpose(2, 3, 1, 0)}
    with pytest.raises(
        ValueError, match=r"weights\['w1'\] must have the shape \(64, 3, 11, 11\), got \(11, 11"
    ):
        transformer.transform(photos())
    transformer.weights = {**weights, "b2": weights["b2"] * np.nan}
    with pytest.raises(ValueError, match=r"weights\['b2'\] must be finite"):
        transformer.transform(photos())


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (photos() / 255, TypeError, "images must be uint8, RGB from 0 to 255, got float64"),
        (photos()[..., :1], ValueError, r"3 channels \(RGB\), got images of \(32, 32, 1\)"),
        (photos()[..., 0], ValueError, r"3 channels \(RGB\), got images of \(32, 32, 1\)"),
        (photos().reshape(2, -1), ValueError, "image_shape must be .* got None for 3072"),
    ],
)
def test_images_are_checked(weights, images, error, message):
    with pytest.raises(error, match=message):
        AlexNetPool5(weights).fit(images)


def test_settings_are_checked(weights):
    with pytest.raises(ValueError, match="batch_size must be a whole number ≥ 1, got 0"):
        AlexNetPool5(weights, batch_size=0).fit(photos())
    with pytest.raises(ValueError, match="n_threads must be at least 1 or None, got -1"):
        AlexNetPool5(weights, n_threads=-1).fit(photos())


def test_torch_is_not_loaded_before_it_is_needed():
    code = "import sys, admm_softmax.features; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "rich", "numba"} & set(out.stdout.split())
