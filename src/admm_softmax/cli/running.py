"""Runs a command: errors and warnings in one line each, and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from admm_softmax.cli.app import app
from admm_softmax.datasets import DatasetError

#: What means that something is wrong with the input, the files or the machine.
_EXPECTED = (
    ValueError,
    TypeError,
    OSError,
    ImportError,
    ArithmeticError,
    MemoryError,
    DatasetError,
)


#: The exit code of a command that Ctrl-C ended, as shells have it.
INTERRUPTED = 130


def run_command(arguments: Sequence[str]) -> int:
    """Run the command of these arguments, and return its exit code."""
    debug = "--debug" in arguments
    given = [argument for argument in arguments if argument != "--debug"]
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        if not sys.warnoptions:
            warnings.simplefilter("default", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
        return _run(given, debug)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = int(app(arguments, prog_name="admm-softmax", standalone_mode=False) or 0)
        if code != INTERRUPTED:
            return code
        raise KeyboardInterrupt  # some versions of typer make an exit code of it
    except (KeyboardInterrupt, typer.Abort):
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's: the command line is wrong
            return _refuse_usage(error)
        if debug:
            traceback.print_exc()
        else:
            print(_in_a_line(error), file=sys.stderr)
        return 1


def _refuse_usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    command = "admm-softmax" if context is None else context.command_path
    words = " ".join(error.format_message().split())
    print(f"Error: {words} (see {command} --help)", file=sys.stderr)
    return int(getattr(error, "exit_code", 2))


def _in_a_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"Error: {error.filename}: {error.strerror}"
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ImportError) and "pip install" not in words:
        needs_report = error.name in ("matplotlib", "jinja2")
        extra = "report" if needs_report else "cli"
        words += f": pip install 'admm-softmax[{extra}]'"
    if not isinstance(error, _EXPECTED):
        words = f"{type(error).__name__}: {words}; --debug shows where"
    return f"Error: {words}"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)
