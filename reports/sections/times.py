"""Time against the number of pending timers."""

from compare.bench.task import Task
from reports import formats
from reports.sections.parts import Section, Table, chart_notes, ratio_note, time_entry
from reports.summary import Summary


def section(summary: Summary) -> Section | None:
    """The times of all tasks."""
    if not summary.cells:
        return None
    shown = [
        cell for task in summary.cells.values() for of in task.values() for cell in of.values()
    ]
    dashed = "" if all(who.compiled for who in summary.contestants) else " Dashed: Python loops."
    return Section(
        "times",
        "Time",
        "Time against the number of pending timers",
        lead="What one operation costs as the number of pending timers (N) grows. "
        f"{chart_notes(summary, shown)} Points are moved sideways a little so that none hides "
        f"another.{dashed}",
        tables=[times(summary, task) for task in summary.cells],
    )


def times(summary: Summary, task: Task) -> Table:
    """Median, spread and ratio to the base for each contestant and size of one task."""
    columns = [summary.column(task, size) for size in summary.sizes]
    return Table(
        f"times-{task.name}",
        f"{task.title}: time per {task.unit}",
        list(map(formats.size, summary.sizes)),
        {
            who: [time_entry(summary, task, column, who) for column in columns]
            for who in summary.contestants
        },
        f"{task.meaning} Median; the least and the greatest sample in brackets. "
        f"{ratio_note(summary)}",
    )
