"""The tape of touches: keys keep their ids, and no key re-arms the timer of another.

What the tape does not show is among the late touches.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs.touches import TouchTape
from compare.traffic.tapes.tape import ARM, START, id_space_of, joined, validate
from tests.compare.made_logs import cut


def model(time, keys, idle):
    """The operations and the late touches, by a loop over all ids for each row."""
    holders = {}  # id -> the key that had it last, and when; in the order of these times
    touched, late = {}, []
    operations = []
    for now, key in zip(time, keys, strict=True):
        free = [id_ for id_, (_, last) in holders.items() if last + 2 * idle <= now]
        own = [id_ for id_, (holder, _) in holders.items() if holder == key and id_ not in free]
        (id_, *_) = own or free or [len(holders)]
        operations.append((now, START if free and not own else ARM, id_, now + idle))
        if key in touched and not own:
            late.append(now - touched[key])
        touched[key] = now
        holders.pop(id_, None)
        holders[id_] = (key, now)
    return operations, late


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=60),
    st.sampled_from([3, 12]),
    st.integers(1, 8),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_tapes_are_those_of_the_model(rows, largest_key, idle, places):
    time = np.array(sorted(moment for moment, _ in rows), np.int64)
    keys = np.array([min(key, largest_key) for _, key in rows], np.int32)
    touches = TouchTape(idle)
    pieces, late = zip(*(touches.add(*piece) for piece in cut((time, keys), places)), strict=True)
    tape = joined(pieces)
    validate(tape, id_space_of(tape))
    operations = list(zip(*(column.tolist() for column in tape), strict=True))
    waits = [wait for some in late for wait in some.waits.tolist()]
    assert (operations, waits) == model(time.tolist(), keys.tolist(), idle)
    assert max(some.until for some in late) == time[-1]
