"""Solvers on the paper's MNIST features (40,000 × 7056 and a bias, K = 10, float32, L = I).

Run with a folder that holds the four idx files of MNIST, unpacked::

    python benchmarks/solvers_on_mnist.py --data FOLDER [--alpha 1e-3] [--skip torch]

Every solver starts at zero. Ours are stopped when they have passed the objective at which
scikit-learn's lbfgs ends with its default tol, and the same for `tol` = 1e-6. Figures are
seconds of the fit, set-up included, and reads of X (for the peers: iterations, and for
torch calls of the closure).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from admm_softmax import ADMM, LBFGS, NewtonCG, Problem, run
from admm_softmax.solvers.named import as_solver

#: Ours give up after so long.
SECONDS = 120.0


def read_idx(path: Path) -> np.ndarray:
    raw = path.read_bytes()
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def features(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Tanh of periodic 3 × 3 convolutions, one block of columns a filter."""
    out = np.empty((len(images), len(filters) * images[0].size), np.float32)
    for k, kernel in enumerate(filters):
        total = np.zeros_like(images)
        for i in range(3):
            for j in range(3):
                total += kernel[i, j] * np.roll(images, (i - 1, j - 1), (1, 2))
        out[:, k * images[0].size : (k + 1) * images[0].size] = np.tanh(total).reshape(len(out), -1)
    return out


def load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    images = read_idx(folder / "train-images-idx3-ubyte")[:50_000].astype(np.float32) / 255
    labels = read_idx(folder / "train-labels-idx1-ubyte")[:50_000].astype(np.intp)
    held_out = np.concatenate([np.flatnonzero(labels == k)[:1000] for k in range(10)])
    kept = np.setdiff1d(np.arange(50_000), held_out)
    filters = np.random.default_rng(0).standard_normal((9, 3, 3)).astype(np.float32)
    return features(images[kept], filters), labels[kept]


def sklearn_fit(X, y, alpha, **settings):
    begin = time.perf_counter()
    model = LogisticRegression(C=1 / (len(X) * alpha), max_iter=10_000, **settings).fit(X, y)
    seconds = time.perf_counter() - begin
    W = np.vstack([model.coef_.T, model.intercept_]).astype(np.float64)
    return seconds, int(model.n_iter_[0]), W


def torch_fit(X, y, alpha, iterations):
    import torch  # noqa: PLC0415

    begin = time.perf_counter()
    A, target = torch.from_numpy(X), torch.from_numpy(y)
    W = torch.zeros(X.shape[1], 10, requires_grad=True)
    b = torch.zeros(10, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [W, b],
        max_iter=iterations,
        history_size=10,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-9,
        tolerance_change=0.0,
    )
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(A @ W + b, target) + alpha / 2 * (W**2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    weights = torch.cat([W, b[None]]).detach().numpy().astype(np.float64)
    return time.perf_counter() - begin, calls, weights


def ours(X, y, alpha, solver, goal, tol=0.0, most=400):
    """Seconds and passes until the objective is at most `goal`, or max|∇F| ≤ tol."""
    problem = Problem.of(X, y, alpha)
    if isinstance(solver, str):
        solver = as_solver(solver, problem, tol=tol or 1e-4).solver
    result = run(
        problem,
        solver,
        tol=tol,
        max_iter=most,
        time_limit=SECONDS,
        callbacks=lambda iterate: iterate.objective <= goal,
    )
    history = result.history
    return history["seconds"][-1], history["passes"][-1], result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--skip", nargs="*", default=[], help="peers to leave out")
    parser.add_argument("--goal", type=float, help="objective to reach instead of lbfgs's end")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    X, y = load(options.data)
    check = Problem.of(X, y, options.alpha)
    rows: list[dict[str, object]] = []

    def report(name, seconds, passes, objective, gradient):
        figures = {"seconds": seconds, "passes": passes, "objective": objective}
        rows.append({"name": name, **figures, "gradient": gradient})
        print(
            f"{name:44s} {seconds:8.1f} s  {passes:6.0f} passes  F = {objective:.6f}"
            f"  max|grad| = {gradient:.1e}",
            flush=True,
        )

    def peer(name, seconds, passes, W):
        point = check.at(W)
        report(name, seconds, passes, point.objective, float(np.abs(point.gradient).max()))
        return point.objective

    goal = options.goal
    if "lbfgs" not in options.skip:
        goal = peer("scikit-learn lbfgs, default tol", *sklearn_fit(X, y, options.alpha))
    if "newton-cg" not in options.skip:
        peer(
            "scikit-learn newton-cg, default tol",
            *sklearn_fit(X, y, options.alpha, solver="newton-cg"),
        )
    if "torch" not in options.skip:
        peer("torch LBFGS, 400 iterations", *torch_fit(X, y, options.alpha, 400))
    solvers = {
        "auto": "auto",
        "admm": "admm",
        "newton-cg": "newton-cg",
        "LBFGS(preconditioner='gram')": LBFGS(20, "gram"),
        "NewtonCG(), the paper's": NewtonCG(),
        "ADMM(relaxation=1.7)": ADMM(relaxation=1.7),
    }
    for name, solver in solvers.items():
        if name in options.skip:
            continue
        seconds, passes, result = ours(X, y, options.alpha, solver, goal, most=150)
        report(
            f"{name} to F of lbfgs",
            seconds,
            passes,
            result.iterate.objective,
            result.iterate.gradient_norm,
        )
    seconds, passes, result = ours(X, y, options.alpha, "auto", -np.inf, tol=1e-6)
    report(
        "auto to tol = 1e-6",
        seconds,
        passes,
        result.iterate.objective,
        result.iterate.gradient_norm,
    )
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
