"""Places and buckets, in the rows that all wheel kernels share.

One record array holds both. Rows [0, base) are the buckets' sentinels; row base + p is place p. A
bucket is a circular doubly linked list through its sentinel, so linking and unlinking have no
special cases. A pending timer costs one row of 24 bytes.

Free places are chained through `next` (last released, first re-used) and marked by `prev` =
FREE_ROW; their generation is that of their next use. A place whose generations are used up is
retired: it looks free, but is in no chain, so it is never used again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from timers.errors import InvariantError
from timers.kernels.bitmap import WORD_BITS, mark, unmark, words_for
from timers.kernels.counters import COMPARISONS, count
from timers.kernels.handles import (
    FIRST_GENERATION,
    LAST_GENERATION,
    LOWEST_HANDLE,
    PLACE_BITS,
    PLACE_MASK,
    encode,
    generation_of,
    place_of,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.memory import is_same, lengthened, zeros
from timers.kernels.operations import NONE, Places, operations
from timers.snapshot import Timers, Waiting

FREE_ROW = 2**32 - 1  # marks a free row
NO_ROW = 0  # ends the chain of free rows: row 0 is always a sentinel

NODE = np.dtype(
    [
        ("deadline", "i8"),  # of a timer; in a sentinel, for the kernel's own use
        ("next", "u4"),  # the next row in the bucket; of a free row: the next free one, or NO_ROW
        ("prev", "u4"),  # the row before in the bucket; of a free row: FREE_ROW
        ("generation", "i4"),  # of the handle; sentinels: zero
        # hashed wheel: rotations left to wait; duration lists: index in the heap; others: unused
        ("rounds", "i4"),
    ]
)

SHORT = 1 << 31  # a dividend below this, times a reciprocal, stays below 2**63
STEP = 1 << 16  # places that are added at a time if that takes no copy
MAX_PLACES = 2**31 - 2**23  # rows, buckets included, are counted in 31 bits

# The result of advance: one row for each timer that fired.
EXPIRY = np.dtype([("handle", "i8"), ("deadline", "i8"), ("fired_at", "i8")])

# The first cells of every State's `cells`, int64. A kernel's own cells start at HEADER.
NOW = 0  # the clock; NONE, like PENDING and ROWS, if the cells have been copied to others
FREE = 1  # first free row, or NONE
PENDING = 2  # number of pending timers
RETIRED = 3  # number of retired places
BASE = 4  # number of sentinel rows: row = BASE + place
BITS = 5  # index in `cells` of the first word of the occupancy bits
ROWS = 6  # number of rows of the State in use; one that has fewer has been replaced
LAST = 7  # handle of the timer that was scheduled last on its own
HEADER = 8


def allocate_pool(start: int, capacity: int, buckets: int, words: int, bits: int = 0) -> Any:
    """Allocate rows for empty buckets and `capacity` free places, and a State's cells at `start`.

    There are `words` cells, including the header, followed by those of `bits` occupancy bits.
    """
    nodes = zeros(buckets + capacity, NODE)
    nodes["next"][:buckets] = nodes["prev"][:buckets] = np.arange(buckets)
    nodes["generation"][buckets:] = FIRST_GENERATION
    nodes["prev"][buckets:] = FREE_ROW
    nodes["next"][buckets:] = np.arange(buckets + 1, nodes.size + 1)  # the free rows, in order
    nodes["next"][-1] = NO_ROW
    cells = zeros(words + words_for(bits), np.int64)
    cells[NOW], cells[FREE], cells[BASE], cells[BITS] = start, buckets, buckets, words
    cells[ROWS] = nodes.size
    return nodes, cells


def grown_capacity(capacity: int, used: int, extra: int, *, in_place: bool) -> int:
    """Return a capacity with which `extra` places are free besides the `used` ones.

    If all places are copied when it grows, it doubles, so that each is copied a bounded number of
    times. Otherwise it grows by STEP places or by what is needed: the memory that is free, and the
    time for its first use, remain small. Raises MemoryError if handles cannot number so many
    places.
    """
    if used + extra > MAX_PLACES:
        raise MemoryError
    if in_place:
        capacity = max(capacity + STEP, used + extra)
    while capacity - used < extra:
        capacity *= 2
    return min(capacity, MAX_PLACES)


def enlarged_pool(state: Any, capacity: int) -> Any:
    """Return a State with `capacity` places for `move_pool` to fill."""
    return state._replace(nodes=lengthened(state.nodes, int(state.cells[BASE]) + capacity))


@jit
def move_pool(state, target):
    """Move everything to a larger State. Its additional places are free."""
    nodes, cells, larger, target_cells = state.nodes, state.cells, target.nodes, target.cells
    if is_replaced(nodes, cells):
        return False
    move_rows(nodes, larger)
    for i in range(nodes.size, larger.size):
        larger[i]["next"] = i + 1
        larger[i]["prev"] = FREE_ROW
        larger[i]["generation"] = FIRST_GENERATION
    move_cells(cells, target_cells)
    larger[larger.size - 1]["next"] = target_cells[FREE]
    target_cells[FREE] = nodes.size
    target_cells[ROWS] = larger.size
    return True


@inlined
def move_rows(nodes, larger):
    """Copy the rows to a longer array, unless it has the same memory."""
    if not is_same(nodes, larger):
        for i in range(nodes.size):
            larger[i] = nodes[i]


@inlined
def move_cells(cells, target):
    """Copy the cells to another array and mark them as replaced, unless it has the same memory."""
    if not is_same(cells, target):
        for i in range(cells.size):
            target[i] = cells[i]
        cells[NOW] = NONE
        cells[PENDING] = NONE
        cells[ROWS] = NONE


@inlined
def is_replaced(nodes, cells):
    """Return whether a State has been moved to larger arrays, or is not filled yet."""
    return cells[ROWS] != nodes.size


@inlined
def room(nodes, cells):
    """The number of free places."""
    return nodes.size - cells[BASE] - cells[PENDING] - cells[RETIRED]


@inlined
def claim(nodes, cells):
    """Take a free row; the caller has reserved one."""
    i = np.int64(np.uint32(cells[FREE]))  # tells Numba that the index is not negative
    cells[FREE] = nodes[i]["next"]
    cells[PENDING] += 1
    return i


@inlined
def release(nodes, cells, i):
    """Free a row; its handle is dead."""
    cells[PENDING] -= 1
    nodes[i]["prev"] = FREE_ROW
    generation = nodes[i]["generation"]
    if generation == LAST_GENERATION:
        cells[RETIRED] += 1
    else:
        nodes[i]["generation"] = generation + 1
        nodes[i]["next"] = cells[FREE]
        cells[FREE] = i


@inlined
def handle_of(nodes, cells, i):
    """The handle of a pending row."""
    return encode(nodes[i]["generation"], i - cells[BASE])


@inlined
def index_of(cells, handle):
    """The row of a handle, in every kernel; for a foreign handle, any index below 2**32."""
    # Tells Numba that the index is not negative.
    return np.int64(np.uint32(cells[BASE] + place_of(handle) & PLACE_MASK))


@inlined
def row_of(nodes, cells, handle):
    """The row of a pending timer's handle; NONE for any other int64."""
    # The index of a foreign handle may wrap around to a sentinel; its generation is zero, so it
    # does not match.
    i = index_of(cells, handle)
    if handle < LOWEST_HANDLE or i >= nodes.size:
        return NONE
    if nodes[i]["generation"] != generation_of(handle) or nodes[i]["prev"] == FREE_ROW:
        return NONE
    return i


@inlined
def link(nodes, bucket, i):
    """Append a row to a bucket; if `bucket` is another row, insert it before that row."""
    head = np.uint32(bucket)  # tells Numba that the index is not negative
    tail = nodes[head]["prev"]
    nodes[i]["next"] = head
    nodes[i]["prev"] = tail
    nodes[tail]["next"] = i
    nodes[head]["prev"] = i


@jit
def link_sorted(nodes, counters, bucket, i):
    """Insert a row into a bucket that is sorted by deadline, searching from the rear.

    Of equal deadlines, it becomes the last.
    """
    after = np.int64(bucket)
    while nodes[after]["prev"] != bucket:
        before = nodes[after]["prev"]
        count(counters, COMPARISONS, 1)
        if nodes[before]["deadline"] <= nodes[i]["deadline"]:
            break
        after = np.int64(before)
    link(nodes, after, i)


@inlined
def unlink(nodes, i):
    """Take a row out of its bucket."""
    before = nodes[i]["prev"]
    after = nodes[i]["next"]
    nodes[before]["next"] = after
    nodes[after]["prev"] = before


@inlined
def link_marked(nodes, cells, bits, bucket, i):
    """`link` that maintains the bucket's occupancy bit."""
    if is_empty(nodes, bucket):
        mark(cells, bits, bucket)
    link(nodes, bucket, i)


@inlined
def unlink_marked(nodes, cells, bits, i):
    """`unlink` that maintains the bucket's occupancy bit."""
    before, after = nodes[i]["prev"], nodes[i]["next"]
    unlink(nodes, i)
    if before == after:  # only the sentinel is left
        unmark(cells, bits, before)


@inlined
def is_empty(nodes, bucket):
    """Return whether a bucket is empty."""
    return nodes[np.uint32(bucket)]["next"] == bucket


@inlined
def detach(nodes, bucket):
    """Empty a bucket and return the first row of its chain, which still ends at the sentinel."""
    first = nodes[bucket]["next"]
    nodes[bucket]["next"] = bucket
    nodes[bucket]["prev"] = bucket
    return first


@inlined
def append_bucket(nodes, bucket, target):
    """Move all rows of a bucket to the tail of another bucket."""
    first, last = nodes[bucket]["next"], nodes[bucket]["prev"]
    if first == bucket:
        return
    tail = nodes[target]["prev"]
    nodes[tail]["next"] = first
    nodes[first]["prev"] = tail
    nodes[last]["next"] = target
    nodes[target]["prev"] = last
    nodes[bucket]["next"] = bucket
    nodes[bucket]["prev"] = bucket


@inlined
def deliver(nodes, cells, bucket, out, n):
    """Write a bucket's timers to out[n:], as fired now, until the bucket is empty or `out` is full.

    Returns the new number of rows in `out`.
    """
    i = nodes[bucket]["next"]
    if i == bucket:
        return n
    now, base = cells[NOW], cells[BASE]
    while i != bucket and n < out.size:
        out[n]["handle"] = encode(nodes[i]["generation"], i - base)
        out[n]["deadline"] = nodes[i]["deadline"]
        out[n]["fired_at"] = now
        n += 1
        after = nodes[i]["next"]
        release(nodes, cells, i)
        i = after
    # Relink once for all rows, not once per row.
    nodes[bucket]["next"] = i
    nodes[i]["prev"] = bucket
    return n


@inlined
def is_full(out, n):
    """Return whether the `n` rows that an advance has written fill `out`, if it has any rows."""
    return 0 < n == out.size


@inlined
def earliest_in(nodes, bucket, earliest):
    """The earliest deadline in a bucket, or `earliest` if that is before it. O(timers in it)."""
    i = nodes[bucket]["next"]
    while i != bucket:
        deadline = nodes[i]["deadline"]
        if deadline < earliest:  # Numba takes 30 ms to compile `min`
            earliest = deadline
        i = nodes[i]["next"]
    return earliest


@inlined
def quotient(dividend, divisor):
    """`dividend // divisor` of non-negative numbers, without Python's handling of signs."""
    return np.int64(np.uint64(dividend) // np.uint64(divisor))


def reciprocal(divisor: int) -> tuple[int, int]:
    """(multiplier, shift) with x // divisor == (x * multiplier) >> shift for every x in [0, 2**31).

    Source: Granlund & Montgomery, "Division by Invariant Integers using Multiplication" (PLDI
    1994), theorem 4.2.
    """
    if divisor >= SHORT:
        return 0, 0
    shift = SHORT.bit_length() - 1 + (divisor - 1).bit_length()
    return -(-(1 << shift) // divisor), shift


@inlined
def quotient_by(dividend, divisor, multiplier, shift):
    """`dividend // divisor`, by the reciprocal if the dividend is SHORT: a third of the time."""
    if dividend < SHORT:
        return (dividend * multiplier) >> shift
    return quotient(dividend, divisor)


PLACES = Places(claim, release, handle_of, row_of)


def bucket_operations(insert: Any, bits: int | None = None) -> tuple[Any, Any, Any]:
    """`schedule`, `cancel` and `reschedule` of a kernel with buckets.

    `insert` sets a row's deadline and puts the row into its bucket. `bits` is the index in `cells`
    of the buckets' occupancy bits, if there are any.
    """

    @inlined
    def remove(nodes, cells, counters, i):
        if bits is None:
            unlink(nodes, i)
        else:
            unlink_marked(nodes, cells, bits, i)

    return operations(PLACES, insert, remove)


def timers_in(state: Any, bucket: int, *, rounds: bool = False) -> Timers:
    """Return the timers of a bucket in the order of its list. O(timers in it)."""
    return waiting(state, rows_after(state.nodes, bucket), rounds=rounds)


def rows_after(nodes: np.ndarray[Any, Any], row: int) -> list[int]:
    """Return the rows that follow a row in its circular list, in order."""
    following = nodes["next"]
    chain, i = [], following.item(row)
    while i != row:
        chain.append(i)
        i = following.item(i)
    return chain


def waiting(state: Any, chain: Sequence[int], *, rounds: bool = False) -> Timers:
    """Return the timers of some rows."""
    nodes, cells, _ = state
    # All rows at once: reading one after the other takes five times as long.
    places = np.array(chain, np.int64) - cells[BASE]
    rows = nodes[cells[BASE] + places]
    handles = (rows["generation"].astype(np.int64) << PLACE_BITS) + places
    waits = rows["rounds"].tolist() if rounds else repeat(None)
    return tuple(map(Waiting, handles.tolist(), rows["deadline"].tolist(), waits))


def slots_in(state: Any, first: int, size: int, *, rounds: bool = False) -> dict[int, Timers]:
    """Return the occupied slots, with timers, of a wheel whose slot 0 is the bucket `first`."""
    buckets = np.arange(first, first + size)
    occupied = buckets[state.nodes["next"][first : first + size] != buckets].tolist()
    return {bucket - first: timers_in(state, bucket, rounds=rounds) for bucket in occupied}


def dump(nodes: np.ndarray[Any, Any], cells: np.ndarray[Any, Any]) -> str:
    """Return the cells, the buckets in use and the pending timers, for error messages."""
    index = np.arange(nodes.size)
    in_use = np.where(index < cells[BASE], nodes["next"] != index, nodes["prev"] != FREE_ROW)
    rows = "\n".join(f"  row {i}: {nodes[i]}" for i in np.flatnonzero(in_use).tolist())
    return f"  cells: {cells.tolist()}\n  columns: {', '.join(NODE.names or ())}\n{rows}"


def check_pool(
    nodes: np.ndarray[Any, Any],
    cells: np.ndarray[Any, Any],
    belongs: Callable[[int, int], bool],
    marked_buckets: int = 0,
) -> None:
    """Check the invariants of all wheel kernels, and `belongs(bucket, row)` for each pending row.

    The first `marked_buckets` buckets have occupancy bits. Raises InvariantError for a broken link,
    a wrong bit, or a row that is not in exactly one chain.
    """
    base = int(cells[BASE])
    seen = [False] * nodes.size
    # Lists: reading an array element by element takes ten times as long.
    after, previous, deadlines = (nodes[name].tolist() for name in ("next", "prev", "deadline"))

    demand = partial(demanded, nodes, cells)
    occupied = nodes["next"][:base] != np.arange(base)
    words = cells[cells[BITS] : cells[BITS] + words_for(marked_buckets)]
    bits = (words[:, None] >> np.arange(WORD_BITS) & 1).astype(bool).ravel()[:marked_buckets]
    wrong = np.flatnonzero(bits != occupied[:marked_buckets])
    demand(wrong.size == 0, f"occupancy bits of buckets {wrong.tolist()} are wrong")
    broken = np.flatnonzero(~occupied & (nodes["prev"][:base] != np.arange(base)))
    demand(broken.size == 0, f"empty buckets {broken.tolist()} have a last row")
    for bucket in np.flatnonzero(occupied).tolist():
        before, i = bucket, after[bucket]
        while i != bucket:
            demand(
                base <= i < nodes.size and not seen[i],
                f"row {i} of bucket {bucket} is not a place, or is in two buckets",
            )
            demand(
                previous[i] == before, f"row {i} of bucket {bucket} is not linked back to {before}"
            )
            demand(deadlines[i] >= 0, f"row {i} of bucket {bucket} has a negative deadline")
            demand(
                belongs(bucket, i),
                f"row {i} of deadline {deadlines[i]} is in the wrong bucket {bucket}",
            )
            seen[i] = True
            before, i = i, after[i]
        demand(previous[bucket] == before, f"bucket {bucket} does not end at its last row {before}")
    check_places(nodes, cells, seen)


def demanded(
    nodes: np.ndarray[Any, Any], cells: np.ndarray[Any, Any], holds: Any, message: str
) -> None:
    """Raise InvariantError with a dump of the state unless the rule holds."""
    if not holds:
        raise InvariantError(f"{message}\n{dump(nodes, cells)}")


def check_places(
    nodes: np.ndarray[Any, Any], cells: np.ndarray[Any, Any], seen: list[bool]
) -> None:
    """Check that each row is pending, that is `seen` in a list, or free, or retired.

    Changes `seen`. Raises InvariantError.
    """
    demand = partial(demanded, nodes, cells)
    base, after, previous = int(cells[BASE]), nodes["next"].tolist(), nodes["prev"].tolist()
    demand(
        sum(seen) == cells[PENDING],
        f"{sum(seen)} rows are in buckets, {cells[PENDING]} counted as pending",
    )
    i = int(cells[FREE])
    while i != NO_ROW:
        demand(
            base <= i < nodes.size and not seen[i],
            f"free row {i} is not a place, or is in two chains",
        )
        demand(previous[i] == FREE_ROW, f"free row {i} is not marked free")
        seen[i] = True
        i = after[i]
    lost = nodes.size - base - sum(seen)
    demand(
        lost == cells[RETIRED], f"{lost} rows are in no chain, {cells[RETIRED]} counted as retired"
    )
