"""Parts of work are run side by side on threads; a failure or an interrupt stops all."""

import threading
import time
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.base.executors import Stopped, Threads, even_shares
from tests.compare.interrupts import interrupt_when_one_has_ended


@pytest.fixture
def threads():
    """Two of them on any machine."""
    threads = Threads()
    threads.workers = 2
    return threads


def test_two_parts_run_at_the_same_time(threads):
    meeting = threading.Barrier(2, timeout=60)

    def work(part, stopping):
        meeting.wait()

    for parts in (4, 2):
        threads.run(parts, work)
        assert threads.tasks() == (parts, parts)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_or_an_interrupt_stops_the_parts_that_run_and_those_that_wait(
    threads, monkeypatch, error
):
    begun, stopped, running = set(), set(), threading.Event()

    def work(part, stopping):
        begun.add(part)
        if part == 0:
            return
        if part == 1 and error is ValueError:
            while threads.tasks() != (1, 100):  # the main thread waits for the others
                time.sleep(0.001)
            raise error
        if part == 1:
            running.set()
        while not stopping():
            time.sleep(0.001)
        stopped.add(part)
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(error):
        if error is KeyboardInterrupt:
            interrupt_when_one_has_ended(patch, running)
        threads.run(100, work)
    assert begun <= {0, 1, 2, 3}  # the thread of the one that has failed may begin another
    assert stopped == begun - {0} - ({1} if error is ValueError else set())
    # Of the next ones, none is stopped.
    assert threads.run(3, lambda part, stopping: stopping()) == [False] * 3


def test_parts_are_worked_on_in_order_and_few_are_held(threads, monkeypatch):
    """The first one takes until its result is waited for."""
    taken, held, waited_for, result = [], [], threading.Event(), Future.result

    def waiting(self, timeout=None):
        held.append(len(taken))
        waited_for.set()
        return result(self, timeout)

    def work(part):
        waited_for.wait(60)
        return 2 * part

    monkeypatch.setattr(Future, "result", waiting)
    parts = (taken.append(part) or part for part in range(100))
    assert list(threads.in_order(parts, work)) == [(part, 2 * part) for part in range(100)]
    assert held[0] == 2 * threads.workers + 1


@given(st.integers(0, 500), st.integers(1, 600))
def test_even_shares_differ_by_one_part_at_most(parts, tasks):
    actual = even_shares(parts, tasks)
    assert [part for share in actual for part in share] == list(range(parts))
    assert len(actual) == min(parts, tasks)
    assert not actual or max(map(len, actual)) - min(map(len, actual)) <= 1
