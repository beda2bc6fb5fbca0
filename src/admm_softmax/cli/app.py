"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from admm_softmax._version import __version__
from admm_softmax.cli import exporting, predicting, probing, reporting, studies, training

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fast, exact multinomial logistic regression. --debug, anywhere, shows an error's "
    "traceback.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""


app.command("fit")(training.fit)
app.command("sweep")(training.sweep)
app.command("predict")(predicting.predict)
app.command("evaluate")(predicting.evaluate)
app.command("export")(exporting.export)
app.command("report")(reporting.report)
app.command("probe")(probing.probe)
app.command("demo")(studies.demo)
app.add_typer(studies.data, name="data")
app.command("reproduce")(studies.reproduce)
app.command("warm-up")(studies.warm_up)
