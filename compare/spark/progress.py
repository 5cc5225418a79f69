"""A progress bar for Spark's jobs, on a terminal only.

Spark's own bar writes carriage returns into logs and does not know rows.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from compare.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.25  # seconds between two looks
_WIDTH = 54  # columns before the bar


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


def show(
    bar: Any, what: str, tasks: tuple[int, int], rows: int | None, rows_done: int | None
) -> None:
    """Update the bar."""
    parts = []
    share = 0.0
    done, number = tasks
    if number:
        parts.append(f"task {done} of {number}")
        share = done / number
    if rows_done is not None:
        of = f" of {tqdm.format_sizeof(rows)}" if rows else ""
        parts.append(f"{tqdm.format_sizeof(rows_done)}{of} rows")
        share = rows_done / rows if rows else share
    bar.n = min(share, 1.0)
    text = f"{what}: {', '.join(parts)}" if parts else what
    bar.set_description_str(f"{text:<{_WIDTH}}"[:_WIDTH])


def tasks_of(session: "SparkSession") -> tuple[int, int]:
    """The tasks of the running jobs: ended, and all of them. (0, 0) through Spark Connect."""
    context = getattr(session, "sparkContext", None) if not is_remote(session) else None
    if context is None:
        return 0, 0
    tracker = context.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getActiveJobsIds())
    numbers = {number for job in jobs if job is not None for number in job.stageIds}
    stages = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
    return (
        sum(stage.numCompletedTasks for stage in stages),
        sum(stage.numTasks for stage in stages),
    )
