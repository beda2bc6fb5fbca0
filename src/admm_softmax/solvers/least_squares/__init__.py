"""The W-step: (ρ X̃ᵀΩX̃ + α LᵀL) W = M, solved in one of five ways.

| strategy    | factorises                       | for                                  |
|-------------|----------------------------------|--------------------------------------|
| `Cholesky`  | the normal matrix, d × d         | the ordinary case                    |
| `QR`        | the stacked matrix [√ρ√Ω X̃; √α L] | settings where Cholesky breaks down |
| `Woodbury`  | I/ρ + √Ω X (αLᵀL)⁻¹ Xᵀ √Ω, n × n  | many more features than rows         |
| `PCG`       | nothing                          | d too large to factor                |
| `Spectral`  | (X̃ᵀΩX̃, LᵀL), by eigenvectors     | very many pairs (ρ, α)               |

`Auto` chooses, and falls back when a factorisation breaks down. `SharedFactors` lets many
problems that differ in ρ and α use the same factorisations.
"""

from admm_softmax.solvers.least_squares.auto import (
    STRATEGIES,
    Auto,
    FirstOf,
    as_strategy,
    shared_step,
)
from admm_softmax.solvers.least_squares.base import (
    Breakdown,
    GramStrategy,
    Solution,
    Strategy,
    WStep,
)
from admm_softmax.solvers.least_squares.cholesky import Cholesky, Precision
from admm_softmax.solvers.least_squares.pcg import PCG
from admm_softmax.solvers.least_squares.qr import QR
from admm_softmax.solvers.least_squares.shared import SharedFactors
from admm_softmax.solvers.least_squares.spectral import Spectral
from admm_softmax.solvers.least_squares.woodbury import Woodbury

__all__ = [
    "PCG",
    "QR",
    "STRATEGIES",
    "Auto",
    "Breakdown",
    "Cholesky",
    "FirstOf",
    "GramStrategy",
    "Precision",
    "SharedFactors",
    "Solution",
    "Spectral",
    "Strategy",
    "WStep",
    "Woodbury",
    "as_strategy",
    "shared_step",
]
