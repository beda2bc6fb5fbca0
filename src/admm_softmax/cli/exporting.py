"""`export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from admm_softmax.cli import options as o
from admm_softmax.cli.output import print_json, say

KINDS = (".onnx", ".pt", ".safetensors", ".npz", ".skops")


def export(
    model: o.Model,
    out: Annotated[
        Path,
        typer.Argument(
            help="File: .onnx, .pt or .safetensors (nn.Linear), .npz, .skops (scikit-learn).",
            show_default=False,
        ),
    ],
    single: Annotated[
        bool, typer.Option("--float32", help="ONNX in single precision, whatever was fitted.")
    ] = False,
    trust: o.Trust = False,
    json: o.Json = False,
) -> None:
    """Write a model in the format of another library, chosen by the extension.

    Example:  admm-softmax export model model.onnx
    """
    from admm_softmax.estimators.model_folder import estimator_of, load  # noqa: PLC0415

    kind = out.suffix.lower()
    if kind not in KINDS:
        raise typer.BadParameter(f"OUT must end in {', '.join(KINDS)}, got {out}")
    loaded = load(model, trust=trust)
    last = estimator_of(loaded)
    has_encoder = last is not loaded
    if has_encoder and kind in (".pt", ".safetensors", ".npz"):
        raise ValueError(
            f"{model} encodes text columns, which {kind} cannot hold: export to .onnx or .skops"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    _write(loaded, last, out, single)
    if json:
        print_json({"model": str(model), "exported": str(out), "bytes": out.stat().st_size})
    else:
        say(f"exported: {out}")


def _write(model: Any, last: Any, out: Path, single: bool) -> None:
    import numpy as np  # noqa: PLC0415

    from admm_softmax.estimators.model_folder import twin_of  # noqa: PLC0415
    from admm_softmax.estimators.onnx_export import input_frame, to_onnx  # noqa: PLC0415
    from admm_softmax.exchange import skops, torch  # noqa: PLC0415
    from admm_softmax.storage.atomic import replacing  # noqa: PLC0415

    kind = out.suffix.lower()
    if kind == ".onnx":
        frame = None if last is model else input_frame(model)
        graph = to_onnx(model, frame, dtype=np.float32 if single else None)
        with replacing(out) as part:
            part.write_bytes(graph.SerializeToString())
    elif kind == ".npz":
        last.to_npz(out)
    elif kind == ".skops":
        skops.write(twin_of(model), out)
    else:
        torch.write(last, out)
