"""The colours of the charts and the page, and the colour and marker of each timer.

>>> look_of("unordered-list").colour
'#CC79A7'
"""

from dataclasses import dataclass
from zlib import crc32

from compare.trial.bench.overload import CONTENDERS
from timers.registry import names

INK = "#1f2328"
"""Text and axes. The page uses the colour of its own text instead, for dark mode."""
FAINT = "#d5d9de"
"""Grid lines. The page uses its own grid colour instead."""
PAPER = "#ffffff"
"""Background, and the inside of hollow markers. The page uses its own background instead."""


_ON_PAGE = {INK: "currentColor", FAINT: "var(--grid)", PAPER: "var(--card)"}


def css() -> str:
    """CSS rules that give drawings the colours of the page.

    They name no ancestor: what a <use> element shows has none.

    >>> print(css().splitlines()[0])
    [style*="fill: #1f2328"] { fill: currentColor !important; }
    """
    return "\n".join(
        f'[style*="{kind}: {drawn}"] {{ {kind}: {shown} !important; }}'
        for drawn, shown in _ON_PAGE.items()
        for kind in ("fill", "stroke")
    )


@dataclass(frozen=True)
class Look:
    """Colour and marker (a Matplotlib marker code) of a timer."""

    colour: str
    marker: str
    symbol: str  # like the marker; U+FE0E keeps it from being drawn as a picture


# Okabe & Ito's palette, made for colour-blind readers, without its yellow, which vanishes on white;
# its black is the ink, which stays legible on a dark page too. Then some others.
_LOOKS = (
    Look("#CC79A7", "X", "✖\ufe0e"),
    Look(INK, "P", "✚\ufe0e"),
    Look("#D55E00", "o", "●\ufe0e"),
    Look("#E69F00", "s", "■\ufe0e"),
    Look("#56B4E9", "D", "◆\ufe0e"),
    Look("#0072B2", "^", "▲\ufe0e"),
    Look("#009E73", "v", "▼\ufe0e"),
    Look("#7A7F87", "<", "◀\ufe0e"),
    Look("#8C6D46", ">", "▶\ufe0e"),
    Look("#6C5BA7", "p", "⬟\ufe0e"),
    Look("#5F7F2E", "h", "⬢\ufe0e"),
    Look("#A3485C", "d", "♦\ufe0e"),
    Look("#2F7F86", "*", "★\ufe0e"),
    Look("#A0522D", "H", "⬣\ufe0e"),
)

_COLOURED = 2
"""The first of the looks with the strongest colours."""


def look_of(timer: str) -> Look:
    """The look of a timer, which follows from its place in the registry.

    Unregistered timers share a look that no registered timer has. Services and event loops have
    charts of their own, where each has one of the colours of the timers.

    >>> look_of("somebody.else:Wheel") == look_of("somebody.else:Wheel")
    True
    """
    if timer in CONTENDERS:
        return _LOOKS[_COLOURED + CONTENDERS.index(timer)]
    registered = names()
    if timer in registered:
        return _LOOKS[registered.index(timer) % len(_LOOKS)]
    others = _LOOKS[len(registered) :] or _LOOKS
    return others[crc32(timer.encode()) % len(others)]
