"""Lay out text for a terminal of 80 columns."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.traffic.tapes.trace import Trace

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
    """Format a label, and a text wrapped to 80 columns that starts in column `indent + width`.

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
    """Format the numbers of operations of a trace, in total and by kind.

    >>> operations_text({"rows": 4, "starts": 3, "cancels": 0, "rearms": 1, "arms": 0})
    '4: 3 starts, 1 re-arm'
    """
    labels = {"starts": "start", "cancels": "cancel", "rearms": "re-arm", "arms": "arm"}
    kinds = [plural(totals[name], label) for name, label in labels.items() if totals[name]]
    return f"{totals['rows']:,}" + (f": {', '.join(kinds)}" if kinds else "")


def trace_facts(trace: "Trace") -> list[tuple[str, str]]:
    """Describe a trace: labels and texts."""
    shards = len(trace.shards)
    return [
        ("operations", operations_text(trace.totals)),
        *trace.description.lines(trace.unit, trace.span, shards).items(),
        ("trace", f"{trace.path}{f' in {shards} shards' * (shards > 1)}"),
    ]


def columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Lay out a table of at least one row; the keys of the rows are the headings.

    >>> columns([{"": "delay-queue", "ns": "7.1"}, {"": "hashed-wheel", "ns": "-"}])
    ['               ns', 'delay-queue   7.1', 'hashed-wheel    -']
    """
    return table([list(rows[0]), *(list(row.values()) for row in rows)])


def figure(value: float | None, form: str) -> str:
    """Format a number; "-" for None.

    >>> figure(1234.5, ",.0f"), figure(None, ",.0f")
    ('1,234', '-')
    """
    return "-" if value is None else format(value, form)


def replays_text(path: object, timers: int, shards: int, operations: int) -> str:
    """Summarise a replay, and name the path of its results.

    >>> replays_text("replayed", 1, 2, 3000)
    'replayed: 1 timer x 2 shards, 3,000 operations'
    """
    return (
        f"{path}: {plural(timers, 'timer')} x {plural(shards, 'shard')}, {operations:,} operations"
    )


def plural(number: int, noun: str) -> str:
    """Format a number with its noun.

    >>> plural(1, "shard"), plural(2000, "shard")
    ('1 shard', '2,000 shards')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
