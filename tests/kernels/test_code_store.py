"""Compiled code is kept on disk, found again without Numba, and never believed when damaged."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from llvmlite import binding

from admm_softmax.kernels.compiled import code_store, entries, loading, passes
from admm_softmax.kernels.compiled.code_store import Record

#: A whole fit; prints whether Numba was loaded, whether anything was compiled, and the result.
FIT = """
import hashlib, sys
import numpy as np
from admm_softmax import LBFGS, Problem, run
from admm_softmax.kernels.compile_clock import compile_seconds

X = np.random.default_rng(0).standard_normal((30_000, 20)).astype(np.float32)
W = run(Problem.of(X, np.arange(30_000) % 10, 1e-3), LBFGS(), max_iter=3, tol=0.0).W
print("numba" in sys.modules, compile_seconds() > 0, hashlib.sha256(W.tobytes()).hexdigest())
"""
#: One small function.
TANH = """
import sys
import numpy as np
from admm_softmax.kernels.compiled.passes import tanh_in_place

x = np.linspace(-3, 3, 101, dtype=np.float32)
expected = np.tanh(x)
tanh_in_place(x)
np.testing.assert_allclose(x, expected, rtol=1e-6)
print("numba" in sys.modules, x.tobytes().hex())
"""


def start(code, folder, **settings):
    known = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**known, "NUMBA_CACHE_DIR": str(folder), **settings},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def said(process):
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out.split()


def run(code, folder, **settings):
    return said(start(code, folder, **settings))


def files(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def test_a_second_process_needs_no_numba_and_gets_the_same_bits(tmp_path):
    loaded, compiled, first = run(FIT, tmp_path)
    assert (loaded, compiled) == ("True", "True")
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path)}
    loaded, compiled, second = run(FIT, tmp_path)
    assert (loaded, compiled) == ("False", "False")
    assert second == first
    assert {path: path.stat().st_mtime_ns for path in files(tmp_path)} == before


def damaged(content):
    middle = len(content) // 2
    yield b""
    yield content[:middle]
    yield content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_damaged_files_are_replaced(tmp_path):
    _, expected = run(TANH, tmp_path)
    kept = {path: path.read_bytes() for path in files(tmp_path)}
    assert len(kept) == 3  # what Numba compiles for, the function, and its entry
    for contents in zip(*map(damaged, kept.values()), strict=True):
        for path, content in zip(kept, contents, strict=True):
            path.write_bytes(content)
        assert run(TANH, tmp_path) == ["True", expected]
        assert run(TANH, tmp_path) == ["False", expected]


def test_one_missing_file_is_compiled_again(tmp_path):
    _, expected = run(TANH, tmp_path)
    for path in files(tmp_path):
        path.unlink()
        assert run(TANH, tmp_path) == ["True", expected], path
        assert run(TANH, tmp_path) == ["False", expected], path


@pytest.mark.skipif(
    not binding.get_process_triple().startswith("x86_64"), reason="names CPUs of x86"
)
def test_code_for_another_cpu_or_with_other_settings_is_not_taken(tmp_path):
    run(TANH, tmp_path)
    n_files = len(files(tmp_path))
    others = [
        {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
        {"NUMBA_OPT": "1"},
    ]
    for number, settings in enumerate(others, start=2):
        assert run(TANH, tmp_path, **settings)[0] == "True"
        assert len(files(tmp_path)) == number * n_files
        assert run(TANH, tmp_path, **settings)[0] == "False"


def test_other_sources_versions_and_hosts_have_another_folder(monkeypatch):
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)  # else the host does not matter
    found = {code_store._key()}
    changes = [
        ("_sources", lambda: "changed"),
        ("_host", lambda: ("another", "+much")),
        ("version", lambda name: "0.0"),
    ]
    for name, change in changes:
        with monkeypatch.context() as patch:
            patch.setattr(code_store, name, change)
            code_store._digest.cache_clear()
            found.add(code_store._key())
    code_store._digest.cache_clear()
    assert len(found) == 1 + len(changes)


def test_machines_that_compile_for_one_cpu_share_their_code(monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    first = code_store._key()
    monkeypatch.setattr(code_store, "_host", lambda: ("another", "+much"))
    assert code_store._key() == first


def test_processes_may_compile_at_the_same_time(tmp_path):
    processes = [start(TANH, tmp_path) for _ in range(3)]
    found = {said(process)[1] for process in processes}
    assert run(TANH, tmp_path) == ["False", *found]
    assert all(path.suffix == ".code" for path in files(tmp_path))


def test_a_place_to_keep_code_is_not_needed(tmp_path):
    taken = tmp_path / "a file"
    taken.write_text("not a folder")
    loaded, found = run(TANH, taken)
    assert loaded == "True"
    assert run(TANH, taken) == ["True", found]
    assert taken.read_text() == "not a folder"


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A folder of its own, and nothing loaded."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(loading, "_loaded", {})
    entries.entry.cache_clear()
    yield tmp_path
    entries.entry.cache_clear()


def test_threads_may_load_at_the_same_time(empty):
    arrays = [np.linspace(-3, 3, 50, dtype=np.float32) for _ in range(8)]
    expected = np.tanh(arrays[0])
    threads = [Thread(target=passes.tanh_in_place, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in arrays:
        np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_what_is_kept_is_found(empty):
    record = Record("symbol", ["one", "two"], ["int", ["float64 2"]], b"\0code\n\n")
    assert code_store.find("a.name(1, 'x')") is None
    code_store.keep("a.name(1, 'x')", record)
    assert code_store.find("a.name(1, 'x')") == record
    assert code_store.find("a.name(1, x)") is None  # though its file has the same name
    (file,) = files(empty)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask


def test_where_the_first_folder_cannot_be_written_the_next_is(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    folders = [tmp_path / "taken", tmp_path / "free"]
    monkeypatch.setattr(code_store, "folders", lambda: folders)
    code_store.write("facts", {"one": 1})
    assert code_store.read("facts")[0]["one"] == 1
    assert [path.parent for path in files(tmp_path / "free")] == [folders[1]]
    assert code_store.writable_folder() == folders[1]
    monkeypatch.setattr(code_store, "folders", lambda: folders[:1])
    assert code_store.writable_folder() is None


def test_arrays_of_another_kind_are_refused():
    tanh = entries.entry("admm_softmax.kernels.compiled.tanh:tanh_of_array")
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    for wrong in (
        np.zeros(3), np.zeros((2, 2), np.float32), np.zeros(6, np.float32)[::2], unaligned,
        np.zeros(3, ">f4"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"value 0 of .*tanh_of_array.* 1 dim.* float32, got"):
            tanh(wrong)
    with pytest.raises(TypeError, match="takes 1 values, got 2"):
        tanh(1, 2)


def test_an_entry_finds_arrays_in_a_tuple_and_behind_numbers():
    scores = passes.scores_pass(np.float64)
    scores.load()
    assert scores._tuples == [1]
    assert scores._numbers == [0]
    assert len(scores._kinds) == len(scores._arrays) + 1 == 15


def test_only_the_newest_folders_stay(empty, monkeypatch):
    monkeypatch.setattr(code_store, "KEPT_FOLDERS", 3)
    for age in range(5):
        folder = empty / f"admm-softmax-{age}"
        folder.mkdir()
        os.utime(folder, (1e9 - age, 1e9 - age))
    (empty / "another's").mkdir()
    code_store.write("facts", {})
    kept = {f"{code_store._PREFIX}{name}" for name in (0, 1, code_store._key())}
    assert {path.name for path in empty.iterdir()} == {"another's", *kept}
