"""scikit-learn's own callbacks (`set_callbacks`, from 1.9 on), beside those of `run`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any

from admm_softmax.design import Design
from admm_softmax.estimators.coefficients import to_coef
from admm_softmax.solvers import Iterate

#: Whether scikit-learn has callbacks: from 1.9 on.
HAS_CALLBACKS = find_spec("sklearn.callback") is not None


class CallbackSupportMixin:
    """Gives an estimator scikit-learn's method `set_callbacks`, where there is one.

    The methods are those of scikit-learn's mixin of this name. They are looked up when called:
    an import of it loads its progress bars, and Rich with them.
    """

    if HAS_CALLBACKS:

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Set scikit-learn's callbacks, instead of those set before."""
            from sklearn.callback import CallbackSupportMixin as Theirs  # noqa: PLC0415  (slow)

            return Theirs.set_callbacks(self, *callbacks)

        def _init_callback_context(self, *args: Any, **settings: Any) -> Any:
            from sklearn.callback import CallbackSupportMixin as Theirs  # noqa: PLC0415  (slow)

            return Theirs._init_callback_context(self, *args, **settings)


def with_callbacks(method: Any) -> Any:
    """Tear callbacks down at the end of a method, where there are any."""

    @wraps(method)
    def managed(estimator: Any, *args: Any, **settings: Any) -> Any:
        if not getattr(estimator, "_skl_callbacks", None):
            return method(estimator, *args, **settings)
        from sklearn.callback import with_callbacks as managing  # noqa: PLC0415  (slow to load)

        return managing(method)(estimator, *args, **settings)

    return managed


def start_callbacks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any, design: Design
) -> Steps | None:
    """Tell scikit-learn's callbacks that a fit begins; None where there are none."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    context = estimator._init_callback_context(max_subtasks=estimator.max_iter + 1)
    shared = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    context.call_on_fit_task_begin(**shared)

    def attributes(iterate: Iterate) -> dict[str, Any]:
        coef, last = to_coef(design.in_units_of_X(iterate.W), design.intercept, X.dtype)
        return {"classes_": classes, "coef_": coef, "intercept_": last}

    return Steps(context, shared, attributes)


def as_one_task(method: Any) -> Any:
    """Tell scikit-learn's callbacks when a method that fits to rows begins and ends."""

    @wraps(method)
    def told(estimator: Any, rows: Any, *more: Any) -> None:
        context = None
        shared = {"estimator": estimator, "X": rows.X, "y": rows.y}
        if getattr(estimator, "_skl_callbacks", None):
            weight = rows.sample_weight
            shared["metadata"] = None if weight is None else {"sample_weight": weight}
            context = estimator._init_callback_context()
            context.call_on_fit_task_begin(**shared)
        method(estimator, rows, *more)
        if context is not None:
            context.call_on_fit_task_end(**shared, reconstruction_attributes={})

    return with_callbacks(told)


def warn_caller(words: str, kind: type[Warning]) -> None:
    """Warn in the name of whoever called this library.

    Methods that `with_callbacks` wraps have frames of scikit-learn's between them.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(words, kind, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.startswith(("admm_softmax.", "sklearn.callback."))


class Steps:
    """A callback of `run` that makes a task of scikit-learn's of every step."""

    def __init__(
        self, context: Any, shared: dict[str, Any], attributes: Callable[[Iterate], dict[str, Any]]
    ) -> None:
        self.context, self.shared, self.attributes = context, shared, attributes
        self.task: Any = None

    def __call__(self, iterate: Iterate) -> bool:
        """End the task of the step that led here, and begin the next."""
        known = {"reconstruction_attributes": self.attributes(iterate)}
        stop = False
        if self.task is not None:
            stop = bool(self.task.call_on_fit_task_end(**self.shared, **known))
        self.task = self.context.subcontext(task_name="step")
        self.task.call_on_fit_task_begin(**self.shared, **known)
        return stop

    def finish(self) -> None:
        """End the task that no step followed, and the fit."""
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self.shared["estimator"])
        self.context.call_on_fit_task_end(**self.shared, reconstruction_attributes={})
