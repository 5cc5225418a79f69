"""The data of charts: panels with series of points. `reports.charts` draws them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compare.base import formats
from reports.statistics import Estimate
from reports.summary import Subject

CURVES, COLUMNS, SCATTER = "curves", "columns", "scatter"
"""The kinds of charts: lines over a number, a column for each source, points of two values."""


class Point(NamedTuple):
    """A value of a series."""

    x: float
    value: Estimate
    where: str  # stands before the value when it is pointed at
    hollow: bool = False


@dataclass(frozen=True)
class Panel:
    """The series of one pair of axes."""

    series: Mapping[Subject, Sequence[Point]]
    form: Callable[[float], str] = formats.nanoseconds
    across: str = ""  # the label of the x axis
    form_across: Callable[[float], str] = formats.short_count  # unless it has ticks or names
    most_ticks: int = 4  # of the x axis; fewer where labels are long
    ticks: Sequence[int] = ()  # of the x axis: numbers of timers, beside which series are moved
    names: Sequence[str] = ()  # of columns, or of places of the x axis
    levels: Mapping[Subject, Sequence[Estimate]] = field(default_factory=dict)  # horizontal lines
    diagonal: Sequence[float] = ()  # where both axes show the same

    @property
    def subjects(self) -> Collection[Subject]:
        """The subjects that are drawn."""
        return {**self.levels, **self.series}


@dataclass(frozen=True)
class Plot:
    """A chart: one or several panels, by heading."""

    kind: str
    name: str  # stem of its files
    title: str
    caption: str
    order: Sequence[Subject]  # of the legend
    panels: Mapping[str, Panel]
    height: float = 2.1  # of a panel, in inches


Plots = Iterator[Plot]
