"""SystemTimer when an exception or a signal handler comes in the middle."""

import dis
import sys
import threading
from collections import deque
from contextlib import suppress
from itertools import pairwise

import pytest

from tests.timers.services.cases import (
    MS,
    Interposed,
    SettableClock,
    caller_driven,
    manual,
    without_deadlock,
)
from timers import CascadingWheel, HierarchicalWheel
from timers.errors import CapacityError
from timers.services import ManualClock, ServiceClosedError, SystemTimer, calls
from timers.services.calls import CallTimer


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["schedule", "advance", "reschedule", "cancel"])
def test_an_interruption_loses_no_call(interposed, method, when):
    clock, service, timer = interposed
    ran = []
    first = service.schedule_after(1, ran.append, "first")
    second = service.schedule_after(1, ran.append, "second")
    third = service.schedule_after(1, ran.append, "third")
    if method != "schedule":
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


def test_an_interruption_between_two_tables_leaves_them_alike():
    class Interrupting(list):
        def extend(self, entries):
            super().extend(entries)
            while interruptions:
                raise interruptions.pop()

    clock, service = manual()
    service._calls, interruptions, ran = Interrupting(), [KeyboardInterrupt], []
    for number in range(10):
        service.schedule_after(1, ran.append, number)
    with pytest.raises(KeyboardInterrupt):
        service.size  # noqa: B018  # applies the mailbox
    clock.advance(1)
    assert ran == list(range(10))


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
    service._ready = Interrupted()
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

    timer.before["schedule"] = fail
    ran = threading.Event()

    def hook(callback, error):
        texts.append((callback, str(error)))
        reported.set()

    with SystemTimer(timer, on_error=hook) as service:
        service.schedule_after(0, ran.set)
        assert reported.wait(10)
        assert ran.wait(10)
    assert texts == [(None, "no memory for 1 more")]


# Signal handlers


def points_of(function):
    """The offsets before which CPython runs signal handlers: those after a call or a jump back."""
    instructions = list(dis.get_instructions(function))
    return [
        after.offset
        for before, after in pairwise(instructions)
        if before.opname in ("CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD")
    ]


def raising_at(point, code):
    """A trace function that raises KeyboardInterrupt before one instruction of `code`."""

    def tracer(frame, event, _):
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti == point:
            sys.settrace(None)
            raise KeyboardInterrupt
        return tracer

    return tracer


def test_a_signal_while_a_caller_applies_the_mailbox_leaves_the_lock_free():
    """A handler that raises, at each point of `_relieve` at which CPython may run one."""
    relieve = calls.CallTimer._relieve
    raised = 0
    for point in points_of(relieve):
        service = SystemTimer(CascadingWheel(), clock=SettableClock(), start=False)
        service.schedule_after(1, print)
        former = sys.gettrace()
        sys.settrace(raising_at(point, relieve.__code__))
        try:
            service._relieve()
        except KeyboardInterrupt:
            raised += 1
        finally:
            sys.settrace(former)
        assert not service._is_filing()
        assert service._limit == calls.LIST_LIMIT
        assert service.size == 1
    assert raised > 5


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


def acting_at(point, code, action):
    """A trace function that runs `action` before one instruction of `code`."""

    def tracer(frame, event, _):
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti == point:
            sys.settrace(None)
            action()
        return tracer

    return tracer


@pytest.mark.parametrize("action", [lambda service: service.size, SystemTimer.close])
@pytest.mark.parametrize("driver", ["caller", "clock"])
@pytest.mark.parametrize(
    "function",
    [
        CallTimer.size.fget,
        CallTimer._relieve,
        CallTimer._apply,
        SystemTimer.close,
        SystemTimer._prepare,
        SystemTimer._advance,
        SystemTimer._next_moment,
    ],
)
def test_a_signal_handler_may_use_the_service_anywhere(function, driver, action):
    """A handler at each point at which CPython may run one; it never waits for its own thread."""
    for point in points_of(function):
        clock = SettableClock() if driver == "caller" else ManualClock()
        service = SystemTimer(CascadingWheel(), clock=clock, start=False)
        ran = []
        service.schedule_after(0, ran.append, 1)
        call = service.schedule_after(1, print)

        def use(service=service, clock=clock, point=point):
            sys.settrace(acting_at(point, function.__code__, lambda: action(service)))
            with suppress(ServiceClosedError):
                service._relieve()
                service.advance_clock() if driver == "caller" else clock.advance(0)
            service.size  # noqa: B018  # files what is left
            service.close()
            return not service._is_filing()

        assert without_deadlock(use)
        assert service.close()
        assert service.size == 0
        assert call.cancelled()
