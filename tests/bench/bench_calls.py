"""The cost of one call from Python when the timer itself has hardly anything to do."""

from collections import deque

import numpy as np
import pytest

from timers import timer_class

CALLS, ROUNDS = 2000, 15
STEP, LATER = 50, 10**9  # between deadlines that are reached; a deadline that is not
BASELINE = "heapq-delay-queue"
TIMERS = [BASELINE, "delay-queue", "cascading-wheel"]
ONE = np.array([LATER])


def advance_nothing_due(timer):
    timer.schedule(LATER)
    return timer.advance, range(CALLS)


def advance_one_due(timer):
    moments = range(STEP, STEP * CALLS + 1, STEP)
    timer.schedule_many(moments)
    return timer.advance, moments


def schedule(timer):
    return timer.schedule, [LATER] * CALLS


def cancel(timer):
    return timer.cancel, timer.schedule_many([LATER] * CALLS).tolist()


def schedule_many_of_one(timer):
    return timer.schedule_many, [ONE] * CALLS


def cancel_many_of_one(timer):
    handles = timer.schedule_many([LATER] * CALLS)
    return timer.cancel_many, [handles[k : k + 1] for k in range(CALLS)]


TARGETS = {  # ns per call of a timer with a kernel
    advance_nothing_due: 1200,
    advance_one_due: None,
    schedule: None,
    cancel: None,
    schedule_many_of_one: 2000,
    cancel_many_of_one: 2000,
}


@pytest.mark.parametrize("operation", TARGETS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("name", TIMERS)
def test_call(benchmark, name, operation):
    """`CALLS` calls in a row; `map` and `deque` add less than 30 ns to each."""

    def setup():
        return operation(timer_class(name)(capacity=2 * CALLS)), {}

    def calls(method, arguments):
        deque(map(method, arguments), maxlen=0)

    benchmark.group = "calls"
    benchmark.pedantic(calls, setup=setup, rounds=ROUNDS, warmup_rounds=1)
    target = TARGETS[operation] if name != BASELINE else None
    benchmark.extra_info.update(name=name, operation=operation.__name__, target=target, calls=CALLS)
