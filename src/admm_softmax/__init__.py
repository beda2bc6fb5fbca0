"""ADMM-Softmax: fast, exact multinomial logistic regression.

The estimator is `SoftmaxRegression`, after scikit-learn's conventions. The functional
core for researchers is `Problem`, `Design`, `ADMM` and `run`. Names are loaded when
first used, so importing the package costs nothing and the core does not need
scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from admm_softmax._lazy import lazy_names
from admm_softmax._version import __version__ as __version__

if TYPE_CHECKING:
    from admm_softmax import datasets, features, penalties
    from admm_softmax.compilation import warm_up
    from admm_softmax.design import Design, as_design
    from admm_softmax.estimators import (
        MultiOutputSoftmaxRegression,
        MultiOutputSoftmaxRegressionCV,
        SoftmaxRegression,
        SoftmaxRegressionCV,
        softmax_path,
    )
    from admm_softmax.estimators.model_folder import load, save
    from admm_softmax.estimators.onnx_export import register_onnx_converters, to_onnx
    from admm_softmax.path import Path, Sweep, sweep_rho_alpha
    from admm_softmax.penalty import Tikhonov, operators
    from admm_softmax.probes import probe
    from admm_softmax.problem import Problem
    from admm_softmax.solvers import (
        ADMM,
        LBFGS,
        SGD,
        Chain,
        HessianLBFGS,
        History,
        Iterate,
        Newton,
        NewtonCG,
        ProximalLBFGS,
        Result,
        Status,
        run,
    )
    from admm_softmax.sources import RowBlocks

_HOMES = {
    "ADMM": "solvers",
    "Chain": "solvers",
    "Design": "design",
    "HessianLBFGS": "solvers",
    "History": "solvers",
    "Iterate": "solvers",
    "LBFGS": "solvers",
    "MultiOutputSoftmaxRegression": "estimators",
    "MultiOutputSoftmaxRegressionCV": "estimators",
    "Newton": "solvers",
    "NewtonCG": "solvers",
    "Path": "path",
    "Problem": "problem",
    "ProximalLBFGS": "solvers",
    "Result": "solvers",
    "RowBlocks": "sources",
    "SGD": "solvers",
    "SoftmaxRegression": "estimators",
    "SoftmaxRegressionCV": "estimators",
    "Status": "solvers",
    "Sweep": "path",
    "Tikhonov": "penalty",
    "as_design": "design",
    "load": "estimators.model_folder",
    "operators": "penalty",
    "probe": "probes",
    "register_onnx_converters": "estimators.onnx_export",
    "run": "solvers",
    "save": "estimators.model_folder",
    "softmax_path": "estimators",
    "sweep_rho_alpha": "path",
    "to_onnx": "estimators.onnx_export",
    "warm_up": "compilation",
}

#: Subpackages that are public.
_MODULES = ("datasets", "features", "penalties")

__all__ = [
    "ADMM",
    "LBFGS",
    "SGD",
    "Chain",
    "Design",
    "HessianLBFGS",
    "History",
    "Iterate",
    "MultiOutputSoftmaxRegression",
    "MultiOutputSoftmaxRegressionCV",
    "Newton",
    "NewtonCG",
    "Path",
    "Problem",
    "ProximalLBFGS",
    "Result",
    "RowBlocks",
    "SoftmaxRegression",
    "SoftmaxRegressionCV",
    "Status",
    "Sweep",
    "Tikhonov",
    "as_design",
    "datasets",
    "features",
    "load",
    "operators",
    "penalties",
    "probe",
    "register_onnx_converters",
    "run",
    "save",
    "softmax_path",
    "sweep_rho_alpha",
    "to_onnx",
    "warm_up",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, _MODULES)
