"""Sweeps over the penalty α and over ADMM's ρ, on one Gram matrix."""

from typing import TYPE_CHECKING

from admm_softmax._lazy import lazy_names

if TYPE_CHECKING:
    from admm_softmax.path.grid import Cell, Sweep, sweep_rho_alpha
    from admm_softmax.path.result import Path

__all__ = ["Cell", "Path", "Sweep", "sweep_rho_alpha"]

__getattr__, __dir__ = lazy_names(
    __name__, {"Cell": "grid", "Path": "result", "Sweep": "grid", "sweep_rho_alpha": "grid"}
)
