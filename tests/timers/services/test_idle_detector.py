"""IdleDetector beside a dict of last touches, for every timer of the registry."""

import math
import random
import weakref
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from timers import CascadingWheel, HierarchicalWheel, names, timer_class
from timers.errors import ClockError, ParameterError, TimeRangeError, TimeTypeError
from timers.services import IdleDetector, KeyTypeError, idle_detector

KEYS = [0, 1, 7, 70, -3, 1 << 24, 1 << 70, "a", "b", (1, 2), 2.5, None, frozenset()]

MAKERS = {
    "exact": IdleDetector,
    "rounding down": lambda *arguments, **options: IdleDetector(
        *arguments, timer=HierarchicalWheel(tick=7), **options
    ),
}


@pytest.fixture(params=MAKERS)
def make(request):
    """The class of a detector that closes at the very tick, with some of its arguments."""
    return MAKERS[request.param]


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_a_model(make, seed):
    """Times are whole milliseconds; the model keeps the tick at which a key is idle."""
    dice = random.Random(seed)
    timeout, tick = dice.choice([(30_000, 1000), (2_500, 1000), (10, 10), (100, 7)])
    detector = make(timeout / 1000, tick / 1000)
    now, idle_at = 0, {}
    for _ in range(200):
        keys = [dice.choice(KEYS) for _ in range(dice.choice((1, 1, 4, 50)))]
        touched = dice.choice((None, now, now + dice.randrange(3 * tick), max(now - 3 * tick, 0)))
        if dice.random() < 0.7:
            moment = (now // tick + 1) * tick if touched is None else touched
            seconds = None if touched is None else touched / 1000
            if len(keys) == 1:
                detector.touch(keys[0], seconds)
            else:
                numbers = np.array(
                    [dice.choice((0, 1, 7, 70)) for _ in range(dice.choice((9, 90)))]
                )
                detector.touch_many(keys, at=seconds)
                detector.touch_many(numbers, at=seconds)
                keys += numbers.tolist()
            for key in keys:
                idle_at[key] = max(idle_at.get(key, 0), -(-(moment + timeout) // tick))
        elif dice.random() < 0.2:
            assert detector.remove(keys[0]) == (idle_at.pop(keys[0], None) is not None)
        else:
            now += dice.choice((0, tick, dice.randrange(2 * timeout + 5 * tick)))
            idle = detector.advance(now / 1000)
            expected = {key: due for key, due in idle_at.items() if due <= now // tick}
            assert len(idle) == len(expected)
            assert set(idle) == set(expected)
            dues = [expected[key] for key in idle]
            assert dues == sorted(dues)
            for key in idle:
                del idle_at[key]
        assert len(detector) == len(idle_at)


ONE = [1, 1.0, True, np.int64(1), np.uint8(1), Fraction(1), Decimal(1), 1 + 0j]


@pytest.mark.parametrize("many", [1, 40])
@pytest.mark.parametrize("key", ONE, ids=lambda key: type(key).__name__)
def test_equal_keys_are_one_connection(key, many):
    """However it is touched: alone, in a short or a long list, or in an array."""
    for other in ONE:
        detector = IdleDetector(10, 1)
        detector.touch_many(np.full(many, 1), at=0)
        detector.touch(key, at=1)
        detector.touch_many([other] * many, at=2)
        assert len(detector) == 1
        assert detector.remove(key)
        detector.touch_many([key] * many, at=2)
        detector.touch_many(np.full(many, 1), at=3)
        assert detector.advance(12) == []
        assert detector.advance(13) == [1]
        assert not detector.remove(other)


@pytest.mark.parametrize("kind", [int, str, float])
def test_connections_come_and_go(kind):
    """Thousands at once, some of which are touched again, beside a dict of the last touches."""
    dice, detector, last = np.random.default_rng(1), IdleDetector(10, 1), {}
    for now in range(60):
        numbers = dice.integers(0, 5_000, 400)
        keys = [kind(number) for number in numbers.tolist()]
        detector.touch_many(numbers if kind is int else keys, at=now)
        last |= dict.fromkeys(keys, now)
        for key in keys[:3]:
            assert detector.remove(key) == (last.pop(key, None) is not None)
        idle = detector.advance(now)
        assert set(idle) == {key for key, touched in last.items() if touched + 10 <= now}
        assert len(idle) == len(set(idle))
        for key in idle:
            del last[key]
        assert len(detector) == len(last)


@pytest.mark.parametrize("block", [1, 3, 1 << 15])
def test_integers_and_other_keys_share_arrays_that_grow(block, monkeypatch):
    """Both kinds in turns, one by one and many at once, so that each must move away."""
    monkeypatch.setattr(idle_detector, "_BLOCK", block)
    detector, last, largest = IdleDetector(100, 1), {}, 1
    for now in range(24):
        largest = largest * 7 // 4 + 1
        detector.touch(largest, at=now)
        texts = [f"{now}: {number}" for number in range(1 + 3 * now)]
        detector.touch_many(texts, at=now)
        detector.touch(f"{now}", at=now)
        numbers = np.array([largest - 1, now, 0, largest - 1])
        detector.touch_many(numbers, at=now)
        last |= dict.fromkeys([largest, *texts, f"{now}", *numbers.tolist()], now)
        assert detector.remove(texts[0]) and last.pop(texts[0]) == now
        assert len(detector) == len(last)
    for now in range(100, 124):
        idle = detector.advance(now)
        assert dict.fromkeys(idle, now - 100) == {
            k: at for k, at in last.items() if at == now - 100
        }
        assert len(set(idle)) == len(idle)
    assert len(detector) == 0


@pytest.mark.parametrize("name", names())
def test_no_timer_closes_early_and_none_by_more_than_a_tick_late(name):
    scheme = timer_class(name)
    detector = IdleDetector(10, 1, scheme(tick=1) if "tick" in scheme().parameters else scheme())
    closed = {}
    for now in range(42):
        for key in detector.advance(now):
            closed[key] = now
        for key in range(30):
            if now <= key:
                detector.touch(key, at=now)
    assert sorted(closed) == list(range(30))
    assert {when - key for key, when in closed.items()} <= {10, 11}


def test_a_packet_moves_no_timer():
    timer = CascadingWheel()
    detector = IdleDetector(10, 1, timer=timer)
    detector.touch_many(np.arange(3), at=0)
    timer.reschedule = timer.reschedule_many = None  # would raise
    assert timer.next_expiry() == 10
    detector.touch(0, at=5)
    detector.touch_many(np.array([1, 1]), at=6)
    assert timer.next_expiry() == 10
    assert detector.advance(10) == [2]
    assert timer.next_expiry() == 15
    assert detector.advance(16) == [0, 1]


def test_a_connection_that_is_gone_is_not_kept_alive(make):
    class Connection:
        pass

    detector, removed, idle = make(10, 1), Connection(), Connection()
    gone = [weakref.ref(removed), weakref.ref(idle)]
    detector.touch_many([removed, idle], at=0)
    assert detector.remove(removed)
    assert detector.advance(10) == [idle]
    del removed, idle
    assert [reference() for reference in gone] == [None, None]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout": -1}, TimeRangeError),
        ({"timeout": math.nan}, TimeRangeError),
        ({"timeout": "30"}, TimeTypeError),
        ({"tick": 0}, TimeRangeError),
        ({"tick": -1}, TimeRangeError),
    ],
)
def test_bad_parameters_are_refused(make, arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        make(**arguments)


def test_a_bad_timer_is_refused():
    full = HierarchicalWheel()
    full.schedule(1)
    for timer in ("hierarchical-wheel", HierarchicalWheel(start=5), full):
        with pytest.raises(ParameterError, match="timer must be an empty timer at time 0, not"):
            IdleDetector(timer=timer)


def test_a_key_that_fails_leaves_an_empty_detector_usable(make):
    class Key:
        hashes = iter(range(2, -9, -1))  # the third one fails, while the detector arms it

        def __hash__(self):
            return 1 // next(self.hashes)

    detector = make(10, 1)
    with pytest.raises(ZeroDivisionError):
        detector.touch(Key(), at=0)
    detector.touch("a", at=0)
    assert detector.advance(10) == ["a"]


def test_by_default_a_connection_is_idle_at_the_first_whole_second_after_thirty():
    detector = IdleDetector()
    detector.touch("a", at=0.5)
    assert detector.advance(30.9) == []
    assert detector.advance(31) == ["a"]


@pytest.mark.parametrize(
    ("timeout", "wheel"),
    [(1, 4), (100, 128), (126, 256), (4093, 4096), (4094, 128), (10**6, 1024), (10**9, 4096)],
)
def test_the_wheel_holds_the_timeout(timeout, wheel, monkeypatch):
    """In one level, or in two."""
    assert wheel > timeout or wheel**2 > timeout or wheel == 4096
    wheels = []
    monkeypatch.setattr(
        idle_detector, "HierarchicalWheel", lambda **given: wheels.append(given) or CascadingWheel()
    )
    IdleDetector(timeout, tick=1)
    assert wheels == [{"wheel_size": wheel}]


def test_bad_input_changes_nothing(make):
    detector = make(10, 1)
    detector.touch("a", at=0)
    detector.advance(5)
    for moment, error in ((-1, TimeRangeError), (math.nan, TimeRangeError), ("1", TimeTypeError)):
        with pytest.raises(error, match="at must"):
            detector.touch("a", at=moment)
        with pytest.raises(error, match="now must"):
            detector.advance(moment)
    for method in (detector.touch, detector.remove, lambda key: detector.touch_many(["b", key])):
        with pytest.raises(KeyTypeError, match=r"a key must be hashable, not \[\]"):
            method([])
    for keys in (5, None, np.array(5), np.array(0.5)):
        with pytest.raises(KeyTypeError, match=r"keys must be an iterable, not (None|5|0\.5)"):
            detector.touch_many(keys)
    with pytest.raises(KeyTypeError, match="an iterable of keys, not 'abc'; use a list"):
        detector.touch_many("abc")  # one key, or three
    with pytest.raises(ClockError, match=r"the clock cannot go back from 5.0 to 4.9"):
        detector.advance(4.9)
    detector.touch_many(np.array([], np.int64))
    assert len(detector) == 1
    assert detector.advance(10) == ["a"]
