"""Charts as SVG in the colours of the page, so that they are dark where the page is.

Colours are CSS variables (--text, --dim, --line, --blue, --red); sizes are those of a panel,
which the page scales to its width.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 42
COLOURS = ("var(--blue)", "var(--red)", "var(--green)", "var(--dim)")


@dataclass(frozen=True)
class Line:
    """A named curve."""

    name: str
    x: Any
    y: Any
    dots: bool = False


@dataclass(frozen=True)
class Axis:
    """From numbers to places along one side of a panel."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    @classmethod
    def over(cls, values: Any, start: float, stop: float, logarithmic: bool) -> Axis:
        """An axis that all values fit on, with a little room."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known) & ((known > 0) | (not logarithmic))]
        low, high = (known.min(), known.max()) if len(known) else (0.1, 1.0)
        if logarithmic:
            spread = max(0.05 * log10(high / low), 0.02)
            return cls(low / 10**spread, high * 10**spread, start, stop, True)
        spread = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - spread, high + spread, start, stop)

    def __call__(self, value: float) -> float:
        """The place of a number."""
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = log10(value), log10(low), log10(high)
        return self.start + (value - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Powers of ten, or about five round numbers."""
        if self.logarithmic:
            first, last = ceil(log10(self.low)), floor(log10(self.high))
            step = max(1, ceil((last - first + 1) / 6))
            found = [10.0**e for e in range(first, last + 1, step)]
            return found if len(found) > 1 else sorted({float(f"{v:.1g}") for v in self._few()})
        rough = (self.high - self.low) / 6
        unit = 10.0 ** floor(log10(rough))
        step_size = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
        first = ceil(self.low / step_size)
        return [i * step_size for i in range(first, floor(self.high / step_size) + 1)]

    def _few(self) -> list[float]:
        return list(np.geomspace(self.low, self.high, 5)[1:-1])


def line_chart(
    lines: Sequence[Line],
    x_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    level: tuple[float, str] | None = None,
    mark: tuple[float, str] | None = None,
    label: str,
) -> str:
    """Curves in one panel; `level` is a horizontal line with its name, `mark` a vertical one."""
    every_y = [value for line in lines for value in line.y] + ([level[0]] if level else [])
    x = Axis.over([v for line in lines for v in line.x], LEFT, WIDTH - RIGHT, log_x)
    y = Axis.over(every_y, HEIGHT - BOTTOM, TOP, log_y)
    parts = _frame(x, y, x_label)
    if level is not None and level[0] > 0:
        at = y(level[0])
        parts.append(_rule(LEFT, at, WIDTH - RIGHT, at))
        parts.append(_text(LEFT + 6, at - 4, level[1], "start", "dim"))
    if mark is not None:
        at = x(mark[0])
        parts.append(_rule(at, TOP, at, HEIGHT - BOTTOM))
        side = "end" if at > WIDTH / 2 else "start"
        shift = -5 if side == "end" else 5
        parts.append(_text(at + shift, HEIGHT - BOTTOM - 7, mark[1], side, "dim"))
    for line, colour in zip(lines, COLOURS, strict=False):
        parts.append(_curve(line, x, y, colour))
    return _svg(parts, label) + _legend([line.name for line in lines])


def reliability_chart(rows: Sequence[dict[str, float]], label: str) -> str:
    """Accuracy against confidence: dots as large as their share of the rows, and the diagonal."""
    x = Axis(0.0, 1.0, LEFT, WIDTH - RIGHT)
    y = Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(x, y, "confidence"), _rule(x(0), y(0), x(1), y(1))]
    total = sum(row["rows"] for row in rows)
    for row in rows:
        radius = 3 + 11 * (row["rows"] / total) ** 0.5
        parts.append(
            f'<circle cx="{x(row["confidence"]):.1f}" cy="{y(row["accuracy"]):.1f}" '
            f'r="{radius:.1f}" fill="var(--blue)" fill-opacity=".65"><title>'
            f"{row['rows']:.0f} rows: confidence {row['confidence']:.3f}, accuracy "
            f"{row['accuracy']:.3f}</title></circle>"
        )
    return _svg(parts, label)


def confusion_chart(counts: Sequence[Sequence[int]], classes: Sequence[Any], label: str) -> str:
    """Counts by true (down) and predicted class (across)."""
    K = len(classes)
    size = max(22.0, 340.0 / K)
    left, top = 16 + 7 * max(len(_short(name)) for name in classes), 26
    parts = []
    most = max(max(row) for row in counts) or 1
    for i, row in enumerate(counts):
        at = top + (i + 0.5) * size + 4
        parts.append(_text(left - 6, at, _short(classes[i]), "end", "text"))
        for j, count in enumerate(row):
            colour = "var(--blue)" if i == j else "var(--red)"
            shade = (count / most) ** 0.5 * (0.75 if i == j else 1.0)
            parts.append(
                f'<rect x="{left + j * size:.1f}" y="{top + i * size:.1f}" width="{size - 1:.1f}" '
                f'height="{size - 1:.1f}" fill="{colour}" fill-opacity="{min(shade, 0.9):.3f}"/>'
            )
            if count and (size >= 24 or count < 100):
                parts.append(_text(left + (j + 0.5) * size - 0.5, at, str(count), "middle", "text"))
    letters = max(4, int(size / 7))
    for j, name in enumerate(classes):
        if K <= 12 or j % 5 == 0:
            at = left + (j + 0.5) * size
            parts.append(_text(at, top - 7, _short(name, letters), "middle", "text"))
    extent = (left + K * size + 4, top + K * size + 24)
    parts.append(_text(left + K * size / 2, extent[1] - 6, "predicted class", "middle", "dim"))
    return _svg(parts, label, *extent)


def coefficient_image(values: Any, most: float) -> str:
    """A matrix as a PNG in a data URI: blue for the class, red against it, clear where zero."""
    shares = np.clip(np.asarray(values, dtype=np.float64) / (most or 1.0), -1, 1)
    pixels = np.zeros((*shares.shape, 4), np.uint8)
    pixels[shares >= 0, :3] = (58, 134, 190)
    pixels[shares < 0, :3] = (214, 82, 98)
    pixels[..., 3] = np.round(255 * np.abs(shares)).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    height, width = shares.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _frame(x: Axis, y: Axis, x_label: str) -> list[str]:
    """Grid, ticks and the name of the horizontal axis."""
    parts = []
    for value in y.ticks():
        at = y(value)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="var(--line)"/>')
        parts.append(_text(LEFT - 7, at + 4, _number(value), "end", "dim"))
    for value in x.ticks():
        parts.append(_text(x(value), HEIGHT - BOTTOM + 17, _number(value), "middle", "dim"))
    bottom = HEIGHT - BOTTOM
    parts.append(f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="var(--dim)"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle", "dim"))
    return parts


def _curve(line: Line, x: Axis, y: Axis, colour: str) -> str:
    points = [
        (x(a), y(b))
        for a, b in zip(line.x, line.y, strict=True)
        if np.isfinite([a, b]).all() and (b > 0 or not y.logarithmic)
    ]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    parts = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    if line.dots or len(points) < 3:
        parts += "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points
        )
    return parts


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="var(--dim)" '
        'stroke-dasharray="4 4"/>'
    )


def _text(x: float, y: float, words: str, anchor: str, colour: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--{colour})">'
        f"{escape(words)}</text>"
    )


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in zip(names, COLOURS, strict=False)
    )
    return f'<div class="legend">{items}</div>'


def _svg(parts: Sequence[str], label: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}" '
        f'font-size="12">{"".join(parts)}</svg>'
    )


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.10g}" if abs(value) >= 1 else f"{value:.3g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def _short(name: Any, length: int = 14) -> str:
    text = str(name)
    return text if len(text) <= length else text[: length - 1] + "…"
