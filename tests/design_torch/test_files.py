"""Layers and files of torch."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

torch = pytest.importorskip("torch")

from admm_softmax import SoftmaxRegression  # noqa: E402
from admm_softmax.exchange.torch import read, write  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_layer_has_the_probabilities_of_the_model(classes, dtype):
    X, y = load_iris(return_X_y=True)
    X = X.astype(dtype)
    clf = SoftmaxRegression(alpha=1e-2).fit(X, np.minimum(y, classes - 1))
    layer = clf.to_torch()
    assert (layer.in_features, layer.out_features) == (4, classes)
    with torch.no_grad():
        P = torch.softmax(layer(torch.from_numpy(X)), dim=1).numpy()
    np.testing.assert_allclose(P, clf.predict_proba(X), atol=1e-6)
    assert not layer.training


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_weights_in_files(name, tmp_path):
    X, y = load_iris(return_X_y=True)
    clf = SoftmaxRegression(alpha=1e-2).fit(X, y)
    write(clf, tmp_path / name)
    if name.endswith(".pt"):
        found = read(tmp_path / name)
    else:
        found = pytest.importorskip("safetensors.torch").load_file(tmp_path / name)
    assert set(found) == {"weight", "bias"}
    layer = torch.nn.Linear(4, 3, dtype=torch.float64)
    layer.load_state_dict(found)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), clf.coef_)
    np.testing.assert_array_equal(layer.bias.detach().numpy(), clf.intercept_)


def test_code_in_a_file_is_not_run(tmp_path):
    torch.save({"X": pytest.raises}, tmp_path / "code.pt")
    with pytest.raises(Exception, match=r"weights_only|Weights only"):
        read(tmp_path / "code.pt")
