"""`Exports`: what a fitted estimator becomes for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from admm_softmax.estimators.coefficients import dense
from admm_softmax.exchange import npz, torch


class Exports:
    """Methods that the estimators share: to_onnx, to_torch, to_npz and save."""

    def to_onnx(self, dtype: Any = None, target_opset: int | None = None) -> Any:
        """The model as an ONNX graph: input "X" (n × d), outputs "label" and "probabilities".

        Parameters
        ----------
        dtype : float32 or float64, optional
            Of the input and of the arithmetic; None is that of `coef_`.
        target_opset : int, optional
            The version of ONNX's operators; None is the newest that skl2onnx knows.

        `admm_softmax.to_onnx` also takes pipelines.
        """
        from admm_softmax.estimators.onnx_export import to_onnx  # noqa: PLC0415  (knows this class)

        return to_onnx(self, dtype=dtype, target_opset=target_opset)

    def to_torch(self) -> Any:
        """`torch.nn.Linear` (d inputs, K outputs); the softmax of its outputs is predict_proba."""
        check_is_fitted(self)
        return torch.to_linear(self)

    def to_npz(self, path: str | Path) -> Path:
        """Write coef, intercept, classes and feature_names to an .npz file."""
        check_is_fitted(self)
        npz.write(self, Path(path))
        return Path(path)

    def save(self, folder: str | Path) -> Path:
        """Write a model folder, which `admm_softmax.load` reads: model.skops and metadata.json.

        >>> import tempfile
        >>> from sklearn.datasets import load_iris
        >>> from admm_softmax import SoftmaxRegression, load
        >>> clf = SoftmaxRegression(alpha=1e-2).fit(*load_iris(return_X_y=True))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = load(clf.save(folder))
        >>> bool((again.coef_ == clf.coef_).all())
        True
        """
        from admm_softmax.estimators.model_folder import save  # noqa: PLC0415  (knows this class)

        return save(self, folder)


def float_type_of(model: Any) -> Any:
    """float32 or float64: what the coefficients are stored in."""
    return np.dtype(np.float32 if dense(model.coef_).dtype == np.float32 else np.float64)
