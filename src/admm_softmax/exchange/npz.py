"""NumPy: coefficients, intercepts and classes in one .npz file, without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.storage.atomic import replacing
from admm_softmax.storage.foreign_files import open_npz


def write(model: Any, path: Path) -> None:
    """Write coef, intercept, classes and, where the model has them, feature_names."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    classes = np.asarray(model.classes_)
    if classes.dtype.kind == "O":
        classes = classes.astype(str)
    arrays = {"coef": coef, "intercept": model.intercept_, "classes": classes}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        arrays["feature_names"] = np.asarray(names).astype(str)
    with replacing(path) as part, part.open("xb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read(path: Path) -> dict[str, Any]:
    """The arrays that `write` has stored."""
    with open_npz(path, "an .npz file of a model") as stored:
        arrays = {name: stored[name] for name in stored.files}
    missing = [name for name in ("coef", "intercept", "classes") if name not in arrays]
    if missing:
        raise ValueError(f"{path} is not a model: it has no array {missing[0]!r}")
    shapes = [arrays[name].shape for name in ("coef", "intercept", "classes")]
    rows = shapes[0][0] if len(shapes[0]) == 2 else 0
    if not rows or shapes[1:] != [(rows,), (2 if rows == 1 else rows,)]:
        raise ValueError(
            f"{path} is not a model: coef, intercept and classes have the shapes "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    return arrays
