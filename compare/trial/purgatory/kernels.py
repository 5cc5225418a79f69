"""The bookkeeping of both designs of a purgatory, compiled and in simulated time.

Both keep a list of watching requests for each key. In `run_purging`, the new design, a completed
request leaves the timer at once. The lists are purged when the estimated total exceeds the number
pending by more than the purge interval, at most once per `PURGE_TICKS`. (To help Python's garbage
collector, the service also checks the front of lists that have grown; this is not needed here.)

In `run_scanning`, the old design, a completed request stays in a delay queue until its deadline or
until the reaper scans the queue. The reaper takes a turn after each deadline, and at least five
times a second.

Time is in microseconds, except that the timer counts ticks of `TICK` microseconds. The clock moves
before the first event of a later tick.
"""

# ruff: noqa: ANN001, ANN201  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from typing import Any, NamedTuple

import numpy as np

from timers.kernels.bitmap import mark, marked, unmark
from timers.kernels.delay_queue import ORDER, entry_of, owner_of
from timers.kernels.dispatch import advance, cancel, next_expiry, schedule
from timers.kernels.handles import place_of
from timers.kernels.jit import entry, inlined, jit
from timers.kernels.pool import NOW, PENDING

TICK = 1000
"""Microseconds in a tick of the timer."""

PURGE_TICKS = 50
"""Minimum number of ticks between two purges of the new design: the service's `PURGE_PERIOD`."""

REAPER_PERIOD = 200
"""Maximum number of ticks between two turns of the old design's reaper."""

WAITING, COMPLETED, EXPIRED = range(3)
"""The states of a request."""

COUNTERS = (
    "purges",
    "lists_walked",
    "entries_scanned",
    "queue_scanned",
    "most_watched",
    "most_queued",
    "most_pending",
)
(
    PURGES,  # of all lists
    LISTS_WALKED,  # in a purge; empty lists do not exist
    ENTRIES_SCANNED,  # in these lists
    QUEUE_SCANNED,  # entries of the old design's delay queue that its scans examined
    MOST_WATCHED,  # most entries in all lists together, sampled when the clock moves
    MOST_QUEUED,  # ... in the timer
    MOST_PENDING,  # ... requests neither completed nor expired
) = range(len(COUNTERS))

# Cells.
ENTRIES = 0  # entries in all lists together
WAITS = 1  # requests neither completed nor expired
ESTIMATE = 2  # the estimated total
CELLS = 3


class Work(NamedTuple):
    """What a run reads and writes besides its timer."""

    time: Any  # int64, shape (events,); see Traffic
    request: Any  # int32, shape (events,)
    keys: Any  # int32, shape (requests, WATCHED)
    starts: Any  # int64, shape (keys,): the position in `entries` of each key's list
    lengths: Any  # int64, shape (keys,): the entries of each list
    entries: Any  # int32, shape (requests * WATCHED,): watching requests; each list has room for
    #               all that ever watch its key
    handles: Any  # int64, shape (requests,)
    waiting: Any  # int32, shape (places,): the request that a place of the timer belongs to
    fate: Any  # int8, shape (requests,): WAITING, COMPLETED or EXPIRED
    bits: Any  # int64, shape (words_for(requests),): a bit per request, set while it waits; a purge
    #            reads nothing else of the requests, so this stays in the nearest cache
    ended_at: Any  # int64, shape (requests,), microseconds; 0 while it waits
    fired: Any  # EXPIRY, a buffer; one row in the old design
    scanned: Any  # int64, shape (places,), a buffer: the handles that a scan removes
    cells: Any  # int64, shape (CELLS,)
    counters: Any  # int64, shape (len(COUNTERS),)


@entry
def run_purging(state, work, timeout, interval):
    """Run all events through the new design, then expire the rest."""
    time, request, cells = work.time, work.request, work.cells
    arrived = 0
    next_purge = state.cells[NOW]
    for k in range(time.size):
        now, r = time[k], request[k]
        tick = now // TICK
        if tick > state.cells[NOW]:
            expire(state, work, tick)
            if cells[ESTIMATE] - state.cells[PENDING] > interval and tick >= next_purge:
                cells[ESTIMATE] = state.cells[PENDING]
                purge(work)
                next_purge = tick + PURGE_TICKS
        if r == arrived:
            arrived += 1
            watch(work, r)
            cells[ESTIMATE] += 1
            arm(state, work, r, now + timeout)
        else:
            complete(work, r, now)
            cancel(state, work.handles[r])
    finish(state, work)


@entry
def run_scanning(state, work, timeout, limit):
    """Run all events through the old design, then expire the rest; `state` is a delay queue."""
    time, request = work.time, work.request
    arrived = 0
    next_turn = state.cells[NOW] + REAPER_PERIOD
    for k in range(time.size):
        now, r = time[k], request[k]
        tick = now // TICK
        if tick > state.cells[NOW]:
            note_sizes(state, work)
            done = False
            while not done:
                passed, done = pass_deadlines(state, work, tick)
                if passed > 0:
                    reap(state, work, limit)
            if tick >= next_turn:
                reap(state, work, limit)
                next_turn = tick + REAPER_PERIOD
        if r == arrived:
            arrived += 1
            watch(work, r)
            arm(state, work, r, now + timeout)
        else:
            complete(work, r, now)
    finish(state, work)


@inlined
def watch(work, r):
    """Append a request to the list of each of its keys."""
    keys, starts, lengths, entries = work.keys, work.starts, work.lengths, work.entries
    for column in range(keys.shape[1]):
        key = keys[r, column]
        entries[starts[key] + lengths[key]] = r
        lengths[key] += 1
    work.cells[ENTRIES] += keys.shape[1]


@inlined
def arm(state, work, r, deadline):
    """Set the timeout of a request, rounded up to a tick."""
    handle = schedule(state, (deadline + TICK - 1) // TICK)
    work.handles[r] = handle
    work.waiting[place_of(handle)] = r
    mark(work.bits, 0, r)
    work.cells[WAITS] += 1


@inlined
def complete(work, r, now):
    """Complete a request that has been answered."""
    unmark(work.bits, 0, r)
    work.fate[r] = COMPLETED
    work.ended_at[r] = now
    work.cells[WAITS] -= 1


@inlined
def note_sizes(state, work):
    """Update the maximum sizes."""
    cells, counters = work.cells, work.counters
    counters[MOST_WATCHED] = max(counters[MOST_WATCHED], cells[ENTRIES])
    counters[MOST_QUEUED] = max(counters[MOST_QUEUED], state.cells[PENDING])
    counters[MOST_PENDING] = max(counters[MOST_PENDING], cells[WAITS])


@jit
def pass_deadlines(state, work, now):
    """Move the timer's clock and expire what still waits; return the result of `advance`."""
    fired, fate = work.fired, work.fate
    passed, done = advance(state, now, fired)
    for k in range(passed):
        r = work.waiting[place_of(fired[k]["handle"])]
        if fate[r] == WAITING:
            unmark(work.bits, 0, r)
            fate[r] = EXPIRED
            work.ended_at[r] = fired[k]["fired_at"] * TICK
            work.cells[WAITS] -= 1
    return passed, done


@jit
def expire(state, work, now):
    """Pass all deadlines up to `now`."""
    note_sizes(state, work)
    done = False
    while not done:
        _, done = pass_deadlines(state, work, now)


@inlined
def reap(state, work, limit):
    """The reaper's turn: purge the lists if they exceed the limit, and likewise the queue."""
    if work.cells[ENTRIES] > limit:
        purge(work)
    if state.cells[PENDING] > limit:
        scan_queue(state, work)


@jit
def finish(state, work):
    """Expire what still waits after the last event."""
    while state.cells[PENDING] > 0:
        expire(state, work, next_expiry(state))


@jit
def purge(work):
    """Remove the requests that no longer wait from all lists."""
    starts, lengths, entries, bits = work.starts, work.lengths, work.entries, work.bits
    cells, counters = work.cells, work.counters
    counters[PURGES] += 1
    counters[ENTRIES_SCANNED] += cells[ENTRIES]
    for key in range(lengths.size):
        counters[LISTS_WALKED] += 1 if lengths[key] > 0 else 0
        start = np.uint64(starts[key])  # unsigned: avoids a test for negative indices
        kept = start
        for i in range(start, start + np.uint64(lengths[key])):
            r = np.uint32(entries[i])
            entries[kept] = r
            kept += np.uint64(marked(bits, 0, r))  # no branch: it would be unpredictable
        cells[ENTRIES] -= lengths[key] - np.int64(kept - start)
        lengths[key] = np.int64(kept - start)


@jit
def scan_queue(state, work):
    """Remove the requests that no longer wait from the delay queue."""
    cells, fate, counters = state.cells, work.fate, work.counters
    removed = 0
    for k in range(cells[PENDING]):
        r = work.waiting[owner_of(cells[entry_of(k, ORDER)])]
        if fate[r] != WAITING:
            work.scanned[removed] = work.handles[r]
            removed += 1
    counters[QUEUE_SCANNED] += cells[PENDING]
    for k in range(removed):
        cancel(state, work.scanned[k])
