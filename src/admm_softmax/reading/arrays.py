"""Files that are read at once: .npz (dense and sparse), svmlight, PyTorch's tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax.reading.request import SVMLIGHT, Request, opened, suffix_of
from admm_softmax.sources.containers import hdf5_rows
from admm_softmax.sources.files import safetensors_rows
from admm_softmax.sources.row_blocks import whole
from admm_softmax.storage.foreign_files import open_npz

#: Names that arrays of labels have where nobody says which they are.
LABEL_NAMES = ("y", "Y", "labels", "label", "targets", "target", "arr_1")


def read_whole(request: Request, kind: str, n_features: int | None = None) -> tuple[Any, Any]:
    """Rows and labels of a file, or of shards; labels are None where there are none."""
    sources = opened(request)
    if kind in SVMLIGHT:
        parts = [_svmlight(source, request, n_features) for source in _listed(sources)]
    else:
        parts = [_named(Path(source), request) for source in _listed(sources)]
    if len(parts) == 1:
        return parts[0]
    stack = sp.vstack if sp.issparse(parts[0][0]) else np.concatenate
    X = stack([X for X, _ in parts])
    labels = [y for _, y in parts]
    return X, None if any(y is None for y in labels) else np.concatenate(labels)


def array_in(path: Path, name: str) -> Any:
    """One array of a file that holds several, by name: labels beside the rows."""
    kind = suffix_of(path)
    if kind == ".safetensors":
        source: Any = safetensors_rows(path, name)
    else:
        source = hdf5_rows(path, name)
    everything = slice(0, source.n_rows)
    return np.array(whole(source.read([everything]), everything, source))


def _listed(sources: Any) -> list[Any]:
    return sources if isinstance(sources, list) else [sources]


def _svmlight(source: Any, request: Request, n_features: int | None) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    try:
        X, y = load_svmlight_file(
            source if request.is_stdin else str(source),
            n_features=n_features,
            zero_based=request.zero_based,
        )
    except ValueError as error:
        raise ValueError(
            f"{source}: {error} (columns are counted from {int(not request.zero_based)})"
        ) from error
    if X.nnz and X.indices.min() < 0:
        raise ValueError(f"{source} counts columns from 0: give --zero-based")
    return X, y.astype(np.int64) if (y == np.round(y)).all() else y


def _named(path: Path, request: Request) -> tuple[Any, Any]:
    """Rows and labels of a file of named arrays."""
    found: Any = _npz(path) if suffix_of(path) == ".npz" else _tensors(path)
    if sp.issparse(found):
        return found, None
    target = request.target[0] if request.target else None
    if target is not None and target not in found:
        raise ValueError(f"{path} has no array {target!r}; it has {[*found]}")
    if target is None:
        target = next((name for name in LABEL_NAMES if name in found), None)
    key = request.key
    if key is None:
        matrices = [n for n, array in found.items() if array.ndim > 1 and n != target]
        if len(matrices) != 1:
            raise ValueError(f"{path} holds the arrays {[*found]}: name the rows by --key")
        (key,) = matrices
    if key not in found:
        raise ValueError(f"{path} has no array {key!r}; it has {[*found]}")
    return found[key], None if target is None else found[target]


def _npz(path: Path) -> Any:
    with open_npz(path) as file:
        if {"format", "data", "shape"} <= set(file.files):
            return sp.csr_array(sp.load_npz(path))
        return {name: file[name] for name in file.files}


def _tensors(path: Path) -> dict[str, Any]:
    """The tensors of a file of PyTorch's; anything but tensors in it is refused, not run."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(".pt files need PyTorch: pip install 'admm-softmax[torch]'") from error
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many kinds, and with pages of advice
        reason = str(error).splitlines()[0][:120]
        raise ValueError(f"{path} is not a file of tensors alone: {reason}") from error
    if isinstance(found, torch.Tensor):
        found = {"X": found}
    if not isinstance(found, dict) or not all(isinstance(t, torch.Tensor) for t in found.values()):
        raise ValueError(f"{path} must hold a tensor or tensors by name")
    half = torch.bfloat16
    return {
        name: (t.float() if t.dtype == half else t).detach().numpy() for name, t in found.items()
    }
