"""Sphinx configuration: the documentation as a site, with the API reference from docstrings."""

import re
from importlib import metadata
from typing import Any

from sphinx.application import Sphinx

from timers.registry import TIMERS

project = "wheelwork"
author = "the wheelwork contributors"
project_copyright = author
release = metadata.version("wheelwork")

extensions = [
    "myst_parser",  # Markdown pages, readable without a build
    "sphinx.ext.autodoc",  # the reference, from docstrings
    "sphinx.ext.napoleon",  # "Raises:" sections
    "sphinx.ext.viewcode",  # links to the source
]
exclude_patterns = ["examples/*.md", "templates"]

default_role = "py:obj"  # `name` in a docstring becomes a link
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # links to headings, as on GitHub

html_theme = "furo"
html_title = "wheelwork"
html_copy_source = html_show_sourcelink = False  # the pages are in the checkout
templates_path = ["templates"]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "site.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_context = {"in_site": False}  # `nox -s site` sets it: the start of the site is one folder up


def keep_first_line(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """Keep Napoleon from taking the words before a colon in a first line as a type."""
    if what in ("property", "attribute", "data"):
        lines.insert(0, "\\ ")  # empty in reStructuredText


def shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str]:
    """Shorten the types of arrays."""
    array_like = r"~numpy\._typing\._array_like\._Buffer \|.*?complex \| bytes \| str\]"
    array = r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^]]+)\]\]"
    parts = (part and re.sub(array_like, "ArrayLike", part) for part in (signature, returned))
    signature, returned = (part and re.sub(array, r"NDArray[\1]", part) for part in parts)
    return signature, returned


def list_timers(app: Sphinx, page: str, source: list[str]) -> None:
    """Add a section for each registered timer to their page."""
    if page == "api/schemes":
        for target in TIMERS.values():
            name = target.partition(":")[2]
            source[0] += f"""
## {name}

```{{eval-rst}}
.. autoclass:: timers.{name}
   :members:
   :inherited-members:
   :special-members: __len__
   :exclude-members: traits
```
"""


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", list_timers)
    app.connect("autodoc-process-docstring", keep_first_line, priority=400)  # before Napoleon
    app.connect("autodoc-process-signature", shorten)


html_static_path = ["images/page.png"]  # the README shows it, where a registry has that
