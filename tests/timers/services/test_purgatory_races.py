"""Purgatory under threads: each race in a fixed interleaving, and then all at once."""

# Private members: `_lists` shows what is freed, and `_drop_completed` is stopped in the middle;
# `_timer` is the service that the fixture made.

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.timers.services.cases import Waiting, in_thread
from timers import CascadingWheel
from timers.services import Purgatory, ServiceClosedError, SystemTimer

THREADS = 8


def make_ready_and_check(purgatory, operation):
    operation.ready = True
    return purgatory.check_and_complete("a")


@pytest.mark.parametrize("lock", [None, threading.RLock()], ids=["free", "locked"])
def test_progress_between_the_check_and_the_watch_is_not_missed(purgatory, lock):
    def during(number):
        if number == 1:  # not in a list yet
            assert in_thread(make_ready_and_check, purgatory, operation) == 0

    operation = Waiting(lock=lock, during=during)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.log, operation.tries) == (["complete"], 2)
    assert (purgatory.delayed, purgatory._timer.size) == (0, 0)


@pytest.mark.parametrize("lock", [None, threading.RLock()], ids=["free", "locked"])
@pytest.mark.parametrize("turn", [2, 3])
def test_progress_while_another_thread_tries_is_not_missed(purgatory, lock, turn):
    """Turn 2 is the second look of the watching thread, turn 3 that of a check."""

    def during(number):
        if number == turn:
            assert in_thread(make_ready_and_check, purgatory, operation) == 0

    operation = Waiting(lock=lock, during=during)
    assert purgatory.try_complete_else_watch(operation, ["a"]) == (turn == 2)
    if turn == 3:
        assert purgatory.check_and_complete("a") == 1
    assert (operation.log, operation.tries) == (["complete"], turn + 1)
    assert (purgatory.delayed, purgatory._timer.size) == (0, 0)


def test_a_request_to_try_again_outlives_an_exception(purgatory):
    def during(number):
        if number == 3:
            in_thread(make_ready_and_check, purgatory, operation)
            raise ValueError

    operation = Waiting(during=during)
    purgatory._timer._runner.report = lambda callback, error: operation.log.append(type(error))
    purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.check_and_complete("a")
    assert operation.log == [ValueError, "complete"]
    assert operation.tries == 4


def test_operations_that_complete_one_another_do_not_wait_for_each_other(purgatory):
    """With a lock for each of them, two threads would take the locks in opposite orders."""

    def during(number):
        if number == 3:
            assert in_thread(purgatory.check_and_complete, "b") == 0

    def back(number):
        if number == 3:
            assert in_thread(purgatory.check_and_complete, "a") == 0

    first, second = Waiting(during=during), Waiting(during=back)
    purgatory.try_complete_else_watch(first, ["a"])
    purgatory.try_complete_else_watch(second, ["b"])
    assert purgatory.check_and_complete("a") == 0
    assert (first.tries, second.tries) == (4, 3)


def test_a_shutdown_while_it_is_being_watched_withdraws_it(purgatory):
    operation = Waiting(during=lambda number: in_thread(purgatory.shutdown))
    with pytest.raises(ServiceClosedError):
        purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.is_completed
    assert (operation.log, purgatory.delayed) == ([], 0)


def looked_at():
    """An operation that calls `hooks.pop()()` when it is looked at, and these hooks."""

    class LookedAt(Waiting):
        def __getattribute__(self, name):
            if name == "_state" and hooks:
                hooks.pop()()
            return super().__getattribute__(name)

    hooks = []
    return LookedAt(), hooks


def test_a_purge_leaves_alone_the_list_that_a_frame_below_goes_through(purgatory):
    (checking, hooks), others = looked_at(), [Waiting() for _ in range(3)]
    for operation in (others[0], checking, *others[1:]):
        purgatory.try_complete_else_watch(operation, ["a"])
    others[0].force_complete()
    checking.force_complete()
    hooks.append(lambda: purgatory.check_and_complete("a"))
    assert purgatory.purge() == 2
    assert purgatory.watched == 2
    checking, hooks = looked_at()
    purgatory.try_complete_else_watch(checking, ["a"])
    withdrawn = []
    hooks.append(lambda: withdrawn.extend(purgatory.cancel_for_key("a")))
    purgatory.purge()
    assert set(withdrawn) == {*others[1:], checking}
    purgatory.purge()
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_what_is_added_during_a_purge_is_not_removed(purgatory):
    (first, hooks), second = looked_at(), Waiting()
    purgatory.try_complete_else_watch(first, ["a"])
    first.force_complete()
    hooks.append(lambda: purgatory.try_complete_else_watch(second, ["a"]))
    assert purgatory.purge() == 1
    assert purgatory.watched == 1
    assert make_ready_and_check(purgatory, second) == 1


class Key:
    """A key that compares in Python code, in which other threads may run."""

    hooks = ()

    def __hash__(self):
        return 1

    def __eq__(self, other):
        if self.hooks:
            self.hooks.pop()()
        return True


def test_what_is_added_while_an_empty_list_is_deleted_is_not_lost(purgatory):
    first, second, own, other = Waiting(), Waiting(), Key(), Key()
    purgatory.try_complete_else_watch(first, [own])
    first.force_complete()
    # Called by the second comparison: the first one finds the list, the second one deletes it.
    own.hooks = [
        lambda: purgatory.try_complete_else_watch(second, [own]),
        lambda: None,
    ]
    assert purgatory._drop_completed([other]) == 1
    assert not own.hooks
    second.ready = True
    assert purgatory.check_and_complete(own) == 1


# All at once


def race(count, seed=1):
    """`count` operations, each completed by one thread or another, or timed out meanwhile."""
    timer = SystemTimer(CascadingWheel(capacity=count))
    timer.schedule_after(0, lambda: None)
    purgatory = Purgatory("race", timer)
    operations_of = [[] for _ in range(THREADS)]

    def work(number):
        """How many operations this thread completed."""
        dice = random.Random(seed * 100 + number)
        own = operations_of[number]
        completed = 0
        for turn in range(count // THREADS):
            operation = Waiting(dice.random() * 0.02)
            key = dice.randrange(20)
            other_key = turn if turn % 5 else "all"
            completed += purgatory.try_complete_else_watch(operation, [key, other_key])
            own.append(operation)
            target = dice.choice(operations_of[dice.randrange(THREADS)][-200:] or own)
            if turn % 3 == 0:
                completed += target.force_complete()
            elif turn % 3 == 1:
                target.ready = True
                completed += purgatory.check_and_complete(turn)
            elif turn % 100 == 2:
                completed += purgatory.check_and_complete(key)
        return completed

    with ThreadPoolExecutor(THREADS) as pool:
        completed = sum(pool.map(work, range(THREADS)))
    give_up = time.monotonic() + 60
    while timer.size and time.monotonic() < give_up:
        time.sleep(0.01)  # real time passes until the last timeout
    timer.close()  # joins the thread that runs the timeouts
    operations = [operation for own in operations_of for operation in own]
    assert len(operations) == count // THREADS * THREADS
    assert {tuple(operation.log) for operation in operations} == {
        ("complete",),
        ("complete", "expire"),
    }
    expired = sum("expire" in operation.log for operation in operations)
    assert completed + expired == len(operations)
    assert (purgatory.delayed, timer.size) == (0, 0)
    purgatory.purge()
    assert purgatory.watched == 0
    assert not purgatory._lists


def test_each_operation_completes_exactly_once_under_eight_threads():
    race(100_000)


@pytest.mark.slow
def test_each_of_a_million_operations_completes_exactly_once():
    race(1_000_000, seed=2)
