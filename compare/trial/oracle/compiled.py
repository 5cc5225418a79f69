"""The compiled oracle: the expected expiries of a tape, by rules that the timers do not share.

An operation that arms a timer determines when it fires, by the rounding of its scheme. A cancel or
re-arm at or after that time is too late. So whether an armed timer fires depends only on the
operations on its id, in tape order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.tape import CANCEL, REARM, START, Tape, joined
from compare.trial.oracle.mismatches import KINDS, Mismatch, Verified, combined
from compare.trial.replay.engine import Replay
from timers.arrays import Int32s, Int64s
from timers.errors import TimerError
from timers.kernels.jit import long_entry
from timers.rounding import AnyRounding, Rounding
from timers.traits import Traits

NEVER = -1
"""Replaces a time if the operation arms nothing or its timer does not fire."""

WINDOW = 1 << 24
"""Operations that are checked at a time, at 21 bytes each."""


class AgreementError(TimerError, RuntimeError):
    """A timer did not fire what its traits declare."""


@dataclass(frozen=True)
class Expected:
    """The expected results of a timer with a given rounding on a tape."""

    scheduled: int
    cancelled: int
    rescheduled: int
    pending: int  # of the timers armed in the window
    fired_at: Int64s  # by operation; NEVER if nothing fires

    @property
    def fired(self) -> int:
        """The number of timers that fire."""
        return int(np.count_nonzero(self.fired_at != NEVER))


def expect(tape: Tape, id_space: int, rounding: AnyRounding, *, drained: bool = True) -> Expected:
    """Return the expected results of a timer with this rounding on a tape. O(operations).

    With `drained`, the clock advances after the last operation until nothing is pending.
    """
    return expect_pieces([tape], id_space, rounding, range(tape.time.size), drained=drained)


def expect_pieces(
    pieces: Iterable[Tape], id_space: int, rounding: AnyRounding, window: range, *, drained: bool
) -> Expected:
    """`expect` for a tape in pieces; `fired_at` covers only the operations in `window`.

    Memory: 8 bytes for each operation in the window and 16 for each id.
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
        is_pending = fired_at > last_time
        if done and done - 1 in window:
            # No advance follows the last operation, so a timer that it arms overdue stays pending.
            is_pending[done - 1 - window.start] = fired_at[done - 1 - window.start] != NEVER
        pending = int(np.count_nonzero(is_pending))
        fired_at[is_pending] = NEVER
    scheduled, cancelled, rescheduled = counts.tolist()
    return Expected(scheduled, cancelled, rescheduled, pending, fired_at)


@long_entry
def follow(tape, due, first, armed_by, due_by_id, fired_at, counts):
    """Follow a piece of a tape whose first operation has index `first` in `fired_at`.

    `due` is when the timer that an operation arms is due. By id, `armed_by` is the index of the
    operation that armed the id's timer, and `due_by_id` when it is due, or NEVER. Adds to `counts`
    the operations that took effect: scheduled, cancelled, rescheduled.
    """
    for k in range(tape.time.size):
        op, i, index = tape.op[k], tape.id[k], first + k
        is_pending = due_by_id[i] > tape.time[k]
        if is_pending and op != START and 0 <= armed_by[i] < fired_at.size:
            fired_at[armed_by[i]] = NEVER
        if op == CANCEL:
            due_by_id[i] = NEVER
            counts[1] += is_pending
        elif op != REARM or is_pending:
            if 0 <= index < fired_at.size:
                fired_at[index] = due[k]
            armed_by[i], due_by_id[i] = index, due[k]
            if op == START or not is_pending:
                counts[0] += 1
            else:
                counts[2] += 1


# ---- checking the rows that a timer fired


class Rows(NamedTuple):
    """Fired rows, in any order; int64, shape (n,)."""

    operation: Int64s  # the one that armed the timer
    deadline: Int64s
    fired_at: Int64s


@dataclass(frozen=True)
class Check:
    """Compare the rows that a timer fired from one shard with the expected ones.

    `pieces` and `rows` return the tape and the rows piece by piece. They are called once for each
    WINDOW of operations. `examples` limits the mismatches of each kind that are listed.
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
        """Compare them, in O(operations + rows) time for each window of operations.

        Memory: 21 bytes for each operation in a window, 16 for each id, and the wrong rows.
        """
        starts = range(0, max(self.operations, 1), window)
        parts = (self._check(range(k, min(k + window, self.operations))) for k in starts)
        return combined(parts, self.examples)

    def _check(self, window: range) -> Verified:
        """Compare the rows of a window; the first also gets the rows of unknown operations."""
        # The extra last entry is for operations that are not on the tape. It never matches.
        ids = np.zeros(len(window) + 1, np.int32)
        deadlines, seen = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.bool_)
        pieces = _recorded(self.pieces(), window, ids, deadlines)
        due = expect_pieces(pieces, self.id_space, self.rounding, window, drained=self.drained)
        expected = np.append(due.fired_at, NEVER)
        wrong, total = [np.empty((3, 0), np.int64)], 0
        for rows in self.rows():
            numbers = np.empty(rows.operation.size, np.int64)
            count = match(rows, window.start, self.operations, expected, deadlines, seen, numbers)
            wrong.append(np.stack(rows)[:, numbers[:count]])
            total += numbers.size

        operation, reported, fired_at = np.concatenate(wrong, axis=1)
        order = np.lexsort((reported, fired_at, operation))
        operation, reported, fired_at = operation[order], reported[order], fired_at[order]
        inside = (operation >= window.start) & (operation < window.stop)
        index = np.where(inside, operation - window.start, len(window))
        due_at = expected[index]
        # If a timer has no right row, its first row counts as early, late or altered.
        is_first = np.ones(index.size, np.bool_)
        is_first[1:] = operation[1:] != operation[:-1]
        is_substitute = is_first & (due_at != NEVER) & ~seen[index]
        kind = np.select(
            [due_at == NEVER, ~is_substitute, fired_at < due_at, fired_at > due_at],
            [KINDS.index(name) for name in ("spurious", "double", "early", "late")],
            KINDS.index("altered"),
        )
        seen[index[is_substitute]] = True
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

        missing_operations = (missing[: self.examples] + window.start).tolist()
        examples = [mismatch("missing", number) for number in missing_operations]
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


def _recorded(
    pieces: Iterable[Tape], window: range, ids: Int32s, deadlines: Int64s
) -> Iterator[Tape]:
    """Yield the pieces of a tape; record the ids and deadlines of the operations in a window."""
    first = -window.start
    for piece in pieces:
        for record, column in ((ids, piece.id), (deadlines, piece.deadline)):
            part = column[max(-first, 0) : max(len(window) - first, 0)]
            record[max(first, 0) : max(first, 0) + part.size] = part
        first += piece.time.size
        yield piece


@long_entry
def match(rows, begin, operations, expected, deadlines, seen, wrong):
    """Mark right rows in `seen`, put the numbers of the others into `wrong`, and count those.

    `expected`, `deadlines` and `seen` start with operation `begin`; their last entry is blank.
    Rows of other operations on the tape are skipped.
    """
    count = 0
    for r in range(rows.operation.size):
        operation = rows.operation[r]
        index = operation - begin
        if operation < 0 or operation >= operations:
            if begin > 0:
                continue
            index = seen.size - 1
        elif index < 0 or index >= seen.size - 1:
            continue
        is_right = expected[index] != NEVER and expected[index] == rows.fired_at[r]
        if is_right and deadlines[index] == rows.deadline[r] and not seen[index]:
            seen[index] = True
        else:
            wrong[count] = r
            count += 1
    return count


# ---- checking a replay in memory


def check_agreement(
    name: str, traits: Traits, tape: Tape, expected: Expected, done: Replay
) -> None:
    """Raise AgreementError for the first difference between a replay and its expectation."""
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
        actual, declared = getattr(done.outcome, count), getattr(expected, count)
        if actual != declared:
            raise AgreementError(
                f"{name} disagrees with the oracle: {actual} {count}, expected {declared}"
            )


def _check_rows(name: str, traits: Traits, tape: Tape, done: Replay) -> None:
    """Check that no row occurs twice, the deadlines, and the declared order."""
    rows = done.fired
    if rows.size and np.bincount(rows["operation"]).max() > 1:
        raise AgreementError(f"{name} fired a timer twice: {rows.size} rows are of fewer timers")
    wrong = np.flatnonzero(rows["deadline"] != tape.deadline[rows["operation"]])
    if wrong.size:
        raise AgreementError(f"{name} fired row {wrong[0]} with another deadline: {rows[wrong[0]]}")
    misplaced = np.flatnonzero(np.diff(rows["fired_at"]) < 0)
    if traits.order == "fifo" and not misplaced.size:
        # The sort is stable: equal rows stay in the order of delivery.
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
    """Compile the code of a check, so that workers load it from the disk cache."""
    rows = Rows(*np.zeros((3, 0), np.int64))
    Check(lambda: [joined([])], 0, 0, lambda: [rows], Rounding()).run()
