"""Every solver and W-step strategy whose iterates are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from admm_softmax import ADMM, LBFGS, SGD, HessianLBFGS, NewtonCG


def _pcg(**settings: Any) -> ADMM:
    from admm_softmax.solvers.least_squares import PCG

    return ADMM(rho=0.05, least_squares=PCG(**settings))


def _spectral(**settings: Any) -> ADMM:
    from admm_softmax.solvers.least_squares import Spectral

    return ADMM(least_squares=Spectral(), **settings)


def _row_space() -> Any:
    from admm_softmax.solvers.row_space import RowSpace

    return RowSpace(LBFGS(20, "gram")).then(LBFGS(20, "gram"), after=1)


def _newton_whole() -> Any:
    from admm_softmax import Newton

    return Newton()


def _proximal() -> Any:
    from admm_softmax import ProximalLBFGS

    return ProximalLBFGS()


#: By name, and made when needed: a solver that cannot be imported fails its own cases alone.
SOLVERS: dict[str, Callable[[], Any]] = {
    "admm": lambda: ADMM(rho=0.1),
    "admm_tuned": lambda: ADMM(rho="auto", relaxation=1.7, start="smart"),
    "admm_split": lambda: ADMM(rho=0.1, relaxation=1.5),
    "admm_adaptive": lambda: ADMM(rho=5.0, adaptive_rho=True, gradient_every=1),
    "cholesky": lambda: ADMM(rho=0.05, relaxation=1.5, least_squares="cholesky"),
    "qr": lambda: ADMM(rho=0.05, least_squares="qr", gradient_every=2),
    "woodbury": lambda: ADMM(rho=0.05, least_squares="woodbury"),
    "pcg": lambda: ADMM(rho=0.05, least_squares="pcg"),
    "pcg_rank_3": lambda: _pcg(rank=3),
    "pcg_jacobi": lambda: _pcg(preconditioner="jacobi"),
    "spectral": lambda: _spectral(rho=0.05),
    "spectral_auto": lambda: _spectral(rho="auto", relaxation=1.7, start="smart"),
    "lbfgs": LBFGS,
    "lbfgs_armijo": lambda: LBFGS(3, line_search="armijo"),
    "lbfgs_jacobi": lambda: LBFGS(preconditioner="jacobi"),
    "lbfgs_gram": lambda: LBFGS(20, "gram"),
    "lbfgs_sample": lambda: LBFGS(20, "gram", subsample=50, seed=3),
    "newton": NewtonCG,
    "newton_jacobi": lambda: NewtonCG(100, None, preconditioner="jacobi"),
    "newton_gram": lambda: NewtonCG(100, None, preconditioner="gram"),
    "newton_sample": lambda: NewtonCG(preconditioner="gram", subsample=60, seed=1),
    "hessian_lbfgs": HessianLBFGS,
    "sgd": lambda: SGD(0.1, batch_size=32),
    "sgd_gram": lambda: SGD(
        0.2, batch_size=25, nesterov=True, schedule="inverse", preconditioner="gram", seed=4
    ),
    "sgd_full": lambda: SGD(
        1.0, batch_size=10**6, nesterov=True, restart=True, preconditioner="jacobi"
    ),
    "row_space": _row_space,
    "whole_newton": _newton_whole,
    "proximal": _proximal,
    "chain": lambda: ADMM(rho="auto", relaxation=1.7, start="smart").then(
        LBFGS(20, "gram"), after=3
    ),
    "chain_slow": lambda: ADMM(rho=2.0, gradient_every=1).then(LBFGS(20, "gram")),
    "chain_newton": lambda: LBFGS(preconditioner="jacobi").then(NewtonCG(), after=1),
}
