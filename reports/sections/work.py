"""The work that was counted while the tasks ran."""

from compare.bench.task import Task
from reports import formats
from reports.sections.parts import NOTHING, Entry, Section, Table, entry
from reports.summary import StoredContestant, Summary


def section(summary: Summary) -> Section | None:
    """The counts of all tasks."""
    tables = [table for task in summary.cells if (table := work(summary, task))]
    if not tables:
        return None
    if summary.slots:
        tables.append(in_slots(summary))
    uncompiled = any(not who.compiled for who in summary.contestants)
    return Section(
        "work",
        "Work",
        "Counted work",
        lead="What the same operations did inside the timer. These counts explain the times, and "
        "they are the same on every machine. Both axes of the charts are logarithmic, so zero is "
        "not drawn. Where lines overlap, the lower one is drawn wider."
        + (" Timers without a compiled kernel count only calls to advance." if uncompiled else ""),
        tables=tables,
    )


def work(summary: Summary, task: Task) -> Table | None:
    """Counts per operation for each contestant and counter of one task, at the smallest and the
    largest size; None where nothing was counted.
    """
    counters = summary.counters(task)
    rows = {
        who: [_growth(summary, task, name, who) for name in counters] for who in summary.contestants
    }
    idle = summary.counters(task, idle=True)
    first, last = (formats.size(size) for size in (summary.sizes[0], summary.sizes[-1]))
    table = Table(
        f"work-{task.name}",
        f"{task.title}: counted work per {task.unit}",
        list(map(formats.counter_title, counters)),
        rows,
        (f"Counts at {first} → at {last}." if first != last else f"Counts at {last}.")
        + (f" Zero for all: {formats.listed(map(formats.counter_title, idle))}." if idle else ""),
        loose=True,
    )
    return table if table.rows else None


def in_slots(summary: Summary) -> Table:
    """The share of the timers that were in the slots of each wheel while it was held."""
    return Table(
        "slots",
        "Share of the pending timers that are in slots while holding",
        list(map(formats.size, summary.sizes)),
        {
            who: [entry(sizes.get(size), formats.share) for size in summary.sizes]
            for who, sizes in summary.slots.items()
        },
        "The others wait in a list: until the wheel reaches that far, or for the end of the tick "
        "in which they were scheduled. With a low share the times of hold are those of that list.",
    )


def _growth(summary: Summary, task: Task, name: str, who: StoredContestant) -> Entry:
    counts = summary.counts[task][name].get(who)
    if not counts:
        return NOTHING
    low, high = min(counts), max(counts)
    amounts = dict.fromkeys(formats.amount(counts[size]) for size in (low, high))
    detail = "" if high == summary.sizes[-1] else f"at {formats.size(high)}"
    return Entry(f" →{formats.NO_BREAK}".join(amounts), detail)
