"""One self-contained HTML page: text, tables, figures embedded as images."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure as Drawing

from admm_softmax._cached import cached_property
from admm_softmax.report.provenance import describe_machine, describe_versions
from admm_softmax.storage.atomic import replacing


@dataclass(frozen=True)
class Figure:
    """A drawing with the name of its file and a sentence under it."""

    name: str
    caption: str
    drawing: Drawing

    @property
    def width(self) -> int:
        """The width in CSS pixels at which it was drawn."""
        return round(96 * float(self.drawing.get_figwidth()))

    @cached_property
    def png(self) -> bytes:
        """The drawing as the content of a PNG file."""
        buffer = io.BytesIO()
        self.drawing.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()

    def data_uri(self) -> str:
        """The drawing as a data URI, to embed in a page."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; the first column holds names, the others numbers."""

    columns: list[str]
    rows: list[list[str]]
    caption: str

    def to_markdown(self) -> str:
        """The table and its caption as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"{table}\n\n{self.caption}\n"


@dataclass(frozen=True)
class Section:
    """Paragraphs, tables and figures under a heading, or under none."""

    heading: str = ""
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    title: str
    summary: str
    sections: list[Section]


def write_page(page: Page, path: Path) -> Path:
    """Render the page to `path` and return it; its figures are written to the same folder."""
    environment = Environment(
        loader=PackageLoader("admm_softmax.report"), autoescape=True, undefined=StrictUndefined
    )
    html = environment.get_template("page.html").render(
        page=page,
        machine=describe_machine(),
        versions=describe_versions(),
        today=date.today().isoformat(),
    )
    with replacing(path) as part:
        part.write_text(html, encoding="utf-8")
    for section in page.sections:
        for figure in section.figures:
            with replacing(path.with_name(f"{figure.name}.png")) as part:
                part.write_bytes(figure.png)
    return path
