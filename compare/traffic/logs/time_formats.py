"""The formats of times in logs, and guesses of them.

Apart from the parsers in `numbers.py`, because the command line needs the names without Arrow.
"""

import re
from fractions import Fraction

from compare.traffic.tapes.units import EXPONENTS
from timers.limits import LIMIT

EPOCHS = {f"epoch-{unit}": unit for unit in EXPONENTS}
"""Time formats that count from 1970, and their unit."""
MISSING = ("", "-")
"""Texts that mean no value."""
MONTHS = re.findall("...", "JanFebMarAprMayJunJulAugSepOctNovDec")
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND = ":(?P<second>[0-5][0-9](?:[.,][0-9]+)?)"
"""Never 60: neither times since 1970 nor Python's have leap seconds."""
ZONE = r"(?P<zone>[zZ]|UTC|GMT|[+-](?:0[0-9]|1[0-9]|2[0-3])(?::?[0-5][0-9])?)?"
FORMS = dict.fromkeys(EPOCHS, NUMBER) | {
    "iso": rf"(?P<minute>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK})(?:{_SECOND})? ?{ZONE}",
    "access": rf"\[?(?P<minute>[0-9]{{2}}/(?:{'|'.join(MONTHS)})/[0-9]{{4}}:{_CLOCK}){_SECOND}"
    rf" ?{ZONE}\]?",
}
"""Time formats and their patterns."""
SYSLOG = "%b %d %H:%M:%S"
_SECONDS_OF_TODAY = 10**8
"""A smaller number is unlikely to be a time since 1970."""
_OTHERS = {
    "[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8}": SYSLOG,
    r"[0-9]{2}\.[0-9]{2}\.[0-9]{4} [0-9:]{8}": "%d.%m.%Y %H:%M:%S",
    r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}": "%Y/%m/%d %H:%M:%S",
    "[0-9]{6} [ 0-9][0-9:]{7}": "%y%m%d %H:%M:%S",
    "[0-9]{4} [0-9:]{8}": "%m%d %H:%M:%S",
    r"[0-9]{4}/[0-9]{2}/[0-9]{2} - [0-9:]{8}": "%Y/%m/%d - %H:%M:%S",
    r"[0-9]{4}\.[0-9]{2}\.[0-9]{2} [0-9:]{8}": "%Y.%m.%d %H:%M:%S",
    "[0-9]{2}-[A-Z][a-z]{2}-[0-9]{4} [0-9:]{8}": "%d-%b-%Y %H:%M:%S",
    "[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4} [0-9:]{8}": "%d/%b/%Y %H:%M:%S",
}
"""Other times that no other form could mean -> their format; a fraction of a second may follow."""
_NAMED_ZONE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T])[0-9:]{8}(?:([.,])[0-9]{1,6})? (?!UTC|GMT)[A-Z]{3,5}"
)
_SHORT = {"%D": "%m/%d/%y", "%F": "%Y-%m-%d", "%R": "%H:%M", "%T": "%H:%M:%S"}
_EPOCH_RANGES = {
    "epoch-s": (0, 10**11),
    "epoch-ms": (10**11, 10**14),
    "epoch-us": (10**14, 10**17),
    "epoch-ns": (10**17, 10**30),
}
"""A number from the first limit, and below the second, is assumed to be in that format. Each limit
is in the year 5138."""


def guess_form(text: str) -> str | None:
    """The time format of a text, or None if it has no known format.

    Numbers count from 1970 in seconds below 10**11, in milliseconds below 10**14, in microseconds
    below 10**17 and in nanoseconds above that.

    >>> [guess_form(text) for text in ("1521911720.865", "17/May/2015:10:05:03 +0000", "noon")]
    ['epoch-s', 'access', None]
    """
    text = text.strip()
    for pattern, form in _OTHERS.items():
        if match := re.fullmatch(rf"{pattern}([.,]?)[0-9]{{0,6}}", text):
            return f"{form}{match[1]}%f" if match[1] else form
    if match := re.fullmatch(_NAMED_ZONE, text):
        fraction = f"{match[2]}%f" if match[2] else ""
        return f"%Y-%m-%d{match[1]}%H:%M:%S{fraction} %Z"
    for form in ("iso", "access"):
        if re.fullmatch(FORMS[form], text):
            return form
    if not re.fullmatch(NUMBER, text):
        return None
    size = abs(float(text))  # the magnitude is all that matters
    return next((form for form, (_, end) in _EPOCH_RANGES.items() if size < end), "epoch-ns")


def spelled_out(form: str) -> str:
    """A format of strptime with the directives of C that Python lacks: %D, %F, %R and %T.

    >>> spelled_out("%F %T.%f")
    '%Y-%m-%d %H:%M:%S.%f'
    """
    return re.sub("%.", lambda directive: _SHORT.get(directive[0], directive[0]), form)


def looks_like_time(text: str) -> bool:
    """Return whether a text is a time in a known format, and not just any number."""
    form = guess_form(text)
    return form is not None and (form not in EPOCHS or float(text) > _SECONDS_OF_TODAY)


def guessed_range(form: str, unit: str) -> tuple[int, int]:
    """The numbers of units that `guess_form` takes for times in an epoch format: from, to."""
    scale = Fraction(10) ** (EXPONENTS[unit] - EXPONENTS[EPOCHS[form]])
    low, end = (int(limit * scale) for limit in _EPOCH_RANGES[form])
    return low, min(end - 1, LIMIT)
