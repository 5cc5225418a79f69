"""A chart with its texts, and the settings that all charts share.

Drawn with Matplotlib's objects alone: no pyplot, no global state, no display. Text stays text in
the SVG files, legible and searchable.
"""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from reports.palette import FAINT, INK, PAPER

WIDTH = 5.7  # inches; narrow, so that a phone need not shrink the letters much
PNG_DPI = 180
TEXT = 9.5  # points, of nearly everything
SMALL = 8.5  # ... of remarks
HEADING = 11.0
LINE_HEIGHT = TEXT * 1.3 / 72  # inches

SETTINGS: dict[Any, Any] = {
    # DejaVu Sans comes with Matplotlib: the same picture everywhere.
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": TEXT,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": TEXT,
    "axes.titleweight": "bold",
    "figure.titlesize": HEADING,
    "figure.titleweight": "bold",
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "wheelwork",  # equal charts give equal files
    "path.simplify": False,
}


@dataclass(frozen=True)
class Picture:
    """A chart: `caption` stands below it, and `alt` takes its place where it cannot be seen."""

    name: str  # stem of its files
    caption: str
    alt: str
    figure: Figure

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.figure.get_suptitle()

    def png(self) -> bytes:
        """The chart as a PNG file."""
        return self._file("png", {"Software": None, "Title": self.title})

    def svg(self) -> str:
        """The chart as an SVG file."""
        return self._file("svg", {"Date": None, "Creator": None, "Title": self.title}).decode()

    def _file(self, form: str, metadata: dict[str, Any]) -> bytes:
        buffer = io.BytesIO()
        with mpl.rc_context(SETTINGS):
            self.figure.savefig(buffer, format=form, dpi=PNG_DPI, metadata=metadata)
        return buffer.getvalue()


def save(picture: Picture, directory: Path) -> str:
    """Write `<name>.svg` and `<name>.png` into a directory and return the SVG's text."""
    text = picture.svg()
    (directory / f"{picture.name}.svg").write_text(text, encoding="utf-8")
    (directory / f"{picture.name}.png").write_bytes(picture.png())
    return text


def inline(svg: str, prefix: str) -> str:
    """The <svg> element for use inside a page.

    It has no prolog, its ids are made unique, and its colours are left to the page.

    >>> svg = '<?xml?><svg width="9pt"><g id="a" style="fill: #1f2328"/><use href="#a"/></svg>'
    >>> inline(svg, "p")
    '<svg><g id="p-a" style="fill: currentColor"/><use href="#p-a"/></svg>'
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<(metadata|title)>.*?</\1>\s*", "", body, flags=re.DOTALL)
    opening, end, rest = body.partition(">")
    opening = re.sub(r' (?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)
    rest = rest.replace("xlink:href", "href")
    rest = re.sub(r'\b(id="|href="#)', rf"\1{prefix}-", rest)
    rest = rest.replace("url(#", f"url(#{prefix}-")
    for colour, ours in ((INK, "currentColor"), (FAINT, "var(--grid)"), (PAPER, "var(--card)")):
        rest = rest.replace(colour, ours)
    return (opening + end + rest).strip()
