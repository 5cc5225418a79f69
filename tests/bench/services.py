"""The services beside asyncio in the same process, and what a million pending calls cost.

    python -m tests.bench.services [--rounds 7] [--pending 100000] [--collector]

Rounds of asyncio and of the service take turns, so that each ratio is of runs in the same seconds.
Counts CPU time of the whole process, so that other programs disturb little. Calls are measured with
the garbage collector off, as `timeit` does: a full collection looks at the objects of both and hits
whoever is running. With `--collector` it stays on. Prints the least of each and their ratio, and
the median and quartiles of the rounds' ratios.
"""

import argparse
import asyncio
import gc
import os
import random
import resource
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import Context
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import quantiles

import numpy as np

from timers import CascadingWheel
from timers.services import SystemTimer, wheel_event_loop
from timers.services.pending import BATCH

PENDING = 100_000
PAIRS = 50_000  # per round
TASKS_BETWEEN = 1000  # pairs after which asyncio's loop gets a turn, in which it cleans its heap
THREADS = 4
SHORTEST, LONGEST = 1, 2000  # seconds
WHEEL_LOOP = wheel_event_loop()


def nothing():
    """The callback."""


def delays_of(kind, count, seed):
    dice = random.Random(seed)
    if kind == "constant":
        return [30.0] * count
    return [dice.uniform(SHORTEST, LONGEST) for _ in range(count)]


def seconds_in(pool, work, *arguments):
    """CPU seconds of the calls of `work`, one for each of the pool's threads.

    The threads exist before: to start four of them would add some percent to a round.
    """
    start = time.process_time()
    list(pool.map(work, *arguments))
    return time.process_time() - start


# Schedule and cancel


def schedule_and_cancel_each(schedule_after, others, delays, oldest):
    """Cancel the call of each delay at once, or the oldest of the others, which it then joins."""
    if oldest:
        for delay in delays:
            others.append(schedule_after(delay, nothing))
            others.popleft().cancel()
    else:
        for delay in delays:
            schedule_after(delay, nothing).cancel()


class LoopCalls:
    """`call_later` and `cancel` beside `pending` other calls; one round has `PAIRS` pairs."""

    def __init__(self, kind, pending, make_loop=asyncio.new_event_loop):
        self.loop = make_loop()
        self.others = deque(
            self.loop.call_later(delay, nothing) for delay in delays_of(kind, pending, 0)
        )

    def seconds(self, delays, oldest):
        """CPU seconds of one round."""
        return self.loop.run_until_complete(self.round(delays, oldest))

    async def round(self, delays, oldest):
        start = time.process_time()
        for first in range(0, len(delays), TASKS_BETWEEN):
            part = delays[first : first + TASKS_BETWEEN]
            schedule_and_cancel_each(self.loop.call_later, self.others, part, oldest)
            await asyncio.sleep(0)
        return time.process_time() - start

    def close(self):
        self.loop.close()


class ServiceCalls:
    """`schedule_after` and `cancel` in the same way, on this thread or shared by `threads` others.

    Of these, each has its part of the other calls: what one thread scheduled on one core is costly
    to touch on another.
    """

    def __init__(self, kind, pending, threads=1):
        self.timer = SystemTimer(CascadingWheel(capacity=2 * pending))
        calls = [self.timer.schedule_after(delay, nothing) for delay in delays_of(kind, pending, 0)]
        self.pool = ThreadPoolExecutor(threads)
        self.others = [deque(calls[first::threads]) for first in range(threads)]
        expired = pending - self.timer.size
        assert expired <= pending // 100  # the shortest of random delays is a second

    def seconds(self, delays, oldest):
        """CPU seconds of one round on this thread, those of the driver's thread included."""
        start = time.process_time()
        schedule_and_cancel_each(self.timer.schedule_after, self.others[0], delays, oldest)
        return time.process_time() - start

    def seconds_of_threads(self, delays, oldest):
        """The same, on the threads."""
        share = len(delays) // len(self.others)
        parts = [delays[i * share :][:share] for i in range(len(self.others))]
        schedule_after = repeat(self.timer.schedule_after)
        work = (schedule_and_cancel_each, schedule_after, self.others, parts, repeat(oldest))
        return seconds_in(self.pool, *work)

    def close(self):
        self.pool.shutdown()
        self.timer.close()


def alternate(base, contender, rounds, collector=False):
    """Samples of both, in seconds, after a round each to warm up; in turns, either is first."""
    first, second = (base, []), (contender, [])
    for seed in range(rounds + 1):
        gc.collect()
        if not collector:
            gc.disable()
        try:
            for run, samples in (first, second) if seed % 2 else (second, first):
                samples.append(run(seed))
        finally:
            gc.enable()
    return first[1][1:], second[1][1:]


def alternate_and_close(base, contender, rounds, run, collector=False):
    """Samples of `run(calls, seed)` for the calls of both, which are closed afterwards."""
    with closing(base), closing(contender):
        first, second = partial(run, base), partial(run, contender)
        return alternate(first, second, rounds, collector)


def schedule_and_cancel(contender_class, kind, oldest, pending, rounds, collector):
    def run(calls, seed):
        return calls.seconds(delays_of(kind, PAIRS, seed), oldest)

    base, contender = LoopCalls(kind, pending), contender_class(kind, pending)
    return alternate_and_close(base, contender, rounds, run, collector)


def threads_beside_one(kind, oldest, pending, rounds):
    def run(calls, seed):
        return calls.seconds_of_threads(delays_of(kind, PAIRS, seed), oldest)

    single, many = ServiceCalls(kind, pending), ServiceCalls(kind, pending, THREADS)
    return alternate_and_close(single, many, rounds, run)


class Entry:
    """What `separate_threads` make: as large as a call."""

    __slots__ = ("args", "callback", "context", "handle", "moment", "service")


def separate_threads(rounds):
    """One thread and several that make objects and share nothing but the GIL."""

    def fill(count):
        entries = []
        for _ in range(count):
            entry = Entry()
            entry.moment, entry.callback = time.monotonic_ns() + len(entries), nothing
            entries.append(entry)
            if len(entries) > BATCH:
                entries.clear()

    with ThreadPoolExecutor(1) as single, ThreadPoolExecutor(THREADS) as many:
        return alternate(
            lambda _: seconds_in(single, fill, [2 * PAIRS]),
            lambda _: seconds_in(many, fill, [2 * PAIRS // THREADS] * THREADS),
            rounds,
        )


# Timeouts


def timeouts(pending, rounds):
    """`async with asyncio.timeout(30.0)` that does not expire, on asyncio's loop and on a wheel's,
    beside `pending` other calls of each.
    """

    async def measured():
        start = time.process_time()
        for _ in range(PAIRS // TASKS_BETWEEN):
            for _ in range(TASKS_BETWEEN):
                async with asyncio.timeout(30.0):
                    pass
            await asyncio.sleep(0)
        return time.process_time() - start

    def run(calls, seed):
        return calls.loop.run_until_complete(measured())

    loops = (LoopCalls("uniform", pending, make) for make in (asyncio.new_event_loop, WHEEL_LOOP))
    return alternate_and_close(*loops, rounds, run)


# A million pending


def idle_and_memory(pending):
    """(share of a core while nothing is due for 10 s, bytes per call)."""
    gc.collect()
    before = memory()
    timer = SystemTimer(CascadingWheel())
    dice = random.Random(1)
    calls = [timer.schedule_after(dice.uniform(600, 4000), nothing) for _ in range(pending)]
    assert timer.size == pending
    gc.collect()
    held = memory() - before - 8 * pending  # our own list of the calls
    time.sleep(0.5)  # idle CPU is measured in real time, after what the calls set off
    used = time.process_time()
    time.sleep(10)
    used = time.process_time() - used
    timer.close()
    del calls
    return used / 10, held / pending


def memory():
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def spread(late):
    """p50, p99, p99.9 and maximum, in ms, of lateness in ns, as text."""
    names = ("p50", "p99", "p99.9", "max")
    values = np.quantile(late, [0.5, 0.99, 0.999, 1]) / 1e6
    return " ".join(f"{name} {ms:.2f}" for name, ms in zip(names, values, strict=True)) + " ms"


def moments_of(rate, seconds):
    """Random moments, from two seconds after now."""
    start = time.monotonic() + 2
    return (start + np.random.default_rng(2).uniform(0, seconds, rate * seconds)).tolist()


def others_of(pending):
    return np.random.default_rng(1).uniform(600, 4000, pending).tolist()


def lateness(pending, rate, seconds=5):
    """Lateness of `rate` expiries per second beside `pending` others, and the share of a core."""
    timer, late, now = SystemTimer(CascadingWheel(capacity=2 * pending)), [], time.monotonic_ns
    for delay in others_of(pending):
        timer.schedule_after(delay, nothing)
    assert timer.size == pending
    gc.collect()
    gc.freeze()  # as a server with many long-lived objects does: a full collection takes a second
    moments = moments_of(rate, seconds)
    for moment in moments:
        timer.schedule_at(moment, lambda due: late.append(now() - due), int(moment * 1e9))
    assert time.monotonic() < min(moments), "scheduled too late"
    time.sleep(max(0, min(moments) - time.monotonic()))
    used = time.process_time()
    time.sleep(seconds + 1)
    used = time.process_time() - used
    timer.close()
    gc.unfreeze()
    assert len(late) == len(moments)
    assert min(late) >= 0
    return spread(late), used / seconds


def lateness_of_a_loop(make_loop, pending, rate, seconds=5):
    """The same on a loop."""
    late, now = [], time.monotonic_ns

    async def main():
        loop = asyncio.get_running_loop()
        handles = [loop.call_later(delay, nothing) for delay in others_of(pending)]
        await asyncio.sleep(0.1)
        gc.collect()
        gc.freeze()
        for moment in moments_of(rate, seconds):
            loop.call_at(moment, lambda due: late.append(now() - due), int(moment * 1e9))
        await asyncio.sleep(seconds + 3)
        return len(handles)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    gc.unfreeze()
    assert len(late) == rate * seconds
    return spread(late)


def back_pressure(collecting, threads=8, seconds=15):
    """Threads that schedule at full speed: how many calls were gathered at most, and the lateness
    of calls that are due in 10 ms.

    Millions of calls are pending in the end. Collecting garbage stops all threads while it looks at
    them, a dozen times, for up to half a second.
    """
    (gc.enable if collecting else gc.disable)()
    timer, late, largest = SystemTimer(CascadingWheel()), [], 0
    stop = time.monotonic() + seconds

    def work():
        while time.monotonic() < stop:
            for _ in range(100):
                timer.schedule_after(3600, nothing)

    pool = [threading.Thread(target=work) for _ in range(threads)]
    for thread in pool:
        thread.start()
    while time.monotonic() < stop:
        due = time.monotonic_ns() + 10_000_000
        timer.schedule_after(0.01, lambda due=due: late.append(time.monotonic_ns() - due))
        for _ in range(10):
            # Private: no public member says how much is gathered.
            largest = max(largest, len(timer._pending.new))
            time.sleep(0.005)
    for thread in pool:
        thread.join()
    held = timer.size
    timer.close()
    gc.enable()
    return largest, held, spread(late)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pending", type=int, default=PENDING)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--collector", action="store_true", help="leave the garbage collector on")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, {options.pending:,} pending, {options.rounds} rounds; ns of CPU"
    )

    def show(what, samples, asked):
        base, contender = samples
        ratios = [a / b for a, b in zip(base, contender, strict=True)]
        low, middle, high = quantiles(ratios, n=4)
        each = [min(times) / PAIRS * 1e9 for times in samples]
        print(
            f"{what:<44} {each[0]:>6.0f} {each[1]:>6.0f} {each[0] / each[1]:>5.2f} x"
            f"  {middle:.2f} x [{low:.2f} .. {high:.2f}]  asked for {asked}",
            flush=True,
        )

    wheel_loop = partial(LoopCalls, make_loop=WHEEL_LOOP)
    contenders = {
        ("", "constant"): (ServiceCalls, 2.5),
        ("", "uniform"): (ServiceCalls, 1.5),
        ("loop: ", "constant"): (wheel_loop, 1.5),
        ("loop: ", "uniform"): (wheel_loop, 1.5),
    }
    orders = {"same": False, "oldest": True}
    for (name, kind), (contender, asked) in contenders.items():
        for which, oldest in orders.items():
            samples = schedule_and_cancel(
                contender, kind, oldest, options.pending, options.rounds, options.collector
            )
            show(f"{name}schedule, cancel the {which}, {kind} delays", samples, asked)
    for which, oldest in orders.items():
        samples = threads_beside_one("constant", oldest, options.pending, options.rounds)
        show(f"{THREADS} threads, to one, cancel the {which}", samples, 1)
    show(f"{THREADS} threads that share nothing, to one", separate_threads(options.rounds), 1)
    show("timeout, nothing else pending", timeouts(0, options.rounds), 1.5)
    show("timeout beside the pending", timeouts(options.pending, options.rounds), 3)
    # In an empty context, as a program starts with: what ours holds costs 64 bytes a copy.
    share, size = Context().run(idle_and_memory, options.many)
    print(f"{options.many:,} pending: idle {share:.3%} of a core, asked for 0.01 %; ", end="")
    print(f"{size:.0f} bytes per call, asked for 220", flush=True)
    late, used = lateness(options.many, 20_000)
    print(f"lateness at 20 000/s: {late}; CPU {used:.1%}", flush=True)
    for name, make_loop in (("asyncio's", asyncio.new_event_loop), ("a wheel's", WHEEL_LOOP)):
        late = lateness_of_a_loop(make_loop, options.many, 20_000)
        print(f"lateness on {name} loop: {late}", flush=True)
    for collecting in (True, False):
        largest, held, late = back_pressure(collecting)
        print(f"8 threads scheduled {held:,} calls, collector {'on' if collecting else 'off'}:")
        print(f"  at most {largest:,} gathered; lateness of 10 ms: {late}")


if __name__ == "__main__":
    main()
