"""The protocol: sweep, choice, refit, test, few shots."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import admm_softmax
from admm_softmax import SoftmaxRegression, probe
from admm_softmax.probes import RECIPES, ProbeResult
from admm_softmax.probes.metrics import METRICS

CS = [1e-4, 1e-2, 1.0]


def parts():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    return (X[:600], y[:600]), (X[600:900], y[600:900]), (X[900:], y[900:])


def test_the_choice_is_that_of_single_fits():
    train, val, test = parts()
    found = probe(train, val, test, Cs=CS, metric="log_loss", samples=50, tol=1e-6)
    losses = []
    for C in CS:
        clf = SoftmaxRegression(C=C, tol=1e-6).fit(*train)
        losses.append(METRICS["log_loss"](val[1], clf.predict_proba(val[0])))
    np.testing.assert_allclose(found.val_scores, losses, rtol=1e-4)
    assert CS[int(np.argmin(losses))] == found.C
    both = [np.concatenate(pair) for pair in zip(train, val, strict=True)]
    final = SoftmaxRegression(C=found.C, tol=1e-6).fit(*both)
    np.testing.assert_allclose(found.estimator.coef_, final.coef_, atol=1e-3)
    accuracy = found.test["accuracy"]
    assert accuracy.value == final.score(*test)
    assert accuracy.low < accuracy.value < accuracy.high
    assert (found.n_train, found.n_val, found.n_test) == (600, 300, 897)
    assert set(found.test) == {"accuracy", "top5", "mean_per_class", "log_loss"}


def test_without_refit_the_model_is_that_of_the_training_rows():
    train, val, test = parts()
    found = probe(train, val, test, Cs=[1e-2], refit=False, report=["macro_f1"], samples=0)
    expected = SoftmaxRegression(C=1e-2).fit(*train)
    np.testing.assert_allclose(found.estimator.coef_, expected.coef_, atol=1e-2)
    assert list(found.test) == ["macro_f1"]
    assert np.isnan(found.test["macro_f1"].low)


def test_without_validation_rows_a_share_is_drawn():
    train, _, test = parts()
    found = probe(train, test=test, Cs=CS, samples=0)
    assert (found.n_train, found.n_val) == (540, 60)
    again = probe(train, test=test, Cs=CS, samples=0)
    np.testing.assert_array_equal(found.val_scores, again.val_scores)
    other = probe(train, test=test, Cs=CS, samples=0, seed=1, val_share=0.5)
    assert other.n_val == 300
    assert probe(train, Cs=[1.0]).test == {}


@pytest.mark.parametrize("kind", ["l2", "standardize"])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_normalised_features(kind, dtype):
    train, val, test = parts()
    train, val, test = ((X.astype(dtype), y) for X, y in (train, val, test))
    found = probe(train, val, test, Cs=CS, normalize=kind, samples=0)
    if kind == "l2":
        made = [(normalize(X.astype(float)), y) for X, y in (train, val, test)]
    else:
        scale = train[0].astype(float).std(axis=0)
        scale[scale == 0] = 1.0
        made = [(X.astype(float) / scale, y) for X, y in (train, val, test)]
    expected = probe(*made, Cs=CS, samples=0)
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=0.01)
    assert abs(found.test["accuracy"].value - expected.test["accuracy"].value) < 0.02


def test_few_shots():
    train, val, test = parts()
    found = probe(train, val, test, Cs=CS, shots=(1, 8), repeats=3, samples=0)
    assert [shot.shots for shot in found.shots] == [1, 1, 1, 8, 8, 8]
    by_size = [np.mean([s.value for s in found.shots if s.shots == k]) for k in (1, 8)]
    assert 0.3 < by_size[0] < by_size[1] < found.test["accuracy"].value
    with pytest.raises(ValueError, match="shots must be at most"):
        probe(train, val, Cs=CS, shots=(1000,))


def test_one_shot_of_many_classes_is_not_warned_about():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 40
    X = rng.standard_normal((40, 6))[y] + 0.1 * rng.standard_normal((120, 6))
    found = probe((X[:80], y[:80]), (X[80:], y[80:]), Cs=[1.0], shots=(1,), repeats=1)
    assert len(found.shots) == 1


def test_fits_to_many_classes_go_on_for_longer():
    """With K classes the entries of the gradient are of the order 1 / K."""
    rng = np.random.default_rng(0)
    y = np.arange(2400) % 200
    X = rng.standard_normal((200, 20))[y] + 0.7 * rng.standard_normal((2400, 20))
    train, val, test = ((X[i::3], y[i::3]) for i in range(3))
    found = probe(train, val, test, Cs=[100.0], samples=0)
    exact = probe(train, val, test, Cs=[100.0], samples=0, tol=1e-8)
    loose = probe(train, val, test, Cs=[100.0], samples=0, tol=1e-4)
    assert [each.estimator.tol for each in (found, exact, loose)] == [0.1 / 200**2, 1e-8, 1e-4]
    assert abs(found.val_scores[0] - exact.val_scores[0]) < 0.005
    assert loose.estimator.n_iter_[0] < found.estimator.n_iter_[0] < exact.estimator.n_iter_[0]
    assert probe(*parts(), Cs=[1.0], samples=0).estimator.tol == 1e-5


def test_strings_two_classes_and_functions():
    train, val, test = parts()

    def share(codes, P):
        return P[np.arange(len(codes)), codes].mean()

    named = [(X, np.where(y < 5, "low", "high")) for X, y in (train, val, test)]
    found = probe(*named, Cs=CS, metric=share, report=[share, "auroc"], samples=20)
    assert found.metric == "share"
    assert found.estimator.classes_.tolist() == ["high", "low"]
    assert 0.5 < found.test["share"].low < found.test["share"].high < 1
    assert found.alphas[0] == pytest.approx(2 / (600 * CS[0]))


def test_a_result_goes_to_json_and_back(tmp_path):
    train, val, test = parts()
    found = probe(train, val, test, Cs=CS, shots=(2,), repeats=2, samples=10)
    found.to_json(tmp_path / "probe.json")
    read = ProbeResult.from_json(tmp_path / "probe.json")
    assert read.to_json() == found.to_json()
    assert (read.C, read.alpha, read.shots) == (found.C, found.alpha, found.shots)
    assert f"C = {found.C:.3g}" in str(read)


def test_frames_and_plots():
    pytest.importorskip("pandas")
    train, val, _ = parts()
    found = probe(train, val, Cs=CS, shots=(1, 2), repeats=2)
    assert found.to_frame()["accuracy"].tolist() == found.val_scores.tolist()
    assert len(found.shots_to_frame()) == 4
    pytest.importorskip("matplotlib")
    assert len(found.plot().axes) == 2


def test_the_same_call_goes_on(tmp_path, monkeypatch):
    train, val, test = parts()
    settings = {"Cs": CS, "shots": (2,), "repeats": 1, "samples": 0, "folder": tmp_path}
    first = probe(train, val, test, **settings)
    monkeypatch.setattr(
        "admm_softmax.solvers.lbfgs.LBFGS.iterates",
        lambda *arguments: pytest.fail("a fit that has ended must not run again"),
    )
    again = probe(train, val, test, **settings)
    np.testing.assert_array_equal(again.val_scores, first.val_scores)
    np.testing.assert_array_equal(again.estimator.coef_, first.estimator.coef_)


def test_files(tmp_path):
    train, val, test = parts()
    expected = probe(train, val, test, Cs=CS, samples=0)
    np.savez(tmp_path / "train.npz", features=train[0], labels=train[1])
    np.save(tmp_path / "x.npy", val[0])
    np.save(tmp_path / "y.npy", val[1])
    np.savez(tmp_path / "x.npz", test[0])
    found = probe(
        tmp_path / "train.npz",
        (tmp_path / "x.npy", tmp_path / "y.npy"),
        (tmp_path / "x.npz", test[1]),
        Cs=CS,
        samples=0,
    )
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=1e-6)
    with pytest.raises(ValueError, match="must hold one of"):
        probe(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["safetensors", "h5"])
def test_one_file_with_features_and_labels(kind, tmp_path):
    train, val, test = parts()
    expected = probe(train, val, test, Cs=CS, samples=0)
    path = tmp_path / f"train.{kind}"
    if kind == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file["embeddings"], file["targets"] = train
    else:
        saved = pytest.importorskip("safetensors.numpy")
        saved.save_file({"embeddings": train[0], "targets": train[1]}, path)
    found = probe(path, val, test, Cs=CS, samples=0)
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=1e-6)
    other = {"safetensors": "h5", "h5": "safetensors"}[kind]
    with pytest.raises(ValueError, match=r"must be one of \.npz, \.pt, \.safetensors"):
        probe(tmp_path / "train.csv", val)
    with pytest.raises((ValueError, OSError)):
        probe(path.rename(tmp_path / f"train.{other}"), val)


def test_columns_of_parquet_files(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    train, val, _ = parts()
    names = np.array([f"digit {k}" for k in range(10)])
    frame = pd.DataFrame(train[0], columns=[f"c{j}" for j in range(64)])
    frame.assign(label=names[train[1]]).to_parquet(tmp_path / "train.parquet")
    found = probe((tmp_path / "train.parquet", "label"), (val[0], names[val[1]]), Cs=CS)
    np.testing.assert_allclose(found.val_scores, probe(train, val, Cs=CS).val_scores, atol=1e-6)
    assert found.estimator.classes_.tolist() == names.tolist()


@pytest.mark.torch
def test_files_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    train, val, _ = parts()
    pairs = [(torch.tensor(X).bfloat16(), torch.tensor(y)) for X, y in (train, val)]
    torch.save({"features": pairs[0][0], "labels": pairs[0][1]}, tmp_path / "train.pt")
    torch.save(pairs[1][0], tmp_path / "x.pt")
    found = probe(tmp_path / "train.pt", (tmp_path / "x.pt", pairs[1][1]), Cs=CS)
    expected = probe(*[(X.float().numpy(), y.numpy()) for X, y in pairs], Cs=CS)
    np.testing.assert_allclose(found.val_scores, expected.val_scores, atol=0.01)


def test_recipes_say_what_was_published():
    assert len(RECIPES["dinov2"].Cs) == 45
    np.testing.assert_allclose(RECIPES["dinov2"].Cs[[0, -1]], [1e-6, 1e5])
    steps = np.diff(np.log10(RECIPES["clip"].Cs))
    np.testing.assert_allclose(steps, 1 / 8)
    with pytest.raises(ValueError, match="recipe must be one of"):
        probe(parts()[0], recipe="dino")


def test_what_is_wrong_is_named():
    train, val, _ = parts()
    with pytest.raises(ValueError, match="train must be"):
        probe(train[0])
    with pytest.raises(ValueError, match="normalize must be"):
        probe(train, val, normalize="l1")
    with pytest.raises(ValueError, match="val_share"):
        probe(train, val_share=1.0)
    with pytest.raises(ValueError, match="Cs must be positive"):
        probe(train, val, Cs=[0.0])
    with pytest.raises(ValueError, match="Cs must hold"):
        probe(train, val, Cs=[])
    with pytest.raises(ValueError, match="one label for each of 600 rows"):
        probe((train[0], train[1][:-1]), val)
    with pytest.raises(ValueError, match="never seen"):
        probe((train[0], train[1]), (val[0], val[1] + 5), Cs=CS)


def test_it_is_public():
    assert admm_softmax.probe is probe
