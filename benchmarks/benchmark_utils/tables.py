"""Where the tables of results go, and what stands above them."""

from datetime import date
from pathlib import Path

from admm_softmax.report.provenance import describe_machine

RESULTS = Path(__file__).parent.parent / "results"


def heading(script, words):
    """The script, the machine and the day, then what was measured."""
    return f"`python benchmarks/{script}` on {describe_machine()}, {date.today()}: {words}"


def publish(path, title, lines):
    """Print a table under its title, and write both to a file."""
    text = "\n".join([title, "", *lines])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")
    print(text)
