"""Intel's extension for scikit-learn: lbfgs with its own kernels."""

from benchmark_utils.peers import Logistic
from sklearnex.linear_model import LogisticRegression


class Solver(Logistic):
    name = "scikit-learn-intelex"
    dense_only = "sparse data go to scikit-learn itself"
    kind = LogisticRegression
