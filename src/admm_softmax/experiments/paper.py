"""The paper's settings, and the figures it prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from admm_softmax.solvers import ADMM, SGD, HessianLBFGS, NewtonCG, Solver

#: In the paper's order.
METHODS = ("ADMM-Softmax", "Newton-CG", "ℓ-BFGS", "SGD")


class Reported(NamedTuple):
    """A method's misfit and accuracy on the test rows, as printed."""

    misfit: float
    accuracy: float


@dataclass(frozen=True)
class Setting:
    """One of the paper's two experiments.

    features : how the rows are made
    rho : ours; the paper's, added to a mean over N = 40,000 rows, is rho / N
    seconds_per_iteration : of ADMM, W-step and z-step, on the paper's 24 cores
    """

    name: str
    title: str
    features: str
    alpha: float
    rho: float
    learning_rate: float
    seconds_per_iteration: float
    reported: dict[str, Reported]

    def solvers(self, seed: int) -> dict[str, Solver]:
        """The four methods as the paper configures them; the seed shuffles SGD's batches."""
        solvers = (
            ADMM(rho=self.rho),
            NewtonCG(cg_max_iter=20, cg_tol=1e-2),
            HessianLBFGS(memory=10, cg_max_iter=20, cg_tol=1e-2),
            SGD(self.learning_rate, batch_size=300, momentum=0.9, seed=seed),
        )
        return dict(zip(METHODS, solvers, strict=True))


def _reported(*figures: tuple[float, float]) -> dict[str, Reported]:
    return {name: Reported(*pair) for name, pair in zip(METHODS, figures, strict=True)}


MNIST = Setting(
    name="mnist",
    title="MNIST, nine random convolutions",
    features="RandomConvolution(random_state=seed) of pixels / 255: 9 filters of 3 x 3, tanh",
    alpha=1e-6,
    rho=4e-3,
    learning_rate=0.1,
    seconds_per_iteration=1.5,
    reported=_reported((0.092, 0.9774), (0.13, 0.9646), (0.093, 0.9734), (0.113, 0.9656)),
)
CIFAR10 = Setting(
    name="cifar10",
    title="CIFAR-10, AlexNet's last pooling",
    features="AlexNetPool5() of images resized to 227 x 227, then standardize_examples",
    alpha=0.1,
    rho=3.2e-7,
    learning_rate=0.01,
    seconds_per_iteration=2.1,
    reported=_reported((0.590, 0.8290), (0.534, 0.8158), (0.584, 0.8103), (0.664, 0.8079)),
)
SETTINGS = {setting.name: setting for setting in (MNIST, CIFAR10)}
