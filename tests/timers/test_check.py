"""`check()` raises InvariantError, with the rule and a dump, for each thing that can be wrong;
never for less.
"""

from collections.abc import Callable
from typing import Any

import pytest

from timers import (
    CascadingWheel,
    DelayQueue,
    DenseWheel,
    DurationLists,
    HashedWheel,
    HierarchicalWheel,
    LinuxWheel,
    OrderedList,
    SimpleWheel,
    SortedHashedWheel,
    UnorderedList,
)
from timers.errors import InvariantError
from timers.kernels import (
    cascading_wheel,
    delay_queue,
    dense_wheel,
    duration_lists,
    hashed_wheel,
    hierarchical_wheel,
    simple_wheel,
    unordered_list,
)
from timers.kernels.handles import place_of
from timers.kernels.pool import BASE, BITS, FREE, NO_ROW, NOW, PENDING, RETIRED
from timers.kernels.words import words_of
from timers.limits import LIMIT

NOWHERE = 2**20  # no row of any timer here
Corruption = Callable[[Any, Any, list[int]], object]
"""What is done to a State's nodes and clock; the third argument is the rows of the pending
timers.
"""


def assert_check(timer: Any, handles: list[int], corruption: Corruption, rule: str | None) -> None:
    """After a corruption, check() names the rule; or finds nothing wrong, if there is no rule."""
    timer.check()
    nodes, cells = timer.state.nodes, timer.state.cells
    corruption(nodes, cells, [int(cells[BASE]) + place_of(handle) for handle in handles])
    if rule is None:
        timer.check()
        return
    with pytest.raises(InvariantError, match=rule) as caught:
        timer.check()
    assert "cells:" in str(caught.value)


def assert_fits(timer: Any, handles: list[int], corruption: Corruption, fits: bool) -> None:
    assert_check(timer, handles, corruption, None if fits else "in the wrong bucket")


def put(array: Any, *keys: Any) -> None:
    """array[first key][second key]... = the last argument."""
    *path, last, value = keys
    for key in path:
        array = array[key]
    array[last] = value


# ---- what all wheels share


def ring() -> tuple[Any, list[int]]:
    """Slots of one, three and no timers, an overflow list, a timer that is due, and free places."""
    timer = SimpleWheel(wheel_size=40, start=20, capacity=9)
    handles = [timer.schedule(deadline) for deadline in (25, 22, 22, 22, 70, 19)]
    timer.cancel(timer.schedule(30))
    return timer, handles


SHARED: dict[str, dict[str, Corruption]] = {
    "occupancy bits of buckets .3. are": {
        "a bit too many": lambda n, c, rows: put(c, c[BITS], c[c[BITS]] | 1 << 3),
    },
    "occupancy bits of buckets .22, 25. are": {
        "a bit too few": lambda n, c, rows: put(c, c[BITS], 0),
    },
    "occupancy bits of buckets .39. are": {
        "a bit in the last word": lambda n, c, rows: put(c, c[BITS] + 1, 1 << 7),
    },
    "occupancy bits": {"a bucket's first row": lambda n, c, rows: put(n, 25, "next", 25)},
    "empty buckets .3. have a last row": {
        "an empty bucket's last row": lambda n, c, rows: put(n, 3, "prev", rows[0]),
    },
    "is not a place, or is in two buckets": {
        "a row beyond the end": lambda n, c, rows: put(n, rows[1], "next", NOWHERE),
        "a row just beyond the end": lambda n, c, rows: put(n, rows[1], "next", n.size),
        "a sentinel as a row": lambda n, c, rows: put(n, rows[1], "next", c[BASE] - 1),
        "a row twice": lambda n, c, rows: put(n, rows[2], "next", rows[1]),
    },
    "is not linked back": {
        "a link back": lambda n, c, rows: put(n, rows[2], "prev", rows[3]),
    },
    "has a negative deadline": {
        "a negative deadline": lambda n, c, rows: put(n, rows[5], "deadline", -1),
    },
    "does not end at its last row": {
        "a bucket's last row": lambda n, c, rows: put(n, 22, "prev", rows[1]),
    },
    "6 rows are in buckets, 7 counted": {
        "one pending too many": lambda n, c, rows: put(c, PENDING, c[PENDING] + 1),
    },
    "6 rows are in buckets, 5 counted": {
        "one pending too few": lambda n, c, rows: put(c, PENDING, c[PENDING] - 1),
    },
    "is not a place, or is in two chains": {
        "a pending row as free": lambda n, c, rows: put(c, FREE, rows[0]),
        "a free row beyond the end": lambda n, c, rows: put(c, FREE, n.size),
        "a free sentinel": lambda n, c, rows: put(c, FREE, c[BASE] - 1),
        "a ring of free rows": lambda n, c, rows: put(n, n.size - 1, "next", c[FREE]),
    },
    "is not marked free": {
        "a free row marked otherwise": lambda n, c, rows: put(n, c[FREE], "prev", 0),
    },
    "2 rows are in no chain, 0 counted": {
        "free rows lost": lambda n, c, rows: put(n, c[FREE], "next", NO_ROW),
    },
    "0 rows are in no chain, 1 counted as retired": {
        "one retired too many": lambda n, c, rows: put(c, RETIRED, 1),
    },
}
"""Rule -> what breaks it."""


@pytest.mark.parametrize(
    ("rule", "what"), [(rule, what) for rule, broken in SHARED.items() for what in broken]
)
def test_broken_rows_and_buckets_are_found(rule: str, what: str) -> None:
    assert_check(*ring(), SHARED[rule][what], rule)


def test_dump_shows_what_is_in_use_and_nothing_else() -> None:
    timer, handles = ring()
    timer.state.cells[PENDING] += 1
    with pytest.raises(InvariantError) as caught:
        timer.check()
    lines = str(caught.value).splitlines()[3:]
    base = int(timer.state.cells[BASE])
    in_use = [22, 25, base - 2, base - 1, *(base + place_of(handle) for handle in handles)]
    assert [line.split(":")[0] for line in lines] == [f"  row {row}" for row in sorted(in_use)]


# ---- what a deadline may be, where it is


def armed(timer: Any, *deadlines: int) -> tuple[Any, list[int]]:
    return timer, [timer.schedule(deadline) for deadline in deadlines]


def listed() -> tuple[Any, list[int]]:
    return armed(UnorderedList(start=10), 50, 5)


def cascading() -> tuple[Any, list[int]]:
    """Timers on levels 1 to 5, in the overflow list, and due."""
    levels = (1001, 1255, 1256, 1300, 66_500, 70_000, 2**24 + 1005, 2**32 + 1005)
    return armed(CascadingWheel(start=1000), *levels, 2**40 + 2000, 1000)


def dense() -> tuple[Any, list[int]]:
    """Timers on levels 1 to 5, in the overflow list, and due."""
    levels = (1001, 1023, 1024, 1300, 65_535, 70_000, 2**24 + 1005, 2**32 + 1005)
    return armed(DenseWheel(start=1000), *levels, 2**40 + 2000, 1000)


def coarsening() -> tuple[Any, list[int]]:
    """Timers on levels 1, 2 and 9, and due; the last is cut."""
    return armed(LinuxWheel(start=1001), 1010, 1100, 10**9, 1000, 2**40)


def ordered() -> tuple[Any, list[int]]:
    return armed(OrderedList(start=10), 50, 5, 30)


def ordered_slots() -> tuple[Any, list[int]]:
    """Three timers in slot 4, one in slot 5, and two that are due."""
    return armed(SortedHashedWheel(wheel_size=8, start=9), 28, 12, 20, 13, 9, 5)


def hierarchical() -> tuple[Any, list[int]]:
    return armed(HierarchicalWheel(tick=10, wheel_size=4, start=125), 139, 333, 129)


def hashed() -> tuple[Any, list[int]]:
    """Timers in slots 4, 4 and 4, one that is due, and one that has just arrived."""
    timer = HashedWheel(tick=10, wheel_size=8, start=35)
    handles = [timer.schedule(deadline) for deadline in (47, 125, 205)]
    timer.advance(45)  # the tick in progress is 4
    return timer, [*handles, timer.schedule(45), timer.schedule(205)]


def hashed_at_120(wheel_size: int) -> tuple[Any, list[int]]:
    timer, handles = armed(HashedWheel(tick=10, wheel_size=wheel_size, start=110), 125)
    timer.advance(120)
    return timer, handles


def overflowing() -> tuple[Any, list[int]]:
    """A timer in the overflow list, whose lower bound is before the present rotation."""
    timer, handles = armed(SimpleWheel(wheel_size=40, start=50), 95)
    timer.state.cells[simple_wheel.OVERFLOW_MIN] = 30
    return timer, handles


Make = Callable[[], tuple[Any, list[int]]]
Row = int | tuple[int, int]
"""A deadline, and in a hashed wheel its rounds, if there are any."""

ROWS: list[tuple[Make, int, list[Row], list[Row]]] = [
    (ring, 0, [25], [26, 65]),  # 65: its slot, but a rotation later
    (ring, 5, [20], [21]),
    (ring, 4, [70, 119, LIMIT], [69]),  # 69: below the list's earliest
    (listed, 0, [11], [10, 0]),
    (listed, 1, [10], [11]),
    (cascading, 0, [1001], [1000, 1257, 745]),
    (cascading, 1, [1255], [1256]),
    (cascading, 2, [1256, 1024, 1279], [1280, 1023, 1000]),
    (cascading, 3, [1280, 1535], [1279, 1536, 1300 + 2**16]),
    (cascading, 4, [66_304, 66_559], [66_560, 768, 1000]),
    (cascading, 5, [65_536, 131_071], [131_072, 65_535]),
    (cascading, 6, [2**24, 2**25 - 1], [2**24 - 1, 2**25]),
    (cascading, 7, [2**32, 2**33 - 1], [2**32 - 1, 2**33]),
    (cascading, 8, [2**40 + 2000, 2**62], [2**40 + 1999]),
    (cascading, 9, [1000, 0], [1001]),
    (dense, 0, [1001], [1000, 1002, 1257, 745]),
    (dense, 1, [1023], [1022, 1279]),
    (dense, 2, [1024, 1279], [1280, 1023]),
    (dense, 3, [1280, 1535], [1279, 1536, 1300 + 2**16]),
    (dense, 4, [65_280, 65_535], [65_279, 65_536]),
    (dense, 5, [65_536, 131_071], [131_072, 65_535]),
    (dense, 6, [2**24, 2**25 - 1], [2**24 - 1, 2**25]),
    (dense, 7, [2**32, 2**33 - 1], [2**32 - 1, 2**33]),
    (dense, 8, [2**40 + 2000, 2**62], [2**40 + 1999]),
    (dense, 9, [1000, 0], [1001]),
    (coarsening, 0, [], [1009, 1011, 1010 + 64, 1010 - 64]),
    (coarsening, 1, [1096, 1103], [1095, 1104, 1100 + 512, 1100 - 512]),
    # A cut timer is in a slot that begins before its deadline.
    (coarsening, 2, [59 * 8**8, 60 * 8**8 - 1, 60 * 8**8, 2**62], [59 * 8**8 - 1, 10**6]),
    (coarsening, 3, [0, 1001, 2**40], []),
    (coarsening, 4, [62 * 8**8, 63 * 8**8, 2**62], [62 * 8**8 - 1]),
    (ordered, 0, [30, LIMIT], [29]),
    (ordered, 1, [0, 30], [31]),
    (ordered, 2, [5, 50], [4, 51]),
    (ordered_slots, 0, [20, 36], [12, 27, 29]),
    (ordered_slots, 1, [12, 20], [4, 28, 13]),
    (ordered_slots, 2, [12, 28], [36, 21]),
    (ordered_slots, 3, [21], [5, 14]),
    (ordered_slots, 4, [5, 8], [4, 10]),
    (ordered_slots, 5, [0, 9], [10]),
    (hierarchical, 0, [130, 139], [129, 140, 170]),
    (hierarchical, 1, [320, 479], [319, 480]),
    (hierarchical, 2, [134], [135]),  # less than a tick from now
    (overflowing, 0, [80], [79, 40]),  # not in the present rotation
    (hashed, 0, [40, 49], [39, 50]),  # anywhere in its tick
    # 45: the same slot, a rotation earlier
    (hashed, 1, [(125, 1), (125, hashed_wheel.FAR), 45, (205, 2)], [(125, 0), (125, 2), (205, 1)]),
    (hashed, 2, [(205, 2)], []),
    (hashed, 3, [45], [46]),
    (hashed, 4, [40, (LIMIT, 7)], [39]),
    # Its slot is right, a rotation before the tick in progress.
    (lambda: hashed_at_120(8), 0, [], [(45, hashed_wheel.FAR)]),
    (lambda: hashed_at_120(1), 0, [], [(115, hashed_wheel.FAR)]),
]
"""A timer, one of its pending timers, and what fits its bucket, or does not."""


def refile(k: int, deadline: int, rounds: int = 0) -> Corruption:
    """Change what is in the row of a pending timer."""

    def corruption(nodes: Any, cells: Any, rows: list[int]) -> None:
        nodes[rows[k]]["deadline"] = deadline
        if "rounds" in nodes.dtype.names:
            nodes[rows[k]]["rounds"] = rounds

    return corruption


@pytest.mark.parametrize(("make", "k", "fitting", "others"), ROWS)
def test_a_row_fits_its_bucket(make: Make, k: int, fitting: list[Row], others: list[Row]) -> None:
    for row in (*fitting, *others):
        values = row if isinstance(row, tuple) else (row,)
        assert_fits(*make(), refile(k, *values), row in fitting)


CELLS: list[tuple[Make, int, list[int], list[int]]] = [
    # No deadline has passed, and all are less than a rotation ahead.
    (lambda: armed(SimpleWheel(wheel_size=40, start=20), 25), NOW, [20, 24], [25]),
    (lambda: armed(SimpleWheel(wheel_size=40, start=1), 40), NOW, [1], [0]),
    (lambda: armed(CascadingWheel(start=1200), 1300), NOW, [1299, 1044], [1300, 1043]),
    # Up to the moment at which the slot opens; and never back to where a higher byte differs.
    (lambda: armed(DenseWheel(start=1200), 1300), NOW, [1279, 1024, 0], [1280, 65_536]),
    (hierarchical, NOW, [], [130]),  # what expires now is not in a bucket any more
    (hierarchical, hierarchical_wheel.LEVELS, [3], [2]),
    (lambda: armed(UnorderedList(start=10), 50), unordered_list.SCANNED, [49], [50]),
    (
        lambda: armed(CascadingWheel(), 2**41),
        cascading_wheel.OVERFLOW_MIN,
        [2**41, 2**41 - 1],
        [2**41 + 1],
    ),
    (lambda: armed(DenseWheel(), 2**41), dense_wheel.OVERFLOW_MIN, [2**41 - 1], [2**41 + 1]),
]
"""A timer, a cell such as the clock, and values that fit its buckets, or do not."""


@pytest.mark.parametrize(("make", "cell", "fitting", "others"), CELLS)
def test_a_cell_fits_the_buckets(
    make: Make, cell: int, fitting: list[int], others: list[int]
) -> None:
    for value in (*fitting, *others):
        assert_fits(*make(), lambda n, c, rows, value=value: put(c, cell, value), value in fitting)


@pytest.mark.parametrize("cell", [hashed_wheel.CURRENT_TICK, hashed_wheel.TICK_START])
@pytest.mark.parametrize("by", [-1, 1])
def test_hashed_wheel_knows_the_tick_in_progress(cell: int, by: int) -> None:
    timer = HashedWheel(tick=10, wheel_size=8, start=45)
    rule = "the tick in progress is not that of 45"
    assert_check(timer, [], lambda n, c, rows: put(c, cell, c[cell] + by), rule)


# ---- the hierarchical wheel


@pytest.mark.parametrize("level", [0, 1, 2, 30])
@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        (hierarchical_wheel.CURRENT, "a level's clock is not aligned to now"),
        (hierarchical_wheel.SLOT, "a level's slot is not that of its clock"),
    ],
)
@pytest.mark.parametrize("by", [-1, 1])
def test_hierarchical_wheel_knows_its_levels_clocks(
    level: int, cell: int, rule: str, by: int
) -> None:
    timer = HierarchicalWheel(tick=1, wheel_size=4, start=2**61 + 12345)
    index = hierarchical_wheel.FIRST_LEVEL + hierarchical_wheel.LEVEL_FIELDS * level + cell
    assert_check(timer, [], lambda n, c, rows: put(c, index, c[index] + by), rule)


def queued() -> tuple[Any, list[int]]:
    """A timer with six queued buckets."""
    return armed(HierarchicalWheel(tick=1, wheel_size=20), *range(1, 7))


@pytest.mark.parametrize(("a", "b"), [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)])
def test_hierarchical_wheel_keeps_its_queue_in_order(a: int, b: int) -> None:
    def swap(nodes: Any, cells: Any, rows: list[int]) -> None:
        queue = cells[hierarchical_wheel.QUEUE] + [a, b]
        cells[queue] = cells[queue[::-1]]

    assert_check(*queued(), swap, "the queue is out of order")


@pytest.mark.parametrize(
    "corruption",
    [
        lambda n, c, rows: put(c, c[hierarchical_wheel.QUEUE] + 5, 5),
        lambda n, c, rows: (  # the last one twice
            put(c, c[hierarchical_wheel.QUEUE] + 6, c[c[hierarchical_wheel.QUEUE] + 5]),
            put(c, hierarchical_wheel.QUEUED, 7),
        ),
        lambda n, c, rows: put(c, hierarchical_wheel.QUEUED, 5),
        lambda n, c, rows: put(n, 15, "deadline", 14),
    ],
)
def test_hierarchical_wheel_queues_each_bucket_once(corruption: Corruption) -> None:
    rule = "not exactly the buckets with an expiration are queued, once each"
    assert_check(*queued(), corruption, rule)


# ---- the delay queue


def heap() -> tuple[Any, list[int]]:
    timer = DelayQueue(capacity=10)
    handles = [timer.schedule(deadline) for deadline in (10, 20, 30, 40, 40, 50)]
    timer.cancel(timer.schedule(99))
    return timer, handles


def key_of(k: int, cell: int, by: int) -> Corruption:
    index = delay_queue.HEAP + delay_queue.ENTRY * k + cell
    return lambda nodes, cells, rows: put(cells, index, cells[index] + by)


HEAP: dict[str, tuple[Corruption, str | None]] = {
    "a root as late as its child": (key_of(0, delay_queue.DEADLINE, 10), None),
    "a root later than its child": (key_of(0, delay_queue.DEADLINE, 11), "out of order"),
    "a child earlier than its parent": (key_of(5, delay_queue.DEADLINE, -21), "out of order"),
    "a last armed before its parent": (key_of(4, delay_queue.DEADLINE, -20), None),
    "a first armed behind its parent": (key_of(3, delay_queue.DEADLINE, -21), "out of order"),
    "an index": (lambda n, c, rows: put(n, 2, "index", 3), "does not know its entry's index"),
    "two entries of one place": (
        key_of(2, delay_queue.ORDER, 1),
        "does not know its entry's index",
    ),
    "a free place with an index": (
        lambda n, c, rows: put(n, 8, "index", 0),
        "not exactly the pending places",
    ),
    "a pending place as free": (
        lambda n, c, rows: put(c, FREE, 2),
        "a free place is pending or in the chain twice",
    ),
    "a ring of free places": (
        lambda n, c, rows: put(n, 9, "index", -2 - 6),
        "is pending or in the chain twice",
    ),
    "places lost": (lambda n, c, rows: put(n, 6, "index", -2 - -1), "places are lost"),
    "one retired too many": (lambda n, c, rows: put(c, RETIRED, 1), "places are lost"),
}


@pytest.mark.parametrize("what", HEAP)
def test_delay_queue_finds_what_is_wrong(what: str) -> None:
    assert_check(*heap(), *HEAP[what])


# ---- the dense wheel


def lines() -> tuple[Any, list[int]]:
    """Slots of 16 timers, in two lines, and of one; and free places."""
    timer = DenseWheel(capacity=20)
    handles = [timer.schedule(deadline) for deadline in [7] * 16 + [9]]
    timer.cancel(timer.schedule(30))
    return timer, handles


def word(corruption: Callable[[Any, Any], object]) -> Corruption:
    """Change the lines; the second argument is the tail of the slot of 16 timers."""
    return lambda nodes, cells, rows: corruption(words_of(cells), int(cells[dense_wheel.TAILS + 7]))


LINES: dict[str, tuple[Corruption, str]] = {
    "a bit too many": (
        lambda n, c, rows: put(c, c[BITS], c[c[BITS]] | 1 << 3),
        "occupancy bits of buckets .3. are",
    ),
    "a bit too few": (
        lambda n, c, rows: put(c, c[BITS], 0),
        "occupancy bits of buckets .7, 9. are",
    ),
    "a tail at a link": (
        lambda n, c, rows: put(c, dense_wheel.TAILS + 7, 16 * dense_wheel.FIRST_LINE),
        "has no place number",
    ),
    "a line below in the header": (
        word(lambda w, tail: put(w, tail - 1, 1)),
        "line 1 is not a line",
    ),
    "a line beyond the end": (
        word(lambda w, tail: put(w, tail - 1, w.size // 16)),
        "is not a line, or is in two chains",
    ),
    "a line in two buckets": (
        lambda n, c, rows: put(c, dense_wheel.TAILS + 9, c[dense_wheel.TAILS + 7]),
        "is not a line, or is in two chains",
    ),
    "a used line as free": (
        lambda n, c, rows: put(c, dense_wheel.FREE_LINE, dense_wheel.FIRST_LINE),
        "is not a line, or is in two chains",
    ),
    "lines lost": (
        lambda n, c, rows: put(c, dense_wheel.FREE_LINE, c[dense_wheel.FREE_LINE] + 1),
        "lines are lost",
    ),
    "a place beyond the end": (word(lambda w, tail: put(w, tail, 20)), "20 in bucket 7 is not a"),
    "a place twice": (word(lambda w, tail: put(w, tail, 0)), "0 in bucket 7 is not a place, or is"),
    "a position": (lambda n, c, rows: put(n, 3, "at", 1), "place 3 does not know word"),
    "a negative deadline": (
        lambda n, c, rows: put(n, 3, "deadline", -1),
        "place 3 has a negative deadline",
    ),
    "one pending too many": (
        lambda n, c, rows: put(c, PENDING, 18),
        "17 places are in buckets, 18 counted",
    ),
    "a free place with a position": (
        lambda n, c, rows: put(n, 18, "at", 99),
        "not all free places are marked free",
    ),
    "a pending place as free": (lambda n, c, rows: put(c, FREE, 3), "free place 3 is not a place"),
    "a free place beyond the end": (
        lambda n, c, rows: put(n, 19, "deadline", 20),
        "free place 20 is not a place",
    ),
    "a ring of free places": (
        lambda n, c, rows: put(n, 19, "deadline", c[FREE]),
        "is not a place, or is in two chains",
    ),
    "free places lost": (
        lambda n, c, rows: put(n, c[FREE], "deadline", -1),
        "2 places are in no chain, 0 counted",
    ),
    "one retired too many": (
        lambda n, c, rows: put(c, RETIRED, 1),
        "0 places are in no chain, 1 counted as retired",
    ),
}


@pytest.mark.parametrize("what", LINES)
def test_dense_wheel_finds_what_is_wrong(what: str) -> None:
    assert_check(*lines(), *LINES[what])


def test_dump_of_the_dense_wheel_shows_buckets_and_places_in_use() -> None:
    timer, handles = lines()
    timer.state.cells[PENDING] += 1
    with pytest.raises(InvariantError) as caught:
        timer.check()
    shown = [line.split(":")[0] for line in str(caught.value).splitlines()[3:]]
    assert shown[:2] == ["  bucket 7", "  bucket 9"]
    assert shown[2:] == [f"  place {place_of(handle)}" for handle in handles]


# ---- the duration lists


def by_duration() -> tuple[Any, list[int]]:
    """At 5: the deadlines 10, 15 and 15 in the list of delay 10, and one in those of 11 and 30.

    The rows are 1 to 5, and the lists' entries 0 (delay 10), 1 (30) and 2 (11).
    """
    timer = DurationLists(capacity=10)
    handles = [timer.schedule(10), timer.schedule(30)]
    timer.advance(5)
    handles += [timer.schedule(deadline) for deadline in (15, 15, 16)]
    timer.cancel(timer.schedule(99))
    return timer, handles


def entry(k: int, cell: int, value: int) -> Corruption:
    index = int(duration_lists.entry_of(k, cell))
    return lambda nodes, cells, rows: put(cells, index, value)


def deadline_of(k: int, deadline: int) -> Corruption:
    return lambda nodes, cells, rows: put(nodes, rows[k], "deadline", deadline)


def chain_cells(cells: Any, *, used: bool = True) -> list[int]:
    """The cells of the hash table's chains that are in use, or of the others."""
    chains = range(int(cells[duration_lists.CHAINS]))
    indices = [int(duration_lists.entry_of(k, duration_lists.CHAIN)) for k in chains]
    return [index for index in indices if (cells[index] != NO_ROW) == used]


def swap_chains(nodes: Any, cells: Any, rows: list[int]) -> None:
    used, unused = chain_cells(cells)[0], chain_cells(cells, used=False)[0]
    cells[used], cells[unused] = cells[unused], cells[used]


def forget_a_chain(nodes: Any, cells: Any, rows: list[int]) -> None:
    cells[chain_cells(cells)[0]] = NO_ROW


def put_in_every_chain(row: int) -> Corruption:
    def corruption(nodes: Any, cells: Any, rows: list[int]) -> None:
        for chain in chain_cells(cells):
            cells[chain] = row

    return corruption


DURATIONS: dict[str, tuple[Corruption, str | None]] = {
    "too few chains": (
        lambda n, c, rows: put(c, duration_lists.CHAINS, 4),
        "4 chains for 10 places",
    ),
    "an index": (lambda n, c, rows: put(n, rows[1], "rounds", 2), "does not have the entry's"),
    "a first row that is none": (entry(1, duration_lists.LINKS, 0), "does not have the entry's"),
    "a first row as late as may be": (deadline_of(0, 15), None),
    "a first row later than the next": (deadline_of(3, 14), "out of order, or has an index"),
    "a root later than its child": (deadline_of(4, 9), "entry 2 comes before its parent"),
    "a root earlier by a unit": (deadline_of(4, 11), None),
    "an equal deadline of a longer delay": (deadline_of(4, 10), "entry 2 comes before its parent"),
    "a deadline too late": (deadline_of(3, 16), "cannot have the delay 10"),
    "a deadline in the past": (lambda n, c, rows: put(c, NOW, 11), "cannot have the delay 10"),
    "an armed moment to come": (lambda n, c, rows: put(c, NOW, 4), "cannot have the delay"),
    "an index of another row": (
        lambda n, c, rows: put(n, rows[3], "rounds", 0),
        "out of order, or has an index",
    ),
    "a link back": (lambda n, c, rows: put(n, rows[3], "prev", rows[0]), "is linked wrongly"),
    "a link of the first row": (
        lambda n, c, rows: put(n, rows[0], "prev", rows[2]),
        "does not end",
    ),
    "a link to nowhere": (lambda n, c, rows: put(n, rows[3], "next", NOWHERE), "is not a place"),
    "a ring in a list": (lambda n, c, rows: put(n, rows[3], "next", rows[2]), "is in two lists"),
    "a wrong chain": (swap_chains, "is in the wrong chain"),
    "a list without a chain": (forget_a_chain, "in the hash table, 3 in the heap"),
    "a chain of a row that is not first": (put_in_every_chain(4), "not the first one of a list"),
    "a chain of a row that is none": (put_in_every_chain(NOWHERE), "not the first one of a list"),
    "one pending too many": (lambda n, c, rows: put(c, PENDING, 6), "5 rows are in buckets, 6 co"),
    "one retired too many": (lambda n, c, rows: put(c, RETIRED, 1), "in no chain, 1 counted as"),
}


@pytest.mark.parametrize("what", DURATIONS)
def test_duration_lists_find_what_is_wrong(what: str) -> None:
    assert_check(*by_duration(), *DURATIONS[what])


def test_a_list_that_is_its_own_successor_in_a_chain_is_found() -> None:
    timer, handles = by_duration()
    links = duration_lists.links_of(1, 1)
    assert_check(timer, handles, entry(0, duration_lists.LINKS, links), "in the hash table|wrong")
