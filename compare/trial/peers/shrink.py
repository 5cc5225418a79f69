"""Make a failing tape smaller: leave out operations as long as it still fails."""

from collections.abc import Callable

import numpy as np

from compare.traffic.tapes.tape import DTYPES, Tape, TapeError, id_space_of, validate

Fails = Callable[[Tape], bool]


def shrink(tape: Tape, fails: Fails) -> Tape:
    """Return a part of a tape that still fails, but would not without any one of its operations.

    Leaves out ever smaller chunks (Zeller and Hildebrandt's ddmin). O(n log n) calls of `fails` in
    typical cases, O(n**2) at worst.
    """
    chunk = max(tape.time.size // 2, 1)
    while True:
        start, is_smaller = 0, False
        while start < tape.time.size:
            kept = np.ones(tape.time.size, np.bool_)
            kept[start : start + chunk] = False
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
