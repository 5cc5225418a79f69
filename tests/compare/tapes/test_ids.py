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
        got = np.array(held, np.int32)
        member = np.array([member for member, _ in events], np.intp)
        is_start = np.array([start for _, start in events], np.bool_)
        if number % 2:
            for who, starts in events:
                if starts:
                    assert ids.take() == held[who]
                else:
                    ids.release(held[who])
        else:
            got[member[is_start]] = -1
            ids.assign(got, member, is_start)
            assert got.tolist() == held
        assert ids.id_space == model.id_space


def test_the_ring_grows_without_losing_an_id():
    ids, size = Ids(), 5000
    taken = [ids.take() for _ in range(size)]
    assert taken == list(range(size))
    for one in taken[:700]:
        ids.release(one)
    assert [ids.take() for _ in range(300)] == taken[:300]
    for one in taken[700:]:
        ids.release(one)
    ids.reserve(10 * size)
    assert [ids.take() for _ in range(size - 300)] == [*taken[300:700], *taken[700:]]
    assert ids.take() == size
    assert ids.id_space == size + 1
