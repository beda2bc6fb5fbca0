"""Comparisons that the checks are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def require(condition: Any, what: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(what)


def require_close(actual: Any, expected: Any, what: str, tolerance: float) -> None:
    """Raise AssertionError unless the arrays agree, relative to the largest entry expected."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    require(
        actual.shape == expected.shape,
        f"{what} must have the shape {expected.shape}, got {actual.shape}",
    )
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    difference = float(np.abs(actual - expected).max(initial=0.0)) / scale
    require(
        difference <= tolerance,  # also where it is NaN
        f"{what} must agree to {tolerance:.0e}, got a difference of {difference:.1e}",
    )


@contextmanager
def require_error(kind: type[Exception], what: str) -> Iterator[None]:
    """Raise AssertionError unless the block raises this kind of exception."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{what} must raise {kind.__name__}")
