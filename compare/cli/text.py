"""Lay out text for a terminal of 80 columns."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from textwrap import fill
from typing import TYPE_CHECKING, Any

from compare.tapes.units import EXPONENTS, TAPE_UNITS, duration_text

if TYPE_CHECKING:
    from compare.replay.profile import Profile

WIDTH = 80


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells, the first column to the left and the others to the right.

    If that is too wide, the first cell of each row gets a line of its own.

    >>> table([["", "fired"], ["delay-queue", "7"]])
    ['             fired', 'delay-queue      7']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH and widths[0]:
        figures = table([["", *row[1:]] for row in rows])
        pairs = zip(rows, figures, strict=True)
        return [line for row, rest in pairs for line in (row[0], rest) if line]
    first, *others = widths
    lines = []
    for name, *cells in rows:
        aligned = (cell.rjust(width) for cell, width in zip(cells, others, strict=True))
        lines.append("  ".join([name.ljust(first), *aligned]).rstrip())
    return lines


def labelled(label: str, text: str, indent: int = 0, width: int = 12) -> str:
    """A label, and text wrapped to 80 columns that starts in column `indent + width`.

    >>> labelled("rows", "7")
    'rows        7'
    """
    start = f"{'':{indent}}{label:<{width}}"
    return fill(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def operations_text(totals: Mapping[str, int]) -> str:
    """The number of operations of a trace, in total and of each kind.

    >>> operations_text({"rows": 4, "starts": 3, "cancels": 0, "rearms": 1, "arms": 0})
    '4: 3 starts, 1 re-arm'
    """
    labels = {"starts": "start", "cancels": "cancel", "rearms": "re-arm", "arms": "arm"}
    kinds = [plural(totals[name], label) for name, label in labels.items() if totals[name]]
    return f"{totals['rows']:,}" + (f": {', '.join(kinds)}" if kinds else "")


def columns(rows: Iterable[Mapping[str, Any]], layout: Mapping[str, tuple[str, str]]) -> list[str]:
    """A table of rows; `layout` maps a heading to a name in a row and a format. None is "-".

    >>> columns([{"timer": "delay-queue", "ns": None}], {"": ("timer", ""), "ns": ("ns", ".1f")})
    ['             ns', 'delay-queue   -']
    """
    cells = [
        ["-" if row[name] is None else format(row[name], form) for name, form in layout.values()]
        for row in rows
    ]
    return table([list(layout), *cells])


def replays_text(path: object, timers: int, shards: int, operations: int) -> str:
    """What was replayed, and the path of the results.

    >>> replays_text("replayed", 1, 2, 3000)
    'replayed: 1 timer x 2 shards, 3,000 operations'
    """
    return (
        f"{path}: {plural(timers, 'timer')} x {plural(shards, 'shard')}, {operations:,} operations"
    )


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "shard"), plural(2000, "shard")
    ('1 shard', '2,000 shards')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def rounded_duration(units: int, unit: str) -> str:
    """A duration to three significant digits, in the unit that suits it.

    >>> [rounded_duration(us, "us") for us in (0, 996, 131_475, 4_041_564, 86_400_000_000)]
    ['0s', '996us', '131ms', '4.04s', '86,400s']
    """
    seconds = units / 10 ** EXPONENTS[unit]
    for name in reversed(TAPE_UNITS):
        value = seconds * 10 ** EXPONENTS[name]
        if abs(value) >= 1:
            return f"{_digits(value, 3)}{name}"
    return "0s"


def profile_text(profile: "Profile", unit: str, shards: int) -> dict[str, str]:
    """The lines of the profile of a trace in a number of shards, by label."""
    from compare.replay.profile import ROUNDED  # which loads NumPy

    shard = " of the largest shard" * (shards > 1)
    lines = {
        "rate": f"{_digits(profile.rate, 3)} timers armed per second{shard}",
        "pending": f"at most {profile.most_pending:,} at once",
        "timed out": f"{profile.timed_out:.1%}",
    }
    for label, quantiles in (("delay", profile.delay), ("answered", profile.answered)):
        texts = [f"{name} {rounded_duration(time, unit)}" for name, time in quantiles.items()]
        if len(set(quantiles.values())) == 1:
            texts = [f"always {rounded_duration(quantiles['max'], unit)}"]
        if texts:
            lines[label] = ", ".join(texts)
    known = {name: cost for name, cost in profile.cost.items() if cost is not None}
    lowest, trace_unit = min(known.values(), default=1.0), unit
    unit = next((name for name in TAPE_UNITS[::-1] if lowest * 10 ** EXPONENTS[name] >= 1), "ns")
    ascending = sorted(known.items(), key=itemgetter(1))
    costs = [f"{timer} {_digits(cost * 10 ** EXPONENTS[unit], 2)}" for timer, cost in ascending]
    over = [f"{timer} more" for timer in profile.cost if timer not in known]
    per = f"{unit} of a core per second of traffic{shard}"
    lines["cost"] = f"{per}: {', '.join(costs + over)}"
    ticks = [
        f"{duration_text(tick, trace_unit) if tick else 0} in {scheme} (rounds {direction})"
        for (direction, scheme), tick in zip(ROUNDED.items(), profile.ticks.values(), strict=True)
    ]
    lines["tick"] = f"no outcome changes up to {'; '.join(ticks)}"
    return lines


def _digits(value: float, digits: int) -> str:
    """A number to some significant digits, or to a whole number if it is large."""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"
