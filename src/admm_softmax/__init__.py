"""ADMM-Softmax: fast, exact multinomial logistic regression.

The estimator is `SoftmaxRegression`, after scikit-learn's conventions. The functional
core for researchers is `Problem`, `Design`, `ADMM` and `run`. Names are loaded when
first used, so importing the package costs nothing and the core does not need
scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from admm_softmax.design import Design, as_design
    from admm_softmax.estimators import SoftmaxRegression, SoftmaxRegressionCV, softmax_path
    from admm_softmax.path import Path, Sweep, sweep_rho_alpha
    from admm_softmax.penalty import Tikhonov, operators
    from admm_softmax.problem import Problem
    from admm_softmax.solvers import (
        ADMM,
        LBFGS,
        SGD,
        Chain,
        HessianLBFGS,
        History,
        Iterate,
        NewtonCG,
        Result,
        Status,
        run,
    )

_HOMES = {
    "ADMM": "solvers",
    "Chain": "solvers",
    "Design": "design",
    "HessianLBFGS": "solvers",
    "History": "solvers",
    "Iterate": "solvers",
    "LBFGS": "solvers",
    "NewtonCG": "solvers",
    "Path": "path",
    "Problem": "problem",
    "Result": "solvers",
    "SGD": "solvers",
    "SoftmaxRegression": "estimators",
    "SoftmaxRegressionCV": "estimators",
    "Status": "solvers",
    "Sweep": "path",
    "Tikhonov": "penalty",
    "as_design": "design",
    "operators": "penalty",
    "run": "solvers",
    "softmax_path": "estimators",
    "sweep_rho_alpha": "path",
}

__all__ = [
    "ADMM",
    "LBFGS",
    "SGD",
    "Chain",
    "Design",
    "HessianLBFGS",
    "History",
    "Iterate",
    "NewtonCG",
    "Path",
    "Problem",
    "Result",
    "SoftmaxRegression",
    "SoftmaxRegressionCV",
    "Status",
    "Sweep",
    "Tikhonov",
    "as_design",
    "operators",
    "run",
    "softmax_path",
    "sweep_rho_alpha",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
