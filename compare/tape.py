"""A tape: one shard of a trace in memory, as four flat arrays that jitted code takes as they are."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from timers import TimerError

START, CANCEL, REARM, ARM = range(4)
"""Operations: start a new timer, whatever became of the id's former holder; cancel it; re-arm it to a new
deadline; arm it: re-arm if it is pending, else start it."""

OP_NAMES = ("start", "cancel", "re-arm", "arm")
MAX_ID_SPACE = 2**31
"""Ids are int32."""
_SPARSE = 8
# An array by id may be so many times as long as the tape: one stray id near 2**31 is no reason to take 16 GB.


class Tape(NamedTuple):
    """Operations in the order in which they happen; row i of every array is operation i."""

    time: npt.NDArray[np.int64]  # shape (n,), units; never decreases
    op: npt.NDArray[np.int8]  # shape (n,); START, CANCEL, REARM or ARM
    id: npt.NDArray[np.int32]  # shape (n,); dense, from 0, recycled
    deadline: npt.NDArray[np.int64]  # shape (n,), units; 0 for CANCEL


DTYPES = tuple(np.dtype(name) for name in ("int64", "int8", "int32", "int64"))
"""The dtype of each column, in the order of `Tape`'s fields."""


class TapeError(TimerError, ValueError):
    """A tape that breaks a rule; the message names the first row that does, and `row` is its number."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class Counts(NamedTuple):
    """How many operations of each kind a tape has."""

    starts: int
    cancels: int
    rearms: int
    arms: int


def joined(pieces: Sequence[Tape]) -> Tape:
    """The tape that these pieces make, in order. O(n)."""
    if not pieces:
        return Tape(*(np.empty(0, dtype) for dtype in DTYPES))
    if len(pieces) == 1:
        return pieces[0]
    return Tape(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def count_ops(tape: Tape) -> Counts:
    """Operations by kind. O(n)."""
    return Counts(*np.bincount(tape.op, minlength=len(OP_NAMES)).tolist())


def id_space_of(tape: Tape) -> int:
    """The smallest id space that holds the tape: its largest id + 1, or 0 when it is empty. O(n)."""
    return int(tape.id.max()) + 1 if len(tape.id) else 0


def validate(tape: Tape, id_space: int) -> None:
    """Raise TapeError unless the tape keeps every rule. [An empty tape does.] O(n); 1e6 rows in about 10 ms.

    The rules: four 1-D arrays of one length with the dtypes of `Tape`; times never decrease and none is
    negative; ops are known; 0 <= id < id_space <= 2**31; no deadline is negative, and that of a cancel is 0;
    a cancel or re-arm comes after a start or arm of its id.
    """
    Rules(id_space).check(tape)


class Rules:
    """Checks a tape that comes in pieces, in order. Memory: a byte for each id."""

    def __init__(self, id_space: int) -> None:
        is_integer = isinstance(id_space, (int, np.integer)) and not isinstance(id_space, bool)
        if not (is_integer and 0 <= id_space <= MAX_ID_SPACE):
            raise TapeError(f"id_space is {id_space!r}; it must be an integer in [0, 2**31]")
        self.rows = 0  # of the pieces so far
        self._id_space = id_space
        self._last_time = 0
        self._started = np.zeros(id_space, np.bool_)  # whose pages are not there before they are used

    def check(self, piece: Tape) -> None:
        """Raise TapeError unless the next piece keeps every rule of `validate`; rows are counted from the first piece."""
        _check_arrays(piece)
        time, op, ids, deadline = piece
        if not len(time):
            return
        self._refuse(time < 0, lambda row: f"time {time[row]} is negative")
        before = np.concatenate(([self._last_time], time[:-1]))
        self._refuse(
            time < before, lambda row: f"time {time[row]} is before {before[row]}, the time of the row before"
        )
        self._refuse((op < START) | (op > ARM), lambda row: f"op {op[row]} is unknown; ops are 0 to {ARM}")
        self._refuse(
            (ids < 0) | (ids >= self._id_space), lambda row: f"id {ids[row]} is outside [0, {self._id_space})"
        )
        self._refuse(deadline < 0, lambda row: f"deadline {deadline[row]} is negative")
        cancels = op == CANCEL
        self._refuse(
            cancels & (deadline != 0), lambda row: f"deadline {deadline[row]} of a cancel; it must be 0"
        )
        later = np.flatnonzero(cancels | (op == REARM))
        never = later[~self._started[ids[later]]]
        if len(never):
            places = _places(ids)
            self._refuse(
                _first_start(op, places)[places[never]] > never,
                lambda row: f"{OP_NAMES[op[row]]} of id {ids[row]}, which was never started before",
                rows=never,
            )
        self._started[ids] = True
        self._last_time = int(time[-1])
        self.rows += len(time)

    def _refuse(
        self,
        bad: npt.NDArray[np.bool_],
        message: Callable[[int], str],
        rows: npt.NDArray[np.intp] | None = None,
    ) -> None:
        """Raise for the first True of `bad`; `rows` gives the piece's rows when `bad` covers only some of them."""
        first = int(bad.argmax())
        if bad[first]:
            row = first if rows is None else int(rows[first])
            raise TapeError(f"row {self.rows + row}: {message(row)}", self.rows + row)


def _check_arrays(tape: Tape) -> None:
    for name, column, dtype in zip(Tape._fields, tape, DTYPES, strict=True):
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype != dtype:
            got = (
                f"{column.dtype} of shape {column.shape}"
                if isinstance(column, np.ndarray)
                else type(column).__name__
            )
            raise TapeError(f"column {name} is {got}; it must be a 1-D array of {dtype}")
        if len(column) != len(tape.time):
            raise TapeError(f"column {name} has {len(column)} rows, column time has {len(tape.time)}")


def _places(ids: npt.NDArray[np.int32]) -> npt.NDArray[np.integer[Any]]:
    """The ids, or where they lie far apart their ranks: dense enough to index an array by."""
    if int(ids.max()) < _SPARSE * len(ids):
        return ids
    return np.unique(ids, return_inverse=True)[1]


def _first_start(
    op: npt.NDArray[np.int8], places: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.int64]:
    """The row of each place's first start or arm; len(op) where there is none. Shape (largest place + 1,)."""
    rows = np.flatnonzero((op == START) | (op == ARM))
    first = np.full(int(places.max()) + 1, len(op), np.int64)
    # Backwards, since of several assignments to one place the last stays.
    first[places[rows[::-1]]] = rows[::-1]
    return first
