"""What one expiry costs beside timers that are far away, and calls that are due at once.

    python -m tests.bench.far_timers [--rounds 5] [--pending 0,1e3,1e5,1e6]

One call at a time becomes due, beside others that are due in 200 to 500 seconds. Counts the CPU
time of the process for each of these calls: the way from the wait through the alarm to the callback
and to the next call. asyncio's own loop takes turns with ours. Prints medians of the rounds with
the least and the greatest, and the ratio to asyncio in each round. `threading.Timer`, which makes
a thread for each call, stands beside the SystemTimer, without others pending.
"""

import argparse
import asyncio
import gc
import random
import threading
import time
from statistics import median

import numpy as np

from timers import CascadingWheel
from timers.services import (
    AsyncTimer,
    DelayedOperation,
    IdleDetector,
    Purgatory,
    SystemTimer,
    wheel_event_loop,
)

PENDING = "0,1e3,1e5,1e6"
CALLS = 100  # that become due in a round
SHORT, LONG = 0.001, 0.02  # seconds until they do: below and above the loop's own short delay
IDLE_S = 5.0


def nothing():
    """The callback of those that are far away."""


def far_delays(count):
    dice = random.Random(1)
    return [dice.uniform(200, 500) for _ in range(count)]


def on_a_loop(make_loop, prepare, wait):
    """CPU microseconds of each `wait(prepared)`, and of an idle second."""

    async def main():
        prepared = prepare(asyncio.get_running_loop())
        await asyncio.sleep(0.3)
        gc.collect()
        gc.freeze()  # the many objects of the far calls would be collected again and again
        start = time.process_time()
        for _ in range(CALLS):
            await wait(prepared)
        used = time.process_time() - start
        gc.unfreeze()
        return used / CALLS * 1e6

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(main())


def sleeps(make_loop, pending, delay):
    def prepare(loop):
        return [loop.call_later(far, nothing) for far in far_delays(pending)]

    return on_a_loop(make_loop, prepare, lambda _: asyncio.sleep(delay))


def async_timer(pending, delay):
    def prepare(loop):
        timer = AsyncTimer(CascadingWheel())
        for far in far_delays(pending):
            timer.schedule_after(far, nothing)
        return timer

    async def wait(timer):
        future = asyncio.get_running_loop().create_future()
        timer.schedule_after(delay, future.set_result, None)
        await future

    return on_a_loop(asyncio.new_event_loop, prepare, wait)


def of_threads(schedule, delay):
    """CPU microseconds of each call that `schedule(delay, callback)` runs on another thread."""
    came = threading.Semaphore(0)
    schedule(0, came.release)
    came.acquire()
    gc.collect()
    gc.freeze()
    start = time.process_time()
    for _ in range(CALLS):
        schedule(delay, came.release)
        came.acquire()
    used = time.process_time() - start
    gc.unfreeze()
    return used / CALLS * 1e6


def system_timer(pending, delay):
    with SystemTimer(CascadingWheel()) as timer:
        for far in far_delays(pending):
            timer.schedule_after(far, nothing)
        return of_threads(timer.schedule_after, delay)


def thread_timer(_, delay):
    return of_threads(lambda delay, callback: threading.Timer(delay, callback).start(), delay)


class Operation(DelayedOperation):
    """Times out, and says so."""

    __slots__ = ("callback",)

    def try_complete(self):
        return False

    def on_expiration(self):
        self.callback()


def purgatory(pending, delay):
    with SystemTimer(CascadingWheel()) as timer:
        waiting = Purgatory("bench", timer)

        def watch(delay, callback):
            operation = Operation(delay)
            operation.callback = callback
            waiting.try_complete_else_watch(operation, [0])
            waiting.check_and_complete(0)

        for number, far in enumerate(far_delays(pending)):
            operation = Operation(far)
            operation.callback = nothing
            waiting.try_complete_else_watch(operation, [1 + number])
        return of_threads(watch, delay)


def idle_detector(pending, _):
    """One connection falls idle at a time; the clock is the caller's."""
    detector = IdleDetector(1000, 0.001)
    detector.touch_many(np.arange(pending) + CALLS, at=5_000)
    for number in range(CALLS):
        detector.touch(number, at=number)
    start = time.process_time()
    for number in range(CALLS):
        assert detector.advance(number + 1000) == [number]
    return (time.process_time() - start) / CALLS * 1e6


def idle_second(pending):
    """CPU microseconds of a second in which a SystemTimer has nothing to run."""
    with SystemTimer(CascadingWheel()) as timer:
        for far in far_delays(pending):
            timer.schedule_after(far, nothing)
        time.sleep(0.5)  # real time, after what the calls set off
        start = time.process_time()
        time.sleep(IDLE_S)
        return (time.process_time() - start) / IDLE_S * 1e6


CHAINS = {
    "call_later(0)": lambda loop, again: loop.call_later(0, again),
    "call_at(0)": lambda loop, again: loop.call_at(0, again),
    "sleep(1e-9)": None,
}


def turns(make_loop, name, seconds=0.3):
    """Turns of a chain of calls that are due at once, for each second of CPU."""

    async def main():
        loop, count, future = asyncio.get_running_loop(), 0, None
        end = time.thread_time() + seconds
        if CHAINS[name] is None:
            while time.thread_time() < end:
                await asyncio.sleep(1e-9)
                count += 1
            return count / seconds
        future = loop.create_future()

        def again():
            nonlocal count
            count += 1
            if time.thread_time() < end:
                CHAINS[name](loop, again)
            else:
                future.set_result(None)

        CHAINS[name](loop, again)
        await future
        return count / seconds

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(main())


def spread(samples):
    return f"{median(samples):6.0f} [{min(samples):.0f} .. {max(samples):.0f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pending", default=PENDING)
    options = parser.parse_args()
    wheel = wheel_event_loop()
    wheel.close()
    ours = wheel_event_loop(unit_ns=100_001)  # a factory; the unit is as good as the default
    idle_detector(0, 0)
    system_timer(0, 0.001)
    print(f"CPU us for each expiry: median [least .. greatest] of {options.rounds} rounds")
    for pending in [int(float(text)) for text in options.pending.split(",")]:
        print(f"beside {pending:,} that are far away", flush=True)
        rounds = options.rounds if pending < 10**6 else max(options.rounds // 2, 1)
        for delay in (SHORT, LONG):
            host, wheels = [], []
            for _ in range(rounds):
                host.append(sleeps(asyncio.new_event_loop, pending, delay))
                wheels.append(sleeps(ours, pending, delay))
            ratio = median(b / a for a, b in zip(host, wheels, strict=True))
            print(f"  asyncio.sleep({delay}), asyncio's loop {spread(host)}")
            print(f"  ... on wheel_event_loop          {spread(wheels)}, {ratio:.2f} times")
        for name, run in (
            ("AsyncTimer", async_timer),
            ("SystemTimer", system_timer),
            ("Purgatory, a timeout", purgatory),
            ("IdleDetector.advance", idle_detector),
            *([("threading.Timer", thread_timer)] if not pending else []),
        ):
            samples = [run(pending, SHORT) for _ in range(rounds)]
            print(f"  {name:<30} {spread(samples)}", flush=True)
        print(f"  an idle second of SystemTimer {idle_second(pending):.0f} us", flush=True)
    print("turns for each second of CPU, of calls that are due at once")
    for name in CHAINS:
        host, wheels = [], []
        for _ in range(options.rounds):
            host.append(turns(asyncio.new_event_loop, name))
            wheels.append(turns(ours, name))
        ratio = median(b / a for a, b in zip(host, wheels, strict=True))
        print(f"  {name:<14} asyncio {median(host):8.0f}, wheel {median(wheels):8.0f}: {ratio:.2f}")


if __name__ == "__main__":
    main()
