"""Sweeps over the penalty α and over ADMM's ρ, on one Gram matrix."""

from admm_softmax.path.grid import Cell, Sweep, sweep_rho_alpha
from admm_softmax.path.result import Path

__all__ = ["Cell", "Path", "Sweep", "sweep_rho_alpha"]
