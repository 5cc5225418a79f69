"""Ctrl-C and a termination while parts of work run on other threads, without a signal.

CPython may notice a signal too late. Tests with signals run commands as processes of their own.
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, as_completed
from typing import Any

import pytest

import compare.base.executors


def ctrl_c() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    """Call the handler of SIGTERM."""
    handler: Any = signal.getsignal(signal.SIGTERM)
    handler(signal.SIGTERM, None)


def interrupt_when_one_has_ended(
    patch: pytest.MonkeyPatch, running: threading.Event, interrupt: Callable[[], None] = ctrl_c
) -> None:
    """Interrupt the wait for parts when one has ended and another is running."""

    def interrupted(parts: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
        yield next(as_completed(parts))
        assert running.wait(60)
        interrupt()

    patch.setattr(compare.base.executors, "as_completed", interrupted)
