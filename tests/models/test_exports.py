"""Model folders, and models as ONNX, PyTorch, skops and npz."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import admm_softmax
from admm_softmax import ADMM, SoftmaxRegression, SoftmaxRegressionCV, load, save
from admm_softmax.estimators.model_folder import read_metadata
from tests.peers import fitted

skops = pytest.importorskip("skops.io", reason="model folders need skops")

STORED = Path(__file__).parent / "format-1"
X, y = load_digits(return_X_y=True)
IRIS, KIND = load_iris(return_X_y=True)
BINARY = SoftmaxRegression(1e-2).fit(IRIS[:100], KIND[:100])
DIGITS = SoftmaxRegression(1e-2).fit(X, y)
NAMED = SoftmaxRegression(1e-2).fit(IRIS, np.array(["a", "b", "c"])[KIND])


@pytest.mark.parametrize(
    ("model", "rows"),
    [(DIGITS, X), (BINARY, IRIS), (NAMED, IRIS)],
    ids=["digits", "two classes", "names"],
)
class TestExports:
    def test_onnx_gives_the_same_probabilities(self, model, rows):
        ort = pytest.importorskip("onnxruntime")
        pytest.importorskip("skl2onnx")
        for dtype, tolerance in ((None, 1e-12), (np.float32, 1e-6)):
            graph = model.to_onnx(dtype=dtype)
            given = rows.astype(dtype or np.float64)
            labels, p = ort.InferenceSession(graph.SerializeToString()).run(None, {"X": given})
            np.testing.assert_allclose(p, model.predict_proba(rows), atol=tolerance)
            assert (labels == model.predict(rows)).mean() > 0.999

    @pytest.mark.torch
    def test_torch_gives_the_same_probabilities(self, model, rows):
        torch = pytest.importorskip("torch")
        layer = model.to_torch()
        assert isinstance(layer, torch.nn.Linear)
        with torch.no_grad():
            p = torch.softmax(layer(torch.from_numpy(rows)), dim=1).numpy()
        np.testing.assert_allclose(p, model.predict_proba(rows), atol=1e-12)

    def test_npz(self, model, rows, tmp_path):
        again = load(model.to_npz(tmp_path / "m.npz"))
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))

    def test_a_folder_comes_back_as_it_was(self, model, rows, tmp_path):
        again = load(model.save(tmp_path / "model"))
        assert type(again) is SoftmaxRegression
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(again.classes_, model.classes_)
        assert again.status_ == model.status_
        assert again.best_iteration_ == model.best_iteration_
        assert again.history_.columns == model.history_.columns
        np.testing.assert_array_equal(again.history_["objective"], model.history_["objective"])
        again.set_params(warm_start=True, tol=1e-3).fit(*((X, y) if rows is X else (rows, KIND)))

    def test_skops_needs_no_trust_and_not_this_library(self, model, rows, tmp_path):
        file = model.save(tmp_path / "model") / "model.skops"
        assert skops.get_untrusted_types(file=file) == []
        twin = skops.load(file)
        assert type(twin) is LogisticRegression
        np.testing.assert_allclose(twin.predict_proba(rows), model.predict_proba(rows), atol=1e-12)


def test_pipelines_convert(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    pipe = make_pipeline(StandardScaler(), SoftmaxRegressionCV([0.1, 0.01], cv=3)).fit(X, y)
    graph = admm_softmax.to_onnx(pipe)
    _, p = ort.InferenceSession(graph.SerializeToString()).run(None, {"X": X})
    np.testing.assert_allclose(p, pipe.predict_proba(X), atol=1e-6)
    admm_softmax.register_onnx_converters()  # and then skl2onnx itself can
    graph = skl2onnx.to_onnx(pipe, X[:1].astype(np.float32))
    single = X.astype(np.float32)
    _, p = ort.InferenceSession(graph.SerializeToString()).run(None, {"X": single})
    p = np.array([[row[k] for k in range(10)] for row in p])  # the default: one mapping per row
    np.testing.assert_allclose(p, pipe.predict_proba(X), atol=2e-6)


def test_a_pipeline_comes_back(tmp_path):
    pipe = make_pipeline(StandardScaler(), SoftmaxRegressionCV([0.1, 0.01], cv=3)).fit(X, y)
    again = load(save(pipe, tmp_path / "model", data={"source": "digits"}))
    np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
    last, before = again[-1], pipe[-1]
    assert (last.alpha_, last.C_) == (before.alpha_, before.C_)
    for name in ("alphas_", "Cs_", "scores_", "n_iter_", "l1_ratios_"):
        np.testing.assert_array_equal(getattr(last, name), getattr(before, name))
    metadata = json.loads((tmp_path / "model" / "metadata.json").read_text())
    assert metadata["data"] == {"source": "digits"}


def test_settings_that_are_objects_are_kept_as_text(tmp_path):
    model = SoftmaxRegression(C=np.inf, solver=ADMM(rho=0.1), max_iter=3, tol=10.0).fit(IRIS, KIND)
    again = load(model.save(tmp_path))
    assert np.isposinf(again.C)
    assert again.solver == "auto"
    text = json.loads((tmp_path / "metadata.json").read_text())["settings_as_text"]
    assert text["solver"].startswith("ADMM(rho=0.1")


def test_single_precision_stays(tmp_path):
    model = SoftmaxRegression(0.1).fit(X.astype(np.float32), y)
    again = load(model.save(tmp_path))
    assert again.coef_.dtype == np.float32
    single = X.astype(np.float32)
    np.testing.assert_array_equal(again.predict_proba(single), model.predict_proba(single))


class TestRefusals:
    def test_pickles_need_trust(self, tmp_path):
        path = tmp_path / "m.pkl"
        path.write_bytes(pickle.dumps(NAMED))
        with pytest.raises(ValueError, match="is a pickle, which can run any code"):
            load(path)
        assert type(load(path, trust=True)) is SoftmaxRegression

    def test_unknown_types_need_trust(self, tmp_path):
        path = tmp_path / "m.skops"
        path.write_bytes(skops.dumps(NAMED))
        with pytest.raises(ValueError, match=r"types that may run code when loaded .*admm_softmax"):
            load(path)

    def test_newer_formats(self, tmp_path):
        NAMED.save(tmp_path)
        path = tmp_path / "metadata.json"
        path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
        with pytest.raises(ValueError, match=r"has format 99.* up to 1: update it"):
            load(tmp_path)

    def test_what_is_no_model(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no model"):
            load(tmp_path / "nothing")
        with pytest.raises(FileNotFoundError, match=r"it has no metadata\.json"):
            load(tmp_path)
        (tmp_path / "metadata.json").write_text("{")
        with pytest.raises(ValueError, match="is damaged"):
            load(tmp_path)
        (tmp_path / "m.skops").write_text("nonsense")
        with pytest.raises(ValueError, match="is not a skops file"):
            load(tmp_path / "m.skops")
        np.savez(tmp_path / "m.npz", coef=np.eye(2))
        with pytest.raises(ValueError, match="it has no array 'intercept'"):
            load(tmp_path / "m.npz")
        with pytest.raises(TypeError, match=r"must be a SoftmaxRegression .*, got Log"):
            save(fitted(LogisticRegression(), IRIS, KIND), tmp_path)

    def test_missing_packages(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "skl2onnx", None)
        with pytest.raises(ImportError, match=r"pip install 'admm-softmax\[onnx\]'"):
            NAMED.to_onnx()
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(ImportError, match=r"pip install 'admm-softmax\[torch\]'"):
            NAMED.to_torch()


@pytest.mark.parametrize("folder", sorted(STORED.iterdir()), ids=lambda folder: folder.name)
def test_old_folders_load_for_ever(folder):
    """Folders that version 0.1 has written; never write them again."""
    with np.load(folder / "expected.npz") as file:
        expected = dict(file)
    made_by = read_metadata(folder)["versions"]["scikit-learn"]
    if "columns" in expected and parse_version(sklearn.__version__) < parse_version(made_by):
        pytest.skip(f"its encoder was made by scikit-learn {made_by}, which is newer")
    model = load(folder)
    rows = expected["X"]
    if "columns" in expected:
        pd = pytest.importorskip("pandas")
        rows = pd.DataFrame(rows, columns=expected["columns"])
        rows["city"] = expected["city"]
    np.testing.assert_allclose(model.predict_proba(rows), expected["p"], atol=1e-9)
    assert list(model.predict(rows)) == list(expected["labels"])
    last = model[-1] if hasattr(model, "steps") else model
    assert last.history_["objective"][-1] < last.history_["objective"][0]
    assert last.status_ == "converged"
