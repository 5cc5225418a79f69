"""The first section: the best timer, all timers at the largest size, and the findings."""

from reports import formats
from reports.findings import find
from reports.sections.parts import Entry, Section, Table, entry, ratio_note, time_entry
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """The short answer."""
    found = find(summary)
    return Section(
        "answer",
        "In short",
        "In short",
        headline=found.headline,
        lead=found.remark,
        tables=[at_a_glance(summary)] if summary.sizes else [],
        terms=found.topics,
    )


def at_a_glance(summary: Summary) -> Table:
    """Each contestant at the largest size: every task, memory, precision; the fastest in bold."""
    columns = {task: summary.column(task, summary.sizes[-1]) for task in summary.cells}
    rows = {}
    for who in summary.contestants:
        _, nbytes = summary.footprint(who) or (0, None)
        rows[who] = [
            *(time_entry(summary, column, who, spread=False) for column in columns.values()),
            entry(nbytes, formats.data_size),
            Entry(who.precision, number=False),
        ]
    return Table.of(
        "glance",
        f"With {formats.count(summary.sizes[-1])} timers pending: time per operation, memory, "
        "precision",
        [*(task.title for task in columns), "memory per timer", "fires"],
        rows,
        f"Bold: the fastest exact timer, and exact timers tied with it. {ratio_note(summary)}",
    )
