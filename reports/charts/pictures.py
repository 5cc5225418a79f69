"""A chart with its texts, and the settings that all charts share.

Drawn with Matplotlib's objects alone: no pyplot, no global state, no display. Text stays text in
the SVG files, legible and searchable.
"""

import io
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from reports.palette import FAINT, INK, PAPER
from reports.summary import Subject

# A name may have letters that the font lacks. Browsers have them, and a PNG shows a box.
warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)

WIDTH = 4.8  # inches; a phone shows it at 1.07 CSS pixels a point, so that letters are 11 px high
PNG_DPI = 180
TEXT = 10.5  # points
HEADING = 11.5
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
    "xtick.labelsize": TEXT,
    "ytick.color": INK,
    "ytick.labelsize": TEXT,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": TEXT,
    "text.parse_math": False,  # names of files and classes may contain $
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "wheelwork",  # the same ids in the same figure
}


class Mark(NamedTuple):
    """The meaning of an element of a chart: subject, position, and the value in words."""

    who: Subject
    panel: str
    text: str = ""  # empty for a line, whose points have the values


@dataclass(frozen=True)
class Picture:
    """A chart, its caption, and a text alternative for readers who cannot see it."""

    name: str  # stem of its files
    caption: str
    figure: Figure
    marks: Mapping[str, Mark] = field(default_factory=dict)  # by the id of the SVG element

    @property
    def title(self) -> str:
        """The title."""
        return self.figure.get_suptitle()

    @property
    def alt(self) -> str:
        """The last value of each line."""
        last = {(mark.panel, mark.who): mark.text for mark in self.marks.values() if mark.text}
        panels: dict[str, list[str]] = {}
        for (panel, subject), text in last.items():
            panels.setdefault(panel, []).append(f"{subject.full} {text}")
        values = (f"{panel} {', '.join(texts)}".strip() for panel, texts in panels.items())
        return f"Chart: {self.title}. The last values are: {'; '.join(values)}."

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


def element(picture: Picture, svg: str, number: Mapping[Subject, int]) -> str:
    """The <svg> element of a chart for use inside a page.

    Its legend is cut off, since the page has one for all charts. Elements have the subject's number
    and the value in words as data attributes. The page sets the colours.
    """
    text = inline(svg, picture.name)
    for name, mark in picture.marks.items():
        data = f' data-series="{number[mark.who]}"'
        if mark.text:
            panel = f"{mark.panel}: " if mark.panel else ""
            data += f' data-value="{escape(panel + mark.text)}"'
        text = text.replace(f'id="{picture.name}-{name}"', f'id="{picture.name}-{name}"{data}')
    for legend in picture.figure.legends:
        height = 72 * picture.figure.get_figheight()
        body = height - 72 * legend.get_window_extent().y1 / picture.figure.dpi
        text = re.sub(r'viewBox="0 0 (\S+) \S+"', rf'viewBox="0 0 \1 {body:.1f}"', text, count=1)
    return text


def inline(svg: str, prefix: str) -> str:
    """The <svg> element, with unique ids, without a prolog and with the page's colours.

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
