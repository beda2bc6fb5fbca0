"""Draws the pictures of docs/penalties.md: `python docs/pictures/draw_penalties.py`.

The digits of scikit-learn, and 6,000 images of MNIST.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import SoftmaxRegression, datasets, operators, penalties, softmax_path
from admm_softmax.plots.figure import new_figure

HERE = Path(__file__).parent
DIGITS_SHOWN = 5  # digits whose coefficients are shown


def lasso_path():
    """Norms of the coefficients of each pixel along a path of the lasso."""
    X, y = load_digits(return_X_y=True)
    path = softmax_path(X / 16, y, 60, penalty=penalties.Lasso())
    names = [f"pixel ({j // 8}, {j % 8})" for j in range(64)]
    path.plot_coefs(names=names).savefig(HERE / "lasso-path.png", dpi=100)


def image_rows(rows, shape, title_of, path):
    """One line of images for each pair of title and coefficients."""
    figure = new_figure(1.55 * DIGITS_SHOWN + 1.9, 1.62 * len(rows) + 0.45)
    axes = figure.subplots(len(rows), DIGITS_SHOWN, squeeze=False)
    for i, (line, (title, coef)) in enumerate(zip(axes, rows, strict=True)):
        limit = np.quantile(np.abs(coef[:DIGITS_SHOWN]), 0.998) or 1.0
        for k, axis in enumerate(line):
            axis.imshow(coef[k].reshape(shape), cmap="RdBu", vmin=-limit, vmax=limit)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_color("0.8")
            if i == 0:
                axis.set_title(title_of(k), fontsize=11)
        line[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=10, labelpad=8)
    words = "blue: positive, red: negative, white: zero; one scale for each line"
    figure.supxlabel(words, fontsize=10, color="0.35")
    figure.savefig(path, dpi=100)


def coefficients_as_images():
    """The coefficients of MNIST's pixels under three penalties."""
    images = datasets.load_mnist()
    pixels = images.train_images.reshape(-1, 784) / 255.0
    X, y = pixels[:6000], images.train_labels[:6000].astype(int)
    X_test, y_test = images.test_images.reshape(-1, 784) / 255.0, images.test_labels.astype(int)
    variation = penalties.TotalVariation(operators.gradient((28, 28)))
    models = {
        "Tikhonov": SoftmaxRegression(alpha=1e-2),
        "lasso": SoftmaxRegression(alpha=1e-3, penalty=penalties.Lasso()),
        "total\nvariation": SoftmaxRegression(alpha=1e-3, penalty=variation, max_iter=60),
    }
    rows = []
    for name, model in models.items():
        model.fit(X, y)
        accuracy = 100 * model.score(X_test, y_test)
        rows.append((f"{name}\n{accuracy:.1f} %", model.coef_))
        print(name, model.status_, accuracy, flush=True)
    image_rows(rows, (28, 28), lambda k: f"digit {k}", HERE / "coefficients-by-penalty.png")


def groups():
    """The digits' coefficients when entries, pixels, or lines of the image leave together."""
    X, y = load_digits(return_X_y=True)
    lines = np.arange(64) // 8
    rows = [
        ("lasso:\nentries", penalties.Lasso(), 5e-3),
        ("group lasso:\npixels", penalties.GroupLasso(), 1.5e-2),
        ("group lasso:\nlines", penalties.GroupLasso(lines), 2e-2),
        ("sparse group\nlasso: lines", penalties.SparseGroupLasso(lines, l1_ratio=0.3), 1e-2),
    ]
    found = [
        (name, SoftmaxRegression(alpha=alpha, penalty=penalty).fit(X / 16, y).coef_)
        for name, penalty, alpha in rows
    ]
    image_rows(found, (8, 8), lambda k: f"digit {k}", HERE / "groups.png")


def main():
    """Draw all three."""
    lasso_path()
    groups()
    coefficients_as_images()


if __name__ == "__main__":
    main()
