"""Hashed wheel: one wheel of unsorted buckets; each timer counts the rotations left to wait.

Time is divided into ticks. A deadline belongs to tick `deadline // tick`, and so to slot
`deadline // tick % wheel_size`. It fires when its tick has passed, 1 to `tick` units late. Timers
of different rotations share a slot: each visit decrements a timer's rounds or, at zero, fires it.
New timers wait in a queue until the current tick has passed, and are then hashed into their slots.
A timer cancelled before that is never hashed.

        0         1         2
    +---------+---------+---------+      The clock moves clockwise, one slot per tick.
    |         |   now   |         |
    +---------+---------+---------+
  7 |         |         |         | 3
    +---------+         +---------+
    |         |         | 450  +0 |  <-- deadline  450: tick  4, slot  4 % 8 = 4, 0 rounds
    |         |         | 1234 +1 |  <-- deadline 1234: tick 12, slot 12 % 8 = 4, 1 round
    +---------+---------+---------+
        6         5         4

Example, tick 100, wheel_size 8: at 0, timers for 450 and 1234 are queued. At 100 both are hashed
into slot 4, with 0 and 1 rounds. At 500 tick 4 has passed: 450 fires, and 1234 has 0 rounds left.
It fires at 1300, when tick 12 has passed.

Costs: schedule and cancel O(1); a tick O(n / wheel_size) on average, since it visits all the timers
of a slot, due or not, plus O(1) for each timer that arrived during the tick. Drawback: a timer with
a long delay is visited once a rotation, and the precision is one tick.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 6, as in
Netty's io.netty.util.HashedWheelTimer (Worker.run, Worker.transferTimeoutsToBuckets,
HashedWheelBucket.expireTimeouts). The traits list how this differs from Netty.
"""

from typing import Any, NamedTuple

from timers.errors import InvariantError
from timers.kernels.bitmap import ahead_in_ring, unmark
from timers.kernels.counters import CLOCK_VISITS, SLOTS_VISITED, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.operations import NONE
from timers.kernels.pool import (
    BASE,
    FREE_ROW,
    HEADER,
    NOW,
    PENDING,
    allocate_pool,
    bucket_operations,
    check_pool,
    deliver,
    detach,
    dump,
    earliest_in,
    enlarged_pool,
    is_empty,
    is_full,
    link,
    link_marked,
    move_pool,
    quotient,
    quotient_by,
    reciprocal,
    slots_in,
    timers_in,
    unlink,
)
from timers.limits import LIMIT
from timers.snapshot import Ring, Snapshot

WHEEL_SIZE = HEADER  # number of slots: the buckets [0, wheel_size); then come DUE and ARRIVALS
TICK = HEADER + 1  # units per tick
CURRENT_TICK = HEADER + 2  # the number of ticks that have passed, which is the current tick
TICK_START = HEADER + 3  # the moment when the current tick began
CURRENT_SLOT = HEADER + 4  # the slot of the current tick
TICK_MULTIPLIER, TICK_SHIFT = HEADER + 5, HEADER + 6  # the tick's reciprocal (pool.py)
WHEEL_MASK = HEADER + 7  # wheel_size - 1 if the wheel size is a power of two, else NONE
WHEEL_SHIFT = HEADER + 8  # its logarithm to base 2, or NONE
WORDS = HEADER + 9

MAX_ROUNDS = 2**31 - 1  # the maximum of the field
FAR = -1  # more rounds than that; they are recomputed at each visit


class HashedWheelState(NamedTuple):
    nodes: Any  # NODE, shape (wheel_size + 2 + capacity,): sentinels, then places
    cells: Any  # int64, shape (WORDS + words of bits,): header, WHEEL_SIZE .., occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = HashedWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    tick, wheel_size = parameters["tick"], parameters["wheel_size"]
    buckets = wheel_size + 2
    nodes, cells = allocate_pool(start, capacity, buckets, WORDS, buckets)
    cells[WHEEL_SIZE], cells[TICK] = wheel_size, tick
    cells[TICK_MULTIPLIER], cells[TICK_SHIFT] = reciprocal(tick)
    is_power = wheel_size.bit_count() == 1
    cells[WHEEL_MASK], cells[WHEEL_SHIFT] = (
        (wheel_size - 1, wheel_size.bit_length() - 1) if is_power else (NONE, NONE)
    )
    enter_tick(cells, start // tick)
    return State(nodes, cells, counters)


enlarged, move_all = enlarged_pool, move_pool


@inlined
def due_bucket(cells):
    """The bucket of timers to be delivered at once."""
    return cells[WHEEL_SIZE]


@inlined
def arrivals_bucket(cells):
    """The bucket of timers armed during the current tick, which are not in a slot yet."""
    return cells[WHEEL_SIZE] + 1


@inlined
def end_of(tick_number, tick):
    """The moment when a tick has passed: the start of the next one, at most LIMIT."""
    start = tick_number * tick
    return LIMIT if start > LIMIT - tick else start + tick


@inlined
def slot_of(tick_number, cells):
    """The slot of a tick: `tick_number % wheel_size`."""
    if cells[WHEEL_MASK] != NONE:
        return tick_number & cells[WHEEL_MASK]
    return tick_number - quotient(tick_number, cells[WHEEL_SIZE]) * cells[WHEEL_SIZE]


@inlined
def enter_tick(cells, tick_number):
    """Make a tick the current one."""
    cells[CURRENT_TICK] = tick_number
    cells[TICK_START] = tick_number * cells[TICK]
    cells[CURRENT_SLOT] = slot_of(tick_number, cells)


@inlined
def rotations(ticks, cells):
    """The number of whole rotations in a number of ticks."""
    if cells[WHEEL_MASK] != NONE:
        return ticks >> cells[WHEEL_SHIFT]
    return quotient(ticks, cells[WHEEL_SIZE])


@inlined
def rounds_of(rotations_ahead):
    """The value of the `rounds` field for a timer this many rotations ahead."""
    return rotations_ahead if rotations_ahead <= MAX_ROUNDS else FAR


@inlined
def insert(nodes, cells, counters, i, deadline):
    """Set a row's deadline and put the row into the arrivals bucket or the due bucket."""
    nodes[i]["deadline"] = deadline
    is_due = deadline <= cells[NOW]
    link(nodes, due_bucket(cells) if is_due else arrivals_bucket(cells), i)


@jit
def transfer(nodes, cells, counters):
    """Hash the timers that arrived during the current tick into slots."""
    bucket = arrivals_bucket(cells)
    i = detach(nodes, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        count(counters, TIMERS_TOUCHED, 1)
        ticks_ahead = quotient_by(
            nodes[i]["deadline"] - cells[TICK_START],
            cells[TICK],
            cells[TICK_MULTIPLIER],
            cells[TICK_SHIFT],
        )
        nodes[i]["rounds"] = rounds_of(rotations(ticks_ahead, cells))
        link_marked(nodes, cells, WORDS, slot_of(cells[CURRENT_TICK] + ticks_ahead, cells), i)
        i = after


schedule, cancel, reschedule = bucket_operations(insert, WORDS)


@inlined
def next_occupied(cells):
    """The first tick from CURRENT_TICK on that has an occupied slot, or NONE."""
    ahead = ahead_in_ring(cells, WORDS, 0, cells[WHEEL_SIZE], cells[CURRENT_SLOT])
    return NONE if ahead == NONE else cells[CURRENT_TICK] + ahead


@jit
def visit(nodes, cells, counters, tick_number):
    """Visit the slot of a tick that has passed: decrement rounds, and move due timers to DUE."""
    slot = slot_of(tick_number, cells)
    count(counters, SLOTS_VISITED, 1)
    i = nodes[slot]["next"]
    while i != slot:
        after = nodes[i]["next"]
        rounds = nodes[i]["rounds"]
        if rounds == FAR:
            rounds = rounds_of(
                rotations(quotient(nodes[i]["deadline"], cells[TICK]) - tick_number, cells)
            )
        count(counters, TIMERS_TOUCHED, 1 if rounds != 0 else 0)
        if rounds == 0:
            unlink(nodes, i)
            link(nodes, due_bucket(cells), i)
        elif rounds != FAR:
            nodes[i]["rounds"] = rounds - 1
        i = after
    if is_empty(nodes, slot):
        unmark(cells, WORDS, slot)


@jit
def skip_rotations(nodes, cells, counters, limit):
    """Skip up to `limit` rotations in which nothing is due. O(capacity), not O(n) for each."""
    skipped = limit
    for i in range(cells[BASE], nodes.size):
        if nodes[i]["prev"] != FREE_ROW:
            ticks_ahead = quotient(nodes[i]["deadline"], cells[TICK]) - cells[CURRENT_TICK]
            skipped = min(skipped, rotations(ticks_ahead, cells))
    for i in range(cells[BASE], nodes.size):
        if nodes[i]["prev"] != FREE_ROW and nodes[i]["rounds"] != FAR:
            nodes[i]["rounds"] -= skipped
    # The next call of `enter_tick` sets TICK_START; the slot stays the same.
    cells[CURRENT_TICK] += skipped * cells[WHEEL_SIZE]
    count(counters, TIMERS_TOUCHED, cells[PENDING])


@jit
def advance(state, now, out):
    nodes, cells, counters = state.nodes, state.cells, state.counters
    bucket = due_bucket(cells)
    n = 0
    quiet_since = cells[CURRENT_TICK]  # the tick after the last one with a due timer
    until = quotient(now, cells[TICK])
    # At LIMIT the current tick has passed: LIMIT is the last moment.
    if until > cells[CURRENT_TICK] or now == LIMIT:
        transfer(nodes, cells, counters)
    while True:
        before = n
        n = deliver(nodes, cells, bucket, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, bucket) or (is_full(out, n) and cells[NOW] < now):
            return n, False
        if (
            cells[CURRENT_TICK] - quiet_since >= cells[WHEEL_SIZE]
            and until - cells[CURRENT_TICK] >= cells[WHEEL_SIZE]
        ):
            skip_rotations(
                nodes, cells, counters, quotient(until - cells[CURRENT_TICK], cells[WHEEL_SIZE])
            )
            quiet_since = cells[CURRENT_TICK]
        tick_number = next_occupied(cells)
        if tick_number == NONE or (tick_number >= until and now != LIMIT):
            enter_tick(cells, until)
            cells[NOW] = now
            return n, True
        visit(nodes, cells, counters, tick_number)
        cells[NOW] = end_of(tick_number, cells[TICK])
        enter_tick(cells, min(tick_number, until - 1) + 1)  # no tick comes after that of LIMIT
        count(counters, CLOCK_VISITS, 1)
        if not is_empty(nodes, bucket):
            quiet_since = cells[CURRENT_TICK]


@inlined
def due(state):
    return not is_empty(state.nodes, due_bucket(state.cells))


@jit
def next_expiry(state):
    nodes, cells = state.nodes, state.cells
    if cells[PENDING] == 0:
        return NONE
    if due(state):
        return cells[NOW]
    earliest = earliest_in(nodes, arrivals_bucket(cells), LIMIT)
    tick_number = next_occupied(cells)
    if tick_number != NONE:
        # Slots are visited in the order of their ticks, so the first timer without rounds is the
        # earliest of them. If there is none, one rotation visits all timers.
        for _ in range(cells[WHEEL_SIZE]):
            earliest = earliest_in(nodes, slot_of(tick_number, cells), earliest)
            if quotient(earliest, cells[TICK]) <= tick_number:
                break
            tick_number += 1
    return end_of(quotient(earliest, cells[TICK]), cells[TICK])


@jit
def next_wakeup(state):
    nodes, cells = state.nodes, state.cells
    if due(state):
        return cells[NOW]
    if not is_empty(nodes, arrivals_bucket(cells)):
        return end_of(cells[CURRENT_TICK], cells[TICK])
    tick_number = next_occupied(cells)
    return tick_number if tick_number == NONE else end_of(tick_number, cells[TICK])


def snapshot(state: State) -> Snapshot:
    now, size, tick, current = (int(state.cells[k]) for k in (NOW, WHEEL_SIZE, TICK, CURRENT_SLOT))
    ring = Ring(None, tick, size, current, slots_in(state, 0, size, rounds=True))
    due, arrivals = (timers_in(state, size + k) for k in range(2))
    return Snapshot(now, (ring,), {"due": due, "arrivals": arrivals})


def check(state: State) -> None:
    nodes, cells, _ = state
    now, tick, wheel_size, current = (int(cells[k]) for k in (NOW, TICK, WHEEL_SIZE, CURRENT_TICK))

    def belongs(bucket: int, i: int) -> bool:
        deadline, rounds = int(nodes[i]["deadline"]), int(nodes[i]["rounds"])
        if bucket == due_bucket(cells):
            return deadline <= now
        ahead = deadline // tick - current
        if bucket == arrivals_bucket(cells):
            return ahead >= 0
        in_slot = ahead >= 0 and bucket == deadline // tick % wheel_size
        return in_slot and rounds in (ahead // wheel_size, FAR)

    check_pool(nodes, cells, belongs, wheel_size)
    if current != now // tick or cells[TICK_START] != now - now % tick:
        raise InvariantError(f"the tick in progress is not that of {now}\n{dump(nodes, cells)}")
