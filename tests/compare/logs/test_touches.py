"""The tape of touches: keys keep their ids, and no key re-arms the timer of another."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.logs.touches import TouchTape
from compare.tapes.tape import ARM, START, Tape, id_space_of, validate

TIMES = st.integers(0, 30)


@st.composite
def touch_logs(draw):
    idle = draw(st.integers(1, 8))
    rows = sorted(draw(st.lists(TIMES, min_size=1, max_size=60)))
    keys = draw(
        st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=len(rows), max_size=len(rows))
    )
    return np.array(rows, np.int64), keys, idle


@given(touch_logs(), st.integers(0, 60))
def test_touches_keep_their_key_and_the_others_away(log, cut):
    time, keys, idle = log
    touches = TouchTape(idle)
    cut = min(cut, len(keys))
    tapes = [
        touches.add(time[:cut], keys[:cut]),
        touches.add(time[cut:], keys[cut:]),
        touches.finish(),
    ]
    tape = Tape(*map(np.concatenate, zip(*tapes, strict=True)))
    validate(tape, id_space_of(tape))
    assert tape.time.tolist() == time.tolist()
    assert tape.deadline.tolist() == (time + idle).tolist()
    holder, touched = {}, {}
    for now, op, id_, key in zip(
        time.tolist(), tape.op.tolist(), tape.id.tolist(), keys, strict=True
    ):
        if op == ARM:
            # Its own id, or one that nobody ever had.
            assert holder.get(id_, key) == key
            assert all(other != key or own == id_ for own, other in holder.items())
        else:
            assert op == START
            # The deadline under this id is an idle period ago at least.
            assert now >= touched[id_] + 2 * idle
        for own in [own for own, other in holder.items() if other == key]:
            del holder[own]
        holder[id_], touched[id_] = key, now
    assert id_space_of(tape) <= len(set(keys))
    armed, fired, most = {}, 0, 0
    for now, key in zip(time.tolist(), keys, strict=True):
        due = [other for other, last in armed.items() if last + idle <= now]
        fired += len(due)
        for other in due:
            del armed[other]
        armed[key] = now
        most = max(most, len(armed))
    assert (touches.timed_out, touches.most_pending) == (fired + len(armed), most)


def test_a_key_that_comes_back_after_its_deadline_finds_the_timer_that_may_be_late():
    time = np.array([0, 10, 30], np.int64)
    tape = TouchTape(10).add(time, [b"a", b"a", b"a"])
    # At 10 the timer may still be pending where timers fire late; at 30 the id is anybody's.
    assert tape.op.tolist() == [ARM, ARM, START]
    assert tape.id.tolist() == [0, 0, 0]
