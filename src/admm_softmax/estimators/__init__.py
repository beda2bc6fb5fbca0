"""scikit-learn glue: validation of input, labels, fitted attributes. No mathematics."""

from typing import TYPE_CHECKING

from admm_softmax._lazy import lazy_names

if TYPE_CHECKING:
    from admm_softmax.estimators.cross_validation import SoftmaxRegressionCV
    from admm_softmax.estimators.multioutput import MultiOutputSoftmaxRegression
    from admm_softmax.estimators.multioutput_cv import MultiOutputSoftmaxRegressionCV
    from admm_softmax.estimators.paths import softmax_path
    from admm_softmax.estimators.regression import SoftmaxRegression

__all__ = [
    "MultiOutputSoftmaxRegression",
    "MultiOutputSoftmaxRegressionCV",
    "SoftmaxRegression",
    "SoftmaxRegressionCV",
    "softmax_path",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "MultiOutputSoftmaxRegression": "multioutput",
        "MultiOutputSoftmaxRegressionCV": "multioutput_cv",
        "SoftmaxRegression": "regression",
        "SoftmaxRegressionCV": "cross_validation",
        "softmax_path": "paths",
    },
)
