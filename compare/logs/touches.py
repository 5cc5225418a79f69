"""Turn touches of keys, in the order of time, into a tape."""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np

from compare.logs.requests import EMPTY
from compare.tapes.tape import ARM, START, Tape
from timers.arrays import Int32s, Int64s
from timers.kernels.jit import jit, long_entry

_COUNTS = 9
(
    _PENDING,  # the key in the list of pending timers that was touched first, or _NONE
    _PENDING_LAST,
    _SILENT,  # the same of the keys whose deadline has passed
    _SILENT_LAST,
    _FREE,  # how many ids are free, and where the first one is
    _FIRST_FREE,
    _ID_SPACE,
    _IN_LIST,  # timers that are pending
    _MOST,
) = range(_COUNTS)
_NONE = -1

_FIELDS = ("id", "list", "before", "behind", "free")
_KEY = np.dtype([("time", np.int64), *((name, np.int32) for name in _FIELDS)], align=True)
"""A key: its last touch, its id, and its place in a list. `free` is not of the key, but a ring of
ids of all keys.
"""


class TouchTape:
    """The tape of touches: each row re-arms the timer of its key.

    A key keeps its id until it has been silent for two idle periods. The first one ends at the
    deadline. In the second one, a timer that fires late may still be pending, and a touch must find
    it under the same id. The id then goes to the next new key. The first touch of that key is a
    start instead of an arm, because it must not re-arm the timer of the former holder.
    """

    def __init__(self, idle: int) -> None:
        self._idle = idle
        self._keys = np.empty(0, _KEY)
        self._counts = np.zeros(_COUNTS, np.int64)
        self._counts[: _SILENT_LAST + 1] = _NONE
        self.timed_out = 0
        """Timers that fire, if they are exact, also after the last row."""

    @property
    def most_pending(self) -> int:
        """The largest number of timers that are pending at once."""
        return int(self._counts[_MOST])

    def add(self, time: Int64s, keys: Int32s) -> Tape:
        """Add rows in the order of time; return one operation for each. O(n).

        A key is a small number. Memory: 32 bytes for each number up to the largest one.
        """
        known, space = len(self._keys), int(keys.max(initial=-1)) + 1
        if space > known:
            more = np.zeros(max(space, 2 * known) - known, _KEY)
            more["list"] = _NONE
            # The ring begins anew.
            order = (self._counts[_FIRST_FREE] + np.arange(known)) % max(known, 1)
            self._keys["free"] = self._keys["free"][order]
            self._counts[_FIRST_FREE] = 0
            self._keys = np.concatenate([self._keys, more])
        ids, ops = np.empty(len(time), np.int32), np.empty(len(time), np.int8)
        self.timed_out += _fold(time, keys, self._idle, self._keys, self._counts, ids, ops)
        return Tape(time, ops, ids, time + self._idle)

    def finish(self) -> Tape:
        """The remaining operations: none."""
        return EMPTY


@long_entry
def _fold(time, codes, idle, keys, counts, ids, ops):
    """Fill in ids and operations; return how many timers were started."""
    started = 0
    for row in range(time.size):
        now, code = time[row], codes[row]
        _expire(keys, counts, now, idle)
        ops[row] = ARM
        kind = keys[code]["list"]
        if kind != _PENDING:
            started += 1
        if kind == _NONE:
            if counts[_FREE]:
                ops[row] = START
                keys[code]["id"] = keys[counts[_FIRST_FREE]]["free"]
                counts[_FIRST_FREE] = (counts[_FIRST_FREE] + 1) % keys.size
                counts[_FREE] -= 1
            else:
                keys[code]["id"] = counts[_ID_SPACE]
                counts[_ID_SPACE] += 1
        else:
            _remove(keys, counts, code, kind)
        keys[code]["time"] = now
        _append(keys, counts, code, _PENDING)
        ids[row] = keys[code]["id"]
        counts[_MOST] = max(counts[_MOST], counts[_IN_LIST])
    return started


@jit
def _expire(keys, counts, now, idle):
    """Move keys at their deadline to the other list, and free ids after two idle periods."""
    code = counts[_PENDING]
    while code != _NONE and now - keys[code]["time"] >= idle:
        _remove(keys, counts, code, _PENDING)
        _append(keys, counts, code, _SILENT)
        code = counts[_PENDING]
    code = counts[_SILENT]
    while code != _NONE and now - keys[code]["time"] - idle >= idle:
        _remove(keys, counts, code, _SILENT)
        keys[code]["list"] = _NONE
        place = (counts[_FIRST_FREE] + counts[_FREE]) % keys.size
        keys[place]["free"] = keys[code]["id"]
        counts[_FREE] += 1
        code = counts[_SILENT]


@jit
def _remove(keys, counts, code, kind):
    before, behind = keys[code]["before"], keys[code]["behind"]
    if before == _NONE:
        counts[kind] = behind
    else:
        keys[before]["behind"] = behind
    if behind == _NONE:
        counts[kind + 1] = before
    else:
        keys[behind]["before"] = before
    counts[_IN_LIST] -= kind == _PENDING


@jit
def _append(keys, counts, code, kind):
    last = counts[kind + 1]
    keys[code]["list"], keys[code]["before"], keys[code]["behind"] = kind, last, _NONE
    if last == _NONE:
        counts[kind] = code
    else:
        keys[last]["behind"] = code
    counts[kind + 1] = code
    counts[_IN_LIST] += kind == _PENDING
