"""Draws the README's picture: `python docs/pictures/draw_readme.py`.

Digits under nine random convolutions, as in the paper. Cost is counted in passes over X, which
do not depend on the machine.
"""

from pathlib import Path

import numpy as np

from admm_softmax import (
    ADMM,
    LBFGS,
    NewtonCG,
    Problem,
    SoftmaxRegression,
    datasets,
    operators,
    run,
)
from admm_softmax.features import RandomConvolution
from admm_softmax.plots.figure import new_figure, style_axis

HERE = Path(__file__).parent
SHOWN = 4


def convergence(axis):
    """F above its minimum against passes over X."""
    digits = datasets.load_digits()
    maps = RandomConvolution(n_filters=9, random_state=0).fit_transform(digits.train_images / 255)
    problem = Problem.of(maps, digits.train_labels, alpha=1e-4)
    gram = LBFGS(20, preconditioner="gram")
    solvers = {
        'L-BFGS on the Gram matrix (solver="auto")': (gram, "#2a6f97"),
        'ADMM, then the same (solver="admm")': (
            ADMM(relaxation=1.7, start="smart").then(gram),
            "#d1495b",
        ),
        "Newton-CG": (NewtonCG(), "#8d99ae"),
        "L-BFGS": (LBFGS(20), "#edae49"),
    }
    least = run(problem, gram, tol=1e-9, max_iter=2000).history["objective"].min()
    for name, (solver, color) in solvers.items():
        history = run(problem, solver, tol=1e-7, max_iter=400).history
        gap = np.maximum(history["objective"] / least - 1, 1e-6)
        axis.semilogy(history["passes"], gap, color=color, lw=2, label=name)
    axis.set(xlim=(0, 120), ylim=(1e-5, 1e3), xlabel="passes over X", ylabel="F / min F − 1")
    axis.legend(fontsize=8.5, frameon=False, loc="upper right")
    style_axis(axis, "To the exact minimum in few passes")


def coefficients(axes):
    """Coefficients as images under the identity and under a Laplacian."""
    digits = datasets.load_digits()
    fine = np.kron(digits.train_images / 255, np.ones((3, 3))).reshape(-1, 24 * 24)
    fine += 0.6 * np.random.default_rng(0).standard_normal(fine.shape)
    kinds = {
        "L = identity": (None, 0.3),
        "L = Laplacian": (operators.laplacian((24, 24)), 0.3),
    }
    for line, (name, (operator, alpha)) in zip(axes, kinds.items(), strict=True):
        clf = SoftmaxRegression(alpha=alpha, operator=operator).fit(fine, digits.train_labels)
        limit = np.quantile(abs(clf.coef_), 0.999)
        for k, axis in enumerate(line):
            axis.imshow(clf.coef_[k].reshape(24, 24), cmap="RdBu", vmin=-limit, vmax=limit)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_color("0.8")
        line[0].set_title(name, loc="left", fontsize=11)


def main():
    """Draw both halves."""
    figure = new_figure(11, 3.7)
    left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
    convergence(left.subplots())
    coefficients(right.subplots(2, SHOWN))
    figure.savefig(HERE / "readme.png", dpi=110)


if __name__ == "__main__":
    main()
