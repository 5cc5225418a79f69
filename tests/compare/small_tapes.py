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


# Made once: drawing from new strategies takes most of the time of a test.
_BEGINNINGS = st.sampled_from([0, 1, 255, 256, 2**40, LIMIT - 10**6])
_LENGTHS = st.integers(0, 40)
_STEPS = st.sampled_from([0, 0, 0, 1, 1, 2, 7, 100, 300])
_IDS = st.integers(0, 4)
_OPERATIONS = st.sampled_from([START, CANCEL, REARM, ARM])
_DELAYS = st.one_of(st.integers(-3, 12), st.sampled_from([99, 100, 101, 256, 5000, 2**33]))
_ROWS = st.tuples(_STEPS, _IDS, _OPERATIONS, _DELAYS)
_FIRST = {CANCEL: START, REARM: ARM}


@st.composite
def tapes(draw: st.DrawFn) -> Tape:
    """A tape that keeps every rule, over five ids; an id's first operation starts it."""
    now = draw(_BEGINNINGS)
    rows, started = [], set()
    for _ in range(draw(_LENGTHS)):
        step, i, op, delay = draw(_ROWS)
        now += step
        if i not in started:
            op = _FIRST.get(op, op)
        deadline = 0 if op == CANCEL else min(max(now + delay, 0), LIMIT)
        started.add(i)
        rows.append((now, op, i, deadline))
    return tape_of(*rows)
