"""Checkpoints of estimators, of paths over alpha and of cross-validation."""

import os
import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV, softmax_path
from admm_softmax.design import DenseDesign
from tests.checkpoints.small_runs import X, Y


def test_parameters_follow_scikit_learn(tmp_path):
    clf = SoftmaxRegression(checkpoint=tmp_path, checkpoint_every=5)
    assert clone(clf).get_params()["checkpoint"] == tmp_path
    assert clone(clf).get_params()["checkpoint_every"] == 5
    assert SoftmaxRegressionCV().get_params()["checkpoint"] is None
    clf.fit(X, Y)
    twin = clone(clf).set_params(checkpoint=str(tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(twin.coef_, clf.coef_)
    assert twin.status_ == "converged"
    assert twin.history_.reason == clf.history_.reason


def test_fits_of_a_path_that_have_ended_are_not_run_again(tmp_path, writes):
    settings = {"X_val": X[:20], "y_val": Y[:20], "checkpoint": tmp_path, "solver": "lbfgs"}
    first = softmax_path(X, Y, [0.1, 0.01, 0.001], **settings)
    assert {"alpha-000-000", "alpha-002-000", "scores-000", "scores-002"} <= set(writes)
    for name in ("alpha-002-000", "scores-002"):
        (tmp_path / f"{name}.npz").unlink()
    writes.clear()
    second = softmax_path(X, Y, [0.1, 0.01, 0.001], **settings)
    assert set(writes) == {"alpha-002-000", "scores-002"}
    np.testing.assert_array_equal(second.coefs, first.coefs)
    np.testing.assert_array_equal(second.val_loss, first.val_loss)
    with pytest.raises(
        ValueError, match=r"alphas was \[0.1, 0.01, 0.001\], is \[0.1, 0.02, 0.001\] now"
    ):
        softmax_path(X, Y, [0.1, 0.02, 0.001], **settings)


def test_cross_validation_goes_on(tmp_path, writes):
    cv = SoftmaxRegressionCV([0.1, 0.01, 0.001], cv=3, checkpoint=tmp_path, tol=1e-8)
    first = clone(cv).fit(X, Y)
    assert sum(name.startswith("alpha") for name in set(writes)) == 9
    assert sum(name.startswith("refit") for name in set(writes)) == 1
    writes.clear()
    again = clone(cv).fit(X, Y)
    assert not writes
    for name in ("coef_", "intercept_", "scores_", "coefs_paths_", "n_iter_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    with pytest.raises(ValueError, match="folds: other values than before"):
        clone(cv).set_params(cv=4).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape("scoring was 'neg_log_loss', is 'accuracy'")):
        clone(cv).set_params(scoring="accuracy").fit(X, Y)


def test_penalties_in_other_units_are_other_fits(tmp_path):
    # C weighs the sum over a fold's own rows: the same numbers are other penalties there.
    Cs = [0.5, 2.0]
    SoftmaxRegressionCV(Cs=Cs, cv=3, checkpoint=tmp_path).fit(X, Y)
    twin = SoftmaxRegressionCV([1 / (len(X) * C) for C in Cs], cv=3, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="scales was"):
        twin.fit(X, Y)


def test_the_fit_to_training_and_validation_rows_is_kept_too(tmp_path, writes):
    cv = SoftmaxRegressionCV([0.1, 0.01], refit="all", checkpoint=tmp_path)
    first = clone(cv).fit(X, Y, X_val=X[:20], y_val=Y[:20])
    assert sum(name.startswith("both") for name in set(writes)) == 1
    writes.clear()
    again = clone(cv).fit(X, Y, X_val=X[:20], y_val=Y[:20])
    assert not writes
    np.testing.assert_array_equal(again.coef_, first.coef_)
    with pytest.raises(ValueError, match="class_weight was None, is 'balanced' now"):
        clone(cv).set_params(class_weight="balanced").fit(X, Y, X_val=X[:20], y_val=Y[:20])


@pytest.mark.parametrize("others", [np.arange(60.0), [f"row {i}" for i in range(60)]])
def test_scores_with_other_metadata_are_other_scores(tmp_path, others):
    with config_context(enable_metadata_routing=True):
        asking = make_scorer(lambda y, predicted, extra: 1.0).set_score_request(extra=True)
        cv = SoftmaxRegressionCV([0.1], cv=3, checkpoint=tmp_path, scoring=asking)
        cv.fit(X, Y, extra=others)
        cv.fit(X, Y, extra=others)
        with pytest.raises(ValueError, match="extra of scores: other values than before"):
            cv.fit(X, Y, extra=others[::-1])


@pytest.mark.usefixtures("ctrl_c")
def test_scores_of_interrupted_fits_are_not_kept(tmp_path, monkeypatch):
    whole = SoftmaxRegressionCV([0.1, 0.01], cv=3, tol=1e-8).fit(X, Y)
    calls, fold_many = [], DenseDesign.fold_many

    def pressed(self, requests):
        calls.append(len(requests))
        if len(calls) == 12:
            os.kill(os.getpid(), 2)
        return fold_many(self, requests)

    cv = SoftmaxRegressionCV([0.1, 0.01], cv=3, tol=1e-8, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(DenseDesign, "fold_many", pressed)
        with warnings.catch_warnings(), suppress(KeyboardInterrupt):
            warnings.simplefilter("ignore")
            clone(cv).fit(X, Y)
    assert len(calls) >= 12
    result = clone(cv).fit(X, Y)
    np.testing.assert_allclose(result.scores_, whole.scores_, rtol=1e-6)
    np.testing.assert_allclose(result.coef_, whole.coef_, atol=1e-5)
