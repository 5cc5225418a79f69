"""Guards against copying a timer and, in plain Python, against nested calls."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from timers.errors import CopyError, NestedCallError

Method = TypeVar("Method", bound=Callable[..., Any])

NESTED = "a finalizer or signal handler called this timer in the middle of another call"


class NotCopied:
    """An object that can be neither copied nor pickled: the copy would share its contents."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CopyError(f"a {type(self).__name__} can be neither copied nor pickled")


def exclusive(method: Method) -> Method:
    """Refuse a call that a finalizer or signal handler makes in the middle of another call.

    The object's `_busy`, initially False, is True during the call of an exclusive method.
    """

    @wraps(method)
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if self._busy:
            raise NestedCallError(NESTED)
        self._busy = True
        try:
            return method(self, *arguments, **keywords)
        finally:
            self._busy = False

    return call  # type: ignore[return-value]  # it has the signature of the method
