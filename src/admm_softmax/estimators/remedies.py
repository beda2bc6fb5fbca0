"""What to change where a fit did not get there."""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.solvers import Result, Status

#: ADMM hardly moves where ρ is so much smaller than the curvature of the loss at the start.
TINY_RHO = 1e-3


def remedy(result: Result, solver: Any) -> str:
    """What to change, for a fit with this `solver`."""
    words = [result.status.remedy]
    if result.status == Status.ITERATION_LIMIT and solver != "auto":
        words.append("solver='auto' usually needs fewer iterations.")
    rho = result.history["rho"] if "rho" in result.history.columns else np.array([np.nan])
    K = result.W.shape[1]
    curvature = (K - 1) / K**2
    if (rho < TINY_RHO * curvature).any():
        words.append(
            f"rho = {np.nanmin(rho):.0e} is far below the curvature {curvature:.0e} of the loss: "
            "the paper's rho is per data set, and here it is per row, so rho = n · rho_paper; or "
            "use rho='auto'."
        )
    return " ".join(word for word in words if word)
