"""scikit-learn glue: validation of input, labels, fitted attributes. No mathematics."""

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
