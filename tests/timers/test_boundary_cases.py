"""The boundary cases that timers elsewhere are held to, or got wrong; a project in brackets is
where one was found.

Every case runs on every timer beside the model, with one small geometry, and from three first
values of the clock: zero, the unit before all levels of a wheel wrap, and a little before the last
moment. Other geometries and starts are the state machine's.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.timers.cases import BOUNDARY_CASES, DEFAULTS, KERNELS, Case, Pair
from timers import HashedWheel, HierarchicalWheel, place_of
from timers.kernels.handles import LAST_GENERATION, PLACE_BITS
from timers.kernels.pool import BASE
from timers.limits import LIMIT

every_timer = pytest.mark.parametrize("case", BOUNDARY_CASES, ids=str)
every_scheme = pytest.mark.parametrize("case", DEFAULTS, ids=str)
every_kernel = pytest.mark.parametrize("case", KERNELS, ids=str)
STARTS = (0, 2**62 - 1, LIMIT - 700)

Step = tuple[Any, ...]
"""A method of the timer and its arguments. A moment counts from the first value of the clock, and a
handle is the number of its timer in the order of arming. "walk" advances unit by unit, and "divide"
advances to a moment with a limit of rows, once or as often as it takes."""


def after(*delays: int) -> list[Step]:
    return [("schedule_after", delay) for delay in delays]


def advances(*moments: int) -> list[Step]:
    return [("advance", moment) for moment in moments]


BOUNDARIES: dict[str, list[Step]] = {
    "negative delays are delivered by an advance to the same now (Kafka)": [
        *after(*range(-5, 1)),
        ("advance", 0),
    ],
    "an overdue timer that is re-armed to later fires once, and then (tokio)": [
        *after(-7),
        ("reschedule", 0, 100),
        ("advance", 0),
        ("walk", 300),
    ],
    "a due timer is still pending until it is delivered": [
        *after(0, 0),
        ("cancel", 0),
        ("advance", 0),
    ],
    "overdue timers fire by deadline, then arming, where that is declared": [
        ("advance", 100),
        *after(-10, -90, 0, -10, -100),
        ("advance", 100),
    ],
    # Kafka's own test has a wheel of 3 slots.
    "every delay fires exactly once on its unit (Kafka)": [
        *after(*range(5), *range(10, 100), *range(10, 100), *range(100, 500)),
        ("walk", 700),
    ],
    "one timer at each unit is ready when, and only when, its deadline came (tokio)": [
        *after(*range(1024)),
        ("advance", 0),
        ("walk", 1023),
    ],
    "silent one unit before the wrap, and fired on it (ratas)": [*after(256), ("walk", 270)],
    "a deadline in the slot of the clock waits for its rotation (ratas)": [
        *after(256 * 4 - 1, 256 * 4 + 5),
        *advances(255, 256, 511, 512, 767, 768, 1022),
    ],
    "a deadline in a later slot of the clock does, too": [
        ("advance", 5),
        ("schedule", 256 * 4 - 1),
        ("schedule", 256 * 4 + 5),
        *advances(255, 256, 511, 512, 767, 768, 1022),
    ],
    "delays across the wrap of the lowest level (ratas)": [
        ("advance", 250),
        *after(5, 6, 9),
        ("advance", 260),
    ],
    # It must survive an advance to 192, and another.
    "a timer of the same slot, a rotation later, waits (tokio)": [
        *after(193),
        *advances(62, 192, 192),
    ],
    "a clock that moves in uneven steps fires what it passed (Caffeine)": [
        *after(15, 80),
        *advances(45, 70, 90),
    ],
    "re-arming moves a timer and leaves the count (Kafka)": [
        *after(1, 30, 500, 70_000, 2**33),
        *(("reschedule", k, deadline) for deadline in (70_000, 2, 2**41, 3, 500) for k in range(5)),
    ],
    "a timer re-armed to later fires then only (ratas)": [
        *after(5),
        ("reschedule", 0, 10),
        ("walk", 20),
    ],
    "a timer re-armed to earlier fires then only (tokio-util)": [
        *after(200),
        ("advance", 80),
        ("reschedule", 0, 120),
        ("walk", 210),
    ],
    "a handle cancels once, and never after it fired": [
        *after(50, 60),
        ("cancel", 0),
        ("cancel", 0),
        ("advance", 1000),
        ("cancel", 1),
        ("reschedule", 1, 2000),
    ],
    # Agrona cancels the new owner.
    "a stale handle leaves the new owner of its place alone (Agrona)": [
        *after(50),
        ("cancel", 0),
        *after(50),
        ("cancel", 0),
        ("reschedule", 0, 5),
        ("advance", 500),
    ],
    # Kafka fires it at once, Agrona cannot cancel it.
    "a delay beyond the range saturates and can be cancelled (Kafka, Agrona)": [
        ("advance", 3),
        *after(LIMIT, LIMIT, 2**80),
        ("advance", 1_000_000),
        ("cancel", 1),
        ("advance", LIMIT - 1),
    ],
    "a timer that is armed at the last moment fires then": [("advance", LIMIT), *after(1)],
    "a far jump passes over what is pending": [
        *after(*range(1, 2**42, 2**33)),
        *advances(2**31, 2**40, 2**41, 2**43),
    ],
    "a later timer does not hide an earlier one": after(10_000, 600),
    "a timer added behind the next one does not hide it": [
        *after(300),
        ("advance", 250),
        *after(150),
    ],
    "a timer beyond the wheels is not hidden by a later one within them": [
        *after(2**40 + 10),
        ("advance", 2**40 - 100),
        *after(150),
    ],
    # More than the first buffer of expired rows holds.
    "all timers with one deadline fire together": [*after(*[77] * 700), ("advance", 300)],
    "a burst within one unit is divided": [*after(*[77] * 20), ("divide", 3, 300)],
    # Divided after 4, in the middle of 5, and after 6 units; the last limit is reached at the end.
    "a burst of many units is divided": [
        *after(*range(1, 5), *[5] * 5, 6, 7, 8, 300, 300, 600),
        ("divide", 4, 400),
        ("divide", 1, 600),
    ],
    "what a limit has left can be cancelled and re-armed": [
        *after(5, 5, 5, 6, 300),
        ("divide once", 2, 400),
        *(("cancel", k) for k in range(3)),
        ("reschedule", 3, 350),
        *after(0, -1, 1),
        ("divide", 1, 400),
    ],
    # A re-arm is a new arming, even to the same deadline.
    "equal deadlines fire in the order of arming, where that is declared (libuv)": [
        *after(*[100] * 50),
        ("cancel", 20),
        *(("reschedule", k, 100) for k in (3, 40, 3)),
        ("advance", 300),
    ],
}


@every_timer
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_boundary(case: Case, boundary: str) -> None:
    """The pair compares each answer and each row that fires with the model."""
    for start in STARTS:
        play(Pair(case, start, capacity=4), start, BOUNDARIES[boundary])


def play(pair: Pair, start: int, steps: list[Step]) -> None:
    handles: list[int] = []
    for name, number, *moments in steps:
        moment = min(start + (moments or [number])[0], LIMIT)
        match name:
            case "schedule_after":
                handles.append(pair.schedule_after(number))
            case "schedule":
                handles.append(pair.schedule(moment))
            case "cancel":
                pair.cancel(handles[number])
            case "reschedule":
                pair.reschedule(handles[number], moment)
            case "advance":
                pair.agree()
                pair.advance(moment)
            case "divide once":
                pair.advance(moment, number)
            case "divide":
                while len(pair.advance(moment, number)) == number:
                    pass
            case "walk":
                for now in range(pair.timer.now, moment):
                    pair.advance_unchecked(now + 1)
        if not name.startswith("schedule"):  # which would take long, a thousand times
            pair.agree()
    pair.agree()
    pair.finish()


@pytest.mark.parametrize("start", STARTS)
@every_timer
def test_neighbours_of_a_cancelled_timer_in_an_upper_bucket_still_fire(
    case: Case, start: int
) -> None:
    """Head, middle and tail of one bucket of an upper level, before it cascades. (tokio panicked on
    a relative)
    """
    subsets = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    for apart, cancelled in product((0, 1), subsets):
        pair = Pair(case, start, capacity=4)
        handles = [pair.schedule_after(70_000 + k * apart) for k in range(3)]
        for k in cancelled:
            pair.cancel(handles[k])
        for moment in (69_000, 80_000):
            pair.advance(min(start + moment, LIMIT))
        assert pair.finish() == []


@every_timer
def test_all_timers_in_one_bucket_with_different_rounds(case: Case) -> None:
    pair = Pair(case)
    for turn in range(1, 120):
        pair.schedule(turn * case.rotation)
    for turn in (1, 2, 60, 118, 119, 121):
        pair.advance(turn * case.rotation)
    assert len(pair.timer) == 0


@every_kernel
def test_empty_timer_jumps_in_constant_work(case: Case) -> None:
    for jump in (2**31, 2**40, 2**62):
        timer: Any = case(counting=True)
        timer.cancel(timer.schedule(10))  # it was in use before
        before = timer.counters
        timer.advance(jump)
        work = {name: count - before[name] for name, count in timer.counters.items()}
        assert sum(work.values()) <= 4, work  # one visit, for a bucket that was emptied


# ---- handles


@pytest.mark.parametrize("fires", [False, True])
@every_scheme
def test_place_whose_generations_are_used_up_is_never_handed_out_again(
    case: Case, fires: bool
) -> None:
    timer: Any = case(capacity=2)
    timer.cancel(timer.schedule(10))
    if case.has_kernel:
        timer.state.nodes["generation"][timer.state.cells[BASE]] = LAST_GENERATION - 1
    else:
        # Private: the public way is 2**31 uses of one place.
        timer._free[0] = (LAST_GENERATION - 1) << PLACE_BITS
    timer.cancel(timer.schedule(10))  # the last use but one
    last = timer.schedule(10)
    assert (place_of(last), last >> PLACE_BITS) == (0, LAST_GENERATION)
    if fires:
        assert timer.advance(200).handles.tolist() == [last]
    else:
        assert timer.cancel(last) is True
    timer.check()
    others = timer.schedule_many([400] * 20)
    timer.check()
    assert 0 not in {place_of(other) for other in others.tolist()}
    assert timer.cancel(last) is False
    assert timer.reschedule(last, 20) is False
    assert sorted(timer.advance(600).handles.tolist()) == sorted(others.tolist())


@every_timer
def test_any_numbers_in_a_batch_are_legal_handles(case: Case) -> None:
    timer = case()
    numbers = [sign * 2**bits - low for bits in range(64) for sign in (1, -1) for low in (0, 1)]
    numbers = [number for number in numbers if -LIMIT - 1 <= number <= LIMIT]
    timer.advance(1)
    handle = timer.schedule(5)
    numbers = [number for number in numbers if number != handle]
    assert timer.reschedule_many([*numbers, handle], [9] * (len(numbers) + 1)).sum() == 1
    assert timer.cancel_many([*numbers, handle]).tolist() == [False] * len(numbers) + [True]


# ---- answers that were worked out by hand


@pytest.mark.parametrize(
    ("wheel_size", "deadlines", "wakeups"),
    [
        (10, [9, 88, 222, 520, 521, 522], [9, 80, 88, 200, 220, 222, 500, 520, 521, 522]),
        (10, [200, 840], [200, 800, 840]),
        (20, [450], [400, 440, 450]),
        (20, [30_000], [24_000, 30_000]),
    ],
)
def test_hierarchical_wheel_wakes_for_expiries_and_cascades_and_for_nothing_else(
    wheel_size: int, deadlines: list[int], wakeups: list[int]
) -> None:
    """(Kafka)"""
    timer = HierarchicalWheel(tick=1, wheel_size=wheel_size)
    timer.schedule_many(deadlines)
    visits = []
    while (wakeup := timer.next_wakeup()) is not None:
        visits.append(wakeup)
        timer.advance(wakeup)
    assert visits == wakeups


def test_hierarchical_wheel_keeps_the_buckets_of_cancelled_timers_queued() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=20, counting=True)
    timer.schedule_many([600, 10_000])
    timer.cancel_many(timer.schedule_many(np.arange(1, 400)))
    assert (timer.next_wakeup(), timer.next_expiry()) == (1, 400)
    timer.advance(400)
    assert timer.counters is not None
    # 19 slots of one unit, 19 of twenty; the slot of 600 comes after them.
    assert (timer.counters["queue_polls"], timer.counters["empty_polls"]) == (39, 38)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_hashed_wheel_counts_rounds_around_a_rotation(k: int) -> None:
    """(Akka was a rotation off)"""
    timer = HashedWheel(tick=1, wheel_size=8)
    handles = timer.schedule_many([8 * k - 1, 8 * k, 8 * k + 1]).tolist()
    assert timer.advance(1).handles.size == 0  # hashes what arrived during tick 0
    assert [timer.locate(handle)["rounds"] for handle in handles] == [k - 1, k - 1, k]
    assert timer.advance(1000).fired_at.tolist() == [8 * k, 8 * k + 1, 8 * k + 2]
