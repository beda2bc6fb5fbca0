"""What fit and predict refuse, with the parameter, the rule and the value."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from admm_softmax import ADMM, SoftmaxRegression
from tests.problems import make, one_hot

X, Y = make(30, 4, 3)
BAD = {
    "alpha": ({"alpha": -1.0}, {}, "alpha must be a finite number ≥ 0, got -1.0"),
    "both": ({"alpha": 1.0, "C": 1.0}, {}, "give alpha or C, not both: got alpha=1.0 and C=1.0"),
    "C": ({"C": 0.0}, {}, "C must be positive, got 0.0"),
    "NaN": ({}, {"X": np.where(np.eye(30, 4) > 0, np.nan, X)}, "Input X contains NaN"),
    "infinity": ({}, {"X": np.where(np.eye(30, 4) > 0, np.inf, X)}, "Input X contains infinity"),
    "one class": ({}, {"y": np.full(30, "a")}, "at least two classes, got one class only: 'a'"),
    "NaN in y": ({}, {"y": np.where(Y == 0, np.nan, Y)}, "Input y contains NaN"),
    "length of y": ({}, {"y": Y[:20]}, "y has 20 entries for 30 rows of X"),
    "rows of soft y": ({}, {"y": np.full((20, 2), 0.5)}, "y has 20 rows for 30 rows of X"),
    "continuous y": ({}, {"y": X[:, 0]}, "Unknown label type: continuous"),
    "one soft class": ({}, {"y": one_hot(0 * Y, 3)}, "at least two classes, got one class only: 0"),
    "NaN in X_val": ({}, {"X_val": X + np.nan, "y_val": Y}, "X_val: Input X contains NaN"),
    "length of y_val": (
        {},
        {"X_val": X, "y_val": Y[:9]},
        "y_val has 9 entries for 30 rows of X_val",
    ),
    "soft y_val off": (
        {},
        {"X_val": X, "y_val": one_hot(Y, 3) * 2},
        "row of soft labels y_val must",
    ),
    "class weight": (
        {"class_weight": {0: -1.0}},
        {},
        r"class_weight must be finite and ≥ 0.*\[-1.0",
    ),
    "huge weights": (
        {},
        {"sample_weight": np.full(30, 1e307)},
        "sample_weight must have a finite sum",
    ),
    "huge X": ({}, {"X": X * 1e200}, "X is too large: the squares of its entries overflow"),
    "off the simplex": ({}, {"y": np.full((30, 3), 0.5)}, "sum to 1, got 1.5 in row 0"),
    "negative weight": (
        {},
        {"sample_weight": np.r_[-1.0, np.ones(29)]},
        "sample_weight must be ≥ 0, got -1.0 at position 0",
    ),
    "zero weights": ({}, {"sample_weight": np.zeros(30)}, "positive sum, got 0: all 30 entries"),
    "few weights": ({}, {"sample_weight": np.ones(9)}, "sample_weight has 9 entries for 30 rows"),
    "unseen": (
        {},
        {"X_val": X, "y_val": Y + 5},
        r"y_val holds labels never seen.*\[5, 6, 7\]",
    ),
    "soft y_val": ({}, {"X_val": X, "y_val": np.full((30, 2), 0.5)}, "y_val has 2 columns for 3"),
    "only X_val": ({}, {"X_val": X}, "X_val and y_val go together: y_val is None"),
    "only y_val": ({}, {"y_val": Y}, "X_val and y_val go together: X_val is None"),
    "only weights": ({}, {"sample_weight_val": [1.0]}, "sample_weight_val needs X_val and y_val"),
    "weights of validation": (
        {},
        {"X_val": X, "y_val": Y, "sample_weight_val": np.ones(4)},
        "sample_weight_val has 4 entries for 30 rows",
    ),
    "columns of X_val": (
        {},
        {"X_val": X[:, :2], "y_val": Y},
        "X has 2 features, but .* 4",
    ),
    "operator": ({"operator": sp.eye_array(7)}, {}, "operator must have 4 columns.*got 7"),
    "reference": ({"reference": np.zeros((2, 4))}, {}, r"reference must have one of the shapes .*"),
    "reference pair": (
        {"reference": (np.zeros((3, 4)), np.zeros(2))},
        {},
        r"must have the shapes \(3, 4\) and \(3,\), got \(3, 4\) and \(2,\)",
    ),
    "reference triple": ({"reference": (1, 2, 3)}, {}, r"must be \(coef, intercept\), got 3"),
    "solver": ({"solver": "adam"}, {}, "solver must be one of .* got 'adam'"),
    "max_iter": ({"max_iter": -1}, {}, "max_iter must be a whole number ≥ 0, got -1"),
    "tol": ({"tol": -1}, {}, "tol must be a number ≥ 0, got -1"),
    "time_limit": ({"time_limit": -1}, {}, "time_limit must be positive or None, got -1"),
    "keep": ({"keep": "all"}, {}, "keep must be 'best' or 'last', got 'all'"),
    "monitor": ({"monitor": "f1"}, {}, "monitor must be 'loss' or 'accuracy', got 'f1'"),
    "n_threads": ({"n_threads": 0}, {}, "n_threads must be at least 1 or None, got 0"),
    "class_weight": (
        {"class_weight": "even"},
        {"y": one_hot(Y, 3)},
        "class_weight must be a dict, 'balanced' or None, got 'even'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_parameter_the_rule_and_the_value(case):
    settings, arguments, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        SoftmaxRegression(**settings).fit(**{"X": X, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": "strong"}, "alpha must be a finite number ≥ 0, got 'strong' of type str"),
        ({"C": "1"}, "C must be positive, got '1' of type str"),
        ({"n_threads": "2"}, "n_threads must be at least 1 or None, got '2'"),
        ({"solver": ADMM}, "solver must be a name or an object with an iterates"),
    ],
)
def test_settings_of_the_wrong_type(settings, message):
    with pytest.raises(TypeError, match=message):
        SoftmaxRegression(**settings).fit(X, Y)


def test_a_fit_that_fails_leaves_the_last_one_whole():
    clf = SoftmaxRegression(0.1).fit(X, Y)
    before = clf.predict(X)
    with pytest.raises(ValueError, match="never seen"):
        clf.fit(X, np.array(list("abc"))[Y], X_val=X, y_val=["z"] * 30)
    np.testing.assert_array_equal(clf.predict(X), before)


def test_a_solver_of_the_wrong_type():
    with pytest.raises(TypeError, match="solver must be a name or an object with an iterates"):
        SoftmaxRegression(solver=3).fit(X, Y)


def test_prediction_checks_its_input():
    with pytest.raises(NotFittedError):
        SoftmaxRegression().predict_proba(X)
    with pytest.raises(NotFittedError):
        SoftmaxRegression().to_sklearn()
    clf = SoftmaxRegression(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but SoftmaxRegression is expecting 4"):
        clf.predict(X[:, :3])
