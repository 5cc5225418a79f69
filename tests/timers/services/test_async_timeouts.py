"""asyncio's timeouts, sleep and wait_for as documented, which AsyncTimer's must behave like."""

import asyncio
import sys

import pytest

from tests.timers.services.cases import TIMERS
from tests.timers.services.loops import FINE, JumpingLoop, run
from timers.services import (
    ServiceStateError,
)

# Timeouts. Each test runs on asyncio's own and on the timer's, so that it shows the same behaviour.


class Asyncio:
    """The functions of asyncio under the names of an AsyncTimer's methods."""

    timeout, timeout_at = staticmethod(asyncio.timeout), staticmethod(asyncio.timeout_at)
    sleep, wait_for = staticmethod(asyncio.sleep), staticmethod(asyncio.wait_for)


_NOT_YET = {
    "test_a_body_that_takes_too_long_ends_with_a_timeout_error",
    "test_a_deadline_cannot_be_moved_outside_the_body",
}
"""What asyncio itself does otherwise in Python 3.11.2, and as documented in 3.11.7."""


@pytest.fixture(params=["asyncio", *TIMERS])
def both(request):
    """Runs `main(timer, loop)` with asyncio itself, and with each timer in its place."""
    is_old = sys.version_info < (3, 11, 7) and request.node.originalname in _NOT_YET
    if is_old and request.param == "asyncio":
        pytest.skip("this Python's asyncio is older than what is documented")

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
        await asyncio.sleep(0.0004)  # within a unit
        start = loop.time()
        with pytest.raises(TimeoutError):
            async with timer.timeout(delay) as timeout:
                assert not timeout.expired()
                await asyncio.sleep(60)
        assert loop.time() == pytest.approx(start, abs=1e-6)
        async with timer.timeout(delay):
            pass  # without a switch there is nothing to cancel

    both(main)


@pytest.mark.parametrize("way", ["timeout", "timeout_at", "reschedule"])
def test_what_has_passed_does_not_wait_for_the_next_unit(both, way):
    """Another deadline is armed for the end of the unit."""

    async def main(timer, loop):
        async with timer.timeout(0.0004):
            loop.now += 0.0002  # within the unit
            with pytest.raises(TimeoutError):
                if way == "timeout":
                    timeout = timer.timeout(0)
                else:
                    timeout = timer.timeout_at(loop.time() if way == "timeout_at" else None)
                async with timeout:
                    if way == "reschedule":
                        timeout.reschedule(loop.time())
                    for _ in range(3):  # the time stands still meanwhile
                        await asyncio.sleep(0)
        async with timer.timeout(0) as timeout:  # what is moved in time does not expire
            timeout.reschedule(None)
            await asyncio.sleep(0)

    both(main)


def test_what_passes_before_it_is_entered_does_not_wait_for_the_next_unit(both):
    async def main(timer, loop):
        timeout = timer.timeout(0.0001)
        loop.now += 0.0002
        with pytest.raises(TimeoutError):
            async with timeout:
                for _ in range(3):
                    await asyncio.sleep(0)

    both(main)


def test_a_timeout_that_has_passed_tells_when(both):
    async def main(timer, loop):
        for delay in (0, -1, -0.5):
            assert timer.timeout(delay).when() == pytest.approx(100 + delay)

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


@pytest.mark.parametrize("applied", [False, True])
def test_a_deadline_that_comes_and_goes_leaves_nothing_behind(applied):
    async def main(timer, loop):
        async with timer.timeout(None) as timeout:
            for delay in (5, None, 0, None, 9, 7, None):
                timeout.reschedule(None if delay is None else loop.time() + delay)
                if applied:
                    assert timer.size <= 1
            await asyncio.sleep(20)
            timeout.reschedule(loop.time() + 5)
        assert timer.size == 0
        assert timeout._task is None  # the mailbox kept the timeout
        await asyncio.sleep(20)
        assert not timeout.expired()

    run(main)


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

        async def slow():
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(1)

        task = asyncio.create_task(slow())
        await asyncio.sleep(0)  # it has begun
        with pytest.raises(TimeoutError):
            await timer.wait_for(task, timeout)
        assert task.done()
        failed = loop.create_future()
        failed.set_exception(KeyError("on purpose"))
        with pytest.raises(KeyError):
            await timer.wait_for(failed, timeout)

    both(main)


@pytest.mark.parametrize("timeout", [None, 1, 0, -1])
def test_what_was_cancelled_before_has_not_timed_out(both, timeout):
    async def main(timer, loop):
        future = loop.create_future()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await timer.wait_for(future, timeout)

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
