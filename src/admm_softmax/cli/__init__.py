"""The command `admm-softmax`. It needs typer, of the extra `cli`, and says so where it is missing.

What a command prints goes to standard output; progress, warnings and errors go to the error
stream. Exit codes: 0 is success, 1 failure, 2 bad usage, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_NEEDS_TYPER = (
    "The command admm-softmax needs typer: pip install 'admm-softmax[cli]' (the Python library "
    "works without it)."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        import typer  # noqa: F401, PLC0415
    except ImportError:
        print(_NEEDS_TYPER, file=sys.stderr)
        return 1
    from admm_softmax.cli.running import run_command  # noqa: PLC0415  (loads typer)

    return run_command(sys.argv[1:] if arguments is None else list(arguments))
