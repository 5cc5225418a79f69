"""AsyncTimer on a loop whose time jumps to the next event, and the documented behaviour of
asyncio's timeouts, which the timer's must share.
"""

import asyncio
import contextvars
import gc
import selectors
from datetime import UTC, datetime, timedelta

import pytest

from tests.timers.services.cases import TIMERS, raising
from timers import CascadingWheel, HashedWheel, HierarchicalWheel
from timers.errors import ParameterError, TimeRangeError, TimeTypeError
from timers.services import (
    AsyncTimer,
    CallbackError,
    ServiceClosedError,
    ServiceStateError,
    mailbox,
)


class JumpingSelector(selectors.DefaultSelector):
    """Instead of sleeping, moves the loop's time."""

    loop = None

    def select(self, timeout=None):
        self.loop.selects += 1
        found = super().select(0)
        if not found and timeout:
            self.loop.now += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop on which waiting takes no time; it starts at 100 s."""

    def __init__(self):
        selector = JumpingSelector()
        selector.loop = self
        self.now = 100.0
        self.selects = 0
        self.armed = []  # the moments for which call_at was asked
        super().__init__(selector)

    def time(self):
        return self.now

    def call_at(self, when, callback, *args, **options):
        self.armed.append(when)
        return super().call_at(when, callback, *args, **options)


FINE = TIMERS | {"hashed-wheel": lambda: HashedWheel(tick=1)}  # 100 units by default


def run(main, name="cascading-wheel", timers=TIMERS):
    """The result of `main(timer, loop)` on a loop whose time jumps."""

    async def outer():
        with AsyncTimer(timers[name]()) as timer:
            result = await main(timer, asyncio.get_running_loop())
        assert len(timer._timer) == 0
        return result

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(outer())


# Calls


@pytest.mark.parametrize("name", TIMERS)
def test_calls_run_at_their_deadlines(name):
    async def main(timer, loop):
        least, greatest = timer._timer.traits.rounding(timer._timer.parameters).bounds()
        ran = []
        delays = [0, 0.001, 0.5, 0.0305, 60, 2]
        for delay in delays:
            timer.schedule_after(delay, lambda d=delay: ran.append((d, loop.time() - 100)))
        timer.schedule_at(101.0, lambda: ran.append((1.0, loop.time() - 100)))
        assert timer.size == 7
        await asyncio.sleep(61)
        assert [delay for delay, _ in ran] == sorted([*delays, 1.0])
        for delay, time in ran:
            assert delay + least / 1000 - 1e-6 <= time <= delay + (greatest + 1) / 1000 + 1e-6
        assert timer.size == 0

    run(main, name)


@pytest.mark.parametrize("name", TIMERS)
def test_the_loop_knows_the_next_expiry_only(name):
    async def main(timer, loop):
        for delay in range(1000):
            timer.schedule_after(3600.0 + delay, print)
        assert len(loop.armed) == 1
        earlier = timer.schedule_after(10.0, print)
        assert len(loop.armed) == 2
        assert earlier.reschedule_after(5)
        assert len(loop.armed) == 3
        assert earlier.cancel()
        before = loop.selects
        await asyncio.sleep(1000)
        assert loop.selects - before < 60  # cascades, and no ticks

    run(main, name)


def test_a_call_is_cancelled_or_rearmed_like_those_of_a_system_timer():
    async def main(timer, loop):
        ran = []
        first = timer.schedule_after(1, ran.append, 1)
        second = timer.schedule_after(1, ran.append, 2)
        third = timer.schedule_after(9, ran.append, 3)
        assert first.cancel() and not first.cancel()
        assert second.reschedule_after(5) and third.reschedule(102.0)
        await asyncio.sleep(10)
        assert ran == [3, 2]
        assert not second.reschedule_after(1)

    run(main)


def test_a_datetime_is_a_moment():
    async def main(timer, loop):
        call = timer.schedule_at(datetime.now(UTC) + timedelta(seconds=50), print)
        assert call.when() == pytest.approx(150, abs=5)

    run(main)


def test_periodic_calls_keep_their_phase():
    async def main(timer, loop):
        ran = []
        call = timer.schedule_every(0.25, lambda: ran.append(loop.time()))
        await asyncio.sleep(1.1)
        call.cancel()
        await asyncio.sleep(1)
        assert ran == pytest.approx([100.25, 100.5, 100.75, 101.0])

    run(main)


def test_callbacks_that_schedule_cancel_and_close():
    async def main(timer, loop):
        ran = []
        sibling = timer.schedule_after(1.0002, ran.append, "sibling")
        timer.schedule_after(
            1, lambda: (ran.append(sibling.cancel()), timer.schedule_after(0, ran.append, "new"))
        )
        timer.schedule_after(3, timer.close)
        timer.schedule_after(3, ran.append, "too late")
        await asyncio.sleep(5)
        assert ran == [True, "new"]
        with pytest.raises(ServiceClosedError):
            timer.schedule_after(1, print)

    run(main)


def test_the_context_is_copied():
    variable = contextvars.ContextVar("variable", default=0)

    async def main(timer, loop):
        seen = []
        variable.set(1)
        timer.schedule_after(1, lambda: seen.append(variable.get()))
        variable.set(2)
        given = contextvars.Context()
        timer.schedule_after(1, lambda: seen.append(variable.get()), context=given)
        await asyncio.sleep(2)
        assert sorted(seen) == [0, 1]

    run(main)


def test_an_exception_goes_to_the_handler_of_the_loop():
    async def main(timer, loop):
        caught, ran = [], []
        loop.set_exception_handler(lambda _, context: caught.append(context))
        timer.schedule_after(1, raising(ValueError("on purpose")))
        timer.schedule_after(1, ran.append, 1)
        await asyncio.sleep(2)
        assert [str(context["exception"]) for context in caught] == ["on purpose"]
        assert "callback" in caught[0]["message"]
        assert ran == [1]

    run(main)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_exit_ends_the_loop_and_the_rest_stays_due(kind):
    loop = JumpingLoop()
    ran = []

    async def setup():
        timer = AsyncTimer(CascadingWheel())
        timer.schedule_after(1, raising(kind()))
        timer.schedule_after(1, ran.append, 1)
        return timer

    timer = loop.run_until_complete(setup())
    with pytest.raises(kind):
        loop.run_forever()
    assert ran == []
    loop.run_until_complete(asyncio.sleep(2))
    assert ran == [1]
    assert timer.size == 0
    loop.close()


def test_a_full_mailbox_is_applied(monkeypatch):
    monkeypatch.setattr(mailbox, "DEQUE_LIMIT", 10)

    async def main(timer, loop):
        calls = [timer.schedule_after(60, print) for _ in range(100)]
        assert len(timer._arrivals) <= 10
        for call in calls:
            assert call.cancel()
        assert len(timer._changes) <= 10
        assert timer.size == 0

    run(main)


def test_a_finalizer_may_use_the_timer_while_it_files_calls():
    async def main(timer, loop):
        schedule = timer._timer.schedule
        ran = []

        def reentrant(deadline):
            timer._timer.schedule = schedule
            timer.schedule_after(0.5, ran.append, "from the finalizer")
            return schedule(deadline)

        timer._timer.schedule = reentrant
        timer.schedule_after(1, ran.append, "first")
        await asyncio.sleep(2)
        assert sorted(ran) == ["first", "from the finalizer"]
        timer._timer.schedule = lambda deadline: (timer.close(), schedule(deadline))[1]
        call = timer.schedule_after(0.1, ran.append, "closed")
        await asyncio.sleep(2)
        assert len(ran) == 2
        assert call.cancelled()
        del timer._timer.schedule

    run(main)


# Bad input


def test_a_timer_belongs_to_the_loop_that_runs():
    with pytest.raises(ServiceStateError, match="made while its loop runs"):
        AsyncTimer(CascadingWheel())

    async def make():
        return AsyncTimer(CascadingWheel())

    async def use(timer):
        for schedule in (timer.schedule_after, timer.schedule_at, timer.schedule_every):
            with pytest.raises(ServiceStateError, match="is not the one that runs here"):
                schedule(1, print)
        with pytest.raises(ServiceStateError, match="is not the one that runs here"):
            await timer.sleep(1)
        with pytest.raises(ServiceStateError, match="is not the one that runs here"):
            async with timer.timeout(1):
                raise AssertionError("entered")

    first, second = JumpingLoop(), JumpingLoop()
    timer = first.run_until_complete(make())
    second.run_until_complete(use(timer))
    first.close()
    second.close()
    with pytest.raises(ServiceStateError, match="the loop of this AsyncTimer is closed"):
        timer.schedule_after(1, print)


def test_bad_arguments_are_refused_and_the_service_goes_on():
    async def main(timer, loop):
        with pytest.raises(TimeRangeError):
            timer.schedule_after(-1, print)
        with pytest.raises(TimeRangeError):
            timer.schedule_after(float("nan"), print)
        with pytest.raises(CallbackError):
            timer.schedule_after(1, None)
        with pytest.raises(TimeTypeError):
            timer.timeout("1")
        for refuse in (timer.timeout, timer.timeout_at):
            with pytest.raises(TimeRangeError):
                refuse(float("nan"))
        with pytest.raises(TimeRangeError):
            await timer.sleep(float("nan"))
        with pytest.raises(TimeRangeError):
            await timer.wait_for(asyncio.sleep(0), float("nan"))
        with pytest.raises(ParameterError):
            AsyncTimer(HierarchicalWheel(), unit_ns=0)
        await timer.sleep(1)
        assert loop.time() == pytest.approx(101, abs=0.002)

    with pytest.warns(RuntimeWarning, match="never awaited"):  # what wait_for refused
        run(main)
        gc.collect()


def test_a_closed_timer_refuses_timeouts():
    async def main(timer, loop):
        waiting = timer.timeout(1)
        timer.close()
        with pytest.raises(ServiceClosedError):
            async with waiting:
                raise AssertionError("entered")
        with pytest.raises(ServiceClosedError):
            await timer.sleep(1)

    run(main)


# Timeouts. Each test runs on asyncio's own and on the timer's, so that it shows the same behaviour.


class Asyncio:
    """The functions of asyncio under the names of an AsyncTimer's methods."""

    timeout, timeout_at = staticmethod(asyncio.timeout), staticmethod(asyncio.timeout_at)
    sleep, wait_for = staticmethod(asyncio.sleep), staticmethod(asyncio.wait_for)


@pytest.fixture(params=["asyncio", *TIMERS])
def both(request):
    """Runs `main(timer, loop)` with asyncio itself, and with each timer in its place."""

    def runner(main):
        if request.param != "asyncio":
            return run(main, request.param, FINE)
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:

            async def outer():
                return await main(Asyncio, asyncio.get_running_loop())

            return runner.run(outer())

    return runner


def test_a_body_that_takes_too_long_ends_with_a_timeout_error(both):
    async def main(timer, loop):
        with pytest.raises(TimeoutError) as caught:
            async with timer.timeout(2.0) as timeout:
                assert timeout.when() == pytest.approx(102.0)
                await asyncio.sleep(60)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        assert timeout.expired()
        assert asyncio.current_task().cancelling() == 0
        assert loop.time() == pytest.approx(102.0, abs=0.003)

    both(main)


def test_a_body_that_ends_in_time_is_left_alone(both):
    async def main(timer, loop):
        async with timer.timeout(2.0) as timeout:
            await asyncio.sleep(1)
        assert not timeout.expired()
        await asyncio.sleep(60)
        assert asyncio.current_task().cancelling() == 0

    both(main)


@pytest.mark.parametrize("absolute", [False, True])
def test_none_never_expires(both, absolute):
    async def main(timer, loop):
        make = timer.timeout_at if absolute else timer.timeout
        async with make(None) as timeout:
            assert timeout.when() is None
            await asyncio.sleep(1e6)
        assert not timeout.expired()

    both(main)


@pytest.mark.parametrize("delay", [0, 0.0, -1, -0.5, float("-inf")])
def test_what_has_passed_expires_at_the_next_switch(both, delay):
    async def main(timer, loop):
        with pytest.raises(TimeoutError):
            async with timer.timeout(delay) as timeout:
                assert not timeout.expired()
                await asyncio.sleep(60)
        assert loop.time() == pytest.approx(100, abs=0.002)
        async with timer.timeout(delay):
            pass  # without a switch there is nothing to cancel

    both(main)


def test_an_absolute_deadline_is_in_the_time_of_the_loop(both):
    async def main(timer, loop):
        with pytest.raises(TimeoutError):
            async with timer.timeout_at(loop.time() + 3) as timeout:
                assert timeout.when() == pytest.approx(103)
                await asyncio.sleep(60)
        with pytest.raises(TimeoutError):
            async with timer.timeout_at(50):
                await asyncio.sleep(60)
        assert loop.time() == pytest.approx(103, abs=0.003)

    both(main)


def test_a_deadline_can_be_moved_both_ways_and_taken_away(both):
    async def main(timer, loop):
        async with timer.timeout(1) as timeout:
            timeout.reschedule(loop.time() + 10)
            await asyncio.sleep(5)
            timeout.reschedule(None)
            assert timeout.when() is None
            await asyncio.sleep(100)
        now = loop.time()
        with pytest.raises(TimeoutError):
            async with timer.timeout(None) as timeout:
                timeout.reschedule(loop.time() + 50)
                timeout.reschedule(loop.time() + 1)
                await asyncio.sleep(100)
        assert loop.time() == pytest.approx(now + 1, abs=0.003)
        with pytest.raises(TimeoutError):
            async with timer.timeout(60) as timeout:
                timeout.reschedule(loop.time() - 1)
                await asyncio.sleep(100)
        assert loop.time() == pytest.approx(now + 1, abs=0.004)

    both(main)


def test_a_deadline_cannot_be_moved_outside_the_body(both):
    async def main(timer, loop):
        timeout = timer.timeout(1)
        with pytest.raises(RuntimeError):
            timeout.reschedule(200)
        with pytest.raises(TimeoutError):
            async with timeout:
                try:
                    await asyncio.sleep(60)
                finally:
                    assert timeout.expired()
                    with pytest.raises(RuntimeError):
                        timeout.reschedule(200)
        async with timer.timeout(1) as timeout:
            pass
        with pytest.raises(RuntimeError):
            timeout.reschedule(200)

    both(main)


def test_an_inner_timeout_ends_its_own_body_only(both):
    async def main(timer, loop):
        reached = []
        with pytest.raises(TimeoutError):
            async with timer.timeout(5) as outer:
                with pytest.raises(TimeoutError):
                    async with timer.timeout(1) as inner:
                        await asyncio.sleep(60)
                assert inner.expired() and not outer.expired()
                reached.append("between")
                await asyncio.sleep(60)
        assert outer.expired()
        assert reached == ["between"]

    both(main)


def test_an_inner_timeout_sees_that_of_an_outer_one_as_a_cancellation(both):
    async def main(timer, loop):
        seen = []
        with pytest.raises(TimeoutError):
            async with timer.timeout(1) as outer:
                try:
                    async with timer.timeout(5) as inner:
                        await asyncio.sleep(60)
                except asyncio.CancelledError as error:
                    seen.append(error)
                    raise
        assert outer.expired() and not inner.expired()
        assert len(seen) == 1

    both(main)


def test_nested_timeouts_that_expire_together_raise_once_outside_both(both):
    async def main(timer, loop):
        with pytest.raises(TimeoutError):
            async with timer.timeout(1) as outer, timer.timeout(1) as inner:
                await asyncio.sleep(60)
        assert outer.expired()
        assert inner.expired()
        assert asyncio.current_task().cancelling() == 0

    both(main)


def test_a_cancellation_from_elsewhere_stays_one(both):
    async def main(timer, loop):
        async def body():
            async with timer.timeout(5) as timeout:
                timeouts.append(timeout)
                await asyncio.sleep(60)

        timeouts = []
        task = asyncio.create_task(body())
        await asyncio.sleep(1)
        task.cancel("from elsewhere")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not timeouts[0].expired()

    both(main)


def test_a_cancellation_from_elsewhere_beats_a_timeout_in_the_same_iteration(both):
    async def main(timer, loop):
        async def body():
            async with timer.timeout(5) as timeout:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    assert timeout.expired()
                    task.cancel()
                    raise

        task = asyncio.create_task(body())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    both(main)


def test_another_exception_passes_through_even_after_the_deadline(both):
    async def main(timer, loop):
        with pytest.raises(KeyError):
            async with timer.timeout(1) as timeout:
                try:
                    await asyncio.sleep(60)
                finally:
                    raise KeyError("other")
        assert timeout.expired()
        assert asyncio.current_task().cancelling() == 0
        with pytest.raises(TimeoutError, match="own"):
            async with timer.timeout(1) as timeout:
                raise TimeoutError("own")
        assert not timeout.expired()

    both(main)


def test_a_timeout_belongs_to_a_task(both):
    async def main(timer, loop):
        problems = []

        def outside():
            entering = timer.timeout(1).__aenter__()
            try:
                entering.send(None)
            except RuntimeError as error:
                problems.append(error)

        loop.call_soon(outside)
        await asyncio.sleep(0)
        assert len(problems) == 1

    both(main)


def test_a_timeout_is_entered_once():
    async def main(timer, loop):
        timeout = timer.timeout(1)
        assert repr(timeout) == "<Timeout created when=101.0>"
        async with timeout:
            pass
        with pytest.raises(ServiceStateError, match="only once"):
            async with timeout:
                raise AssertionError("entered")

    run(main)


# sleep and wait_for


def test_sleep_returns_its_result(both):
    async def main(timer, loop):
        assert await timer.sleep(2, "result") == "result"
        assert loop.time() == pytest.approx(102, abs=0.003)
        for delay in (0, -1):
            assert await timer.sleep(delay, "at once") == "at once"
        assert loop.time() == pytest.approx(102, abs=0.003)

    both(main)


def test_a_sleep_of_nothing_lets_others_run(both):
    async def main(timer, loop):
        ran = []
        loop.call_soon(ran.append, 1)
        await timer.sleep(0)
        assert ran == [1]

    both(main)


def test_a_sleep_can_be_cancelled(both):
    async def main(timer, loop):
        task = asyncio.create_task(timer.sleep(60))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(100)

    both(main)


@pytest.mark.parametrize("timeout", [None, 5, 0.5])
def test_wait_for_returns_what_comes_in_time(both, timeout):
    async def main(timer, loop):
        async def answer():
            await asyncio.sleep(0.25)
            return 42

        assert await timer.wait_for(answer(), timeout) == 42
        assert await timer.wait_for(asyncio.create_task(answer()), timeout) == 42

    both(main)


def test_wait_for_passes_exceptions_on(both):
    async def main(timer, loop):
        async def fail():
            raise KeyError("on purpose")

        with pytest.raises(KeyError):
            await timer.wait_for(fail(), 1)

    both(main)


def test_wait_for_cancels_what_takes_too_long_and_waits_for_its_end(both):
    async def main(timer, loop):
        ended = []

        async def slow():
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(1)
                ended.append(loop.time())

        task = asyncio.create_task(slow())
        with pytest.raises(TimeoutError):
            await timer.wait_for(task, 2)
        assert task.cancelled()
        assert ended == [pytest.approx(103, abs=0.003)]

    both(main)


@pytest.mark.parametrize("timeout", [0, -1])
def test_wait_for_nothing_takes_only_what_is_there(both, timeout):
    async def main(timer, loop):
        future = loop.create_future()
        future.set_result("there")
        assert await timer.wait_for(future, timeout) == "there"
        waiting = loop.create_future()
        with pytest.raises(TimeoutError):
            await timer.wait_for(waiting, timeout)
        assert waiting.cancelled()

    both(main)


def test_cancelling_wait_for_cancels_what_it_waits_for(both):
    async def main(timer, loop):
        waiting = loop.create_future()
        task = asyncio.create_task(timer.wait_for(waiting, 60))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert waiting.cancelled()

    both(main)
