"""Varghese and Lauck's seven schemes in order, with their formulas and what was counted here."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from compare.base import formats
from compare.trial.results.schema import OVER_BUDGET, Row
from timers import OrderedList


class Scheme(NamedTuple):
    """A scheme of "Hashed and Hierarchical Timing Wheels" (SOSP 1987)."""

    title: str
    idea: str
    formulas: tuple[str, str, str]  # START_TIMER, STOP_TIMER, PER_TICK_BOOKKEEPING
    counted: str  # what the figures are
    contestant: str
    subject: str
    metric: str
    shows: str = ""  # the scheme of `reports.site.explorable`
    slots: int = 0


SCHEMES: Sequence[Scheme] = (
    Scheme(
        "The unordered list",
        "Put each timer at the end of a list. Nothing is simpler to start or stop. But each "
        "tick has to look at every timer, and if nearly all timeouts are cancelled, nearly all "
        "of these looks are in vain.",
        ("O(1)", "O(1)", "O(n)"),
        "timers looked at per timer that fires",
        "unordered-list",
        "expiry-event",
        "timers_touched",
    ),
    Scheme(
        "The ordered list",
        "Keep the list in the order of the deadlines. A tick looks at the first timer alone. Now a "
        "start has to search for its place. From the rear, that takes n/2 steps on average where "
        "delays are exponential, and n/3 where they are spread evenly and all timers fire.",
        ("O(n)", "O(1)", "O(1)"),
        "comparisons per cancel and start",
        "ordered-list",
        "hold",
        "comparisons",
    ),
    Scheme(
        "The tree",
        "A heap does not sort more than it must: each timer is due before the two below it. A "
        "start or a stop moves along one path. This is what asyncio, libuv, Java and Go keep.",
        ("O(log n)", "O(log n)", "O(1)"),
        "comparisons per timer that fires",
        "delay-queue",
        "expiry-event",
        "comparisons",
        "heap",
    ),
    Scheme(
        "The simple wheel",
        "If no timer is further away than a turn, a slot for each tick needs no order at all. "
        "The hand moves one slot, and all that is in it is due. Ours keeps later deadlines in "
        "an overflow list, which each turn looks through: the figure is for delays of up to 117 "
        "turns.",
        ("O(1)", "O(1)", "O(1)"),
        "timers looked at per timer that fires",
        "simple-wheel",
        "expiry-event",
        "timers_touched",
        "ring",
        30,
    ),
    Scheme(
        "The hashed wheel with sorted slots",
        "Deadlines of all turns share the slots, as in a hash table. Each slot is an ordered "
        "list, so a tick looks at one timer, and a start searches n / slots timers.",
        ("O(1) on average, O(n) at worst", "O(1)", "O(1)"),
        "comparisons per cancel and start, 512 slots",
        "sorted-hashed-wheel",
        "hold",
        "comparisons",
    ),
    Scheme(
        "The hashed wheel with rounds",
        "Leave the slots unsorted. A start is one step again. Each tick looks at all timers of "
        "a slot, and leaves those whose round is still to come. Netty's timer is this.",
        ("O(1)", "O(1)", "O(1) on average, O(n) at worst"),
        "timers looked at per timer that fires, 512 slots of 100",
        "hashed-wheel",
        "expiry-event",
        "timers_touched",
        "hashed-wheel",
        10,
    ),
    Scheme(
        "Hierarchical wheels",
        "A clock needs 60 + 60 + 24 positions, not 86 400. A timer waits on the coarsest wheel "
        "that can tell it from now, and moves to a finer one when that wheel's hand arrives: at "
        "most once for each level. Kafka jumps from bucket to bucket; Linux before 4.8 visited "
        "each tick.",
        ("O(levels)", "O(1)", "O(1) on average"),
        "cascades per timer that fires, 20 slots a level",
        "hierarchical-wheel",
        "expiry-event",
        "refiled",
        "hierarchical-wheel",
        10,
    ),
)


def growth(rows: Sequence[Row]) -> Iterator[tuple[Scheme, dict[str, str]]]:
    """Each scheme with what a stored run counted, by the number of pending timers."""
    found = {(row.contestant, row.subject, row.metric, row.size): row.value for row in rows}
    over = {(row.contestant, row.subject, row.size) for row in rows if row.note == OVER_BUDGET}
    sizes = sorted({row.size for row in rows if row.metric == "time" and row.size is not None})
    for scheme in SCHEMES:
        counts = {}
        beyond = False  # what is over budget is not measured with more timers
        for size in sizes:
            beyond |= (scheme.contestant, scheme.subject, size) in over
            count = found.get((scheme.contestant, scheme.subject, scheme.metric, size))
            known = "over budget" if beyond else "not measured"
            counts[formats.count(size)] = known if count is None else formats.amount(count)
        yield scheme, counts


EXPONENTIAL, EVEN = (
    lambda random: 1 + int(random.expovariate(1e-6)),
    lambda random: 1 + int(2e6 * random.random()),
)
"""Two kinds of delays with a mean of a million units."""


def searched(delay: Callable[[Random], int], pending: int = 1_000) -> float:
    """The comparisons of a start in an ordered list in which all timers fire, on average.

    Each that fires starts another. It is counted once the delays of the first ones are forgotten.
    """
    timer, random = OrderedList(counting=True, capacity=pending), Random(0)

    def comparisons() -> int:
        return (timer.counters or {})["comparisons"]

    timer.schedule_many([delay(random) for _ in range(pending)])
    counted = fired = 0
    while fired < 30 * pending:
        expired = len(timer.advance(timer.next_expiry() or 0).handles)
        before = comparisons()
        timer.schedule_many([timer.now + delay(random) for _ in range(expired)])
        if fired >= 10 * pending:
            counted += comparisons() - before
        fired += expired
    return counted / (fired - 10 * pending)
