"""Hashed wheel: one wheel of unsorted buckets, and for each timer the number of rotations still to
wait.

Time is cut into ticks. A deadline belongs to tick `deadline // tick` and to slot `that %
wheel_size`; it fires when its tick has passed, so 1 .. tick late. A timer more than a rotation away
shares its slot with nearer ones: each time the slot comes round, its rounds are decremented, and at
zero it fires. New timers wait in a queue, and are hashed into their slots when the tick in progress
has passed: one that is cancelled before costs no hashing.

Example, tick 1, wheel_size 8, now 0: deadlines 7 and 15 both hash to slot 7, with 0 and 1 rounds; 8
and 16 to slot 0, with 1 and 2. They fire at 8, 16, 9 and 17.

Costs: schedule and cancel O(1); a tick O(n / wheel_size) on average, since all the timers of a slot
are looked at, due or not, and O(1) for each timer that arrived during it. Drawback: long delays are
touched once a rotation; and the tick is the precision.

Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 6, as in
Netty's io.netty.util.HashedWheelTimer (Worker.run, Worker.transferTimeoutsToBuckets,
HashedWheelBucket.expireTimeouts). Ticks are aligned to absolute time here (Netty: to the timer's
start), any wheel size is taken (Netty rounds up to a power of two), all that arrived is hashed at
the end of a tick (Netty: 100 000 timers at most), empty slots are skipped, and so are whole
rotations of a long jump in which nothing is due.
"""

from typing import Any, NamedTuple

import numpy as np

from timers.errors import InvariantError
from timers.kernels.bitmap import next_marked, unmark, words_for
from timers.kernels.counters import CLOCK_VISITS, SLOTS_VISITED, TIMERS_TOUCHED, count
from timers.kernels.jit import inlined, jit
from timers.kernels.pool import (
    BASE,
    BITS,
    FREE,
    FREE_ROW,
    HEADER,
    NONE,
    NOW,
    PENDING,
    allocate_nodes,
    bucket_at,
    check_pool,
    claim,
    deliver,
    detach,
    dump,
    earliest_in,
    handle_of,
    is_empty,
    link,
    link_marked,
    quotient,
    quotient_by,
    reciprocal,
    release,
    reserve_nodes,
    row_of,
    unlink,
    unlink_marked,
)
from timers.limits import LIMIT

WHEEL_SIZE = HEADER  # number of slots: the buckets [0, wheel_size); then come DUE and ARRIVALS
TICK = HEADER + 1  # units in a tick
PASSED = HEADER + 2  # number of ticks that have passed, hence the tick that is in progress
ORIGIN = HEADER + 3  # the moment when that began
SLOT = HEADER + 4  # the slot of the tick in progress
MULTIPLIER, DOWN = HEADER + 5, HEADER + 6  # the tick's reciprocal (pool.py)
MASK = HEADER + 7  # wheel_size - 1 where the wheel size is a power of two, else NONE
SHIFT = HEADER + 8  # its logarithm there
WORDS = HEADER + 9

MOST_ROUNDS = 2**31 - 1  # what the field holds
FAR = -1  # rounds of a timer further off than that: worked out anew at each look


class HashedWheelState(NamedTuple):
    nodes: Any  # NODE, shape (wheel_size + 1 + capacity,): sentinels [slot, DUE, ARRIVALS], then places
    clock: Any  # int64, shape (WORDS + words of bits,): header, WHEEL_SIZE .. SHIFT, occupancy bits
    counters: Any  # int64, shape (len(COUNTERS),), or None


State = HashedWheelState


def allocate(start: int, capacity: int, parameters: Any, counters: Any) -> State:
    tick, wheel_size = parameters["tick"], parameters["wheel_size"]
    buckets = wheel_size + 2
    clock = np.zeros(WORDS + words_for(buckets), np.int64)
    clock[NOW], clock[FREE], clock[BASE], clock[BITS] = start, buckets, buckets, WORDS
    clock[WHEEL_SIZE], clock[TICK] = wheel_size, tick
    clock[MULTIPLIER], clock[DOWN] = reciprocal(tick)
    is_power = wheel_size & (wheel_size - 1) == 0
    clock[MASK], clock[SHIFT] = (
        (wheel_size - 1, wheel_size.bit_length() - 1) if is_power else (NONE, NONE)
    )
    turn_to(clock, start // tick, start - start % tick)
    return State(allocate_nodes(buckets, capacity), clock, counters)


def reserve(state: State, extra: int) -> State:
    return state._replace(nodes=reserve_nodes(state.nodes, state.clock, extra))


@inlined
def due_bucket(clock):
    """The bucket of timers to be delivered at once."""
    return clock[WHEEL_SIZE]


@inlined
def arrivals_bucket(clock):
    """The bucket of timers armed during the tick in progress, which are in no slot yet."""
    return clock[WHEEL_SIZE] + 1


@inlined
def end_of(tick_number, tick):
    """The moment when a tick has passed: the start of the next one, at most LIMIT."""
    start = tick_number * tick
    return LIMIT if start > LIMIT - tick else start + tick


@inlined
def slot_of(tick_number, clock):
    """The slot of a tick: `tick_number % wheel_size`."""
    if clock[MASK] != NONE:
        return tick_number & clock[MASK]
    return tick_number - quotient(tick_number, clock[WHEEL_SIZE]) * clock[WHEEL_SIZE]


@inlined
def turn_to(clock, tick_number, origin):
    """Make a tick, which begins at `origin`, the one in progress."""
    clock[PASSED] = tick_number
    clock[ORIGIN] = origin
    clock[SLOT] = slot_of(tick_number, clock)


@inlined
def rotations(ticks, clock):
    """How many whole rotations a number of ticks makes."""
    if clock[MASK] != NONE:
        return ticks >> clock[SHIFT]
    return quotient(ticks, clock[WHEEL_SIZE])


@inlined
def rounds_of(rotations_ahead):
    """What the `rounds` field holds for a timer so many rotations ahead."""
    return rotations_ahead if rotations_ahead <= MOST_ROUNDS else FAR


@inlined
def file(nodes, clock, i):
    """Put a row among the arrivals, or the due."""
    is_due = nodes[i]["deadline"] <= clock[NOW]
    link(nodes, due_bucket(clock) if is_due else arrivals_bucket(clock), i)


@jit
def transfer(nodes, clock, counters):
    """Hash what arrived during the tick in progress into slots."""
    bucket = arrivals_bucket(clock)
    i = detach(nodes, bucket)
    while i != bucket:
        after = nodes[i]["next"]
        count(counters, TIMERS_TOUCHED, 1)
        ticks_ahead = quotient_by(
            nodes[i]["deadline"] - clock[ORIGIN], clock[TICK], clock[MULTIPLIER], clock[DOWN]
        )
        nodes[i]["rounds"] = rounds_of(rotations(ticks_ahead, clock))
        link_marked(nodes, clock, WORDS, slot_of(clock[PASSED] + ticks_ahead, clock), i)
        i = after


@inlined
def schedule(state, deadline):
    nodes, clock = state.nodes, state.clock
    i = claim(nodes, clock)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, i)
    return handle_of(nodes, clock[BASE], i)


@inlined
def cancel(state, handle):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return False
    unlink_marked(nodes, clock, WORDS, i)
    release(nodes, clock, i)
    return True


@inlined
def reschedule(state, handle, deadline):
    nodes, clock = state.nodes, state.clock
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return False
    unlink_marked(nodes, clock, WORDS, i)
    nodes[i]["deadline"] = deadline
    file(nodes, clock, i)
    return True


@inlined
def next_occupied(clock):
    """The next tick from PASSED on whose slot is occupied, or NONE."""
    passed, wheel_size = clock[PASSED], clock[WHEEL_SIZE]
    at = clock[SLOT]
    slot = next_marked(clock, WORDS, at, wheel_size)
    if slot != NONE:
        return passed + (slot - at)
    slot = next_marked(clock, WORDS, 0, at)
    if slot != NONE:
        return passed + (slot - at + wheel_size)
    return NONE


@jit
def visit(nodes, clock, counters, tick_number):
    """What a tick does when it has passed: its slot's timers are due, or wait one round less."""
    slot = slot_of(tick_number, clock)
    count(counters, SLOTS_VISITED, 1)
    i = nodes[slot]["next"]
    while i != slot:
        after = nodes[i]["next"]
        rounds = nodes[i]["rounds"]
        if rounds == FAR:
            rounds = rounds_of(
                rotations(quotient(nodes[i]["deadline"], clock[TICK]) - tick_number, clock)
            )
        count(counters, TIMERS_TOUCHED, 1 if rounds != 0 else 0)
        if rounds == 0:
            unlink(nodes, i)
            link(nodes, due_bucket(clock), i)
        elif rounds != FAR:
            nodes[i]["rounds"] = rounds - 1
        i = after
    if is_empty(nodes, slot):
        unmark(clock, WORDS, slot)


@jit
def skip_rotations(nodes, clock, counters, most):
    """Pass up to `most` rotations at once in which nothing is due: O(capacity) instead of O(n) for
    each of them.
    """
    fewest = most
    for i in range(clock[BASE], nodes.size):
        if nodes[i]["prev"] != FREE_ROW:
            ticks_ahead = quotient(nodes[i]["deadline"], clock[TICK]) - clock[PASSED]
            fewest = min(fewest, rotations(ticks_ahead, clock))
    for i in range(clock[BASE], nodes.size):
        if nodes[i]["prev"] != FREE_ROW and nodes[i]["rounds"] != FAR:
            nodes[i]["rounds"] -= fewest
    clock[PASSED] += fewest * clock[WHEEL_SIZE]  # ORIGIN follows with the next tick; the slot stays
    count(counters, TIMERS_TOUCHED, clock[PENDING])


@jit
def advance(state, now, out):
    nodes, clock, counters = state.nodes, state.clock, state.counters
    bucket = due_bucket(clock)
    n = 0
    quiet_since = clock[PASSED]  # the tick after the last one that had something due
    until = quotient(now, clock[TICK])
    if (
        until > clock[PASSED] or now == LIMIT
    ):  # at LIMIT the tick in progress has passed: no moment comes after
        transfer(nodes, clock, counters)
    while True:
        before = n
        n = deliver(nodes, clock, clock[BASE], bucket, out, n)
        count(counters, TIMERS_TOUCHED, n - before)
        if not is_empty(nodes, bucket):
            return n, False
        if (
            clock[PASSED] - quiet_since >= clock[WHEEL_SIZE]
            and until - clock[PASSED] >= clock[WHEEL_SIZE]
        ):
            skip_rotations(
                nodes, clock, counters, quotient(until - clock[PASSED], clock[WHEEL_SIZE])
            )
            quiet_since = clock[PASSED]
        tick_number = next_occupied(clock)
        if tick_number == NONE or (tick_number >= until and now != LIMIT):
            turn_to(clock, until, until * clock[TICK])
            clock[NOW] = now
            return n, True
        visit(nodes, clock, counters, tick_number)
        clock[NOW] = end_of(tick_number, clock[TICK])
        turn_to(clock, min(tick_number, LIMIT - 1) + 1, clock[NOW])
        count(counters, CLOCK_VISITS, 1)
        if not is_empty(nodes, bucket):
            quiet_since = clock[PASSED]


@inlined
def due(state):
    return not is_empty(state.nodes, due_bucket(state.clock))


@jit
def next_expiry(state):
    nodes, clock = state.nodes, state.clock
    if clock[PENDING] == 0:
        return NONE
    if due(state):
        return clock[NOW]
    # Slots are looked at in the order of their ticks, so the first timer without rounds is the
    # earliest of them; if there is none, all have been seen after one rotation.
    earliest = end_of(
        quotient(earliest_in(nodes, arrivals_bucket(clock)), clock[TICK]), clock[TICK]
    )
    tick_number = next_occupied(clock)
    if tick_number == NONE:
        return earliest
    for _ in range(clock[WHEEL_SIZE]):
        slot = slot_of(tick_number, clock)
        i = nodes[slot]["next"]
        while i != slot:
            earliest = min(
                earliest, end_of(quotient(nodes[i]["deadline"], clock[TICK]), clock[TICK])
            )
            i = nodes[i]["next"]
        if earliest <= end_of(tick_number, clock[TICK]):
            break
        tick_number += 1
    return earliest


@jit
def next_wakeup(state):
    nodes, clock = state.nodes, state.clock
    if due(state):
        return clock[NOW]
    if not is_empty(nodes, arrivals_bucket(clock)):
        return end_of(clock[PASSED], clock[TICK])
    tick_number = next_occupied(clock)
    return tick_number if tick_number == NONE else end_of(tick_number, clock[TICK])


def locate(state: State, handle: int) -> dict[str, int | str]:
    nodes, clock, _ = state
    i = row_of(nodes, clock[BASE], handle)
    if i == NONE:
        return {}
    bucket = bucket_at(nodes, clock, i)
    if bucket == due_bucket(clock):
        return {"bucket": "due"}
    if bucket == arrivals_bucket(clock):
        return {"bucket": "arrivals"}
    return {"slot": bucket, "rounds": int(nodes[i]["rounds"])}


def check(state: State) -> None:
    nodes, clock, _ = state
    now, tick, wheel_size, passed = (int(clock[k]) for k in (NOW, TICK, WHEEL_SIZE, PASSED))

    def belongs(bucket: int, i: int) -> bool:
        deadline, rounds = int(nodes[i]["deadline"]), int(nodes[i]["rounds"])
        if bucket == due_bucket(clock):
            return deadline <= now
        ahead = deadline // tick - passed
        if bucket == arrivals_bucket(clock):
            return ahead >= 0
        in_slot = ahead >= 0 and bucket == deadline // tick % wheel_size
        return in_slot and rounds in (ahead // wheel_size, FAR)

    check_pool(nodes, clock, wheel_size, belongs)
    if passed != now // tick or clock[ORIGIN] != now - now % tick:
        raise InvariantError(f"the tick in progress is not that of {now}\n{dump(nodes, clock)}")
