"""Figures of a classifier, against scikit-learn's and against their definitions."""

import json

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from admm_softmax.evaluation import Evaluation, codes_of, evaluate

CLASSES = np.array(["a", "b", "c", "d"])


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.5), size=n)
    truth = np.array([rng.choice(4, p=row) for row in p])  # calibrated
    return p, CLASSES[truth]


def test_figures_are_those_of_scikit_learn():
    p, y = sample()
    blocks = [(np.log(p[i : i + 70]), y[i : i + 70]) for i in range(0, 300, 70)]
    found = evaluate(blocks, CLASSES, k=2, resamples=100)
    value = {name: figure.value for name, figure in found.figures.items()}
    predicted = CLASSES[p.argmax(axis=1)]
    assert value["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert value["log_loss"] == pytest.approx(log_loss(y, p))
    assert value["top_k"] == pytest.approx(top_k_accuracy_score(y, p, k=2))
    one_hot = y[:, None] == CLASSES
    assert value["brier"] == pytest.approx(((p - one_hot) ** 2).sum(axis=1).mean())
    assert found.confusion == confusion_matrix(y, predicted).tolist()
    precision, recall, f1, rows = precision_recall_fscore_support(y, predicted)
    for j, row in enumerate(found.per_class):
        wanted = (precision[j], recall[j], f1[j], rows[j])
        assert (row["precision"], row["recall"], row["f1"], row["rows"]) == pytest.approx(wanted)
    for figure in found.figures.values():
        assert figure.low <= figure.high


def test_calibration_error_by_its_definition():
    confidence = np.repeat([0.9, 0.6], 50)
    p = np.column_stack([confidence, 1 - confidence])
    y = np.array(["a"] * 40 + ["b"] * 10 + ["a"] * 35 + ["b"] * 15)
    found = evaluate([(np.log(p), y)], np.array(["a", "b"]))
    # Bins: 50 rows at 0.9 that are right in 80 %, 50 rows at 0.6 that are right in 70 %.
    assert found.figures["calibration_error"].value == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert [row["rows"] for row in found.reliability] == [50, 50]
    assert "top_k" not in found.figures


def test_intervals_cover_as_often_as_they_say():
    p, y = sample(20_000, seed=1)
    everything = evaluate([(np.log(p), y)], CLASSES, resamples=1).figures["log_loss"].value
    inside = 0
    for i in range(100):
        part = slice(200 * i, 200 * i + 200)
        found = evaluate([(np.log(p[part]), y[part])], CLASSES, resamples=200, level=0.9)
        interval = found.figures["log_loss"]
        inside += interval.low <= everything <= interval.high
    assert 80 <= inside <= 98


def test_soft_labels():
    p, _ = sample(50)
    soft = np.full((50, 4), 0.1)
    soft[:, 1] = 0.7
    found = evaluate([(np.log(p), soft)], CLASSES)
    assert found.figures["log_loss"].value == pytest.approx(-(soft * np.log(p)).sum(1).mean())
    assert found.per_class[1]["rows"] == 50
    with pytest.raises(ValueError, match="soft labels have 3 columns for 4 classes"):
        evaluate([(np.log(p), soft[:, :3])], CLASSES)


def test_json_and_back():
    p, y = sample(30)
    found = evaluate([(np.log(p), y)], CLASSES, resamples=10)
    assert Evaluation.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_numbers_and_texts_of_labels_agree():
    assert codes_of(np.array(["2", "10"]), np.array([2, 10])).tolist() == [0, 1]
    with pytest.raises(ValueError, match="row 8 has the label 5, which the model does not know"):
        codes_of(np.array([2, 5]), np.array([2, 10]), first=7)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"k": 0}, "k must be"), ({"resamples": 0}, "resamples"), ({"level": 1.0}, "level must")],
)
def test_settings_are_checked(settings, words):
    p, y = sample(5)
    with pytest.raises(ValueError, match=words):
        evaluate([(np.log(p), y)], CLASSES, **settings)
    with pytest.raises(ValueError, match="no rows"):
        evaluate([], CLASSES)
