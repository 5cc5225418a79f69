"""`IdleDetector`: detects idle connections."""

from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any

import numpy as np

from timers.errors import ClockError, ParameterError, TimeRangeError
from timers.kernels.handles import PLACE_MASK
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.schemes.base import load_code
from timers.schemes.hierarchical_wheel import HierarchicalWheel
from timers.services.clock import duration_ns
from timers.services.errors import check_key, key_list
from timers.validation import shown

_NOBODY = object()
_LARGEST_WHEEL = 4096  # slots


class IdleDetector:
    """Keeps one timer per connection and reports connections that have been silent for `timeout`.

    Keys are any hashable values. Times are seconds, and the clock starts at 0. A connection that
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
        load_code(self._timer, "move_all", "schedule_many", "cancel", "cancel_many", "advance")
        self._idle_at: dict[Hashable, int] = {}  # the tick at which a connection is idle
        self._latest = 0  # no connection is idle later
        self._handles: dict[Hashable, int] = {}  # its timer, armed for that tick or an earlier one
        self._keys: list[Hashable] = []  # by the place of the timer, or _NOBODY
        self._settled = True  # False while these change, and after an interruption

    def __len__(self) -> int:
        """The number of connections that are not idle. O(1)."""
        return len(self._idle_at)

    def touch(self, key: Hashable, at: Any = None) -> None:
        """A packet came, at `at`, or at the next tick if it is not given. O(1).

        A connection that is not known is added. A time before the last one changes nothing.

        Raises:
            KeyTypeError: for a key that is not hashable.
            TimeTypeError, TimeRangeError: for what is not a moment of at least 0.
        """
        self.touch_many([key], at)

    def touch_many(self, keys: Iterable[Hashable], at: Any = None) -> None:
        """`touch` for each key; all come at the same time. O(1) each.

        Raises:
            KeyTypeError: also if `keys` is not iterable, or a string.
            TimeTypeError, TimeRangeError: as `touch`; in all cases nothing has changed.
        """
        deadline, idle_at = self._deadline(at), self._idle_at
        touched = key_list(keys.tolist() if isinstance(keys, np.ndarray) else keys)
        try:
            touches = dict.fromkeys(touched, deadline)
        except TypeError:
            for key in touched:
                check_key(key)
            raise
        if deadline < self._latest:
            touches = {key: when for key, when in touches.items() if idle_at.get(key, -1) < when}
        new = [key for key in touches if key not in idle_at]
        if new:
            self._settle()
            self._arm(new, [deadline] * len(new))
        idle_at.update(touches)
        self._latest = max(self._latest, deadline)

    def remove(self, key: Hashable) -> bool:
        """Forget a connection; False if it is not known. O(1).

        Raises:
            KeyTypeError: for a key that is not hashable.
        """
        check_key(key)
        self._settle()
        if key not in self._idle_at:
            return False
        self._settled = False
        handle = self._handles.pop(key)
        self._timer.cancel(handle)
        self._keys[handle & PLACE_MASK] = _NOBODY
        del self._idle_at[key]
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
        fired, idle_at = self._timer.advance(self._unit).handles & PLACE_MASK, self._idle_at
        idle: list[Hashable] = []
        active: list[Hashable] = []
        for place in fired.tolist():
            key, self._keys[place] = self._keys[place], _NOBODY
            if key is not _NOBODY:
                (idle if idle_at[key] <= self._unit else active).append(key)
        idle.sort(key=idle_at.__getitem__)
        for key in idle:
            del idle_at[key], self._handles[key]
        if active:
            self._arm(active, [idle_at[key] for key in active])
        self._settled = True
        return idle

    def _deadline(self, moment: Any) -> int:
        """The first tick at which a connection touched at `moment` is idle."""
        if moment is None:
            return min(self._unit + 1 - (-self._timeout // self._tick), LIMIT)
        return min(-(-(duration_ns(moment, "at") + self._timeout) // self._tick), LIMIT)

    def _arm(self, keys: list[Hashable], deadlines: list[int]) -> None:
        """Schedule a timer for each key."""
        self._settled = False
        self._idle_at.update(zip(keys, deadlines, strict=True))
        handles = self._timer.schedule_many(np.array(deadlines, np.int64))
        places = (handles & PLACE_MASK).tolist()
        self._keys.extend(repeat(_NOBODY, max(places, default=-1) + 1 - len(self._keys)))
        for key, place in zip(keys, places, strict=True):
            self._keys[place] = key
        self._handles.update(zip(keys, handles.tolist(), strict=True))
        self._settled = True

    def _settle(self) -> None:
        """After an interruption, schedule all timers again."""
        if self._settled:
            return
        self._timer.cancel_many(np.array(list(self._handles.values()), np.int64))
        self._keys = [_NOBODY] * len(self._keys)
        self._arm(list(self._idle_at), list(self._idle_at.values()))
