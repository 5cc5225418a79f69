"""The boundary cases that timers elsewhere are held to, or got wrong; a project in brackets is
where one was found.

Every case runs on every timer that it fits, with one small geometry, and from two first values of
the clock: zero, and the unit before all levels of a wheel wrap. Other geometries and starts are the
state machine's. Moments are those of the scheme's closed form: the deadline itself for the exact
ones.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.timers.cases import BOUNDARY_CASES, DEFAULTS, KERNELS, Case, Pair, advance_into, rows_of
from timers import HashedWheel, HierarchicalWheel, TimerError, place_of
from timers.kernels.handles import LAST_GENERATION, PLACE_BITS
from timers.kernels.pool import BASE
from timers.limits import LIMIT

every_timer = pytest.mark.parametrize("case", BOUNDARY_CASES, ids=str)
every_scheme = pytest.mark.parametrize("case", DEFAULTS, ids=str)
every_kernel = pytest.mark.parametrize("case", KERNELS, ids=str)
every_start = pytest.mark.parametrize("start", [0, 2**62 - 1])


def at_each_unit(pair: Pair, until: int) -> Iterator[int]:
    """Advance unit by unit, comparing with the model."""
    for now in range(pair.timer.now + 1, until + 1):
        pair.advance_unchecked(now)
        yield now
    pair.agree()


# -- deadlines that have passed
# ------------------------------------------------------------------------------


@every_start
@every_timer
def test_negative_delays_are_delivered_by_an_advance_to_the_same_now(
    case: Case, start: int
) -> None:
    """(Kafka)"""
    pair = Pair(case, start)
    handles = {pair.schedule_after(delay) for delay in range(-5, 1)}
    assert pair.timer.next_expiry() == pair.timer.next_wakeup() == start
    rows = pair.advance(start)
    assert {row.handle for row in rows} == handles
    assert {row.fired_at for row in rows} == {start}


@every_start
@every_timer
def test_overdue_timer_rearmed_to_later_fires_once_and_then(case: Case, start: int) -> None:
    """(tokio)"""
    pair = Pair(case, start)
    handle = pair.schedule_after(-7)
    pair.reschedule(handle, start + 100)
    fired_at = case.due_at(start + 100, start)
    if fired_at > start:  # a coarse tick rounds down to the clock
        assert pair.advance(start) == []
        assert pair.advance(fired_at - 1) == []
    assert [(row.handle, row.fired_at) for row in pair.advance(start + 300)] == [(handle, fired_at)]
    assert pair.finish() == []


# -- each timer once, each on its unit
# -----------------------------------------------------------------------


@every_start
@every_timer
def test_every_delay_fires_exactly_once_on_its_unit(case: Case, start: int) -> None:
    """(Kafka, whose own test has a wheel of 3 slots)"""
    pair = Pair(case, start)
    for delay in (*range(5), *range(10, 100), *range(10, 100), *range(100, 500)):
        pair.schedule_after(delay)
    for _ in at_each_unit(pair, start + 700):
        pass
    assert len(pair.timer) == 0


@every_timer
def test_one_timer_at_each_unit_is_ready_when_and_only_when_its_deadline_came(case: Case) -> None:
    """(tokio)"""
    pair = Pair(case)
    for deadline in range(1024):
        pair.schedule(deadline)
    pair.advance(0)
    for now in at_each_unit(pair, 1023):
        if case.exact:
            assert len(pair.timer) == 1023 - now


@every_timer
def test_one_long_jump_gives_the_rows_of_many_short_ones(case: Case) -> None:
    # Past 2**16, where the cascading wheel's third level moves on, and 200 * 20**2.
    start, end, random = 60_000, 85_000, np.random.default_rng(24)
    deadlines = random.integers(start, end, 500)
    jumping, walking = case(start=start), case(start=start)
    jumping.schedule_many(deadlines)
    walking.schedule_many(deadlines)
    walked = [walking.advance(now) for now in range(start, end + 1)]
    jumped = rows_of(jumping.advance(end))
    assert sorted(jumped) == sorted(
        row for expired in walked if len(expired.handles) for row in rows_of(expired)
    )
    assert [row.fired_at for row in jumped] == sorted(row.fired_at for row in jumped)


# -- around the wrap of a wheel
# ------------------------------------------------------------------------------


@every_start
@every_timer
def test_silent_one_unit_before_the_wrap_and_fired_on_it(case: Case, start: int) -> None:
    """(ratas)"""
    pair = Pair(case, start)
    pair.schedule(start + 256)
    fired_at = case.due_at(start + 256, start)
    assert pair.advance(max(fired_at - 1, start)) == []
    assert [row.fired_at for row in pair.advance(fired_at)] == [fired_at]


@every_start
@every_timer
def test_deadline_in_the_slot_of_the_clock_waits_for_its_rotation(case: Case, start: int) -> None:
    """(ratas)"""
    for slot in (0, 5):
        pair = Pair(case, start)
        pair.advance(start + slot)
        for deadline in (start + 256 * 4 - 1, start + 256 * 4 + 5):
            pair.schedule(deadline)
        for offset in (255, 256, 511, 512, 767, 768):
            pair.advance(start + offset)
        rows = pair.advance(start + 1022)
        assert case.rounding.bounds()[0] < 0 or rows == []
        pair.finish()


@every_timer
def test_delays_across_the_wrap_of_the_lowest_level(case: Case) -> None:
    """(after ratas)"""
    pair = Pair(case)
    pair.advance(250)
    for delay in (5, 6, 9):
        pair.schedule_after(delay)
    rows = pair.advance(260)
    if case.exact:
        assert [row.fired_at for row in rows] == [255, 256, 259]


@every_start
@every_timer
def test_timer_of_the_same_slot_a_rotation_later_waits(case: Case, start: int) -> None:
    """(tokio: a timer at 193 must survive advances to 62, 192 and 192 again)"""
    pair = Pair(case, start)
    pair.schedule(start + 193)
    for offset in (62, 192, 192):
        rows = pair.advance(start + offset)
        if case.exact:
            assert rows == []
    pair.finish()


@every_start
@every_timer
def test_clock_that_moves_in_uneven_steps_fires_what_it_passed(case: Case, start: int) -> None:
    """(Caffeine)"""
    pair = Pair(case, start)
    pair.schedule(start + 15)
    pair.schedule(start + 80)
    fired = [
        [row.deadline - start for row in pair.advance(start + offset)] for offset in (45, 70, 90)
    ]
    if case.exact:
        assert fired == [[15], [], [80]]
    pair.finish()


# -- re-arming
# -----------------------------------------------------------------------------------------------


@every_start
@every_timer
def test_rearming_moves_a_timer_and_leaves_the_count(case: Case, start: int) -> None:
    """(Kafka)"""
    pair = Pair(case, start)
    handles = [pair.schedule_after(delay) for delay in (1, 30, 500, 70_000, 2**33)]
    for delay in (70_000, 2, 2**41, 3, 500):
        for handle in handles:
            pair.reschedule(handle, start + delay)
            assert len(pair.timer) == len(handles)
        pair.agree()
    pair.finish()


@every_start
@every_timer
def test_rearmed_timer_fires_only_at_its_new_deadline(case: Case, start: int) -> None:
    """(ratas: 5 to 10; tokio-util: 200, at 80 re-armed to 120)"""
    for first, then, rearmed_at in ((5, 10, 0), (200, 120, 80), (120, 200, 80)):
        pair = Pair(case, start)
        handle = pair.schedule(start + first)
        if pair.advance(start + rearmed_at):
            continue  # a coarse tick rounded the first deadline down to before this moment
        assert pair.reschedule(handle, start + then)
        fired_at = case.due_at(start + then, start + rearmed_at)
        assert pair.advance(max(fired_at - 1, start + rearmed_at)) == [] or (
            fired_at == start + rearmed_at
        )
        pair.advance(fired_at)
        assert len(pair.timer) == 0
        assert pair.finish() == []


# -- cancelling
# ----------------------------------------------------------------------------------------------


@every_start
@every_timer
def test_handle_cancels_once_and_never_after_it_fired(case: Case, start: int) -> None:
    pair = Pair(case, start)
    cancelled, fired = pair.schedule_after(50), pair.schedule_after(60)
    assert pair.timer.cancel(cancelled) is True
    assert pair.timer.cancel(cancelled) is False
    pair.model.cancel(cancelled)
    pair.advance(start + 1000)
    assert pair.timer.cancel(fired) is False
    assert pair.timer.reschedule(fired, start + 2000) is False
    assert pair.finish() == []


@every_start
@every_timer
def test_stale_handle_leaves_the_new_owner_of_its_place_alone(case: Case, start: int) -> None:
    """(Agrona cancels the new owner)"""
    pair = Pair(case, start)
    stale = pair.schedule_after(50)
    pair.cancel(stale)
    owner = pair.schedule_after(50)
    assert place_of(owner) == place_of(stale)
    assert pair.cancel(stale) is False
    assert pair.reschedule(stale, start + 5) is False
    assert [row.handle for row in pair.advance(start + 500)] == [owner]


@every_start
@every_timer
def test_due_timer_is_still_pending_until_it_is_delivered(case: Case, start: int) -> None:
    pair = Pair(case, start)
    first, second = pair.schedule(start), pair.schedule(start)
    assert len(pair.timer) == 2
    assert pair.cancel(first) is True
    assert [row.handle for row in pair.advance(start)] == [second]


@every_start
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
        pair.agree()
        fired = {row.handle for row in pair.advance(start + 69_000) + pair.advance(start + 71_000)}
        assert fired == {handle for k, handle in enumerate(handles) if k not in cancelled}


# -- far deadlines and far jumps
# -----------------------------------------------------------------------------


@every_start
@every_timer
def test_delay_beyond_the_range_saturates_and_can_be_cancelled(case: Case, start: int) -> None:
    """(Kafka fires it at once, Agrona cannot cancel it)"""
    pair = Pair(case, start)
    pair.advance(start + 3)
    handles = [pair.schedule_after(LIMIT), pair.schedule(LIMIT), pair.schedule_after(2**80)]
    pair.agree()
    fires_at = case.due_at(LIMIT, start + 3)
    assert pair.advance(start + 1_000_000) == []
    assert pair.advance(fires_at - 1) == []
    assert pair.timer.cancel(handles[1]) is True
    pair.model.cancel(handles[1])
    assert {(row.handle, row.fired_at) for row in pair.finish()} == {
        (handles[0], fires_at),
        (handles[2], fires_at),
    }


@every_timer
def test_last_moments_of_the_range(case: Case) -> None:
    start = LIMIT - 700
    pair = Pair(case, start)
    for deadline in range(start, LIMIT):
        pair.schedule(deadline)
    for now in (start, start + 1, LIMIT - 2, LIMIT - 1, LIMIT, LIMIT):
        pair.advance(now)
    pair.schedule_after(1)
    assert [row.fired_at for row in pair.advance(LIMIT)] == [LIMIT]


@every_start
@every_timer
def test_far_jump_passes_over_what_is_pending(case: Case, start: int) -> None:
    for jump, pending in product((2**31, 2**40), (0, 1, 300)):
        pair = Pair(case, start, capacity=512)
        random = np.random.default_rng(pending)
        for delay in (jump, *random.integers(0, 3 * jump, pending).tolist())[:pending]:
            pair.schedule_after(delay)
        for now in (start + jump, start + 2 * jump, start + 4 * jump):
            pair.advance(now)
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


# -- bounds
# --------------------------------------------------------------------------------------------------


@every_timer
def test_later_timer_does_not_hide_an_earlier_one(case: Case) -> None:
    pair = Pair(case)
    pair.schedule(10_000)
    pair.schedule(600)
    pair.agree()
    if case.exact and case.traits.exact_next_expiry:
        assert pair.timer.next_expiry() == 600


@every_timer
def test_timer_added_behind_the_next_one_does_not_hide_it(case: Case) -> None:
    pair = Pair(case)
    pair.schedule(300)
    pair.advance(250)
    pair.schedule(400)
    if len(pair.timer) != 2:
        return  # a coarse tick rounded the first deadline down
    bound = pair.timer.next_expiry()
    assert bound is not None
    assert 250 <= bound <= case.due_at(300, 0)
    if case.exact and case.traits.exact_next_expiry:
        assert bound == 300


# -- many in one place
# ---------------------------------------------------------------------------------------


@every_start
@every_timer
def test_all_timers_with_one_deadline_fire_together(case: Case, start: int) -> None:
    pair = Pair(case, start)
    for _ in range(700):  # more than the first buffer of expired rows holds
        pair.schedule_after(77)
    assert len(pair.advance(start + 300)) + len(pair.finish()) == 700


@every_timer
def test_all_timers_in_one_bucket_with_different_rounds(case: Case) -> None:
    pair = Pair(case)
    for turn in range(1, 120):
        pair.schedule(turn * case.rotation)
    for turn in (1, 2, 60, 118, 119, 121):
        pair.advance(turn * case.rotation)
    assert len(pair.timer) == 0


@every_scheme
def test_fifo_schemes_fire_equal_deadlines_in_the_order_of_arming(case: Case) -> None:
    """(libuv)"""
    pair = Pair(case)
    handles = [pair.schedule(100) for _ in range(50)]
    pair.cancel(handles[20])
    for k in (3, 40, 3):
        pair.reschedule(handles[k], 100)  # a re-arm is a new arming, even to the same deadline
    fired = [row.handle for row in pair.advance(300)]
    in_order = [handle for k, handle in enumerate(handles) if k not in (3, 20, 40)]
    if case.traits.order == "fifo":
        assert fired == [*in_order, handles[40], handles[3]]
    else:
        assert sorted(fired) == sorted([*in_order, handles[40], handles[3]])


@every_scheme
def test_fifo_schemes_fire_overdue_timers_by_deadline_then_arming(case: Case) -> None:
    pair = Pair(case, 1000)
    for deadline in (900, 100, 1000, 900, 0):
        pair.schedule(deadline)
    fired = [row.deadline for row in pair.advance(1000)]
    if case.traits.order == "fifo":
        assert fired == [0, 100, 900, 900, 1000]


# -- capacity and batches
# ------------------------------------------------------------------------------------


@every_timer
def test_capacity_exceeded_within_a_batch_grows_and_handles_stay_valid(case: Case) -> None:
    pair = Pair(case, capacity=4)
    handles = [pair.schedule(500 + k) for k in range(3)]
    batch = pair.timer.schedule_many(np.arange(600, 700)).tolist()
    pair.model.schedule_many(range(600, 700), batch)
    pair.agree()
    assert len({*handles, *batch}) == 103
    assert pair.cancel(handles[1])
    assert pair.cancel(batch[50])
    assert pair.reschedule(handles[2], 650)
    assert len(pair.finish()) == 101


@every_timer
def test_batch_with_one_bad_value_names_its_position_and_schedules_nothing(case: Case) -> None:
    bad: Any
    for bad in (-1, LIMIT + 1, None, 1.5, True):
        timer = case(capacity=2)
        before = timer.nbytes
        with pytest.raises(TimerError, match=r"deadlines\[3\]"):
            timer.schedule_many([1, 2, 3, bad, 5])
        timer.check()
        assert (len(timer), timer.nbytes, timer.next_expiry()) == (0, before, None)


# -- handles
# -------------------------------------------------------------------------------------------------


@every_scheme
def test_place_whose_generations_are_used_up_is_never_handed_out_again(case: Case) -> None:
    timer: Any = case(capacity=2)
    timer.cancel(timer.schedule(10))
    if case.has_kernel:
        timer.state.nodes["generation"][timer.state.cells[BASE]] = LAST_GENERATION
    else:
        # Private: the public way is 2**31 uses of one place.
        timer._free[0] = LAST_GENERATION << PLACE_BITS
    last = timer.schedule(10)
    assert (place_of(last), last >> PLACE_BITS) == (0, LAST_GENERATION)
    assert timer.cancel(last) is True
    timer.check()
    others = timer.schedule_many([10] * 20)
    timer.check()
    assert 0 not in {place_of(other) for other in others.tolist()}
    assert timer.cancel(last) is False
    assert timer.reschedule(last, 20) is False
    assert sorted(timer.advance(200).handles.tolist()) == sorted(others.tolist())


@every_kernel
def test_place_that_fires_in_its_last_generation_is_retired(case: Case) -> None:
    timer: Any = case(capacity=1)
    timer.state.nodes["generation"][timer.state.cells[BASE]] = LAST_GENERATION
    last = timer.schedule(5)
    assert timer.advance(1000).handles.tolist() == [last]
    timer.check()
    assert place_of(timer.schedule(2000)) != place_of(last)
    assert timer.cancel(last) is False
    timer.check()


# -- delivery
# ------------------------------------------------------------------------------------------------


@every_kernel
def test_buffer_of_one_row_takes_three_timers_of_one_unit_in_three_calls(case: Case) -> None:
    timer: Any = case()
    handles = {timer.schedule(50) for _ in range(3)}
    calls = [advance_into(timer, 1000, 1) for _ in range(3)]
    fired = [(int(row["handle"]), int(row["fired_at"])) for rows, _ in calls for row in rows]
    assert [rows.size for rows, _ in calls] == [1, 1, 1]
    assert [done for _, done in calls[:2]] == [False, False]
    assert sorted(fired) == [(handle, case.due_at(50, 0)) for handle in sorted(handles)]
    if not calls[2][1]:  # the buffer was full, and nothing more was looked for
        rows, done = advance_into(timer, 1000, 1)
        assert (rows.size, done) == (0, True)
    timer.check()
    assert (timer.now, len(timer)) == (1000, 0)


# -- the hierarchical wheel (Kafka)
# --------------------------------------------------------------------------


def clock_visits(timer: Any) -> list[int]:
    """Every moment at which the timer wants to be woken, in order."""
    visits = []
    while (wakeup := timer.next_wakeup()) is not None:
        visits.append(wakeup)
        timer.advance(wakeup)
    return visits


def test_hierarchical_wheel_wakes_for_expiries_and_cascades_and_for_nothing_else() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=10)
    timer.schedule_many([9, 88, 222, 520, 521, 522])
    assert clock_visits(timer) == [9, 80, 88, 200, 220, 222, 500, 520, 521, 522]


def test_hierarchical_wheel_takes_a_timer_down_level_by_level() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=10)
    handle = timer.schedule(222)
    places = [timer.locate(handle)]
    for now in (200, 220):
        timer.advance(now)
        places.append(timer.locate(handle))
    assert places == [{"level": level, "slot": 2} for level in (3, 2, 1)]


def test_hierarchical_wheel_of_20_slots_needs_a_fourth_level_for_30_seconds() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=20)
    handle = timer.schedule(30_000)
    assert timer.locate(handle) == {"level": 4, "slot": 3}
    assert timer.next_wakeup() == 24_000
    timer.advance(23_999)
    assert timer.locate(handle)["level"] == 4
    timer.advance(24_000)
    assert timer.locate(handle) == {"level": 3, "slot": 15}


def test_hierarchical_wheel_rounds_down_to_its_tick() -> None:
    timer = HierarchicalWheel(tick=200, wheel_size=20)
    timer.schedule_many([399, 1999])
    assert timer.advance(250).fired_at.tolist() == [200]
    timer.schedule(399)
    assert timer.next_expiry() == 250
    assert timer.advance(250).fired_at.tolist() == [250]
    assert timer.advance(1799).fired_at.tolist() == []
    assert timer.advance(1800).fired_at.tolist() == [1800]


def test_hierarchical_wheel_keeps_the_buckets_of_cancelled_timers_queued() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=20, counting=True)
    for handle in timer.schedule_many(np.arange(1, 400)):
        assert timer.cancel(handle)
    assert len(timer) == 0
    assert timer.next_expiry() is None
    assert timer.counters is not None
    assert timer.counters["queue_offers"] == 38  # 19 slots of one unit, 19 of twenty
    timer.advance(400)
    assert (timer.counters["queue_polls"], timer.counters["empty_polls"]) == (38, 38)
    assert timer.next_wakeup() is None


def test_hierarchical_wheel_enqueues_a_bucket_once_for_each_expiration() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=3, counting=True)

    def offers() -> int:
        assert timer.counters is not None
        return timer.counters["queue_offers"]

    first = timer.schedule(2)
    timer.schedule(2)
    timer.cancel(first)
    timer.schedule(2)
    assert offers() == 1
    assert len(timer.advance(2).handles) == 2
    timer.schedule(5)
    timer.schedule(5)
    assert offers() == 2  # the same slot of the lowest wheel, one rotation later
    assert timer.advance(4).handles.size == 0
    assert timer.advance(5).fired_at.tolist() == [5, 5]


def test_hierarchical_wheel_bounds_the_next_expiry_by_the_bucket() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=20)
    timer.schedule(10_000)
    timer.schedule(600)
    assert timer.next_expiry() == 400


def test_hierarchical_wheel_wakes_three_times_for_two_timers_far_apart() -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=10)
    timer.schedule_many([200, 840])
    visits = clock_visits(timer)
    assert visits == [200, 800, 840]
    assert [840 - 200 - 1, 200 - 1] == [639, 199]  # the empty ticks in between that nobody visited


@pytest.mark.parametrize(
    ("wheel_size", "deadline", "levels"),
    [(2, 2**62, 63), (2, LIMIT, 63), (20, LIMIT, 15), (2, 2**62 - 1, 62)],
)
def test_hierarchical_wheel_has_levels_enough_for_the_whole_range(
    wheel_size: int, deadline: int, levels: int
) -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=wheel_size)
    kept, cancelled = timer.schedule(deadline), timer.schedule(deadline)
    assert timer.locate(kept)["level"] == levels
    assert timer.cancel(cancelled) is True
    timer.check()
    assert timer.advance(deadline - 1).handles.size == 0
    assert timer.advance(deadline).fired_at.tolist() == [deadline]


# -- the hashed wheel (Netty)
# --------------------------------------------------------------------------------


@pytest.mark.parametrize("wheel_size", [8, 512])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 511, 512, 513])
def test_hashed_wheel_is_at_most_one_tick_late_and_never_a_rotation(
    wheel_size: int, k: int
) -> None:
    tick = 100
    for deadline, fired_at in (
        (k * tick - 1, k * tick),
        (k * tick, (k + 1) * tick),
        (k * tick + 1, (k + 1) * tick),
    ):
        timer = HashedWheel(tick=tick, wheel_size=wheel_size)
        timer.schedule(deadline)
        assert timer.advance(fired_at - 1).handles.size == 0
        assert timer.advance(fired_at).fired_at.tolist() == [fired_at]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_hashed_wheel_counts_rounds_around_a_rotation(k: int) -> None:
    """(Akka was a rotation off)"""
    timer = HashedWheel(tick=1, wheel_size=8)
    handles = timer.schedule_many([8 * k - 1, 8 * k, 8 * k + 1]).tolist()
    assert (
        timer.advance(1).handles.size == 0
    )  # hashes what arrived during tick 0, and visits the slot of tick 0
    assert [timer.locate(handle)["rounds"] for handle in handles] == [k - 1, k - 1, k]
    assert timer.advance(1000).fired_at.tolist() == [8 * k, 8 * k + 1, 8 * k + 2]
