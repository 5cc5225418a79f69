"""Ten programs, the timer that an engineer would expect for each, and why.

The expectations were written before the cost model, except that a program may now keep what it has:
asyncio's loop, or `sched`. `tests.bench.answers` compares them with the answers, and both with
replays. A difference of less than 1 % of a core does not decide: of the timers within that, the
exact ones come first, then those with less memory.
"""

from typing import NamedTuple


class Case(NamedTuple):
    """A program, and the timer that is expected for it. Times are in milliseconds."""

    program: str
    rate: float  # timers started per second
    timeout: float
    cancelled: float  # share
    answer: float  # mean time until a timer is cancelled
    max_late: int
    caller: str
    expected: str
    reason: str


CASES = (
    Case(
        "Python web server, 2 000 connections, 30 s idle",
        *(1_000, 30_000, 0.999, 2_000, 100),
        "asyncio",
        "asyncio",
        "1 000 re-arms a second take a few ms with any timer; to leave the loop is work",
    ),
    Case(
        "broker, 50 000 requests/s, 200 ms",
        *(50_000, 200, 0.99, 10, 1),
        "compiled",
        "delay-queue",
        "only 600 timers are pending at once; the heap is exact and takes 24 bytes for each",
    ),
    Case(
        "game server, ticks of 100 ms",
        *(2_000, 3_000, 0.0, 1_500, 100),
        "batches",
        "delay-queue",
        "2 000 expiries a second cost less than 0.1 % of a core; an exact timer is as good",
    ),
    Case(
        "crawler, 500 requests/s, 30 s",
        *(500, 30_000, 0.9, 1_000, 100),
        "asyncio",
        "asyncio",
        "2 000 timers pending, few calls: the loop has what they need",
    ),
    Case(
        "RPC client library, 20 000 calls/s, 5 s",
        *(20_000, 5_000, 0.999, 20, 10),
        "service",
        "delay-queue",
        "500 timers pending; the service costs more than any of its timers",
    ),
    Case(
        "retries with backoff to an hour",
        *(50, 600_000, 0.0, 60_000, 1_000),
        "python",
        "delay-queue",
        "30 000 timers pending that all fire; the heap needs no horizon",
    ),
    Case(
        "TTLs of a cache with 1 000 000 keys",
        *(1_666, 600_000, 0.0, 60_000, 1_000),
        "python",
        "dense-wheel",
        "a million pending that all fire: arrays move in whole cache lines, and take 20 bytes each",
    ),
    Case(
        "kernel-like mix, 1 000 000 timers/s",
        *(1_000_000, 5_000, 0.99, 50, 1),
        "compiled",
        "cascading-wheel",
        "a million cancels a second; Linux had this wheel for this mix",
    ),
    Case(
        "500 cron jobs",
        *(0.14, 3_600_000, 0.0, 60_000, 1_000),
        "python",
        "sched",
        "a few calls a minute cost nothing, with what Python has, too",
    ),
    Case(
        "heartbeats of 1 000 executors, 120 s",
        *(100, 120_000, 0.999, 10_000, 1_000),
        "python",
        "sched",
        "100 re-arms a second cost half a percent with what Python has, although it searches",
    ),
)
