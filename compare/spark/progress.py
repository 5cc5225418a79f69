"""A progress bar for Spark's jobs, on a terminal only.

Spark's own bar writes carriage returns into logs and does not know rows.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm import tqdm

from compare.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.25  # seconds between two looks
_WIDTH = 54  # columns before the bar


class Tasks(NamedTuple):
    """The tasks of all stages of the jobs that are running."""

    done: int
    all: int


@contextmanager
def progress(
    session: "SparkSession",
    what: str,
    rows: int | None = None,
    rows_done: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Show the progress of the block's jobs: tasks and, if `rows_done` is given, rows."""
    if not sys.stderr.isatty():
        yield
        return
    finished = threading.Event()
    bar = tqdm(
        total=1.0,
        leave=False,
        dynamic_ncols=True,
        bar_format="{desc} {percentage:3.0f}% {bar} {elapsed}",
    )

    def look() -> None:
        while not finished.wait(INTERVAL):
            show(bar, what, tasks_of(session), rows, rows_done() if rows_done else None)

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield
    finally:
        finished.set()
        looker.join()
        bar.close()


def show(bar: Any, what: str, tasks: Tasks | None, rows: int | None, done: int | None) -> None:
    """Update the bar."""
    parts = []
    share = 0.0
    if tasks is not None:
        parts.append(f"task {tasks.done} of {tasks.all}")
        share = tasks.done / tasks.all if tasks.all else 0.0
    if done is not None:
        parts.append(f"{short(done)} of {short(rows)} rows" if rows else f"{short(done)} rows")
        share = done / rows if rows else share
    bar.n = min(share, 1.0)
    text = f"{what}: {', '.join(parts)}" if parts else what
    bar.set_description_str(f"{text:<{_WIDTH}}"[:_WIDTH])


def tasks_of(session: "SparkSession") -> Tasks | None:
    """The tasks of the running jobs; None if there are none, and through Spark Connect."""
    context = getattr(session, "sparkContext", None) if not is_remote(session) else None
    if context is None:
        return None
    tracker = context.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getActiveJobsIds())
    numbers = {number for job in jobs if job is not None for number in job.stageIds}
    stages = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
    if not stages:
        return None
    return Tasks(
        sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    )


_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def short(number: int | None) -> str:
    """A number in about three digits.

    >>> short(999), short(12_345), short(2_000_000_000)
    ('999', '12.3 k', '2 G')
    """
    if number is None:
        return "?"
    for scale, letter in _SCALES:
        if number >= scale:
            return f"{number / scale:.3g} {letter}"
    return str(number)
