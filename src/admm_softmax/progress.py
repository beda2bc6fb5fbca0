"""A progress bar on a terminal, a line every few seconds elsewhere; both only if asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import ceil, isnan
from typing import Any, Self

#: Seconds between two lines where the output is not a terminal.
SECONDS_BETWEEN_LINES = 5.0


class Bar:
    """Context manager that counts up to `total`, with a text beside the bar."""

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
                BarColumn(bar_width=10),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=self.total)
            self._bar.start()
        return self

    def advance(self, words: str = "", by: int = 1) -> None:
        """Advance the count and show `words`: beside the bar, or in a line every few seconds."""
        self.done += by
        if self._bar is not None:
            self._bar.update(self._task, advance=by, description=words)
        elif self.enabled and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self.say(f"{self.label} {self.done} of {self.total}" + (f": {words}" if words else ""))

    def complete(self) -> None:
        """Let the bar end as done, however many were planned."""
        if self._bar is not None:
            self._bar.update(self._task, total=max(self.done, 1), completed=max(self.done, 1))

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""
        if self.enabled:
            self._console.print(text, highlight=False, markup=False)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class Progress(Bar):
    """The bar of one run, fed with the records of its history.

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
            self.advance(self._shown(record), int(record["iteration"]) - self.done)
        else:
            words = f"iteration {record['iteration']:.0f}, {self._shown(record)}"
            self.advance(words, min(int(record["seconds"]), self.total) - self.done)

    def _shown(self, record: Mapping[str, float]) -> str:
        """Few words beside a bar, so that a line of 80 characters has room for them."""
        return _words(record) if self._bar is None else _few_words(record)

    def resume(self, iterations: int) -> None:
        """Count the iterations that a checkpoint had."""
        if iterations and self.label == "iteration":
            self.advance("from the checkpoint", iterations)

    def finish(self, status: str, record: Mapping[str, float]) -> None:
        """Print how the run ended."""
        if self.enabled:
            self.complete()
            self.say(f"{status} after {record['iteration']:.0f} iterations: {self._shown(record)}")


def _words(record: Mapping[str, float]) -> str:
    words = f"objective {record['objective']:.6g}"
    if not isnan(record["gradient_norm"]):  # ADMM and SGD do not measure it every time
        words += f", gradient {record['gradient_norm']:.1e}"
    if "val_accuracy" in record:
        words += f", validation {100 * record['val_accuracy']:.2f} %"
    return words


def _few_words(record: Mapping[str, float]) -> str:
    words = f"F {record['objective']:.5g}"
    if not isnan(record["gradient_norm"]):
        words += f" |∇F| {record['gradient_norm']:.0e}"
    if "val_accuracy" in record:
        words += f" val. {100 * record['val_accuracy']:.2f} %"
    return words
