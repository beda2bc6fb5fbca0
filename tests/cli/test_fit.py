"""`admm-softmax fit` and `sweep`: kinds of files, options, model folders."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.pipeline import Pipeline

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV, load
from admm_softmax.estimators.model_folder import read_metadata

X, y = load_iris(return_X_y=True)
X = X.astype(np.float32)
EXPECTED = SoftmaxRegression(1e-2).fit(X, y)


def save_npy(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", y)
    return ["x.npy", "--labels", "y.npy"]


def save_npz(folder):
    np.savez(folder / "d.npz", X=X, y=y)
    return ["d.npz"]


def save_named_npz(folder):
    np.savez(folder / "d.npz", a=X, b=X[:, :2], truth=y)
    return ["d.npz", "--key", "a", "--target", "truth"]


def save_sparse(folder):
    sp.save_npz(folder / "s.npz", sp.csr_array(X))
    (folder / "y.txt").write_text("\n".join(map(str, y)))
    return ["s.npz", "--labels", "y.txt"]


def save_svmlight(folder):
    dump_svmlight_file(X, y, str(folder / "d.svmlight"), zero_based=False)
    return ["d.svmlight"]


def save_zero_based(folder):
    dump_svmlight_file(X, y, str(folder / "d.libsvm"), zero_based=True)
    return ["d.libsvm", "--zero-based"]


def save_csv(folder):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X).assign(label=y).to_csv(folder / "d.csv", index=False)
    return ["d.csv", "--target", "label"]


def save_semicolons(folder):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X).assign(label=y).to_csv(folder / "d.csv", index=False, sep=";")
    return ["d.csv", "--target", "label"]


def save_gz(folder):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X).assign(label=y).to_csv(folder / "d.csv.gz", index=False)
    return ["d.csv.gz", "--target", "label"]


def arrow(folder):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list("abcd")).assign(label=y)


def save_feather(folder):
    arrow(folder).to_feather(folder / "d.feather")
    return ["d.feather", "--target", "label"]


def save_parquet(folder):
    arrow(folder).to_parquet(folder / "d.parquet")
    return ["d.parquet", "--target", "label"]


def save_vectors(folder):
    frame = arrow(folder)
    frame[["label"]].assign(vector=list(X)).to_parquet(folder / "v.parquet")
    return ["v.parquet", "--target", "label"]


def save_shards(folder):
    (folder / "shards").mkdir()
    frame = arrow(folder)
    for i in range(3):
        frame[50 * i : 50 * i + 50].to_parquet(folder / "shards" / f"part-{i}.parquet")
    return ["shards", "--target", "label"]


def save_npy_shards(folder):
    (folder / "shards").mkdir()
    for i in range(3):
        part = slice(50 * i, 50 * i + 50)
        np.save(folder / "shards" / f"x-{i}.npy", X[part])
        np.save(folder / "shards" / f"y-{i}.npy", y[part])
    return ["shards"]


def save_safetensors(folder):
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"X": X, "y": y}, folder / "d.safetensors")
    return ["d.safetensors", "--target", "y"]


def save_hdf5(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"], file["y"] = X, y
    return ["d.h5", "--target", "y"]


def save_tensors(folder):
    torch = pytest.importorskip("torch")
    torch.save({"X": torch.from_numpy(X), "y": torch.from_numpy(y)}, folder / "d.pt")
    return ["d.pt"]


def save_soft(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "soft.npy", np.eye(3)[y])
    return ["x.npy", "--labels", "soft.npy"]


SAVERS = [
    pytest.param(value, marks=pytest.mark.torch) if value is save_tensors else value
    for name, value in list(globals().items())
    if name.startswith("save_")
]


@pytest.mark.parametrize("save", SAVERS, ids=lambda save: save.__name__[5:])
def test_every_kind_of_file_gives_the_same_model(save, run_json, tmp_path):
    facts = run_json("fit", *save(tmp_path), "--alpha", "1e-2", "--tol", "1e-6")
    assert (facts["n_rows"], facts["n_features"], facts["n_classes"]) == (150, 4, 3)
    model = load(tmp_path / "model")
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, atol=2e-3)
    assert read_metadata(tmp_path / "model")["data"]["n_rows"] == 150


def test_text_columns_become_part_of_the_model(tables, run, run_json, tmp_path):
    code, out, err = run("fit", "train.csv", "--target", "kind", "--id", "id")
    assert (code, out) == (1, "")
    assert err.startswith("Error: column 'city' of train.csv holds text, 'Oslo' in row")
    assert len(err.splitlines()) == 1
    facts = run_json(
        *("fit", "train.csv", "-t", "kind", "--id", "id", "--encode", "--alpha", "0.01")
    )
    assert facts["n_features"] == 6
    model = load("model")
    assert isinstance(model, Pipeline)
    metadata = read_metadata("model")
    assert metadata["feature_names"] == ["city_Oslo", "city_Rome", "sl", "sw", "pl", "pw"]
    assert metadata["columns"] == ["sl", "sw", "pl", "pw", "city"]
    assert metadata["classes"] == ["setosa", "versicolor", "virginica"]
    (file,) = metadata["data"]["files"]
    assert file["bytes"] == (tmp_path / "train.csv").stat().st_size
    assert len(file["sha256"]) == 64
    assert metadata["history"]["columns"]["objective"][0] == pytest.approx(np.log(3))


def test_alpha_auto_runs_the_path(tables, run_json):
    facts = run_json("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--folds", "3")
    model = load("model")
    assert isinstance(model, SoftmaxRegressionCV)
    assert model.scores_.shape == (3, 20)
    assert facts["alpha"] == model.alpha_
    assert facts["score"] == pytest.approx(model.scores_.mean(axis=0).max())


def test_validation_rows_choose_the_iterate(tables, run_json):
    facts = run_json(
        *("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "1e-3"),
        *("--validation", "test.csv"),
    )
    assert 0.9 <= facts["val_accuracy"] <= 1
    assert "val_loss" in load("model").history_.columns


def test_a_checkpoint_returns_the_model_at_once(tables, run_json):
    command = ("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "1e-3")
    first = run_json(*command, "--checkpoint", "kept")
    assert run_json(*command, "--checkpoint", "kept") == first


def test_options_reach_the_estimator(tables, run_json):
    run_json(
        *("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "1e-3"),
        *("--l1-ratio", "0.5", "--standardize", "--balanced", "--solver", "admm"),
        *("--tol", "1e-3", "--max-iter", "500", "--time-limit", "60", "--threads", "1"),
        *("--seed", "3"),
    )
    model = load("model")
    wanted = {
        "alpha": 1e-3, "l1_ratio": 0.5, "standardize": True, "class_weight": "balanced",
        "solver": "admm", "tol": 1e-3, "max_iter": 500, "time_limit": 60.0, "n_threads": 1,
        "random_state": 3,
    }  # fmt: skip
    assert {name: getattr(model, name) for name in wanted} == wanted


def test_weights_come_from_a_column_or_a_file(tables, run_json, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(tmp_path / "train.csv").drop(columns=["city", "id"])
    w = 1.0 + np.arange(100) % 4
    frame.assign(w=w).to_csv(tmp_path / "w.csv", index=False)
    np.save(tmp_path / "w.npy", w)
    run_json("fit", "w.csv", "-t", "kind", "--weights", "w", "--alpha", "0.01", "-o", "a")
    frame.to_csv(tmp_path / "n.csv", index=False)
    run_json("fit", "n.csv", "-t", "kind", "--weights", "w.npy", "--alpha", "0.01", "-o", "b")
    assert read_metadata("a")["fitted"]["total_weight"] == w.sum()
    np.testing.assert_allclose(load("a").coef_, load("b").coef_)


def test_columns_of_probabilities_are_soft_labels(tables, run_json, tmp_path):
    pd = pytest.importorskip("pandas")
    p = np.full((150, 3), 0.1)
    p[np.arange(150), y] = 0.8
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame[["p0", "p1", "p2"]] = p
    frame.to_csv(tmp_path / "soft.csv", index=False)
    run_json("fit", "soft.csv", "-t", "p0,p1,p2", "--alpha", "0.01")
    expected = SoftmaxRegression(0.01).fit(frame[list("abcd")], p)
    np.testing.assert_allclose(load("model").coef_, expected.coef_, atol=1e-6)


def test_sweep_shows_every_penalty_and_keeps_the_best(tables, run, run_json):
    command = ("sweep", "train.csv", "-t", "kind", "--drop", "city,id", "--folds", "3")
    found = run_json(*command, "--alphas", "1,0.1,0.01")
    assert [row["alpha"] for row in found["path"]] == [1.0, 0.1, 0.01]
    (best,) = [row for row in found["path"] if row["is_best"]]
    assert best["score"] == max(row["score"] for row in found["path"])
    assert load("sweep").alpha_ == found["best"]["alpha"] == best["alpha"]
    code, out, _ = run(*command, "--alphas", "3", "--l1-ratios", "0.1,0.9", "--out", "two")
    assert code == 0
    assert "best" in out
    assert load("two").alphas_.shape[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["nowhere.csv", "-t", "kind"], "there is no file nowhere.csv", 1),
        (["train.csv", "-t", "sort"], "train.csv has no column 'sort'", 1),
        (["train.csv", "--drop", "city,id,kind"], "has no labels", 1),
        (["train.csv", "-t", "kind", "--alpha", "much"], "--alpha must hold numbers", 2),
        (["train.csv", "-t", "kind", "--alhpa", "1"], "--alhpa", 2),
        (["train.csv", "-t", "kind", "--time-limit", "3"], "--time-limit is for one fit", 2),
        (["train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "-1"], "got -1", 1),
        (["gap.csv", "-t", "kind", "--drop", "city,id"], "column 'pl' of gap.csv has no value in row 7", 1),
        (["hole.csv", "-t", "kind", "--drop", "city,id"], "column 'kind' of hole.csv has no label in row 4", 1),
        (["x.npy", "-t", "kind"], "--labels FILE", 1),
        (["x.npy", "--labels", "short.npy"], "short.npy has 90 entries for 150 rows of x.npy", 1),
        (["bad.parquet", "-t", "kind"], "bad.parquet is not a Parquet file", 1),
        (["readme.doc"], "readme.doc must be one of", 1),
        (["mixed"], "must hold files of one kind", 1),
    ],
    ids=lambda value: "_".join(value)[:40] if isinstance(value, list) else "",
)  # fmt: skip
def test_errors_are_one_line_that_names_the_offender(arguments, words, code, tables, run, tmp_path):
    pytest.importorskip("pyarrow")
    gap, hole = tables[:100].copy(), tables[:100].copy()
    gap.loc[7, "pl"] = np.nan
    hole.loc[4, "kind"] = None
    gap.to_csv(tmp_path / "gap.csv", index=False)
    hole.to_csv(tmp_path / "hole.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "short.npy", y[:90])
    (tmp_path / "bad.parquet").write_bytes(b"nonsense")
    (tmp_path / "readme.doc").touch()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.csv").touch()
    (tmp_path / "mixed" / "b.npz").touch()
    found, out, err = run("fit", *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_a_traceback_comes_with_debug_only(run):
    assert "Traceback" not in run("fit", "nowhere.npy")[2]
    code, _, err = run("fit", "nowhere.npy", "--debug")
    assert code == 1
    assert "Traceback" in err


def test_warnings_are_one_line(tables, run):
    code, out, err = run(
        *("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "1e-9"),
        *("--max-iter", "2"),
    )
    assert code == 0
    assert err.startswith("Warning: SoftmaxRegression: iteration_limit after 2 iterations")
    assert len(err.splitlines()) == 1
    assert "iteration_limit after 2 iterations" in out


def test_long_paths_are_not_wrapped(tables, run, tmp_path):
    out = tmp_path / ("long " * 40).strip()
    command = ("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "1")
    code, printed, _ = run(*command, "--out", out)
    assert code == 0
    assert f"model: {out}" in printed.splitlines()


def test_onnx_beside_the_model(tables, run_json, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    run_json(
        *("fit", "train.csv", "-t", "kind", "--drop", "id", "--encode", "--alpha", "0.01"),
        "--onnx",
    )
    session = ort.InferenceSession(tmp_path / "model" / "model.onnx")
    rows = tables[100:][["sl", "sw", "pl", "pw", "city"]]
    inputs = {name: rows[[name]].to_numpy() for name in rows}
    labels, p = session.run(None, inputs)
    model = load("model")
    np.testing.assert_allclose(p, model.predict_proba(rows), atol=1e-6)
    assert (labels == model.predict(rows)).all()


def test_metadata_is_strict_json(tables, run_json, tmp_path):
    run_json(
        "fit", "train.csv", "-t", "kind", "--drop", "city,id", "--solver", "admm", "--alpha", "1"
    )

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "model" / "metadata.json").read_text(), parse_constant=refuse)
