"""Runs the calls that are due, on the thread that drives a service or in an executor."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor
from contextvars import Context
from functools import partial
from types import CoroutineType
from typing import Any

from timers.errors import ParameterError
from timers.services.errors import CallbackError
from timers.services.pending import CANCELLED, FINISHED, NEVER, PENDING, STARTED, Pending
from timers.validation import shown

Report = Callable[[Any, BaseException], object]
"""Handles an exception of a callback, or, with None, of the timer itself."""


class CallRunner:
    """Runs the entries of `pending.due`, first to last.

    Exceptions go to `report`. Where it `propagates`, SystemExit and KeyboardInterrupt of callbacks
    go to whoever drives instead.
    """

    def __init__(self, pending: Pending, report: Report, executor: Executor | None = None) -> None:
        self._pending: Any = pending
        self.report, self._executor = report, executor
        self.propagates = True
        self.started = 0  # callbacks
        self.next_due = NEVER  # the deadline of what the driver runs now or next
        self.running_since = NEVER  # the moment at which the callback that is running began

    def run_next(self) -> None:
        """Start the first entry that is due, and run it, unless it was cancelled or moved."""
        pending = self._pending
        entry: Any = None
        was_pending = False
        try:
            with pending.lock:
                entry = pending.due[0]
                was_pending = entry._state == PENDING
                begun = entry._begin()
                pending.due.popleft()
            if begun:
                self._start(entry)
        except BaseException as error:
            # An executor refused it, or a signal handler raised before it ran.
            if not was_pending or entry._state != STARTED:
                raise
            try:
                self._fail(entry._callback, error, self.propagates)
            finally:
                self._finish(entry, self.propagates)

    def _start(self, entry: Any) -> None:
        self.started += 1
        self.next_due = entry._moment
        if self._executor is not None:
            future = self._executor.submit(self._run, entry, False)
            if callable(getattr(future, "add_done_callback", None)):
                future.add_done_callback(partial(self._look_at, entry))
            return
        self.running_since = time.monotonic_ns()
        try:
            self._run(entry, self.propagates)
        finally:
            self.running_since = NEVER

    def _run(self, entry: Any, propagate: bool) -> None:
        """Run an entry that has begun; report exceptions, except that exits may `propagate`."""
        try:
            if entry._state != CANCELLED:  # a periodic call may be, since it began
                context = Context() if entry._context is None else entry._context
                result = context.run(entry._callback, *entry._args)
                if type(result) is CoroutineType:
                    result.close()
                    name = shown(entry._callback)
                    raise CallbackError(f"{name} is async, so nothing of it ran")
        except BaseException as error:
            self._fail(entry._callback, error, propagate)
        finally:
            self._finish(entry, propagate)

    def _look_at(self, entry: Any, future: Any) -> None:
        """Report a call that its executor has dropped; `_run` itself never raises."""
        if entry._state != STARTED:
            return
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self.report(entry._callback, error)
            self._finish(entry, False)

    def _fail(self, callback: Any, error: BaseException, propagate: bool) -> None:
        """Report the exception that is being handled, unless it is to propagate."""
        if propagate and isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise error
        self.report(callback, error)

    def _finish(self, entry: Any, propagate: bool) -> None:
        """Finish a run, even if the clock fails or a signal handler raises meanwhile."""
        try:
            entry._finish()
        except BaseException as error:
            if entry._state in (STARTED, FINISHED):
                entry._finish()
            self._fail(None, error, propagate)


def check_executor(executor: Any) -> None:
    """Refuse what is not an executor of this process. Raises ParameterError."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ParameterError(f"executor must be an Executor, not {shown(executor)}")
    processes = sys.modules.get("concurrent.futures.process")  # loaded if one has been made
    if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
        raise ParameterError(f"executor must run callbacks in this process, not {shown(executor)}")
