"""The work that was counted while the tasks ran."""

from reports import formats
from reports.sections.parts import Section, Table, entry, plain_row
from reports.summary import Summary


def section(summary: Summary) -> Section | None:
    """The counts of all tasks."""
    counted = work(summary)
    if not counted.rows:
        return None
    uncompiled = any(not who.compiled for who in summary.contestants)
    return Section(
        "work",
        "Work",
        "Counted work: why the times are what they are",
        lead="What the same operations did inside the timer. These counts explain the times, and "
        "they are the same on every machine. Both axes of the charts are logarithmic, so zero is "
        "not drawn. Where lines overlap, hide one in the legend."
        + (" Timers without a compiled kernel count only calls to advance." if uncompiled else ""),
        tables=[counted, *([in_slots(summary)] if summary.slots else [])],
        folded=True,
    )


def work(summary: Summary) -> Table:
    """Counts per operation for each contestant, task, counter and size."""
    tasks = [task for task in summary.cells if summary.counters(task)]
    chosen = {"operation": tasks[0].title, "size": formats.size(summary.sizes[-1])} if tasks else {}
    return Table(
        "work",
        "Counted work per operation",
        ("operation", "size", "counter"),
        {
            who: {
                (task.title, formats.size(size), formats.counter_title(name)): entry(
                    summary.counts[task][name].get(who, {}).get(size), formats.amount
                )
                for task in tasks
                for size in summary.sizes
                for name in summary.counters(task)
            }
            for who in summary.contestants
        },
        chosen=chosen,
    )


def in_slots(summary: Summary) -> Table:
    """The share of the timers that were in the slots of each wheel while it was held."""
    return Table(
        "slots",
        "Share of the pending timers that are in slots while holding",
        ("size",),
        {
            who: plain_row(
                {formats.size(n): entry(of.get(n), formats.share) for n in summary.sizes}
            )
            for who, of in summary.slots.items()
        },
        "The others wait in a list: until the wheel reaches that far, or for the end of the tick "
        "in which they were scheduled. With a low share the times of hold are those of that list.",
    )
