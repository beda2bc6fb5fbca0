"""A progress bar on a terminal, sparse lines elsewhere, nothing unless asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isnan
from types import TracebackType
from typing import Any

#: Off a terminal a line is written when so many seconds have passed since the last.
SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Context manager fed with one history record an iteration."""

    def __init__(self, enabled: bool, max_iter: int, console: Any = None) -> None:
        self.enabled = enabled
        self.max_iter = max_iter
        self._console = console
        self._bar: Any = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Progress:
        if not self.enabled:
            return self
        from rich.console import Console  # noqa: PLC0415  (not needed unless verbose)
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.progress import Progress as Bar  # noqa: PLC0415

        self._console = self._console or Console(stderr=True)
        if self._console.is_terminal:
            self._bar = Bar(
                TextColumn("softmax"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=self.max_iter)
            self._bar.start()
        return self

    def update(self, record: Mapping[str, float]) -> None:
        """Show one iteration."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=_words(record))
        elif self.enabled and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._line(f"iteration {record['iteration']:.0f}: {_words(record)}")

    def finish(self, status: str, record: Mapping[str, float]) -> None:
        """Say how it ended."""
        if self.enabled:
            self._line(f"{status} after {record['iteration']:.0f} iterations: {_words(record)}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)


def _words(record: Mapping[str, float]) -> str:
    words = f"objective {record['objective']:.6g}"
    if not isnan(record["gradient_norm"]):  # ADMM and SGD do not measure it every time
        words += f", gradient {record['gradient_norm']:.1e}"
    if "val_accuracy" in record:
        words += f", validation {100 * record['val_accuracy']:.2f} %"
    return words
