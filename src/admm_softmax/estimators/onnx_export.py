"""`to_onnx`: estimators, and pipelines that end in one, as ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from admm_softmax.estimators.cross_validation import SoftmaxRegressionCV
from admm_softmax.estimators.exports import float_type_of
from admm_softmax.estimators.regression import SoftmaxRegression
from admm_softmax.exchange import onnx


def register_onnx_converters() -> None:
    """Teach skl2onnx about the estimators, for code that calls skl2onnx itself.

    >>> import admm_softmax
    >>> admm_softmax.register_onnx_converters()
    """
    onnx.register((SoftmaxRegression, SoftmaxRegressionCV))


def to_onnx(
    model: Any, X: Any = None, *, dtype: Any = None, target_opset: int | None = None
) -> Any:
    """A fitted estimator, or a pipeline that ends in one, as an ONNX model.

    Its outputs are "label" and "probabilities".

    Parameters
    ----------
    model : estimator or Pipeline
        What skl2onnx can convert of the steps before the estimator decides what may be there.
    X : frame, optional
        Of a pipeline that looks at columns by name: rows with these columns. Each becomes an
        input of its own, of texts or numbers (n × 1). Otherwise there is one input "X".
    dtype : float32 or float64, optional
        Of the numbers that go in; None is that of `coef_`.
    target_opset : int, optional
        The version of ONNX's operators; None is the newest that skl2onnx knows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from admm_softmax import SoftmaxRegression, to_onnx
    >>> clf = SoftmaxRegression(alpha=0.1).fit(*load_iris(return_X_y=True))
    >>> [output.name for output in to_onnx(clf).graph.output]
    ['label', 'probabilities']
    """
    check_is_fitted(model)
    register_onnx_converters()
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    kind = float_type_of(last) if dtype is None else np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    if X is not None and hasattr(X, "columns"):
        inputs = [(str(name), kind if is_number(X[name]) else str, 1) for name in X.columns]
    else:
        inputs = [("X", kind, int(model.n_features_in_))]
    return onnx.to_graph(model, inputs, target_opset)


def input_frame(model: Any) -> Any:
    """A frame with no rows and the columns that a pipeline with an encoder takes."""
    import pandas as pd  # noqa: PLC0415

    encoder = model.steps[0][1]
    texts = {name for kind, _, own in encoder.transformers_ if kind == "text" for name in own}
    return pd.DataFrame(
        {
            str(name): pd.Series(dtype=object if name in texts else np.float64)
            for name in encoder.feature_names_in_
        }
    )


def is_number(column: Any) -> bool:
    """Whether a column of a frame holds numbers or truth values, not texts or categories."""
    return getattr(column.dtype, "kind", "O") in "fiub"
