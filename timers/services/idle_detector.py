"""`IdleDetector`: detects idle connections.

Each connection has a *number*, by which arrays hold when it is idle and its timer. Keys that are
integers below 2**24 find their number in an array, others in a dict. What the timer holds can be
made again from the rest, and is after an interruption.
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

_NONE = -1  # no number, or not an integer; in place of a tick, that the connection is gone
_LARGEST_WHEEL = 4096  # slots
_TABLE = 1 << 24  # integer keys below this find their number in an array
_FEW = 32
"""Touches that are noted alone, so that their timers fire too early and are armed again. To move
many timers in one batch costs less than that.
"""

_CALLED = (
    *("advance", "cancel", "cancel_many", "move_all"),
    *("reschedule_many", "schedule", "schedule_many"),
)
_PLAIN = frozenset({str, bytes, tuple, frozenset, type(None)})  # never equal to an integer


class IdleDetector:
    """Keeps one timer per connection and reports connections that have been silent for `timeout`.

    Keys are any hashable values; equal ones are one key, as in a dict. Arrays of integers are the
    fastest; they need eight bytes for each integer up to the largest key below 2**24. Times are
    seconds, and the clock starts at 0. A connection that
    was last touched at time t falls idle at the first tick that is not before t + `timeout`.
    Its timer is armed again for the rest of the timeout when it fires. Not thread-safe.

    `timer` is any empty timer at time 0, of the registry or one of your own; the detector owns it
    from now on. One unit of it is a tick. By default it is a hierarchical wheel with room for the
    timeout, up to 4096 ticks, in its lowest level. With a timer that rounds up, idle connections
    are reported later; no timer reports them early.

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
            slots = 1 << (self._timeout // self._tick + 2).bit_length()
            timer = HierarchicalWheel(wheel_size=min(slots, _LARGEST_WHEEL))
        if not isinstance(timer, Timer) or len(timer) or timer.now:
            raise ParameterError(f"timer must be an empty timer at time 0, not {shown(timer)}")
        self._timer = timer
        self._now = 0  # nanoseconds
        self._unit = 0  # the tick that has begun last
        # So that the first packet does not wait for it.
        load_code(self._timer, *_CALLED)
        # By number:
        self._idle_at = _filled(0)  # the tick at which the connection is idle, or _NONE
        self._handles = _filled(0)  # its timer, armed for that tick or an earlier one
        self._integers = _filled(0)  # its key, or _NONE
        self._others: dict[int, Hashable] = {}  # other keys
        self._free: list[int] = []  # numbers below `_used` that can be used again
        self._used = 0
        # By key:
        self._number_of_integer = _filled(0)
        self._number_of: dict[Hashable, int] = {}
        self._number_at = _filled(0)  # by the place of the timer
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
        idle_at = _NONE if number == _NONE else self._idle_at.item(number)
        if idle_at == _NONE:
            self._arm_one(self._number_for(key) if number == _NONE else number, deadline)
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
        known = self._idle_at[numbers]
        if numbers.size and known.min() == _NONE:
            is_known = known != _NONE
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
        if number == _NONE or self._idle_at[number] == _NONE:
            return False
        self._settled = False
        self._timer.cancel(self._handles.item(number))
        self._idle_at[number] = _NONE
        self._size -= 1
        integer = self._integers.item(number)
        if integer == _NONE:
            del self._number_of[self._others.pop(number)]
        else:
            self._number_of_integer[integer] = _NONE
        self._free.append(number)
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
        # An interruption may have left timers, which belong to no connection.
        numbers = self._number_at.take(fired & PLACE_MASK, mode="clip")
        numbers = numbers[self._handles[numbers] == fired]
        idle_at = self._idle_at[numbers]
        is_idle = idle_at <= self._unit
        idle = numbers[is_idle][np.argsort(idle_at[is_idle], kind="stable")]
        integers = self._integers[idle]
        keys: list[Hashable] = integers.tolist()
        if self._others:
            for position in np.flatnonzero(integers == _NONE).tolist():
                keys[position] = self._others[int(idle[position])]
        if keys:
            self._forget(idle)
        if idle.size < numbers.size:
            self._schedule(numbers[~is_idle])
        self._settled = True
        return keys

    def _deadline(self, moment: Any) -> int:
        """The first tick at which a connection touched at `moment` is idle."""
        if moment is None:
            return min(self._unit + 1 - (-self._timeout // self._tick), LIMIT)
        return min(-(-(duration_ns(moment, "at") + self._timeout) // self._tick), LIMIT)

    # Numbers of keys

    def _number(self, key: Hashable) -> int:
        """The number of a key, or _NONE."""
        integer = _integer(key)
        if integer == _NONE:
            return self._number_of.get(key, _NONE)
        known = integer < self._number_of_integer.size
        return self._number_of_integer.item(integer) if known else _NONE

    def _number_for(self, key: Hashable) -> int:
        """A number for a key that has none."""
        number = self._free.pop() if self._free else self._add(1).item()
        integer = self._integers[number] = _integer(key)
        if integer == _NONE:
            self._others[number] = key
            self._number_of[key] = number
        else:
            self._number_of_integer = _grown(self._number_of_integer, integer)
            self._number_of_integer[integer] = number
        return number

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
        if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= _TABLE:
            return self._numbers_one_by_one(array.tolist())
        self._number_of_integer = _grown(self._number_of_integer, int(array.max()))
        numbers: Int64s = self._number_of_integer[array]
        if numbers.min() == _NONE:
            new = array[numbers == _NONE]
            added = self._add(new.size)
            self._integers[added] = new
            self._number_of_integer[new] = added  # of an integer that comes twice, the last
            self._free.extend(added[self._number_of_integer[new] != added].tolist())
            numbers = self._number_of_integer[array]
        return numbers

    def _numbers_of_others(self, keys: list[Hashable]) -> Int64s:
        """`_numbers` of keys that are not integers."""
        number_of = self._number_of
        try:
            numbers = [number_of.get(key, _NONE) for key in keys]
        except TypeError:
            for key in keys:
                check_key(key)
            raise
        if _NONE in numbers:
            new = list(dict.fromkeys([key for key in keys if key not in number_of]))
            added = self._add(len(new))
            self._integers[added] = _NONE
            self._others.update(zip(added.tolist(), new, strict=True))
            number_of.update(zip(new, added.tolist(), strict=True))
            numbers = [number_of[key] for key in keys]
        return np.array(numbers, np.int64)

    def _numbers_one_by_one(self, keys: list[Hashable]) -> Int64s:
        """`_numbers` of keys of any types."""
        for key in keys:
            check_key(key)
        numbers = []
        for key in keys:
            integer = _integer(key)
            found = self._numbers_of_others([key]) if integer == _NONE else self._numbers([integer])
            numbers.append(found.item())
        return np.array(numbers, np.int64)

    def _add(self, count: int) -> Int64s:
        """Numbers that no connection has."""
        start = max(len(self._free) - count, 0)
        numbers = self._free[start:]
        more = count - len(numbers)
        last = self._used + more - 1
        self._idle_at = _grown(self._idle_at, last)
        self._handles = _grown(self._handles, last)
        self._integers = _grown(self._integers, last)
        added = np.arange(self._used - len(numbers), self._used + more)
        added[: len(numbers)] = numbers
        del self._free[start:]
        self._used += more
        return added

    def _forget(self, numbers: Int64s) -> None:
        """Drop connections, whose timers are gone."""
        self._idle_at[numbers] = _NONE
        self._size -= numbers.size
        integers = self._integers[numbers]
        self._number_of_integer[integers[integers != _NONE]] = _NONE
        for number in numbers[integers == _NONE].tolist():
            del self._number_of[self._others.pop(number)]
        self._free.extend(numbers.tolist())

    # What the timer holds

    def _arm(self, numbers: Int64s, deadline: int) -> None:
        """Add connections that are idle at `deadline`; some may come twice."""
        self._settle()
        order = np.arange(numbers.size)
        self._handles[numbers] = order  # which are no handles
        numbers = numbers[self._handles[numbers] == order]
        self._settled = False
        self._idle_at[numbers] = deadline
        self._size += numbers.size
        self._schedule(numbers)
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

    def _schedule(self, numbers: Int64s) -> None:
        """Schedule a timer for each connection."""
        handles = self._timer.schedule_many(self._idle_at[numbers])
        places = handles & PLACE_MASK
        self._number_at = _grown(self._number_at, int(places.max(initial=0)))
        self._number_at[places] = numbers
        self._handles[numbers] = handles

    def _settle(self) -> None:
        """After an interruption, schedule all timers again."""
        if self._settled:
            return
        self._timer.cancel_many(self._handles)
        known = np.flatnonzero(self._idle_at != _NONE)
        self._size = known.size
        self._schedule(known)
        self._settled = True


def _integer(key: Hashable) -> int:
    """The integer below _TABLE that a key is equal to, or _NONE. Equal keys have equal hashes."""
    if type(key) is int:
        return key if 0 <= key < _TABLE else _NONE
    try:
        number = hash(key)
    except TypeError:
        check_key(key)
        raise
    return number if 0 <= number < _TABLE and key == number else _NONE


def _filled(size: int) -> Int64s:
    return np.full(size, _NONE, np.int64)


def _grown(values: Int64s, index: int) -> Int64s:
    """The array, at least twice as long if `index` was not inside."""
    if index < values.size:
        return values
    larger = _filled(max(2 * values.size, index + 1, 64))
    larger[: values.size] = values
    return larger
