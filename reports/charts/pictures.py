"""A chart with its texts, and the settings that all charts share.

Drawn with Matplotlib's objects alone: no pyplot, no global state, no display. Text stays text in
the SVG files, legible and searchable.
"""

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_svg import RendererSVG
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
        buffer = io.BytesIO()
        metadata = {"Software": None, "Title": self.title}
        with mpl.rc_context(SETTINGS):
            self.figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata=metadata)
        return buffer.getvalue()

    def svg(self, number: Mapping[Subject, int] | None = None) -> str:
        """The chart as an SVG file.

        All ids begin with its name. With the numbers of the subjects, each mark has that of its
        subject, or the name of one without a number, and its value in words, as data attributes.
        """
        figure, buffer = self.figure, io.StringIO()
        dpi, figure.dpi = figure.dpi, 72
        with mpl.rc_context(SETTINGS | {"svg.hashsalt": self.name}):
            renderer = _Renderer(self, number or {}, buffer)
            figure.draw(renderer)
            renderer.finalize()  # type: ignore[no-untyped-call]
        figure.dpi = dpi
        return buffer.getvalue()

    def element(self, number: Mapping[Subject, int] | None = None) -> str:
        """The <svg> element for use inside a page, which sets the colours: `palette.css`."""
        return _element(self.svg(number))

    def shape(self, number: Mapping[Subject, int]) -> str:
        """The ratio of the width to the height. The page cuts off a legend of these subjects."""
        box, top = self.figure.bbox, 0.0
        if all(mark.who in number for mark in self.marks.values()):
            top = max((each.get_window_extent().y1 for each in self.figure.legends), default=0.0)
        return f"{box.width:.1f} / {box.height - top:.1f}"


class _Renderer(RendererSVG):
    """Draws a chart whose groups have unique ids and data attributes."""

    def __init__(
        self, picture: Picture, number: Mapping[Subject, int], buffer: io.StringIO
    ) -> None:
        self._picture, self._number, self._groups = picture, number, 0
        width, height = picture.figure.bbox.size
        # No date and no version, so that the same chart is the same file. A title would be shown
        # wherever a pointer rests.
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        super().__init__(  # type: ignore[no-untyped-call]
            width, height, buffer, image_dpi=PNG_DPI, metadata=metadata
        )

    def open_group(self, s: str, gid: str | None = None) -> None:
        """Open a group, of a mark or of anything else."""
        self._groups += 1
        attributes = {"id": gid or f"{self._picture.name}-{s}-{self._groups}"}
        mark = self._picture.marks.get(gid or "")
        if mark is not None and self._number:
            if mark.who in self._number:
                attributes["data-series"] = str(self._number[mark.who])
            else:
                attributes["data-name"] = mark.who.full
            if mark.text:
                panel = f"{mark.panel}: " if mark.panel else ""
                attributes["data-value"] = panel + mark.text
        self.writer.start("g", attributes)  # type: ignore[no-untyped-call]


def save(picture: Picture, directory: Path, number: Mapping[Subject, int]) -> str:
    """Write `<name>.svg` and `<name>.png` into a directory, and return the <svg> element."""
    text = picture.svg(number)  # is drawn once, as that takes a tenth of a second
    (directory / f"{picture.name}.svg").write_text(text, encoding="utf-8")
    (directory / f"{picture.name}.png").write_bytes(picture.png())
    return _element(text)


def _element(text: str) -> str:
    return text[text.index("<svg") :]
