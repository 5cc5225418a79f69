"""The wake-ups of drivers, by hand and against a plain driver of the same timers."""

import numpy as np
import pytest

from compare.traffic.tapes.tape import ARM, CANCEL, START
from compare.traffic.workloads.catalogue import make
from compare.trial.bench.idle import HOUR, TICKS, Idle, idle_tape
from compare.trial.bench.sources import workload_source
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.replay.engine import first_time
from compare.trial.replay.wakeups import drive
from compare.trial.results.schema import IDLE
from tests.compare.small_tapes import tape_of
from timers import CascadingWheel, DelayQueue, HashedWheel
from timers.registry import names

KERNELS = [name for name in names() if contestant(name).engine == COMPILED]


def test_a_cascade_is_an_idle_wake_up():
    tape = tape_of((0, START, 0, 300), (0, START, 1, 700), (400, CANCEL, 1, 0))
    woken = drive(CascadingWheel(), tape, 2, 1000)
    # 256 moves the first timer down, 300 fires it; the second is cancelled before it moves.
    assert (woken.wakeups, woken.idle, woken.now) == (2, 1, 1000)
    woken = drive(DelayQueue(), tape, 2, 1000)
    assert (woken.wakeups, woken.idle) == (1, 0)


def test_a_hashed_wheel_wakes_at_each_tick_of_an_occupied_slot():
    tape = tape_of(*((0, START, k, 100_000 + 10 * k) for k in range(8)))
    timer = HashedWheel(tick=10, wheel_size=8)
    woken = drive(timer, tape, 8, 1000)
    assert woken.wakeups == woken.idle == 100


def plainly(timer, tape, until):
    """The wake-ups of a driver, by single calls."""
    handles, wakeups, idle = {}, 0, 0

    def wake(moment):
        nonlocal wakeups, idle
        while moment > timer.now and (at := timer.next_wakeup()) is not None and at <= moment:
            fired = len(timer.advance(at).handles)
            wakeups, idle = wakeups + 1, idle + (fired == 0)
        timer.advance(moment)

    for moment, op, i, deadline in zip(*(column.tolist() for column in tape), strict=True):
        if moment > timer.now:
            wake(moment)
        if op == CANCEL:
            timer.cancel(handles.get(i, -1))
        elif op == START or (not timer.reschedule(handles.get(i, -1), deadline) and op == ARM):
            handles[i] = timer.schedule(deadline)
    wake(until)
    return wakeups, idle


@pytest.mark.parametrize("name", KERNELS)
def test_a_driver_wakes_as_often_as_a_plain_one(name):
    made = make("keepalive", operations=600, seed=3, parameters={"idle": 900, "mean": 300})
    start, until = first_time(made.tape), int(made.tape.time[-1]) + 500
    woken = drive(contestant(name).new("ms", start), made.tape, made.id_space, until)
    expected = plainly(contestant(name).new("ms", start), made.tape, until)
    assert (woken.wakeups, woken.idle) == expected and woken.now == until


def test_nothing_is_due_in_the_idle_hour():
    tape = idle_tape(1000, 3)
    assert tape.deadline.min() > HOUR and tape.deadline.max() <= 24 * HOUR + 2
    assert np.unique(tape.id).size == 1000


def test_rows_are_of_each_tick_and_each_source():
    timers = [contestant(name) for name in ("hashed-wheel", "cascading-wheel", "heapq-delay-queue")]
    bench = Idle(timers, 50, [workload_source("uniform", 300, 1)], 1e9, 0)
    steps = []
    bench.run(steps.append)
    assert len(steps) == bench.steps
    found = {(row.contestant, row.subject, row.metric): row.value for row in bench.rows}
    for tick in TICKS:
        assert found["hashed-wheel", f"{IDLE}, tick {tick}", "hour_wakeups"] > 0
    assert found["cascading-wheel", IDLE, "hour_ms"] >= 0
    assert found["cascading-wheel", "uniform", "driver_wakeups"] > 0
    assert not any(label == "heapq-delay-queue" for label, _, _ in found)


def test_what_takes_too_long_is_extrapolated():
    wheel = contestant("hashed-wheel/tick=1ms")
    whole = Idle([wheel], 2000, [], 1e9, 0)
    part = Idle([wheel], 2000, [], 0.0, 0)  # one call of compiled code each
    for bench in (whole, part):
        bench.run()
    exact, extrapolated = (
        next(row.value for row in bench.rows if row.metric == "hour_wakeups")
        for bench in (whole, part)
    )
    assert exact > 512 and extrapolated == pytest.approx(exact, rel=0.2)
