"""Objects and figures as a notebook shows them."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from admm_softmax import ADMM, LBFGS, Problem, SoftmaxRegression, run, softmax_path, sweep_rho_alpha
from admm_softmax.plots.figure import new_figure, plain_log_ticks

X, y = load_iris(return_X_y=True)
PROBLEM = Problem.of(X[::2], y[::2], 0.01)
OTHERS = Problem.of(X[1::2], y[1::2])


def shown():
    return {
        "Result": run(PROBLEM, ADMM(rho=0.1), max_iter=3, validation=OTHERS),
        "Problem": PROBLEM,
        "Path": softmax_path(X[::2], y[::2], [1.0, 0.1], X_val=X[1::2], y_val=y[1::2]),
        "Sweep": sweep_rho_alpha(PROBLEM, [0.1], [0.01, 0.1], validation=OTHERS, max_iter=2),
    }


@pytest.mark.parametrize("name", ["Result", "Problem", "Path", "Sweep"])
def test_objects_are_a_few_lines(name):
    thing = shown()[name]
    text = repr(thing)
    assert text.startswith(f"<{name}\n")
    assert len(text.splitlines()) <= 8
    assert max(map(len, text.splitlines())) < 200
    page = thing._repr_html_()
    assert page.startswith(f"<table><caption>{name}</caption>")
    assert page.count("<tr>") == len(text.splitlines()) - 1


def test_a_figure_shows_itself_without_pyplot(monkeypatch):
    pytest.importorskip("matplotlib")
    model = SoftmaxRegression(0.01).fit(X, y)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert model.history_.plot()._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules


def test_pyplot_knows_the_figure_where_it_has_windows(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    from admm_softmax.plots import figure

    monkeypatch.setattr(figure, "_windows", lambda: [plt.get_backend()])
    before = plt.get_fignums()
    drawn = SoftmaxRegression(0.01).fit(X, y).history_.plot()
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close(drawn)


def test_a_history_is_drawn_with_its_marks():
    pytest.importorskip("matplotlib")
    solver = ADMM(rho=0.1, adaptive_rho=True).then(LBFGS(), after=3)
    result = run(PROBLEM, solver, tol=1e-6, validation=OTHERS)
    history = result.history
    assert (history.tol, history.kept_iteration) == (1e-6, result.kept_iteration)
    drawn = history.plot()
    assert drawn.get_suptitle() == f"ADMM → LBFGS, {result.n_iter} iterations"
    panels = {axis.get_title(loc="left"): axis for axis in drawn.axes}
    assert all(axis.lines for axis in drawn.axes)  # none is empty
    labels = {name: axis.get_legend_handles_labels()[1] for name, axis in panels.items()}
    assert "tol = 1e-06" in labels["Largest gradient entry"]
    assert "handed over" in labels["Loss"]
    if result.kept_iteration != result.n_iter:
        assert "kept" in labels["Loss"]
    varies = len(np.unique(history["rho"][~np.isnan(history["rho"])])) > 1
    assert ("ρ" in panels) == varies


@pytest.mark.parametrize("top", [2.4, 24.0, 2400.0])
def test_a_logarithmic_axis_has_more_than_one_number(top):
    pytest.importorskip("matplotlib")
    figure = new_figure(4, 3)
    axis = figure.subplots()
    axis.semilogy([0.5, top])
    plain_log_ticks(axis.yaxis, *axis.get_ylim())
    low, high = axis.get_ylim()
    figure.canvas.draw()
    shown = [tick for tick in axis.yaxis.get_ticklocs() if low <= tick <= high]
    assert len(shown) >= 2
