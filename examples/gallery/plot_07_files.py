"""
Files larger than memory
========================

Wherever an array goes, a pattern of file names goes: rows are read block by block in every pass,
and the result is that in memory. ``RowBlocks`` has the settings, of which ``memory_limit`` is one.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import RowBlocks, SoftmaxRegression

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
folder = Path(tempfile.mkdtemp())
for i, part in enumerate(np.array_split(np.arange(len(X)), 4)):
    np.save(folder / f"x-{i}.npy", X[part].astype(np.float16))
    np.save(folder / f"y-{i}.npy", y[part])
print(*sorted(path.name for path in folder.iterdir()))

# %%
# Half precision on disk is widened exactly, to float32, in which everything is computed.
rows = RowBlocks(f"{folder}/x-*.npy", memory_limit="100MB")
streamed = SoftmaxRegression(alpha=1e-3).fit(rows, f"{folder}/y-*.npy")
in_memory = SoftmaxRegression(alpha=1e-3).fit(X.astype(np.float16), y)
print(f"largest difference: {abs(streamed.coef_ - in_memory.coef_).max():.1e}")

# %%
# A pass over X is what an iteration costs.
fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, clf, style in [("files", streamed, "-"), ("memory", in_memory, "o")]:
    history = clf.history_
    axis.semilogy(history["passes"], history["gradient_norm"], style, ms=4, label=name)
axis.axhline(1e-4, color="0.5", ls=":", label="tol")
axis.set(xlabel="passes over X", ylabel="max|∇F|")
axis.grid(alpha=0.25)
axis.legend()
