"""What operators give for which types, looked up once: Numba looks again at every one.

It tries up to a hundred templates for each operator of a function, when it infers types and again
when it lowers the function: a third of its part of a first compilation.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from numba.core import types
from numba.extending import intrinsic


@cache
def remembering(typing: Any, flags: str) -> Any:
    """Numba's typing context for inferring types, which remembers what it found.

    flags : Numba's; what an operator is made of depends on them
    """
    made, known = copy.copy(typing), {}

    def resolve(function: Any, args: Any, kws: Any) -> Any:
        is_plain = not kws and all(isinstance(kind, types.Type) for kind in args)
        if not is_plain or not _is_remembered(function):
            return typing.resolve_function_type(function, args, kws)
        key = function, tuple(args)
        if key not in known:
            known[key] = type(typing).resolve_function_type(made, function, args, kws)
        return known[key]

    made.resolve_function_type = resolve
    return made


@cache
def remembering_functions(typing: Any, flags: str) -> Any:
    """The same for lowering, which asks the functions that the context gives it."""
    made, known = copy.copy(typing), {}

    def resolve(value: Any) -> Any:
        found = type(typing).resolve_value_type(made, value)
        if type(found) is not types.Function:
            return found
        if found not in known:
            known[found] = Once(found, flags)
        return known[found]

    made.resolve_value_type = resolve
    return made


@intrinsic  # type: ignore[untyped-decorator]
def _example(typing: Any) -> Any:
    """Does nothing; its class is that of all intrinsics, which Numba does not export."""


def _is_remembered(function: Any) -> bool:
    """Whether it gives the same wherever it is called.

    Numba compiles some of its own functions where they are called, and keeps the last of them
    only: these are looked up again.
    """
    key = getattr(function, "typing_key", function)
    if isinstance(function, types.Type) and type(function) is not types.Function:
        return False
    is_operator = getattr(key, "__module__", None) == "_operator"
    return is_operator or key in (bool, range) or isinstance(key, type(_example))


class Once(types.Function):
    """A function of Numba's under some flags, which remembers its signatures."""

    def __init__(self, function: Any, flags: str) -> None:
        self._function, self._flags = function, flags
        self._found: dict[Any, Any] = {}
        super().__init__(function.templates)

    @property
    def key(self) -> Any:
        """What tells it from other types."""
        return self.typing_key, self.templates, self._flags

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for arguments of these types."""
        key = tuple(args), tuple(kws.items())
        if key not in self._found:
            self._found[key] = super().get_call_type(context, args, kws)
        return self._found[key]

    def get_impl_key(self, sig: Any) -> Any:
        """What the context finds an implementation by; types may have been inferred only."""
        was_asked = any(found.args == sig.args for found in self._found.values())
        return super().get_impl_key(sig) if was_asked else self._function.get_impl_key(sig)
