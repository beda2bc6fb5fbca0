"""`report`: a page about a model or an evaluation."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from admm_softmax.cli import options as o
from admm_softmax.cli.output import print_json, say


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="A model folder (of fit or sweep), the JSON file of evaluate --out, or both.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(help="Height x width, as 28x28, where features are the pixels of an image."),
    ] = None,
    trust: o.Trust = False,
    json: o.Json = False,
) -> None:
    """Write one self-contained HTML page about a fit, a sweep or an evaluation.

    Example:  admm-softmax report model evaluation.json --out report.html
    """
    from admm_softmax.report.summary import write_summary  # noqa: PLC0415  (loads scikit-learn)

    model, metadata, evaluation = None, None, None
    for source in sources:
        if source.suffix == ".json":
            evaluation = _evaluation(source)
        else:
            model, metadata = _model(source, trust)
    page = write_summary(
        out, model, metadata, evaluation, title=title, image_shape=_shape(image_shape)
    )
    if json:
        print_json({"report": str(page), "bytes": page.stat().st_size})
    else:
        say(f"report: {page}")


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = text.lower().replace(",", "x").split("x")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise typer.BadParameter(f"--image-shape must be height x width, as 28x28, got {text!r}")
    return int(parts[0]), int(parts[1])


def _model(path: Path, trust: bool) -> tuple[Any, Any]:
    from admm_softmax.estimators.model_folder import load, read_metadata  # noqa: PLC0415

    return load(path, trust=trust), read_metadata(path) if path.is_dir() else None


def _evaluation(path: Path) -> Any:
    from admm_softmax.evaluation import Evaluation  # noqa: PLC0415

    try:
        stored = json_format.loads(path.read_text(encoding="utf-8"))
        if stored.get("kind") != "evaluation":
            raise KeyError("kind")
        own = {name: stored[name] for name in Evaluation.__dataclass_fields__}
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path} is not an evaluation: make one by admm-softmax evaluate --out {path}"
        ) from error
    return Evaluation.from_json(own)
