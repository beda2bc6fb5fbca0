"""skops: scikit-learn models in files that run no code when loaded. Only this module imports it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from admm_softmax.storage.atomic import replacing
from admm_softmax.storage.foreign_files import refusing


def _skops() -> Any:
    try:
        import skops.io  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("model files need skops: pip install 'admm-softmax[cli]'") from error
    return skops.io


def write(model: Any, path: Path) -> None:
    """Write a model, whole or not at all."""
    io = _skops()
    with replacing(path) as part:
        part.write_bytes(io.dumps(model))


def untrusted_types(path: Path) -> list[str]:
    """Types in the file that skops does not know to be harmless."""
    found: list[str] = _skops().get_untrusted_types(file=path)
    return found


def read(path: Path, *, trust: bool = False) -> Any:
    """The model of a file; types that skops does not know only with `trust`."""
    io = _skops()
    with refusing(path, "a skops file"):
        unknown = io.get_untrusted_types(file=path)
    if unknown and not trust:
        raise ValueError(
            f"{path} holds types that may run code when loaded ({', '.join(unknown[:3])}): "
            "load it with trust=True (--trust) if you know who made it"
        )
    with refusing(path, "a skops file"), warnings.catch_warnings():
        # Coefficients mean the same in every version of scikit-learn.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return io.load(path, trusted=unknown)
