"""Judge what a peer did with several threads, by the interval of each call on one clock.

The producers divide a tape by id and do their operations as fast as they can, in real time. Nobody
knows the order in which calls of two threads took effect, so only what is wrong in every order is
a fault: a call lasts from its begin to its end, and took effect at some moment in between.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare.traffic.tapes.tape import CANCEL, START, Tape
from compare.trial.oracle.deliveries import Fault
from compare.trial.peers.protocol import MAY_OVERLAP
from timers.arrays import Int64s

REFUSED, DONE, RAN = range(3)
"""What a row says: a call that found nothing to cancel, one that took effect, or an expiry."""

UNIT_NS = 1_000_000  # a unit is a millisecond
GRACE_NS = 5_000_000_000  # a timer that has not come out so long after its deadline is lost

RULES = {
    "unknown": "a row of an operation that is not on the tape, or that ends before it begins",
    "calls": "an operation has another number of rows than one",
    "not armed": "an expiry of an operation that starts no timer",
    "twice": "a timer came out twice",
    "cancelled": "a timer came out although its cancel says that it took effect",
    "missing": "a timer neither came out nor was cancelled",
    "early": "a timer came out more than a unit too early",
    "late": "a timer came out more than 5 s too late",
    "refused": "a cancel found no timer more than a unit before the timer was due",
}
LOST, DOUBLED = ("missing", "refused"), ("twice", "cancelled")
"""The rules that say that a call was lost, and that a call was made once too often."""


class Calls(NamedTuple):
    """The rows of a run, in any order; int64, shape (n,)."""

    operation: Int64s
    what: Int64s  # REFUSED, DONE or RAN
    begin: Int64s  # ns, of one clock for all threads
    end: Int64s


@dataclass(frozen=True)
class Judgement:
    """What a run shows."""

    broken: dict[str, int]  # rule -> number of timers that break it
    fault: Fault | None  # the first
    start_ns: Int64s  # how long each start took
    late_ns: Int64s  # how late each timer came out, in no order

    @property
    def lost(self) -> int:
        """The number of timers that were lost."""
        return sum(self.broken.get(rule, 0) for rule in LOST)

    @property
    def doubled(self) -> int:
        """The number of timers that came out once too often."""
        return sum(self.broken.get(rule, 0) for rule in DOUBLED)


def judge(tape: Tape, calls: Calls, threads: str, tick: int = 1) -> Judgement:
    """Judge a run of a tape of starts and cancels. `threads` is what the peer declares.

    `tick` is in units; a timer may be late by as much.
    """
    operations, nothing = tape.time.size, np.empty(0, np.int64)
    inside = (calls.operation >= 0) & (calls.operation < operations)
    right = inside & (calls.what >= REFUSED) & (calls.what <= RAN) & (calls.begin <= calls.end)
    if not right.all():
        return _judged({"unknown": ~right}, nothing, nothing)
    ran = calls.what == RAN
    asked = np.bincount(calls.operation[~ran], minlength=operations)
    if (asked != 1).any():
        return _judged({"calls": asked != 1}, nothing, nothing)
    begin, end, done = (np.empty(operations, np.int64) for _ in range(3))
    for column, values in ((begin, calls.begin), (end, calls.end), (done, calls.what)):
        column[calls.operation[~ran]] = values[~ran]
    times = np.bincount(calls.operation[ran], minlength=operations)
    came = np.zeros(operations, np.int64)
    came[calls.operation[ran]] = calls.begin[ran]

    starts, cancels = tape.op == START, np.flatnonzero(tape.op == CANCEL)
    due = (tape.deadline - tape.time) * UNIT_NS
    target = _started_by(tape)[cancels]
    took = done[cancels] == DONE
    cancelled_at = np.full(operations, np.iinfo(np.int64).max)
    cancelled_at[target[took]] = end[cancels[took]]
    taken = cancelled_at != np.iinfo(np.int64).max
    # What the library had begun to call when the cancel returned may reach its first line later. So
    # only a timer that was not due then was surely cancelled.
    after = cancelled_at < begin + due - UNIT_NS if threads == MAY_OVERLAP else taken
    vain, kept = np.zeros(operations, np.bool_), np.zeros(operations, np.bool_)
    vain[cancels] = ~took & (end[cancels] < begin[target] + due[target] - UNIT_NS)
    kept[target[vain[cancels]]] = True  # it may be due long after the run
    once = starts & (times > 0)
    late = came - end - due
    return _judged(
        {
            "not armed": ~starts & (times > 0),
            "twice": starts & (times > 1),
            "cancelled": once & taken & after,
            "missing": starts & ~taken & ~kept & (times == 0),
            "early": once & (came < begin + due - UNIT_NS),
            "late": once & (late > GRACE_NS + tick * UNIT_NS),
            "refused": vain,
        },
        (end - begin)[starts],
        late[once],
    )


def _judged(
    wrong: dict[str, npt.NDArray[np.bool_]], start_ns: Int64s, late_ns: Int64s
) -> Judgement:
    broken = {rule: int(bad.sum()) for rule, bad in wrong.items() if bad.any()}
    fault = None
    for rule in broken:
        k = int(np.argmax(wrong[rule]))
        where = f"row {k}" if rule == "unknown" else f"operation {k}"
        text = f"{RULES[rule]}: {broken[rule]:,} in all, the first of {where}"
        fault = fault or Fault(rule, None if rule == "unknown" else k, text)
    return Judgement(broken, fault, start_ns, late_ns)


def _started_by(tape: Tape) -> Int64s:
    """For each operation, the start of the timer that its id then names."""
    order = np.argsort(tape.id, kind="stable")
    last = np.maximum.accumulate(np.where(tape.op[order] == START, np.arange(order.size), 0))
    started = np.empty_like(order)
    started[order] = order[last]
    return started
