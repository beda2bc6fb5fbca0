"""Objects in a few lines: names and values as text, and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def as_text(title: str, facts: Mapping[str, str]) -> str:
    """One line per fact.

    >>> print(as_text("Result", {"status": "converged", "steps": "12"}))
    <Result
      status: converged
      steps: 12>
    """
    lines = "".join(f"\n  {name}: {value}" for name, value in facts.items())
    return f"<{title}{lines}>"


def as_html(title: str, facts: Mapping[str, str]) -> str:
    """A small table, in the notebook's own colours."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
