"""Checks of settings: an error names the parameter, the rule and the value."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_real(name: str, value: Any, rule: str, *, above: float, closed: bool = False) -> float:
    """Return a finite number > `above` (≥ if closed), or say that `rule` was broken."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {rule}, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = np.inf
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


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; 0 and 1 are fine, other things that Python takes for true are not."""
    if not isinstance(value, bool | np.bool | Integral) or value not in (0, 1):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise unless the value is one of the choices: names, or True and False."""
    if not isinstance(value, str | bool | np.bool) or value not in choices:
        shown = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
        raise ValueError(f"{name} must be {shown}, got {value!r}")
