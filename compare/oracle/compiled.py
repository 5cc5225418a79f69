"""The compiled oracle: what a tape must fire and when, by rules that share nothing with the timers.

An operation that arms a timer sets the time at which it fires, by the rounding of its scheme. A
cancel or re-arm at or after that time comes too late. So whether an arming fires follows from the
operations on its id alone, in the order of the tape.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compare.oracle.mismatches import KINDS, Mismatch, Verified, combined
from compare.replay.engine import Replay
from compare.tapes.tape import CANCEL, REARM, START, Tape, joined
from timers.arrays import Int32s, Int64s
from timers.errors import TimerError
from timers.kernels.jit import long_entry
from timers.rounding import AnyRounding, Rounding
from timers.traits import Traits

NEVER = -1
"""In place of a time: the operation arms nothing, or its timer does not fire."""

WINDOW = 1 << 24
"""Operations whose rows are checked at a time, at 21 bytes each."""


class AgreementError(TimerError, RuntimeError):
    """A timer did not fire what its traits declare."""


@dataclass(frozen=True)
class Expected:
    """What a timer of one rounding must do with a tape."""

    scheduled: int
    cancelled: int
    rescheduled: int
    pending: int  # of the armings in `fired_at`
    fired_at: Int64s  # by operation; NEVER where nothing fires

    @property
    def fired(self) -> int:
        """How many timers fire."""
        return int(np.count_nonzero(self.fired_at != NEVER))


def expect(tape: Tape, id_space: int, rounding: AnyRounding, *, drained: bool = True) -> Expected:
    """What a timer of this rounding must do with a tape. O(operations).

    With `drained`, the clock moves on after the last operation until nothing is pending.
    """
    return expect_pieces([tape], id_space, rounding, range(tape.time.size), drained=drained)


def expect_pieces(
    pieces: Iterable[Tape], id_space: int, rounding: AnyRounding, window: range, *, drained: bool
) -> Expected:
    """`expect` for a tape in pieces; `fired_at` has the operations of `window` only.

    Memory: 8 bytes for each operation of the window and 16 for each id.
    """
    fired_at = np.full(len(window), NEVER, np.int64)
    armed_by, due_by_id = np.zeros(id_space, np.int64), np.full(id_space, NEVER, np.int64)
    counts = np.zeros(3, np.int64)
    done = last_time = 0
    for piece in pieces:
        due = np.full(piece.time.size, NEVER, np.int64)
        arms = np.flatnonzero(piece.op != CANCEL)
        due[arms] = rounding.due_at(piece.deadline[arms], piece.time[arms])
        follow(piece, due, done - window.start, armed_by, due_by_id, fired_at, counts)
        if piece.time.size:
            done, last_time = done + piece.time.size, int(piece.time[-1])
    pending = 0
    if not drained:
        stays = fired_at > last_time
        if done and done - 1 in window:
            # The last operation is not followed by an advance: what it arms overdue stays pending.
            stays[done - 1 - window.start] = fired_at[done - 1 - window.start] != NEVER
        pending = int(np.count_nonzero(stays))
        fired_at[stays] = NEVER
    scheduled, cancelled, rescheduled = counts.tolist()
    return Expected(scheduled, cancelled, rescheduled, pending, fired_at)


@long_entry
def follow(tape, due, first, armed_by, due_by_id, fired_at, counts):
    """Follow a piece of a tape whose first operation belongs at `fired_at[first]`.

    `due` is the time of each arming. By id, `armed_by` is the operation that armed the id's timer,
    counted like `first`, and `due_by_id` its time, or NEVER. Adds to `counts` the operations that
    took effect: scheduled, cancelled, rescheduled.
    """
    for k in range(tape.time.size):
        op, i, at = tape.op[k], tape.id[k], first + k
        is_pending = due_by_id[i] > tape.time[k]
        if is_pending and op != START and 0 <= armed_by[i] < fired_at.size:
            fired_at[armed_by[i]] = NEVER
        if op == CANCEL:
            due_by_id[i] = NEVER
            counts[1] += is_pending
        elif op != REARM or is_pending:
            if 0 <= at < fired_at.size:
                fired_at[at] = due[k]
            armed_by[i], due_by_id[i] = at, due[k]
            if op == START or not is_pending:
                counts[0] += 1
            else:
                counts[2] += 1


# ---- checking the rows that a timer fired


class Rows(NamedTuple):
    """Fired rows, in any order; int64, shape (n,)."""

    operation: Int64s  # that armed the timer
    deadline: Int64s
    fired_at: Int64s


@dataclass(frozen=True)
class Check:
    """What a timer fired from one shard, to be compared with what it must fire.

    `pieces` and `rows` give the tape and the rows piece by piece, each time they are called: once
    for each WINDOW operations. `examples` limits the mismatches of each kind that are told in full.
    """

    pieces: Callable[[], Iterable[Tape]]
    operations: int  # of the tape
    id_space: int
    rows: Callable[[], Iterable[Rows]]
    rounding: AnyRounding
    shard: int = 0
    drained: bool = True
    examples: int = 5

    def run(self, window: int = WINDOW) -> Verified:
        """Compare them. O(operations + rows) time for each window of operations.

        Memory: 21 bytes for each operation of a window, 16 for each id, and the wrong rows.
        """
        firsts = range(0, max(self.operations, 1), window)
        parts = (self._check(range(k, min(k + window, self.operations))) for k in firsts)
        return combined(parts, self.examples)

    def _check(self, window: range) -> Verified:
        """Compare the rows of a window; the first has the rows without an operation, too."""
        # One more, which is never right, stands for the operations that the tape does not have.
        ids = np.zeros(len(window) + 1, np.int32)
        deadlines, seen = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.bool_)
        pieces = _noted(self.pieces(), window, ids, deadlines)
        due = expect_pieces(pieces, self.id_space, self.rounding, window, drained=self.drained)
        expected = np.append(due.fired_at, NEVER)
        wrong, total = [np.empty((3, 0), np.int64)], 0
        for rows in self.rows():
            at = np.empty(rows.operation.size, np.int64)
            found = take(rows, window.start, self.operations, expected, deadlines, seen, at)
            wrong.append(np.stack(rows)[:, at[:found]])
            total += at.size

        operation, reported, fired_at = np.concatenate(wrong, axis=1)
        order = np.lexsort((reported, fired_at, operation))
        operation, reported, fired_at = operation[order], reported[order], fired_at[order]
        inside = (operation >= window.start) & (operation < window.stop)
        at = np.where(inside, operation - window.start, len(window))
        due_at = expected[at]
        # Of the rows of a timer without a right one, the first stands for it.
        is_first = np.ones(at.size, np.bool_)
        is_first[1:] = operation[1:] != operation[:-1]
        stands = is_first & (due_at != NEVER) & ~seen[at]
        kind = np.select(
            [due_at == NEVER, ~stands, fired_at < due_at, fired_at > due_at],
            [KINDS.index(name) for name in ("spurious", "double", "early", "late")],
            KINDS.index("altered"),
        )
        seen[at[stands]] = True
        missing = np.flatnonzero((expected != NEVER) & ~seen)
        counts = np.bincount(kind, minlength=len(KINDS)).tolist()
        counts[KINDS.index("missing")] = missing.size

        def mismatch(
            kind: str, operation: int, fired_at: int | None = None, reported: int | None = None
        ) -> Mismatch:
            id_ = deadline = due_at = None
            if operation in window:
                k = operation - window.start
                id_, deadline = int(ids[k]), int(deadlines[k])
                due_at = None if expected[k] == NEVER else int(expected[k])
            return Mismatch(kind, self.shard, operation, id_, deadline, due_at, fired_at, reported)

        numbers = (missing[: self.examples] + window.start).tolist()
        examples = [mismatch("missing", number) for number in numbers]
        for number, name in enumerate(KINDS):
            for r in np.flatnonzero(kind == number)[: self.examples]:
                examples.append(
                    mismatch(name, int(operation[r]), int(fired_at[r]), int(reported[r]))
                )
        return Verified(
            expected=int(np.count_nonzero(expected != NEVER)),
            fired=0 if window.start else total,
            counts=dict(zip(KINDS, counts, strict=True)),
            examples=tuple(examples),
        )


def _noted(pieces: Iterable[Tape], window: range, ids: Int32s, deadlines: Int64s) -> Iterator[Tape]:
    """The pieces of a tape; notes the ids and deadlines of the operations of a window."""
    first = -window.start
    for piece in pieces:
        for noted, column in ((ids, piece.id), (deadlines, piece.deadline)):
            part = column[max(-first, 0) : max(len(window) - first, 0)]
            noted[max(first, 0) : max(first, 0) + part.size] = part
        first += piece.time.size
        yield piece


@long_entry
def take(rows, begin, operations, expected, deadlines, seen, wrong):
    """Mark the right rows in `seen`; fill `wrong` with the numbers of the others, and count them.

    `expected`, `deadlines` and `seen` begin with operation number `begin`; their last entry is
    blank. Rows of operations that the tape has, but not these arrays, are passed over.
    """
    found = 0
    for r in range(rows.operation.size):
        operation = rows.operation[r]
        at = operation - begin
        if operation < 0 or operation >= operations:
            if begin > 0:
                continue
            at = seen.size - 1
        elif at < 0 or at >= seen.size - 1:
            continue
        is_right = expected[at] != NEVER and expected[at] == rows.fired_at[r]
        if is_right and deadlines[at] == rows.deadline[r] and not seen[at]:
            seen[at] = True
        else:
            wrong[found] = r
            found += 1
    return found


# ---- checking a replay in memory


def check_agreement(
    name: str, traits: Traits, tape: Tape, expected: Expected, done: Replay
) -> None:
    """Raise AgreementError for the first difference between a replay and what is expected."""
    fired_at = np.full(tape.time.size, NEVER, np.int64)
    fired_at[done.fired["operation"]] = done.fired["fired_at"]
    differs = np.flatnonzero(fired_at != expected.fired_at)
    if differs.size:
        k = int(differs[0])
        raise AgreementError(
            f"{name} disagrees with the oracle on the timer armed by operation {k}"
            f" (id {tape.id[k]}, at {tape.time[k]}, deadline {tape.deadline[k]}):"
            f" {_moment(fired_at[k])}, expected: {_moment(expected.fired_at[k])}"
        )
    _check_rows(name, traits, tape, done)
    for count in ("scheduled", "cancelled", "rescheduled", "pending"):
        got, wanted = getattr(done.outcome, count), getattr(expected, count)
        if got != wanted:
            raise AgreementError(
                f"{name} disagrees with the oracle: {got} {count}, expected {wanted}"
            )


def _check_rows(name: str, traits: Traits, tape: Tape, done: Replay) -> None:
    """Check what the times do not show: no row twice, the deadlines, and the declared order."""
    rows = done.fired
    if rows.size and np.bincount(rows["operation"]).max() > 1:
        raise AgreementError(f"{name} fired a timer twice: {rows.size} rows of fewer timers")
    wrong = np.flatnonzero(rows["deadline"] != tape.deadline[rows["operation"]])
    if wrong.size:
        raise AgreementError(f"{name} fired row {wrong[0]} with another deadline: {rows[wrong[0]]}")
    misplaced = np.flatnonzero(np.diff(rows["fired_at"]) < 0)
    if traits.order == "fifo" and not misplaced.size:
        # A stable sort: equal rows stay in the order of delivery.
        rows = rows[np.lexsort((rows["deadline"], rows["fired_at"]))]
        equal = (np.diff(rows["fired_at"]) == 0) & (np.diff(rows["deadline"]) == 0)
        misplaced = np.flatnonzero(equal & (np.diff(rows["operation"]) < 0))
    if misplaced.size:
        first, second = rows[misplaced[0]], rows[misplaced[0] + 1]
        raise AgreementError(
            f"{name} is declared {traits.order}, but delivered {first} before {second}"
        )


def _moment(fired_at: int) -> str:
    return "did not fire" if fired_at == NEVER else f"fired at {fired_at}"


def compile_check() -> None:
    """Compile what a check needs, or load it from the disk cache, so that workers find it there."""
    rows = Rows(*np.zeros((3, 0), np.int64))
    Check(lambda: [joined([])], 0, 0, lambda: [rows], Rounding()).run()
