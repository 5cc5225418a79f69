"""A burst of calls is divided: what its callbacks ask for is not behind the whole of it."""

# Private: the entries that have left the timer, and the number of them that one step takes.

import asyncio

import pytest

from tests.timers.services.cases import MS, TIMERS, caller_driven
from tests.timers.services.loops import JumpingLoop
from timers import CascadingWheel
from timers.services import AsyncTimer, wheel_event_loop
from timers.services.pending import BATCH

BURST = 20 * BATCH
REST = 100  # of its calls fire in one unit at most: a tick of the hashed wheel
every_timer = pytest.mark.parametrize("name", TIMERS)


def late_service(timer, callback):
    """A service whose clock is past the deadlines of BURST calls, one in each unit; the calls."""
    clock, service = caller_driven(timer)
    calls = [service.schedule_after((k + 1) * MS / 1e9, callback, k) for k in range(BURST)]
    clock.value = 2 * BURST * MS
    return service, calls


@every_timer
def test_a_call_that_is_due_at_once_does_not_wait_for_the_burst(name):
    ran = []
    service, calls = late_service(TIMERS[name](), ran.append)
    calls[0].cancel()
    service.schedule_at(0.001, lambda: service.schedule_at(0.001, ran.append, "new"))
    service.advance_clock()
    assert ran.index("new") <= BATCH + REST
    ran.remove("new")
    assert ran == [*range(1, BURST)]
    assert service.size == 0


@every_timer
def test_a_cancel_by_a_callback_takes_calls_of_the_burst_out_of_the_timer(name):
    """The timer has room for the calls that come next."""
    ran, left = [], []
    service, calls = late_service(TIMERS[name](), ran.append)

    def cancel_all():
        for call in calls:
            left.append(len(service._pending.timer))
            call.cancel()

    service.schedule_at(0.0005, cancel_all)
    service.advance_clock()
    assert ran == []
    assert left[0] > BURST // 2
    assert left[-1] <= BATCH


@every_timer
def test_what_has_left_the_timer_is_a_batch_and_the_rest_of_a_unit(name):
    waiting = []
    service, _ = late_service(TIMERS[name](), lambda _: waiting.append(len(service._pending.due)))
    service.advance_clock()
    assert len(waiting) == BURST
    assert max(waiting) < BATCH + REST


def test_calls_of_one_unit_run_by_nanoseconds_however_many_they_are():
    clock, service = caller_driven()
    ran = []
    for k in range(3 * BATCH):
        service.schedule_at((MS - k) / 1e9, ran.append, k)
    clock.value = 2 * MS
    assert service.advance_clock() == 3 * BATCH
    assert ran == [*range(3 * BATCH)][::-1]


@pytest.mark.parametrize("on_a_wheel", [True, False])
def test_a_loop_runs_what_is_ready_between_the_parts_of_a_burst(on_a_wheel):
    ran = []
    loop = wheel_event_loop(base=JumpingLoop)() if on_a_wheel else JumpingLoop()

    async def main():
        timer = None if on_a_wheel else AsyncTimer(CascadingWheel())
        call_later = loop.call_later if on_a_wheel else timer.schedule_after
        for k in range(BURST):
            call_later(1 + k * 0.001, ran.append, k)
        call_later(1, loop.call_soon, ran.append, "ready")
        loop.now += 100
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    loop.close()
    assert ran.index("ready") <= BATCH + 1
    assert [k for k in ran if k != "ready"] == [*range(BURST)]
