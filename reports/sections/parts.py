"""What sections are made of: tables of plain text, for the page to lay out and tests to read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compare.bench.task import Task
from reports import formats
from reports.summary import Cell, Column, StoredContestant, StoredSource, Subject, Summary, leaders

NARROW, WIDE = 3, 5  # columns

Terms = Mapping[str, Sequence[str]]
"""Terms, each with the sentences that explain it."""


@dataclass(frozen=True)
class Entry:
    """One cell of a table: its text, and in smaller print what qualifies it."""

    text: str
    detail: str = ""
    best: bool = False  # to be set in bold
    number: bool = True


NOTHING = Entry("–")


@dataclass(frozen=True)
class Table:
    """A table with a row for each contestant, or case, of which there is anything to show."""

    name: str
    caption: str
    headings: Sequence[str]
    entries: Mapping[Any, Sequence[Entry]]  # by Subject
    note: str = ""
    of: str = "timer"
    loose: bool = False  # figures may be broken into two lines

    @classmethod
    def of_rows(
        cls,
        name: str,
        caption: str,
        rows: Mapping[Any, Mapping[str, Entry]],
        note: str = "",
        **how: Any,
    ) -> "Table":
        """A table from rows that have the same headings, each with its entry."""
        headings = [*next(iter(rows.values()), {})]
        return cls(
            name, caption, headings, {who: [*rows[who].values()] for who in rows}, note, **how
        )

    @cached_property
    def rows(self) -> dict[Subject, Sequence[Entry]]:
        """The rows that are shown."""
        return {
            who: row for who, row in self.entries.items() if any(one is not NOTHING for one in row)
        }

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers, and so is aligned at the right."""
        return all(row[column].number for row in self.rows.values())

    @property
    def in_words(self) -> bool:
        """Whether it holds texts, which need broad columns."""
        return not any(map(self.is_number, range(len(self.headings))))

    def beside(self, charts: int) -> bool:
        """Whether it stands among so many charts, at half the width of the page.

        Beside a chart that is alone there is room for more of it.
        """
        limit = WIDE if charts == 1 else NARROW if charts else 0
        return not self.in_words and len(self.headings) < limit


@dataclass(frozen=True)
class Section:
    """A part of the page with its own heading; the charts of the same name are added to it."""

    name: str
    short: str  # for the list of sections
    title: str
    headline: str = ""
    lead: str = ""
    tables: Sequence[Table] = ()
    terms: Terms = field(default_factory=dict)
    points: Sequence[str] = ()


def entry(value: Any, form: Callable[[Any], str] = formats.count) -> Entry:
    """An entry for a figure that may be missing."""
    return NOTHING if value is None else Entry(form(value))


def texts(values: Mapping[str, str]) -> dict[str, Entry]:
    """Entries that are not numbers, by their headings."""
    return {heading: Entry(value, number=False) for heading, value in values.items()}


def time_entry(
    summary: Summary,
    of: Task | StoredSource,
    column: Column,
    who: StoredContestant,
    *,
    spread: bool = True,
) -> Entry:
    """The time of a contestant in a column of a task or source, with the spread and the ratio to
    the base; or the size at which it was over budget.
    """
    cell = column.get(who)
    if cell is None:
        if (of, who) not in summary.over_budget:
            return NOTHING
        size = summary.over_budget[of, who]
        return Entry("over budget", f"at {formats.count(size)}" if size else "")
    details = []
    if spread and cell.spread.samples > 1:
        details.append(f"({formats.time_range(cell.spread.low, cell.spread.high)})")
    base = summary.base and column.get(summary.base)
    if base and base.level:
        details.append(formats.ratio(cell.level / base.level))
    return Entry(formats.nanoseconds(cell.level), " ".join(details), who in leaders(column))


def ratio_note(summary: Summary) -> str:
    """What the × in a table refers to."""
    if summary.base is None:
        return ""
    return f"× is the ratio to the time of {summary.base.timer} in the same column."


def chart_notes(summary: Summary, cells: Sequence[Cell]) -> str:
    """What holds for all charts of these times."""
    samples = sorted({cell.spread.samples for cell in cells})
    if samples in ([], [1]):
        spread = f"There is one {summary.sample} of each time, so no spread is shown."
    else:
        number = "–".join(map(str, dict.fromkeys((samples[0], samples[-1]))))
        level = "the time of all" if summary.of_shards else "the median of"
        spread = (
            f"Markers show {level} {number} {summary.sample}s, bars the range from the least to "
            "the greatest."
        )
    notes = [spread, "Axes of time are logarithmic."]
    if any(not who.compiled for who in summary.contestants):
        notes.append("Times of a “Python loop” include the interpreter's overhead.")
    if any(not who.exact for who in summary.contestants):
        notes.append("A timer that may fire late or early says by how much.")
    if summary.over_budget:
        budget = summary.manifest["parameters"]["budget"]
        notes.append(
            f"What takes a timer longer than {budget:g} s is over budget, and is not run with more "
            "timers pending."
        )
    return " ".join(notes)
