"""Damaged tables, svmlight files, archives of arrays and models: read, or refused in words."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV
from admm_softmax.estimators.model_folder import load, save
from admm_softmax.exchange import npz
from admm_softmax.reading import Request, blocks, read
from tests.problems import make
from tests.trust.damage import damages, limited_memory
from tests.trust.effort import examples

#: What the command tells its user about; anything else would be a traceback.
OURS = (ValueError, TypeError, OSError)
X, Y = make(60, 4, 3)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(kind=Y)


def svmlight(path):
    dump_svmlight_file(X, Y, str(path), zero_based=False)


WRITERS = {
    "x.csv": lambda path: FRAME.to_csv(path, index=False),
    "x.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "x.csv.xz": lambda path: FRAME.to_csv(path, index=False),
    "x.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "x.parquet": lambda path: FRAME.to_parquet(path),
    "x.feather": lambda path: FRAME.to_feather(path),
    "x.npz": lambda path: np.savez(path, X=X, y=Y),
    "packed.npz": lambda path: np.savez_compressed(path, X=X, y=Y),
    "sparse.npz": lambda path: sp.save_npz(path, sp.csr_array(X)),
    "x.svm": svmlight,
}


@pytest.fixture(scope="module", params=sorted(WRITERS))
def data(request, tmp_path_factory):
    """The name of a file, and its content."""
    path = tmp_path_factory.mktemp("good") / request.param
    WRITERS[request.param](path)
    return request.param, path.read_bytes()


def asked_for(path):
    has_columns = path.name.startswith("x.") and path.suffix not in (".npz", ".svm")
    return Request(str(path), target=("kind",) if has_columns else ())


def test_good_files_are_read(data, tmp_path):
    name, content = data
    path = tmp_path / name
    path.write_bytes(content)
    found = read(asked_for(path))
    assert found.shape == (60, 4)
    if name != "sparse.npz":
        assert len(found.y) == 60
    in_order = blocks(asked_for(path), columns=None, n_features=4)
    assert sum(block.X.shape[0] for block in in_order) == 60


@given(damage=damages())
@examples(30, 400)
def test_damaged_data_are_read_or_refused(data, tmp_path_factory, damage):
    name, content = data
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(damage(content))
    with warnings.catch_warnings(), limited_memory():
        warnings.simplefilter("ignore")
        try:
            found = read(asked_for(path))
            assert len(found.shape) == 2
            for block in blocks(asked_for(path), columns=None, n_features=found.shape[1]):
                assert block.X.ndim == 2
        except OURS as error:
            assert len(str(error).split()) >= 4, f"no help: {error!r}"
        finally:
            shutil.rmtree(path.parent)


@pytest.fixture(scope="module", params=["one fit", "cross-validation", "npz"])
def model(request, tmp_path_factory):
    """Where a model is stored, and its probabilities."""
    pytest.importorskip("skops")
    folder = tmp_path_factory.mktemp("model")
    kind = (
        SoftmaxRegressionCV([1.0, 0.1], cv=2) if "cross" in request.param else SoftmaxRegression()
    )
    fitted = kind.fit(X, Y)
    if request.param == "npz":
        npz.write(fitted, folder / "model.npz")
    else:
        save(fitted, folder)
    return folder, fitted.predict_proba(X)


@given(damage=damages(), pick=st.integers(0, 5))
@examples(30, 300)
def test_damaged_models_are_loaded_or_refused(model, tmp_path_factory, damage, pick):
    folder, expected = model
    own = tmp_path_factory.mktemp("damaged")
    shutil.copytree(folder, own, dirs_exist_ok=True)
    files = sorted(own.iterdir())
    target = files[pick % len(files)]
    target.write_bytes(damage(target.read_bytes()))
    with warnings.catch_warnings(), limited_memory():
        warnings.simplefilter("ignore")
        try:
            found = load(own if len(files) > 1 else target)
        except OURS as error:
            assert len(str(error).split()) >= 4, f"no help: {error!r}"
            return
        finally:
            shutil.rmtree(own)
    assert found.predict_proba(X[:, : found.n_features_in_]).shape[0] == 60
    assert expected.shape == (60, 3)
