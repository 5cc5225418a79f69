"""Data for the page's script: the cost of every timer in every case.

The script adds the costs up, ranks the timers and words the answer. A cost is [median, low, high]
in nanoseconds, as in an `Estimate`.
"""

from collections.abc import Mapping
from typing import Any

from compare.base import formats
from compare.trial.bench.calls import SERVICE, TIMER, Way
from compare.trial.bench.task import BY_EVENT, HOLD, INSERT
from compare.trial.results.metrics import TIMED
from compare.trial.results.schema import MEMORY
from reports.statistics import Estimate
from reports.summary import StoredContestant, StoredSource, Summary
from timers.registry import TIMERS

CHEAP = 1e6
"""Nanoseconds of a core in each second of traffic, 0.1 %: below that, speed does not matter."""

SHARES = (0.0, 0.5, 0.9, 0.99, 0.999)
"""Shares of cancelled timers to choose from. All are below 1: without expiries, no order is needed.
"""

RATES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Timers started per second, to choose from."""

NOISY = 1.5
MANY = 0.05
"""The page warns if the slowest sample exceeds the fastest by the factor NOISY in more than the
share MANY of the measurements.
"""

Cost = list[float]
ByTimer = dict[int, dict[str, Cost]]
"""The number of a timer -> the cost of holding, of an insert and of an expiry."""

CALLERS: Mapping[str, Way | None] = {
    "compiled code": None,
    "Python, batches of 1000": Way(TIMER, 1_000),
    "Python, one by one": Way(TIMER, 1),
    "Python, through a SystemTimer": Way(SERVICE, 1),
}
"""Caller -> the way of calling, or None for a compiled loop."""


def costs_of(summary: Summary, way: Way | None) -> dict[int, ByTimer]:
    """The costs of a caller by the number of pending timers; empty if they were not measured.

    From Python, a schedule and a cancel were measured together, at one number of pending timers: an
    insert is half of that, and an expiry costs what it costs in a loop. There, timers without a
    kernel compete, too.
    """
    tasks = HOLD, INSERT, BY_EVENT
    if not {*summary.tasks} >= {*tasks}:
        return {}
    numbers = dict(enumerate(summary.contestants)) if way else competing(summary)
    by_size: dict[int, ByTimer] = {}
    for size in summary.sizes:
        holds, inserts, expiries = (summary.column("time", task.name, size) for task in tasks)
        if way:
            holds = inserts = summary.column("call_time", way.name, summary.others)
        by_size[size] = {
            number: {
                "hold": cost(holds[timer]),
                "insert": [ns / (2 if way else 1) for ns in cost(inserts[timer])],
                "expiry": cost(expiries[timer]),
            }
            for number, timer in numbers.items()
            if timer in holds and timer in inserts and timer in expiries
        }
    return by_size


def cost(time: Estimate) -> Cost:
    """A cost in the form that the script reads."""
    return [time.value, time.low, time.high]


def competing(summary: Summary) -> dict[int, StoredContestant]:
    """The contestants by number; Python loops only if there are no others."""
    everyone = dict(enumerate(summary.contestants))
    return {number: timer for number, timer in everyone.items() if timer.compiled} or everyone


def data(summary: Summary) -> dict[str, Any]:
    """Everything that the script needs; numbers of timers are those of `summary.contestants`."""
    rivals = competing(summary)
    costs = {name: costs_of(summary, way) for name, way in CALLERS.items()}
    callers = {name: by_size for name, by_size in costs.items() if any(by_size.values())}
    windows = {timer.precision: timer for timer in rivals.values()}
    order = sorted(windows.values(), key=lambda timer: max(map(abs, timer.lateness)))
    sources = sorted(summary.sources, key=lambda source: not source.own)
    return {
        "timers": [_timer(summary, timer) for timer in summary.contestants],
        "precisions": [summary.contestants.index(timer) for timer in order],
        "callers": callers,
        "sizes": list(summary.sizes) if callers else [],
        "shares": SHARES,
        "rates": RATES,
        "cases": [case for source in sources if (case := _case(summary, source))["costs"]],
        "cheap": CHEAP,
    }


def _timer(summary: Summary, timer: StoredContestant) -> dict[str, Any]:
    low, high = timer.lateness
    memory = summary.curves("at_rest", MEMORY).get(timer, {})
    return {
        "name": timer.plain,
        "code": code_of(timer),
        "fires": timer.precision,
        "low": low,
        "high": high,
        "unit": timer.traits["unit"],
        "memory": {size: formats.data_size(nbytes.value) for size, nbytes in memory.items()},
    }


def code_of(timer: StoredContestant) -> str:
    """The Python code that makes such a timer; where its tick is a duration, a unit is 1 ms."""
    module, _, name = TIMERS.get(timer.timer, timer.timer).rpartition(":")
    module = "timers" if timer.timer in TIMERS else module
    is_duration = isinstance(timer.traits["tick"], str)
    comment = f"  # one unit is 1 {timer.traits['unit'] or 'ms'}" if is_duration else ""
    arguments = ", ".join(f"{key}={value}" for key, value in timer.traits["parameters"].items())
    return f"from {module} import {name}\ntimer = {name}({arguments}){comment}"


def _case(summary: Summary, source: StoredSource) -> dict[str, Any]:
    """A replayed source; of its operations per second, and of its timers."""
    replays = summary.column("replay_time", source.name)
    rivals = {number: timer for number, timer in competing(summary).items() if timer in replays}
    first = next(iter(rivals.values()), None)

    def number(metric: str) -> float:
        return (summary.value(first, source, metric) if first else None) or 0

    rearmed = number("rescheduled")  # which costs about a cancel and an insert
    started = number("scheduled") + rearmed
    return {
        "name": summary.called(source),
        "own": source.own and not source.generated,
        "together": source.together,
        "rate": source.rate,
        "timers_per_second": started / source.seconds if source.seconds else 0,
        "pending": int(number("most_pending")),
        "share": (number("cancelled") + rearmed) / max(started, 1),
        "costs": {number: cost(replays[timer]) for number, timer in rivals.items()},
    }


def noise(summary: Summary) -> str:
    """A warning where the machine was busy. Shards differ by nature."""
    times = summary.where(metric=TIMED).figures.values()
    repeated = [time for time in times if time.n > 1]
    noisy = sum(time.scatter > NOISY for time in repeated)
    if summary.of_shards or noisy <= MANY * len(repeated):
        return ""
    return (
        f"In {noisy} of {formats.counted(len(repeated), 'measurement')} the slowest sample took "
        f"more than {NOISY:g} times as long as the fastest: the machine was busy. Do not rely on "
        "small differences in time. The counted work is not affected."
    )
