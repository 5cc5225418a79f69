"""Dense wheel: a cascading wheel whose slots are arrays of place numbers instead of linked lists.

There are five wheels of 256 slots, as in the cascading wheel, but a timer's level is that of the
highest bit in which its deadline and the clock differ. So the slot follows from deadline and clock
alone, a timer need not store it, and each slot opens once, when the clock reaches its first unit.

    level  slot width  a timer's slot            all 256 slots span
    1               1  deadline & 255                           256
    2           2**8   deadline >> 8 & 255      2**16 =      65 536
    3           2**16  deadline >> 16 & 255     2**24 =  16 777 216
    4           2**24  deadline >> 24 & 255     2**32 ~ 4.3 * 10**9
    5           2**32  deadline >> 32 & 255     2**40 ~ 1.1 * 10**12
    overflow           of deadlines that differ from the clock in bit 40 or higher

    level 1, a slot is 1 unit       level 2, a slot is 256 units

        0    ..    20                   3     4     5
     +-----+-----+-----+             +-----+-----+-----+
     |     |     |  B  |             | now |     |  A  |
     +-----+-----+-----+             +-----+-----+-----+
 255 |     |     |     | ..        2 |     |     |     | 6
     +-----+     +-----+             +-----+     +-----+
     |     | now |     |             |     |     |     |
     +-----+-----+-----+             +-----+-----+-----+
       ..    232   ..                   1     0    ..

A bucket is a stack of lines, each of 64 bytes like a cache line: the number of the line below and
15 place numbers. Every line but the top one is full. A cancel moves the bucket's last number into
the gap. Nothing links one timer to the next, so cascade and delivery can fetch the places of a
whole line into the cache before they need them. A place takes 16 bytes and its number 64 / 15.

    bucket 1  --->  [ line below | 7, 2, 9 ]  --->  [ no line below | 15 numbers ]

Example: at 1000 = 3 * 256 + 232, a timer for 1300 = 5 * 256 + 20 differs from the clock in the
second byte: level 2, slot 5 (A). At 1280 = 5 * 256 slot 5 opens. The timer now differs in the first
byte: level 1, slot 20 (B). It fires at 1300.

Costs: schedule and cancel O(1); advance O(1) for each move of a timer to a lower wheel, in bursts
of whole slots. Drawback: one tick can move all the timers of an upper slot, and a cancel writes to
the place of another timer. Occupancy bits let advance skip empty time.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7; the level
by the highest differing bit as in Tokio's timer wheel (`level_for`); lines after Shao, Reppy &
Appel, "Unrolling Lists" (LFP 1994).
"""

from typing import Any, NamedTuple

import numpy as np

from timers.errors import InvariantError
from timers.kernels.bitmap import WORD_BITS, mark, next_marked, unmark, words_for
from timers.kernels.counters import CLOCK_VISITS, REFILED, SLOTS_VISITED, TIMERS_TOUCHED, count
from timers.kernels.handles import (
    FIRST_GENERATION,
    LAST_GENERATION,
    LOWEST_HANDLE,
    PLACE_BITS,
    encode,
    generation_of,
    place_of,
)
from timers.kernels.jit import inlined, jit
from timers.kernels.memory import lengthened, zeros
from timers.kernels.operations import NONE, Places, operations
from timers.kernels.pool import (
    BITS,
    FREE,
    HEADER,
    NOW,
    PENDING,
    RETIRED,
    ROWS,
    is_full,
    is_replaced,
    move_cells,
    move_rows,
)
from timers.kernels.prefetch import prefetch
from timers.kernels.words import words_of
from timers.limits import LIMIT
from timers.snapshot import Ring, Snapshot, Timers, Waiting

LEVELS = 5
SLOT_BITS = 8
SLOTS = 1 << SLOT_BITS
SLOT_MASK = SLOTS - 1
SPAN_BITS = LEVELS * SLOT_BITS  # the wheels reach 2**40 units

OVERFLOW = LEVELS * SLOTS  # bucket of timers beyond the wheels; before it, level * SLOTS + slot
BUCKETS = OVERFLOW + 1

PLACE = np.dtype(  # 16 bytes, so that a place is never in two cache lines
    [
        ("deadline", "i8"),  # of a free place: the next free one, or NONE
        ("generation", "i4"),  # of its current or next use
        ("at", "u4"),  # where its number stands, as an index of a word; FREE_PLACE if free
    ]
)
FREE_PLACE = 0

# A line is 16 of the 32-bit words of `cells`; line k starts at word 16 * k, and at a cache line.
LINE_BITS = 4
LINE_WORDS = 1 << LINE_BITS
LINE_MASK = LINE_WORDS - 1
CELLS_OF_LINE = LINE_WORDS // 2
BELOW = 0  # word of a line: the line below it in its bucket, or NO_LINE; if free, the next free one
FIRST, LAST = 1, LINE_MASK  # the words of a line that contain place numbers
NO_LINE = 0  # the header is in its place

FREE_LINE = HEADER  # first free line, or NO_LINE
OVERFLOW_MIN = HEADER + 1  # a lower bound of the overflow bucket's deadlines, if it has any
TAILS = HEADER + 2  # of each bucket: the word of its last number, or 0 if it is empty
WORDS = TAILS + BUCKETS  # occupancy bits of the buckets
FIRST_LINE = -(-(WORDS + words_for(BUCKETS)) // CELLS_OF_LINE)


class DenseWheelState(NamedTuple):
    nodes: Any  # PLACE, shape (capacity,)
    cells: Any  # int64, shape (CELLS_OF_LINE * lines,): header, cells above, occupancy bits, lines
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = DenseWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    nodes, cells = zeros(capacity, PLACE), zeros(cells_for(capacity), np.int64)
    nodes["generation"], nodes["at"] = FIRST_GENERATION, FREE_PLACE
    nodes["deadline"] = np.arange(1, capacity + 1)
    nodes["deadline"][-1] = NONE
    lines = words_of(cells).reshape(-1, LINE_WORDS)
    lines[FIRST_LINE:, BELOW] = np.arange(FIRST_LINE + 1, len(lines) + 1)
    lines[-1, BELOW] = NO_LINE
    cells[NOW], cells[FREE_LINE], cells[BITS], cells[ROWS] = start, FIRST_LINE, WORDS, capacity
    return State(nodes, cells, counters)


def enlarged(state: State, capacity: int) -> State:
    nodes, cells, counters = state
    return State(lengthened(nodes, capacity), lengthened(cells, cells_for(capacity)), counters)


@jit
def move_all(state, target):
    nodes, cells, larger, target_cells = state.nodes, state.cells, target.nodes, target.cells
    if is_replaced(nodes, cells):
        return False
    move_rows(nodes, larger)
    for i in range(nodes.size, larger.size):
        larger[i]["deadline"] = i + 1
        larger[i]["generation"] = FIRST_GENERATION
        larger[i]["at"] = FREE_PLACE
    move_cells(cells, target_cells)
    larger[larger.size - 1]["deadline"] = target_cells[FREE]
    target_cells[FREE] = nodes.size
    words = words_of(target_cells)
    lines, more_lines = cells.size // CELLS_OF_LINE, target_cells.size // CELLS_OF_LINE
    for line in range(lines, more_lines):
        words[line << LINE_BITS] = line + 1
    if lines < more_lines:
        words[(more_lines - 1) << LINE_BITS] = target_cells[FREE_LINE]
        target_cells[FREE_LINE] = lines
    target_cells[ROWS] = larger.size
    return True


def cells_for(capacity: int) -> int:
    """Return the number of cells with enough lines for `capacity` timers, however they are spread.

    Each bucket may have a line that is not full; one more is being emptied while its timers move.
    """
    lines = capacity // LAST + BUCKETS + 1
    return CELLS_OF_LINE * (FIRST_LINE + lines)


@inlined
def claim(nodes, cells):
    """Take a free place; the caller has reserved one."""
    i = np.int64(np.uint32(cells[FREE]))  # tells Numba that the index is not negative
    cells[FREE] = nodes[i]["deadline"]
    cells[PENDING] += 1
    return i


@inlined
def release(nodes, cells, i):
    """Free a place; its handle is dead."""
    cells[PENDING] -= 1
    nodes[i]["at"] = FREE_PLACE
    generation = nodes[i]["generation"]
    if generation == LAST_GENERATION:
        cells[RETIRED] += 1
    else:
        nodes[i]["generation"] = generation + 1
        nodes[i]["deadline"] = cells[FREE]
        cells[FREE] = i


@inlined
def handle_of(nodes, cells, i):
    """The handle of a pending place."""
    return encode(nodes[i]["generation"], i)


@inlined
def row_of(nodes, cells, handle):
    """The place of a pending timer's handle, or NONE for any other int64."""
    i = np.int64(np.uint32(place_of(handle)))
    if handle < LOWEST_HANDLE or i >= nodes.size:
        return NONE
    if nodes[i]["generation"] != generation_of(handle) or nodes[i]["at"] == FREE_PLACE:
        return NONE
    return i


@inlined
def slot_of(deadline, level):
    """The bucket of a deadline on a given level."""
    return (level << SLOT_BITS) + ((deadline >> (level * SLOT_BITS)) & SLOT_MASK)


@inlined
def bucket_of(deadline, now):
    """The bucket of a deadline. What is due is in the slot of now."""
    if deadline <= now:
        return slot_of(now, 0)
    differing = deadline ^ now
    for level in range(LEVELS):  # jumps, which are predicted: nothing waits for the level
        if differing < 1 << ((level + 1) * SLOT_BITS):
            return slot_of(deadline, level)
    return OVERFLOW


@inlined
def tail_of(cells, bucket):
    """The word of a bucket's last number, or 0."""
    return np.uint32(cells[np.uint32(TAILS + bucket)])


@inlined
def set_tail(cells, bucket, tail):
    cells[np.uint32(TAILS + bucket)] = tail


@inlined
def push(cells, bucket, i):
    """Add a place number to a bucket; return the word in which it stands."""
    words, tail = words_of(cells), tail_of(cells, bucket)
    at = np.uint32(tail + 1)
    if tail & LINE_MASK == 0 or at & LINE_MASK == 0:  # an empty bucket or a full line
        start = np.uint32(cells[FREE_LINE] << LINE_BITS)
        cells[FREE_LINE] = words[start]
        words[start] = tail >> LINE_BITS
        at = np.uint32(start + FIRST)
        if tail == 0:
            mark(cells, WORDS, bucket)
    words[at] = i
    set_tail(cells, bucket, at)
    return at


@inlined
def pop(cells, bucket, tail):
    """Take the last number, which is in the word `tail`, off a bucket."""
    if tail & LINE_MASK != FIRST:
        set_tail(cells, bucket, tail - 1)
        return
    below = free_line(cells, tail >> LINE_BITS)
    if below == NO_LINE:
        set_tail(cells, bucket, 0)
        unmark(cells, WORDS, bucket)
    else:
        set_tail(cells, bucket, (below << LINE_BITS) + LAST)


@inlined
def free_line(cells, line):
    """Free a line, and return the line that was below it."""
    words, start = words_of(cells), np.uint32(line << LINE_BITS)
    below = words[start]
    words[start] = cells[FREE_LINE]
    cells[FREE_LINE] = line
    return below


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a place's deadline and put its number into its bucket."""
    nodes[i]["deadline"] = deadline
    bucket = bucket_of(deadline, cells[NOW])
    if bucket == OVERFLOW and (tail_of(cells, bucket) == 0 or deadline < cells[OVERFLOW_MIN]):
        cells[OVERFLOW_MIN] = deadline
    nodes[i]["at"] = push(cells, bucket, i)


@inlined
def remove(nodes, cells, counters, i):
    """Take a place's number out of its bucket, whose last number fills the gap."""
    words, bucket = words_of(cells), bucket_of(nodes[i]["deadline"], cells[NOW])
    tail, at = tail_of(cells, bucket), nodes[i]["at"]
    last = words[tail]
    words[at] = last
    nodes[last]["at"] = at
    pop(cells, bucket, tail)


schedule, cancel, reschedule = operations(Places(claim, release, handle_of, row_of), insert, remove)


@jit
def fetch(nodes, cells, line, last):
    """Fetch the places in a line, up to its word `last`, and the line below into the cache."""
    words, start = words_of(cells), np.uint32(line << LINE_BITS)
    prefetch(words, np.uint32(words[start] << LINE_BITS))
    for k in range(FIRST, last + 1):
        prefetch(nodes, words[np.uint32(start + k)])


@jit
def cascade(nodes, cells, counters, bucket):
    """Insert all timers of an upper slot again, relative to the new time."""
    words, tail = words_of(cells), tail_of(cells, bucket)
    line, last = tail >> LINE_BITS, tail & LINE_MASK
    count(counters, SLOTS_VISITED, 1)
    set_tail(cells, bucket, 0)
    unmark(cells, WORDS, bucket)
    fetch(nodes, cells, line, last)
    while line != NO_LINE:
        start = np.uint32(line << LINE_BITS)
        if words[start] != NO_LINE:
            fetch(nodes, cells, words[start], LAST)
        count(counters, TIMERS_TOUCHED, last)
        count(counters, REFILED, last)
        for k in range(FIRST, last + 1):
            i = np.int64(words[np.uint32(start + k)])
            insert(nodes, cells, counters, i, nodes[i]["deadline"])
        line, last = free_line(cells, line), LAST


@jit
def deliver(nodes, cells, bucket, out, n):
    """Write a bucket's timers to out[n:], as fired now, until the bucket is empty or `out` is full.

    Returns the new number of rows in `out`.
    """
    words, tail, now = words_of(cells), tail_of(cells, bucket), cells[NOW]
    line, last = tail >> LINE_BITS, tail & LINE_MASK
    fetch(nodes, cells, line, last)
    while line != NO_LINE:
        start = np.uint32(line << LINE_BITS)
        if words[start] != NO_LINE:
            fetch(nodes, cells, words[start], LAST)
        for k in range(last, 0, -1):
            if n == out.size:
                set_tail(cells, bucket, start + k)
                return n
            i = np.int64(words[np.uint32(start + k)])
            out[n]["handle"] = handle_of(nodes, cells, i)
            out[n]["deadline"] = nodes[i]["deadline"]
            out[n]["fired_at"] = now
            n += 1
            release(nodes, cells, i)
        line, last = free_line(cells, line), LAST
    set_tail(cells, bucket, 0)
    unmark(cells, WORDS, bucket)
    return n


@inlined
def next_stop(cells):
    """The next unit at which a bucket opens, and the bucket; (NONE, NONE) if all are empty.

    What is due is not counted.
    """
    now = cells[NOW]
    current = now & SLOT_MASK
    slot = next_marked(cells, WORDS, current + 1, SLOTS)
    if slot != NONE:
        return now + (slot - current), slot
    return next_stop_above(cells)


@jit
def next_stop_above(cells):
    """`next_stop` if no later slot of the lowest wheel is occupied.

    Every timer of a level comes before all timers of the levels above.
    """
    now = cells[NOW]
    for level in range(1, LEVELS):
        shift, first = level * SLOT_BITS, level << SLOT_BITS
        current = slot_of(now, level)
        bucket = next_marked(cells, WORDS, current + 1, first + SLOTS)
        if bucket != NONE:
            return ((now >> shift) + (bucket - current)) << shift, bucket
    if tail_of(cells, OVERFLOW) != 0:
        return (cells[OVERFLOW_MIN] >> SPAN_BITS) << SPAN_BITS, np.int64(OVERFLOW)
    return np.int64(NONE), np.int64(NONE)


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    n = 0
    while True:
        if due(state):
            before = n
            n = deliver(nodes, cells, slot_of(cells[NOW], 0), out, n)
            count(counters, TIMERS_TOUCHED, n - before)
            if due(state):
                return n, False
        if cells[NOW] >= now:
            return n, True
        if is_full(out, n):
            return n, False
        stop, bucket = next_stop(cells)
        if stop == NONE or stop > now:
            cells[NOW] = now
            return n, True
        cells[NOW] = stop
        count(counters, CLOCK_VISITS, 1)
        if bucket >= SLOTS:
            cascade(nodes, cells, counters, bucket)
        if due(state):
            count(counters, SLOTS_VISITED, 1)


@inlined
def due(state):
    return tail_of(state.cells, slot_of(state.cells[NOW], 0)) != 0


@jit
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if due(state):
        return cells[NOW]
    stop, bucket = next_stop(cells)
    if bucket < SLOTS:  # a unit, or NONE
        return stop
    return earliest_in(nodes, cells, bucket)


@jit
def earliest_in(nodes, cells, bucket):
    """The earliest deadline in a bucket that is not empty. O(timers in it)."""
    words, tail = words_of(cells), tail_of(cells, bucket)
    line, last = tail >> LINE_BITS, tail & LINE_MASK
    earliest = LIMIT
    while line != NO_LINE:
        start = np.uint32(line << LINE_BITS)
        fetch(nodes, cells, line, last)
        for k in range(FIRST, last + 1):
            earliest = min(earliest, nodes[words[np.uint32(start + k)]]["deadline"])
        line, last = words[start], LAST
    return earliest


@jit
def next_wakeup(state):
    if due(state):
        return state.cells[NOW]
    stop, _ = next_stop(state.cells)
    return stop


def timers_in(state: State, bucket: int) -> Timers:
    """Return the timers of a bucket in the order of their numbers. O(timers in it)."""
    nodes, cells, _ = state
    words, tail = words_of(cells), cells.item(TAILS + bucket)
    lines = []
    line = tail >> LINE_BITS
    while line != NO_LINE:
        lines.append(line)
        line = words.item(line << LINE_BITS)
    places = words[words_between(lines[::-1], tail)]
    rows = nodes[places]
    handles = (rows["generation"].astype(np.int64) << PLACE_BITS) + places
    return tuple(map(Waiting, handles.tolist(), rows["deadline"].tolist()))


def words_between(lines: list[int], tail: int) -> np.ndarray[Any, Any]:
    """Return the words of a bucket's numbers. `lines` are its lines, the lowest first."""
    words = np.array(lines, np.int64)[:, None] * LINE_WORDS + np.arange(FIRST, LINE_WORDS)
    return words.ravel()[: LAST * (len(lines) - 1) + (tail & LINE_MASK)]


def snapshot(state: State) -> Snapshot:
    now, tails = int(state.cells[NOW]), state.cells[TAILS : TAILS + BUCKETS]
    rings = []
    for level in range(LEVELS):
        first = level * SLOTS
        occupied = np.flatnonzero(tails[first : first + SLOTS]).tolist()
        slots = {slot: timers_in(state, first + slot) for slot in occupied}
        rings.append(
            Ring(
                level + 1,  # as in the table above; the code counts from 0
                1 << level * SLOT_BITS,
                SLOTS,
                now >> level * SLOT_BITS & SLOT_MASK,
                slots,
            )
        )
    overflow = timers_in(state, OVERFLOW) if tails[OVERFLOW] else ()
    return Snapshot(now, tuple(rings), {"overflow": overflow})


def check(state: State) -> None:
    nodes, cells, _ = state
    now, tails = int(cells[NOW]), cells[TAILS : TAILS + BUCKETS]
    words = words_of(cells)
    # Lists: reading an array element by element takes ten times as long.
    deadlines, at = nodes["deadline"].tolist(), nodes["at"].tolist()
    below = words[BELOW::LINE_WORDS].tolist()
    in_chain = [line < FIRST_LINE for line in range(len(below))]
    seen = [False] * nodes.size

    def demand(holds: Any, message: str) -> None:
        if not holds:
            raise InvariantError(f"{message}\n{dump()}")

    def dump() -> str:
        places = "\n".join(f"  place {i}: {nodes[i]}" for i in np.flatnonzero(nodes["at"]).tolist())
        buckets = "\n".join(f"  bucket {b}: {tails[b]}" for b in np.flatnonzero(tails).tolist())
        return f"  cells: {cells[:TAILS].tolist()}\n  tails:\n{buckets}\n{places}"

    def chain(line: int) -> list[int]:
        """The lines from `line` on, which are in no other chain."""
        lines = []
        while line != NO_LINE:
            # Not by a call of `demand` for each line, which would take most of the time.
            if line >= len(below) or in_chain[line]:
                demand(False, f"line {line} is not a line, or is in two chains")
            in_chain[line] = True
            lines.append(line)
            line = below[line]
        return lines

    bits = cells[WORDS : WORDS + words_for(BUCKETS)][:, None] >> np.arange(WORD_BITS) & 1
    wrong = np.flatnonzero(bits.ravel()[:BUCKETS] != (tails != 0)).tolist()
    demand(not wrong, f"occupancy bits of buckets {wrong} are wrong")
    for bucket in np.flatnonzero(tails).tolist():
        tail = int(tails[bucket])
        demand(tail & LINE_MASK, f"bucket {bucket} ends at word {tail}, which has no place number")
        numbers = words_between(chain(tail >> LINE_BITS)[::-1], tail)
        for word, i in zip(numbers.tolist(), words[numbers].tolist(), strict=True):
            demand(
                i < nodes.size and not seen[i],
                f"{i} in bucket {bucket} is not a place, or is in two buckets",
            )
            seen[i] = True
            demand(at[i] == word, f"place {i} does not know word {word}, where its number stands")
            demand(deadlines[i] >= 0, f"place {i} has a negative deadline")
            demand(
                bucket_of(deadlines[i], now) == bucket
                and (bucket != OVERFLOW or deadlines[i] >= cells[OVERFLOW_MIN]),
                f"place {i} of deadline {deadlines[i]} is in the wrong bucket {bucket}",
            )
    demand(
        sum(seen) == cells[PENDING],
        f"{sum(seen)} places are in buckets, {cells[PENDING]} counted as pending",
    )
    free = [i for i in range(nodes.size) if not seen[i]]
    demand(not nodes["at"][free].any(), "not all free places are marked free")
    i = int(cells[FREE])
    while i != NONE:
        demand(
            0 <= i < nodes.size and not seen[i],
            f"free place {i} is not a place, or is in two chains",
        )
        seen[i] = True
        i = deadlines[i]
    lost = nodes.size - sum(seen)
    demand(
        lost == cells[RETIRED],
        f"{lost} places are in no chain, {cells[RETIRED]} counted as retired",
    )
    chain(int(cells[FREE_LINE]))
    demand(all(in_chain), "lines are lost")
