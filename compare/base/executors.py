"""Work in parts, on threads of this process."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

from compare.base.versions import versions

Part = TypeVar("Part")
Piece = TypeVar("Piece")
Result = TypeVar("Result")
Stopping = Callable[[], bool]
Work = Callable[[int, Stopping], Result]
"""Compute the result of a part, given its number. Long work regularly asks whether to stop; if so,
it raises `Stopped`.
"""


class Stopped(Exception):  # not an error: something else has failed before
    """A part of the work has stopped early, as requested."""


def never_stopping() -> bool:
    """Return False: for work that can be killed at any moment."""
    return False


def until_stopping(pieces: Iterable[Piece], stopping: Stopping) -> Iterator[Piece]:
    """Yield the pieces one by one. Raises Stopped if the work should stop."""
    for piece in pieces:
        if stopping():
            raise Stopped
        yield piece


class Threads:
    """Runs parts on threads of this process. Compiled code and Arrow release the GIL."""

    def __init__(self) -> None:
        self.workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self.made_by = {"executor": "threads", "master": None, "versions": versions()}
        self._ended = self._parts = 0

    def run(self, parts: int, work: Work[Result]) -> list[Result]:
        """The results of `work` for the parts in [0, parts), in order.

        An exception or an interrupt stops the parts that are running.
        """
        stop = threading.Event()
        self._ended, self._parts = 0, parts
        with ThreadPoolExecutor(self.workers, "wheelwork") as pool:
            try:
                submitted = [pool.submit(work, part, stop.is_set) for part in range(parts)]
                for done in as_completed(submitted):
                    done.result()
                    self._ended += 1
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [done.result() for done in submitted]

    def in_order(
        self, parts: Iterable[Part], work: Callable[[Part], Piece]
    ) -> Iterator[tuple[Part, Piece]]:
        """Yield each part and its result, in their order.

        The parts are taken from the iterable on the caller's thread while others are worked on. At
        most two per worker are held.
        """
        running: deque[tuple[Part, Future[Piece]]] = deque()
        with ThreadPoolExecutor(self.workers, "wheelwork") as pool:
            try:
                for part in parts:
                    running.append((part, pool.submit(work, part)))
                    while running and (running[0][1].done() or len(running) > 2 * self.workers):
                        part, done = running.popleft()
                        yield part, done.result()
                while running:
                    part, done = running.popleft()
                    yield part, done.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def tasks(self) -> tuple[int, int]:
        """The number of parts that have ended, and of all parts."""
        return self._ended, self._parts

    def send_module(self, file: str) -> None:
        """Do nothing: the module is already imported."""


def even_shares(parts: int, tasks: int) -> list[range]:
    """Divide the parts evenly among at most `tasks` tasks; no task is empty."""
    tasks = min(tasks, parts)
    return [range(parts * task // tasks, parts * (task + 1) // tasks) for task in range(tasks)]
