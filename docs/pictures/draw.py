"""Draws the guide's pictures, on scikit-learn's digits: `python docs/pictures/draw.py`."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import Problem, SoftmaxRegressionCV, sweep_rho_alpha

HERE = Path(__file__).parent


def main():
    """Draw both."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = SoftmaxRegressionCV(np.logspace(0, -6, 25), cv=5).fit(X, y)
    model.plot().savefig(HERE / "path.png", dpi=100)
    parts = [slice(0, 1000), slice(1000, 1400), slice(1400, None)]
    train, validation, test = (Problem.of(X[part], y[part]) for part in parts)
    sweep = sweep_rho_alpha(train, validation=validation, test=test, max_iter=30)
    sweep.plot().savefig(HERE / "grid.png", dpi=90)


if __name__ == "__main__":
    main()
