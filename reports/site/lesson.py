"""Varghese and Lauck's seven schemes in order, with their formulas and what was counted here."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compare.base import formats
from compare.trial.results.schema import Row


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
        "timers looked at for each that fires",
        "unordered-list",
        "expiry-event",
        "timers_touched",
    ),
    Scheme(
        "The ordered list",
        "Keep the list in the order of the deadlines. A tick looks at the first timer alone. "
        "Now a start has to search for its place: on average through n/2 timers where delays "
        "are spread evenly, and n/3 from the rear where they are exponential.",
        ("O(n)", "O(1)", "O(1)"),
        "comparisons for each cancel and start",
        "ordered-list",
        "hold",
        "comparisons",
    ),
    Scheme(
        "The tree",
        "A heap does not sort more than it must: each timer is due before the two below it. A "
        "start or a stop moves along one path. This is what asyncio, libuv, Java and Go keep.",
        ("O(log n)", "O(log n)", "O(1)"),
        "comparisons for each timer that fires",
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
        "timers looked at for each that fires",
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
        "comparisons for each cancel and start, 512 slots",
        "sorted-hashed-wheel",
        "hold",
        "comparisons",
    ),
    Scheme(
        "The hashed wheel with rounds",
        "Leave the slots unsorted. A start is one step again. Each tick looks at all timers of "
        "a slot, and leaves those whose round is still to come. Netty's timer is this.",
        ("O(1)", "O(1)", "O(1) on average, O(n) at worst"),
        "timers looked at for each that fires, 512 slots of 100",
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
        "cascades of each timer that fires, 20 slots a level",
        "hierarchical-wheel",
        "expiry-event",
        "refiled",
        "hierarchical-wheel",
        10,
    ),
)


def growth(rows: Sequence[Row]) -> Iterator[tuple[Scheme, dict[str, str]]]:
    """Each scheme with what a stored run counted, by the number of pending timers."""
    values = {(row.contestant, row.subject, row.metric, row.size): row.value for row in rows}
    sizes = sorted({row.size for row in rows if row.metric == "time" and row.size is not None})
    for scheme in SCHEMES:
        key = scheme.contestant, scheme.subject, scheme.metric
        counts = {size: values.get((*key, size)) for size in sizes}
        yield (
            scheme,
            {
                formats.count(size): "over budget" if count is None else formats.amount(count)
                for size, count in counts.items()
            },
        )
