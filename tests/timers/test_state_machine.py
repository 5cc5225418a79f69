"""Every timer, with every geometry, does what the model does under any sequence of operations."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from numba.core import config

from tests.timers.cases import CASES, DEFAULTS, EXTREME_CASES, STARTS, Case, Pair
from tests.timers.machine import OwnTimerMachine
from timers.limits import LIMIT

OPERATIONS = 20_000  # of a long life
CROWD = 500  # timers that are pending in the end, at least
MOST_DELAY_BITS = 44  # past the reach of every wheel
MOST_STEP_BITS = 34
CHECKED_EVERY = 1000  # operations


@pytest.mark.parametrize("case", CASES + EXTREME_CASES, ids=str)
def test_timer_agrees_with_the_model_under_any_operations(case: Case) -> None:
    # The defaults prove the scheme; other geometries are tried with a quarter of the examples.
    profile = settings()
    if case not in DEFAULTS:
        profile = settings(profile, max_examples=profile.max_examples // 4)
    machine = type("Machine", (OwnTimerMachine,), {"factory": staticmethod(case)})
    run_state_machine_as_test(machine, settings=profile)


@pytest.mark.skipif(
    config.DISABLE_JIT, reason="interpreted, a crowd on a wheel of one slot takes minutes"
)
@pytest.mark.parametrize(
    "start", [STARTS[-1], *(pytest.param(start, marks=pytest.mark.slow) for start in STARTS[:-1])]
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_timer_agrees_with_the_model_over_a_long_life(case: Case, start: int) -> None:
    random = np.random.default_rng(start)
    pair = Pair(case, start, capacity=1)
    handles = [pair.schedule_after(5)]
    for k in range(OPERATIONS):
        delay = int(random.integers(0, 2 ** int(random.integers(1, MOST_DELAY_BITS))))
        handle = handles[-1 - int(random.integers(0, min(len(handles), 2000)))]
        operation = random.random()
        if operation < 0.6:
            handles.append(pair.schedule_after(delay))
        elif operation < 0.75:
            pair.cancel(handle)
        elif operation < 0.9:
            pair.reschedule(handle, pair.model.deadline_after(delay))
        else:
            step = int(random.integers(0, 2 ** int(random.integers(0, MOST_STEP_BITS))))
            pair.advance_unchecked(min(pair.model.now + step, LIMIT))
        if k % CHECKED_EVERY == 0:
            pair.agree()
    cuts_far_delays = case.due_at(LIMIT, 0) < LIMIT // 2
    assert len(pair.finish()) > CROWD or cuts_far_delays
