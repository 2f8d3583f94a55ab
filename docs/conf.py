"""Configuration of the documentation; `make docs` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "envs")]

import generate  # noqa: E402 - found through the line above

from harnesslab import __version__  # noqa: E402

# Help texts are as wide here as in any other build.
os.environ["COLUMNS"] = "100"

project = "harnesslab"
author = "the harnesslab authors"
copyright = "the harnesslab authors, MIT licence"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "examples", "**/.ipynb_checkpoints"]
# Without a network the build must give the same pages: only names that resolve locally are linked.
intersphinx_mapping: dict[str, tuple[str, None]] = {}

# -- pages ----------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Tutorials are committed as executed, and tested by nbval; the build only shows them.
nb_execution_mode = "off"
nb_merge_streams = True
# Widgets need a running kernel. A panel also has a plain HTML form, which is what a reader of the page sees.
nb_mime_priority_overrides = [
    ("html", "text/html", 1),
    ("html", "image/png", 2),
    ("html", "text/plain", 3),
    ("html", "application/vnd.jupyter.widget-view+json", 90),
]
# myst-nb warns for each lexer it does not know (`ipython3` is one of IPython's own).
# `Action` is the name of two aliases for the same thing: the harness does not import environments.
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure", "ref.python"]

# -- reference ------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
templates_path = ["_templates"]

# -- look -----------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "harnesslab"
html_static_path = ["_static"]
html_css_files = ["harnesslab.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 4,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False


def setup(app: object) -> None:
    """Write the generated pages before Sphinx looks for sources."""
    generate.write_all(HERE)
