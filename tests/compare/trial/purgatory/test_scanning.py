"""ScanningPurgatory: completed operations stay in its queue until a scan finds them."""

import pytest

from compare.trial.purgatory.scanning import ScanningPurgatory
from timers import DelayQueue
from timers.services import DelayedOperation, ManualClock, SystemTimer


class Waiting(DelayedOperation):
    """An operation whose condition never holds."""

    def try_complete(self):
        return False


class Failing(Waiting):
    """An operation that cannot expire."""

    def on_expiration(self):
        raise ValueError


def manual(limit=5):
    """A purgatory, its timer and its clock."""
    clock = ManualClock()
    timer = SystemTimer(DelayQueue(), clock=clock)
    return ScanningPurgatory("test", timer, limit=limit), timer, clock


def test_it_keeps_completed_operations_until_a_scan_finds_them():
    purgatory, timer, clock = manual()
    operations = [Waiting(1 + number / 10) for number in range(6)]
    purgatory.try_complete_else_watch_many(operations, ["a"])
    for operation in operations[1:5]:
        operation.force_complete()
    assert (purgatory.queued, purgatory.watched, purgatory.delayed) == (6, 6, 2)
    assert timer.size == 6 + 1  # and the reaper's next turn
    clock.advance(0.199)
    assert purgatory.queued == 6
    clock.advance(0.001)  # a turn
    assert (purgatory.queued, purgatory.watched, timer.size) == (2, 2, 3)
    purgatory.try_complete_else_watch_many(operations := [Waiting(2) for _ in range(3)], ["a"])
    for operation in operations:
        operation.force_complete()
    clock.advance(0.8)  # below the limit: the first one times out, and nothing is scanned
    assert (purgatory.queued, purgatory.watched, purgatory.delayed) == (4, 5, 1)
    clock.advance(10)
    assert (purgatory.queued, purgatory.delayed, timer.size) == (0, 0, 1)
    purgatory.shutdown()
    assert timer.size == 0  # the reaper takes no more turns


@pytest.mark.parametrize(
    ("limit", "left"), [(6, (6, 2)), (5, (0, 2)), (2, (0, 2)), (1, (0, 0)), (0, (0, 0))]
)
def test_the_reaper_scans_what_is_longer_than_its_limit(limit, left):
    purgatory, _, _ = manual(limit)
    purgatory.try_complete_else_watch_many(operations := [Waiting(1), Waiting(1)], ["a", "b", "c"])
    for operation in operations:
        operation.force_complete()
    purgatory.reap()
    assert (purgatory.watched, purgatory.queued) == left


def test_it_scans_in_vain_above_its_limit():
    purgatory, _, clock = manual()
    purgatory.try_complete_else_watch_many(operations := [Waiting(10) for _ in range(9)], ["a"])
    clock.advance(1)
    assert (purgatory.queued, purgatory.watched, purgatory.reap()) == (9, 9, 0)
    purgatory.try_complete_else_watch(Failing(0.1), ["a"])
    for operation in operations:
        operation.force_complete()
    clock.advance(0.1)  # a turn follows a deadline, even of an operation that fails
    assert (purgatory.queued, purgatory.watched) == (0, 0)


def test_it_keeps_no_operation_that_expires_while_it_is_scheduled(monkeypatch):
    purgatory, timer, clock = manual()
    post = SystemTimer._post  # private: another thread may run between two bytecodes

    def slow_post(self, *arguments):
        call = post(self, *arguments)
        clock.advance(2)
        return call

    monkeypatch.setattr(SystemTimer, "_post", slow_post)
    operation = Waiting(1)
    assert not purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.is_completed, purgatory.queued, timer.size) == (True, 0, 1)
