"""`admm-softmax probe` is `admm_softmax.probe` on files."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import admm_softmax

CS = [1e-3, 1e-1]


@pytest.fixture
def digits(tmp_path):
    """Features and labels in train.npz, and in .npy files of their own."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    parts = {"train": slice(0, 300), "test": slice(300, 500)}
    for name, part in parts.items():
        np.savez(tmp_path / f"{name}.npz", X=X[part], y=y[part])
        np.save(tmp_path / f"{name}-x.npy", X[part])
        np.save(tmp_path / f"{name}-y.npy", y[part])
    return {name: (X[part], y[part]) for name, part in parts.items()}


def test_the_command_finds_what_the_function_finds(digits, run_json, tmp_path):
    expected = admm_softmax.probe(
        digits["train"], test=digits["test"], Cs=CS, shots=(2, 4), repeats=2, samples=50
    )
    few = ("--Cs", "0.001,0.1", "--shots", "2,4", "--repeats", 2, "--resamples", 50)
    out = ("--out", "probe.json", "--model", "model", "--plot", "probe.png")
    found = run_json("probe", "train.npz", "--test", "test.npz", *few, *out)
    assert found["best"] == expected.best
    assert found["val_scores"] == pytest.approx(list(expected.val_scores))
    assert found["test"]["accuracy"]["value"] == expected.test["accuracy"].value
    assert [shot["value"] for shot in found["shots"]] == [shot.value for shot in expected.shots]
    assert found["written"] == ["probe.json", "model", "probe.png"]
    assert json.loads((tmp_path / "probe.json").read_text())["best"] == expected.best
    assert (tmp_path / "probe.png").read_bytes()[1:4] == b"PNG"
    model = admm_softmax.load(tmp_path / "model")
    X, _ = digits["test"]
    np.testing.assert_allclose(
        model.predict_proba(X), expected.estimator.predict_proba(X), atol=1e-6
    )


def test_labels_in_files_of_their_own(digits, run, run_json):
    labels = ("--labels", "train-y.npy", "--test-labels", "test-y.npy")
    found = run_json("probe", "train-x.npy", *labels, "--test", "test-x.npy", "--Cs", "0.1")
    assert found["test"]["accuracy"]["value"] > 0.8
    code, out, _ = run("probe", "train-x.npy", *labels, "--test", "test-x.npy", "--Cs", "0.1,1")
    assert code == 0
    assert "200 test rows" in out
    assert "best" in out


def test_a_frame_of_features(digits, run_json, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = digits["train"]
    names = [f"pixel {j}" for j in range(64)]
    pd.DataFrame(X, columns=names).assign(digit=y).to_csv(tmp_path / "train.csv", index=False)
    found = run_json(
        "probe", "train.csv", "--target", "digit", "--Cs", "0.1,1", "--normalize", "l2"
    )
    assert len(found["Cs"]) == 2
    assert not found["test"]


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["train-x.npy"], "train-x.npy has no labels: name their column", 1),
        (["train.npz", "--Cs", "a"], "--Cs must hold numbers, got 'a'", 2),
        (["train.npz", "--recipe", "dino"], "recipe", 1),
        (["train.npz", "--normalize", "max"], "normalize must be 'none', 'l2'", 1),
        (["train.npz", "--metric", "speed"], "metric", 1),
    ],
)
def test_errors_are_one_line(arguments, words, code, digits, run):
    got, _, err = run("probe", *arguments)
    assert got == code
    assert words in err
    assert len(err.strip().splitlines()) == 1
