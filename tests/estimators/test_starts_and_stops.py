"""Where a fit starts, when it stops, what it keeps and what it says then."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from admm_softmax import ADMM, SoftmaxRegression
from tests.problems import make


def test_validation_keeps_the_best_iterate():
    X, y = make(60, 20, 3, noise=3.0)
    X_val, y_val = make(200, 20, 3, noise=3.0)
    solver = ADMM(rho=1e-3)
    settings = {"solver": solver, "max_iter": 60, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning):
        best = SoftmaxRegression(1e-6, **settings).fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.warns(ConvergenceWarning):
        last = SoftmaxRegression(1e-6, keep="last", **settings).fit(X, y, X_val=X_val, y_val=y_val)
    losses = best.history_["val_loss"]
    assert losses.argmin() < len(losses) - 1

    def loss(clf):
        return -clf.predict_log_proba(X_val)[np.arange(200), y_val].mean()

    assert loss(best) == pytest.approx(losses.min(), rel=1e-8)
    assert loss(last) == pytest.approx(losses[-1], rel=1e-8)
    with pytest.warns(ConvergenceWarning):
        accurate = SoftmaxRegression(1e-6, monitor="accuracy", **settings).fit(
            X, y, X_val=X_val, y_val=y_val
        )
    assert accurate.score(X_val, y_val) == pytest.approx(
        accurate.history_["val_accuracy"].max(), abs=1e-12
    )


def test_validation_weights_count():
    X, y = make(60, 5, 3)
    s = np.r_[np.ones(20), np.zeros(20)]
    half = SoftmaxRegression(0.1).fit(X, y, X_val=X[:20], y_val=y[:20])
    whole = SoftmaxRegression(0.1).fit(X, y, X_val=X[:40], y_val=y[:40], sample_weight_val=s)
    np.testing.assert_allclose(half.history_["val_loss"], whole.history_["val_loss"], rtol=1e-12)


def test_warm_start_continues():
    X, y = make(200, 6, 4)
    cold = SoftmaxRegression(0.01).fit(X, y)
    warm = SoftmaxRegression(0.01, warm_start=True).fit(X, y)
    first = warm.n_iter_
    warm.fit(X, y)
    assert first == cold.n_iter_
    assert warm.n_iter_ <= 2
    warm.fit(X[:, :4], y)
    np.testing.assert_allclose(
        warm.coef_, SoftmaxRegression(0.01).fit(X[:, :4], y).coef_, rtol=1e-12
    )
    assert cold.fit(X, y).n_iter_ == first


@pytest.mark.parametrize("solver", ["auto", "admm", "newton-cg"])
def test_coef_init_is_where_it_starts(solver):
    X, y = make(200, 6, 4)
    done = SoftmaxRegression(0.01, tol=1e-8, max_iter=3000).fit(X, y)
    again = SoftmaxRegression(0.01, solver=solver)
    for form in ((done.coef_, done.intercept_), np.vstack([done.coef_.T, done.intercept_])):
        assert again.fit(X, y, coef_init=form).n_iter_ == 0
    with pytest.raises(ValueError, match="coef_init must be finite, got NaN"):
        again.fit(X, y, coef_init=np.full((4, 6), np.nan))
    with pytest.raises(ValueError, match="coef_init must have one of the shapes"):
        again.fit(X, y, coef_init=np.zeros((2, 2)))


def test_two_classes_start_from_one_vector():
    X, y = make(200, 6, 2)
    done = SoftmaxRegression(0.01, tol=1e-8).fit(X, y)
    again = SoftmaxRegression(0.01).fit(X, y, coef_init=(done.coef_, done.intercept_))
    assert again.n_iter_ == 0


def test_callbacks_time_limit_and_status():
    X, y = make(90, 5, 3)
    seen = []

    def stop(iterate):
        seen.append(iterate.W.copy())
        return len(seen) == 3

    clf = SoftmaxRegression(0.05, callbacks=[stop], tol=0).fit(X, y)
    assert (clf.status_, clf.n_iter_) == ("stopped", 2)
    np.testing.assert_allclose(clf.coef_, seen[-1][:-1].T)
    with pytest.warns(ConvergenceWarning, match=r"time_limit after 0 iterations.*time_limit"):
        clf = SoftmaxRegression(0.05, time_limit=1e-9).fit(X, y)
    assert clf.status_ == "time_limit"
    assert SoftmaxRegression(0.05).fit(X, y).status_ == "converged"


def test_ctrl_c_leaves_a_fitted_model():
    X, y = make(90, 5, 3)

    def interrupt(iterate):
        if iterate.passes > 4:
            raise KeyboardInterrupt

    clf = SoftmaxRegression(0.05, callbacks=[interrupt], tol=0).fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.score(X, y) > 0.5


def test_the_iteration_limit_warns_once_with_a_remedy():
    X, y = make(90, 5, 3)
    with pytest.warns(ConvergenceWarning) as caught:
        SoftmaxRegression(0.05, max_iter=2).fit(X, y)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "iteration_limit after 2 iterations" in message
    assert "tol = 1.00e-04" in message
    assert "Increase max_iter" in message
    assert caught[0].filename == __file__


def test_a_model_that_is_the_start_says_so():
    X, y = make(200, 5, 3)
    with pytest.warns(ConvergenceWarning, match="The model is the start itself"):
        SoftmaxRegression(0.05, solver="lbfgs", max_iter=0).fit(X, y)
    unscaled = -100 * X  # as if a pipeline had scaled X and not X_val
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SoftmaxRegression(0.05).fit(X, y, X_val=unscaled, y_val=y)
    start, far = (str(warning.message) for warning in caught)
    assert "did better on the validation rows than the start, which is kept" in start
    assert "X_val lies far from X" in far
    assert {warning.filename for warning in caught} == {__file__}
    fitted = SoftmaxRegression(0.05, tol=1e-8).fit(X, y)
    again = SoftmaxRegression(0.05, tol=1e-4)  # converged at once: nothing to warn about
    again.fit(X, y, coef_init=(fitted.coef_, fitted.intercept_))
    assert again.n_iter_ == 0


def test_one_step_at_a_time_gets_there():
    X, y = make(200, 5, 3)
    clf = SoftmaxRegression(0.05, solver="lbfgs", max_iter=1, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(60):
            clf.fit(X, y)
    assert clf.status_ == "converged"


def test_verbose_shows_progress(capsys):
    X, y = make(90, 5, 3)
    SoftmaxRegression(0.05, verbose=True).fit(X, y)
    assert "converged after" in capsys.readouterr().err


@pytest.mark.usefixtures("threads_at_any_size")
def test_threads_do_not_change_the_fit(monkeypatch):
    X, y = make(900, 5, 3)
    monkeypatch.setattr("admm_softmax.design.dense.DenseDesign.block_rows", lambda self: 100)
    one, two = (SoftmaxRegression(0.05, n_threads=t).fit(X, y) for t in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10)
    same = SoftmaxRegression(0.05, n_threads=2).fit(X, y)
    np.testing.assert_array_equal(two.coef_, same.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_random_state_seeds_the_solver():
    X, y = make(900, 12, 3)
    settings = {"solver": "sgd", "max_iter": 20}
    fits = [
        SoftmaxRegression(0.05, random_state=s, **settings).fit(X, y).coef_
        for s in (0, 0, 1, None, None)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[3], fits[4])
    assert not np.array_equal(fits[0], fits[2])
    np.testing.assert_allclose(fits[0], fits[2], atol=5e-2)
