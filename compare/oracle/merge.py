"""One cell of a verification: what a shard must fire, merged with what a timer fired. Runs in
Spark's Python workers.

The tape and the expiries are read side by side, once, piece by piece. Each arming is held in a hash
table by its operation until an operation on its id, or the tape's end, settles whether it fires,
and until its expiry has been seen. A row that is not exactly that of an arming held there is odd,
and put aside. Only the armings without a row and the odd rows are looked at again in the end; where
an odd row's arming is not known any more, a second reading of the tape tells.

Memory: the pending timers, a piece of each file, the mismatches, and up to PATIENCE armings whose
rows are late to come. It uses no timer, and neither replay nor the oracle of `compare.oracle.compiled`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from compare.files import parquet_errors
from compare.tapes.tape import ARM, CANCEL, REARM, START, Tape
from compare.tapes.trace import Shard, known_trace
from timers.errors import TimerError
from timers.kernels.jit import entry, jit
from timers.limits import LIMIT
from timers.rounding import Rounding

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

KINDS = ("missing", "spurious", "early", "late", "double", "altered")
"""What can be wrong. Missing: no row for a timer that must fire. Spurious: a row for an operation
that arms nothing, or whose timer must not fire. Early, late: fired at another moment. Double: any
row of a timer after the first, which is the right one, or else that of the lowest (fired_at,
deadline). Altered: fired at its moment, with another deadline."""
_MISSING, _SPURIOUS, _EARLY, _LATE, _DOUBLE, _ALTERED = range(len(KINDS))

COLUMNS = ("operation", "deadline", "fired_at")
"""Of a file of expiries; all int64."""
_ROWS_AT_ONCE = 1 << 18
PATIENCE = 1 << 16
"""Armings that are to fire and whose rows have not come, beyond which rows are taken whatever their
time. So a row that claims to be from the far future does not hold back all that follow it."""

NONE = -1


class VerifyError(TimerError, ValueError):
    """Results that cannot be verified; one line that names the file and what is wrong."""


# ---- closed forms
# -------------------------------------------------------------------------------------------------

EXACT, ROUND_DOWN, ROUND_UP, FOREIGN = "exact", "down", "up", "foreign"


class Form(NamedTuple):
    """When an arming fires: one of the forms above. A foreign one is that of the contestant with
    this name.
    """

    kind: str
    tick: int = 1
    name: str = ""
    parameters: tuple[tuple[str, int], ...] = ()


def due_by(form: Form) -> Callable[[Int64s, Int64s], Int64s]:
    """The closed form as a function of arrays: deadlines and the times of the armings, to the
    moments when they fire.
    """
    from compare.bench.contestant import contestant

    if form.kind == FOREIGN:
        return contestant(form.name, dict(form.parameters)).rounding.due_at
    return Rounding(form.kind, form.tick).due_at  # type: ignore[arg-type]


# ---- one cell
# -----------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """What a worker needs to know to verify a cell."""

    timer: int
    shard: int
    trace: str  # its path
    digest: str  # of its manifest
    expiries: str  # the path of the file
    form: Form
    drained: bool
    examples: int  # of each kind that are told in full


@dataclass(frozen=True)
class Mismatch:
    """A row that is not as it must be, or one that is not there."""

    kind: str
    shard: int
    operation: int
    id: int | None  # None: the tape has no such operation
    deadline: int | None  # of the operation, on the tape; None as above
    expected: int | None  # when it must fire; None: never
    fired_at: int | None  # None: there is no row
    said: int | None  # the deadline in the row


def mismatch_order(mismatch: Mismatch) -> tuple[int, ...]:
    """Examples are the lowest in this order."""
    fired_at, said = (
        NONE if value is None else value for value in (mismatch.fired_at, mismatch.said)
    )
    return mismatch.shard, mismatch.operation, fired_at, said, KINDS.index(mismatch.kind)


@dataclass(frozen=True)
class Verified:
    """What came of a cell."""

    timer: int
    shard: int
    expected: int  # timers that must fire
    fired: int  # rows
    counts: tuple[int, ...]  # by kind, in the order of KINDS
    examples: tuple[Mismatch, ...]  # the lowest of each kind


_EXAMPLE_ARROW = pa.struct(
    [("kind", pa.string())]
    + [(name, pa.int64()) for name in Mismatch.__dataclass_fields__ if name != "kind"]
)
_RESULT_ARROW = pa.schema(
    [(name, pa.int64()) for name in ("timer", "shard", "expected", "fired")]
    + [("counts", pa.list_(pa.int64())), ("examples", pa.list_(_EXAMPLE_ARROW))]
)
RESULT = (
    "timer bigint, shard bigint, expected bigint, fired bigint, counts array<bigint>, examples array<struct<"
    + ", ".join(
        f"{field.name}: {'string' if field.type == pa.string() else 'bigint'}"
        for field in _EXAMPLE_ARROW
    )
    + ">>"
)
"""What came of a cell, as a Spark schema."""


def row_of(verified: Verified) -> pa.RecordBatch:
    """What came of a cell, as a row of RESULT."""
    return pa.RecordBatch.from_pylist([asdict(verified)], schema=_RESULT_ARROW)


def verify_cell(cell: Cell) -> Verified:
    """Hold a cell's expiries against its tape. O(operations + expiries).

    Raises TraceError and TapeError for a tape, and VerifyError for a file of expiries, that cannot
    be read.
    """
    trace = known_trace(cell.trace, cell.digest)
    return merge(
        lambda: trace.pieces(cell.shard),
        read_expiries(Path(cell.expiries)),
        trace.shards[cell.shard],
        cell,
    )


def merge(
    tape: Callable[[], Iterable[Tape]],
    expiries: Iterable[Rows],
    shard: Shard,
    cell: Cell,
    patience: int = PATIENCE,
) -> Verified:
    """Hold a cell's expiries (pieces of dtype ROW) against the pieces of its tape, which may be
    asked for twice.
    """
    due = due_by(cell.form)
    span = _Span(shard.rows, shard.last_time or 0, cell.drained)
    merging = _Merging(_with_due(tape(), due), shard.id_space, span, patience)
    for rows in expiries:
        merging.add(rows)
    merging.add(None)
    expected, missing, odd = merging.finish()
    strange = np.setdiff1d(odd["operation"], missing["operation"])
    others = np.empty(0, ARMING)
    if strange.size:
        others = _look_up(strange, _with_due(tape(), due), shard.id_space, span)
    counts, examples = _classify(missing, odd, others, cell)
    return Verified(cell.timer, cell.shard, expected, merging.fired, counts, examples)


def read_expiries(path: Path) -> Iterator[Rows]:
    """The rows of a file of expiries, of dtype ROW, piece by piece. Raises VerifyError."""
    with open_expiries(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(COLUMNS)):
            piece = np.empty(batch.num_rows, ROW)
            for name in COLUMNS:
                column = batch.column(name)
                if column.null_count:
                    raise VerifyError(f"{path} has a row without {name}")
                piece[name] = column.to_numpy()
            if piece.size:
                yield piece


@contextmanager
def open_expiries(path: Path) -> Iterator[pq.ParquetFile]:
    """A file of expiries, whose columns are what they must be. Raises VerifyError, also for what
    the block cannot read.
    """
    with (
        parquet_errors(path, VerifyError),
        pq.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        schema = file.schema_arrow
        if any(
            schema.get_field_index(name) < 0 or schema.field(name).type != pa.int64()
            for name in COLUMNS
        ):
            found = ", ".join(f"{field.name} {field.type}" for field in schema)
            wanted = ", ".join(f"{name} int64" for name in COLUMNS)
            raise VerifyError(f"{path} has the columns ({found}); expiries have ({wanted})")
        yield file


def warm() -> None:
    """Compile what a cell needs, or load it from the cache on disk, so that the workers find it
    there.
    """
    nothing = np.zeros(0, np.int64)
    tape = Tape(nothing, np.zeros(0, np.int8), np.zeros(0, np.int32), nothing)
    table, cursor = _table(_SMALLEST), np.zeros(CURSOR, np.int64)
    rows = np.zeros(0, ROW)
    walk(tape, nothing, rows, True, nothing, nothing, table, 1, rows, cursor, 0, 0, 0, 0)
    take(rows, table, 1, rows, cursor, 0)
    move(table, 1, table, 1)
    judge(tape, nothing, nothing, nothing, nothing, np.zeros(0, ARMING), cursor)


class _Span(NamedTuple):
    """A tape as a whole: its rows, its last time, and whether its timer was drained after it."""

    rows: int
    last_time: int
    drained: bool

    def fires(self, found: Rows) -> npt.NDArray[np.bool_]:
        """Which of these armings, of dtype ARMING and neither cancelled nor re-armed, fire."""
        if self.drained:
            return np.ones(found.size, np.bool_)
        # The last operation is followed by no advance: what it arms overdue stays pending.
        return np.asarray((found["due"] <= self.last_time) & (found["operation"] != self.rows - 1))


def _with_due(
    pieces: Iterable[Tape], due: Callable[[Int64s, Int64s], Int64s]
) -> Iterator[tuple[Tape, Int64s]]:
    """Each piece, and when its armings fire."""
    for piece in pieces:
        armings = np.flatnonzero(piece.op != CANCEL)
        if armings.size == piece.op.size:
            yield piece, due(piece.deadline, piece.time)
            continue
        moments = np.zeros(piece.op.size, np.int64)
        moments[armings] = due(piece.deadline[armings], piece.time[armings])
        yield piece, moments


# ---- the merge
# ----------------------------------------------------------------------------------------------------

ROW = np.dtype([(name, "i8") for name in COLUMNS])

ARMING = np.dtype(
    [("operation", "i8"), ("deadline", "i8"), ("due", "i8"), ("id", "i4"), ("state", "i4")]
)
"""An arming; in the table, one whose fate or whose row is awaited, or a row whose operation is
still to come (then `deadline` and `due` are what the row says)."""

ARMED = 1  # the operation has been seen, and armed a timer
FIRED = 2  # its row has been seen
SETTLED = 4  # it fires: what follows on the tape cannot change that

# Cells of the cursor, int64.
OPERATION = 0  # next operation of the piece at hand
FIRST = 1  # index on the tape of the piece's first operation
NEXT_ROW = 2  # next row of the piece of expiries at hand
HELD = 3  # entries of the table
FUTURE = 4  # ... that are rows whose operation is still to come
AWAITED = 5  # ... that are settled, and whose row has not come
EXPECTED = 6  # armings settled so far
ODD = 7  # rows in `odd`
CURSOR = 8

PIECE_ENDS, ROWS_END, TABLE_FULL, ODD_FULL = range(4)
"""Why `walk` and `take` return."""

_SMALLEST = 1 << 10  # entries of a table: a power of two, at least half of them empty
_MULTIPLIER = 0x9E3779B1  # 2**32 over the golden ratio: neighbours are scattered (Knuth, 6.4)
_KEY = 2**31 - 1  # bits of an operation that are hashed: times the multiplier they stay in int64
_WORD = 2**32 - 1
_WORD_BITS = 32


@jit
def home_of(operation, bits):  # typed by its arguments
    """Where in a table of 2**bits entries an operation belongs."""
    return (((operation & _KEY) * _MULTIPLIER) & _WORD) >> (_WORD_BITS - bits)


@jit
def find(table, bits, operation):
    """The place of an operation, or the empty place where it would be put."""
    at = home_of(operation, bits)
    while table[at]["operation"] != operation and table[at]["operation"] != NONE:
        at = (at + 1) & (table.size - 1)
    return at


@jit
def remove(table, bits, hole):
    """Empty a place, and move up those that follow it and belong at or before it."""
    mask = table.size - 1
    at = hole
    while True:
        at = (at + 1) & mask
        operation = table[at]["operation"]
        if operation == NONE:
            break
        if (at - home_of(operation, bits)) & mask >= (at - hole) & mask:
            table[hole] = table[at]
            hole = at
    table[hole]["operation"] = NONE


@jit
def put_aside(odd, cursor, operation, deadline, fired_at):
    """Keep an odd row."""
    at = cursor[ODD]
    odd[at]["operation"] = operation
    odd[at]["deadline"] = deadline
    odd[at]["fired_at"] = fired_at
    cursor[ODD] += 1


@jit
def take_row(table, bits, cursor, odd, seen, rows, operation, deadline, fired_at):
    """Note a fired row, when `seen` of the tape's `rows` operations have been done."""
    if operation < 0 or operation >= rows:
        put_aside(odd, cursor, operation, deadline, fired_at)
        return
    at = find(table, bits, operation)
    if table[at]["operation"] == NONE:
        if operation < seen:
            put_aside(odd, cursor, operation, deadline, fired_at)
            return
        table[at]["operation"] = operation
        table[at]["deadline"] = deadline
        table[at]["due"] = fired_at
        table[at]["state"] = FIRED
        cursor[HELD] += 1
        cursor[FUTURE] += 1
        return
    state = table[at]["state"]
    if state & FIRED or table[at]["due"] != fired_at or table[at]["deadline"] != deadline:
        put_aside(odd, cursor, operation, deadline, fired_at)
    elif state & SETTLED:
        remove(table, bits, at)
        cursor[HELD] -= 1
        cursor[AWAITED] -= 1
    else:
        table[at]["state"] = state | FIRED


@jit
def settle(table, bits, cursor, odd, operation, fires):
    """An arming's fate is known: it fires at its moment, or it never does."""
    at = find(table, bits, operation)
    has_fired = table[at]["state"] & FIRED
    if fires:
        cursor[EXPECTED] += 1
        if not has_fired:
            table[at]["state"] |= SETTLED
            cursor[AWAITED] += 1
            return
    elif has_fired:
        put_aside(odd, cursor, operation, table[at]["deadline"], table[at]["due"])
    remove(table, bits, at)
    cursor[HELD] -= 1


@jit
def meet_future(table, bits, cursor, odd, operation, deadline, due, arms):
    """An operation is done whose row may have come before it; returns whether it has, and was
    right.
    """
    at = find(table, bits, operation)
    if table[at]["operation"] == NONE:
        return False
    right = arms and table[at]["deadline"] == deadline and table[at]["due"] == due
    if not right:
        put_aside(odd, cursor, operation, table[at]["deadline"], table[at]["due"])
    remove(table, bits, at)
    cursor[HELD] -= 1
    cursor[FUTURE] -= 1
    return right


@entry
def walk(
    tape, due, rows, more_rows, held, moment, table, bits, odd, cursor, total, until, last, patience
):
    """Do operations, and take the rows that fired before each, until something is wanting; returns
    what.

    `due` is by operation of the piece; `held` (int64, by id, NONE at first) is the operation of the
    arming that holds the id, `moment` (int64, by id) when that fires. `total` is the tape's rows;
    nothing fires after `until`, nor what the operation `last` armed. With more than `patience`
    armings awaited, rows are taken whatever their time.
    """
    k, r = cursor[OPERATION], cursor[NEXT_ROW]
    first = cursor[FIRST]
    reason = PIECE_ENDS
    while k < tape.time.size:
        # What follows adds no more than these before it is asked again.
        if cursor[HELD] + 1 > table.size // 2:
            reason = TABLE_FULL
            break
        if cursor[ODD] + 2 > odd.size:
            reason = ODD_FULL
            break
        time = tape.time[k]
        if r < rows.size:
            fired_at, operation = rows[r]["fired_at"], rows[r]["operation"]
            # What an operation arms overdue fires at once, but not before it.
            if (
                fired_at < time
                or (fired_at == time and operation < first + k)
                or cursor[AWAITED] > patience
            ):
                take_row(
                    table,
                    bits,
                    cursor,
                    odd,
                    first + k,
                    total,
                    operation,
                    rows[r]["deadline"],
                    fired_at,
                )
                r += 1
                continue
        elif more_rows:
            reason = ROWS_END
            break
        op, i = tape.op[k], tape.id[k]
        holder = held[i]
        is_pending = holder != NONE and moment[i] > time
        if holder != NONE:
            stays = op == START or not is_pending
            settle(
                table, bits, cursor, odd, holder, stays and moment[i] <= until and holder != last
            )
        arms = op in (START, ARM) or (op == REARM and is_pending)
        has_fired = False
        if cursor[FUTURE] > 0:
            has_fired = meet_future(
                table, bits, cursor, odd, first + k, tape.deadline[k], due[k], arms
            )
        held[i] = NONE
        if arms:
            at = find(table, bits, first + k)
            table[at]["operation"] = first + k
            table[at]["deadline"] = tape.deadline[k]
            table[at]["due"] = due[k]
            table[at]["id"] = i
            table[at]["state"] = ARMED | FIRED if has_fired else ARMED
            cursor[HELD] += 1
            held[i] = first + k
            moment[i] = due[k]
        k += 1
    cursor[OPERATION], cursor[NEXT_ROW] = k, r
    return reason


@entry
def take(rows, table, bits, odd, cursor, total):
    """Take rows when the tape has ended, until something is wanting; returns what."""
    r = cursor[NEXT_ROW]
    reason = ROWS_END
    while r < rows.size:
        if cursor[ODD] + 1 > odd.size:
            reason = ODD_FULL
            break
        row = rows[r]
        take_row(
            table,
            bits,
            cursor,
            odd,
            total,
            total,
            row["operation"],
            row["deadline"],
            row["fired_at"],
        )
        r += 1
    cursor[NEXT_ROW] = r
    return reason


@entry
def move(table, bits, larger, larger_bits):
    """Put the entries of a table into an empty one."""
    for k in range(table.size):
        if table[k]["operation"] != NONE:
            larger[find(larger, larger_bits, table[k]["operation"])] = table[k]


class _Merging:
    """The merge of one tape with its expiries: give it rows, and let it go on as far as these
    allow.
    """

    def __init__(
        self, tapes: Iterator[tuple[Tape, Int64s]], id_space: int, span: _Span, patience: int
    ) -> None:
        self._tapes, self._span, self._patience = tapes, span, patience
        self._piece: tuple[Tape, Int64s] | None = None
        self._held = np.full(max(id_space, 1), NONE, np.int64)
        self._moment = np.zeros(max(id_space, 1), np.int64)
        self._table = _table(_SMALLEST)
        self._odd, self._put_aside = np.empty(_SMALLEST, ROW), [np.empty(0, ROW)]
        self._cursor = np.zeros(CURSOR, np.int64)
        self.fired = 0

    def add(self, rows: Rows | None) -> None:
        """Take rows that follow, and do the operations before them; None: there are no more
        rows.
        """
        more = rows is not None
        if rows is None:
            rows = np.empty(0, ROW)
        self.fired += rows.size
        span, cursor = self._span, self._cursor
        until, last = (LIMIT, NONE) if span.drained else (span.last_time, span.rows - 1)
        cursor[NEXT_ROW] = 0
        while True:
            if self._piece is None:
                self._piece = next(self._tapes, None)
                cursor[OPERATION] = 0
            bits = self._table.size.bit_length() - 1
            if self._piece is None:
                reason = take(rows, self._table, bits, self._odd, cursor, span.rows)
            else:
                reason = walk(
                    *self._piece,
                    rows,
                    more,
                    self._held,
                    self._moment,
                    self._table,
                    bits,
                    self._odd,
                    cursor,
                    span.rows,
                    until,
                    last,
                    self._patience,
                )
            if reason == ROWS_END:
                return
            if reason == PIECE_ENDS and self._piece is not None:
                cursor[FIRST] += self._piece[1].size
                self._piece = None
            elif reason == TABLE_FULL:
                larger = _table(2 * self._table.size)
                move(self._table, bits, larger, bits + 1)
                self._table = larger
            else:
                self._put_aside.append(self._odd[: cursor[ODD]].copy())
                cursor[ODD] = 0

    def finish(self) -> tuple[int, Rows, Rows]:
        """After all rows: how many timers must fire, those without a right row (ARMING), and the
        odd rows (ROW).

        The first are in the order of their operations.
        """
        held = self._table[self._table["operation"] != NONE]
        settled = (held["state"] & SETTLED) != 0
        fires = settled | self._span.fires(held)
        has_fired = (held["state"] & FIRED) != 0
        wrongly = held[has_fired & ~fires]
        odd = np.empty(wrongly.size, ROW)
        for name, of in zip(COLUMNS, ("operation", "deadline", "due"), strict=True):
            odd[name] = wrongly[of]
        expected = int(self._cursor[EXPECTED]) + int(np.count_nonzero(fires & ~settled))
        missing = np.sort(held[fires & ~has_fired], order="operation")
        missing["state"] |= SETTLED
        return (
            expected,
            missing,
            np.concatenate([*self._put_aside, self._odd[: self._cursor[ODD]], odd]),
        )


def _table(size: int) -> Rows:
    table = np.zeros(size, ARMING)
    table["operation"] = NONE
    return table


# ---- what is wrong
# ------------------------------------------------------------------------------------------------


@entry
def judge(tape, due, wanted, held, moment, found, cursor):
    """Follow what becomes of the `wanted` operations (int64, ascending) through a piece of the
    tape.

    `found` (ARMING, one for each of them) gets what the tape says, and in `state` SETTLED as long
    as it is neither cancelled nor re-armed in time. `moment` (by id, NONE at first) is when the
    id's arming fires; `held` (by id) is its place in `wanted`, or NONE. `cursor` is the operations
    done, and how many of `wanted` these had.
    """
    first, w = cursor[0], cursor[1]
    for k in range(tape.time.size):
        op, i = tape.op[k], tape.id[k]
        is_pending = moment[i] > tape.time[k]
        if is_pending and op != START and held[i] != NONE:
            found[held[i]]["state"] = ARMED
        arms = op in (START, ARM) or (op == REARM and is_pending)
        here = NONE
        if w < wanted.size and wanted[w] == first + k:
            found[w]["operation"] = first + k
            found[w]["deadline"] = tape.deadline[k]
            found[w]["due"] = due[k]
            found[w]["id"] = i
            found[w]["state"] = ARMED | SETTLED if arms else 0
            here = w
            w += 1
        moment[i] = due[k] if arms else NONE
        held[i] = here if arms else NONE
    cursor[0], cursor[1] = first + tape.time.size, w


def _look_up(
    operations: Int64s, tapes: Iterator[tuple[Tape, Int64s]], id_space: int, span: _Span
) -> Rows:
    """What the tape says of some operations, ascending: of dtype ARMING, SETTLED in `state` if it
    fires.

    An operation that the tape does not have is left out.
    """
    wanted = operations[(operations >= 0) & (operations < span.rows)]
    found = np.zeros(wanted.size, ARMING)
    if wanted.size:
        held, moment = np.full(id_space, NONE, np.int64), np.full(id_space, NONE, np.int64)
        cursor = np.zeros(2, np.int64)
        for tape, due in tapes:
            judge(tape, due, wanted, held, moment, found, cursor)
        found["state"][~span.fires(found)] &= ~SETTLED
    return found


def _classify(
    missing: Rows, odd: Rows, others: Rows, cell: Cell
) -> tuple[tuple[int, ...], tuple[Mismatch, ...]]:
    """Counts by kind, and examples.

    `missing` are the armings without a right row; `odd` are the rows that were not that of an
    arming, or not its first; `others` are the operations of those rows, if the tape has them.
    """
    known = np.sort(np.concatenate([missing, others]), order="operation")
    blank = np.zeros(1, ARMING)
    blank["operation"], blank["id"] = NONE, NONE
    known = np.concatenate([known, blank])
    where = np.searchsorted(known["operation"][:-1], odd["operation"])
    where[known["operation"][where] != odd["operation"]] = known.size - 1
    of = known[where]
    fires = (of["state"] & SETTLED) != 0
    in_time, same = odd["fired_at"] == of["due"], odd["deadline"] == of["deadline"]
    right = fires & in_time & same
    order = np.lexsort((odd["deadline"], odd["fired_at"], ~right, odd["operation"]))
    odd, of, fires, right, in_time = (
        odd[order],
        of[order],
        fires[order],
        right[order],
        in_time[order],
    )
    # Of the rows of an arming without a right one the first stands for it; the others, like all of
    # one that has had its row, are too many.
    is_first = np.concatenate([[True], odd["operation"][1:] != odd["operation"][:-1]])[: odd.size]
    stands = is_first & np.isin(odd["operation"], missing["operation"])
    off = np.where(odd["fired_at"] < of["due"], _EARLY, _LATE)
    kind = np.where(fires, np.where(stands, np.where(in_time, _ALTERED, off), _DOUBLE), _SPURIOUS)
    wrong = ~(stands & right)
    lost = missing[~np.isin(missing["operation"], odd["operation"])]
    counts = np.bincount(kind[wrong], minlength=len(KINDS))
    counts[_MISSING] = lost.size
    examples = [
        Mismatch(KINDS[_MISSING], cell.shard, operation, i, deadline, due, None, None)
        for operation, deadline, due, i, _ in lost[: cell.examples].tolist()
    ]
    for number in range(_SPURIOUS, len(KINDS)):
        for at in np.flatnonzero(wrong & (kind == number))[: cell.examples].tolist():
            operation, said, fired_at = odd[at].tolist()
            on_tape, deadline, due, i, _ = of[at].tolist()
            has = on_tape != NONE
            examples.append(
                Mismatch(
                    KINDS[number],
                    cell.shard,
                    operation,
                    i if has else None,
                    deadline if has else None,
                    due if fires[at] else None,
                    fired_at,
                    said,
                )
            )
    return tuple(counts.tolist()), tuple(examples)
