"""What a printed text says, whatever its layout and its other words."""

import re


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
