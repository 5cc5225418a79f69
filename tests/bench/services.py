"""Compare the services with asyncio in the same process; measure a million pending calls.

    python -m tests.bench.services [--rounds 7] [--pending 100000] [--collector]

Rounds of asyncio and of the service take turns, so that each ratio compares runs of the same
seconds. CPU time of the whole process is measured, so that other programs interfere little. Calls
are measured with the garbage collector off, as in `timeit`, because a full collection scans the
objects of both sides and is charged to the one that is running; `--collector` leaves it on. The
output is the minimum of each side and their ratio, and the median and quartiles of the rounds'
ratios.
"""

import argparse
import asyncio
import gc
import os
import random
import resource
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from itertools import repeat
from pathlib import Path
from statistics import quantiles

import numpy as np

from timers import CascadingWheel
from timers.services import AsyncTimer, SystemTimer
from timers.services.calls import LIST_LIMIT

PENDING = 100_000
PAIRS = 50_000  # per round
TASKS_BETWEEN = 1000  # pairs after which asyncio's loop runs once and cleans its heap
THREADS = 4
SHORTEST, LONGEST = 1, 2000  # seconds


def nothing():
    """The callback."""


def delays_of(kind, count, seed):
    dice = random.Random(seed)
    if kind == "constant":
        return [30.0] * count
    return [dice.uniform(SHORTEST, LONGEST) for _ in range(count)]


def seconds_in(pool, work, *arguments):
    """CPU seconds of one call of `work` in each of the pool's threads.

    The threads already exist: starting four of them would add some percent to a round.
    """
    start = time.process_time()
    list(pool.map(work, *arguments))
    return time.process_time() - start


# Schedule and cancel


class AsyncioCalls:
    """`call_later` and `cancel` with `pending` other calls; a round has `PAIRS` pairs."""

    def __init__(self, kind, pending):
        self.loop = asyncio.new_event_loop()
        self.others = deque(
            self.loop.call_later(delay, nothing) for delay in delays_of(kind, pending, 0)
        )

    def seconds(self, delays, oldest):
        """CPU seconds of one round."""
        return self.loop.run_until_complete(self.round(delays, oldest))

    async def round(self, delays, oldest):
        call_later, others = self.loop.call_later, self.others
        start = time.process_time()
        for first in range(0, len(delays), TASKS_BETWEEN):
            if oldest:
                for delay in delays[first : first + TASKS_BETWEEN]:
                    others.append(call_later(delay, nothing))
                    others.popleft().cancel()
            else:
                for delay in delays[first : first + TASKS_BETWEEN]:
                    call_later(delay, nothing).cancel()
            await asyncio.sleep(0)
        return time.process_time() - start

    def close(self):
        self.loop.close()


class ServiceCalls:
    """The same for `schedule_after` and `cancel`, on this thread or divided among `threads` others.

    The other calls are divided among them as well: it is costly to touch on one core what was
    scheduled on another.
    """

    def __init__(self, kind, pending, threads=1):
        self.timer = SystemTimer(CascadingWheel(capacity=2 * pending))
        calls = [self.timer.schedule_after(delay, nothing) for delay in delays_of(kind, pending, 0)]
        self.pool = ThreadPoolExecutor(threads)
        self.others = [deque(calls[first::threads]) for first in range(threads)]
        expired = pending - self.timer.size
        assert expired <= pending // 100  # the shortest of random delays is a second

    def seconds(self, delays, oldest):
        """CPU seconds of one round on this thread, including those of the driver's thread."""
        start = time.process_time()
        self.round(delays, oldest, self.others[0])
        return time.process_time() - start

    def seconds_of_threads(self, delays, oldest):
        """The same, on the threads."""
        share = len(delays) // len(self.others)
        parts = [delays[i * share :][:share] for i in range(len(self.others))]
        return seconds_in(self.pool, self.round, parts, repeat(oldest), self.others)

    def round(self, delays, oldest, others):
        schedule_after = self.timer.schedule_after
        if oldest:
            for delay in delays:
                others.append(schedule_after(delay, nothing))
                others.popleft().cancel()
        else:
            for delay in delays:
                schedule_after(delay, nothing).cancel()

    def close(self):
        self.pool.shutdown()
        self.timer.close()


def alternate(base, contender, rounds, collector=False):
    """Samples of both in seconds, after a warm-up round each; they take turns in going first."""
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


def schedule_and_cancel(kind, oldest, pending, rounds, collector):
    base, contender = AsyncioCalls(kind, pending), ServiceCalls(kind, pending)
    try:
        return alternate(
            lambda seed: base.seconds(delays_of(kind, PAIRS, seed), oldest),
            lambda seed: contender.seconds(delays_of(kind, PAIRS, seed), oldest),
            rounds,
            collector,
        )
    finally:
        base.close()
        contender.close()


def threads_beside_one(kind, oldest, pending, rounds):
    one, many = ServiceCalls(kind, pending), ServiceCalls(kind, pending, THREADS)
    try:
        return alternate(
            lambda seed: one.seconds_of_threads(delays_of(kind, PAIRS, seed), oldest),
            lambda seed: many.seconds_of_threads(delays_of(kind, PAIRS, seed), oldest),
            rounds,
        )
    finally:
        one.close()
        many.close()


class Entry:
    """An object of the size of a call."""

    __slots__ = ("args", "callback", "context", "handle", "moment", "service")


def separate_threads(rounds):
    """One thread, and several, that create objects and share only the GIL."""

    def fill(count):
        entries = []
        for _ in range(count):
            entry = Entry()
            entry.moment, entry.callback = time.monotonic_ns() + len(entries), nothing
            entries.append(entry)
            if len(entries) > LIST_LIMIT:
                entries.clear()

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(THREADS) as many:
        return alternate(
            lambda _: seconds_in(one, fill, [2 * PAIRS]),
            lambda _: seconds_in(many, fill, [2 * PAIRS // THREADS] * THREADS),
            rounds,
        )


# Timeouts


def timeouts(pending, rounds):
    """`async with timeout(30.0)` that does not expire, with `pending` other calls of each."""

    async def measured(timeout):
        gc.collect()  # else the full collection due to the pending calls falls into a round
        start = time.process_time()
        for _ in range(PAIRS // TASKS_BETWEEN):
            for _ in range(TASKS_BETWEEN):
                async with timeout(30.0):
                    pass
            await asyncio.sleep(0)
        return time.process_time() - start

    async def main():
        loop = asyncio.get_running_loop()
        own, other = [], []
        with AsyncTimer(CascadingWheel(capacity=2 * max(pending, 1))) as timer:
            for seed in range(rounds + 1):
                # The loop only has the pending calls of the side that is measured.
                delays = delays_of("uniform", pending, 0)
                handles = [loop.call_later(delay, nothing) for delay in delays]
                first = await measured(asyncio.timeout)
                for handle in handles:
                    handle.cancel()
                del handles
                await asyncio.sleep(0)
                calls = [timer.schedule_after(delay, nothing) for delay in delays]
                assert timer.size == pending
                second = await measured(timer.timeout)
                for call in calls:
                    call.cancel()
                if seed:
                    own.append(first)
                    other.append(second)
        return own, other

    return asyncio.run(main())


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
    held = memory() - before - 8 * pending  # our list of the calls
    time.sleep(0.5)  # idle CPU is measured in real time, after the work of scheduling
    used = time.process_time()
    time.sleep(10)
    used = time.process_time() - used
    timer.close()
    del calls
    return used / 10, held / pending


def memory():
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def lateness(pending, rate, seconds=5):
    """Lateness (p50, p99, maximum) in ms of `rate` expiries/s with `pending` others, and CPU."""
    timer = SystemTimer(CascadingWheel(capacity=2 * pending))
    late = []
    for delay in np.random.default_rng(1).uniform(600, 4000, pending).tolist():
        timer.schedule_after(delay, nothing)
    assert timer.size == pending
    gc.collect()
    gc.freeze()  # as in a server with many long-lived objects: a full collection takes a second
    now = time.monotonic_ns

    def callback(due):
        late.append(now() - due)

    start = time.monotonic() + 2
    moments = start + np.random.default_rng(2).uniform(0, seconds, rate * seconds)
    for moment in moments.tolist():
        timer.schedule_at(moment, callback, int(moment * 1e9))
    ready = time.monotonic() - start
    used = time.process_time()
    time.sleep(seconds + 2)
    used = time.process_time() - used
    timer.close()
    gc.unfreeze()
    assert ready < 0, f"scheduled {ready} s too late"
    assert len(late) == rate * seconds
    assert min(late) >= 0
    return *np.quantile(late, [0.5, 0.99, 1]) / 1e6, used / seconds


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

    def show(label, samples, target):
        base, contender = samples
        ratios = [a / b for a, b in zip(base, contender, strict=True)]
        low, middle, high = quantiles(ratios, n=4)
        a, b = (min(times) / PAIRS * 1e9 for times in samples)
        print(
            f"{label:<44} {a:>6.0f} {b:>6.0f} {a / b:>5.2f} x"
            f"  {middle:.2f} x [{low:.2f} .. {high:.2f}]  target {target}",
            flush=True,
        )

    for kind in ("constant", "uniform"):
        for oldest in (False, True):
            victim = "oldest" if oldest else "same"
            samples = schedule_and_cancel(
                kind, oldest, options.pending, options.rounds, options.collector
            )
            show(f"schedule, cancel the {victim}, {kind} delays", samples, 3)
    for oldest in (False, True):
        victim = "oldest" if oldest else "same"
        samples = threads_beside_one("constant", oldest, options.pending, options.rounds)
        show(f"{THREADS} threads, to one, cancel the {victim}", samples, 1)
    show(f"{THREADS} threads that share nothing, to one", separate_threads(options.rounds), 1)
    show("timeout, nothing else pending", timeouts(0, options.rounds), 1.5)
    show("timeout beside the pending", timeouts(options.pending, options.rounds), 3)
    # In an empty context, as at the start of a program; `import pytest` adds 64 bytes per copy.
    share, size = Context().run(idle_and_memory, options.many)
    print(f"{options.many:,} pending: idle {share:.3%} of a core, target 0.5 %; ", end="")
    print(f"{size:.0f} bytes per call, target 250", flush=True)
    p50, p99, maximum, used = lateness(options.many, 20_000)
    print(f"lateness at 20 000/s: p50 {p50:.2f} p99 {p99:.2f} max {maximum:.2f} ms; CPU {used:.1%}")


if __name__ == "__main__":
    main()
