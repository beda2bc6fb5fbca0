"""The command `admm-softmax reproduce`: what it writes, refuses and says is missing."""

import json
import sys

import pytest

from admm_softmax.cli import main
from admm_softmax.experiments import data as data_sets
from tests.experiments.stand_ins import small_images, zero_weights


def test_the_command(small, tmp_path, capsys):
    arguments = ["reproduce", "mnist", "--out", str(tmp_path), "--budget", "0.05", "--seeds", "1"]
    assert main([*arguments, "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "ADMM-Softmax" in printed
    assert "report.html" in printed
    assert set(json.loads((tmp_path / "results.json").read_text())["experiments"]) == {"mnist"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all", "--budget=0"], "budget must be a number of seconds > 0, got 0"),
        (["all", "--seeds=0"], "seeds must be a whole number ≥ 1, got 0"),
        (["all", "--grid-rows=-3"], "grid_rows must be a whole number ≥ 0, got -3"),
        (["cifar10", "--authors-split"], "--authors-split is for mnist"),
        (["mnist", "--grid-rows=5"], "--grid-rows is for cifar10"),
    ],
)
def test_the_command_refuses(arguments, words, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(small, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["reproduce", "mnist", "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
    assert small == []


def test_ctrl_c_ends_the_command_in_a_line(small, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(data_sets, "prepare", interrupted)
    assert main(["reproduce", "mnist", "--out", str(tmp_path)]) == 130
    assert "Interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "mnist"]])
def test_the_command_says_what_to_install(command, monkeypatch, capsys, tmp_path):
    for name in ("digits", "reproduction_report"):
        monkeypatch.delitem(sys.modules, f"admm_softmax.experiments.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "admm_softmax.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main([*command, "--out", str(tmp_path)]) == 1
    assert "pip install 'admm-softmax[report]'" in capsys.readouterr().err


def test_what_is_missing_is_missed_before_the_first_run(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_sets, "load_cifar10", lambda data_dir: small_images("cifar10"))
    monkeypatch.setattr(data_sets, "alexnet_weights", lambda data_dir: zero_weights())
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["reproduce", "all", "--out", str(tmp_path), "--quiet"]) == 1
    assert "AlexNetPool5 needs torch: pip install" in capsys.readouterr().err
    assert small == []
