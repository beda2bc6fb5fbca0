"""Checks of labels, sample weights and reference: an error names what is wrong, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax._arrays import Array, Labels
from admm_softmax._checks import check_count

#: How far a row of soft labels may be from summing to one.
SIMPLEX_TOLERANCE = 1e-6


def refuse_masked(array: Any, name: str) -> None:
    """Raise if entries are masked: NumPy would use what lies below the mask."""
    if np.ma.is_masked(array):
        count = int(np.ma.getmaskarray(array).sum())
        raise ValueError(f"{name} must have no masked entries, got {count}: fill or drop them")


def refuse_complex(array: Any, name: str) -> None:
    """Raise if entries are complex: NumPy would drop what is imaginary."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    # Neither lists nor the types of polars have a kind.
    if (np.asarray(array).dtype.kind if kind is None else kind) == "c":
        raise TypeError(f"{name} must be real, got complex numbers")


def as_numbers(given: Any, name: str) -> Array:
    """What a user gave as float64, or an error that names it."""
    try:
        numbers: Array = np.asarray(given, dtype=np.float64)
        return numbers
    except (TypeError, ValueError, OverflowError) as error:
        kind = type(given).__name__
        raise TypeError(f"{name} must hold real numbers, got other things in {kind!r}") from error


def check_labels(labels: Any, n_rows: int, n_classes: int | None) -> tuple[Labels, int]:
    """Return labels as class codes (n,) or soft labels (n, K), and K."""
    refuse_masked(labels, "labels")
    labels = np.asarray(labels)
    if n_classes is not None:
        check_count("n_classes", n_classes)
    if labels.ndim == 0 or len(labels) != n_rows:
        raise ValueError(f"labels have {labels.size} entries for {n_rows} rows")
    if labels.ndim == 2:
        labels = check_soft_labels(labels)
        if n_classes not in (None, labels.shape[1]):
            raise ValueError(f"labels have {labels.shape[1]} columns for {n_classes} classes")
        return labels, _check_classes(labels.shape[1])
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TypeError(
            "labels must be whole numbers of shape (n,) or a matrix of shape (n, K), got "
            f"type {labels.dtype} of shape {labels.shape}"
        )
    K = int(labels.max()) + 1 if n_classes is None else n_classes
    if labels.min() < 0 or labels.max() >= K:
        raise ValueError(
            f"labels must lie in 0 … {K - 1}, got values from {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.intp), _check_classes(K)


def _check_classes(n_classes: int) -> int:
    if n_classes < 2:
        raise ValueError(f"labels must be of at least two classes, got {n_classes}")
    return n_classes


def check_soft_labels(labels: Any, name: str = "soft labels") -> Array:
    """Return soft labels as float64 rows that sum to one exactly up to rounding."""
    refuse_complex(labels, name)
    labels = _in_double(labels)
    if not np.isfinite(labels).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if labels.min() < 0:
        i, k = np.unravel_index(int(labels.argmin()), labels.shape)
        raise ValueError(f"{name} must be ≥ 0, got {labels[i, k]} in row {i}, column {k}")
    totals = labels.sum(axis=1)
    worst = int(np.abs(totals - 1.0).argmax())
    if abs(float(totals[worst]) - 1.0) > SIMPLEX_TOLERANCE:
        raise ValueError(
            f"each row of {name} must sum to 1, got {totals[worst]:.6g} in row {worst}"
        )
    simplex: Array = labels / totals[:, None]
    return simplex


def _in_double(array: Any) -> Any:
    """Numbers as float64; arrays on a device, which NumPy's functions take, stay there."""
    if hasattr(array, "__array_function__"):
        return array.astype(np.float64, copy=False)
    return np.asarray(array, dtype=np.float64)


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return weights as float64 of shape (n,): finite, non-negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    refuse_masked(sample_weight, name)
    refuse_complex(sample_weight, name)
    s = as_numbers(sample_weight, name)
    if s.shape == ():
        s = np.full(n_rows, float(s))
    if s.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {s.shape}")
    if len(s) != n_rows:
        raise ValueError(f"{name} has {len(s)} entries for {n_rows} rows")
    check_weight_entries(s, name)
    with np.errstate(over="ignore"):
        total = s.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} must have a finite sum, got entries up to {s.max():g}")
    check_total_weight(float(total), n_rows, name)
    return s


def check_weight_entries(s: Any, name: str) -> Array:
    """Return weights as float64: finite and non-negative. Also for a part of them."""
    entries: Array = _in_double(s)
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if len(entries) and entries.min() < 0:
        at = int(entries.argmin())
        raise ValueError(f"{name} must be ≥ 0, got {entries[at]} at position {at}")
    return entries


def check_total_weight(total: float, n_rows: int, name: str) -> None:
    """Check that weights have a positive, finite sum."""
    if not np.isfinite(total):
        raise ValueError(f"{name} must have a finite sum, got {total}")
    if total <= 0:
        raise ValueError(f"{name} must have a positive sum, got 0: all {n_rows} entries are zero")


def check_reference(reference: Any, shape: tuple[int, int]) -> Array | None:
    """Return W_ref as float64, or None."""
    if reference is None:
        return None
    refuse_masked(reference, "reference")
    refuse_complex(reference, "reference")
    W_ref = as_numbers(reference, "reference")
    if W_ref.shape != shape:
        raise ValueError(f"reference must have the shape {shape} of W, got {W_ref.shape}")
    if not np.isfinite(W_ref).all():
        raise ValueError("reference must be finite, got NaN or infinity")
    return W_ref
