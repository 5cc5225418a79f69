"""The compiled oracle: the expected expiries of a tape, by rules that the timers do not share.

An operation that arms a timer determines when it fires, by the rounding of its scheme. A cancel or
re-arm at or after that time is too late. So whether an armed timer fires depends only on the
operations on its id, in tape order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compare.traffic.tapes.tape import CANCEL, REARM, START, Tape, id_space_of, joined
from compare.trial.oracle.mismatches import KINDS, Mismatch, Verified, lowest
from compare.trial.replay.engine import Replay
from timers.arrays import Int64s
from timers.errors import TimerError
from timers.kernels.jit import inlined, long_entry
from timers.kernels.memory import is_reserved, lengthened, zeros
from timers.limits import LIMIT
from timers.rounding import AnyRounding, Rounding
from timers.traits import Traits

NEVER = -1
"""Replaces a time if the operation arms nothing or its timer does not fire."""

NOWHERE = -1
"""The place of an operation that is not in a table."""

Array = npt.NDArray[Any]

TIMER = np.dtype(
    [("deadline", "i8"), ("due", "i8"), ("operation", "i4"), ("id", "i4")],
    align=True,
)
"""An operation, and when the timer that it arms is due."""

VOID, SEEN, WRONG = 1, 2, 4
"""The state of a timer: it must not fire (any more); its right row was seen; it has other rows."""

HOLDER = np.dtype([("operation", "i8"), ("due", "i8")], align=True)
"""The last timer with an id. It is pending before it is due; zeros stand for none."""


WORD = np.dtype([("kept", "u4"), ("fired", "u4"), ("first", "i4")], align=True)
WORD_BITS = 5  # of the number of an operation
WORD_MASK = (1 << WORD_BITS) - 1


class AgreementError(TimerError, RuntimeError):
    """A timer did not fire what its traits declare."""


@dataclass(frozen=True)
class Expected:
    """The expected results of a timer with a given rounding on a tape."""

    scheduled: int
    cancelled: int
    rescheduled: int
    pending: int
    fired_at: Int64s  # by operation; NEVER if nothing fires

    @property
    def fired(self) -> int:
        """The number of timers that fire."""
        return int(np.count_nonzero(self.fired_at != NEVER))


def expect(tape: Tape, id_space: int, rounding: AnyRounding, *, drained: bool = True) -> Expected:
    """Return the expected results of a timer with this rounding on a tape. O(operations).

    With `drained`, the clock advances after the last operation until nothing is pending.
    """
    timers = np.zeros(tape.time.size, TIMER)
    states, counts = np.zeros(timers.size, np.uint8), np.zeros(3, np.int64)
    table = Table(timers, states, np.zeros(0, WORD), 0, 0)
    follow(
        tape,
        _due(tape, rounding),
        0,
        table,
        np.zeros(id_space, HOLDER),
        counts,
        np.empty(tape.time.size, np.int64),
    )
    pending = 0
    if not drained and timers.size:
        pending = _stop(table, timers.size - 1, int(tape.time[-1]))
    fired_at = np.where(states & VOID, NEVER, timers["due"])
    scheduled, cancelled, rescheduled = counts.tolist()
    return Expected(scheduled, cancelled, rescheduled, pending, fired_at)


def _due(tape: Tape, rounding: AnyRounding) -> Int64s:
    """When the timer that each operation arms, or would arm, is due; NEVER for a cancel."""
    due = np.full(tape.time.size, NEVER, np.int64)
    arms = np.flatnonzero(tape.op != CANCEL)
    due[arms] = rounding.due_at(tape.deadline[arms], tape.time[arms])
    return due


def _stop(table: "Table", operation: int, now: int) -> int:
    """Void the timers that are pending after the last operation, and return their number.

    No advance follows that operation, so a timer that it arms overdue stays pending.
    """
    pending = (table.timers["due"] > now) | (table.timers["operation"] == operation)
    pending &= table.states & VOID == 0
    table.states[pending] |= VOID
    return int(np.count_nonzero(pending))


class Table(NamedTuple):
    """Timers, ascending by operation: `kept` older ones, then one for each operation since `base`.

    Words are for all operations before `base`. Each has a bit for those of its operations that are
    kept, the place of the first, and a bit for those that fired and were dropped.
    """

    timers: Array  # of dtype TIMER
    states: npt.NDArray[np.uint8]  # of the timers; so small that they stay in the cache
    words: Array  # of dtype WORD
    kept: int
    base: int


@inlined
def find(operation, table):
    """Return the place of an operation in a table, or NOWHERE. O(1)."""
    if operation >= table.base:
        place = operation - table.base + table.kept
        return place if place < table.timers.size else NOWHERE
    if operation < 0:
        return NOWHERE
    word, bit = table.words[operation >> WORD_BITS], 1 << (operation & WORD_MASK)
    if not word["kept"] & bit:
        return NOWHERE
    return word["first"] + ones(word["kept"] & (bit - 1))


@inlined
def ones(word):
    """Return the number of ones in a word of 32 bits."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & 0xFFFFFFFF) >> 24


@long_entry
def follow(tape, due, first, table, holders, counts, stopped):
    """Follow a piece of a tape, whose operations have the last places in the table.

    `first` is the number of its first operation; `due` is when the timer that an operation arms is
    due; `holders` are by id. Adds to `counts` the operations that took effect: scheduled,
    cancelled, rescheduled. `stopped` has room for the piece.
    """
    scheduled = cancelled = rescheduled = voided = 0
    before = table.timers.size - tape.time.size
    for k in range(tape.time.size):
        op, holder, timer = tape.op[k], holders[tape.id[k]], table.timers[before + k]
        timer["operation"], timer["deadline"], timer["due"] = first + k, tape.deadline[k], due[k]
        timer["id"], table.states[before + k] = tape.id[k], VOID
        is_pending = holder["due"] > tape.time[k]
        if is_pending and op != START:
            stopped[voided] = holder["operation"]
            voided += 1
        if op == CANCEL:
            holder["due"] = NEVER
            cancelled += is_pending
        elif op != REARM or is_pending:
            table.states[before + k] = 0
            holder["operation"], holder["due"] = first + k, due[k]
            if op == START or not is_pending:
                scheduled += 1
            else:
                rescheduled += 1
    # In a loop of its own, since each may wait for memory.
    for k in range(voided):
        table.states[find(stopped[k], table)] |= VOID
    counts[0] += scheduled
    counts[1] += cancelled
    counts[2] += rescheduled


# ---- checking the rows that a timer fired


CHUNK = 1 << 17
"""Operations after which those that are settled are dropped from a table, at 25 bytes each."""


class Rows(NamedTuple):
    """Fired rows, in any order; int64, shape (n,)."""

    operation: Int64s  # the one that armed the timer
    deadline: Int64s
    fired_at: Int64s


class Check:
    """Compare the rows that a timer fired from a shard with the expected ones, as both come in.

    Call `follow` with the pieces of the tape, in order, and `match` with the rows, in any order.
    The result does not depend on when rows come. `examples` limits the mismatches of each kind that
    are listed.

    An operation is settled when it arms nothing, when its timer is cancelled, or when the right row
    has come and the timer is due. Of settled operations, only whether they fired is kept. Memory:
    25 bytes for each other operation and for each of a chunk, 16 for each id, three bits for each
    operation, and the wrong rows.
    """

    def __init__(
        self,
        rounding: AnyRounding,
        shard: int = 0,
        *,
        drained: bool = True,
        examples: int = 5,
        chunk: int = CHUNK,
    ) -> None:
        self._rounding, self._shard, self._drained = rounding, shard, drained
        self._examples, self._chunk = examples, chunk
        self._operations = self._last_time = self._rows = 0
        self._timers, self._states = zeros(0, TIMER), zeros(0, np.uint8)
        self._table = Table(self._timers, self._states, zeros(0, WORD), 0, 0)
        self._holders = zeros(0, HOLDER)
        self._counts = np.zeros(3, np.int64)
        self._wrong = [np.zeros((len(Rows._fields), 0), np.int64)]

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays, without those of wrong rows."""
        return sum(
            array.nbytes for array in (self._timers, self._states, self._holders, self._table.words)
        )

    def follow(self, tape: Tape) -> None:
        """Follow the next operations of the shard, which keep the rules of a tape. O(n)."""
        size = tape.time.size
        if not size:
            return
        if self._operations - self._table.base >= max(self._chunk, self._table.kept):
            self._drop_settled(self._last_time)
        end = self._table.timers.size + size
        self._timers, self._states = _grown(self._timers, end), _grown(self._states, end)
        self._holders = _grown(self._holders, id_space_of(tape))
        self._table = self._table._replace(timers=self._timers[:end], states=self._states[:end])
        due, first = _due(tape, self._rounding), self._operations
        follow(tape, due, first, self._table, self._holders, self._counts, np.empty(size, np.int64))
        self._operations, self._last_time = first + size, int(tape.time[-1])

    def match(self, rows: Rows) -> None:
        """Compare rows with the operations so far. O(n)."""
        self._rows += rows.operation.size
        if (wrong := self._unmatched(rows)).size:
            self._wrong.append(wrong)

    def finish(self, pieces: Callable[[], Iterable[Tape]] | None = None) -> Verified:
        """Return the comparison.

        A row may come when its operation was settled and dropped long ago, or before its operation:
        a double, or a row of a timer that was cancelled. Without `pieces`, which returns the tape
        once more, such an example lacks id, deadline and expected.
        """
        # Some rows may have come before their operations.
        wrong = [self._unmatched(Rows(*np.concatenate(self._wrong, axis=1)))]
        pending = 0
        if not self._drained:
            pending = _stop(self._table, self._operations - 1, self._last_time)
        self._drop_settled(LIMIT)
        timers, states = self._table.timers, self._table.states  # all of them wrong
        # Rows that looked right, but came before a cancel, or before the end.
        lies = timers[states & (VOID | SEEN) == VOID | SEEN]
        wrong.append(np.stack([lies["operation"], lies["deadline"], lies["due"]]))

        operation, reported, fired_at = np.concatenate(wrong, axis=1)
        order = np.lexsort((reported, fired_at, operation))
        operation, reported, fired_at = operation[order], reported[order], fired_at[order]
        place = np.searchsorted(timers["operation"], operation)
        # The extra last entry is for operations that are not in the table.
        known = np.append(timers, np.array([(0, NEVER, NOWHERE, 0)], TIMER))
        states = np.append(states, np.uint8(VOID))
        place[known["operation"][place] != operation] = timers.size
        is_dropped = (place == timers.size) & (operation >= 0) & (operation < self._operations)
        due_at, state = known["due"][place], states[place]
        state[is_dropped] = np.where(self._has_fired(operation[is_dropped]), SEEN, VOID)
        # If a timer has no right row, its first row counts as early, late or altered.
        is_first = np.ones(operation.size, np.bool_)
        is_first[1:] = operation[1:] != operation[:-1]
        is_substitute = is_first & (state & (VOID | SEEN) == 0)
        kind = np.select(
            [state & VOID != 0, ~is_substitute, fired_at < due_at, fired_at > due_at],
            [KINDS.index(name) for name in ("spurious", "double", "early", "late")],
            KINDS.index("altered"),
        )
        states[place[is_substitute]] |= SEEN
        missing = np.flatnonzero(states & (VOID | SEEN) == 0)
        counts = np.bincount(kind, minlength=len(KINDS)).tolist()
        counts[KINDS.index("missing")] = missing.size

        def mismatch(kind: str, place: int, number: int, *row: int | None) -> Mismatch:
            id_ = deadline = due_at = None
            if place < timers.size:
                timer = known[place]
                id_, deadline = int(timer["id"]), int(timer["deadline"])
                due_at = None if states[place] & VOID else int(timer["due"])
            return Mismatch(kind, self._shard, number, id_, deadline, due_at, *row)

        examples = [
            mismatch("missing", place, int(known["operation"][place]), None, None)
            for place in missing[: self._examples].tolist()
        ]
        for number, name in enumerate(KINDS):
            for r in np.flatnonzero(kind == number)[: self._examples].tolist():
                row = int(operation[r]), int(fired_at[r]), int(reported[r])
                examples.append(mismatch(name, int(place[r]), *row))
        if pieces is not None:
            examples = self._completed(examples, pieces)
        scheduled, cancelled, _ = self._counts.tolist()
        return Verified(
            expected=scheduled - cancelled - pending,
            fired=self._rows,
            counts=dict(zip(KINDS, counts, strict=True)),
            examples=lowest(examples, self._examples),
        )

    def _unmatched(self, rows: Rows) -> Int64s:
        """Mark right rows, and return the others, shape (3, n)."""
        numbers = np.empty(rows.operation.size, np.int64)
        count = match(rows, self._table, numbers)
        return np.stack(rows)[:, numbers[:count]] if count else self._wrong[0]

    def _drop_settled(self, now: int) -> None:
        """Drop what is settled from the table. O(operations in the table)."""
        base = self._operations
        words = _grown(self._table.words, (base >> WORD_BITS) + 1)
        self._table = self._table._replace(words=words)
        kept = drop_settled(self._table, now)
        self._table = Table(self._timers[:kept], self._states[:kept], words, kept, base)

    def _has_fired(self, operation: Int64s) -> npt.NDArray[np.bool_]:
        """Whether operations that were dropped had a right row."""
        bits: npt.NDArray[np.bool_] = (
            self._table.words["fired"][operation >> WORD_BITS] >> (operation & WORD_MASK) & 1 != 0
        )
        return bits

    def _completed(
        self, examples: Iterable[Mismatch], pieces: Callable[[], Iterable[Tape]]
    ) -> list[Mismatch]:
        """Look up the operations of examples that were dropped from the table."""
        lacking = {
            example.operation
            for example in examples
            if example.id is None and 0 <= example.operation < self._operations
        }
        found, first = {}, 0
        for piece in pieces() if lacking else ():
            for operation in lacking:
                if 0 <= operation - first < piece.time.size:
                    found[operation] = [int(column[operation - first]) for column in piece]
            first += piece.time.size

        def complete(example: Mismatch) -> Mismatch:
            if example.operation not in found:
                return example
            time, _, id_, deadline = found[example.operation]
            is_double = example.kind == "double"
            expected = self._rounding.due_at(deadline, time) if is_double else None
            return replace(example, id=id_, deadline=deadline, expected=expected)

        return list(map(complete, examples))


def _grown(array: Array, length: int) -> Array:
    """Return an array with room for `length` entries. The new ones are zeros."""
    if length <= array.size:
        return array
    # Without reserved addresses it is copied, so twice as much is taken at once.
    longer = lengthened(array, length if is_reserved(array) else 2 * length)
    if longer.base is not array.base:
        longer[: array.size] = array
    return longer


@long_entry
def match(rows, table, wrong):
    """Mark the timers of rows, put the numbers of the wrong ones into `wrong`, and count those."""
    count = 0
    for r in range(rows.operation.size):
        place = find(rows.operation[r], table)
        if place != NOWHERE:
            timer = table.timers[place]
            is_right = timer["due"] == rows.fired_at[r] and timer["deadline"] == rows.deadline[r]
            if is_right and not table.states[place] & (VOID | SEEN):
                table.states[place] |= SEEN
                continue
            table.states[place] |= WRONG
        wrong[count] = r
        count += 1
    return count


@long_entry
def drop_settled(table, now):
    """Move the timers that are not settled at the time `now` to the front; return their number.

    Another operation or the end must follow: until then, an overdue timer may stay pending.
    """
    kept, number = 0, NOWHERE
    for k in range(table.timers.size):
        timer, state = table.timers[k], table.states[k]
        operation = np.int64(timer["operation"])
        if operation >> WORD_BITS != number:
            number = operation >> WORD_BITS
            word = table.words[number]
            word["kept"], word["first"] = 0, kept
        bit = 1 << (operation & WORD_MASK)
        if state == VOID:
            continue
        if state == SEEN and timer["due"] <= now:
            word["fired"] |= bit
            continue
        word["kept"] |= bit
        table.timers[kept], table.states[kept] = timer, state
        kept += 1
    return kept


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
    check = Check(Rounding(), chunk=0)
    empty = joined([])
    start = Tape(*(np.zeros(1, column.dtype) for column in empty))
    for _ in range(2):  # what the first call has left is dropped by the second
        check.follow(start)
    check.match(Rows(*np.zeros((3, 0), np.int64)))
    check.finish()
