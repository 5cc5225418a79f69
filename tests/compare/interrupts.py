"""Ctrl-C while parts of work run on other threads."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, as_completed
from typing import Any

import pytest

import compare.base.executors


def interrupt_when_one_has_ended(patch: pytest.MonkeyPatch, running: threading.Event) -> None:
    """Interrupt the wait for parts when one has ended and another is running, without a signal.

    CPython may notice a signal too late. The tests of whole commands send signals.
    """

    def interrupted(parts: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
        yield next(as_completed(parts))
        assert running.wait(60)
        raise KeyboardInterrupt

    patch.setattr(compare.base.executors, "as_completed", interrupted)
