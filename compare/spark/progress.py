"""A progress bar for Spark's jobs, on a terminal; elsewhere nothing. It asks Spark's status tracker
now and then.

Spark's own bar writes carriage returns into logs and knows no rows.
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
_WIDTH = 54  # of what stands before the bar, in columns


class Tasks(NamedTuple):
    """How far the stages under way are."""

    stage: int
    done: int
    all: int


@contextmanager
def progress(
    session: "SparkSession",
    what: str,
    rows: int | None = None,
    rows_done: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Show how far the jobs of the block are: stage, tasks and, where `rows_done` tells, rows of
    `rows`.
    """
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
    """Bring the bar up to date."""
    words = [what]
    share = 0.0
    if tasks is not None:
        words.append(f"stage {tasks.stage}, task {tasks.done} of {tasks.all}")
        share = tasks.done / tasks.all if tasks.all else 0.0
    if done is not None:
        words.append(f"{short(done)} of {short(rows)} rows" if rows else f"{short(done)} rows")
        share = done / rows if rows else share
    bar.n = min(share, 1.0)
    bar.set_description_str(
        f"{': '.join([words[0], ', '.join(words[1:])]) if words[1:] else what:<{_WIDTH}}"[:_WIDTH]
    )


def tasks_of(session: "SparkSession") -> Tasks | None:
    """Where the latest stage under way is; None when none is, or when the session cannot tell
    (Spark Connect).
    """
    context = getattr(session, "sparkContext", None) if not is_remote(session) else None
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [
        info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None
    ]
    if not stages:
        return None
    latest = max(stages, key=lambda info: info.stageId)
    return Tasks(latest.stageId, latest.numCompletedTasks, latest.numTasks)


_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def short(number: int | None) -> str:
    """A number in three digits or so.

    >>> short(999), short(12_345), short(2_000_000_000)
    ('999', '12.3 k', '2 G')
    """
    if number is None:
        return "?"
    for scale, letter in _SCALES:
        if number >= scale:
            return f"{number / scale:.3g} {letter}"
    return str(number)
