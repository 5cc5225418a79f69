"""A progress bar for Spark's jobs, on a terminal only.

Spark's own bar writes carriage returns into logs and does not know rows.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm import tqdm

from compare.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.25  # seconds between two looks
_BAR = "{desc} {percentage:3.0f}% {bar} {elapsed}"
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
    bar = tqdm(total=1.0, leave=False, dynamic_ncols=True, bar_format=_BAR)

    def look() -> None:
        while not finished.wait(INTERVAL):
            done, number = tasks_of(session)
            share = done / number if number else 0.0
            parts = [f"task {done} of {number}"] if number else []
            if rows_done is not None:
                written = rows_done()
                of = f" of {tqdm.format_sizeof(rows)}" if rows else ""
                parts.append(f"{tqdm.format_sizeof(written)}{of} rows")
                share = written / rows if rows else share
            bar.n = min(share, 1.0)
            text = f"{what}: {', '.join(parts)}" if parts else what
            bar.set_description_str(f"{text:<{_WIDTH}}"[:_WIDTH])

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield
    finally:
        finished.set()
        looker.join()
        bar.close()


def tasks_of(session: "SparkSession") -> tuple[int, int]:
    """The tasks of the running jobs: ended, and all of them. (0, 0) through Spark Connect."""
    if is_remote(session):
        return 0, 0
    tracker = session.sparkContext.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getActiveJobsIds())
    numbers = {number for job in jobs if job is not None for number in job.stageIds}
    stages = [info for info in map(tracker.getStageInfo, numbers) if info is not None]
    done = sum(stage.numCompletedTasks for stage in stages)
    return done, sum(stage.numTasks for stage in stages)
