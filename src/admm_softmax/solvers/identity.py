"""What a problem is made of, by name: to tell whether a checkpoint belongs to it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admm_softmax._version import __version__
from admm_softmax.design import Design, Rows
from admm_softmax.penalty import Penalty
from admm_softmax.problem import Problem
from admm_softmax.storage.identity import Digest, as_text

#: An X of more entries is known by some of its rows: hashing it all would take longer than a
#: pass (1.1 s for 48 million entries in float64 on one core of a busy EPYC, Zen 3).
MOST_ENTRIES = 50_000_000
#: Those rows: runs of neighbours, which touch few blocks of a file.
RUNS, RUN_ROWS = 16, 64
#: More partitions are not named one by one.
MOST_NAMED = 12

#: Names of a penalty's parts that users know by another name.
_PUBLIC = {"alpha": "alpha", "L": "operator", "reference": "reference"}


def data_identity(problem: Problem, prefix: str = "") -> dict[str, Any]:
    """Shape and content of X, labels and weights.

    Of an X with more than MOST_ENTRIES entries, the content of evenly spaced runs of rows, and
    the sum of all weights.
    """
    design = problem.design.view()
    labels, weights = problem.labels, problem.weights
    total = problem.total_weight
    rows, features = design.shape
    known = {
        "rows": rows,
        "features": features,
        "classes": problem.n_classes,
        "dtype": str(design.dtype),
        "intercept": design.intercept,
    }
    if design.is_remote:
        # The digests of X and y depend on the cut into partitions, as the order of sums does.
        known["partitions"] = _in_words(design.per_part(len, weights))
    if design.entries > MOST_ENTRIES:
        design, (labels, weights) = design.take(_some_rows(rows), labels, weights)
    X = Digest()
    design.fingerprint(X)
    weight_digest = _of_rows(design, weights).add(np.array([total]))
    known |= {
        "X": str(X),
        "y": str(_of_rows(design, labels)),
        "sample_weight": str(weight_digest),
    }
    return {prefix + name: value for name, value in known.items()}


def _in_words(lengths: list[int]) -> str:
    """Rows of each partition; of many partitions the number and the extremes.

    >>> _in_words([3, 4]), _in_words([5] * 20 + [2])
    ('[3, 4]', '21 of 2 to 5 rows')
    """
    if len(lengths) <= MOST_NAMED:
        return str(lengths)
    return f"{len(lengths)} of {min(lengths)} to {max(lengths)} rows"


def _of_rows(design: Design, rows: Rows) -> Digest:
    """A digest of rows, of their parts where they are in parts: none is brought here."""
    digest = Digest()
    for own in design.row_digests(rows):
        digest.update(own)
    return digest


def _some_rows(n_rows: int) -> Any:
    """Increasing positions: runs of neighbours from the first row to the last."""
    starts = np.linspace(0, max(n_rows - RUN_ROWS, 0), RUNS).astype(np.intp)
    positions = (starts[:, None] + np.arange(RUN_ROWS)).ravel()
    return np.unique(positions[positions < n_rows])


def problem_identity(problem: Problem) -> dict[str, Any]:
    """The version of the library, the data, and the penalty."""
    return {"version": __version__, **data_identity(problem), **_penalty_identity(problem.penalty)}


def _penalty_identity(penalty: Penalty) -> dict[str, Any]:
    names = [f.name for f in fields(penalty)] if is_dataclass(penalty) else sorted(vars(penalty))
    parts = {_PUBLIC.get(name, f"penalty.{name}"): getattr(penalty, name) for name in names}
    return {
        "penalty": type(penalty).__name__,
        "alpha": float(penalty.alpha),
        "reference": as_identity(penalty.reference),
        **{name: as_identity(part) for name, part in parts.items()},
    }


def as_identity(value: Any) -> Any:
    """Numbers and texts as they are, arrays and what holds some as digests, the rest as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if isinstance(value, np.generic) else value
    if sp.issparse(value):
        csr = sp.csr_array(value)
        digest = Digest().add(np.array(csr.shape)).add(csr.indptr.astype(np.int64))
        return str(digest.add(csr.indices.astype(np.int64)).add(csr.data))
    if isinstance(value, np.ndarray):
        return str(Digest().add(value))
    if is_dataclass(value) and not isinstance(value, type):
        value = [type(value).__name__, *(getattr(value, f.name) for f in fields(value))]
    if isinstance(value, list | tuple):
        return str(Digest().add(np.array(as_text([as_identity(part) for part in value]))))
    return as_text(value)
