"""`IdleDetector`: finds the connections from which nothing has come for a while."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from timers.arrays import Int64s
from timers.errors import ClockError, ParameterError, TimeRangeError
from timers.kernels.handles import PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.registry import timer_class
from timers.schemes.base import load_code
from timers.services.errors import KeyTypeError
from timers.services.moments import duration_ns
from timers.validation import shown

_TABLE_LIMIT = 1 << 24  # integer keys below this are looked up in an array
_SMALLEST_WHEEL, _LARGEST_WHEEL = 64, 2048
_NOT_AN_INTEGER = -1
_UNKNOWN = 0  # timers never return this handle


class Ticks:
    """What both detectors share: seconds as ticks, so that nothing falls idle early."""

    def __init__(self, timeout: Any, tick: Any) -> None:
        self._timeout = duration_ns(timeout, "timeout")
        self._tick = duration_ns(tick, "tick")
        if not self._tick:
            raise TimeRangeError(f"tick must be at least a nanosecond, not {shown(tick)}")
        self._now = 0  # nanoseconds
        self._unit = 0  # the tick that has begun last

    def _deadline(self, at: Any) -> int:
        """The first tick at which a connection touched at `at` is idle."""
        if at is None:
            return min(self._unit + 1 - (-self._timeout // self._tick), LIMIT)
        return min(-(-(duration_ns(at, "at") + self._timeout) // self._tick), LIMIT)

    def _move(self, now: Any) -> int:
        """Move the clock and return its tick."""
        moment = duration_ns(now, "now")
        if moment < self._now:
            raise ClockError(f"the clock cannot go back from {self._now / 1e9} to {shown(now)}")
        self._now, self._unit = moment, moment // self._tick
        return self._unit


class IdleDetector(Ticks):
    """Connections with one timer each, which every packet moves by the timeout.

    Times are seconds, and the clock starts at 0. `timer` is a name of the registry or a function
    that makes an empty timer; one unit of it is a tick. A timer that is named gets wheels that hold
    the timeout, up to 4096 ticks. A connection that was last touched at time t falls idle at the
    first tick that is not before t + `timeout`. A timer that rounds up makes that later, but none
    makes it earlier. Not thread-safe.

    With `lazy=True` a packet only notes the time. When the timer fires, it is armed again for what
    is left of the timeout. That is cheaper where most packets come well before the timeout.

    Keys are any hashable values. Unlike in a dict, an integer in [0, 2**24) and an equal float are
    two keys. Integer arrays have a fast path in `touch_many`; it needs eight bytes for each integer
    up to the largest key, which has to be below 2**24. Where all keys are such integers, IdleRing
    is faster still.

    >>> detector = IdleDetector(timeout=30)
    >>> detector.touch("a", at=0)
    >>> detector.touch("b", at=12.5)
    >>> detector.advance(30)
    ['a']
    >>> detector.touch_many(["b", "c"], at=31)
    >>> detector.advance(60), detector.advance(61), len(detector)
    ([], ['b', 'c'], 0)

    Raises:
        TimeTypeError, TimeRangeError: for a timeout or tick that is not a duration, or a tick of 0.
        UnknownTimerError: for a name that is not in the registry.
        ParameterError: if `timer` makes something that is not an empty timer.
    """

    def __init__(
        self,
        timeout: Any = 30.0,
        tick: Any = 1.0,
        timer: str | Callable[[], Timer] = "hierarchical-wheel",
        lazy: bool = False,
    ) -> None:
        super().__init__(timeout, tick)
        self._timer = _made(timer, self._timeout // self._tick + 2)
        load_code(self._timer)  # so that the first packet does not wait for it
        self._lazy = lazy
        self._handles: Int64s = np.zeros(0, np.int64)  # by key, for integers below _TABLE_LIMIT
        self._handle_of: dict[Hashable, int] = {}  # for all other keys
        # By place:
        self._deadlines: Int64s = np.zeros(0, np.int64)  # in ticks
        self._integers: Int64s = np.zeros(0, np.int64)  # the keys, or _NOT_AN_INTEGER
        self._others: dict[int, Hashable] = {}

    def __len__(self) -> int:
        """The number of connections that are not idle. O(1)."""
        return len(self._timer)

    def touch(self, key: Hashable, at: Any = None) -> None:
        """A packet came, at `at`, or at the next tick if it is not given. O(1).

        A connection that is not known is added. A time before the last one changes nothing.

        Raises:
            KeyTypeError: for a key that is not hashable.
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
        """
        self._touch(key, self._deadline(at))

    def touch_many(self, keys: Iterable[Hashable], at: Any = None) -> None:
        """`touch` for each key; all come at the same time. O(1) each.

        Raises:
            KeyTypeError: also if `keys` is not iterable.
            TimeTypeError, TimeRangeError: as `touch`; in all cases nothing has changed.
        """
        deadline = self._deadline(at)
        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu" and keys.ndim == 1:
            if not keys.size:
                return
            if keys.min() >= 0 and keys.max() < _TABLE_LIMIT:
                self._touch_array(keys.astype(np.int64, copy=False), deadline)
                return
        for key in _listed(keys):
            self._touch(key, deadline)

    def remove(self, key: Hashable) -> bool:
        """Forget a connection; False if it is not known. O(1).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        _check_hashable(key)
        handle = self._handle(key)
        if handle == _UNKNOWN:
            return False
        self._timer.cancel(handle)
        self._forget(np.array([handle & PLACE_MASK]))
        return True

    def advance(self, now: Any) -> list[Hashable]:
        """Move the clock to `now` seconds; returns the connections that fell idle, in order.

        They are forgotten; a later touch adds them again. O(1) for each timer that fires.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
            ClockError: for a time before that of the last call.
        """
        unit = self._move(now)
        places = self._timer.advance(unit).handles & PLACE_MASK
        if not places.size:
            return []
        deadlines = self._deadlines[places]
        due = deadlines <= unit
        idle = places[due]
        keys = self._forget(idle[np.argsort(deadlines[due], kind="stable")])
        if idle.size < places.size:  # last, because it may be given the places of the idle ones
            self._arm_again(places[~due], deadlines[~due])
        return keys

    def _touch(self, key: Hashable, deadline: int) -> None:
        _check_hashable(key)
        handle = self._handle(key)
        if handle == _UNKNOWN:
            handle = self._timer.schedule(deadline)
            self._reserve(handle & PLACE_MASK)
            self._file(key, handle)
        elif deadline <= self._deadlines[handle & PLACE_MASK]:
            return
        elif not self._lazy:
            self._timer.reschedule(handle, deadline)
        self._deadlines[handle & PLACE_MASK] = deadline

    def _touch_array(self, keys: Int64s, deadline: int) -> None:
        """`_touch` for integers below `_TABLE_LIMIT`."""
        self._reserve_key(int(keys.max()))
        handles = self._handles[keys]
        known = handles != _UNKNOWN
        if not known.all():
            self._add(keys[~known], deadline)
            handles = handles[known]
        places = handles & PLACE_MASK
        later = self._deadlines[places] < deadline
        if not later.all():
            handles, places = handles[later], places[later]
        self._deadlines[places] = deadline
        if not self._lazy and places.size:
            self._timer.reschedule_many(handles, np.full(places.size, deadline))

    def _add(self, keys: Int64s, deadline: int) -> None:
        """Add integer keys that are not known, and may occur more than once."""
        numbers = np.arange(1, keys.size + 1)
        self._handles[keys] = numbers
        keys = keys[self._handles[keys] == numbers]
        handles = self._timer.schedule_many(np.full(keys.size, deadline))
        places = handles & PLACE_MASK
        self._reserve(int(places.max()))
        self._handles[keys] = handles
        self._integers[places] = keys
        self._deadlines[places] = deadline

    def _arm_again(self, places: Int64s, deadlines: Int64s) -> None:
        """Schedule connections whose timer fired before their time."""
        integers = self._integers[places]
        handles = self._timer.schedule_many(deadlines)
        moved = handles & PLACE_MASK
        self._reserve(int(moved.max()))
        others = [self._others.pop(place, None) for place in places[integers < 0].tolist()]
        self._deadlines[moved] = deadlines
        self._integers[moved] = integers
        self._handles[integers[integers >= 0]] = handles[integers >= 0]
        for key, handle in zip(others, handles[integers < 0].tolist(), strict=True):
            self._file(key, handle)

    def _forget(self, places: Int64s) -> list[Hashable]:
        """Drop the connections at these places and return their keys."""
        integers = self._integers[places]
        keys: list[Hashable] = integers.tolist()
        is_integer = integers >= 0
        self._handles[integers[is_integer]] = _UNKNOWN
        for position in np.flatnonzero(~is_integer).tolist():
            key = keys[position] = self._others.pop(int(places[position]))
            del self._handle_of[key]
        return keys

    def _handle(self, key: Hashable) -> int:
        index = _index(key)
        if index == _NOT_AN_INTEGER:
            return self._handle_of.get(key, _UNKNOWN)
        self._reserve_key(index)
        return int(self._handles[index])

    def _file(self, key: Hashable, handle: int) -> None:
        place = handle & PLACE_MASK
        index = self._integers[place] = _index(key)
        if index == _NOT_AN_INTEGER:
            self._handle_of[key] = handle
            self._others[place] = key
        else:
            self._handles[index] = handle

    def _reserve(self, place: int) -> None:
        """Make room for what is kept by place."""
        if place >= len(self._deadlines):
            self._deadlines = _grown(self._deadlines, place)
            self._integers = _grown(self._integers, place)

    def _reserve_key(self, key: int) -> None:
        if key >= len(self._handles):
            self._handles = _grown(self._handles, key)


class ScanningIdleDetector(Ticks):
    """An IdleDetector that looks at all connections in each `advance`: the baseline.

    >>> detector = ScanningIdleDetector(timeout=30)
    >>> detector.touch("a", at=0)
    >>> detector.advance(29.9), detector.advance(30)
    ([], ['a'])
    """

    def __init__(self, timeout: Any = 30.0, tick: Any = 1.0) -> None:
        super().__init__(timeout, tick)
        self._deadlines: dict[Hashable, int] = {}

    def __len__(self) -> int:
        """The number of connections that are not idle. O(1)."""
        return len(self._deadlines)

    def touch(self, key: Hashable, at: Any = None) -> None:
        """A packet came; see `IdleDetector.touch`. O(1)."""
        _check_hashable(key)
        deadline = self._deadline(at)
        if deadline > self._deadlines.get(key, -1):
            self._deadlines[key] = deadline

    def touch_many(self, keys: Iterable[Hashable], at: Any = None) -> None:
        """`touch` for each key. O(1) each."""
        deadline = self._deadline(at)
        deadlines = self._deadlines
        for key in _listed(keys):
            if deadline > deadlines.get(key, -1):
                deadlines[key] = deadline

    def remove(self, key: Hashable) -> bool:
        """Forget a connection; False if it is not known. O(1)."""
        _check_hashable(key)
        return self._deadlines.pop(key, None) is not None

    def advance(self, now: Any) -> list[Hashable]:
        """Move the clock and return the connections that fell idle, in order. O(connections)."""
        unit = self._move(now)
        deadlines = self._deadlines
        idle = [key for key, deadline in deadlines.items() if deadline <= unit]
        idle.sort(key=deadlines.__getitem__)
        for key in idle:
            del deadlines[key]
        return idle


def _made(timer: str | Callable[[], Timer], ticks: int) -> Timer:
    """The timer; one that is given by name has wheels that reach `ticks` ahead, if it has any."""
    if isinstance(timer, str):
        scheme = timer_class(timer)
        wheel = 1 << min(ticks, _LARGEST_WHEEL).bit_length()
        fitting = {"tick": 1, "wheel_size": max(wheel, _SMALLEST_WHEEL)}
        known = scheme().parameters
        made = scheme(**{name: value for name, value in fitting.items() if name in known})
    else:
        made = timer()
    if not isinstance(made, Timer) or len(made) or made.now:
        raise ParameterError(f"timer must make an empty timer at time 0, not {shown(made)}")
    return made


def _check_hashable(key: Hashable) -> None:
    try:
        hash(key)
    except TypeError:
        raise KeyTypeError(f"a key must be hashable, not {shown(key)}") from None


def _listed(keys: Iterable[Hashable]) -> list[Hashable]:
    """The keys, all of which are hashable."""
    if isinstance(keys, np.ndarray):
        keys = keys.tolist()
    try:
        iterator = iter(keys)
    except TypeError:
        raise KeyTypeError(f"keys must be an iterable, not {shown(keys)}") from None
    listed = list(iterator)
    for key in listed:
        _check_hashable(key)
    return listed


def _index(key: Hashable) -> int:
    """An integer key that is looked up in an array; `_NOT_AN_INTEGER` for all other keys."""
    if isinstance(key, (int, np.integer)) and 0 <= key < _TABLE_LIMIT:
        return int(key)
    return _NOT_AN_INTEGER


def _grown(values: Int64s, index: int) -> Int64s:
    """The array with zeros behind it, so that `index` is inside; at least twice as long."""
    larger = np.zeros(max(2 * len(values), index + 1, 64), np.int64)
    larger[: len(values)] = values
    return larger
