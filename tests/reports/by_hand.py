"""A run of few timers, with costs so round that the answers are worked out by hand."""

from pathlib import Path

from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.task import BY_EVENT, HOLD, INSERT
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import OVERLOAD, Row, rows_of
from compare.trial.results.store import contestant_entry
from tests.reports.stored import caller_rows, fit_rows, memory_rows, replay_rows, store, task_rows

SAMPLES = (0.98, 0.96, 1.0, 1.04, 1.02)  # of each cost; of five the interval is the range

SIZES = (1_000, 100_000)

# ns of a hold, an insert and an expiry at both sizes; None: over budget
COSTS = {
    "unordered-list": ((5, 3, 600), (5, 3, None)),
    "delay-queue": ((20, 10, 40), (60, 40, 100)),
    "hashed-wheel": ((8, 4, 12), (10, 5, 15)),
    "hashed-wheel/tick=10ms": ((7, 6, 30), (18, 8, 80)),
    "hierarchical-wheel/tick=10ms": ((11, 7, 20), (16, 9, 70)),
    "hierarchical-wheel": ((12, 8, 50), (20, 10, 60)),
    "cascading-wheel": ((10, 4, 20), (21, 6, 90)),
}

LATE = "up to 100ms late"

WITHIN = {
    "exact": set(),
    "up to 9ms early": {"hierarchical-wheel (tick=10ms)"},
    "up to 10ms late": {"hashed-wheel (tick=10ms)"},
    LATE: {"hashed-wheel (tick=10ms)", "hashed-wheel"},
}
"""The precisions on offer, and the inexact timers that keep each."""

INEXACT = set().union(*WITHIN.values())

# Traces: operations per second, and ns per operation in the order of the timers.
TRACES = {
    "dns.trace": (100_000, (400, 25, 10, 35, 40, 30, 50)),
    "quiet.trace": (100, (400, 25, 10, 35, 40, 30, 50)),
}

# ns of a timer that is cancelled, one that fires, and a step of the clock, at both sizes; in the
# order of the timers. In an asyncio program, what counts is a step in which a timer fires.
CALLS = {
    "python": (
        *(((300, 200, 2_000), (400, 200, 90_000)), ((330, 250, 500), (500, 300, 600))),
        *(((310, 150, 500), (390, 160, 700)), ((320, 180, 500), (395, 190, 700))),
        *(((340, 190, 500), (430, 200, 600)), ((345, 195, 500), (440, 205, 600))),
        ((335, 185, 500), (420, 195, 600)),
    ),
    "asyncio": (((1_000, 2_000, 0), (1_500, 2_500, 0)),) * 7,
    "compiled": (
        *(((5, 100, 1_500), (9, 130, 150_000)), ((28, 80, 15), (45, 95, 20))),
        *(((5, 3, 25), (8, 4, 250)), ((6, 4, 25), (9, 5, 100))),
        *(((8, 17, 18), (11, 18, 20)), ((9, 18, 18), (12, 19, 20))),
        ((5, 11, 30), (7, 12, 31)),
    ),
}

HOST = ((1_200, 2_500, 30_000), (1_900, 2_800, 30_000))
"""The same of asyncio's own loop."""

ONE = "delay-queue", "cascading-wheel"
"""The timers that were measured in a Python program for one delay, too: with half of the cost."""

IN_REAL_TIME = {"uvloop": (500, 1_500, 25_000), "delay-queue": (450, 1_400, 24_000)}
"""A call and cancel, a call that fires, and a wake-up on uvloop."""


def constants(caller: str, costs: tuple[float, ...]) -> Constants:
    """The constants from three of them."""
    pair, fire, step = costs
    steps = {"firing" if caller == "asyncio" else "step": step}
    return Constants(*[0.0] * 7)._replace(pair=pair, fire=fire, **steps)


def fits() -> dict[tuple[str, str], dict[str, dict[int, Fit]]]:
    """Caller and kind of traffic -> label -> size -> what is stored, without the rounds."""
    found = {
        (caller, "random"): {
            label: dict(
                zip(SIZES, (Fit(constants(caller, each), 0.1) for each in by_size), strict=True)
            )
            for label, by_size in zip(COSTS, by_timer, strict=True)
        }
        for caller, by_timer in CALLS.items()
    }
    loops = zip(SIZES, (Fit(constants("asyncio", each), 0.1) for each in HOST), strict=True)
    found["asyncio", "random"]["asyncio"] = dict(loops)
    found["python", "one"] = {
        label: {
            size: Fit(Constants(*(each / 2 for each in fit.constants)), 0.1)
            for size, fit in found["python", "random"][label].items()
        }
        for label in ONE
    }
    return found


MEMORY = {1_000: 40.0, 100_000: 28.0}
"""Bytes for each timer of the delay queue; it is not known of the others."""

OVERLOADED = {
    "SystemTimer": (200_000, {50: (1, 2, 3), 95: (1.5, 9, 10), 105: (50, 60, 61)}),
    "uvloop": (800_000, {95: (0.25, 0.5, 0.75), 105: (90, 100, 110), 50: (0.1, 0.2, 0.3)}),
}
"""The capacities, and the quantiles of lateness at each load."""

LATE_AT = ("late_p50_ms", "late_p99_ms", "late_p999_ms")

NOTHING = "Speed does not matter here"


def scaled(ns):
    return [ns * by for by in SAMPLES]


def by_hand(root: Path) -> Path:
    """Store the run."""
    rows: list[Row] = []
    for (caller, kind), by_label in fits().items():
        for label, by_size in by_label.items():
            for size, fit in by_size.items():
                rows += fit_rows(label, caller, kind, size, fit.constants, fit.error)
    for name, costs in IN_REAL_TIME.items():
        for size in SIZES:
            rows += caller_rows(name, "uvloop", size, map(scaled, costs))
    for label, by_size in COSTS.items():
        for size, costs in zip(SIZES, by_size, strict=True):
            for task, ns in zip((HOLD, INSERT, BY_EVENT), costs, strict=True):
                rows += task_rows(label, task, size, None if ns is None else scaled(ns))
        for source, (rate, costs) in TRACES.items():
            counts = {"scheduled": rate // 10, "cancelled": rate // 10 * 0.9, "rescheduled": 0}
            counts |= {"fired": 0, "lateness_min": 0, "lateness_max": 0, "most_pending": 900}
            rows += replay_rows(label, source, scaled(costs[list(COSTS).index(label)]), **counts)
    for size, nbytes in MEMORY.items():
        rows += memory_rows("delay-queue", size, [size / 1e4], at_rest=nbytes)
    for name, (capacity, by_load) in OVERLOADED.items():
        rows += rows_of(name, OVERLOAD, {"capacity": capacity})
        for load, late in by_load.items():
            rows += rows_of(name, OVERLOAD, dict(zip(LATE_AT, late, strict=True)), load)
    rows.append(Row("asyncio", OVERLOAD, None, "capacity", None, None, "took longer than 120 s"))
    about = {"unit": "ms", "span": 1000, "details": {}}
    sources = [
        about | {"name": name, "operations": rate, "timers": rate // 2}
        for name, (rate, _) in TRACES.items()
    ]
    return store(
        root,
        rows,
        parameters={"traces": list(TRACES), "budget": 1.5},
        sources=sources,
        contestants=[contestant_entry(contestant(label), ["ms"]) for label in COSTS],
    )
