"""Timers that have fired and have not been returned yet.

Python may run a finalizer or a signal handler between any two bytecodes; it may raise, or call the
same timer, even its `advance`. So an expired timer is moved straight into a buffer owned by the
timer (a part). The last step of `advance` forgets the parts that it is about to return. That step
is one bytecode, `del`, which fails if another `advance` has returned them meanwhile, and no handler
can run between it and `return`.
"""

from itertools import count

import numpy as np
import numpy.typing as npt

from timers.errors import CapacityError
from timers.kernels.pool import EXPIRY
from timers.protocol import Expired
from timers.validation import INT64

Part = npt.NDArray[np.void]
"""Rows of EXPIRY that `Calls.advance` fills; the first row counts the filled ones."""

_EMPTY = np.empty(0, INT64)
_new_key = count().__next__


def new_part(size: int) -> Part:
    """A part with room for `size` rows; none is filled yet."""
    part = np.empty(1 + size, EXPIRY)
    part[0] = 0
    return part


def no_expiries() -> Expired:
    """An Expired without rows. Slices of an array take less time than new arrays."""
    return tuple.__new__(Expired, (_EMPTY[:], _EMPTY[:], _EMPTY[:]))


class Undelivered(dict[int, list[tuple[int, Part]]]):
    """The parts that have not been returned yet, numbered in the order in which they were added.

    They are kept under keys that are never used again: one part each, until they are joined.
    """

    def add(self, part: Part) -> int:
        """Keep a part, which may still be empty, and return its key."""
        key = _new_key()
        self[key] = [(key, part)]
        return key

    def parts(self) -> list[Part]:
        """All parts."""
        return [part for parts in tuple(self.values()) for _, part in parts]

    def take(self, last: int) -> Expired:
        """Return the rows of all parts, and forget the parts in the last step.

        `last` is the key of the part that was added last; usually it is the only one. If this is
        interrupted, all parts are kept.

        Raises:
            CapacityError: there is no memory for the result; all parts are kept.
        """
        try:
            while self:
                key, parts = last, self.get(last)
                if parts is None or len(self) > 1:
                    key, parts = self._joined()
                expired = _expired(parts)
                try:
                    del self[key]
                    return expired
                except KeyError:  # a nested advance has returned the parts
                    pass
            return no_expiries()
        except MemoryError:
            raise CapacityError(
                "no memory for the expired timers; the next advance returns them"
            ) from None

    def _joined(self) -> tuple[int, list[tuple[int, Part]]]:
        """Move all parts to one new key, which one `del` can forget; return both."""
        old_keys = list(self)
        key = _new_key()
        parts = self[key] = []
        for old_key in old_keys:
            parts += self.get(old_key, [])
            self.pop(old_key, None)
        # An interrupted join may have left a part under two keys, and later parts before it.
        return key, sorted(dict(parts).items())


def _expired(parts: list[tuple[int, Part]]) -> Expired:
    """The filled rows of parts, as columns."""
    if not parts:
        return no_expiries()
    if len(parts) == 1:
        rows = _filled(parts[0][1])
        columns = (rows["handle"].copy(), rows["deadline"].copy(), rows["fired_at"].copy())
        return tuple.__new__(Expired, columns)
    filled = [_filled(part) for _, part in parts]
    names = ("handle", "deadline", "fired_at")
    return Expired(*(np.concatenate([rows[name] for rows in filled]) for name in names))


def _filled(part: Part) -> Part:
    """The rows of a part that are filled."""
    return part[1 : 1 + part.item(0)[0]]  # FILLED; twice as fast as by name
