"""Purgatory and ScanningPurgatory: what each method does, with a clock that the test moves."""

# Private members: `_lists` and `_bell` show what is freed and who is woken, which no caller sees;
# `_timer` is the service that the fixture made.

import asyncio
import gc
import math
import random
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.timers.services.cases import (
    Recorder,
    Waiting,
    caller_driven,
    manual,
    new_purgatory,
    raising,
)
from tests.timers.services.loops import run
from timers import HierarchicalWheel
from timers.errors import ParameterError, TimeRangeError, TimeTypeError
from timers.services import (
    DelayedOperation,
    KeyTypeError,
    Purgatory,
    ServiceClosedError,
    ServiceStateError,
)
from timers.services.purgatory import PURGE_PERIOD


def test_progress_completes_once(purgatory):
    operation = Waiting()
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert (purgatory.watched, purgatory.delayed) == (2, 1)
    assert purgatory.check_and_complete("a") == 0
    operation.ready = True
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("b") == 0
    purgatory.clock.advance(2)
    assert (operation.tries, operation.log) == (4, ["complete"])
    assert (purgatory.watched, purgatory.delayed) == (0, 0)
    assert not operation.force_complete()


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_a_model(purgatory, seed):
    """Random operations beside a dict of what is pending, with its deadline in ms."""
    dice = random.Random(seed)
    now, pending, ended = 0, {}, []
    for _ in range(300):
        choice = dice.random()
        key = dice.randrange(5)
        if choice < 0.5:
            count = dice.choice((1, 1, 3))
            operations = [Waiting(dice.randrange(1, 50) / 1000) for _ in range(count)]
            keys = {key, dice.randrange(5)}
            for operation in operations:
                operation.keys = keys
                operation.ready = dice.random() < 0.1
            ready = [operation for operation in operations if operation.ready]
            assert purgatory.try_complete_else_watch_many(operations, keys) == len(ready)
            ended += [(operation, ["complete"]) for operation in ready]
            for operation in operations:
                if not operation.ready:
                    pending[operation] = now + round(1000 * operation.delay)
        elif choice < 0.6 and pending:
            dice.choice(list(pending)).ready = True
        elif choice < 0.7 and pending:
            operation = dice.choice(list(pending))
            ends = (operation.force_complete, ["complete"]), (operation.cancel, [])
            end, log = dice.choice(ends)
            assert end() and not end()
            del pending[operation]
            ended.append((operation, log))
        elif choice < 0.8:
            expected = [each for each in pending if each.ready and key in each.keys]
            assert purgatory.check_and_complete(key) == len(expected)
            for operation in expected:
                del pending[operation]
                ended.append((operation, ["complete"]))
        elif choice < 0.83:
            expected = [each for each in pending if key in each.keys]
            assert set(purgatory.cancel_for_key(key)) == set(expected)
            for operation in expected:
                del pending[operation]
                ended.append((operation, []))
        else:
            step = dice.randrange(20)
            now += step
            purgatory.clock.advance(step / 1000)
            for operation in [each for each, deadline in pending.items() if deadline <= now]:
                del pending[operation]
                ended.append((operation, ["complete", "expire"]))
        assert purgatory.delayed == len(pending)
        if dice.random() < 0.05:
            purgatory.purge()
            assert purgatory.watched == sum(len(operation.keys) for operation in pending)
    for operation, log in ended:
        assert operation.is_completed
        assert operation.log == log
    assert not any(operation.is_completed for operation in pending)


# When the lists are purged


def watch_and_complete(purgatory, key="a"):
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, [key])
    operation.force_complete()


def test_the_lists_are_purged_by_the_estimated_total():
    purgatory = new_purgatory(purge_interval=10)
    clock, timer = purgatory.clock, purgatory._timer
    operations = [Waiting() for _ in range(30)]
    purgatory.try_complete_else_watch_many(operations, ["a", "b"])
    for operation in operations[:10]:
        operation.force_complete()
    assert timer.size == 20
    clock.advance(0)
    assert (purgatory.watched, purgatory.delayed, purgatory.estimated_total) == (60, 20, 30)
    operations[10].force_complete()
    operations[11].force_complete()
    assert purgatory.watched == 60
    assert timer.size == 18 + 1  # one purge, asked for once
    clock.advance(0)
    assert (purgatory.watched, purgatory.delayed, purgatory.estimated_total) == (36, 18, 18)
    purgatory.try_complete_else_watch(Waiting(), ["a", "b"])
    assert purgatory.estimated_total == 19
    for operation in operations[12:23]:
        operation.force_complete()
    clock.advance(PURGE_PERIOD - 0.001)
    assert (purgatory.watched, purgatory.estimated_total) == (38, 19)
    clock.advance(0.001)
    assert (purgatory.watched, purgatory.estimated_total) == (16, 8)


def test_by_default_the_lists_are_purged_after_more_than_a_thousand_timeouts(purgatory):
    purgatory.try_complete_else_watch_many([Waiting(1) for _ in range(1000)], ["a", "b"])
    purgatory.try_complete_else_watch(Waiting(2), ["a", "b"])
    purgatory.clock.advance(1.5)
    assert (purgatory.watched, purgatory._timer.size) == (2002, 1)
    purgatory.clock.advance(1)
    assert purgatory.watched == 0


def test_a_purge_is_asked_for_once_even_if_another_one_comes_first():
    purgatory = new_purgatory(purge_interval=0)
    purgatory.purge()
    for _ in range(5):
        watch_and_complete(purgatory)
        assert purgatory._timer.size == 1
        purgatory.purge()
    purgatory.clock.advance(PURGE_PERIOD)
    assert purgatory._timer.size == 0
    watch_and_complete(purgatory)
    purgatory.clock.advance(PURGE_PERIOD)
    assert purgatory.watched == 0


def test_a_purge_that_the_executor_refused_is_asked_for_again():
    class RefusesOnce(ThreadPoolExecutor):
        def submit(self, *call):
            self.submit = super().submit
            raise RuntimeError("no threads left")

    with RefusesOnce() as pool:
        purgatory = new_purgatory(executor=pool, purge_interval=0)
        for _ in range(2):
            watch_and_complete(purgatory)
            purgatory.clock.advance(PURGE_PERIOD)
    assert purgatory.watched == 0


def test_an_error_of_a_purge_goes_to_the_hook_and_the_next_purge_comes():
    class Key:
        hostile = False

        def __hash__(self):
            return 1

        def __eq__(self, other):
            if self.hostile:
                raise ValueError("hostile")
            return self is other

    errors = Recorder()
    purgatory = new_purgatory(on_error=errors, purge_interval=0)
    purgatory.try_complete_else_watch(Waiting(), [Key()])
    watch_and_complete(purgatory, Key())
    Key.hostile = True
    purgatory.clock.advance(PURGE_PERIOD)
    Key.hostile = False
    assert errors.texts == ["hostile"]
    watch_and_complete(purgatory)
    purgatory.clock.advance(PURGE_PERIOD)
    assert purgatory.watched == 1


def test_without_a_reaper_nothing_is_purged_unasked():
    purgatory = new_purgatory(purge_interval=0, reaper=False)
    for number in range(20):
        purgatory.try_complete_else_watch(Waiting(0.1), [number])
    purgatory.clock.advance(1)
    assert purgatory.watched == 20
    assert purgatory.purge() == 20
    assert purgatory.watched == 0


# Ends


def test_shutdown_withdraws_and_refuses(purgatory):
    operation, keyless = Waiting(), Waiting()
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory.try_complete_else_watch(keyless, [])
    assert purgatory.watched == 3
    purgatory.shutdown()
    purgatory.shutdown()
    assert operation.is_completed and keyless.is_completed
    assert (purgatory.watched, purgatory.delayed, purgatory._timer.size) == (0, 0, 0)
    late = Waiting()
    with pytest.raises(RuntimeError, match="purgatory 'test' is closed"):
        purgatory.try_complete_else_watch(late, ["a"])
    assert not late.is_completed
    purgatory.clock.advance(5)
    assert "complete" not in operation.log + keyless.log + late.log


def test_a_timer_that_closes_withdraws_what_is_pending(purgatory):
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    purgatory._timer.close()
    assert not operation.force_complete()
    assert purgatory.delayed == 0
    with pytest.raises(ServiceClosedError, match="purgatory 'test' is closed"):
        purgatory.try_complete_else_watch_many([Waiting(ready=True)], ["a"])
    purgatory.purge()
    assert purgatory.watched == 0


# Bad input


@pytest.mark.parametrize(
    ("delay", "error"),
    [
        (-math.inf, TimeRangeError),
        (math.nan, TimeRangeError),
        ("1", TimeTypeError),
        (True, TimeTypeError),
    ],
)
def test_a_delay_that_is_none_is_refused(delay, error):
    with pytest.raises(error, match="delay must"):
        Waiting(delay)


class Unready(DelayedOperation):
    """Its `__init__` forgets that of its base."""

    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("make", "keys", "error", "text"),
    [
        (Waiting, [[]], KeyTypeError, r"a key must be hashable, not \[\]"),
        (Waiting, 5, KeyTypeError, "keys must be an iterable, not 5"),
        (Waiting, "orders", KeyTypeError, "keys must be an iterable of keys, not 'orders'"),
        (str, ["a"], ParameterError, "a str object is not a DelayedOperation"),
        (Unready, ["a"], ParameterError, "did not run its __init__"),
        (lambda: DelayedOperation(1), ["a"], NotImplementedError, "does not define try_complete"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(purgatory, make, keys, error, text):
    with pytest.raises(error, match=text):
        purgatory.try_complete_else_watch(make(), keys)
    assert (purgatory.delayed, purgatory._timer.size) == (0, 0)
    purgatory.purge()
    assert purgatory.watched == 0


def test_bad_keys_are_refused_by_every_method(purgatory):
    for method in (purgatory.check_and_complete, purgatory.cancel_for_key):
        with pytest.raises(TypeError, match="a key must be hashable, not {}"):
            method({})


def test_an_operation_is_watched_once(purgatory):
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a"])
    with pytest.raises(ServiceStateError, match="<Waiting pending> has been watched"):
        purgatory.try_complete_else_watch(operation, ["b"])
    assert not operation.is_completed
    twice = Waiting()
    with pytest.raises(RuntimeError, match="has been watched"):
        purgatory.try_complete_else_watch_many([twice, twice], ["b"])
    assert twice.is_completed
    assert repr(twice) == "<Waiting completed>"
    assert purgatory.delayed == 1


def test_who_comes_second_with_an_operation_does_not_withdraw_it(purgatory):
    def during(number):
        """Another thread watches `contested` while the first one is tried."""
        if not purgatory.watched:
            purgatory.try_complete_else_watch(contested, ["a"])

    first, contested = Waiting(during=during), Waiting()
    with pytest.raises(ServiceStateError, match="has been watched"):
        purgatory.try_complete_else_watch_many([first, contested], ["b"])
    assert (first.is_completed, contested.is_completed) == (True, False)
    assert purgatory.delayed == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"purge_interval": -1}, ParameterError),
        ({"purge_interval": 1.5}, TimeTypeError),
        ({"timer": HierarchicalWheel()}, ParameterError),
    ],
)
def test_bad_parameters_are_refused(options, error):
    with pytest.raises(error):
        Purgatory("test", **{"timer": manual()[1]} | options)


def test_an_exception_of_one_operation_does_not_stop_the_others():
    errors = Recorder()
    purgatory = new_purgatory(on_error=errors)

    class Failing(Waiting):
        """Fails whenever it is tried after it has become ready, and in its end."""

        def try_complete(self):
            if self.ready:
                raise ValueError("try")
            return False

        def on_complete(self):
            raise ValueError("end")

    failing, second = Failing(), Waiting()
    purgatory.try_complete_else_watch_many([failing, second], ["a"])
    failing.ready = second.ready = True
    assert purgatory.check_and_complete("a") == 1
    purgatory.clock.advance(5)
    assert errors.texts == ["try", "end"]
    assert errors.callbacks[0] == failing.try_complete
    assert (purgatory.delayed, purgatory._timer.size) == (0, 0)


def test_an_error_of_a_condition_is_that_of_a_callback():
    """The hook can log its traceback, and nothing keeps the operations alive."""
    seen = []
    purgatory = new_purgatory(on_error=lambda _, error: seen.append(sys.exc_info()[1] is error))

    class Ambiguous(Waiting):
        """Returns what has no truth value."""

        def try_complete(self):
            return np.ones(2) if self.ready else False

    operations = [Ambiguous(), Waiting(), Ambiguous()]
    purgatory.try_complete_else_watch_many(operations, ["a"])
    for operation in operations:
        operation.ready = True
    gc.disable()
    try:
        assert purgatory.check_and_complete("a") == 1
        assert seen == [True, True]
        gone = [weakref.ref(operation) for operation in operations]
        purgatory.cancel_for_key("a")
        del operations, operation
        purgatory._timer.size  # noqa: B018  # lets go of what is cancelled
        assert [reference() for reference in gone] == [None, None, None]
    finally:
        gc.enable()


def test_an_interrupt_of_a_condition_propagates_after_an_error_and_the_next_try_comes():
    errors = Recorder()
    purgatory = new_purgatory(on_error=errors)

    def during(number):
        if number == 3:
            purgatory.check_and_complete("a")  # asks for another try
            raise ValueError("third")
        if number == 4:
            operation.ready = True
            raise KeyboardInterrupt

    operation = Waiting(during=during)
    purgatory.try_complete_else_watch(operation, ["a"])
    with pytest.raises(KeyboardInterrupt):
        purgatory.check_and_complete("a")
    assert errors.texts == ["third"]
    assert purgatory.check_and_complete("a") == 1


def test_an_operation_that_completes_at_the_second_try_is_not_scheduled(purgatory):
    def during(number):
        operation.ready = True
        if number == 2:
            purgatory._timer.close()

    operation = Waiting(during=during)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (purgatory.delayed, purgatory._timer.size) == (0, 0)


def test_keys_are_not_looked_at_when_no_operation_waits(purgatory):
    operation = Waiting(ready=True)
    assert purgatory.try_complete_else_watch(operation, None)
    assert not (operation.force_complete() or operation.cancel())
    assert purgatory.try_complete_else_watch_many([Waiting(ready=True)], None) == 1
    assert purgatory.try_complete_else_watch_many([], None) == 0
    assert purgatory.watched == 0


def test_an_operation_whose_try_fails_is_withdrawn(purgatory):
    def during(number):
        if number == 2:
            raise ValueError("second try")

    operation = Waiting(during=during)
    with pytest.raises(ValueError, match="second try"):
        purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.is_completed
    assert purgatory.delayed == 0
    purgatory.purge()
    assert purgatory.watched == 0


def test_the_earliest_of_many_wakes_the_driver():
    _, timer = caller_driven()
    purgatory = Purgatory("test", timer)
    purgatory.try_complete_else_watch(Waiting(5), ["a"])
    timer.advance_clock()
    purgatory.try_complete_else_watch_many([Waiting(9), Waiting(6)], ["a"])
    assert not timer._bell._rung_by
    purgatory.try_complete_else_watch_many([Waiting(9), Waiting(1), Waiting(6)], ["a"])
    assert timer._bell._rung_by


def test_an_async_timer_runs_the_timeouts_and_the_purges():
    async def main(timer, loop):
        errors = []
        loop.set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
        purgatory = Purgatory("test", timer, purge_interval=0)
        operations = [Waiting(k) for k in (1, 2, 3)]
        assert purgatory.try_complete_else_watch_many(operations, ["a", "b"]) == 0
        assert (purgatory.delayed, timer.size) == (3, 3)
        operations[1].ready = True
        operations[2].during = raising(ValueError("on purpose"))
        assert purgatory.check_and_complete("a") == 1
        assert errors == ["on purpose"]
        await asyncio.sleep(1.5)
        assert [each.log for each in operations] == [["complete", "expire"], ["complete"], []]
        assert (purgatory.watched, purgatory.delayed, timer.size) == (2, 1, 1)
        assert timer.cancel_all() == 0  # an operation is not a call
        await asyncio.sleep(3)
        assert (purgatory.watched, purgatory.delayed, timer.size) == (0, 0, 0)

    run(main)
