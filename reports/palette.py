"""The colours of the charts and the page, and the colour and marker of each timer.

>>> look_of("delay-queue").colour
'#D55E00'
"""

from dataclasses import dataclass
from zlib import crc32

INK = "#1f2328"
"""Text and axes. The page replaces it by the colour of its own text, for dark mode."""
FAINT = "#d5d9de"
"""Grid lines. The page replaces it by its own grid colour."""
PAPER = "#ffffff"
"""Background, and the inside of hollow markers. The page replaces it by its own background."""


@dataclass(frozen=True)
class Look:
    """Colour and marker (a Matplotlib marker code) of a timer."""

    colour: str
    marker: str


# Okabe & Ito's palette, made for colour-blind readers, without its yellow, which vanishes on white.
# Its black is the ink, so that the baseline in plain Python stays legible on a dark page too.
_LOOKS = {
    "unordered-list": Look("#CC79A7", "X"),
    "heapq-delay-queue": Look(INK, "P"),
    "delay-queue": Look("#D55E00", "o"),
    "simple-wheel": Look("#E69F00", "s"),
    "hashed-wheel": Look("#56B4E9", "D"),
    "hierarchical-wheel": Look("#0072B2", "^"),
    "cascading-wheel": Look("#009E73", "v"),
}
_OTHERS = (Look("#7A7F87", "<"), Look("#8C6D46", ">"), Look("#6C5BA7", "p"), Look("#5F7F2E", "h"))


def look_of(timer: str) -> Look:
    """The look of a timer by its name.

    A timer that is not in the registry gets one of a few others, always the same.

    >>> look_of("somebody.else:Wheel") == look_of("somebody.else:Wheel")
    True
    """
    return _LOOKS.get(timer) or _OTHERS[crc32(timer.encode()) % len(_OTHERS)]
