"""What a stored result was computed from, by name, so that a refusal can say what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

#: Settings as numbers and texts, and data as digests (see `Digest`), by name.
Identity: TypeAlias = Mapping[str, Any]
#: Begins every digest; what follows means nothing to a reader.
MARK = "blake2b:"


class Digest:
    """A hash of data, fed like those of hashlib."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def update(self, data: Any) -> None:
        """Feed bytes."""
        self._hash.update(data)

    def add(self, array: Any) -> Digest:
        """Feed an array: its type, its shape and its bytes."""
        array = np.ascontiguousarray(array)
        self._hash.update(f"{array.dtype.str} {array.shape}".encode())
        self._hash.update(array.view(np.uint8).reshape(-1).data if array.size else b"")
        return self

    def __str__(self) -> str:
        return MARK + self._hash.hexdigest()


def as_text(setting: Any) -> str:
    """A setting's repr, without the addresses of functions, which differ from call to call.

    >>> as_text(print), as_text(1e-3)
    ('<built-in function print>', '0.001')
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(setting))


def differences(stored: Identity, wanted: Identity) -> list[str]:
    """What differs, one clause per name.

    >>> differences({"alpha": 1e-3, "tol": 1e-4}, {"alpha": 1e-2, "tol": 1e-4})
    ['alpha was 0.001, is 0.01 now']
    """
    clauses = []
    for name in dict.fromkeys([*wanted, *stored]):
        was, now = stored.get(name), wanted.get(name)
        if was == now:
            continue
        if all(isinstance(value, str) and value.startswith(MARK) for value in (was, now)):
            clauses.append(f"{name}: other values than before")
        else:
            clauses.append(f"{name} was {_short(was)}, is {_short(now)} now")
    return clauses


def _short(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, str) and value.startswith(MARK):
        return "given"
    return str(value)


def require_same(stored: Any, wanted: Identity, where: Any) -> None:
    """Raise ValueError, with what differs, unless both identities are the same."""
    found = stored if isinstance(stored, Mapping) else {}
    clauses = differences(found, wanted)
    if clauses:
        raise ValueError(
            f"{where} belongs to another call ({'; '.join(clauses)}): "
            "repeat that call, or choose another folder"
        )
