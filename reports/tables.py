"""Tables of plain texts: cells, headings with facets, and what of them a reader sees at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compare.base import formats
from compare.trial.results.metrics import TIMED
from compare.trial.results.metrics import metric as metric_named
from reports.statistics import RATIO, Estimate, statistic
from reports.summary import StoredContestant, Subject, Summary, leaders

LAST = float("inf")
"""A value that sorts an entry after all figures."""


@dataclass(frozen=True)
class Entry:
    """One cell of a table: a text, and a qualification in smaller print."""

    text: str
    detail: str = ""
    best: bool = False  # to be set in bold
    value: float | None = None  # what it is sorted by; None for a text in words

    @property
    def whole(self) -> str:
        """The text with its qualification."""
        return f"{self.text} {self.detail}".strip()


NOTHING = Entry("–", value=LAST)

Heading = tuple[str, ...]
Row = Mapping[Heading, Entry]
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
    note: str = ""  # a line for each paragraph
    of: str = "timer"
    chosen: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def headings(self) -> list[Heading]:
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

    def entry(self, subject: Subject, heading: Heading) -> Entry:
        """A cell."""
        return self.rows[subject].get(heading, NOTHING)

    def is_number(self, heading: Heading) -> bool:
        """Whether a column holds numbers, which are right-aligned."""
        return all(self.entry(subject, heading).value is not None for subject in self.rows)

    @property
    def in_words(self) -> bool:
        """Whether it holds texts, which need wide columns."""
        return not any(map(self.is_number, self.headings))

    def parts(self, **chosen: str | None) -> Iterator[tuple[str, dict[str, Heading]]]:
        """Divide the columns: a title for each part, and its columns by their short headings.

        A part has the columns that differ in the last facet with a choice alone. `chosen` are the
        parts of facets besides those in `self.chosen`; None leaves a facet open.
        """
        choice = {facet: part for facet, part in {**self.chosen, **chosen}.items() if part}
        open_ = [facet for facet in self.facets if facet in self.choices and facet not in choice]
        across = open_[-1] if open_ else self.facets[-1]
        parts: dict[str, dict[str, Heading]] = {}
        for heading in self.headings:
            named = dict(zip(self.facets, heading, strict=True))
            if all(named.get(facet) == part for facet, part in choice.items()):
                short = named.pop(across)
                parts.setdefault(", ".join(named.values()), {})[short] = heading
        yield from parts.items()


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
    controls: str = ""  # a template that asks the reader
    folded: bool = False  # behind its heading, until the reader opens it


def ends_of(low: float, high: float, form: Callable[[float], str]) -> str:
    """The ends of a range in brackets; empty if they are one value."""
    return f"({formats.span(low, high, form)})" if low < high else ""


def cell(name: str, metric: str, estimate: Estimate, *, best: bool = False) -> Entry:
    """Make the cell of a statistic of a metric."""
    form, wanted = metric_named(metric).form, statistic(name)
    value = wanted.value(estimate)
    detail = ends_of(*wanted.ends(estimate), form) if wanted.ends else ""
    return Entry(form(value), detail, best, value)


def cells(
    summary: Summary,
    timer: StoredContestant,
    name: str,
    subject: str,
    size: int | None = None,
    *,
    ranked: bool = False,
) -> dict[str, Entry]:
    """Return the cells of the statistics of a metric, by heading.

    With `ranked`, the fastest timers are bold, and for a timer that was over budget the first cell
    names the size.
    """
    metric, column = metric_named(name), summary.column(name, subject, size)
    base = summary.base and column.get(summary.base)
    shown: dict[str, Entry] = {}
    timed = ranked and name in TIMED
    if not column and not timed:
        return shown
    mine = column.get(timer)
    best = ranked and mine is not None and timer in leaders(column)
    for wanted in metric.statistics:
        if wanted == RATIO:
            if not (summary.base and base and base.value):
                continue
            heading = f"ratio to {summary.base.timer}"
        elif len(metric.statistics) > 1 and statistic(wanted).title:
            heading = statistic(wanted).title + metric.bracket
        else:
            heading = metric.heading
        if mine is None:
            shown[heading] = _missing(summary, (timer.label, subject, name)) if timed else NOTHING
        elif wanted == RATIO and base:
            ratio = mine.value / base.value
            shown[heading] = Entry(formats.ratio(ratio), best=best, value=ratio)
        else:
            shown[heading] = cell(wanted, name, mine, best=best)
    return shown


def _missing(summary: Summary, key: tuple[str, str, str]) -> Entry:
    if key not in summary.over_budget:
        return NOTHING
    size = summary.over_budget[key]
    return Entry("", f"over budget at {formats.count(size)}" if size else "over budget", value=LAST)


def entry(value: Any, form: Callable[[Any], str] = formats.count) -> Entry:
    """Make a cell for a figure that may be missing."""
    return NOTHING if value is None else Entry(form(value), value=value)


def plain_row(values: Mapping[str, Entry]) -> Row:
    """Make a row of a table with one facet."""
    return {(heading,): entry for heading, entry in values.items()}


def figures(row: Mapping[str, Any], metrics: Iterable[str]) -> dict[str, Entry]:
    """The cells of metrics that a row has values of, by heading."""
    found = [(row[name], metric_named(name)) for name in metrics if name in row]
    return {metric.heading: entry(value, metric.form) for value, metric in found}
