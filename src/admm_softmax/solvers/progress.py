"""A progress bar on a terminal, sparse lines elsewhere, nothing unless asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import ceil, isnan
from types import TracebackType
from typing import Any, Self

#: Off a terminal a line is written when so many seconds have passed since the last.
SECONDS_BETWEEN_LINES = 5.0


class Bar:
    """Context manager that counts up to `total`, with words beside it."""

    def __init__(self, enabled: bool, label: str, total: int, console: Any = None) -> None:
        self.enabled = enabled
        self.label, self.total, self.done = label, total, 0
        self._console = console
        self._bar: Any = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        from rich.console import Console  # noqa: PLC0415  (not needed unless verbose)
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._console = self._console or Console(stderr=True)
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn(self.label),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=self.total)
            self._bar.start()
        return self

    def advance(self, words: str = "", by: int = 1) -> None:
        """Move on, with words to show beside the bar; elsewhere a line every few seconds."""
        self.done += by
        if self._bar is not None:
            self._bar.update(self._task, advance=by, description=words)
        elif self.enabled and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self.say(f"{self.label} {self.done} of {self.total}" + (f": {words}" if words else ""))

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.enabled:
            self._console.print(text, highlight=False, markup=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Progress(Bar):
    """The bar of one run, fed with one history record an iteration.

    It counts iterations, or seconds where time is limited.
    """

    def __init__(
        self, enabled: bool, max_iter: int, time_limit: float | None = None, console: Any = None
    ) -> None:
        label, total = ("iteration", max_iter) if time_limit is None else ("second", time_limit)
        super().__init__(enabled, label, ceil(total), console)

    def update(self, record: Mapping[str, float]) -> None:
        """Show one iteration."""
        if not self.enabled:
            return
        if self.label == "iteration":
            self.advance(_words(record))
        else:
            words = f"iteration {record['iteration']:.0f}, {_words(record)}"
            self.advance(words, min(int(record["seconds"]), self.total) - self.done)

    def finish(self, status: str, record: Mapping[str, float]) -> None:
        """Say how it ended."""
        if self.enabled:
            self.say(f"{status} after {record['iteration']:.0f} iterations: {_words(record)}")


def _words(record: Mapping[str, float]) -> str:
    words = f"objective {record['objective']:.6g}"
    if not isnan(record["gradient_norm"]):  # ADMM and SGD do not measure it every time
        words += f", gradient {record['gradient_norm']:.1e}"
    if "val_accuracy" in record:
        words += f", validation {100 * record['val_accuracy']:.2f} %"
    return words
