"""`IdleDetector`: detects idle connections.

Each connection has a *number*, by which arrays hold when it is idle and its timer. A key that is an
integer below 2**24 is its own number. Other keys have negative numbers, so they are counted from
the end of the arrays; a dict finds them. What the timer holds can be made again from the rest, and
is after an interruption.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from timers.arrays import Int64s
from timers.errors import ClockError, ParameterError, TimeRangeError
from timers.kernels.handles import PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.base import load_code
from timers.schemes.hierarchical_wheel import HierarchicalWheel
from timers.services.clock import duration_ns
from timers.services.errors import check_key, key_list
from timers.validation import shown

_UNKNOWN = 0  # in place of a tick: there is no such connection
_MOST_BITS = 12  # of the number of slots of a wheel
_INTEGERS = 1 << 24  # integer keys below this are their own numbers
_FEW = 32
"""Touches that are noted alone, so that their timers fire too early and are armed again. To move
many timers in one batch costs less than that.
"""
_BLOCK = 1 << 15  # keys that are touched at once: their arrays fit into the processor's cache

_CALLED = (
    *("advance", "cancel", "cancel_many", "move_all"),
    *("reschedule_many", "schedule", "schedule_many"),
)
_PLAIN = frozenset({str, bytes, tuple, frozenset, type(None)})  # never equal to an integer


class IdleDetector:
    """Keeps one timer per connection and reports connections that have been silent for `timeout`.

    Keys are any hashable values; equal ones are one key, as in a dict. Arrays of integers are the
    fastest; they need 16 bytes for each integer up to the largest key below 2**24. Times are
    seconds, and the clock starts at 0. A connection that was last touched at time t falls idle at
    the first tick that is not before t + `timeout`. Its timer is armed again for the rest of the
    timeout when it fires. Not thread-safe.

    `timer` is any empty timer at time 0, of the registry or one of your own; the detector owns it
    from now on. One unit of it is a tick. By default it is a hierarchical wheel with room for the
    timeout in its lowest level, or above 4096 ticks in two levels. With a timer that rounds up,
    idle connections are reported later; no timer reports them early.

    Often a scan of an array or a dict costs less: see docs/services.md.

    >>> detector = IdleDetector(timeout=30)
    >>> detector.touch("a", at=0)
    >>> detector.touch("b", at=12.5)
    >>> detector.advance(30)
    ['a']
    >>> detector.touch_many(["b", "c"], at=31)
    >>> detector.advance(60), sorted(detector.advance(61)), len(detector)
    ([], ['b', 'c'], 0)

    Raises:
        TimeTypeError, TimeRangeError: for a timeout or tick that is not a duration, or a tick
            of 0 or above the timeout.
        ParameterError: for what is not a timer, or one that is not empty or not at time 0.
    """

    def __init__(self, timeout: Any = 30.0, tick: Any = 1.0, timer: Timer | None = None) -> None:
        self._timeout = duration_ns(timeout, "timeout")
        self._tick = duration_ns(tick, "tick")
        if not 0 < self._tick <= self._timeout:
            raise TimeRangeError(
                "the tick must be at least a nanosecond, and at most the timeout: "
                f"not {shown(tick)} with a timeout of {shown(timeout)}"
            )
        if timer is None:
            bits = (self._timeout // self._tick + 2).bit_length()
            if bits > _MOST_BITS:  # two levels for the timeout, and as little memory as they allow
                bits = min((bits + 1) // 2, _MOST_BITS)
            timer = HierarchicalWheel(wheel_size=1 << bits)
        if not isinstance(timer, Timer) or len(timer) or timer.now:
            raise ParameterError(f"timer must be an empty timer at time 0, not {shown(timer)}")
        self._timer = timer
        self._now = 0  # nanoseconds
        self._unit = 0  # the tick that has begun last
        # So that the first packet does not wait for it.
        load_code(self._timer, *_CALLED)
        # By number:
        self._idle_at = _zeros(0)  # the tick at which the connection is idle, or _UNKNOWN
        self._handles = _zeros(0)  # its timer, armed for that tick or an earlier one
        self._integers = 0  # there is room for the integers below this
        # Keys that are no such integers:
        self._number_of: dict[Hashable, int] = {}
        self._others: list[Hashable] = []  # by ~number
        self._free: list[int] = []  # numbers of those that are gone
        self._number_at = _zeros(0)  # by the place of the timer
        self._size = 0
        self._settled = True  # False while the timer changes, and after an interruption

    def __len__(self) -> int:
        """The number of connections that are not idle. O(1)."""
        self._settle()
        return self._size

    def touch(self, key: Hashable, at: Any = None) -> None:
        """A packet came, at `at`, or at the next tick if it is not given. O(1).

        A connection that is not known is added. A time before the last one changes nothing.

        Raises:
            KeyTypeError: for a key that is not hashable.
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
        """
        self._touch(key, self._deadline(at))

    def _touch(self, key: Hashable, deadline: int) -> None:
        number = self._number(key)
        if number is None:
            number = self._number_for(key)
        idle_at = self._idle_at.item(number)
        if idle_at == _UNKNOWN:
            self._arm_one(number, deadline)
        elif idle_at < deadline:
            self._idle_at[number] = deadline

    def touch_many(self, keys: Iterable[Hashable], at: Any = None) -> None:
        """`touch` for each key; all come at the same time. O(1) each.

        Raises:
            KeyTypeError: also if `keys` is not iterable, or a string.
            TimeTypeError, TimeRangeError: as `touch`; in all cases nothing has changed.
        """
        deadline = self._deadline(at)
        if not (isinstance(keys, np.ndarray) and keys.ndim == 1 and keys.dtype.kind in "iu"):
            keys = key_list(keys.tolist() if isinstance(keys, np.ndarray) else keys)
            if len(keys) <= _FEW:
                for key in keys:
                    check_key(key)
                for key in keys:
                    self._touch(key, deadline)
                return
        numbers = self._numbers(keys)
        for first in range(0, numbers.size, _BLOCK):
            self._touch_numbers(numbers[first : first + _BLOCK], deadline)

    def _touch_numbers(self, numbers: Int64s, deadline: int) -> None:
        known = self._idle_at[numbers]
        if known.min() == _UNKNOWN:
            is_known = known != _UNKNOWN
            self._arm(numbers[~is_known], deadline)
            numbers, known = numbers[is_known], known[is_known]
        is_later = known < deadline
        later = numbers if is_later.all() else numbers[is_later]
        self._idle_at[later] = deadline
        if later.size > _FEW:
            self._settle()
            self._timer.reschedule_many(self._handles[later], np.full(later.size, deadline))

    def remove(self, key: Hashable) -> bool:
        """Forget a connection; False if it is not known. O(1).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        self._settle()
        number = self._number(key)
        if number is None or self._idle_at.item(number) == _UNKNOWN:
            return False
        self._settled = False
        self._timer.cancel(self._handles.item(number))
        self._idle_at[number] = _UNKNOWN
        self._size -= 1
        if number < 0:
            self._release(number)
        self._settled = True
        return True

    def advance(self, now: Any) -> list[Hashable]:
        """Move the clock to `now` seconds; returns the connections that fell idle, in order.

        They are forgotten; a later touch adds them again. An exception of a signal handler in the
        last steps may lose what was found. O(1) for each timer that fires.

        Raises:
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
            ClockError: for a time before that of the last call.
        """
        moment = duration_ns(now, "now")
        if moment < self._now:
            raise ClockError(f"the clock cannot go back from {self._now / 1e9} to {shown(now)}")
        self._settle()
        self._now, self._unit = moment, moment // self._tick
        self._settled = False
        fired = self._timer.advance(self._unit).handles
        if not fired.size:
            self._settled = True
            return []
        numbers = self._number_at.take(fired & PLACE_MASK, mode="clip")
        is_current = self._handles[numbers] == fired
        if not is_current.all():  # an interruption left timers, which belong to no connection
            numbers = numbers[is_current]
        idle_at = self._idle_at[numbers]
        is_idle = idle_at <= self._unit
        idle = numbers[is_idle][np.argsort(idle_at[is_idle], kind="stable")]
        keys: list[Hashable] = idle.tolist()
        self._idle_at[idle] = _UNKNOWN
        self._size -= idle.size
        if self._number_of:
            for position in np.flatnonzero(idle < 0).tolist():
                keys[position] = self._release(int(idle[position]))
        if idle.size < numbers.size:
            self._schedule(numbers[~is_idle], idle_at[~is_idle])
        self._settled = True
        return keys

    def _deadline(self, moment: Any) -> int:
        """The first tick at which a connection touched at `moment` is idle."""
        if moment is None:
            return min(self._unit + 1 - (-self._timeout // self._tick), LIMIT)
        return min(-(-(duration_ns(moment, "at") + self._timeout) // self._tick), LIMIT)

    # Numbers of keys

    def _number(self, key: Hashable) -> int | None:
        """The number of a key, or None if the arrays have no place for it yet."""
        integer = _integer(key)
        if integer is None:
            return self._number_of.get(key)
        return integer if integer < self._integers else None

    def _number_for(self, key: Hashable) -> int:
        """A number for a key that has none."""
        integer = _integer(key)
        if integer is None:
            return self._add([key])[0]
        self._reserve(integer + 1, len(self._others))
        return integer

    def _numbers(self, keys: Int64s | list[Hashable]) -> Int64s:
        """The number of each key; a key that has none gets one."""
        if isinstance(keys, list):
            types = set(map(type, keys))
            if types <= _PLAIN:
                return self._numbers_of_others(keys)
            if types != {int}:
                return self._numbers_one_by_one(keys)
            array = np.array(keys)  # of objects or floats, if they are large
        else:
            array = keys
        if not array.size:
            return np.empty(0, np.int64)
        if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= _INTEGERS:
            return self._numbers_one_by_one(array.tolist())
        self._reserve(int(array.max()) + 1, len(self._others))
        return array.astype(np.int64, copy=False)

    def _numbers_of_others(self, keys: list[Hashable]) -> Int64s:
        """`_numbers` of keys that are not integers."""
        number_of = self._number_of
        try:
            numbers = [number_of.get(key) for key in keys]
        except TypeError:
            for key in keys:
                check_key(key)
            raise
        if None in numbers:
            self._add(list(dict.fromkeys([key for key in keys if key not in number_of])))
            numbers = [number_of[key] for key in keys]
        return np.array(numbers, np.int64)

    def _numbers_one_by_one(self, keys: list[Hashable]) -> Int64s:
        """`_numbers` of keys of any types."""
        for key in keys:
            check_key(key)
        numbers = []
        for key in keys:
            number = self._number(key)
            numbers.append(self._number_for(key) if number is None else number)
        return np.array(numbers, np.int64)

    def _add(self, keys: list[Hashable]) -> list[int]:
        """Give numbers to keys that are not integers."""
        numbers = self._free[-len(keys) :]
        del self._free[-len(keys) :]
        for number, key in zip(numbers, keys, strict=False):
            self._others[~number] = key
        new, first = keys[len(numbers) :], len(self._others)
        self._reserve(0, first + len(new))
        self._others += new
        numbers += range(~first, ~(first + len(new)), -1)
        self._number_of.update(zip(keys, numbers, strict=True))
        return numbers

    def _release(self, number: int) -> Hashable:
        """Forget the key of a number below 0, and return it."""
        key, self._others[~number] = self._others[~number], None
        del self._number_of[key]
        self._free.append(number)
        return key

    def _reserve(self, integers: int, others: int) -> None:
        """Make room for the integers below `integers`, and for `others` other keys."""
        integers = max(integers, self._integers)
        if integers + others > self._idle_at.size:
            self._handles = self._widened(self._handles, integers + others)
            self._idle_at = self._widened(self._idle_at, integers + others)
        self._integers = integers

    def _widened(self, values: Int64s, size: int) -> Int64s:
        """The array, at least twice as long, with zeros in the middle."""
        larger = _zeros(max(2 * values.size, size, 64))
        larger[: self._integers] = values[: self._integers]
        others = len(self._others)
        larger[larger.size - others :] = values[values.size - others :]
        return larger

    # What the timer holds

    def _arm(self, numbers: Int64s, deadline: int) -> None:
        """Add connections that are idle at `deadline`; some may come twice."""
        self._settle()
        self._settled = False
        self._idle_at[numbers] = deadline
        handles = self._schedule(numbers, np.full(numbers.size, deadline))
        is_twice = self._handles[numbers] != handles  # the last timer is the connection's
        if is_twice.any():
            self._timer.cancel_many(handles[is_twice])
        self._size += numbers.size - int(np.count_nonzero(is_twice))
        self._settled = True

    def _arm_one(self, number: int, deadline: int) -> None:
        """`_arm` for one connection; arrays of one element would take twice the time."""
        self._settle()
        self._settled = False
        self._idle_at[number] = deadline
        self._size += 1
        handle = self._timer.schedule(deadline)
        place = handle & PLACE_MASK
        self._number_at = _grown(self._number_at, place)
        self._number_at[place] = number
        self._handles[number] = handle
        self._settled = True

    def _schedule(self, numbers: Int64s, deadlines: Int64s) -> Int64s:
        """Schedule a timer for each connection, and return their handles."""
        handles = self._timer.schedule_many(deadlines)
        places = handles & PLACE_MASK
        self._number_at = _grown(self._number_at, int(places.max(initial=0)))
        self._number_at[places] = numbers
        self._handles[numbers] = handles
        return handles

    def _settle(self) -> None:
        """After an interruption, schedule all timers again."""
        if self._settled:
            return
        self._timer.cancel_many(self._handles)
        known = np.flatnonzero(self._idle_at)
        known[known >= self._integers] -= self._idle_at.size  # others
        self._size = known.size
        self._schedule(known, self._idle_at[known])
        self._settled = True


def _integer(key: Hashable) -> int | None:
    """The integer below _INTEGERS that a key is equal to. Equal keys have equal hashes."""
    if type(key) is int:
        return key if 0 <= key < _INTEGERS else None
    try:
        number = hash(key)
    except TypeError:
        check_key(key)
        raise
    return number if 0 <= number < _INTEGERS and key == number else None


def _zeros(size: int) -> Int64s:
    return np.zeros(size, np.int64)


def _grown(values: Int64s, index: int) -> Int64s:
    """The array, at least twice as long if `index` was not inside."""
    if index < values.size:
        return values
    larger = _zeros(max(2 * values.size, index + 1, 64))
    larger[: values.size] = values
    return larger
