"""Ids are given out and recycled in the order in which they came free."""

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.tapes.ids import Ids


class Model:
    """The rule in plain Python."""

    def __init__(self):
        self.free, self.id_space = deque(), 0

    def take(self):
        if self.free:
            return self.free.popleft()
        self.id_space += 1
        return self.id_space - 1


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=40), max_size=5))
def test_ids_are_those_of_the_model(batches):
    """None starts a member; a number ends one of those under way. Some batches go one by one."""
    ids, model, under_way = Ids(), Model(), []
    members, held = 0, []
    for number, batch in enumerate(batches):
        events = []
        for which in batch:
            if which is None:
                under_way.append(members)
                events.append((members, True))
                held.append(model.take())
                members += 1
            elif under_way:
                member = under_way.pop(which % len(under_way))
                events.append((member, False))
                model.free.append(held[member])
        if number % 2:
            for index, starts in events:
                if starts:
                    assert ids.take() == held[index]
                else:
                    ids.release(held[index])
        else:
            starts = [(index, time) for time, (index, is_start) in enumerate(events) if is_start]
            ends = [(index, time) for time, (index, is_start) in enumerate(events) if not is_start]
            got = np.array(held, np.int32)
            got[[index for index, _ in starts]] = -1
            columns = (np.array(pairs, np.int64).reshape(-1, 2).T for pairs in (starts, ends))
            ids.assign(got, *(column for pair in columns for column in pair))
            assert got.tolist() == held
        assert ids.id_space == model.id_space


def test_an_id_is_not_given_out_in_the_moment_in_which_it_comes_free():
    ids, got = Ids(), np.full(3, -1, np.int32)
    times = np.array([0, 7, 8])
    ids.assign(got, np.arange(3), times, np.array([0]), np.array([7]))
    assert got.tolist() == [0, 1, 0]
    assert ids.id_space == 2
