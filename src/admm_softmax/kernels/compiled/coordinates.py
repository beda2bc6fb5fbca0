"""Coordinate descent, compiled from the loops that specify it."""

from __future__ import annotations

from admm_softmax.kernels import coordinates
from admm_softmax.kernels.compiled.jit import compiled

descend_entries = compiled(coordinates.descend_entries)
descend_groups = compiled(coordinates.descend_groups)
spread_pairs = compiled(coordinates.spread_pairs)
bound_rows = compiled(coordinates.bound_rows)
