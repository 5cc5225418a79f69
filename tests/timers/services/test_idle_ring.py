"""IdleRing beside ScanningIdleDetector."""

import random

import numpy as np
import pytest

from timers.errors import ClockError, ParameterError, TimeRangeError, TimeTypeError
from timers.services import IdleRing, ScanningIdleDetector


@pytest.mark.parametrize("numbers", [3, 500])
@pytest.mark.parametrize("timeout", [0, 2, 30, 10_000])
def test_it_agrees_with_the_scan(timeout, numbers):
    """Few numbers are removed and added again within one tick; many fill several chunks of a list.
    Of 10 000 ticks, the ring has 4096.
    """
    dice = random.Random(timeout * numbers)
    ring, scan = IdleRing(timeout, 1), ScanningIdleDetector(timeout, 1)
    now, idle_at = 0, {}
    for _ in range(600):
        some = [dice.randrange(numbers) for _ in range(dice.choice((1, 1, numbers)))]
        if dice.random() < 0.6:
            at = dice.choice((None, now, max(now - 3, 0), now + dice.randrange(timeout + 3)))
            if len(some) == 1:
                ring.touch(some[0], at)
            else:
                ring.touch_many(np.array(some, np.int32), at)
            scan.touch_many(some, at)
        elif dice.random() < 0.6:
            assert ring.remove(some[0]) == scan.remove(some[0])
        else:
            now += dice.choice((0, 1, 1, dice.randrange(timeout + 3), 5_000))
            idle_at = dict(scan._deadlines)
            found, expected = ring.advance(now).tolist(), scan.advance(now)
            assert sorted(found) == sorted(expected)
            assert [idle_at[each] for each in found] == [idle_at[each] for each in expected]
        assert len(ring) == len(scan)


def test_removed_connections_leave_nothing_behind_for_longer_than_the_timeout():
    ring = IdleRing(5, 1)
    sizes = []
    for second in range(100):
        ring.advance(second)
        for _ in range(100):
            ring.touch(7)
            assert ring.remove(7)
        sizes.append(len(ring._chunks))
    assert len(ring) == 0
    assert sizes[-1] == sizes[10]


@pytest.mark.parametrize("numbers", [[], (), np.empty(0, np.int64), np.array([])])
def test_no_numbers_change_nothing_even_at_first(numbers):
    ring = IdleRing(10, 1)
    ring.touch_many(numbers)
    ring.touch_many(numbers, at=3)
    assert len(ring) == 0
    assert ring.advance(50).tolist() == []


def test_bad_input_changes_nothing():
    ring = IdleRing(10, 1)
    ring.touch(2, at=0)
    ring.advance(5)
    for numbers, error in (
        ([3, -1], ParameterError),
        ([3, 1 << 24], ParameterError),
        ([3, 1 << 70], TimeRangeError),
        (["a"], TimeTypeError),
        ([0.5], TimeTypeError),
    ):
        with pytest.raises(error, match="number"):
            ring.touch_many(numbers)
        with pytest.raises((TimeTypeError, ParameterError), match="number"):
            ring.remove(numbers[-1])
    with pytest.raises(TimeRangeError, match="at must"):
        ring.touch_many([3], at=-1)
    with pytest.raises(ClockError):
        ring.advance(4)
    ring.touch_many([])
    assert not ring.remove(3)
    assert not ring.remove(1 << 20)
    assert len(ring) == 1
    assert ring.advance(10).tolist() == [2]
