"""`IdleRing`: an idle detector for numbered connections, compiled.

The ring has a list of connections for each tick. A new connection goes into the list of the tick at
which it would be idle; a packet only notes the new tick. When the clock passes a list, those of its
connections that are not idle go into the list of their present tick.

The lists are chunks of numbers, one behind the other in memory: where the next connection is does
not depend on the one before, so the processor fetches many at once. A linked list costs a cache
miss for each.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from typing import Any

import numpy as np
import numpy.typing as npt

from timers.arrays import Int64s
from timers.kernels.jit import entry, inlined
from timers.services.idle_detector import Ticks
from timers.validation import as_integers, as_parameter

NUMBERS = 1 << 24
"""A connection's number is below this."""

CONNECTION = np.dtype([("idle_at", "i8"), ("listed", "i8")])
"""A connection, by its number: the tick at which it is idle, and the tick in whose list it is, not
after the former; UNKNOWN for one that is not known.

A number may be in other lists as well, if its connection was removed. An entry counts if its
connection's `listed` has come; whoever finds it moves or clears that.
"""

UNKNOWN = -1

CHUNK = 64  # int32 words: NEXT, COUNT and the numbers
NEXT, COUNT, FIRST = 0, 1, 2
ROOM = CHUNK - FIRST
NO_CHUNK = 0  # chunk 0 is never used

# Cells, int64.
OPEN = 0  # connections
ENTRIES = 1  # numbers in all lists
FREE = 2  # first free chunk, or NO_CHUNK
CELLS = 3

_LARGEST_RING = 4096  # lists; a connection that is idle later waits in the last one


class IdleRing(Ticks):
    """An IdleDetector for connections with numbers in [0, 2**24), such as file descriptors.

    It needs no timer and is many times faster: a packet costs a few nanoseconds in `touch_many`. It
    takes 16 bytes for each number up to the largest, and 4 for each connection. Those of a removed
    one are given back when it would have been idle. Not thread-safe.

    >>> ring = IdleRing(timeout=30)
    >>> ring.touch_many([4, 5], at=0)
    >>> ring.touch(5, at=12.5)
    >>> ring.advance(30), ring.advance(43), len(ring)
    (array([4]), array([5]), 0)

    Raises:
        TimeTypeError, TimeRangeError: for a timeout or tick that is not a duration, or a tick of 0.
    """

    def __init__(self, timeout: Any = 30.0, tick: Any = 1.0) -> None:
        super().__init__(timeout, tick)
        ticks = min(self._timeout // self._tick + 2, _LARGEST_RING - 1)
        self._lists = np.zeros(1 << ticks.bit_length(), np.int32)  # by tick: the first chunk
        self._connections = np.full(0, UNKNOWN, np.int64).view(CONNECTION)
        self._chunks = np.zeros((1, CHUNK), np.int32)
        self._cells = np.zeros(CELLS, np.int64)

    def __len__(self) -> int:
        """The number of connections that are not idle. O(1)."""
        return int(self._cells[OPEN])

    def touch(self, number: int, at: Any = None) -> None:
        """A packet came from one connection; see `touch_many`. O(1)."""
        self.touch_many(np.array([as_parameter(number, "number", 0, NUMBERS - 1)]), at)

    def touch_many(self, numbers: npt.ArrayLike, at: Any = None) -> None:
        """A packet came from each of these connections, at `at`, or at the next tick. O(1) each.

        A connection that is not known is added. A time before its last one changes nothing.

        Raises:
            TimeTypeError, TimeRangeError: for what are not integers, or not a moment of at least 0.
            ParameterError: for a number outside [0, 2**24).
        """
        idle_at = self._deadline(at)
        numbers = as_integers(numbers, "numbers")
        if not numbers.size:
            return  # there would be no smallest one to make room for
        while not touch_all(
            self._lists, self._connections, self._chunks, self._cells, numbers, self._unit, idle_at
        ):
            self._reserve(numbers)

    def remove(self, number: int) -> bool:
        """Forget a connection; False if it is not known. O(1).

        Raises:
            TimeTypeError, ParameterError: for what is not an integer in [0, 2**24).
        """
        number = as_parameter(number, "number", 0, NUMBERS - 1)
        listed = self._connections["listed"]
        if number >= listed.size or listed[number] == UNKNOWN:
            return False
        listed[number] = UNKNOWN
        self._cells[OPEN] -= 1
        return True

    def advance(self, now: Any) -> Int64s:
        """Move the clock to `now` seconds; returns an array of those that fell idle, in order.

        They are forgotten; a later touch adds them again. O(1) for each that is in a passed list.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
            ClockError: for a time before that of the last call.
        """
        before, unit = self._unit, self._move(now)
        idle, passed = np.empty(len(self), np.int64), np.empty(self._lists.size, np.int32)
        state = (self._lists, self._connections, self._chunks, self._cells)
        found, ordered = pass_lists(*state, before, unit, passed, idle)
        idle = idle[:found]
        if not ordered:
            idle = idle[np.argsort(self._connections["idle_at"][idle], kind="stable")]
        return idle

    def _reserve(self, numbers: Int64s) -> None:
        """Make room for these numbers, and for an entry for each of them."""
        for number in (int(numbers.min()), int(numbers.max())):
            as_parameter(number, "number", 0, NUMBERS - 1)
        known = self._connections.size
        if number >= known:
            larger = np.full(2 * max(2 * known, number + 1), UNKNOWN, np.int64)
            larger[: 2 * known] = self._connections.view(np.int64)
            self._connections = larger.view(CONNECTION)
        chunks = len(self._chunks)
        needed = chunks_for(int(self._cells[ENTRIES]) + numbers.size, self._lists.size)
        if needed > chunks:
            grown = np.zeros((2 * needed, CHUNK), np.int32)
            grown[:chunks] = self._chunks
            grown[chunks:, NEXT] = np.arange(chunks + 1, 2 * needed + 1)
            grown[-1, NEXT] = self._cells[FREE]
            self._chunks, self._cells[FREE] = grown, chunks


@inlined
def chunks_for(entries, lists):
    """The most chunks that so many entries take.

    While the lists that are passed are filed anew, each of them and each of the others has one
    chunk that is not full.
    """
    return entries // ROOM + 2 * lists + 2


@entry
def touch_all(lists, connections, chunks, cells, numbers, now, idle_at):
    """Note that connections are idle at a tick, and list those that are new.

    False, and nothing has changed, if there is no room for a number or for as many entries.
    """
    inside = len(chunks) >= chunks_for(cells[ENTRIES] + numbers.size, lists.size)
    for k in range(numbers.size):
        inside &= np.uint64(numbers[k]) < np.uint64(connections.size)  # a negative one is large
    if not inside:
        return False
    listed = tick_of_list(lists, now, idle_at)
    for k in range(numbers.size):
        number = np.uint32(numbers[k])  # unsigned: no test for a negative index
        if connections[number]["listed"] == UNKNOWN:
            connections[number]["idle_at"] = idle_at
            connections[number]["listed"] = listed
            append(lists, chunks, cells, listed, number)
            cells[OPEN] += 1
        else:  # no branch: it could not be predicted
            connections[number]["idle_at"] = max(connections[number]["idle_at"], idle_at)
    return True


@entry
def pass_lists(lists, connections, chunks, cells, before, now, passed, idle):
    """Write what is idle at `now` to `idle`, and list the rest of what has been passed anew.

    Returns the number of idle connections, and whether they are in order.
    """
    n = 0
    last = np.int64(0)
    ordered = True
    count = min(now - before + 1, lists.size)
    for k in range(count):
        tick = np.uint64(before + k) & np.uint64(lists.size - 1)
        passed[k] = lists[tick]
        lists[tick] = NO_CHUNK
    for k in range(count):
        chunk = passed[k]
        while chunk != NO_CHUNK:
            for j in range(FIRST, FIRST + chunks[chunk, COUNT]):
                number = np.uint32(chunks[chunk, j])
                listed, idle_at = connections[number]["listed"], connections[number]["idle_at"]
                if listed == UNKNOWN or listed > now:  # removed since
                    continue
                if idle_at <= now:
                    connections[number]["listed"] = UNKNOWN
                    ordered &= last <= idle_at
                    last = idle_at
                    idle[n] = number
                    n += 1
                else:
                    listed = tick_of_list(lists, now, idle_at)
                    connections[number]["listed"] = listed
                    append(lists, chunks, cells, listed, number)
            cells[ENTRIES] -= chunks[chunk, COUNT]
            after = chunks[chunk, NEXT]
            chunks[chunk, NEXT] = cells[FREE]
            cells[FREE] = chunk
            chunk = after
    cells[OPEN] -= n
    return n, ordered


@inlined
def tick_of_list(lists, now, idle_at):
    """The tick in whose list a connection waits: not before `now`, and on the ring."""
    return now + max(min(idle_at - now, lists.size - 1), 0)


@inlined
def append(lists, chunks, cells, tick, number):
    """Append a number to the list of a tick."""
    i = np.uint64(tick) & np.uint64(lists.size - 1)
    chunk = np.uint32(lists[i])
    if chunk == NO_CHUNK or chunks[chunk, COUNT] == ROOM:
        free = np.uint32(cells[FREE])
        cells[FREE] = chunks[free, NEXT]
        chunks[free, NEXT] = chunk
        chunks[free, COUNT] = 0
        lists[i] = free
        chunk = free
    chunks[chunk, np.uint32(FIRST + chunks[chunk, COUNT])] = number
    chunks[chunk, COUNT] += 1
    cells[ENTRIES] += 1
