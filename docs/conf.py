"""Sphinx: this documentation as a site, with the API reference made from the docstrings."""

from importlib import metadata

project = "wheelwork"
author = "the wheelwork contributors"
project_copyright = author
release = metadata.version("wheelwork")

extensions = [
    "myst_parser",  # pages are Markdown, readable without being built
    "sphinx.ext.autodoc",  # the reference is what the docstrings say
    "sphinx.ext.napoleon",  # their "Raises:" sections
    "sphinx.ext.viewcode",  # links to the source
]
exclude_patterns = ["examples/*.md"]

default_role = "py:obj"  # `name` in a docstring links to what it names
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # links to headings, as on GitHub

html_theme = "alabaster"  # comes with Sphinx
html_theme_options = {
    "description": "Choose, trust and use a timer data structure",
    "page_width": "1100px",
    "sidebar_width": "240px",
    "fixed_sidebar": True,
}
