"""Scores and classes of a linear model, without loading scikit-learn's linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data


class LinearClassifier(ClassifierMixin):
    """Scores X coef_ᵀ + intercept_, n × K, and the class of the largest in each row.

    For two classes, coef_ has one row, and the sign of the one score decides. This is what
    scikit-learn's LinearClassifierMixin and SparseCoefMixin do; an import of them loads all of its
    linear models, metrics and searches.
    """

    coef_: Any
    intercept_: Any
    classes_: Any

    def decision_function(self, X: Any) -> Any:
        """Scores, one row per example; one number per example for two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of the largest score of every row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def sparsify(self) -> Any:
        """Keep `coef_` as a sparse matrix, which takes less memory where most of it is zero."""
        from sklearn.linear_model._base import SparseCoefMixin  # noqa: PLC0415  (slow to load)

        return SparseCoefMixin.sparsify(self)

    def densify(self) -> Any:
        """Keep `coef_` as an array again, after `sparsify`."""
        from sklearn.linear_model._base import SparseCoefMixin  # noqa: PLC0415  (slow to load)

        return SparseCoefMixin.densify(self)
