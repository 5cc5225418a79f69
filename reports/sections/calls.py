"""The cost of scheduling and cancelling from Python."""

from collections.abc import Mapping

from compare.trial.bench.calls import OTHERS, SERVICE
from reports import formats
from reports.sections.parts import BOLD, Section, Table, plain_row, with_range
from reports.summary import Column, Summary, leaders


def section(summary: Summary) -> Section | None:
    """Make the section: single calls, batches and a service, beside event loops."""
    if not summary.calls:
        return None
    columns = {_heading(*way): column for way, column in summary.calls.items()}
    loops = [f"{loop}'s {formats.nanoseconds(cell.level)}" for loop, cell in summary.loops.items()]
    beside = f" The same with call_later() of an event loop: {', '.join(loops)}." if loops else ""
    return Section(
        "calls",
        "What a Python program pays",
        lead="CPU time of a schedule and its cancel, called from Python with "
        f"{formats.count(OTHERS)} other timers pending.{_range(columns)}{beside}",
        tables=[_table(summary, columns)],
        folded=True,
    )


def _range(columns: Mapping[str, Column]) -> str:
    """The ratio of the slowest compiled timer to the fastest, in words."""
    texts = []
    for heading, column in columns.items():
        levels = [cell.level for timer, cell in column.items() if timer.compiled]
        if len(levels) > 1:
            texts.append(f"{heading} {formats.ratio(max(levels) / min(levels))}")
    if not texts:
        return ""
    return f" Slowest compiled timer against the fastest: {', '.join(texts)}."


def _table(summary: Summary, columns: Mapping[str, Column]) -> Table:
    rows = {
        timer: plain_row(
            {
                heading: with_range(column[timer], best=timer in leaders(column))
                for heading, column in columns.items()
                if timer in column
            }
        )
        for timer in summary.contestants
    }
    note = f"Median and range, in ns for a schedule and a cancel. {BOLD}"
    return Table("calls", "Schedule and cancel from Python", ("call",), rows, note)


def _heading(interface: str, batch: int) -> str:
    if interface == SERVICE:
        return "SystemTimer, one by one"
    return "one by one" if batch == 1 else f"batches of {formats.count(batch)}"
