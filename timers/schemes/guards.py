"""A guard against copying a timer."""

from typing import NoReturn

from timers.errors import CopyError


class NotCopied:
    """An object that can be neither copied nor pickled: the copy would share its contents."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CopyError(f"a {type(self).__name__} can be neither copied nor pickled")
