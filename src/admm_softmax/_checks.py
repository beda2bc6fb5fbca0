"""Checks of settings: an error names the parameter, the rule and the value."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_real(name: str, value: Any, rule: str, *, above: float, closed: bool = False) -> float:
    """Return a finite number > `above` (≥ if closed), or say that `rule` was broken."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {rule}, got {value!r} of type {type(value).__name__}")
    number = float(value)
    if not np.isfinite(number) or number < above or (number == above and not closed):
        raise ValueError(f"{name} must be {rule}, got {value}")
    return number


def check_count(name: str, value: Any, rule: str = "a whole number ≥ 1", *, least: int = 1) -> int:
    """Return a whole number of at least `least`, or say that `rule` was broken."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {rule}, got {value!r} of type {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be {rule}, got {value}")
    return int(value)
