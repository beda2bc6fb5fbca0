"""The figure of a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admm_softmax.plots.figure import new_figure


def draw_confusion(counts: NDArray[Any], classes: Sequence[Any]) -> Any:
    """Counts by true (rows) and predicted (columns) class."""
    figure = new_figure(5.2, 4.8)
    axis = figure.subplots()
    axis.imshow(np.sqrt(counts), cmap="Blues")
    for i, j in np.argwhere(counts > 0):
        dark = counts[i, j] > 0.4 * counts.max()
        axis.text(j, i, counts[i, j], ha="center", va="center", color="w" if dark else "0.2")
    axis.set_xticks(range(len(classes)), [str(c) for c in classes])
    axis.set_yticks(range(len(classes)), [str(c) for c in classes])
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    return figure
