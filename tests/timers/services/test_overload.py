"""Services with `max_pending`, and callers at full speed."""

import asyncio
import threading
import time

import pytest

from tests.timers.services.cases import Waiting, in_thread, manual
from timers import CascadingWheel
from timers.errors import ParameterError, TimerError
from timers.services import (
    AsyncTimer,
    OverloadError,
    Purgatory,
    SystemTimer,
    wheel_event_loop,
)


def test_a_full_service_refuses_a_call_until_one_has_left():
    with SystemTimer(CascadingWheel(), max_pending=2, overload="refuse") as timer:
        calls = [timer.schedule_after(60, print) for _ in range(2)]
        assert timer.size == 2
        for schedule in (timer.schedule_after, timer.schedule_at, timer.schedule_every):
            with pytest.raises(OverloadError, match="SystemTimer is full: max_pending is 2"):
                schedule(10**6, print)
        assert issubclass(OverloadError, TimerError) and issubclass(OverloadError, RuntimeError)
        assert calls[0].cancel()
        timer.schedule_after(60, print)
        assert calls[1].reschedule_after(70)
        assert timer.size == 2


def test_a_caller_waits_for_room():
    with SystemTimer(CascadingWheel(), max_pending=1) as timer:
        first = timer.schedule_after(60, print)
        threading.Timer(0.05, first.cancel).start()
        second = in_thread(timer.schedule_after, 0.01, int)
        assert first.cancelled()
        third = in_thread(timer.schedule_after, 60, print)  # after the second has run
        assert second.done()
        assert not third.done()


def test_a_callback_on_the_services_thread_never_waits():
    ran = threading.Event()
    with SystemTimer(CascadingWheel(), max_pending=1) as timer:

        def callback():
            for _ in range(3):
                timer.schedule_after(60, print)
            ran.set()

        timer.schedule_after(0, callback)
        assert ran.wait(10)
        assert timer.size == 3


def test_who_holds_the_lock_never_waits():
    """As a finalizer or a signal handler that interrupts the service."""
    with SystemTimer(CascadingWheel(), max_pending=1) as timer:
        timer.schedule_after(60, print)
        with timer._pending.lock:
            timer.schedule_after(60, print)
        assert timer.size == 2


def test_a_caller_who_waits_learns_that_the_service_is_closed():
    timer = SystemTimer(CascadingWheel(), max_pending=1)
    timer.schedule_after(60, print)
    threading.Timer(0.05, timer.close).start()
    with pytest.raises(TimerError, match="SystemTimer is closed"):
        timer.schedule_after(60, print)


def test_where_the_caller_drives_nobody_waits():
    clock, timer = manual(max_pending=1)
    timer.schedule_after(1, print)
    with pytest.raises(OverloadError):
        timer.schedule_after(1, print)
    with pytest.raises(OverloadError):
        Purgatory("test", timer).try_complete_else_watch(operation := Waiting(), ["a"])
    assert operation.is_completed
    assert timer.size == 1


def test_an_async_timer_and_a_loop_refuse():
    async def main():
        async with AsyncTimer(CascadingWheel(), max_pending=1) as timer:
            timer.schedule_after(1, print)
            with pytest.raises(OverloadError, match="AsyncTimer is full: max_pending is 1"):
                timer.schedule_after(1, print)
        loop = asyncio.get_running_loop()
        handles = [loop.call_later(60, print) for _ in range(3)]
        with pytest.raises(OverloadError, match="Event loop is full: max_pending is 3"):
            loop.call_later(1, print)
        handles[0].cancel()
        loop.call_later(60, print)

    with asyncio.Runner(loop_factory=wheel_event_loop(max_pending=3)) as runner:
        runner.run(main())


@pytest.mark.parametrize("options", [{"max_pending": 0}, {"overload": "drop"}])
def test_parameters(options):
    with pytest.raises(ParameterError):
        SystemTimer(CascadingWheel(), **options)


@pytest.mark.cluster  # it depends on the speed of the machine, and takes three seconds
def test_callers_at_full_speed_do_not_keep_the_driver_from_its_work():
    """Real time: 8 threads, half of whose calls fire."""
    late, stop = [], time.monotonic() + 3
    with SystemTimer(CascadingWheel()) as timer:

        def work():
            while time.monotonic() < stop:
                for _ in range(100):
                    timer.schedule_after(0.005, int)
                    timer.schedule_after(0.005, int).cancel()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        while time.monotonic() < stop:
            due = time.monotonic() + 0.01
            timer.schedule_after(0.01, lambda due=due: late.append(time.monotonic() - due))
            time.sleep(0.02)
        for thread in threads:
            thread.join()
        assert timer.size < 100_000
        assert timer.close("wait", 30)
    late.sort()
    assert late[len(late) * 9 // 10] < 1  # 200 ms in 99 of 100 cases, on a machine that is not busy
