"""A stored run in which every value is another prime, so that no figure can stand in for another.

Medians differ from means, the first sample is neither the least nor the median, and who is fastest
differs from task to task. What the run holds is kept beside it, keyed by what it belongs to, so
that tests need not read it the way that reports do.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from compare.trial.bench.task import HOLD, TASKS, Task
from compare.trial.results.schema import Row
from compare.trial.results.store import COMPARISON, Run
from reports.summary import StoredContestant, Summary
from tests.reports.stored import memory_rows, replay_rows, task_rows

MOST = 1_200_000
SIZES = (1_000, 20_000, 500_000)
FACTORS = dict(zip(SIZES, (1e-4, 1e-2, 10.0), strict=True))  # ns, µs and ms
SHAPE = (1.0, 1.02, 1.03, 1.05, 1.07, 1.16, 1.2, 1.25)
"""Of samples: their mean is not their median, and their interval is not their range."""
ORDER = (6, 0, 3, 7, 1, 4, 2, 5)  # in which samples are taken, from the least to the greatest

# label, engine, lateness; the yardstick is neither the first nor the last
WHO = {
    "cascading-wheel": ("compiled", 0, 0),
    "delay-queue": ("compiled", 0, 0),
    "hashed-wheel/tick=10": ("compiled", 1, 10),
    "hashed-wheel": ("compiled", 0, 100),
    "hierarchical-wheel/tick=5": ("compiled", -4, 0),
    "heapq-delay-queue": ("python loop", 0, 0),
    "some.where:Mine": ("compiled", -12, 7),
}
LABELS = tuple(WHO)
SOURCES = {"logs/dns.trace": "us", "clients.trace/": "ms", "keepalive": "s", "uniform": "unit"}
OWN = ("logs/dns.trace", "clients.trace/")
COUNTERS = ("comparisons", "refiled", "slots_visited")
ZERO = "empty_polls"  # for all
WHEELS = LABELS[2:4]
CAPACITIES = (700, 9_000, 60_000)
PAUSES = {LABELS[0]: 0, LABELS[1]: 1}  # how many were measured; of all others len(SHAPE)
COUNTS = (
    "scheduled",
    "cancelled",
    "rescheduled",
    "fired",
    "pending",
    "most_pending",
    "wakeups",
    "idle_wakeups",
    "nbytes",
)
LATENESS = "lateness_min", "lateness_median", "lateness_max"

OVER = "heapq-delay-queue", TASKS[3], SIZES[1]  # takes longer than the budget
OVER_REPLAY = "heapq-delay-queue", "keepalive"
SILENT = "some.where:Mine", "uniform"  # nothing fires
ONE_AT_ZERO = "cascading-wheel"  # one counter of it is zero
IDLE = "some.where:Mine", TASKS[1]  # all its counters are zero
SMALL = "hierarchical-wheel/tick=5"  # its memory is not measured at the greatest capacity


class Supply:
    """Primes, each given out once. Neighbours differ in the three digits that are shown."""

    def __init__(self) -> None:
        is_prime = np.ones(MOST, bool)
        for divisor in range(2, isqrt(MOST) + 1):
            is_prime[2 * divisor :: divisor] = False
        self.left = np.flatnonzero(is_prime)
        self.calls = 0

    def near(self, value: float) -> int:
        """The next prime from a value on that was not given out."""
        place = np.searchsorted(self.left, value)
        prime = int(self.left[place])
        self.left = np.delete(self.left, place)
        return prime

    def __next__(self) -> int:
        self.calls += 1
        return self.near(10_007 * 1.031 ** (self.calls * 37 % 149))

    def groups(self, number: int) -> list[list[int]]:
        """As many groups of samples that do not overlap, from the least to the greatest."""
        self.calls += 1
        first = 100_003 * 1.013 ** (self.calls * 5 % 17)
        return [[self.near(first * 1.31**n * shape) for shape in SHAPE] for n in range(number)]


@dataclass
class Primes:
    """The rows of the run, and what they hold."""

    table: list[Row] = field(default_factory=list)
    samples: dict[tuple[str, Task, int], list[float]] = field(default_factory=dict)
    counts: dict[tuple[str, Task, str, int], tuple[int, int]] = field(default_factory=dict)
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    memory: dict[tuple[str, int], float] = field(default_factory=dict)
    growth: dict[tuple[str, int], tuple[int, int, list[float]]] = field(default_factory=dict)
    slots: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    prime: Supply = field(default_factory=Supply)

    @cached_property
    def run(self) -> Run:
        return Run(Path("runs/primes"), manifest(self), self.table)

    def measure(self, label: str, task: Task, size: int, samples: list[float]) -> None:
        if (label, task) == OVER[:2] and size >= OVER[2]:
            self.table += [*task_rows(label, task, size, None)] * (size == OVER[2])
            return
        self.samples[label, task, size] = samples
        self.table += task_rows(label, task, size, samples)

    def count(self, label: str, task: Task, size: int) -> None:
        if WHO[label][0] != "compiled":
            return
        for counter in (*COUNTERS, ZERO):
            zero = counter == ZERO or (label, counter) == (ONE_AT_ZERO, COUNTERS[1])
            zero = zero or (label, task) == IDLE
            count = 0 if zero else next(self.prime)
            operations = self.prime.near(3001 * 1.07 ** (len(self.counts) % 31))
            self.counts[label, task, counter, size] = count, operations
            self.table += task_rows(label, task, size, (), **{counter: count / operations})

    def replay(self, label: str, source: str, samples: list[float]) -> None:
        about = self.sources[source]
        if (label, source) == OVER_REPLAY:
            self.table += replay_rows(label, source, None)
            return
        _, low, high = WHO[label]
        late = (None,) * 3 if (label, source) == SILENT else (low, (low + high) / 2, high)
        row = {name: next(self.prime) for name in COUNTS} | dict(zip(LATENESS, late, strict=True))
        compiled = WHO[label][0] == "compiled"
        row["comparisons"] = next(self.prime) / about["operations"] if compiled else None
        self.rows[label, source], self.times[label, source] = row, samples
        self.table += replay_rows(label, source, samples, **row)

    def fill(self, label: str, capacity: int) -> None:
        self.memory[label, capacity] = nbytes = next(self.prime) / 1000
        peak, grown = next(self.prime), next(self.prime)
        pauses = shuffled(self.prime.groups(1)[0], 1e-8)[: PAUSES.get(label)]
        self.growth[label, capacity] = peak, grown, pauses
        held = {"at_rest": nbytes, "at_peak": peak / capacity, "grown": grown / capacity}
        ms = [1e3 * seconds for seconds in pauses]
        self.table += memory_rows(label, capacity, ms, **held)

    def hold(self, label: str, size: int) -> None:
        pending = next(self.prime)
        in_slots = self.prime.near(pending / (3 + len(self.slots)))
        self.slots[label, size] = in_slots, pending
        self.table += task_rows(label, HOLD, size, (), in_slots=in_slots / pending)


def traits_of(label: str) -> dict[str, Any]:
    """Each trait is a text that names the trait and the contestant."""
    engine, low, high = WHO.get(label, ("compiled", 0, 0))
    timer, *settings = label.split("/")
    own = {name: int(value) for name, value in (setting.split("=") for setting in settings)}
    in_ms = label == "hashed-wheel"
    texts = ("name", "scheme", "summary", "due_at", "horizon", "jumps", "suits", "drawback")
    return {name: f"the {name} of {label}" for name in (*texts, "source")} | {
        "timer": timer,
        "label": label,
        "settings": own,
        "tick": "100ms" if in_ms else own.get("tick"),
        "engine": engine,
        "parameters": {},
        "unit": "ms" if in_ms else "",
        "lateness_low": low,
        "lateness_high": high,
        "order": "fifo" if label == "delay-queue" else "unspecified",
        "order_text": f"the order_text of {label}",
        "exact_next_expiry": label == "cascading-wheel",
        "costs": [f"schedule of {label}", f"tick of {label}"],
        "deviations": [f"this of {label}", f"that of {label}"] if "tick" in label else [],
    }


def shuffled(group: list[int], factor: float) -> list[float]:
    return [group[place] * factor for place in ORDER]


def make() -> Primes:
    primes = Primes()
    prime = primes.prime
    # Contestants are met in another order than the manifest has them in, and sizes downwards.
    labels = LABELS[::-1]
    for t, task in enumerate(TASKS):
        for s, size in reversed([*enumerate(SIZES)]):
            groups = prime.groups(len(labels))
            for c, label in enumerate(labels):
                own = groups[(3 * c + t + s) % len(labels)]
                primes.measure(label, task, size, shuffled(own, FACTORS[size]))
                primes.count(label, task, size)
    for s, (source, unit) in enumerate(SOURCES.items()):
        primes.sources[source] = {
            "name": source,
            "unit": unit,
            "timers": next(prime),
            "shards": 3 if source == OWN[1] else 1,
            "operations": next(prime),
            "id_space": next(prime),
            "span": next(prime) * {"us": 10**6, "ms": 10**3}.get(unit, 1),
            "details": {"kind": f"made as {source}", "timeout": "30s"} if source in OWN else {},
            "description": None,
        }
        groups = prime.groups(len(labels))
        for c, label in enumerate(labels):
            own = groups[(2 * c + s) % len(labels)]
            primes.replay(label, source, shuffled(own, 1e-3 * 10**s))
    for capacity in CAPACITIES:
        for label in labels:
            if (label, capacity) != (SMALL, CAPACITIES[-1]):
                primes.fill(label, capacity)
    for size in SIZES:
        for label in WHEELS:
            primes.hold(label, size)
    return primes


def manifest(primes: Primes) -> dict[str, Any]:
    return {
        "created": "2026-01-31T12:00:00+00:00",
        "command": ["wheelwork", "compare", "two words"],
        "commit": "c0ffee",
        "dirty": True,
        "versions": {"wheelwork": "1.2.3", "numba": None},
        "machine": {
            "cpu": "Some CPU",
            "cores": 5,
            "memory_bytes": 3 * 2**30,
            "platform": "Some platform",
        },
        "parameters": {"traces": list(OWN), "repeats": len(SHAPE), "budget": 1.5},
        "sources": list(primes.sources.values()),
        "agreement": {"checked": "all of it", "expiries": 1_234_577},
        "contestants": [traits_of(label) for label in LABELS],
        "kind": COMPARISON,
    }


def who_of(summary: Summary, label: str) -> StoredContestant:
    (match,) = [contestant for contestant in summary.contestants if contestant.label == label]
    return match
