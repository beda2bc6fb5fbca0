"""ONNX: converters for skl2onnx, and models as graphs. The only module that imports either.

The graph of an estimator is four nodes of the standard operators, in the precision of its
input: MatMul, Add and Softmax give probabilities, ArgMax and Gather the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from admm_softmax.exchange.linear import linear_of

_NEEDS_SKL2ONNX = "ONNX needs skl2onnx: pip install 'admm-softmax[onnx]'"
#: What skl2onnx lets one ask of a classifier.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [True, False],
}


def register(kinds: tuple[type, ...]) -> None:
    """Teach skl2onnx to convert these classes of estimators, also inside pipelines."""
    try:
        from skl2onnx import update_registered_converter  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(_NEEDS_SKL2ONNX) from error
    for kind in kinds:
        update_registered_converter(
            kind, f"Admm{kind.__name__}", _shapes, _convert, options=_OPTIONS, overwrite=True
        )


def to_graph(model: Any, inputs: list[tuple[str, Any, int]], target_opset: int | None) -> Any:
    """A fitted estimator or pipeline as an ONNX model with the outputs label and probabilities.

    inputs : name, type (a NumPy float type, or str) and number of columns of every input
    """
    try:
        from skl2onnx import convert_sklearn  # noqa: PLC0415
        from skl2onnx.common import data_types  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(_NEEDS_SKL2ONNX) from error
    kinds = {
        np.dtype(np.float32): data_types.FloatTensorType,
        np.dtype(np.float64): data_types.DoubleTensorType,
    }
    types = [
        (name, (data_types.StringTensorType if kind is str else kinds[np.dtype(kind)])([None, n]))
        for name, kind, n in inputs
    ]
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return convert_sklearn(
        model,
        name="softmax regression",
        initial_types=types,
        target_opset=target_opset,
        options={id(last): {"zipmap": False}},
    )


def _shapes(operator: Any) -> None:
    """Say what comes out: n labels, and n × K probabilities in the precision of the input."""
    from skl2onnx.common import data_types  # noqa: PLC0415

    K = len(operator.raw_operator.classes_)
    n = operator.inputs[0].get_first_dimension()
    is_number = operator.raw_operator.classes_.dtype.kind in "iub"
    label = data_types.Int64TensorType if is_number else data_types.StringTensorType
    operator.outputs[0].type = label([n])
    is_double = isinstance(operator.inputs[0].type, data_types.DoubleTensorType)
    kind = data_types.DoubleTensorType if is_double else data_types.FloatTensorType
    operator.outputs[1].type = kind([n, K])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of one estimator to a graph."""
    from onnx import TensorProto  # noqa: PLC0415
    from skl2onnx.common.data_types import guess_proto_type  # noqa: PLC0415

    model = linear_of(operator.raw_operator)
    proto = guess_proto_type(operator.outputs[1].type)
    opset = container.target_opset

    def constant(name: str, kind: int, shape: tuple[int, ...], values: list[Any]) -> str:
        unique: str = scope.get_unique_variable_name(name)
        container.add_initializer(unique, kind, list(shape), values)
        return unique

    def node(kind: str, inputs: list[str], output: str, since: int, **attributes: Any) -> str:
        name = scope.get_unique_operator_name(kind)
        container.add_node(
            kind, inputs, output, name=name, op_version=min(since, opset), **attributes
        )
        return output

    def fresh(name: str) -> str:
        unique: str = scope.get_unique_variable_name(name)
        return unique

    x = operator.inputs[0].full_name
    if guess_proto_type(operator.inputs[0].type) != proto:
        x = node("Cast", [x], fresh("numbers"), 13, to=proto)
    W = constant("W", proto, model.W.shape, model.W.ravel().tolist())
    b = constant("b", proto, model.b.shape, model.b.tolist())
    products = node("MatMul", [x, W], fresh("products"), 13)
    scores = node("Add", [products, b], fresh("scores"), 14)
    node("Softmax", [scores], operator.outputs[1].full_name, 13, axis=1)
    place = node("ArgMax", [scores], fresh("place"), 13, axis=1, keepdims=0)
    if model.classes.dtype.kind in "iub":
        labels, kind = model.classes.astype(np.int64).tolist(), TensorProto.INT64
    else:
        labels = [str(label).encode() for label in model.classes]
        kind = TensorProto.STRING
    classes = constant("classes", kind, (len(labels),), labels)
    node("Gather", [classes, place], operator.outputs[0].full_name, 13, axis=0)
