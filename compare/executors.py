"""Where numbered parts of work run: on threads of this process, or as tasks of Spark."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

import pyarrow as pa

Piece = TypeVar("Piece")
Stopping = Callable[[], bool]
Work = Callable[[int, Stopping], pa.RecordBatch]
"""Makes the rows of a part by its number. A long part asks now and then whether it should stop with
`Stopped`, since its result is no longer wanted.
"""


class Stopped(Exception):  # it is not an error: something else went wrong before
    """A part of work has ended early, because it was asked to."""


def never_stopping() -> bool:
    """For work that whoever runs it can end at any moment."""
    return False


def until_stopping(pieces: Iterable[Piece], stopping: Stopping) -> Iterator[Piece]:
    """The pieces, one by one. Raises Stopped where the work should stop."""
    for piece in pieces:
        if stopping():
            raise Stopped
        yield piece


class Executor(Protocol):
    """Runs parts of work side by side."""

    @property
    def workers(self) -> int:
        """How many parts may run at a time, rather too many than too few."""

    def run(self, parts: int, work: Work, schema: pa.Schema) -> pa.Table:
        """The rows of `work` for each part in [0, parts), of this schema, in no order.

        Raises what `work` raises or, from another process, an error that says it in one line.
        """

    def tasks(self) -> tuple[int, int]:
        """The tasks of the present run: those that have ended, and all of them."""

    def send_module(self, file: str) -> None:
        """Make a Python file importable where the parts run."""


class Threads:
    """Threads of this process. Compiled code and Arrow let them run side by side."""

    def __init__(self) -> None:
        self.workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self._stop = threading.Event()
        self._ended = self._parts = 0

    def run(self, parts: int, work: Work, schema: pa.Schema) -> pa.Table:
        """See `Executor.run`. An exception or an interrupt stops the parts that are running."""
        self._stop.clear()
        self._ended, self._parts, rows = 0, parts, []
        with ThreadPoolExecutor(self.workers, "wheelwork") as pool:
            try:
                stopping = self._stop.is_set
                submitted = [pool.submit(work, part, stopping) for part in range(parts)]
                for done in as_completed(submitted):
                    rows.append(done.result())
                    self._ended += 1
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return pa.Table.from_batches(rows, schema)

    def tasks(self) -> tuple[int, int]:
        """The parts that have ended, and all of them."""
        return self._ended, self._parts

    def send_module(self, file: str) -> None:
        """It is imported already."""


def even_shares(parts: int, tasks: int) -> list[range]:
    """The parts of each of at most `tasks` tasks, divided evenly; no task is empty."""
    tasks = min(tasks, parts)
    return [range(parts * task // tasks, parts * (task + 1) // tasks) for task in range(tasks)]
