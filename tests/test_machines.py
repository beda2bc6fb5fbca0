"""Profiles of other machines are skipped, played or failed for the right reason."""

import platform

import pytest

from tests import machines
from tests.machines import CPUS, what_is_played, what_is_wrong, what_pip_says

BY_NAME = {cpu.name: cpu for cpu in CPUS}


@pytest.mark.parametrize("name", ["haswell", "sse", "skylakex"])
def test_profiles_of_x86_are_skipped_by_name_elsewhere(name, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert machines.run_cpu(BY_NAME[name]) == "skipped: this is aarch64, not amd64 or x86_64"
    assert BY_NAME["one-thread"].why_not() is None


def test_a_profile_that_needs_more_names_what_is_missing(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(machines, "cpu_flags", lambda: {"avx512f"})
    assert BY_NAME["skylakex"].why_not() == "this CPU has no avx512bw, avx512vl"
    assert BY_NAME["sse"].why_not() is None


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_a_profile_plays_the_cpu_that_it_names(cpu, monkeypatch, tmp_path):
    if cpu.why_not() is not None:
        pytest.skip(cpu.why_not())
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NPY_DISABLE_CPU_FEATURES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    settings = machines.disable_what_is_there(cpu.settings)
    assert what_is_wrong(cpu, settings, what_is_played(settings)) == []


def test_a_profile_without_effect_fails(monkeypatch):
    cpu = BY_NAME["sse"]
    settings = {**cpu.settings, "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}
    played = {"cores": ["Zen"], "threads": [2], "vector_bytes": 32, "features": ["SSE2", "AVX2"]}
    assert what_is_wrong(cpu, settings, played) == [
        "OpenBLAS runs as Zen, not Nehalem",
        "Numba's vectors have 32 bytes, not 16",
        "NumPy uses AVX2",
    ]
    one = BY_NAME["one-thread"]
    assert what_is_wrong(one, one.settings, played) == ["OpenBLAS has [2] threads, not 1"]
    monkeypatch.setattr(machines, "what_is_played", lambda settings: played)
    monkeypatch.setattr(machines, "pytest", lambda *arguments: "passed")
    assert machines.run_cpu(one) == "FAILED: OpenBLAS has [2] threads, not 1"


def test_libraries_that_do_not_start_fail_a_profile(monkeypatch):
    monkeypatch.setattr(machines, "ASK", "raise RuntimeError('no such CPU')")
    assert machines.run_cpu(BY_NAME["one-thread"]) == "FAILED: RuntimeError: no such CPU"


UNREACHED = """
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'
ERROR: Could not find a version that satisfies the requirement numpy (from versions: none)
ERROR: No matching distribution found for numpy
"""
CONFLICT = """
ERROR: Cannot install admm-softmax and numpy==1.0 because these package versions have conflicts.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/
"""
NO_SUCH_VERSION = """
ERROR: Could not find a version that satisfies the requirement numpy==9 (from versions: 2.0, 2.1)
ERROR: No matching distribution found for numpy==9
"""


def test_an_index_that_is_not_there_is_told_from_a_conflict():
    assert what_pip_says(UNREACHED) == "skipped: the package index cannot be reached"
    assert "FAILED" in what_pip_says(CONFLICT)
    assert "numpy==1.0 because" in what_pip_says(CONFLICT)
    assert "FAILED" in what_pip_says(UNREACHED.splitlines()[1] + CONFLICT)
    assert "No matching distribution found for numpy==9" in what_pip_says(NO_SUCH_VERSION)
    assert "FAILED" in what_pip_says("something else")


@pytest.mark.parametrize(
    ("result", "options", "code"),
    [
        ("passed: 3 passed", [], 0),
        ("skipped: no", [], 0),
        ("FAILED: 1 failed", [], 1),
        ("passed: 3 passed", ["--most-minutes", "2"], 1),
        ("passed: 3 passed", ["--most-minutes", "4"], 0),
    ],
)
def test_time_decides_on_request_only(result, options, code, monkeypatch, capsys):
    now = iter([0.0, 180.0])
    monkeypatch.setattr(machines.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(machines, "run_cpu", lambda cpu: result)
    assert machines.main([*options, "sse"]) == code
    said = capsys.readouterr().out
    assert "3.0 min" in said.splitlines()[-1]
    assert ("more than 2" in said) == ("2" in options)


def test_an_unknown_profile_is_refused(capsys):
    with pytest.raises(SystemExit):
        machines.main(["pentium"])
    assert "there is no profile 'pentium'; there are haswell, sse" in capsys.readouterr().err
