"""Building blocks of sections: plain-text tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compare.trial.bench.task import Task
from reports import formats
from reports.statistics import Spread
from reports.summary import Column, StoredContestant, StoredSource, Subject, Summary, leaders

LAST = float("inf")
"""A value that sorts an entry after all figures."""


@dataclass(frozen=True)
class Entry:
    """One cell of a table: a text, and a qualification in smaller print."""

    text: str
    detail: str = ""
    best: bool = False  # to be set in bold
    value: float | None = None  # what it is sorted by; None for a text in words


NOTHING = Entry("–", value=LAST)

Row = Mapping[tuple[str, ...], Entry]
"""The cells of a row by heading; a heading has one part for each facet of the table."""


@dataclass(frozen=True)
class Table:
    """A table with a row for each contestant, or case, that has a figure.

    The heading of a column has a part for each facet, such as ("Hold", "N = 1000"). The page shows
    the columns with the parts that the reader chooses: at first those in `chosen`, and all parts of
    a facet without a choice.
    """

    name: str
    caption: str
    facets: Sequence[str]
    entries: Mapping[Any, Row]  # by Subject
    note: str = ""
    of: str = "timer"
    chosen: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def headings(self) -> list[tuple[str, ...]]:
        """The headings of all rows."""
        return [*dict.fromkeys(heading for row in self.rows.values() for heading in row)]

    @cached_property
    def rows(self) -> dict[Subject, Row]:
        """The rows that are shown."""
        return {
            subject: row
            for subject, row in self.entries.items()
            if any(cell is not NOTHING for cell in row.values())
        }

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The facets with more than one part, and their parts."""
        parts = {
            facet: [*dict.fromkeys(heading[place] for heading in self.headings)]
            for place, facet in enumerate(self.facets)
        }
        return {facet: several for facet, several in parts.items() if len(several) > 1}

    def entry(self, subject: Subject, heading: tuple[str, ...]) -> Entry:
        """A cell."""
        return self.rows[subject].get(heading, NOTHING)

    def is_number(self, heading: tuple[str, ...]) -> bool:
        """Whether a column holds numbers, which are right-aligned."""
        return all(self.entry(subject, heading).value is not None for subject in self.rows)

    @property
    def in_words(self) -> bool:
        """Whether it holds texts, which need wide columns."""
        return not any(map(self.is_number, self.headings))


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own; the page adds the charts of the same name."""

    name: str
    title: str
    headline: str = ""
    lead: str = ""
    tables: Sequence[Table] = ()
    terms: Mapping[str, Sequence[str]] = field(default_factory=dict)  # each with its sentences
    template: str = ""  # of its prose
    folded: bool = False  # behind its heading, until the reader opens it


def plain_row(values: Mapping[str, Entry]) -> Row:
    """Make a row of a table with one facet."""
    return {(heading,): entry for heading, entry in values.items()}


def entry(value: Any, form: Callable[[Any], str] = formats.count) -> Entry:
    """Make a cell for a figure that may be missing."""
    return NOTHING if value is None else Entry(form(value), value=value)


Figures = Mapping[str, tuple[str, Callable[[Any], str]]]
"""Heading -> column of a row, and how it is written."""


def entries(row: Mapping[str, Any], figures: Figures) -> dict[str, Entry]:
    """The figures of a row by heading, as far as the row has them."""
    return {
        heading: entry(row[column], form)
        for heading, (column, form) in figures.items()
        if column in row
    }


def with_range(time: Spread, *, best: bool) -> Entry:
    """Make a cell for a time in nanoseconds, with the range of its samples."""
    ends = formats.span(time.low, time.high, formats.significant)
    detail = f"({ends})" if time.samples > 1 else ""
    return Entry(formats.significant(time.level), detail, best, value=time.level)


MEDIAN, LEAST, GREATEST = "median [ns]", "least [ns]", "greatest [ns]"


def times(
    summary: Summary, measured: Task | StoredSource, column: Column, contestant: StoredContestant
) -> dict[str, Entry]:
    """The statistics of a time, all in nanoseconds so that a column has one unit.

    For a timer that was over budget, the cell names the size.
    """
    base, time = summary.base and column.get(summary.base), column.get(contestant)
    ratio = f"ratio to {summary.base.timer}" if summary.base and base and base.level else ""
    names = [MEDIAN, LEAST, GREATEST, *([ratio] if ratio else [])]
    if time is None:
        if (measured, contestant) not in summary.over_budget:
            return dict.fromkeys(names, NOTHING)
        size = summary.over_budget[measured, contestant]
        size_text = f" at {formats.count(size)}" if size else ""
        return dict.fromkeys(names, Entry("", f"over budget{size_text}", value=LAST))
    best = contestant in leaders(column)
    entries = [Entry(formats.significant(ns), best=best, value=ns) for ns in time[:3]]
    if base and ratio:
        multiple = time.level / base.level
        entries.append(Entry(formats.ratio(multiple), best=best, value=multiple))
    return dict(zip(names, entries, strict=True))


BOLD = "Bold: the fastest exact timer, and exact timers tied with it."
