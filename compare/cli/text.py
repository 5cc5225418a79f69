"""Lay out text for a terminal of 80 columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compare.traffic.tapes.trace import Trace

WIDTH = 80


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells, the first column to the left and the others to the right.

    If that is too wide, the headings in the first row are wrapped, then the first cell of each row
    gets a line of its own, and then the columns are divided. A name is never cut, so that it can be
    copied into a command.

    >>> table([["", "fired"], ["delay-queue", "7"]])
    ['             fired', 'delay-queue      7']
    """
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    width = sum(others) + 2 * len(others)
    if first + width <= WIDTH:
        return [_aligned(row, [first, *others]) for row in rows]
    if (narrower := _wrapped(rows)) != rows:
        return table(narrower)
    if width <= WIDTH or len(others) == 1:
        figures = (_aligned(["", *row[1:]], [0, *others]) for row in rows)
        pairs = zip(rows, figures, strict=True)
        return [line for row, rest in pairs for line in (row[0], rest) if line]
    half = len(others) // 2 + 1
    left, right = [row[:half] for row in rows], [[row[0], *row[half:]] for row in rows]
    return [*table(left), "", *table(right)]


def _wrapped(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Wrap headings that are wider than their columns."""
    heads, *cells = rows
    columns = zip(*cells, strict=True) if cells else [()] * len(heads)
    lines = [
        wrap(head, max(_NARROW, *map(len, column), 1), break_long_words=False) or [""]
        for head, column in zip(heads, columns, strict=True)
    ]
    height = max(map(len, lines))
    if height == 1:
        return rows
    padded = [[""] * (height - len(each)) + each for each in lines]
    return [*map(list, zip(*padded, strict=True)), *cells]


_NARROW = 12  # characters of a heading that is not wrapped


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *cells = row
    aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
    return "  ".join([name.ljust(widths[0]), *aligned]).rstrip()


@dataclass(frozen=True)
class Sheet:
    """A table with a title and remarks, for a terminal or in Markdown."""

    title: str = ""
    rows: Sequence[Sequence[str]] = ()  #: the first has the headings
    notes: Sequence[str] = ()  #: lines below the table

    @classmethod
    def of(
        cls, title: str, rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()
    ) -> "Sheet":
        """A table of rows whose keys are the headings."""
        return cls(title, [[*rows[0]], *([*row.values()] for row in rows)], notes)

    def text(self) -> str:
        """The table in 80 columns."""
        lines = table(self.rows) if self.rows else []
        title = [fill(self.title, WIDTH)] if self.title else []
        return "\n".join([*title, *lines, *self.notes])

    def markdown(self) -> str:
        """The table in the Markdown of GitHub.

        >>> print(Sheet("Title", [["", "ns"], ["a|b", "7"]]).markdown())
        ### Title
        <BLANKLINE>
        |  | ns |
        |:--|--:|
        | a\\|b | 7 |
        """
        parts = [f"### {self.title}"] if self.title else []
        if self.rows:
            heads, *rows = ([_escaped(cell) for cell in row] for row in self.rows)
            rule = f"|{'|'.join([':--', *['--:'] * (len(heads) - 1)])}|"
            lines = [f"| {' | '.join(row)} |" for row in rows]
            parts.append("\n".join([f"| {' | '.join(heads)} |", rule, *lines]))
        notes = map(_escaped, filter(None, self.notes))
        # Not the items of a list.
        return "\n\n".join([*parts, *(f"\\{note}" if note[0] in "+-" else note for note in notes)])


def _escaped(text: str) -> str:
    for special in "\\`*_|<":
        text = text.replace(special, f"\\{special}")
    return text


def shown(sheets: Iterable[Sheet], *, as_markdown: bool = False) -> str:
    """Format sheets, with an empty line between them."""
    return "\n\n".join(sheet.markdown() if as_markdown else sheet.text() for sheet in sheets)


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


def operations_text(totals: Mapping[str, Any]) -> str:
    """Format the numbers of operations of a trace, in total and by kind.

    >>> operations_text({"rows": 4, "starts": 3, "cancels": 0, "rearms": 1, "arms": 0})
    '4: 3 starts, 1 re-arm'
    """
    labels = {"starts": "start", "cancels": "cancel", "rearms": "re-arm", "arms": "arm"}
    kinds = [plural(totals[name], label) for name, label in labels.items() if totals[name]]
    return f"{totals['rows']:,}" + (f": {', '.join(kinds)}" if kinds else "")


def trace_facts(trace: "Trace") -> list[tuple[str, str]]:
    """Describe a trace: labels and texts."""
    shards = trace.totals["shards"]
    return [
        ("operations", operations_text(trace.totals)),
        *trace.description.lines(trace.unit, trace.span, shards).items(),
        ("trace", f"{trace.place}{f' in {shards} shards' * (shards > 1)}"),
    ]


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
