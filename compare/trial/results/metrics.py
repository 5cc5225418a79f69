"""The registry of metrics: what each is called, how it is written, and which statistics are shown.

The page, JSON and Markdown follow this table. A statistic is a name in `statistics`; see
`reports.statistics.statistic`.
"""

from collections.abc import Callable
from typing import NamedTuple

from compare.base import formats, quantiles

TIME = (
    "median",
    "least",
    "p90",
    "greatest",
    "ratio",
)
"""The statistics of the time of an operation."""

LATENCIES = ("start", "cancel", "rearm", "advance")
"""The kinds of operations whose latencies are measured."""

TIMED = ("time", "replay_time")
"""The metrics that have a budget, and that two runs are compared by."""

REPEATED = (
    *TIMED,
    *("cpu_us", "insert_time", "cancel_time", "poll_time", "purge_time"),
    *("with_timeout", "without"),
)
"""The times whose samples differ only by noise: of comparisons, trials and claims."""

LOWER, HIGHER = "lower", "higher"


class Metric(NamedTuple):
    """A metric of the table of results."""

    title: str
    form: Callable[[float], str] = formats.count
    unit: str = ""
    better: str = ""  # LOWER, HIGHER, or "" for a value that is neither good nor bad
    statistics: tuple[str, ...] = ("median",)
    per_operation: bool = False  # a count that is divided by the operations

    @property
    def heading(self) -> str:
        """The title, with the unit unless the numbers have it."""
        return f"{self.title}{self.bracket}"

    @property
    def bracket(self) -> str:
        """The unit in brackets, unless the numbers have it."""
        return f" [{self.unit}]" if self.unit and self.form not in _WITH_UNIT else ""


_WITH_UNIT = (formats.data_size, formats.nanoseconds, formats.microseconds, formats.share)

_COUNTERS = {
    "comparisons": "comparisons",
    "timers_touched": "timers looked at",
    "slots_visited": "slots visited",
    "refiled": "timers re-filed",
    "queue_offers": "buckets queued",
    "queue_polls": "buckets polled",
    "empty_polls": "polled but empty",
    "clock_visits": "stops of the clock",
    "advances": "calls to advance",
    "idle_advances": "calls with no expiry",
}


COSTS = {
    "pair": "a timer that is cancelled",
    "fire": "a timer that fires",
    "step": "a step of the clock",
    "call": "a call",
    "firing": "a step in which a timer fires",
    "moment": "a unit of time at which a timer is due",
    "unit": "a unit of time",
}
"""The constants of the cost of traffic, and what each is paid for."""


def _nbytes(title: str) -> Metric:
    return Metric(title, formats.amount, "B", LOWER)


def _counter(title: str) -> Metric:
    return Metric(title, formats.amount, better=LOWER, per_operation=True)


METRICS = {
    # tasks, against the number of pending timers
    "time": Metric("time per operation", formats.significant, "ns", LOWER, TIME),
    "operations": Metric("operations"),
    **{name: _counter(title) for name, title in _COUNTERS.items()},
    "in_slots": Metric("in slots", formats.share),
    # memory
    "at_rest": _nbytes("at rest"),
    "at_peak": _nbytes("at the peak"),
    "grown": _nbytes("after growth"),
    "process_at_rest": _nbytes("process, at rest"),
    "process_at_peak": _nbytes("process, at the peak"),
    "process_grown": _nbytes("process, after growth"),
    "pause": Metric("pause", formats.significant, "ms", LOWER, ("range",)),
    # the costs of a caller
    "pair_time": Metric("start and cancel", formats.significant, "ns", LOWER, ("range",)),
    "fire_time": Metric("start and expiry", formats.significant, "ns", LOWER, ("range",)),
    "step_time": Metric("step of the clock", formats.significant, "ns", LOWER, ("range",)),
    **{
        f"cost_{name}": Metric(title, formats.significant, "ns", LOWER, ("interval",))
        for name, title in COSTS.items()
    },
    "cost_error": Metric("error of a stated cost", formats.share, better=LOWER),
    # latencies of single operations
    **{
        f"{kind}_{name}": Metric(quantiles.title(name), formats.nanoseconds, "ns", LOWER)
        for kind in LATENCIES
        for name in quantiles.TAIL
    },
    "worst_fired": Metric("slowest: fired"),
    "worst_refiled": Metric("slowest: re-filed"),
    "worst_moment": Metric("slowest: clock"),
    "growths": Metric("times grown"),
    "rounds": Metric("rounds"),
    # timers of other languages, and the project's beside them
    "peer_time": Metric("time per operation", formats.significant, "ns", LOWER, ("range",)),
    "peer_memory": _nbytes("growth of the process"),
    **{
        f"single_{name}": Metric(
            f"{quantiles.title(name)} of single operations", formats.significant, "ns", LOWER
        )
        for name in quantiles.QUANTILES
    },
    # timers that several threads use
    "threads_cpu": Metric("CPU time", formats.significant, "ns", LOWER, ("range",)),
    "threads_wall": Metric("wall time", formats.significant, "ns", LOWER, ("range",)),
    "threads_start_p99": Metric("a start, p99", formats.nanoseconds, "ns", LOWER),
    "threads_late_p99": Metric("lateness, p99", formats.amount, "ms", LOWER),
    "threads_lost": Metric("lost", better=LOWER),
    "threads_doubled": Metric("doubled", better=LOWER),
    # replays of workloads and traces
    "replay_time": Metric(
        "time per operation, median", formats.significant, "ns", LOWER, ("range", "ratio")
    ),
    "second": Metric("cost of a second", formats.significant, "ms", LOWER, ("interval",)),
    "scheduled": Metric("scheduled"),
    "cancelled": Metric("cancelled"),
    "rescheduled": Metric("rescheduled"),
    "fired": Metric("fired"),
    "most_pending": Metric("most pending"),
    "pending": Metric("still pending"),
    "nbytes": Metric("memory", formats.data_size, "B", LOWER),
    "wakeups": Metric("wake-ups at the end"),
    "idle_wakeups": Metric("… with nothing due"),
    "driver_wakeups": Metric("wake-ups of a driver", better=LOWER),
    "driver_idle": Metric("… with nothing due", better=LOWER),
    # an hour of an idle program
    "hour_ms": Metric("CPU time", formats.significant, "ms", LOWER),
    "hour_wakeups": Metric("wake-ups", formats.whole, better=LOWER),
    "lateness_min": Metric("least lateness"),
    "lateness_median": Metric("median lateness"),
    **{
        f"lateness_{name}": Metric(f"{quantiles.title(name)} lateness")
        for name in quantiles.QUANTILES
    },
    "mismatches": Metric("mismatches", better=LOWER),
    # experiments on claims
    "levels": Metric("levels"),
    "slots_least": Metric("least slots of a level"),
    "slots_most": Metric("most slots of a level"),
    "horizon": Metric("horizon", unit="ms"),
    "level": Metric("level"),
    "refiled_each": Metric("filed again, each", formats.amount, better=LOWER),
    "work_each": Metric("steps for each timer", formats.amount, better=LOWER),
    "work_by_delays": Metric("steps, by different delays", formats.amount, better=LOWER),
    "wake_ups": Metric("wake-ups", better=LOWER),
    "idle_wake_ups": Metric("… with nothing due", better=LOWER),
    "overshoot": Metric("most overshoot", formats.share),
    "insert_work": Metric("steps of an insert", formats.amount, better=LOWER),
    "most_queued": Metric("most buckets queued", better=LOWER),
    "buckets": Metric("buckets"),
    "ticks": Metric("ticks"),
    "looked_at": Metric("timers looked at in a step", formats.amount, better=LOWER),
    "most_moved": Metric("most moved in a step", better=LOWER),
    "most_fired": Metric("most fired in a step", better=LOWER),
    "insert_time": Metric("insert", formats.significant, "ns", LOWER, ("range",)),
    "cancel_time": Metric("cancel", formats.significant, "ns", LOWER, ("range",)),
    "poll_time": Metric("poll", formats.significant, "ns", LOWER, ("range",)),
    "purge_time": Metric("purge", formats.significant, "ns", LOWER, ("range",)),
    "sustained": Metric("requests/s sustained", better=HIGHER),
    "too_many": Metric("too many requests/s", better=HIGHER),
    "median": Metric("median answer", formats.whole, "µs"),
    "quartile": Metric("upper quartile", formats.whole, "µs"),
    "closed_early": Metric("closed too early", better=LOWER),
    "silence": Metric("silence until closed", unit="s"),
    "with_timeout": Metric("with a timeout", formats.significant, "µs", LOWER, ("range",)),
    "without": Metric("without", formats.significant, "µs", LOWER, ("range",)),
    "problem": Metric("problem", str),
    # trials of a purgatory
    "rate": Metric("requests/s asked", unit="1/s"),
    "interval": Metric("limit"),
    "memory_bytes": Metric("room", formats.data_size, "B"),
    "requests": Metric("requests"),
    "achieved": Metric("requests/s achieved", unit="1/s", better=HIGHER),
    "cpu_us": Metric("CPU time per request", formats.microseconds, "us", LOWER),
    "gc_us": Metric("of it in the garbage collector", formats.microseconds, "us", LOWER),
    "peak_bytes": Metric("most memory", formats.data_size, "B", LOWER),
    **{
        f"late_{name}_ms": Metric(f"{quantiles.title(name)} lateness", formats.amount, "ms", LOWER)
        for name in quantiles.QUANTILES
    },
    # lateness against the offered load, beside quantiles of lateness
    "capacity": Metric("capacity", formats.whole, "1/s", HIGHER),
    "late_end_ms": Metric("lateness of the last call", formats.amount, "ms", LOWER),
    "undelivered": Metric("undelivered calls", formats.whole, better=LOWER),
    "share_expired": Metric("timed out", formats.share),
    "estimated_total": Metric("estimated total", formats.whole),
    "exact_total": Metric("exact total", formats.whole),
    "estimate_error": Metric("greatest error", formats.whole, better=LOWER),
    "failed": Metric("failure", str, better=LOWER),
}
"""Name -> metric, in the order of tables."""


def metric(name: str) -> Metric:
    """Return a metric. One that is not in the registry is a counter of a kernel.

    >>> metric("time").heading, metric("a_new_counter").title
    ('time per operation [ns]', 'a new counter')
    """
    return METRICS.get(name) or _counter(name.replace("_", " "))


def is_counter(name: str) -> bool:
    """Return whether a metric is a count per operation."""
    return metric(name).per_operation
