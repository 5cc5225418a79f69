"""Check what a peer delivered on a tape, and when: by the order of its expiries among operations.

A peer is known by its bounds alone: the earliest and the latest moment at which each timer may
fire. Where those differ, the expiry itself says whether a later cancel or re-arm came too late. So
the check follows the tape with the delivered rows beside it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape, joined
from timers.arrays import Int64s
from timers.kernels.jit import long_entry

NEVER = -1
"""Replaces a number where there is none."""


class Delivery(NamedTuple):
    """The expiries of a peer, in the order of delivery; int64, shape (n,)."""

    operation: Int64s  # the one that last armed the timer
    before: Int64s  # the operation before which it came out; the number of operations in the drain
    clock: Int64s  # the time to which the peer had then advanced
    fired_at: Int64s  # in the peer's own words; not checked


class Bounds(NamedTuple):
    """The earliest and latest moment at which the timer that each operation arms may fire."""

    earliest: Int64s
    latest: Int64s


@dataclass(frozen=True)
class Fault:
    """The first thing that a peer did wrong on a tape."""

    kind: str  #: one of FAULTS
    operation: int | None  #: that armed the timer; None if the tape has no such operation
    text: str  #: one sentence


FAULTS = (
    *("unknown", "back in time", "twice", "missing", "not armed", "cancelled"),
    *("early", "late", "order", "fifo"),
)
"""Kinds of faults.

- unknown: a row names an operation that is not on the tape;
- back in time: rows are not in the order of the operations before which they came out, or the
  clock decreases or is not that of the operation;
- twice: a timer has two rows;
- missing: a timer that must fire has no row, or was cancelled or re-armed after it should have
  fired;
- not armed: the operation of a row arms no timer, or comes after the row;
- cancelled: a timer fired after it was cancelled or re-armed;
- early, late: a timer came out before its earliest or after its latest moment;
- order: a timer came out after one that fires later;
- fifo: timers with one deadline came out in another order than that in which they were armed.
"""


def first_fault(
    tape: Tape, id_space: int, bounds: Bounds, rows: Delivery, *, fifo: bool
) -> Fault | None:
    """Return the first fault of a peer on a tape, or None. O(operations + rows log rows).

    The first fault is that with the lowest operation before which it shows.
    """
    operations = tape.time.size
    if (fault := _bad_rows(tape, rows)) is not None:
        return fault
    before = np.full(operations, NEVER, np.int64)
    before[rows.operation] = rows.before
    clock = np.full(operations, NEVER, np.int64)
    clock[rows.operation] = rows.clock
    armed, taken = _followed(tape, id_space, before)
    number, deadline = np.arange(operations), _last_chance(tape, bounds)
    has_row, gone = before != NEVER, taken != NEVER
    end = np.where(gone, taken, operations)
    missing = armed & ~has_row & (~gone | (deadline <= taken))
    came = armed & has_row & ~gone
    at_end = (before == operations) & (clock > bounds.latest)
    wrong = {
        "not armed": has_row & (~armed | (before <= number)),
        "cancelled": armed & has_row & gone,
        "early": came & (clock < bounds.earliest),
        "late": came & ((before > deadline) | at_end),
        "missing": missing,
    }
    # Where a fault shows: in the row, or where the missing row should have been.
    shows = {kind: np.where(bad, before, operations + 1) for kind, bad in wrong.items()}
    shows["missing"] = np.where(missing, np.minimum(deadline, end), operations + 1)
    shows["late"] = np.where(wrong["late"], np.minimum(deadline, before), operations + 1)
    first: tuple[int, int, str] | None = None
    for kind, where in shows.items():
        if operations and wrong[kind].any():
            k = int(np.argmin(where))
            if first is None or int(where[k]) < first[0]:
                first = int(where[k]), k, kind
    if first is not None:
        _, k, kind = first
        return Fault(kind, k, _sentence(kind, k, tape, bounds, before, clock, taken))
    return _bad_order(tape, bounds, rows, fifo=fifo)


def ideal(tape: Tape, id_space: int, bounds: Bounds) -> tuple[npt.NDArray[np.bool_], Int64s]:
    """Which operations arm a timer, and which operation takes each timer out, or NEVER.

    Every timer fires at its latest moment.
    """
    return _followed(tape, id_space, _last_chance(tape, bounds))


def _followed(tape: Tape, id_space: int, before: Int64s) -> tuple[npt.NDArray[np.bool_], Int64s]:
    operations = tape.time.size
    armed, taken = np.zeros(operations, np.bool_), np.full(operations, NEVER, np.int64)
    _follow(tape, before, np.full(id_space, NEVER, np.int64), armed, taken)
    return armed, taken


def _last_chance(tape: Tape, bounds: Bounds) -> Int64s:
    """The operation before which each timer must have come out."""
    number = np.arange(tape.time.size)
    return np.maximum(number + 1, np.searchsorted(tape.time, bounds.latest))


def expected_text(k: int, bounds: Bounds) -> str:
    """When the timer that operation `k` arms fires: "at 5" or "at 5 to 8"."""
    earliest, latest = int(bounds.earliest[k]), int(bounds.latest[k])
    return f"at {earliest}" if earliest == latest else f"at {earliest} to {latest}"


def delivered_text(before: int, clock: int, operations: int) -> str:
    """When a row came out."""
    where = "in the drain" if before == operations else f"before {before}"
    return f"at {clock}, {where}"


def _sentence(
    kind: str,
    k: int,
    tape: Tape,
    bounds: Bounds,
    before: Int64s,
    clock: Int64s,
    taken: Int64s,
) -> str:
    timer = f"the timer of operation {k}"
    came = delivered_text(int(before[k]), int(clock[k]), tape.time.size)
    must = f"it must fire {expected_text(k, bounds)}"
    match kind:
        case "not armed" if before[k] > k:
            return f"operation {k} arms no timer, but one came out {came}"
        case "not armed":
            return f"{timer} came out {came}, before it was armed"
        case "cancelled":
            how = "cancelled" if tape.op[taken[k]] == CANCEL else "re-armed"
            return f"{timer} was {how} by operation {taken[k]}, but came out {came}"
        case "missing" if taken[k] != NEVER:
            return f"{timer} did not come out before operation {taken[k]}; {must}"
        case "missing":
            return f"{timer} never came out; {must}"
        case _:
            return f"{timer} came out {came}; {must}"


def _bad_rows(tape: Tape, rows: Delivery) -> Fault | None:
    """Check the rows by themselves: known operations, order, and no timer twice."""
    operations = tape.time.size
    unknown = np.flatnonzero((rows.operation < 0) | (rows.operation >= operations))
    if unknown.size:
        bad = int(rows.operation[unknown[0]])
        text = f"row {unknown[0]} is of operation {bad}; the tape has {operations}"
        return Fault("unknown", None, text)
    if not rows.operation.size:
        return None
    outside = (rows.before < 1) | (rows.before > operations)
    inside = np.clip(rows.before, 1, operations)
    ends = np.append(tape.time, np.iinfo(np.int64).max)
    wrong = outside | (rows.clock < tape.time[inside - 1]) | (rows.clock > ends[inside])
    wrong[1:] |= (np.diff(rows.before) < 0) | (np.diff(rows.clock) < 0)
    if wrong.any():
        r = int(np.argmax(wrong))
        k = int(rows.operation[r])
        came = delivered_text(int(rows.before[r]), int(rows.clock[r]), operations)
        last = ""
        if r:
            previous = int(rows.before[r - 1]), int(rows.clock[r - 1])
            last = f", after a row {delivered_text(*previous, operations)}"
        return Fault("back in time", k, f"the timer of operation {k} came out {came}{last}")
    counts = np.bincount(rows.operation, minlength=operations)
    if counts.max() > 1:
        k = int(np.argmax(counts > 1))
        return Fault("twice", k, f"the timer of operation {k} came out {counts[k]} times")
    return None


def _bad_order(tape: Tape, bounds: Bounds, rows: Delivery, *, fifo: bool) -> Fault | None:
    """Check the order of rows, which are right otherwise."""
    if not rows.operation.size:
        return None
    latest_so_far = np.maximum.accumulate(bounds.earliest[rows.operation])
    wrong = bounds.latest[rows.operation] < latest_so_far
    if wrong.any():
        r = int(np.argmax(wrong))
        k = int(rows.operation[r])
        other = int(rows.operation[np.argmax(bounds.earliest[rows.operation])])
        text = f"the timer of operation {k}, which fires {expected_text(k, bounds)}, came out"
        return Fault("order", k, f"{text} after that of {other}, {expected_text(other, bounds)}")
    if fifo:
        # The sort is stable: equal rows stay in the order of delivery.
        deadline = tape.deadline[rows.operation]
        order = np.lexsort((deadline, rows.clock))
        clock, deadline, operation = rows.clock[order], deadline[order], rows.operation[order]
        equal = (np.diff(clock) == 0) & (np.diff(deadline) == 0)
        wrong = equal & (np.diff(operation) < 0)
        if wrong.any():
            r = int(np.argmax(wrong))
            first, second = int(operation[r]), int(operation[r + 1])
            text = f"timers with deadline {deadline[r]} came out in the order {first}, {second}"
            return Fault(
                "fifo", second, f"{text}; they are declared to come out as they were armed"
            )
    return None


@long_entry
def _follow(tape, before, armed_by, armed, taken):
    """Find which operations arm a timer, and which operation took each timer out.

    `before` is the operation before which the timer of each operation came out, or NEVER.
    `armed_by`, by id, is the operation that armed the id's timer.
    """
    for k in range(tape.time.size):
        op, i = tape.op[k], tape.id[k]
        a = armed_by[i]
        is_pending = a != NEVER and taken[a] == NEVER and not (NEVER < before[a] <= k)
        if op != START and is_pending:
            taken[a] = k
        if op in (START, ARM) or (op == REARM and is_pending):
            armed[k] = True
            armed_by[i] = k


def compile_first_fault() -> None:
    """Compile the code of a check, so that it is loaded from the disk cache later."""
    nothing = np.empty(0, np.int64)
    bounds, rows = Bounds(nothing, nothing), Delivery(*[nothing] * len(Delivery._fields))
    first_fault(joined([]), 0, bounds, rows, fifo=False)
