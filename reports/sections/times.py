"""Time against the number of pending timers."""

from reports import formats
from reports.sections.parts import BOLD, MEDIAN, Section, Table, times
from reports.summary import Summary


def section(summary: Summary) -> Section | None:
    """Make the section: the times of all tasks."""
    if not summary.cells:
        return None
    notes = [
        "What one operation costs as the number of pending timers (N) grows. Markers show the "
        "median of the samples, bars the range from the least to the greatest. Axes are "
        "logarithmic. Points are moved sideways a little so that none hides another."
    ]
    if not all(timer.compiled for timer in summary.contestants):
        notes.append("Dashed: times of a “Python loop”, which include the interpreter's overhead.")
    if summary.over_budget:
        notes.append(
            f"What takes a timer longer than {summary.manifest['parameters']['budget']:g} s is "
            "over budget, and is not run with more timers pending."
        )
    title = "Time against the number of pending timers"
    return Section("times", title, lead=" ".join(notes), tables=[table(summary)])


def table(summary: Summary) -> Table:
    """A table with every statistic for each timer, task and size."""
    columns = {
        (task, size): summary.column(task, size) for task in summary.cells for size in summary.sizes
    }
    return Table(
        "times",
        "Time per operation",
        ("operation", "size", "statistic"),
        {
            timer: {
                (task.title, formats.size(size), statistic): entry
                for (task, size), column in columns.items()
                for statistic, entry in times(summary, task, column, timer).items()
            }
            for timer in summary.contestants
        },
        f"{BOLD} Expiry is the time for each timer that fires.",
        chosen={"size": formats.size(summary.sizes[-1]), "statistic": MEDIAN},
    )
