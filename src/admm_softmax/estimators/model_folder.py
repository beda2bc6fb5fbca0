"""A model folder: `model.skops`, which scikit-learn alone can use, and `metadata.json`.

`model.skops` holds the scikit-learn twin of the estimator (`to_sklearn`), in its pipeline if
there is one. All types in it are scikit-learn's and NumPy's, so that skops loads it without
being told to trust anything, and programs without this library can predict. What the twin does
not know (settings, history, path) is in `metadata.json`; `load` puts the two together.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from admm_softmax._version import __version__
from admm_softmax.estimators.base import SoftmaxClassifier
from admm_softmax.estimators.coefficients import from_coef
from admm_softmax.estimators.cross_validation import SoftmaxRegressionCV
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.exchange import npz, skops
from admm_softmax.solvers import History, Status
from admm_softmax.storage.atomic import replacing
from admm_softmax.storage.foreign_files import refusing
from admm_softmax.storage.records import write_json

#: Of the folder's content. Every format so far can be read; a newer one is refused.
MODEL_FORMAT = 1
MODEL, METADATA = "model.skops", "metadata.json"
_KINDS: dict[str, type[SoftmaxClassifier]] = {
    kind.__name__: kind for kind in (SoftmaxRegression, SoftmaxRegressionCV)
}
_PICKLES = (".pkl", ".pickle", ".joblib")
#: Fitted attributes of SoftmaxRegressionCV that are numbers or arrays of them.
_CV_NUMBERS = ("alpha_", "C_", "l1_ratio_")
_CV_ARRAYS = ("alphas_", "Cs_", "scores_", "l1_ratios_")


def save(model: Any, folder: str | Path, *, data: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted estimator, or a pipeline that ends in one, to a folder; returns the folder.

    `data` says what it was fitted to, and is kept in the metadata as it is.

    >>> from tempfile import mkdtemp
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from admm_softmax import SoftmaxRegression, save
    >>> pipeline = make_pipeline(StandardScaler(), SoftmaxRegression(alpha=0.1))
    >>> folder = save(pipeline.fit(*load_iris(return_X_y=True)), mkdtemp() + "/model")
    >>> sorted(path.name for path in folder.iterdir())
    ['metadata.json', 'model.skops']
    """
    check_is_fitted(model)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Both are written before one takes its name: a full disk leaves the old model whole.
    with replacing(folder / MODEL) as twin, replacing(folder / METADATA) as facts:
        skops.write(twin_of(model), twin)
        write_json(facts, describe(model, data))
    return folder


def load(path: str | Path, *, trust: bool = False) -> Any:
    """The model of a folder, or of a .skops, .npz or pickle file.

    Parameters
    ----------
    path : folder or file
        Of a folder, the estimator or pipeline that was saved. It predicts as before; to fit it
        again, settings that are objects (an operator, a reference, a solver) must be set again:
        they are in metadata.json as text only. Of a .skops file, what is in it.
    trust : bool
        Pickles, and types that skops does not know, can run code when they are loaded: without
        this they are refused.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import SoftmaxRegression, load
    >>> X, y = load_iris(return_X_y=True)
    >>> folder = SoftmaxRegression(alpha=0.1).fit(X, y).save(mkdtemp() + "/model")
    >>> load(folder).predict(X[:2])
    array([0, 0])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no model {path}")
    if path.suffix in _PICKLES:
        return _unpickle(path, trust)
    if path.suffix == ".npz":
        return _of_arrays(npz.read(path))
    if not path.is_dir():
        return skops.read(path, trust=trust)
    facts = read_metadata(path)
    if not (path / MODEL).exists():
        raise FileNotFoundError(f"{path} is not a model folder: it has no {MODEL}")
    twin = skops.read(path / MODEL, trust=trust)
    with refusing(path / METADATA, f"the metadata of {MODEL}"):
        if not isinstance(twin, Pipeline):
            return _restored(twin, facts)
        name, last = twin.steps[-1]
        twin.steps[-1] = (name, _restored(last, facts))
    return twin


def estimator_of(model: Any) -> Any:
    """The estimator itself, of a pipeline its last step."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, SoftmaxClassifier):
        raise TypeError(
            f"a model must be a {' or '.join(_KINDS)}, or a pipeline that ends in one, got "
            f"{type(last).__name__}"
        )
    return last


def twin_of(model: Any) -> Any:
    """The same model made of scikit-learn's classes alone."""
    twin = estimator_of(model).to_sklearn()
    if isinstance(model, Pipeline):
        return Pipeline([*model.steps[:-1], (model.steps[-1][0], twin)])
    return twin


def read_metadata(folder: str | Path) -> dict[str, Any]:
    """The content of a model folder's metadata.json."""
    path = Path(folder) / METADATA
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not a model folder: it has no {METADATA}") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(facts, dict) or not isinstance(facts.get("format"), int):
        raise ValueError(f"{path} is not the metadata of a model: it has no format")
    if facts["format"] > MODEL_FORMAT:
        raise ValueError(
            f"{folder} has format {facts['format']}, made by admm-softmax "
            f"{facts.get('versions', {}).get('admm-softmax')}; this is {__version__}, which reads "
            f"formats up to {MODEL_FORMAT}: update it"
        )
    return facts


def describe(model: Any, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What metadata.json says about a fitted model."""
    last = estimator_of(model)
    settings = last.get_params(deep=False)
    plain = {name: _plain(value) for name, value in settings.items() if _is_plain(value)}
    names = feature_names(model)
    fitted = {"alpha": last._alpha, "l1_ratio": last._ratio, "total_weight": last._total_weight}
    found: dict[str, Any] = {
        "format": MODEL_FORMAT,
        "kind": type(last).__name__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "settings": plain,
        "settings_as_text": {n: repr(v) for n, v in settings.items() if n not in plain},
        "classes": np.asarray(last.classes_).tolist(),
        "n_features": int(last.n_features_in_),
        "feature_names": names,
        "columns": _columns(model),
        "status": None if last.status_ is None else str(last.status_),
        "n_iter": np.asarray(last.n_iter_).tolist(),
        "best_iteration": last.best_iteration_,
        "fitted": fitted,
        "data": dict(data or {}),
        "history": _history(last.history_),
    }
    if isinstance(last, SoftmaxRegressionCV):
        found["path"] = {name: getattr(last, name) for name in _CV_NUMBERS}
        found["path"] |= {name: getattr(last, name).tolist() for name in _CV_ARRAYS}
    return found


def versions() -> dict[str, str]:
    """Versions of what a model depends on."""
    found = {"admm-softmax": __version__}
    for name in ("scikit-learn", "numpy", "scipy", "skops"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "python": python_version()}


def feature_names(model: Any) -> list[str] | None:
    """The names of the estimator's features, also of those that a pipeline makes."""
    last = estimator_of(model)
    names = getattr(last, "feature_names_in_", None)
    if isinstance(model, Pipeline) and hasattr(model[:-1], "get_feature_names_out"):
        names = model[:-1].get_feature_names_out()
    return None if names is None else [str(name) for name in names]


def _columns(model: Any) -> list[str] | None:
    """The columns that a pipeline or an estimator takes, by name."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _is_plain(value: Any) -> bool:
    """Whether JSON can express a setting so that it comes back the same."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.number | Path)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.number):
        value = value.item()
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _history(history: History | None) -> dict[str, Any] | None:
    if history is None:
        return None
    columns = {name: history[name].tolist() for name in history.columns}
    kept = {"tol": history.tol, "kept_iteration": history.kept_iteration}
    return {"solver": history.solver, "reason": history.reason, **kept, "columns": columns}


def _restored(twin: Any, facts: Mapping[str, Any]) -> Any:
    """The estimator, from its twin in scikit-learn and the metadata."""
    kind = _KINDS.get(facts["kind"])
    if kind is None:
        raise ValueError(f"the model's kind must be one of {[*_KINDS]}, got {facts['kind']!r}")
    known = kind._get_param_names()
    settings = {n: _number(v) for n, v in facts["settings"].items() if n in known}
    model = kind(**settings)
    for name in ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(twin, name):
            setattr(model, name, getattr(twin, name))
    fitted = facts["fitted"]
    model._alpha, model._ratio = fitted["alpha"], fitted["l1_ratio"]
    model._total_weight = fitted["total_weight"]
    found: Any = model
    found.n_iter_ = np.array(facts["n_iter"], dtype=np.int32)
    found.status_ = None if facts["status"] is None else Status(facts["status"])
    found.best_iteration_ = facts["best_iteration"]
    found.history_ = _stored_history(facts["history"])
    if kind is SoftmaxRegression:
        K, intercept = len(found.classes_), bool(found.fit_intercept)
        found._W = from_coef(found.coef_, found.intercept_, K, intercept)
    for name in _CV_NUMBERS if "path" in facts else ():
        value = facts["path"][name]
        setattr(found, name, np.inf if value is None else float(value))
    for name in _CV_ARRAYS if "path" in facts else ():
        setattr(found, name, np.array(facts["path"][name], dtype=np.float64))
    return found


def _number(value: Any) -> Any:
    """The inverse of `_plain`, for infinite settings."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def _stored_history(stored: Mapping[str, Any] | None) -> History | None:
    if stored is None:
        return None
    history = History(stored["solver"], stored["reason"])
    history.tol, history.kept_iteration = stored.get("tol"), stored.get("kept_iteration")
    columns = stored["columns"]
    for record in zip(*columns.values(), strict=True):
        known = {n: np.nan if v is None else v for n, v in zip(columns, record, strict=True)}
        history.append(known)
    return history


def _of_arrays(arrays: Mapping[str, Any]) -> SoftmaxRegression:
    """An estimator that predicts, from an .npz file."""
    model: Any = SoftmaxRegression()
    model.coef_, model.intercept_, model.classes_ = (
        arrays[name] for name in ("coef", "intercept", "classes")
    )
    model.n_features_in_ = model.coef_.shape[1]
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    model._alpha, model._ratio, model._total_weight = 0.0, 0.0, 1.0
    model.n_iter_ = np.zeros(1, np.int32)
    model.history_, model.status_, model.best_iteration_ = None, None, None
    fitted: SoftmaxRegression = model
    return fitted


def _unpickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise ValueError(
            f"{path} is a pickle, which can run any code when it is loaded: give trust=True "
            "(--trust) if you know who made it"
        )
    if path.suffix == ".joblib":
        import joblib  # noqa: PLC0415

        return joblib.load(path)
    with path.open("rb") as file:
        return pickle.load(file)
