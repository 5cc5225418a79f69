"""A tape: one shard of a trace in memory, as four flat arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from timers import TimerError
from timers.kernels.jit import long_entry
from timers.kernels.operations import NONE

START, CANCEL, REARM, ARM = range(4)
"""Operations: start a new timer, regardless of what happened to the previous timer with this id;
cancel it; re-arm it with a new deadline; arm it: re-arm it if it is pending, else start it."""

OP_COUNTS = ("starts", "cancels", "rearms", "arms")
"""The names of the counts of these operations."""

MAX_ID_SPACE = 2**31
"""Ids are int32."""

MAX_ROWS = 2**31 - 1
"""A replay counts the operations of a shard in 32 bits."""


class Tape(NamedTuple):
    """Operations in the order in which they happen; row i of every array is operation i."""

    time: npt.NDArray[np.int64]  # shape (n,), units; never decreases
    op: npt.NDArray[np.int8]  # shape (n,); START, CANCEL, REARM or ARM
    id: npt.NDArray[np.int32]  # shape (n,); dense, from 0, recycled
    deadline: npt.NDArray[np.int64]  # shape (n,), units; 0 for CANCEL


DTYPES = tuple(np.dtype(name) for name in ("int64", "int8", "int32", "int64"))
"""The dtype of each column, in the order of `Tape`'s fields."""


class TapeError(TimerError, ValueError):
    """A tape breaks a rule. The message names the first bad row, and `row` is its number."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


def joined(pieces: Sequence[Tape]) -> Tape:
    """Concatenate pieces of a tape. O(n)."""
    if len(pieces) == 1:
        return pieces[0]
    empty = [np.empty(0, dtype) for dtype in DTYPES]
    return Tape._make(map(np.concatenate, zip(empty, *pieces, strict=True)))


def part(tape: Tape, start: int, stop: int | None = None) -> Tape:
    """Return the rows from `start` to `stop` as views. O(1)."""
    time, op, ids, deadline = tape
    return Tape(time[start:stop], op[start:stop], ids[start:stop], deadline[start:stop])


def count_ops(tape: Tape) -> dict[str, int]:
    """Count the operations of each kind, by the names in OP_COUNTS. O(n)."""
    return {name: int(np.count_nonzero(tape.op == op)) for op, name in enumerate(OP_COUNTS)}


def id_space_of(tape: Tape) -> int:
    """Return the tape's largest id + 1, or 0 if it is empty. O(n)."""
    return int(tape.id.max()) + 1 if len(tape.id) else 0


def validate(tape: Tape, id_space: int) -> None:
    """Raise TapeError unless the tape follows every rule. O(n); 1e6 rows take about 3 ms.

    The rules: four 1-D arrays of the same length with the dtypes of `Tape`; times are not negative
    and never decrease; ops are known; 0 <= id < id_space <= 2**31; deadlines are not negative, and
    0 for a cancel; a cancel or re-arm comes after a start or arm of its id.
    """
    Rules(id_space).check(tape)


class Rules:
    """Checks a tape piece by piece, in order. Memory: a byte per id.

    With `dense`, each id must be below the number of rows up to the end of its piece. A replay
    allocates memory for every id, so a huge one would take gigabytes.
    """

    def __init__(self, id_space: int, *, dense: bool = False) -> None:
        is_integer = isinstance(id_space, (int, np.integer)) and not isinstance(id_space, bool)
        if not (is_integer and 0 <= id_space <= MAX_ID_SPACE):
            raise TapeError(f"id_space is {id_space!r}; it must be an integer in [0, 2**31]")
        self.rows = 0  # in the pieces so far
        self._id_space, self._dense = id_space, dense
        self._last_time = 0
        self._started = np.zeros(0, np.bool_)  # by id

    def check(self, piece: Tape) -> None:
        """Raise TapeError unless the next piece follows the rules; see `validate`."""
        column: Any
        for name, column, dtype in zip(Tape._fields, piece, DTYPES, strict=True):
            is_array = isinstance(column, np.ndarray)
            if not is_array or column.ndim != 1 or column.dtype != dtype:
                kind = type(column).__name__
                actual = f"{column.dtype} of shape {column.shape}" if is_array else kind
                raise TapeError(f"column {name} is {actual}; it must be a 1-D array of {dtype}")
            rows = len(column)
            if rows != len(piece.time):
                raise TapeError(f"column {name} has {rows} rows, column time has {len(piece.time)}")
        id_space, known = self._id_space, self._started.size
        if self._dense:
            id_space = min(id_space, self.rows + len(piece.time))
        needed = min(id_space_of(piece), id_space)
        if needed > known:  # it is copied, so it doubles
            self._started = np.append(self._started, np.zeros(max(needed - known, known), np.bool_))
        row, rule = _first_broken(*piece, id_space, self._last_time, self._started)
        if row != NONE:
            values = {name: int(column[row]) for name, column in piece._asdict().items()}
            before = int(piece.time[row - 1]) if row else self._last_time
            problem = _RULES[rule].format(**values, before=before, id_space=id_space)
            raise TapeError(f"row {self.rows + row}: {problem}", self.rows + row)
        if len(piece.time):
            self._last_time = int(piece.time[-1])
        self.rows += len(piece.time)


_RULES = (
    "time {time} is negative",
    "time {time} is before {before}, the time of the previous row",
    "op {op} is unknown; ops are 0 to 3",
    "id {id} is outside [0, {id_space})",
    "deadline {deadline} is negative",
    "deadline {deadline} of a cancel; it must be 0",
    "cancel of id {id}, which was never started",
    "re-arm of id {id}, which was never started",
)
"""Messages for a bad row, by the number of the rule that it breaks."""


@long_entry
def _first_broken(
    time: Any, op: Any, ids: Any, deadline: Any, id_space: int, before: int, started: Any
) -> tuple[int, int]:
    """Return the first row that breaks a rule, or NONE, and the number of the rule.

    Marks in `started` the ids that were started.
    """
    for k in range(time.size):
        kind, i = op[k], ids[k]
        if time[k] < before:
            return k, 0 if time[k] < 0 else 1
        if not START <= kind <= ARM:
            return k, 2
        if not 0 <= i < id_space:
            return k, 3
        if deadline[k] < 0:
            return k, 4
        if kind == CANCEL and deadline[k] != 0:
            return k, 5
        if kind in (START, ARM):
            started[i] = True
        elif not started[i]:
            return k, 6 if kind == CANCEL else 7
        before = time[k]
    return NONE, 0
