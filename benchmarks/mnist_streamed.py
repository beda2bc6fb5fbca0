"""MNIST with more random features than memory would hold, made block by block and never stored.

::

    python benchmarks/mnist_streamed.py [--filters 36] [--memory-limit 2GB] [--rows 60000]

60,000 images under 36 random 3 × 3 convolutions are 60,000 × 28,224 numbers, 6.8 GB in float32.
Of the training images 10,000 validate (1,000 per class) while alpha is chosen, with the paper's
L; then all are fitted. Prints accuracy on the test images, peak memory and time, and writes
benchmarks/results/mnist_streamed.md.
"""

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp
from benchmark_utils.tables import RESULTS, heading, publish

from admm_softmax import RowBlocks, SoftmaxRegression, operators, softmax_path
from admm_softmax.datasets import load_mnist
from admm_softmax.features import RandomConvolution


def paper_operator(filters):
    """Five-point Laplacians of the maps and 1 for the intercept, over the number of features."""
    maps = operators.per_channel(operators.laplacian((28, 28), spacing=1 / 28), filters)
    return sp.csr_array(sp.block_diag([maps, sp.csr_array([[1.0]])])) / (784 * filters)


def split(labels, per_class):
    """The last `per_class` rows of every class validate."""
    of_class = [np.flatnonzero(labels == k)[-per_class:] for k in range(10)]
    validation = np.sort(np.concatenate(of_class))
    return np.setdiff1d(np.arange(len(labels)), validation), validation


def peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def show(iterate):
    print(f"loss {iterate.loss:.5f}, max|gradient| {iterate.gradient_norm:.1e}", flush=True)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filters", type=int, default=36)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--path-tol", type=float, default=1e-4)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alphas", type=float, nargs="+", default=[10.0, 3.0, 1.0, 0.3])
    return parser.parse_args()


def show_path(path):
    for alpha, result, loss, accuracy in zip(
        path.alphas, path.results, path.val_loss, path.val_accuracy, strict=True
    ):
        words = f"{result.n_iter} iterations, {result.status}"
        print(f"alpha {alpha:g}: {words}, validation {loss:.4f}, {100 * accuracy:.2f} %")


def main():
    options = read_options()
    images = load_mnist()
    pixels = images.train_images[: options.rows] / np.float32(255)
    labels = images.train_labels[: options.rows]
    convolution = RandomConvolution(options.filters, random_state=options.seed).fit(pixels[:1])

    def features(rows):
        return RowBlocks(rows, transform=convolution, memory_limit=options.memory_limit)

    settings = {"operator": paper_operator(options.filters), "penalize_intercept": True}
    began = time.perf_counter()
    train, validation = split(labels, options.rows // 60)
    path = softmax_path(
        features(pixels[train]),
        labels[train],
        options.alphas,
        X_val=features(pixels[validation]),
        y_val=labels[validation],
        patience=1,
        verbose=True,
        tol=options.path_tol,
        **settings,
    )
    chosen = time.perf_counter()
    show_path(path)
    k = int(np.argmin(path.val_loss))
    alpha = float(path.alphas[k])
    model = SoftmaxRegression(alpha=alpha, tol=options.tol, callbacks=show, **settings)
    model.fit(features(pixels), labels, coef_init=(path.coefs[k], path.intercepts[k]))
    fitted = time.perf_counter()
    test = features(images.test_images / np.float32(255))
    accuracy = model.score(test, images.test_labels)
    p = model.predict_proba(test)[np.arange(len(images.test_labels)), images.test_labels]
    d, n = 784 * options.filters + 1, len(pixels)
    lines = [
        "| what | figure |",
        "|---|---|",
        f"| features | {n:,} × {d:,}: {4 * n * (d - 1) / 1e9:.1f} GB as float32 |",
        f"| memory_limit | {options.memory_limit} |",
        f"| peak memory of the process | {peak_gigabytes():.1f} GB |",
        f"| test accuracy, misfit | {100 * accuracy:.2f} %, {-np.log(p).mean():.4f} |",
        f"| alpha, of {len(path.alphas)} tried | {alpha:g} |",
        f"| choosing alpha: reads, seconds | {path.reads:.0f}, {chosen - began:.0f} |",
        f"| last fit: iterations, seconds | {model.n_iter_}, {fitted - chosen:.0f} |",
    ]
    words = f"tol = {options.tol:g}, the paper's L, alpha by {len(validation):,} validation rows"
    publish(RESULTS / "mnist_streamed.md", heading("mnist_streamed.py", words), lines)


if __name__ == "__main__":
    main()
