"""What has fired and has not been returned yet.

Python may run a finalizer or a signal handler between any two bytecodes; it may raise, or call the
same timer, even its `advance`. So what leaves a timer goes at once into a part that the timer owns,
and the last step of `advance` forgets the parts that it is about to return. That step is one
bytecode, `del`, which fails if another `advance` has returned them meanwhile, and no handler can
run between it and `return`.
"""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from timers.errors import CapacityError
from timers.protocol import Expired

Part = TypeVar("Part")

_new_key = count().__next__


class Undelivered(dict[int, list[Part]]):
    """Parts that have not been returned yet, by a number that is never used again, in order."""

    def add(self, part: Part) -> int:
        """Own a part, which may be empty and be filled later; returns its key."""
        key = _new_key()
        self[key] = [part]
        return key

    def parts(self) -> list[Part]:
        """All parts, in the order in which they were added."""
        return [part for parts in tuple(self.values()) for part in parts]

    def take(self, build: Callable[[list[Part]], Expired], last: int = -1) -> Expired:
        """What `build` makes of all parts, which are forgotten in the last step.

        `last` is the key of the part that was added last: as a rule, it is the only one. If `build`
        raises or is interrupted, all parts are still there.

        Raises:
            CapacityError: `build` raised MemoryError.
        """
        try:
            while self:
                key, parts = last, self.get(last)
                if parts is None or len(self) > 1:
                    key, parts = self._joined()
                expired = build(parts)
                try:
                    del self[key]
                    return expired
                except KeyError:  # a nested advance has returned the parts
                    pass
            return build([])
        except MemoryError:
            raise CapacityError(
                "no memory for what has fired; the next advance returns it"
            ) from None

    def _joined(self) -> tuple[int, list[Part]]:
        """All parts under one key, as one `del` forgets one key; and that key."""
        keys = sorted(self)
        if len(keys) == 1:
            [key] = keys
            parts = self.get(key, [])
        else:
            key = _new_key()
            parts = self[key] = []
            for other in keys:
                parts += self.get(other, [])
                self.pop(other, None)
        # Until the old keys were gone, a part may have been there twice.
        return key, [*{id(part): part for part in parts}.values()]
