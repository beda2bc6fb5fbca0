"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from admm_softmax.reading import Request

Data = Annotated[
    str,
    typer.Argument(
        help="Rows: .csv .tsv .parquet .arrow .feather .npy .npz .safetensors .h5 .zarr .pt "
        ".svmlight, a pattern, a folder of shards, or - for standard input.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(help="A model folder, or a .skops or .npz file.", show_default=False),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="File of labels: .npy, .txt (one per line), or a table. A matrix is soft labels.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column, or array of the file, with the labels. Several columns, by commas, are "
        "soft labels.",
    ),
]
Ids = Annotated[str | None, typer.Option("--id", help="Column of row ids.")]
Drop = Annotated[str | None, typer.Option("--drop", help="Columns to leave out, by commas.")]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Array of the file, or column of vectors, that holds the rows."),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="svmlight files count columns from 0.")
]
Format = Annotated[
    str, typer.Option("--format", help="Kind of standard input: csv, tsv or svmlight.")
]
Weights = Annotated[
    str | None, typer.Option("--weights", help="Column, or .npy file, of sample weights.")
]
Encode = Annotated[
    bool,
    typer.Option(
        "--encode", help="Make one-hot columns of text columns; they become part of the model."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No progress bar. There is none either where the output is not a terminal.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Load pickles and unknown types, which can run code, from MODEL."),
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads; all cores if not given.")]
Validation = Annotated[
    str | None,
    typer.Option(
        "--validation", help="Rows to validate on, of the same kind as DATA, instead of folds."
    ),
]
ValidationLabels = Annotated[
    str | None,
    typer.Option("--validation-labels", help="File of their labels, where DATA has --labels."),
]
L1Ratio = Annotated[
    float, typer.Option("--l1-ratio", help="Share of the lasso in the penalty, 0 to 1.")
]
Standardize = Annotated[
    bool,
    typer.Option("--standardize", help="Penalise in units of the columns' standard deviations."),
]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Weigh classes so that all count the same.")
]
Solver = Annotated[str, typer.Option("--solver", help="auto, admm, lbfgs, newton-cg or sgd.")]
Tol = Annotated[float, typer.Option("--tol", help="Stop at max|∇F| ≤ tol.")]
MaxIter = Annotated[int, typer.Option("--max-iter", help="Iterations at most.")]
Folds = Annotated[int, typer.Option("--folds", help="Folds of the cross-validation.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of what is random.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Folder to keep the state in: the same command goes on after an interruption.",
    ),
]


def names(text: str | None) -> tuple[str, ...]:
    """The names of a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def numbers(option: str, text: str) -> list[float]:
    """The numbers of a list with commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{option} must hold numbers, got {text!r}") from None


def request(
    data: str,
    labels: str | None = None,
    target: str | None = None,
    ids: str | None = None,
    drop: str | None = None,
    key: str | None = None,
    zero_based: bool = False,
    format: str = "csv",
    weights: str | None = None,
    encode: bool = False,
) -> Request:
    """The options as a `Request` for the rows of a file."""
    return Request(
        path=data,
        labels=labels,
        target=names(target),
        ids=ids,
        weights=weights,
        drop=names(drop),
        encode=encode,
        key=key,
        zero_based=zero_based,
        format=format,
    )
