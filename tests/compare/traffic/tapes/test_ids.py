"""Ids are given out and recycled in the order in which they came free."""

import numpy as np

from compare.traffic.tapes.ids import Ids


def test_the_id_that_came_free_first_is_taken_first():
    ids = Ids()
    assert [ids.take() for _ in range(3)] == [0, 1, 2]
    for freed in (2, 0):
        ids.release(freed)
    assert [ids.take() for _ in range(3)] == [2, 0, 3]
    assert ids.id_space == 4


def test_an_id_is_not_given_out_in_the_moment_in_which_it_comes_free():
    ids, got = Ids(), np.full(3, -1, np.int32)
    times = np.array([0, 7, 8])
    ids.assign(got, np.arange(3), times, np.array([0]), np.array([7]))
    assert got.tolist() == [0, 1, 0]
    assert ids.id_space == 2
