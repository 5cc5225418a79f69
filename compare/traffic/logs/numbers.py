"""Exact numbers, times and durations from texts.

A number of units becomes two integers, the whole units and a fraction in 10**-18ths of a unit, so
that no digit goes through a float. Arrow and NumPy read texts in the usual forms; texts in other
forms are read one by one.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache, partial
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.time_formats import EPOCHS, FORMS, MONTHS, NUMBER
from compare.traffic.tapes.units import EXPONENTS, SUFFIXES
from timers.arrays import Int64s
from timers.errors import ParameterError
from timers.kernels.jit import long_entry
from timers.limits import LIMIT

FRACTION_DIGITS = 18
"""The decimals of a unit that are kept. The sum of two fractions still fits an int64."""
ONE = 10**FRACTION_DIGITS
"""A unit, in the unit of a fraction."""

VALID, MORE, NEGATIVE, ABSENT = 1, 2, 4, 8
"""Flags: the text is a number in range; digits beyond the fraction were cut off; it is below zero;
there is no text."""
NO_ZONE = -(2**15)
"""In place of the minutes by which a time's zone is ahead of UTC."""
MISSING = ("", "-")
"""Texts that mean no value."""

_SPACE, _DASH, _POINT = ord(" "), ord("-"), ord(".")
_POWERS = 10 ** np.arange(FRACTION_DIGITS + 1)

_HOURS = (
    r"(?P<sign>-?)(?P<hours>[0-9]+):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9](?:[.,][0-9]+)?)"
)
_COUNT = "[0-9]+(?:[.,][0-9]+)?"
_PERIOD = (
    rf"(?P<sign>-?)P(?=.*[0-9])(?:(?P<weeks>{_COUNT})W)?(?:(?P<days>{_COUNT})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_COUNT})H)?(?:(?P<minutes>{_COUNT})M)?(?:(?P<seconds>{_COUNT})S)?)?"
)
_SECONDS_IN = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Numbers(NamedTuple):
    """The number in each text, without a sign; of a time, with its sign."""

    whole: Int64s  # rounded down
    fraction: Int64s  # the rest, in units of 10**-18, rounded down
    flags: npt.NDArray[np.uint8]
    zone: npt.NDArray[np.int16]  # of times


class Assumed(NamedTuple):
    """What is assumed of a time that does not say it."""

    before: datetime = datetime.max  # without a year, it is in the latest one in which it is before
    zone: str = ""  # without a zone, it is in this one; UTC if empty


_USUAL = Assumed()

_One = tuple[int, int, int, int]
"""The number in one text: whole, fraction, flags and zone."""
_NONE = (0, 0, 0, NO_ZONE)


def read_times(
    texts: pa.Array, form: str, unit: str, point: str = ".", assumed: Assumed = _USUAL
) -> Numbers:
    """The times as units since 1970. A number has no zone.

    With a zone assumed, a time that its clocks show twice is the first one, and a time that they
    skip is as far behind their change as it looks.
    """
    if form in EPOCHS:
        places = EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]
        return _read_numbers(texts, point, places, partial(_number, places=places))
    # Many rows have the same second.
    encoded = texts.dictionary_encode("encode")
    distinct = with_value(encoded.dictionary)
    if "%" in form:
        parse = partial(_with_directives, form=form, places=EXPONENTS[unit], assumed=assumed)
        numbers = _parse_rest(distinct, ".", _empty(len(distinct)), parse)
    else:
        numbers = _moments(distinct, form, EXPONENTS[unit])
    if assumed.zone:
        _in_zone(numbers, assumed.zone, EXPONENTS[unit])
    numbers.flags[numbers.whole < 0] |= NEGATIVE
    indices = np.asarray(encoded.indices)
    return Numbers._make(column.take(indices) for column in numbers)


def check_zone(name: str) -> None:
    """Raise ParameterError unless the time zone exists."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(
            f"time zone {name!r} is not in the database of this machine; a name is like"
            " Europe/Berlin, and `pip install tzdata` installs one"
        ) from None


def _in_zone(numbers: Numbers, name: str, places: int) -> None:
    """Move the times without a zone, which were read as UTC, into a zone."""
    whole = numbers.whole
    place = np.flatnonzero((numbers.zone == NO_ZONE) & (numbers.flags & VALID > 0) & (whole >= 0))
    # Python is asked once for each minute, in which clocks do not change.
    minutes, back = np.unique(whole[place] // (60 * 10**places), return_inverse=True)
    ahead = np.array([_ahead(name, minute) for minute in minutes.tolist()], np.int64)
    whole[place] -= ahead[back] * 10**places
    numbers.zone[place] = 0


@lru_cache(1 << 16)
def _ahead(name: str, minute: int) -> int:
    """The seconds by which a zone's clocks are ahead of UTC when they show this minute."""
    shown = datetime(1970, 1, 1, tzinfo=ZoneInfo(name)) + timedelta(minutes=minute)
    return round((shown.utcoffset() or timedelta()).total_seconds())


def read_durations(texts: pa.Array, default: str, unit: str, point: str = ".") -> Numbers:
    """The durations as units. A text is a number of `default` units, a number followed by ns, us,
    ms or s, as in 01:02:03.5, or as in ISO 8601, without years and months: PT1.5S.
    """
    places = EXPONENTS[unit]
    parse = partial(_duration, default=default, places=places)
    return _read_numbers(texts, point, places - EXPONENTS[default], parse)


def with_value(texts: pa.Array) -> pa.Array:
    """The texts, without those that mean that there is no value."""
    trimmed = pc.ascii_trim(texts.view(pa.string()), " ")
    return pc.if_else(pc.is_in(trimmed, pa.array(MISSING)), pa.scalar(None, texts.type), texts)


def _read_numbers(
    texts: pa.Array, point: str, places: int, parse: Callable[[str], _One]
) -> Numbers:
    """Read plain decimal numbers in compiled code, and what it leaves with `parse`."""
    numbers = _empty(len(texts))
    if len(texts):
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        characters = np.frombuffer(data or b"\0", np.uint8)
        _decimals(bounds, characters, ord(point), places, *numbers[:3])
    return _parse_rest(texts, point, numbers, parse)


def _empty(rows: int) -> Numbers:
    whole, fraction = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    return Numbers(whole, fraction, np.zeros(rows, np.uint8), np.zeros(rows, np.int16))


def _parse_rest(
    texts: pa.Array, point: str, numbers: Numbers, parse: Callable[[str], _One]
) -> Numbers:
    """Parse the texts without flags one by one."""
    whole, fraction, flags, zone = numbers
    flags[np.asarray(texts.is_null())] = ABSENT
    rest = np.flatnonzero(flags == 0)
    rest_texts = texts.take(rest).cast(pa.binary()).to_pylist()
    for row, text in zip(rest, rest_texts, strict=True):
        plain = text.decode(errors="replace").strip(" ").replace(point, ".")
        whole[row], fraction[row], flags[row], zone[row] = parse(plain)
    return numbers


# ---- many texts


def _integers(texts: pa.Array) -> Int64s:
    """The numbers in texts of digits; 0 without any."""
    return np.asarray(pc.ascii_lpad(texts, 1, "0").cast(pa.int64()))


@long_entry
def _decimals(bounds, characters, point, places, whole, fraction, flags):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # typed by its arguments
    """Read texts that are numbers of up to 18 digits, times 10**places. Spaces around them do not
    count. Sets no flag for any other text.
    """
    for row in range(whole.size):
        first, end = bounds[row], bounds[row + 1]
        while first < end and characters[first] == _SPACE:
            first += 1
        while first < end and characters[end - 1] == _SPACE:
            end -= 1
        if first == end or (end - first == 1 and characters[first] == _DASH):
            flags[row] = ABSENT
            continue
        number, digits, decimals = np.int64(0), 0, -1
        for place in range(first, end):
            digit = characters[place] - np.int64(ord("0"))
            if 0 <= digit <= 9:
                number, digits = number * 10 + digit, digits + 1
                decimals += decimals >= 0
            elif decimals < 0 and characters[place] in (point, _POINT):
                decimals = 0
            else:
                digits = 0
                break
            if digits > FRACTION_DIGITS:
                break
        shift = places - max(decimals, 0)
        if not 0 < digits <= FRACTION_DIGITS or abs(shift) > FRACTION_DIGITS:
            continue
        power = _POWERS[abs(shift)]
        if shift < 0:
            whole[row], fraction[row] = number // power, number % power * (ONE // power)
        elif number <= LIMIT // power:
            whole[row] = number * power
        else:
            continue
        flags[row] = VALID


def _moments(texts: pa.Array, form: str, places: int) -> Numbers:
    """Read times as their pattern says."""
    trimmed = pc.ascii_trim(texts.view(pa.string()), " ")
    groups = pc.extract_regex(trimmed, f"^(?:{FORMS[form]})$")
    minute, second, zone = (
        pc.fill_null(pc.struct_field(groups, name), "") for name in ("minute", "second", "zone")
    )
    days = _by_text(pc.utf8_slice_codeunits(minute, 0, -len("T10:05")), _days)
    minutes = days * 1440 + _integers(pc.utf8_slice_codeunits(minute, -2))
    minutes += _integers(pc.utf8_slice_codeunits(minute, -5, -3)) * 60
    ahead = _by_text(zone, _zone)
    minutes -= np.where(ahead == NO_ZONE, 0, ahead)
    numbers = _read_numbers(second, ",", places, partial(_number, places=places))
    whole = numbers.whole + minutes * 60 * 10**places
    flags = np.where(days == _NO_DAY, 0, numbers.flags & MORE | VALID)
    flags[np.asarray(texts.is_null())] = ABSENT
    return Numbers(whole, numbers.fraction, flags.astype(np.uint8), ahead.astype(np.int16))


def _by_text(texts: pa.Array, function: Callable[[str], int]) -> Int64s:
    """A function of each text, computed once for equal ones."""
    encoded = pc.fill_null(texts, "").dictionary_encode()
    values = [function(text) for text in encoded.dictionary.to_pylist()]
    return np.array(values, np.int64).take(np.asarray(encoded.indices))


# ---- one text


def _number(text: str, places: int) -> _One:
    """The number in a text times 10**places."""
    if not re.fullmatch(NUMBER, text):
        return _NONE
    number = Decimal(text)
    size = number.copy_abs().scaleb(places, _EXACT)
    if not size:
        return 0, 0, VALID, 0
    if size > LIMIT and size.to_integral_value("ROUND_FLOOR", _EXACT) > LIMIT:
        return _NONE
    # Far below the last digit that is kept, digits only say that there is more.
    scaled = size.scaleb(FRACTION_DIGITS, _EXACT)
    kept = int(scaled) if scaled.adjusted() >= 0 else 0
    flags = VALID | (MORE if scaled != kept else 0) | (NEGATIVE if number < 0 else 0)
    return *divmod(kept, ONE), flags, 0


def _duration(text: str, default: str, places: int) -> _One:
    if match := re.fullmatch(_HOURS, text) or re.fullmatch(_PERIOD, text):
        parts = match.groupdict("")
        seconds = Decimal()
        for name, count in _SECONDS_IN.items():
            part = Decimal(parts.get(name, "").replace(",", ".") or 0)
            seconds = _EXACT.add(seconds, _EXACT.multiply(part, count))
        return _number(f"{parts['sign']}{seconds:f}", places)
    suffix = next((suffix for suffix in SUFFIXES if text.endswith(suffix)), "")
    exponent = SUFFIXES[suffix] if suffix else EXPONENTS[default]
    return _number(text.removesuffix(suffix).rstrip(" "), places - exponent)


def check_directives(form: str) -> None:
    """Raise ParameterError unless the directives of strptime in a format tell the day."""
    try:
        datetime.strptime("", _with_year(form))
    except (ValueError, re.error) as error:
        if "does not match" not in str(error):
            raise ParameterError(f"time format {form!r}: {error}") from None
    if not re.search("%[cxdjGUW]", form):
        raise ParameterError(f"time format {form!r} has no day, such as %d")


def _with_year(form: str) -> str:
    return form if re.search("%[cxyYG]", form) else f"%Y {form}"


def _with_directives(text: str, form: str, places: int, assumed: Assumed) -> _One:
    dated, last = _with_year(form), assumed.before.year
    # Eight years may lie between two leap days.
    for year in [""] if dated == form else [f"{last - back} " for back in range(9)]:
        with suppress(ValueError):
            moment = datetime.strptime(year + text, dated)
            if not year or moment.replace(tzinfo=None) < assumed.before:
                break
    else:
        return _NONE
    offset = moment.utcoffset()
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (offset or timedelta())
    zone = NO_ZONE if offset is None else offset // timedelta(minutes=1)
    scale = 10 ** (FRACTION_DIGITS + places - EXPONENTS["us"])
    return *divmod(since // timedelta(microseconds=1) * scale, ONE), VALID, zone


_NO_DAY = -(2**40)


def _days(text: str) -> int:
    """Days since 1970 of a date, or _NO_DAY."""
    if "/" in text:
        day, month, year = text.split("/")
        text = f"{year}-{MONTHS.index(month) + 1:02}-{day}"
    try:
        # Unlike that of `datetime`, this calendar has a year 0.
        return int(np.datetime64(text, "D").astype(np.int64)) if text else _NO_DAY
    except ValueError:
        return _NO_DAY


def _zone(text: str) -> int:
    """The minutes by which a zone is ahead of UTC, or NO_ZONE."""
    if text in ("", "z", "Z"):
        return 0 if text else NO_ZONE
    digits = text[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return -minutes if text[0] == "-" else minutes
