"""What a printed text or an error says, whatever its layout and its other words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from timers.errors import TimerError


def plain(text: str) -> str:
    """With ordinary spaces in numbers and before units."""
    return re.sub("[\xa0\u202f]", " ", text)


def tells(text: str, facts: str) -> bool:
    """Whether a text has these words in this order, and no other number.

    `#` is any number: a measured time.

    >>> tells("operations  12: 7 starts, 5 cancels", "12 7 starts 5 cancels")
    True
    >>> tells("12 operations: 7 starts", "7 starts"), tells("3 of 12", "3 of 1")
    (False, False)
    """
    words = (r"\d[\d.,]*" if word == "#" else re.escape(word) for word in facts.split())
    return bool(re.fullmatch(r"\D*".join(["", *words, ""]), text))


@contextmanager
def one_line(error: type[Exception], says: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error that a user can fix: one line, in which a pattern is found."""
    with pytest.raises(error, match=says) as raised:
        yield raised
    assert isinstance(raised.value, TimerError)
    assert "\n" not in str(raised.value)
