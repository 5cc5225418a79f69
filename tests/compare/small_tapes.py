"""Random tapes for the tests of `compare`: every operation, recycled ids, equal times, deadlines
past and far.
"""

import hashlib

import numpy as np
from hypothesis import strategies as st

from compare.traffic.tapes.tape import ARM, CANCEL, DTYPES, REARM, START, Tape
from timers.limits import LIMIT


def tape_of(*rows: tuple[int, int, int, int]) -> Tape:
    """A tape of (time, op, id, deadline) rows."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(DTYPES)
    return Tape(*map(np.array, columns, DTYPES))


def digest(tape: Tape) -> str:
    """SHA-256 of a tape's rows, which is the same on every machine."""
    result = hashlib.sha256()
    for column in tape:
        result.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    return result.hexdigest()


@st.composite
def tapes(draw: st.DrawFn, max_rows: int = 40, ids: int = 5) -> Tape:
    """A tape that keeps every rule, over `ids` ids; an id's first operation starts it."""
    now = draw(st.sampled_from([0, 1, 255, 256, 2**40, LIMIT - 10**6]))
    rows, started = [], set()
    for _ in range(draw(st.integers(0, max_rows))):
        now += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 7, 100, 300]))
        i = draw(st.integers(0, ids - 1))
        op = draw(st.sampled_from([START, CANCEL, REARM, ARM] if i in started else [START, ARM]))
        delay = draw(
            st.one_of(st.integers(-3, 12), st.sampled_from([99, 100, 101, 256, 5000, 2**33]))
        )
        deadline = 0 if op == CANCEL else min(max(now + delay, 0), LIMIT)
        started.add(i)
        rows.append((now, op, i, deadline))
    return tape_of(*rows)
