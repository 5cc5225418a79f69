"""Make a failing tape smaller: leave out operations as long as it still fails."""

from collections.abc import Callable

import numpy as np

from compare.traffic.tapes.tape import DTYPES, Tape, TapeError, id_space_of, validate

Fails = Callable[[Tape], bool]


def shrink(tape: Tape, fails: Fails) -> Tape:
    """Return a part of a tape that still fails, but would not without any one of its operations.

    Leaves out ever smaller chunks (Zeller and Hildebrandt's ddmin): first of ids with all their
    operations, because a start and its cancel may be needless only together, and then of single
    operations. O(n log n) calls of `fails` in typical cases, O(n**2) at worst.
    """
    if id_space_of(tape) < tape.time.size:
        tape = _thinned(tape, fails, by_id=True)
    return _thinned(tape, fails, by_id=False)


def _thinned(tape: Tape, fails: Fails, *, by_id: bool) -> Tape:
    def parts(tape: Tape) -> int:
        return id_space_of(tape) if by_id else tape.time.size

    chunk = max(parts(tape) // 2, 1)
    while True:
        start, is_smaller = 0, False
        while start < parts(tape):
            number = tape.id if by_id else np.arange(tape.time.size)
            kept = (number < start) | (number >= start + chunk)
            part = _compact(Tape._make(column[kept] for column in tape))
            if part is not None and fails(part):
                tape, is_smaller = part, True
            else:
                start += chunk
        if chunk == 1 and not is_smaller:
            return tape
        chunk = max(chunk // 2, 1)


def _compact(tape: Tape) -> Tape | None:
    """Renumber the ids densely; None if the tape breaks a rule."""
    ids = np.unique(tape.id, return_inverse=True)[1].astype(DTYPES[2])
    tape = Tape(tape.time, tape.op, ids, tape.deadline)
    try:
        validate(tape, id_space_of(tape))
    except TapeError:
        return None
    return tape
