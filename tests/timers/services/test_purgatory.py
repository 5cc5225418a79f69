"""Purgatory and ScanningPurgatory: what each method does, with a clock that the test moves."""

import pytest

from tests.timers.services.cases import manual
from timers.services import DelayedOperation, Purgatory, ScanningPurgatory

DESIGNS = {"new": Purgatory, "old": ScanningPurgatory}


class Waiting(DelayedOperation):
    """An operation whose condition the test sets, and which keeps what it was told."""

    def __init__(self, delay=1.0, ready=False, lock=None):
        super().__init__(delay, lock)
        self.ready, self.log = ready, []

    def try_complete(self):
        self.log.append("try")
        return self.ready and self.force_complete()

    def on_complete(self):
        self.log.append("complete")

    def on_expiration(self):
        self.log.append("expire")


@pytest.fixture(params=DESIGNS)
def design(request):
    """The class of purgatory."""
    return DESIGNS[request.param]


@pytest.fixture
def purgatory(design):
    """A purgatory on a ManualClock, as its attribute `clock`."""
    clock, timer = manual()
    made = design("test", timer)
    made.clock = clock
    return made


def test_an_operation_that_is_ready_is_never_watched(purgatory):
    operation = Waiting(ready=True)
    assert purgatory.try_complete_else_watch(operation, "ab")
    assert operation.log == ["try", "complete"]
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_progress_completes_once(purgatory):
    operation = Waiting()
    assert not purgatory.try_complete_else_watch(operation, "ab")
    assert (purgatory.watched, purgatory.delayed) == (2, 1)
    assert purgatory.check_and_complete("a") == 0
    operation.ready = True
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("b") == 0
    purgatory.clock.advance(2)
    assert operation.log == ["try", "try", "try", "try", "complete"]
    assert (purgatory.watched, purgatory.delayed) == (0, 0)
    assert not operation.force_complete()


def test_a_timeout_completes_and_expires_once(purgatory):
    operation = Waiting(0.2)
    purgatory.try_complete_else_watch(operation, "ab")
    purgatory.clock.advance(0.199)
    assert not operation.is_completed
    purgatory.clock.advance(0.001)
    assert operation.is_completed
    assert operation.log == ["try", "try", "complete", "expire"]
    operation.ready = True
    assert purgatory.check_and_complete("a") == purgatory.check_and_complete("b") == 0
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_cancel_for_key_withdraws(purgatory):
    first, second, other = Waiting(), Waiting(), Waiting()
    purgatory.try_complete_else_watch_many([first, second], "ab")
    purgatory.try_complete_else_watch(other, "b")
    second.force_complete()
    assert purgatory.cancel_for_key("a") == [first]
    purgatory.clock.advance(5)
    assert "complete" not in first.log
    assert other.log[-1] == "expire"
    assert purgatory.delayed == 0
    assert purgatory.purge() > 0
    assert purgatory.watched == 0
