"""A chart with its words, and the settings that all charts share.

Drawn with Matplotlib's objects alone: no pyplot, no global state, no display. Text stays text in
the SVG files, legible and searchable.
"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.style import FAINT, INK, PAPER

WIDTH = 5.7  # inches; narrow, so that a phone need not shrink the letters much
PNG_DPI = 180
TEXT = 9.5  # points, of nearly everything
SMALL = 8.5  # ... of remarks
HEADING = 11.0
LINE_HEIGHT = TEXT * 1.3 / 72  # inches

_SETTINGS: dict[Any, Any] = {
    "font.family": [
        "DejaVu Sans",
        "sans-serif",
    ],  # comes with Matplotlib: the same picture everywhere
    "font.size": TEXT,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "wheelwork",  # equal charts give equal files
    "path.simplify": False,
}


@dataclass(frozen=True)
class Picture:
    """A chart with its words: `title` stands in the chart, `caption` below it, `alt` takes its
    place.
    """

    name: str  # stem of its files
    title: str
    caption: str
    alt: str
    figure: Figure

    def png(self) -> bytes:
        """The chart as a PNG file."""
        with mpl.rc_context(_SETTINGS):
            buffer = io.BytesIO()
            FigureCanvasAgg(self.figure)
            self.figure.savefig(
                buffer, format="png", dpi=PNG_DPI, metadata={"Software": None, "Title": self.title}
            )
            return buffer.getvalue()

    def svg(self) -> str:
        """The chart as an SVG file."""
        with mpl.rc_context(_SETTINGS):
            buffer = io.StringIO()
            self.figure.savefig(
                buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": self.title}
            )
            return buffer.getvalue()


def save(picture: Picture, directory: Path) -> str:
    """Write `<name>.svg` and `<name>.png` into a directory and return the SVG's text."""
    text = picture.svg()
    (directory / f"{picture.name}.svg").write_text(text, encoding="utf-8")
    (directory / f"{picture.name}.png").write_bytes(picture.png())
    return text


def inline(svg: str, prefix: str) -> str:
    """The <svg> element for use inside a page: without prolog, ids made unique, colours left to the
    page.

    >>> inline('<?xml version="1.0"?><svg width="9pt"><g id="a" style="fill: #1f2328"/><use href="#a"/></svg>', "p")
    '<svg><g id="p-a" style="fill: currentColor"/><use href="#p-a"/></svg>'
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>\s*", "", body, flags=re.DOTALL)
    opening, end, rest = body.partition(">")
    opening = re.sub(r' (?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)
    rest = rest.replace("xlink:href", "href")
    rest = re.sub(r'\bid="', f'id="{prefix}-', rest)
    rest = re.sub(r'href="#', f'href="#{prefix}-', rest)
    rest = re.sub(r"url\(#", f"url(#{prefix}-", rest)
    for colour, ours in ((INK, "currentColor"), (FAINT, "var(--grid)"), (PAPER, "var(--card)")):
        rest = rest.replace(colour, ours)
    return (opening + end + rest).strip()


_Arguments = ParamSpec("_Arguments")


def styled(draw: Callable[_Arguments, Picture]) -> Callable[_Arguments, Picture]:
    """Draw with our settings, and leave Matplotlib's as they were."""

    @wraps(draw)
    def styled(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Picture:
        with mpl.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return styled
