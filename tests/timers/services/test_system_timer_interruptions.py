"""SystemTimer when the timer or a callback is interrupted, or has no memory."""

import threading
from collections import deque

import pytest

from tests.timers.services.cases import MS, Interposed, SettableClock, caller_driven
from timers import CascadingWheel, HierarchicalWheel
from timers.errors import CapacityError
from timers.services import ManualClock, SystemTimer


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["schedule_many", "advance", "cancel_many"])
def test_an_interruption_loses_no_call(interposed, method, when):
    clock, service, timer = interposed
    ran = []
    first = service.schedule_after(1, ran.append, "first")
    second = service.schedule_after(1, ran.append, "second")
    third = service.schedule_after(1, ran.append, "third")
    if method != "schedule_many":
        assert service.size == 3
    assert first.reschedule_after(2)
    assert second.cancel()
    getattr(timer, when)[method] = interrupt
    clock.value = 1500 * MS
    with pytest.raises(KeyboardInterrupt):
        service.advance_clock()
    service.advance_clock()
    clock.value = 2500 * MS
    service.advance_clock()
    service.advance_clock()
    assert sorted(ran) == ["first", "third"]
    assert third.done()
    assert service.size == 0


def test_an_interruption_between_two_callbacks_loses_no_call():
    class Interrupted(deque):
        """Is interrupted when the first item has left."""

        def popleft(self):
            super().popleft()
            if ran[-1] == "first":
                raise KeyboardInterrupt

    ran = ["nothing"]
    clock = SettableClock()
    service = caller_driven(clock)
    service._mailbox.ready = Interrupted()
    service.schedule_after(1, ran.append, "first")
    service.schedule_after(1, ran.append, "second")
    clock.value = 1000 * MS
    with pytest.raises(KeyboardInterrupt):
        service.advance_clock()
    service.advance_clock()
    assert ran == ["nothing", "first", "second"]


def test_a_timer_without_memory_is_reported_and_tried_again():
    reported = threading.Event()
    texts = []
    timer = Interposed(CascadingWheel())

    def fail():
        raise CapacityError("no memory for 1 more")

    timer.before["schedule_many"] = fail
    ran = threading.Event()

    def hook(callback, error):
        texts.append((callback, str(error)))
        reported.set()

    with SystemTimer(timer, on_error=hook) as service:
        service.schedule_after(0, ran.set)
        assert reported.wait(10)
        assert ran.wait(10)
    assert texts == [(None, "no memory for 1 more")]


def test_a_rearm_while_the_next_period_is_computed_is_kept():
    """Another thread moves a periodic call between the end of a run and its next deadline."""

    class Clock(ManualClock):
        hook = None

        def now(self):
            hook, self.hook = self.hook, None
            if hook is not None:
                hook()
            return super().now()

    clock = Clock()
    timer = SystemTimer(HierarchicalWheel(), clock=clock)

    def run():
        clock.hook = lambda: call.reschedule(100.0)

    call = timer.schedule_every(1.0, run)
    clock.advance(1)
    assert call.when() == 100.0
