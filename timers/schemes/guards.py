"""Guards against copying a timer and against nested calls."""

from typing import NoReturn

from timers.errors import CopyError

NESTED = "a finalizer or signal handler called this timer in the middle of another call"
"""The message of NestedCallError, raised while a flag is set; `finally` resets the flag.

Put a `while` loop into a method that the `try` calls: CPython 3.12 leaves the jump back of a
conditional loop outside of a `try`, and an exception there would leave the flag set.
"""


class NotCopied:
    """An object that can be neither copied nor pickled: the copy would share its contents."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CopyError(f"a {type(self).__name__} can be neither copied nor pickled")
