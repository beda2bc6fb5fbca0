"""Iris and small digits in every kind of file, and a way to run the command."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from admm_softmax.cli import main

CLASSES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own: exit code, output, errors."""
    pytest.importorskip("typer", reason="the command needs typer")
    pytest.importorskip("skops", reason="model folders need skops")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def run_json(run):
    """The JSON that a command prints; it must succeed."""

    def run_json(*arguments):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run_json


@pytest.fixture(scope="session")
def frame():
    """Iris with a text column and ids that begin with zeros, in random order."""
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    table["city"] = np.where(np.arange(150) % 3 == 0, "Rome", "Oslo")
    table["id"] = [f"{i:04d}" for i in range(150)]
    table["kind"] = CLASSES[y]
    return table.iloc[np.random.default_rng(0).permutation(150)].reset_index(drop=True)


@pytest.fixture
def tables(frame, tmp_path):
    """train.csv and test.csv."""
    frame[:100].to_csv(tmp_path / "train.csv", index=False)
    frame[100:].to_csv(tmp_path / "test.csv", index=False)
    return frame
