"""A property that is computed once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  (as that of functools)
    """As `functools.cached_property`, which until Python 3.12 has one lock for all instances.

    A process forked while another thread computes would find that lock taken for ever. Here two
    threads may compute the same value, and the last one is kept.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.name = function, function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        found: T = self.function(instance)
        instance.__dict__[self.name] = found
        return found
