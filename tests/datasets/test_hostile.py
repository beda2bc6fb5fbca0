"""Files that are huge, damaged, half written or hostile: a clean error, soon, and in little memory."""

import io
import os
import pickle
import tarfile
import time
from dataclasses import replace

import numpy as np
import pytest

from admm_softmax.datasets import cache
from admm_softmax.datasets.files import read
from admm_softmax.datasets.pickles import load_arrays
from admm_softmax.datasets.resolve import resolve
from admm_softmax.datasets.spec import DatasetError, Source
from admm_softmax.storage import atomic
from tests.datasets import makers
from tests.datasets.makers import TINY_CIFAR, TINY_MNIST


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_the_size_of_a_file_is_looked_at_before_its_content(tmp_path):
    files = makers.idx_files()
    first = next(iter(files))
    write(tmp_path, files)
    os.truncate(tmp_path / first, 60 * 2**30)  # sparse: it takes no room on the disk
    with pytest.raises(DatasetError, match=rf"{first} has 64,424,509,440 bytes, more than"):
        read(TINY_MNIST, tmp_path)


@pytest.mark.parametrize("content", [b"Nr\xff\xff\xff\x7f.", b"Np2000000000\n."])
def test_a_pickle_of_a_few_bytes_takes_little_memory(content):
    with pytest.raises(pickle.UnpicklingError, match=r"may not use place 2[0-9]{9} of the memory"):
        load_arrays(content)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_long_header_in_an_archive_is_refused(tmp_path, kind):
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 2**22
    record = b"2097152 a=" + b"1" * (2**21 - 11) + b"\n"
    content = info.tobuf(tarfile.USTAR_FORMAT) + 2 * record
    archive = next(name for form in TINY_CIFAR.formats for name in form.archives)
    write(tmp_path, {archive: content})
    with pytest.raises(DatasetError, match="a header of 4,194,304 bytes is too long"):
        read(TINY_CIFAR, tmp_path)


def test_a_large_member_in_an_archive_is_refused(tmp_path):
    archive = next(name for form in TINY_CIFAR.formats for name in form.archives)
    info = tarfile.TarInfo("README")
    info.size = 2**32
    write(tmp_path, {archive: info.tobuf(tarfile.USTAR_FORMAT)})
    with pytest.raises(DatasetError, match="README has more than"):
        read(TINY_CIFAR, tmp_path)


def source(files):
    return replace(TINY_MNIST, sources=(Source("source", lambda folder: write(folder, files)),))


@pytest.mark.parametrize("shape", [(10**6, 10**6, 10**3), (3,)])
def test_a_cache_file_of_another_shape_is_made_again(shape, caplog):
    spec = source(makers.idx_files())
    path = resolve(spec).path
    header = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, about)
    import zipfile

    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["train_images.npy"] = header.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    found = resolve(spec)
    assert "is damaged (train_images has the shape" in caplog.text
    np.testing.assert_array_equal(found.arrays["train_images"], makers.DIGITS["train_images"])
    assert cache.load(spec) is not None


def test_a_cache_file_that_goes_away_is_no_error(monkeypatch):
    spec = source(makers.idx_files())
    resolve(spec)
    cache.cache_path(spec).unlink()
    assert cache.load(spec) is None


def test_a_full_disk_is_said_so(monkeypatch):
    def savez(file, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(DatasetError, match=r"\(No space left on device\); make room, or set ADMM"):
        resolve(source(makers.idx_files()))


def test_parts_that_a_killed_process_left_are_removed(tmp_path):
    path = tmp_path / "a.npz"
    old, new, other = (tmp_path / f".a.npz.{digit * 32}" for digit in "123")
    other = tmp_path / ".a.npz.backup"
    for part in (old, new, other):
        part.write_bytes(b"half")
    past = time.time() - 2 * atomic.LEFT_AFTER
    os.utime(old, (past, past))
    os.utime(other, (past, past))
    with atomic.replacing(path) as part:
        part.write_bytes(b"whole")
    assert path.read_bytes() == b"whole"
    assert not old.exists()
    assert new.exists()  # another process may still write to it
    assert other.exists()
