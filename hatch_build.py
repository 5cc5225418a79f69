"""The metadata that depend on one setting: the address of the site, in pyproject.toml.

While it is "", the package has no URLs, and the links of its README are relative. With an address,
a registry shows the README with links into the site, and names it.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Site(MetadataHookInterface):
    """Fills the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the fields in the table `project`."""
        site = self.config["site"].rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if site:
            metadata["urls"] = {"Homepage": f"{site}/", "Documentation": f"{site}/docs/"}
            text = with_links(text, f"{site}/docs/")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_links(text: str, docs: str) -> str:
    """The README with absolute links to pages of the documentation; other files have no link."""
    text = re.sub(r"\]\(docs/images/([^)]+)\)", rf"]({docs}_static/\1)", text)
    text = re.sub(r"\]\(docs/([\w/-]+)\.md(#[\w-]+)?\)", rf"]({docs}\1.html\2)", text)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
