"""Metrics agree with scikit-learn's, with and without weights; intervals cover."""

import numpy as np
import pytest
from sklearn import metrics as theirs

from admm_softmax.probes.metrics import METRICS, as_metric, bootstrap


def rows(K=8, n=200, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    P[: n // 4] = np.round(P[: n // 4], 1)  # equal ones
    P = np.maximum(P, 1e-3)
    P /= P.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(K, p=p) for p in P])
    return codes, P, rng.integers(0, 4, n).astype(float)


def peers(codes, P, w):
    K, best = P.shape[1], P.argmax(axis=1)
    return {
        "accuracy": theirs.accuracy_score(codes, best, sample_weight=w),
        "top5": theirs.top_k_accuracy_score(codes, P, k=5, labels=range(K), sample_weight=w),
        "mean_per_class": theirs.balanced_accuracy_score(codes, best, sample_weight=w),
        "log_loss": theirs.log_loss(codes, P, labels=range(K), sample_weight=w),
        "macro_f1": theirs.f1_score(codes, best, average="macro", sample_weight=w),
        "auroc": theirs.roc_auc_score(codes, P, multi_class="ovr"),
    }


def test_metrics_are_scikit_learns():
    codes, P, w = rows()
    for name, expected in peers(codes, P, None).items():
        assert METRICS[name](codes, P) == pytest.approx(expected, rel=1e-12), name
    for name, expected in peers(codes, P, w).items():
        if name != "auroc":  # scikit-learn has no weights there
            found = METRICS[name].value(METRICS[name].prepare(codes, P), w)
            assert found == pytest.approx(expected, rel=1e-12), name


def test_weights_are_repetitions():
    codes, P, w = rows()
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    for metric in [*METRICS.values(), as_metric(lambda c, P: P[np.arange(len(c)), c].mean())]:
        weighted = metric.value(metric.prepare(codes, P), w)
        assert weighted == pytest.approx(metric(codes[repeated], P[repeated]), rel=1e-10)


def test_two_classes_and_classes_without_rows():
    codes, P, _ = rows(2)
    expected = theirs.roc_auc_score(codes, P[:, 1])
    assert METRICS["auroc"](codes, P) == pytest.approx(expected)
    codes, P, _ = rows()
    some = codes < 5
    for name in ("mean_per_class", "macro_f1", "auroc"):
        assert 0 < METRICS[name](codes[some], P[some]) < 1
    assert np.isnan(METRICS["auroc"](codes[codes == 1], P[codes == 1]))


def test_intervals_cover():
    """Of 95 % intervals of an accuracy, about 95 in a hundred hold the true one."""
    rng = np.random.default_rng(0)
    truth, trials = 0.7, 300
    covered = 0
    for trial in range(trials):
        P = np.tile([0.9, 0.1], (150, 1))
        codes = (rng.random(150) > truth).astype(int)
        _, low, high = bootstrap(METRICS["accuracy"], codes, P, 200, 0.95, trial)
        covered += low <= truth <= high
    # Four standard deviations of a binomial about 0.94, which percentile intervals reach here.
    assert abs(covered / trials - 0.94) < 4 * np.sqrt(0.94 * 0.06 / trials)


def test_names_are_checked():
    with pytest.raises(ValueError, match="metric must be a function or one of"):
        as_metric("f2")
    assert np.isnan(bootstrap(METRICS["accuracy"], *rows()[:2], 0, 0.95, 0)[1])


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_average_precision_is_scikit_learns(weighted):
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 6)) < 0.3).astype(int)
    P = np.round(0.6 * rng.random((200, 6)) + 0.3 * Y, 2)  # some are equal
    w = rng.integers(0, 4, 200).astype(float) if weighted else np.ones(200)
    for name, peer in (
        ("map", theirs.average_precision_score),
        ("auroc", theirs.roc_auc_score),
    ):
        found = METRICS[name].value(METRICS[name].prepare(Y, P), w)
        assert found == pytest.approx(peer(Y, P, average="macro", sample_weight=w), rel=1e-12)
    codes, of_classes, _ = rows()
    expected = theirs.average_precision_score(np.eye(8, dtype=int)[codes], of_classes)
    assert METRICS["map"](codes, of_classes) == pytest.approx(expected, rel=1e-12)


def test_labels_that_no_row_has_are_left_out():
    Y, P = np.zeros((4, 2), int), np.full((4, 2), 0.5)
    Y[:2, 1], P[:2, 1] = 1, 0.9
    assert METRICS["map"](Y, P) == 1.0
    assert np.isnan(METRICS["map"](0 * Y, P))
