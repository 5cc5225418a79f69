"""The section on overload: lateness against the offered load, and the reader's own rate."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from compare.base import formats, quantiles
from compare.trial.bench.overload import CAPACITY, CONTENDERS, LOADS, PENDING
from compare.trial.results.metrics import metric as metric_named
from compare.trial.results.schema import OVERLOAD
from reports.plots import CURVES, Panel, Plot, Plots, Point
from reports.select import Key, pivot, where
from reports.statistics import Estimate
from reports.summary import Measured, Subject, Summary
from reports.tables import LAST, Entry, Heading, Row, Table, cell

LEAD = (
    "How late calls run as their rate nears the capacity of a service or event loop, and "
    "beyond it. Calls are due at random moments. "
    f"{formats.count(PENDING)} of them are pending, and each schedules another. The capacity is "
    "the rate at which calls run when all of them are due already. Beyond it, lateness grows for "
    "as long as the load lasts. Each contender runs in a process of its own: with a cascading "
    "wheel, if it has a choice, and with its default unit, to which deadlines are rounded up. The "
    "times are wall-clock times, so other work on the machine adds to them."
)

_LATE = {quantiles.title(name): f"late_{name}_ms" for name in ("p50", "p99", "p999")}
_DRAWN = _LATE["p99"]

_subject = cache(Measured)  # one for each name, so that charts and tables share it


def table(summary: Summary) -> Table:
    """The lateness of services and event loops at each load, and why one was not measured."""
    found = where(summary.figures, subject=OVERLOAD)
    capacity = metric_named(CAPACITY).heading
    columns = [(CAPACITY, None, capacity), *((None, load, f"{load} %") for load in LOADS)]
    entries: dict[Subject, Row] = {}
    for name in CONTENDERS:
        row: dict[Heading, Entry] = {}
        for figure in (*_LATE.values(), "late_end_ms", "undelivered"):
            heading = metric_named(figure).heading
            for metric, load, column in columns:
                key = Key(name, OVERLOAD, load, metric or figure)
                if key in found:
                    row[heading, column] = cell("median", key.metric, found[key])
                elif reason := summary.failures.get(key):
                    row[heading, column] = Entry("", f"not measured: it {reason}", value=LAST)
        entries[_subject(name)] = row
    return Table(
        "overload",
        "Lateness against load",
        ("figure", "load"),
        entries,
        "A load is a percentage of the contender's own capacity. Quantiles are of the calls that "
        "ran. Undelivered: due before the time was up, but not run.",
        of="contender",
        chosen={"figure": metric_named("late_p99_ms").heading} if found else {},
    )


def plots(summary: Summary) -> Plots:
    """Lateness against the calls that are due per second. Calls that run early are not drawn."""
    series: dict[Subject, list[Point]] = {}
    for name, (capacity, by_load) in _measured(summary).items():
        for load, figures in by_load.items():
            if _DRAWN in figures and figures[_DRAWN].value > 0:
                rate = capacity * load / 100
                at = f"{load} % of its capacity, {formats.significant(rate)} calls/s"
                point = Point(rate, figures[_DRAWN] * 1e6, at, hollow=load > 100)
                series.setdefault(_subject(name), []).append(point)
    if series:
        yield Plot(
            CURVES,
            "overload",
            "Lateness against offered load, p99",
            f"From {LOADS[0]} % to {LOADS[-1]} % of each contender's own capacity. Hollow: beyond "
            "it, where lateness grows for as long as the load lasts. Both axes are logarithmic.",
            [*series],
            {"": Panel(series, across="calls due per second", most_ticks=3)},
        )


def data(summary: Summary) -> list[dict[str, Any]]:
    """The figures with which the page's script answers for a rate.

    They are a contender's capacity in calls per second, and the quantiles of lateness in ms at each
    load, or the reason why these are missing.
    """
    measured = _measured(summary)
    return [
        {
            "name": name,
            "capacity": capacity,
            "loads": {
                load: [figures[late].value if late in figures else None for late in _LATE.values()]
                for load, figures in by_load.items()
            },
        }
        for name, (capacity, by_load) in measured.items()
    ] + [
        {"name": key.contestant, "failure": reason}
        for key, reason in summary.failures.items()
        if key.subject == OVERLOAD
    ]


def _measured(summary: Summary) -> Mapping[str, tuple[float, dict[int, dict[str, Estimate]]]]:
    """Contender -> capacity, and load -> metric -> estimate; loads are ascending."""
    found = pivot(where(summary.figures, subject=OVERLOAD), "contestant", "size", "metric")
    return {
        name: (
            found[name][None][CAPACITY].value,
            {load: found[name][load] for load in LOADS if load in found[name]},
        )
        for name in CONTENDERS
        if name in found
    }
