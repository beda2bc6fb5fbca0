"""Size and style that all figures share."""

from __future__ import annotations

import io
import sys
from typing import Any

BLUE, RED, GREY = "#2a6f97", "#d1495b", "0.45"


def new_figure(width: float, height: float) -> Any:
    """An empty Matplotlib figure; width and height in inches.

    As the last line of a notebook's cell it shows itself. Where pyplot is in use with a window,
    the figure is one of pyplot's, so that `plt.show()` shows it; otherwise nobody but the caller
    knows it, and there is nothing to close.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("plot() needs Matplotlib: pip install 'admm-softmax[plot]'") from error

    class Shown(Figure):
        """A figure that notebooks show as a picture, without %matplotlib."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    settings: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and _has_windows(pyplot):
        return pyplot.figure(FigureClass=Shown, **settings)
    return Shown(**settings)


def _has_windows(pyplot: Any) -> bool:
    """Whether pyplot's backend opens windows: not that of files or of notebooks."""
    return pyplot.get_backend().lower() in {name.lower() for name in _windows()}


def _windows() -> list[str]:
    from matplotlib.backends import BackendFilter, backend_registry  # noqa: PLC0415

    return list(backend_registry.list_builtin(BackendFilter.INTERACTIVE))


def plain_log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis as plain numbers: a few where it spans less than two decades."""
    from matplotlib.ticker import (  # noqa: PLC0415
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
    )

    if 0 < high / low < 10:
        axis.set_major_locator(MaxNLocator(4))
    elif 0 < high / low < 100:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axis.set_minor_formatter(NullFormatter())


def style_axis(axis: Any, title: str = "") -> None:
    """A light grid, no frame at the top and right, and the title at the left."""
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    if title:
        axis.set_title(title, loc="left", fontsize=11)
