"""What the site does to pages: children of pages that know nothing of it, and figures."""

from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

#: Pages that are read elsewhere too, and what comes below them here.
CHILDREN = {"decisions/README": ":glob:\n\n0*"}
#: Where links lead here that lead out of the documentation elsewhere.
LINKS = {
    "../README.md": "index.md",
    "../benchmarks/results/penalties.md": "benchmark-table.md#penalties",
    "../examples/gallery/GALLERY_HEADER.rst": "gallery/index.rst",
    "../examples/gallery/plot_04_reference.py": "gallery/plot_04_reference.rst",
    "../examples/gallery/plot_05_soft_labels.py": "gallery/plot_05_soft_labels.rst",
    "../examples/gallery/plot_08_diagnostics.py": "gallery/plot_08_diagnostics.rst",
}
#: Figures that have been drawn already: names keep them for the blocks that follow.
SHOWN = []


def adapt(app, page, source):
    """Sphinx's event: lead links elsewhere, and append the table of contents of a page."""
    for link, here in LINKS.items():
        source[0] = source[0].replace(f"]({link})", f"]({here})")
    if page in CHILDREN:
        source[0] += f"\n```{{toctree}}\n:hidden:\n{CHILDREN[page]}\n```\n"


def figures_of_the_library(block, block_vars, gallery_conf, **options):
    """Pictures of the figures that `plot` has returned and pyplot does not know."""
    saved = []
    for value in list(block_vars["example_globals"].values()):
        is_new = isinstance(value, Figure) and all(value is not old for old in SHOWN)
        if is_new and not hasattr(value, "number"):
            SHOWN.append(value)
            path = Path(next(block_vars["image_path_iterator"]))
            value.savefig(path, dpi=110)
            saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])


def setup(app):
    """Connect the event."""
    app.connect("source-read", adapt)
    return {"parallel_read_safe": True}
