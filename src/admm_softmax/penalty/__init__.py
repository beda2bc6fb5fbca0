"""Penalties: the contract `Penalty`, those of the library, and operators L to build them with."""

from admm_softmax.penalty import operators
from admm_softmax.penalty.base import Penalty, Quadratic, Split
from admm_softmax.penalty.blocks import Blocks
from admm_softmax.penalty.entrywise import Bounds, ElasticNet, Lasso
from admm_softmax.penalty.groups import GroupLasso, SparseGroupLasso
from admm_softmax.penalty.nuclear import NuclearNorm
from admm_softmax.penalty.tikhonov import Tikhonov
from admm_softmax.penalty.variation import TotalVariation

__all__ = [
    "Blocks",
    "Bounds",
    "ElasticNet",
    "GroupLasso",
    "Lasso",
    "NuclearNorm",
    "Penalty",
    "Quadratic",
    "SparseGroupLasso",
    "Split",
    "Tikhonov",
    "TotalVariation",
    "operators",
]
