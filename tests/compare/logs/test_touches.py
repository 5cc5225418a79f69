"""The tape of touches: keys keep their ids, and no key re-arms the timer of another."""

from collections import OrderedDict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.logs.touches import TouchTape
from compare.tapes.ids import Ids
from compare.tapes.tape import ARM, START, Tape, id_space_of, joined, validate

TIMES = st.integers(0, 30)


class Model:
    """The tape of touches with ordered dictionaries, as it was first written."""

    def __init__(self, idle):
        self._idle = idle
        # key -> time of the last touch, id; oldest first
        self._pending: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._silent: OrderedDict[int, tuple[int, int]] = OrderedDict()  # after the deadline
        self._next = 0  # no key falls silent and no id comes free earlier
        self._ids = Ids()
        self.timed_out = 0
        self.most_pending = 0

    def add(self, time, keys):
        pending = self._pending
        ids = np.empty(len(time), np.int32)
        ops = np.full(len(time), ARM, np.int8)
        for row, (now, key) in enumerate(zip(time.tolist(), keys, strict=True)):
            if now >= self._next:
                self._expire(now)
            held = pending.pop(key, None)
            if held is None:
                self.timed_out += 1
                held = self._silent.pop(key, None)
            if held is not None:
                id_ = held[1]
            else:
                before = self._ids.id_space
                id_ = self._ids.take()
                if id_ < before:
                    ops[row] = START
            pending[key] = (now, id_)
            ids[row] = id_
            if len(pending) > self.most_pending:
                self.most_pending = len(pending)
        return Tape(time, ops, ids, time + self._idle)

    def _expire(self, now):
        self._next = now + self._idle
        while self._pending:
            key, (last, _) = next(iter(self._pending.items()))
            if last + self._idle > now:
                self._next = last + self._idle
                break
            self._silent[key] = self._pending.pop(key)
        while self._silent:
            key, (last, id_) = next(iter(self._silent.items()))
            if last + 2 * self._idle > now:
                self._next = min(self._next, last + 2 * self._idle)
                return
            del self._silent[key]
            self._ids.release(id_)


@st.composite
def touch_logs(draw):
    idle = draw(st.integers(1, 8))
    rows = sorted(draw(st.lists(TIMES, min_size=1, max_size=60)))
    keys = draw(
        st.lists(
            st.integers(0, draw(st.sampled_from([3, 12]))), min_size=len(rows), max_size=len(rows)
        )
    )
    return np.array(rows, np.int64), np.array(keys, np.int32), idle


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
        time.tolist(), tape.op.tolist(), tape.id.tolist(), keys.tolist(), strict=True
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
    assert id_space_of(tape) <= len(set(keys.tolist()))
    armed, fired, most_pending = {}, 0, 0
    for now, key in zip(time.tolist(), keys.tolist(), strict=True):
        due = [other for other, last in armed.items() if last + idle <= now]
        fired += len(due)
        for other in due:
            del armed[other]
        armed[key] = now
        most_pending = max(most_pending, len(armed))
    assert (touches.timed_out, touches.most_pending) == (fired + len(armed), most_pending)


def test_a_key_that_comes_back_after_its_deadline_finds_the_timer_that_may_be_late():
    time = np.array([0, 10, 30], np.int64)
    tape = TouchTape(10).add(time, np.zeros(3, np.int32))
    # At 10 the timer may still be pending where timers fire late; at 30 the id is anybody's.
    assert tape.op.tolist() == [ARM, ARM, START]
    assert tape.id.tolist() == [0, 0, 0]


@given(touch_logs(), st.lists(st.integers(0, 60), max_size=3))
def test_tapes_are_those_of_the_model(log, cuts):
    time, keys, idle = log
    touches, model = TouchTape(idle), Model(idle)
    places = [0, *sorted(cuts), len(time)]
    pieces = [
        touches.add(time[a:b], keys[a:b]) for a, b in zip(places[:-1], places[1:], strict=True)
    ]
    wanted = model.add(time, keys.tolist())
    for column, other in zip(joined(pieces), wanted, strict=True):
        np.testing.assert_array_equal(column, other)
    assert (touches.timed_out, touches.most_pending) == (model.timed_out, model.most_pending)
