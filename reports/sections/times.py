"""Time against the number of pending timers."""

from reports import formats
from reports.sections.parts import BOLD, MEDIAN, Section, Table, chart_notes, times
from reports.summary import Summary


def section(summary: Summary) -> Section | None:
    """The times of all tasks."""
    if not summary.cells:
        return None
    shown = [
        cell for task in summary.cells.values() for of in task.values() for cell in of.values()
    ]
    return Section(
        "times",
        "Time",
        "Time against the number of pending timers",
        lead="What one operation costs as the number of pending timers (N) grows. "
        f"{chart_notes(summary, shown)} Points are moved sideways a little so that none hides "
        "another.",
        tables=[table(summary)],
    )


def table(summary: Summary) -> Table:
    """Every statistic of each contestant, task and size."""
    columns = {
        (task, size): summary.column(task, size) for task in summary.cells for size in summary.sizes
    }
    return Table(
        "times",
        "Time per operation",
        ("operation", "size", "statistic"),
        {
            who: {
                (task.title, formats.size(size), statistic): entry
                for (task, size), column in columns.items()
                for statistic, entry in times(summary, task, column, who).items()
            }
            for who in summary.contestants
        },
        f"{BOLD} Expiry is the time for each timer that fires.",
        chosen={"size": formats.size(summary.sizes[-1]), "statistic": MEDIAN},
    )
