"""Counted work: the cost counters of the tasks."""

from compare.trial.bench.task import HOLD
from reports import formats
from reports.sections.parts import Entry, Row, Section, Table, entry
from reports.summary import StoredContestant, Summary

IN_SLOTS = "in slots"


def section(summary: Summary) -> Section | None:
    """Make the section: the counts of all tasks."""
    counted = table(summary)
    if not counted.rows:
        return None
    uncompiled = any(not timer.compiled for timer in summary.contestants)
    return Section(
        "work",
        "Counted work: why the times are what they are",
        lead="What the same operations did inside the timer. These counts explain the times, and "
        "they are the same on every machine. Both axes of the charts are logarithmic, so zero is "
        "not drawn. Where lines overlap, hide one in the legend."
        + (" Timers without a compiled kernel count only calls to advance." if uncompiled else ""),
        tables=[counted],
        folded=True,
    )


def table(summary: Summary) -> Table:
    """A table of counts per operation for each timer, task, size and counter."""
    tasks = [task for task in summary.cells if summary.counters(task)]

    def counts(timer: StoredContestant) -> Row:
        entries: dict[tuple[str, ...], Entry] = {
            (task.title, formats.size(size), formats.counter_title(name)): entry(
                count, formats.amount
            )
            for task in tasks
            for name in summary.counters(task)
            for size, count in summary.counts[task][name].get(timer, {}).items()
        }
        for size, share in summary.slots.get(timer, {}).items():
            entries[HOLD.title, formats.size(size), IN_SLOTS] = entry(share, formats.share)
        return entries

    return Table(
        "work",
        "Counted work per operation",
        ("operation", "size", "counter"),
        {timer: counts(timer) for timer in summary.contestants},
        "In slots: the share of the pending timers that are in the slots of a wheel while it is "
        "held. The others wait in a list, until the wheel reaches that far or for the end of the "
        "tick; with a low share, the time of hold is that of the list.",
        chosen={"operation": tasks[-1].title, "size": formats.size(summary.sizes[-1])}
        if tasks
        else {},
    )
