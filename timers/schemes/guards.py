"""Guards against copying a timer and, in plain Python, against nested calls."""

from typing import NoReturn

from timers.errors import CopyError

NESTED = "a finalizer or signal handler called this timer in the middle of another call"
"""Why a call is refused while `_busy`, which is set before a `try` and reset at its end.

Put a `while` loop into a method that the `try` calls: CPython 3.12 leaves the jump back of a
conditional loop outside of a `try`, and an exception there would leave the timer busy.
"""


class NotCopied:
    """An object that can be neither copied nor pickled: the copy would share its contents."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CopyError(f"a {type(self).__name__} can be neither copied nor pickled")
