"""A guard against copying a timer, and what one against nested calls says."""

from typing import NoReturn

from timers.errors import CopyError

NESTED = "a finalizer or signal handler called this timer in the middle of another call"


class NotCopied:
    """An object that can be neither copied nor pickled: the copy would share its contents."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CopyError(f"a {type(self).__name__} can be neither copied nor pickled")
