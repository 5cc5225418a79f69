"""Operations of the services: each function prepares one, beside `size` others that are far off."""

import asyncio
import inspect
import itertools
import random
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import numpy as np

from .row import AbsentError, cpu

LATER = 1000  # calls that are scheduled before a call is cancelled
THREADS = 4
TOGETHER = 1000  # calls that are due at one moment
BATCH = 250  # operations that enter a purgatory at once
TASKS_BETWEEN = 1000  # calls on a loop between two of its turns
NAP = 0.001  # seconds


def nothing():
    """The callback."""


def far(count):
    """Delays that nothing of a case reaches, in seconds.

    They are near enough to share a few slots of a wheel: to search one is costly.
    """
    dice = random.Random(count)
    return [dice.uniform(300, 800) for _ in range(count)]


# SystemTimer


@contextmanager
def service(size, system_timer, wheel, clock=None):
    """A SystemTimer and its `size` pending calls, on its thread or on a ManualClock."""
    how = {} if clock is None else {"clock": clock}
    timer = system_timer(wheel(capacity=2 * size + 10_000), **how)
    try:
        calls = [timer.schedule_after(delay, nothing) for delay in far(size)]
        assert timer.size == size
        yield timer, calls
    finally:
        timer.close()


def cancel_at_once(schedule_after, count):
    for _ in range(count):
        schedule_after(30.0, nothing).cancel()


def cancel_later(schedule_after, others, count):
    for _ in range(count):
        others.append(schedule_after(30.0, nothing))
        others.popleft().cancel()


def some_calls(schedule_after):
    return deque(schedule_after(30.0, nothing) for _ in range(LATER))


def at_once(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):
        yield lambda count: cpu(cancel_at_once, timer.schedule_after, count)


def later(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):
        others = some_calls(timer.schedule_after)
        yield lambda count: cpu(cancel_later, timer.schedule_after, others, count)


def by_threads(size, system_timer, wheel):
    """The four threads exist before: to start them would cost as much as hundreds of calls."""
    with service(size, system_timer, wheel) as (timer, _), ThreadPoolExecutor(THREADS) as pool:
        others = [some_calls(timer.schedule_after) for _ in range(THREADS)]

        def turn(count):
            schedule_after = itertools.repeat(timer.schedule_after)
            share = itertools.repeat(max(count // THREADS, 1))
            return cpu(lambda: list(pool.map(cancel_later, schedule_after, others, share)))

        yield turn


def at_a_moment(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):

        def work(count):
            moment = timer.time() + 1000
            for _ in range(count):
                timer.schedule_at(moment, nothing).cancel()

        yield lambda count: cpu(work, count)


def due_at_once(size, system_timer, wheel):
    """`schedule_after(0)`, waited for: the way from a caller to the driver's thread and back."""
    with service(size, system_timer, wheel) as (timer, _):
        woken = threading.Lock()
        woken.acquire()

        def work(count):
            for _ in range(count):
                timer.schedule_after(0, woken.release)
                woken.acquire()

        yield lambda count: cpu(work, count)


def rescheduled(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, calls):
        calls = itertools.cycle(calls or [timer.schedule_after(3000, nothing)])

        def work(count):
            for call in itertools.islice(calls, count):
                call.reschedule_after(3000.0)

        yield lambda count: cpu(work, count)


def rescheduled_to_a_moment(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, calls):
        calls = itertools.cycle(calls or [timer.schedule_after(3000, nothing)])

        def work(count):
            moment = timer.time() + 3000
            for call in itertools.islice(calls, count):
                call.reschedule(moment)

        yield lambda count: cpu(work, count)


def periodic_cancelled(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):

        def work(count):
            for _ in range(count):
                timer.schedule_every(30.0, nothing).cancel()

        yield lambda count: cpu(work, count)


def periodic_runs(size, system_timer, wheel, manual_clock):
    clock = manual_clock()
    with service(size, system_timer, wheel, clock) as (timer, _):
        timer.schedule_every(NAP, nothing)

        def work(count):
            for _ in range(count):
                clock.advance(NAP)

        yield lambda count: cpu(work, count)


def one_expiry(size, system_timer, wheel, manual_clock):
    """One call is armed and is due, again and again, as the clock is moved by hand."""
    clock = manual_clock()
    with service(size, system_timer, wheel, clock) as (timer, _):

        def work(count):
            for _ in range(count):
                timer.schedule_after(NAP, nothing)
                clock.advance(2 * NAP)

        yield lambda count: cpu(work, count)


def expiries_together(size, system_timer, wheel, manual_clock):
    clock = manual_clock()
    with service(size, system_timer, wheel, clock) as (timer, _):

        def work(count):
            for first in range(0, count, TOGETHER):
                for _ in range(min(TOGETHER, count - first)):
                    timer.schedule_after(NAP, nothing)
                clock.advance(2 * NAP)

        yield lambda count: cpu(work, count)


def sleep_of_a_thread(size, system_timer, wheel):
    """From a call to its callback in the driver's thread, which sleeps in between."""
    with service(size, system_timer, wheel) as (timer, _):
        woken = threading.Lock()
        woken.acquire()

        def work(count):
            for _ in range(count):
                timer.schedule_after(NAP, woken.release)
                woken.acquire()

        yield lambda count: cpu(work, count)


def driven_by_hand(size, system_timer, wheel):
    """`advance_clock` of a service without a thread, when a call is due."""
    timer = system_timer(wheel(capacity=2 * size + 10_000), start=False)
    calls = [timer.schedule_after(delay, nothing) for delay in far(size)]

    def work(count):
        for _ in range(count):
            timer.schedule_after(0, nothing)
            timer.advance_clock(0)

    yield lambda count: cpu(work, count)
    timer.close()
    del calls


def size_and_time(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):

        def work(count):
            for _ in range(count):
                timer.size  # noqa: B018
                timer.time()

        yield lambda count: cpu(work, count)


def state_of_a_call(size, system_timer, wheel):
    with service(size, system_timer, wheel) as (timer, _):
        call = timer.schedule_after(3000, nothing)

        def work(count):
            for _ in range(count):
                call.when()
                call.done()
                call.cancelled()

        yield lambda count: cpu(work, count)


def opened_and_closed(size, system_timer, wheel):
    """A whole service with `size` calls, from its construction to its end."""

    def work(count):
        for _ in range(count):
            with system_timer(wheel()) as timer:
                for _ in range(size):
                    timer.schedule_after(30.0, nothing)

    yield lambda count: cpu(work, count)


# asyncio


@contextmanager
def open_loop(size, make_loop=asyncio.new_event_loop):
    loop = make_loop()
    calls = [loop.call_later(delay, nothing) for delay in far(size)]
    with closing(loop):
        yield loop
    del calls


def measured_on(loop, work):
    """A turn that runs `await work(count)` on a loop and counts its CPU alone."""

    async def measured(count):
        start = time.process_time()
        await work(count)
        return time.process_time() - start

    return lambda count: loop.run_until_complete(measured(count))


async def in_parts(work, *arguments, count):
    """Let the loop have a turn now and then, in which it clears what was cancelled."""
    for first in range(0, count, TASKS_BETWEEN):
        work(*arguments, min(TASKS_BETWEEN, count - first))
        await asyncio.sleep(0)


@contextmanager
def async_service(size, async_timer, wheel):
    with closing(asyncio.new_event_loop()) as loop:

        async def opened():
            timer = async_timer(wheel(capacity=2 * size + 10_000))
            return timer, [timer.schedule_after(delay, nothing) for delay in far(size)]

        async def closed():
            timer.close()

        timer, calls = loop.run_until_complete(opened())
        yield loop, timer
        loop.run_until_complete(closed())
        del calls


def async_at_once(size, async_timer, wheel):
    with async_service(size, async_timer, wheel) as (loop, timer):
        yield measured_on(
            loop, lambda count: in_parts(cancel_at_once, timer.schedule_after, count=count)
        )


def async_later(size, async_timer, wheel):
    with async_service(size, async_timer, wheel) as (loop, timer):
        others = deque()

        async def filled():
            others.extend(some_calls(timer.schedule_after))

        loop.run_until_complete(filled())
        yield measured_on(
            loop, lambda count: in_parts(cancel_later, timer.schedule_after, others, count=count)
        )


def async_expiry(size, async_timer, wheel, delay=NAP):
    with async_service(size, async_timer, wheel) as (loop, timer):

        async def work(count):
            for _ in range(count):
                woken = loop.create_future()
                timer.schedule_after(delay, woken.set_result, None)
                await woken

        yield measured_on(loop, work)


def async_due_at_once(size, async_timer, wheel):
    return async_expiry(size, async_timer, wheel, 0)


def loop_at_once(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:
        yield measured_on(
            loop, lambda count: in_parts(cancel_at_once, loop.call_later, count=count)
        )


def loop_later(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:
        others = some_calls(loop.call_later)
        yield measured_on(
            loop, lambda count: in_parts(cancel_later, loop.call_later, others, count=count)
        )


def loop_call_at(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        def cancelled(count):
            moment = loop.time() + 1000
            for _ in range(count):
                loop.call_at(moment, nothing).cancel()

        yield measured_on(loop, lambda count: in_parts(cancelled, count=count))


def loop_sleep(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for _ in range(count):
                await asyncio.sleep(NAP)

        yield measured_on(loop, work)


def loop_sleeps_together(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for first in range(0, count, TOGETHER):
                sleeps = (asyncio.sleep(NAP) for _ in range(min(TOGETHER, count - first)))
                await asyncio.gather(*sleeps)

        yield measured_on(loop, work)


def loop_chain(size, wheel_event_loop, delay=0):
    """A chain of calls that are due when they are armed."""
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            done = loop.create_future()
            left = itertools.count(count - 1, -1)

            def link():
                if next(left):
                    loop.call_later(delay, link)
                else:
                    done.set_result(None)

            loop.call_later(delay, link)
            await done

        yield measured_on(loop, work)


def loop_tiny_sleep(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for _ in range(count):
                await asyncio.sleep(1e-9)

        yield measured_on(loop, work)


def loop_call_soon(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for _ in range(count):
                await asyncio.sleep(0)

        yield measured_on(loop, work)


def loop_wait_for(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for _ in range(count):
                await asyncio.wait_for(asyncio.sleep(0), 30.0)

        yield measured_on(loop, work)


def loop_timeout(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for number in range(count):
                async with asyncio.timeout(30.0):
                    if number % TASKS_BETWEEN == 0:
                        await asyncio.sleep(0)

        yield measured_on(loop, work)


def loop_timeout_expires(size, wheel_event_loop):
    with open_loop(size, wheel_event_loop()) as loop:

        async def work(count):
            for _ in range(count):
                with suppress(TimeoutError):
                    async with asyncio.timeout(NAP):
                        await loop.create_future()

        yield measured_on(loop, work)


def loop_in_virtual_time(size, wheel_event_loop, manual_clock):
    if "clock" not in inspect.signature(wheel_event_loop).parameters:
        raise AbsentError("wheel_event_loop has no clock")
    with open_loop(size, wheel_event_loop(clock=manual_clock(autojump=True))) as loop:

        async def work(count):
            for _ in range(count):
                await asyncio.sleep(NAP)

        yield measured_on(loop, work)


def loop_opened_and_closed(size, wheel_event_loop):
    def work(count):
        for _ in range(count):
            with open_loop(size, wheel_event_loop()) as loop:
                loop.run_until_complete(asyncio.sleep(0))

    yield lambda count: cpu(work, count)


# Purgatory


@contextmanager
def purgatory_of(size, purgatory, operation, system_timer, wheel, clock=None):
    """A purgatory, a class of operations, and `size` operations that wait with their own keys."""

    class Request(operation):
        __slots__ = ()

        def try_complete(self):
            return False

    with service(0, system_timer, wheel, clock) as (timer, _):
        waiting = purgatory("requests", timer)
        others = [Request(delay) for delay in far(size)]
        for number, request in enumerate(others):
            waiting.try_complete_else_watch(request, [("other", number)])
        assert waiting.delayed == size
        yield waiting, Request


def watched_and_completed(size, purgatory, operation, system_timer, wheel, keys=None):
    """Each operation is watched and completed after `LATER` others, under its own key or `keys`."""
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):
        pending, number = deque(), itertools.count()

        def work(count):
            for _ in range(count):
                request = request_class(30.0)
                waiting.try_complete_else_watch(request, keys or (next(number),))
                pending.append(request)
                if len(pending) > LATER:
                    pending.popleft().force_complete()

        yield lambda count: cpu(work, count)


def shared_keys(*arguments):
    return watched_and_completed(*arguments, keys=("one", "two", "three"))


def watched_in_batches(size, purgatory, operation, system_timer, wheel):
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):
        pending = deque()

        def work(count):
            for first in range(0, count, BATCH):
                group = [request_class(30.0) for _ in range(min(BATCH, count - first))]
                waiting.try_complete_else_watch_many(group, ("one", "two", "three"))
                pending.append(group)
                if len(pending) > LATER // BATCH:
                    for request in pending.popleft():
                        request.force_complete()

        yield lambda count: cpu(work, count)


def purged(size, purgatory, operation, system_timer, wheel):
    """A purge of a batch that has completed, beside `size` operations that have not."""
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):

        def work(count):
            for _ in range(count):
                group = [request_class(30.0) for _ in range(BATCH)]
                waiting.try_complete_else_watch_many(group, ("one",))
                for request in group:
                    request.force_complete()
                waiting.purge()

        yield lambda count: cpu(work, count)


def completed_by_key(size, purgatory, operation, system_timer, wheel):
    """`check_and_complete` of a key whose one operation completes."""

    class Ready(operation):
        __slots__ = ("ready",)

        def try_complete(self):
            return self.ready and self.force_complete()

    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, _):
        number = itertools.count()

        def work(count):
            for _ in range(count):
                request, key = Ready(30.0), next(number)
                request.ready = False
                waiting.try_complete_else_watch(request, (key,))
                request.ready = True
                waiting.check_and_complete(key)

        yield lambda count: cpu(work, count)


def checked_in_vain(size, purgatory, operation, system_timer, wheel):
    """`check_and_complete` of a key whose ten operations do not complete."""
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):
        group = [request_class(3000.0) for _ in range(10)]
        waiting.try_complete_else_watch_many(group, ("key",))

        def work(count):
            for _ in range(count):
                waiting.check_and_complete("key")

        yield lambda count: cpu(work, count)


def watched_and_cancelled(size, purgatory, operation, system_timer, wheel):
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):

        def work(count):
            for number in range(count):
                request = request_class(30.0)
                waiting.try_complete_else_watch(request, (number,))
                request.cancel()

        yield lambda count: cpu(work, count)


def cancelled_for_a_key(size, purgatory, operation, system_timer, wheel):
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, request_class):

        def work(count):
            for number in range(count):
                waiting.try_complete_else_watch(request_class(30.0), (number,))
                waiting.cancel_for_key(number)

        yield lambda count: cpu(work, count)


def timed_out(size, purgatory, operation, system_timer, wheel, manual_clock):
    clock = manual_clock()
    around = purgatory_of(size, purgatory, operation, system_timer, wheel, clock)
    with around as (waiting, request_class):

        def work(count):
            for number in range(count):
                waiting.try_complete_else_watch(request_class(NAP), (number % 100,))
                clock.advance(2 * NAP)

        yield lambda count: cpu(work, count)


def counted(size, purgatory, operation, system_timer, wheel):
    with purgatory_of(size, purgatory, operation, system_timer, wheel) as (waiting, _):

        def work(count):
            for _ in range(count):
                waiting.delayed  # noqa: B018
                waiting.estimated_total  # noqa: B018

        yield lambda count: cpu(work, count)


# IdleDetector


@contextmanager
def detector_of(size, idle_detector, keys, timeout=1_000_000):
    """A detector with `size` open connections, which nothing of a case makes idle."""
    detector = idle_detector(timeout=timeout, tick=1.0)
    detector.touch_many(keys, at=0)
    yield detector


def numbers(size):
    return np.random.default_rng(0).permutation(size)


def texts(size):
    return [f"10.0.{number >> 8}.{number & 255}:{number}" for number in numbers(size).tolist()]


def touched(size, idle_detector):
    """`touch` of a known key, by all in turns, as the time goes on."""
    keys = numbers(size).tolist()
    with detector_of(size, idle_detector, keys) as detector:
        following, moment = itertools.cycle(keys), itertools.count(1)

        def work(count):
            at = next(moment)
            for key in itertools.islice(following, count):
                detector.touch(key, at)

        yield lambda count: cpu(work, count)


def touched_many(size, idle_detector, keys_of=numbers):
    """`touch_many` of all keys; an operation is the touch of one."""
    keys = keys_of(size)
    with detector_of(size, idle_detector, keys) as detector:
        moment = itertools.count(1)

        def work(count):
            for first in range(0, count, size):
                detector.touch_many(keys[: count - first], next(moment))

        yield lambda count: cpu(work, count)


def touched_many_texts(size, idle_detector):
    return touched_many(size, idle_detector, texts)


def first_touches(size, idle_detector, keys_of=numbers):
    """`touch_many` of keys that a new detector has not seen."""
    keys = keys_of(size)

    def turn(count):
        used = 0.0
        for first in range(0, count, size):
            detector = idle_detector(timeout=1_000_000, tick=1.0)
            used += cpu(detector.touch_many, keys[: count - first], 0)
        return used

    yield turn


def first_touches_texts(size, idle_detector):
    return first_touches(size, idle_detector, texts)


def advanced(size, idle_detector):
    """`advance` by a second; each connection sends a packet every 20 s and may be idle for 30."""
    keys = numbers(size)
    with detector_of(size, idle_detector, keys, timeout=30) as detector:
        moment = itertools.count(1)
        parts = itertools.cycle(np.array_split(keys, 20))

        def turn(count):
            used = 0.0
            for _ in range(count):
                now = next(moment)
                detector.touch_many(next(parts), now)
                used += cpu(detector.advance, now)
            assert len(detector) == size
            return used

        yield turn


def fallen_idle(size, idle_detector):
    """All connections fall idle, at ten moments; an operation is one of them."""
    keys = numbers(size)

    def turn(count):
        used = 0.0
        for first in range(0, count, size):
            detector = idle_detector(timeout=30, tick=1.0)
            for at, part in enumerate(np.array_split(keys[: count - first], 10)):
                detector.touch_many(part, at)
            for now in range(30, 41):
                used += cpu(detector.advance, now)
            assert not len(detector)
        return used

    yield turn


def removed(size, idle_detector):
    """A connection is closed and another one opened."""
    with detector_of(size, idle_detector, numbers(size)) as detector:

        def work(count):
            for _ in range(count):
                detector.touch(-1, 0)
                detector.remove(-1)

        yield lambda count: cpu(work, count)
