"""The regulariser: a Tikhonov term with any operator L and reference W_ref."""

from admm_softmax.penalty import operators
from admm_softmax.penalty.tikhonov import Tikhonov

__all__ = ["Tikhonov", "operators"]
