"""Claims, the experiments that measure them, and the verdicts that criteria compute.

An experiment yields rows of the table of results. A criterion reads them as `Figures` and returns a
`Verdict`; it never sees how they were measured. A figure that is missing, that a coarse clock could
not resolve or that a busy machine blurred, raises Undecided, and the claim is not decided.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from compare.trial.peers.catalogue import entry_named
from compare.trial.peers.protocol import PeerError
from compare.trial.peers.run import Peer
from compare.trial.results.schema import Row, rows_of

HOLDS, WRONG, ONLY_WHEN = "holds", "wrong", "holds only when"
NOT_DECIDED = "not decided here"
KINDS = (HOLDS, WRONG, ONLY_WHEN, NOT_DECIDED)

PROBLEM = "problem"
"""The metric of a row that says why a contestant was not measured."""

BUSIEST = 1.5
"""The second of the samples of a time may be this multiple of the least; beyond it, the machine is
busy."""

COARSEST = 0.01
"""A step of the clock may be this share of a sample."""


class Undecided(Exception):
    """The figures do not decide; the message is one line with the reason."""


class Verdict(NamedTuple):
    """The outcome of a criterion, with the figures that decide in one sentence."""

    kind: str
    text: str
    when: str = ""  # for ONLY_WHEN

    @property
    def words(self) -> str:
        """The verdict in words."""
        return f"{self.kind} {self.when}".strip()

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return f"{self.words[0].upper()}{self.words[1:]}."


class Figures:
    """The figures of an experiment, by contestant, metric and size."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.samples: dict[tuple[str, str, int | None], list[float]] = {}
        self.notes: dict[str, str] = {}  # by contestant
        for row in rows:
            if row.value is None:
                self.notes[row.contestant] = row.note or "not measured"
            else:
                key = row.contestant, row.metric, row.size
                self.samples.setdefault(key, []).append(row.value)

    def value(self, contestant: str, metric: str, size: int | None = None) -> float:
        """The median. Raises Undecided if there is none."""
        if (contestant, metric, size) not in self.samples:
            at = "" if size is None else f" at {size:,}"
            lacks = f"{metric} was not measured{at}"
            lacks = self.notes.get(contestant, self.notes.get("experiment", lacks))
            raise Undecided(f"{contestant}: {lacks}")
        return median(self.samples[contestant, metric, size])

    def curve(self, contestant: str, metric: str) -> dict[int, float]:
        """The medians by size, ascending. Raises Undecided if there are none."""
        sizes = {size for who, what, size in self.samples if (who, what) == (contestant, metric)}
        numbers = sorted(size for size in sizes if size is not None)
        if not numbers or contestant in self.notes:
            self.value(contestant, metric)
        return {size: self.value(contestant, metric, size) for size in numbers}

    def time(self, contestant: str, metric: str, size: int | None = None) -> float:
        """The least sample of a time, which is what the machine disturbed least.

        Raises Undecided if no other sample is near it.
        """
        self.value(contestant, metric, size)
        least, *others = sorted(self.samples[contestant, metric, size])
        if others and others[0] > BUSIEST * least:
            raise Undecided(
                f"The machine is too busy: all other samples of {contestant} took at least"
                f" {others[0] / least:.1f} times as long as the fastest"
            )
        return least

    def times(self, contestant: str, metric: str) -> dict[int, float]:
        """The least samples of a time by size. Raises Undecided as `time` does."""
        return {
            size: self.time(contestant, metric, size) for size in self.curve(contestant, metric)
        }

    def ratios(self, contestant: str, metric: str, base: str) -> list[float]:
        """The ratio of a figure to another one of the contestant, `base`, in each round.

        Raises Undecided if one of them was not measured.
        """
        for each in (metric, base):
            self.value(contestant, each)
        pair = (self.samples[contestant, each, None] for each in (metric, base))
        return [one / other for one, other in zip(*pair, strict=False)]

    def contestants(self, metric: str) -> list[str]:
        """The contestants that have a metric, in the order of the rows."""
        return [*dict.fromkeys(who for who, what, _ in self.samples if what == metric)]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A measurement that decides one or several claims."""

    name: str  #: the subject of its rows
    measured: str  #: what was measured, in a sentence or two
    measure: Callable[[bool], Iterable[Row]]  #: the argument asks for a quick one
    #: what the size of a row is, for all metrics or by metric
    across: str | Mapping[str, str] = ""
    timed: bool = False  #: whether it measures times, which a busy machine can change
    least: bool = False  #: whether the least sample of a time counts, instead of the median

    def across_of(self, metric: str) -> str:
        """What the size of a row of this metric is."""
        return self.across if isinstance(self.across, str) else self.across[metric]

    def rows(self, quick: bool) -> list[Row]:
        """Run it, and return its rows."""
        return [row._replace(subject=self.name) for row in self.measure(quick)]


Decide = Callable[[Figures], Verdict]


def rule(text: str) -> Callable[[Decide], Decide]:
    """State a criterion in words beside its code."""

    def stated(decide: Decide) -> Decide:
        decide.rule = text  # type: ignore[attr-defined]  # of a function
        return decide

    return stated


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim, with its experiment and its criterion."""

    number: int
    text: str  #: the claim, in one sentence
    source: str  #: where it is made, and what the primary source says
    experiment: Experiment
    decide: Decide  #: the criterion; see `rule`
    shows: tuple[str, ...] = ()  #: the metrics or contestants whose figures decide; by default, all

    @property
    def rule(self) -> str:
        """The criterion, in words."""
        return str(self.decide.rule)  # type: ignore[attr-defined]  # see `rule`

    def deciding(self, rows: Iterable[Row]) -> list[Row]:
        """The rows that a reader of the claim needs."""
        return [
            row
            for row in rows
            if not self.shows or {row.metric, row.contestant} & {*self.shows, PROBLEM}
        ]

    def verdict(self, rows: Iterable[Row]) -> Verdict:
        """Judge the rows of the experiment."""
        try:
            return self.decide(Figures(rows))
        except Undecided as reason:
            return Verdict(NOT_DECIDED, f"{reason}.")


def figures(
    contestant: str, size: int | None = None, repeat: int | None = None, /, **values: float | None
) -> Iterator[Row]:
    """Yield a row for each metric that has a value."""
    yield from rows_of(contestant, "", values, size, repeat)


def missing(contestant: str, reason: str) -> Row:
    """Return the row of a contestant that cannot be measured."""
    return Row(contestant, "", None, PROBLEM, None, None, reason)


def of_peer(
    name: str, measure: Callable[[Peer], Iterator[Row]], **parameters: int
) -> Iterator[Row]:
    """Measure a peer; one that is missing or fails gets a row with the reason."""
    try:
        yield from measure(entry_named(name).peer(**parameters))
    except PeerError as error:
        yield missing(name, str(error).removeprefix(f"{name}: "))


def timed(
    contestant: str,
    metric: str,
    seconds: float,
    operations: int,
    size: int | None = None,
    repeat: int | None = None,
) -> Iterator[Row]:
    """Yield the nanoseconds of an operation, or a row that says that the clock is too coarse."""
    step = clock_step()
    if step > COARSEST * seconds:
        yield missing(
            contestant,
            f"the clock moves in steps of {1e9 * step:,.0f} ns, and a sample took"
            f" {1e9 * seconds:,.0f} ns",
        )
    else:
        yield from figures(contestant, size, repeat, **{metric: 1e9 * seconds / operations})


def clock_step(clock: Callable[[], float] = time.thread_time) -> float:
    """The least step of a clock, in seconds."""
    steps = []
    for _ in range(5):
        before = now = clock()
        while now == before:
            now = clock()
        steps.append(now - before)
    return min(steps)


def exponent(curve: Mapping[int, float]) -> float:
    """The growth of a curve: the slope of the line that fits its logarithms best.

    >>> round(exponent({10: 5.0, 100: 50.0, 1000: 500.0}), 3), exponent({10: 7.0, 100: 7.0})
    (1.0, 0.0)
    """
    if len(curve) < 2 or min(curve.values()) <= 0:
        raise Undecided("Growth needs two sizes or more, with work at each")
    xs, ys = [math.log(x) for x in curve], [math.log(y) for y in curve.values()]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return slope / sum((a - x) ** 2 for a in xs)


def listed(values: Iterable[float], form: str = ",.4g") -> str:
    """Format numbers as a list.

    >>> listed([8, 64, 512]), listed([1, 1, 1])
    ('8, 64 and 512', '1')
    """
    *first, last = (number(value, form) for value in values)
    if {*first} == {last}:
        return last
    return f"{', '.join(first)} and {last}" if first else last


def number(value: float, form: str = ",.3g") -> str:
    """Format a number: a whole one with all its digits.

    >>> number(100_000.0), number(2.345), number(-9.0)
    ('100,000', '2.35', '-9')
    >>> number(1_234.5)
    '1,234'
    """
    whole = float(value).is_integer() or abs(value) >= 1_000
    return f"{value + 0:,.0f}" if whole else format(value, form)
