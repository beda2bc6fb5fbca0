"""Settings of the documentation: `make docs` builds it into docs/_build/html."""

import sys
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

from admm_softmax import __version__  # noqa: E402

project = "admm-softmax"
author = "The admm-softmax developers"
copyright = author  # the name is Sphinx's
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "pages",
]
exclude_patterns = ["_build", "_site", "gallery/*.py", "gallery/*.ipynb", "extending", "pictures"]
templates_path = ["_site/templates"]
nitpicky = True
default_role = "code"
highlight_language = "none"

myst_enable_extensions = ["colon_fence", "attrs_block", "attrs_inline"]
myst_heading_anchors = 4

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

html_theme = "pydata_sphinx_theme"
html_title = "admm-softmax"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "admm-softmax"},
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "header_links_before_dropdown": 7,
}
html_sidebars = {"index": [], "start": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib", "pages.figures_of_the_library"),
    "reset_modules": ("matplotlib",),
    "capture_repr": ("_repr_html_",),
    "doc_module": ("admm_softmax",),
    "backreferences_dir": "gallery/of",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "abort_on_example_error": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}
# An example that does not converge is an example that is wrong.
warnings.filterwarnings("error", category=ConvergenceWarning)
