"""Lay out text for a terminal of 80 columns."""

from collections.abc import Sequence

WIDTH = 80


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells, the first column to the left and the others to the right.

    Where that is too wide, the first cell of each row has a line of its own.

    >>> table([["", "fired"], ["delay-queue", "7"]])
    ['             fired', 'delay-queue      7']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH and widths[0]:
        figures = table([["", *row[1:]] for row in rows])
        pairs = zip(rows, figures, strict=True)
        return [line for row, rest in pairs for line in (row[0], rest) if line]
    first, *others = widths
    return [
        "  ".join(
            [row[0].ljust(first)]
            + [cell.rjust(width) for cell, width in zip(row[1:], others, strict=True)]
        ).rstrip()
        for row in rows
    ]


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "shard"), plural(2000, "shard")
    ('1 shard', '2,000 shards')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
