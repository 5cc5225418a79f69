"""Exact numbers, times and durations from texts.

A number of units becomes two integers, the whole units and a fraction in 10**-18ths of a unit, so
that no digit goes through a float. Arrow parses times. Its `strptime` turns 31 February into
2 March, so a result counts only if it prints as the text. The other texts are parsed one by one.

One int64 of nanoseconds would not do in place of the two. It ends in 2262, where logs write
9999-12-31 for an end that has not come; tapes in seconds could not reach 2**63 - 1; and further
digits, which floats print and which decide on which side of a unit a time lies, would be lost.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.known import UNIT_OF
from compare.traffic.logs.time_formats import EPOCHS, FORMS, MISSING, MONTHS, NUMBER, ZONE
from compare.traffic.tapes.units import EXPONENTS
from timers.arrays import Bools, Int64s
from timers.errors import ParameterError
from timers.kernels.jit import long_entry
from timers.limits import LIMIT

FRACTION_DIGITS = 18
"""The decimals of a unit that are kept. The sum of two fractions still fits an int64."""
_LONGEST = 2**31 - 1  # characters
ONE = 10**FRACTION_DIGITS
"""A unit, in the unit of a fraction."""

VALID, MORE, NEGATIVE, ABSENT, BOUND, NO_DAY = 1, 2, 4, 8, 16, 32
"""Flags: the text is a number in range; digits beyond the fraction were cut off; the number is
negative; there is no value; the number is a bound, as in `<1 s`; the day is not in its year."""
NO_ZONE = -(2**15)
"""The offset of a time without a zone."""
_UTC = ("UTC", "GMT", "Z")

_NUMBERS = [f"{month:02}" for month in range(1, 13)]
_HEADS = {"iso": (19, "%Y-%m-%d %H:%M:%S"), "access": (20, "%d/%b/%Y:%H:%M:%S")}
"""The beginning of most times in these formats: its length, and its format for strptime."""
_TAIL = rf"^(?P<fraction>[.,][0-9]+)? ?{ZONE}$"
"""The rest of such a time."""
_PRINTED = {
    "%Y": (0, 4),
    "%y": (2, 4),
    "%m": (5, 7),
    "%d": (8, 10),
    "%H": (11, 13),
    "%M": (14, 16),
    "%S": (17, 19),
}
"""Directive of strptime -> the place of its value in `2018-03-24 17:15:20`."""

_SPACE, _DASH, _POINT = ord(" "), ord("-"), ord(".")
_POWERS = 10 ** np.arange(FRACTION_DIGITS + 1)

_COUNT = "[0-9]+(?:[.,][0-9]+)?"
_CLOCK_SECONDS = "(?P<seconds>[0-5][0-9](?:[.,][0-9]+)?)"
_DURATIONS = (
    # 01:02:03.5, and with days before it as .NET and Python do
    r"(?P<sign>-?)(?:(?P<days>[0-9]+)(?:\.| days?, ))?(?P<hours>[0-9]+):(?P<minutes>[0-5][0-9]):"
    + _CLOCK_SECONDS,
    # 1-02:03:04, as in Slurm
    r"(?P<sign>)(?P<days>[0-9]+)-(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9]):"
    + _CLOCK_SECONDS,
    # 02:35, minutes and seconds
    rf"(?P<sign>-?)(?P<minutes>[0-9]+):{_CLOCK_SECONDS}",
    # PT1.5S
    rf"(?P<sign>-?)P(?=.*[0-9])(?:(?P<weeks>{_COUNT})W)?(?:(?P<days>{_COUNT})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_COUNT})H)?(?:(?P<minutes>{_COUNT})M)?(?:(?P<seconds>{_COUNT})S)?)?",
    # 1m2.5s, as Go prints it
    rf"(?P<sign>-?)(?=.*[dhm])(?:(?P<days>{_COUNT}) ?d ?)?(?:(?P<hours>{_COUNT}) ?h ?)?"
    rf"(?:(?P<minutes>{_COUNT}) ?m(?:in)? ?)?(?:(?P<seconds>{_COUNT}) ?s)?",
)
"""Durations in several units."""
_APACHE = r"\**([0-9]+)/([0-9]+)\**"
"""%T/%D of Apache: seconds, and the same in microseconds. Some write **%T/%D**."""
_GROUPED = "|".join(
    rf"[+-]?[0-9]{{1,3}}(?:(?:{group}[0-9]{{3}})+{point}[0-9]+|(?:{group}[0-9]{{3}}){{2,}})"
    for group, point in ((r"\.", ","), (",", r"\."))
)
"""1.234,5 or 1,234.5: two signs tell the decimal point; a sign that is repeated is none."""
_SECONDS_IN = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Numbers(NamedTuple):
    """The number in each text, without a sign; of a time, with its sign."""

    whole: Int64s  # rounded down
    fraction: Int64s  # the rest, in units of 10**-18, rounded down
    flags: npt.NDArray[np.uint8]
    zone: npt.NDArray[np.int16]  # of times

    def has(self, flag: int) -> Bools:
        """The texts with a flag."""
        with_flag: Bools = self.flags & flag != 0
        return with_flag


class Year(NamedTuple):
    """The year of times without one, which are in the order of the log, and the last such time.

    A time that is more than 30 days before the last one is in the next year. One that is more than
    335 days behind is of the year before: it comes late, after the turn of the year.
    """

    year: int
    last: int  # seconds since the year began, as if it were 2000


class Assumed(NamedTuple):
    """Defaults for a missing year and zone."""

    year: Year = Year(2000, 0)  # at the beginning
    zone: str = ""  # without a zone, it is in this one; UTC if empty


_USUAL = Assumed()
_DAY, _LEAP_DAY = 86_400, 59
"""Seconds of a day; the place of 29 February in a year."""
_START_OF_2000 = 946_684_800
_DISORDER, _LATE = 30 * _DAY, 335 * _DAY
"""Seconds between two times without a year; see `Year`."""

_One = tuple[int, int, int, int]
"""The number in one text: whole, fraction, flags and zone."""
_NONE = (0, 0, 0, NO_ZONE)


def read_times(
    texts: pa.Array,
    form: str,
    unit: str,
    point: str = ".",
    assumed: Assumed = _USUAL,
    *,
    compiled: bool = True,
) -> Numbers:
    """The times as units since 1970. A number has no zone.

    Without `compiled` code, which takes long to load, each text is read alone: for a few of them.
    With a zone assumed, a time that its clocks show twice is the first one, and a time that they
    skip is as far behind their change as it looks.
    """
    if form in EPOCHS:
        places = EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]
        parse_number = partial(_number, places=places, point=point)
        return _read_numbers(texts, point, places, parse_number, compiled=compiled)
    places = EXPONENTS[unit]
    numbers = _parsed(texts, form, places, assumed.zone or None, compiled=compiled)
    if lacks_year(form):
        years, _ = _years(numbers, places, assumed.year)
        _in_years(numbers, years, places)
    if assumed.zone:
        _in_zone(numbers, assumed.zone, places)
    numbers.flags[numbers.whole < 0] |= NEGATIVE
    return numbers


def read_ends(
    texts: pa.Array, form: str, unit: str, point: str, assumed: Assumed, start: Int64s
) -> Numbers:
    """The times as `read_times`; without a year, each is in the year of its start or the next."""
    places = EXPONENTS[unit]
    if not lacks_year(form):
        return read_times(texts, form, unit, point, assumed)
    earliest = start - _DISORDER * 10**places
    years = earliest.view(f"datetime64[{unit}]").astype("datetime64[Y]").astype(np.int64) + 1970
    ends = []
    for more in (0, 1):
        numbers = _parsed(texts, form, places, assumed.zone or None)
        _in_years(numbers, years + more, places)
        if assumed.zone:
            _in_zone(numbers, assumed.zone, places)
        ends.append(numbers)
    this, following = ends
    is_this = (this.flags & VALID > 0) & (this.whole >= earliest)
    pairs: Iterable[tuple[Any, Any]] = zip(this, following, strict=True)
    return Numbers._make(np.where(is_this, first, second) for first, second in pairs)


def lacks_year(form: str) -> bool:
    """Return whether times in a format of strptime have no year."""
    return "%" in form and not re.search("%[cxyYG]", form)


def first_in_year(text: pa.Array, form: str) -> int | None:
    """The seconds since the year began, as if it were 2000, of one text; None if it is no time."""
    numbers = _parsed(text, form, 0, "", compiled=False)
    return int(_in_2000(numbers, 0)[0]) if numbers.flags[0] & VALID else None


def year_behind(texts: pa.Array, form: str, year: Year) -> Year:
    """The year behind some times without one."""
    return _years(_parsed(texts, form, 0, ""), 0, year)[1]


def has_day(year: int, second: int) -> bool:
    """Return whether a year has a time of 2000."""
    return second // _DAY != _LEAP_DAY or bool(_is_leap(np.array([year]))[0])


def moment_in(year: int, second: int) -> datetime:
    """The time in a year that has its day."""
    return (datetime(2000, 1, 1) + timedelta(seconds=second)).replace(year=year)


def _is_leap(years: Int64s) -> Bools:
    leap: Bools = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    return leap


def _in_2000(numbers: Numbers, places: int) -> Int64s:
    """The seconds since 2000 began on the clocks of the times."""
    minutes = np.where(numbers.zone == NO_ZONE, 0, numbers.zone).astype(np.int64)
    seconds: Int64s = numbers.whole // 10**places + 60 * minutes - _START_OF_2000
    return seconds


def _years(numbers: Numbers, places: int, year: Year) -> tuple[Int64s, Year]:
    """The year of each time that was read as in 2000, and that behind them."""
    valid = np.flatnonzero(numbers.flags & VALID)
    seconds = _in_2000(numbers, places)[valid]
    jumps = np.diff(seconds, prepend=year.last)
    found = year.year + np.cumsum((jumps < -_DISORDER).astype(np.int64) - (jumps > _LATE))
    years = np.full(len(numbers.whole), year.year)
    years[valid] = found
    return years, Year(int(found[-1]), int(seconds[-1])) if len(valid) else year


def _in_years(numbers: Numbers, years: Int64s, places: int) -> None:
    """Move times that were read as in 2000 into their years. Unsets the flag of a missing day."""
    day, leap = _in_2000(numbers, places) // _DAY, _is_leap(years)
    numbers.flags[(day == _LEAP_DAY) & ~leap] = NO_DAY
    starts = (years - 1970).view("datetime64[Y]").astype("datetime64[s]").astype(np.int64)
    move = starts - _START_OF_2000 - _DAY * ((day > _LEAP_DAY) & ~leap)
    numbers.whole[:] += np.where(numbers.flags & VALID, move, 0) * 10**places


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
    # Once for each minute, because clocks do not change within one.
    minutes, back = np.unique(whole[place] // (60 * 10**places), return_inverse=True)
    ahead = np.array([_ahead(name, minute) for minute in minutes.tolist()], np.int64)
    whole[place] -= ahead[back] * 10**places
    numbers.zone[place] = 0


@lru_cache(1 << 16)
def _ahead(name: str, minute: int) -> int:
    """The seconds by which a zone's clocks are ahead of UTC when they show this minute."""
    shown = datetime(1970, 1, 1, tzinfo=ZoneInfo(name)) + timedelta(minutes=minute)
    return round((shown.utcoffset() or timedelta()).total_seconds())


def read_durations(
    texts: pa.Array, default: str, unit: str, point: str = ".", *, compiled: bool = True
) -> Numbers:
    """The durations as units. A text is a number of `default` units, a number followed by ns, us,
    ms or s, or in a form of _DURATIONS. Digits may be grouped, as in 1.234,5.
    """
    places = EXPONENTS[unit]
    parse = partial(_duration, default=default, places=places, point=point)
    return _read_numbers(texts, point, places - EXPONENTS[default], parse, compiled=compiled)


def with_value(texts: pa.Array) -> pa.Array:
    """Replace texts that mean no value by nulls."""
    trimmed = pc.ascii_trim(texts.view(pa.string()), " ")
    return pc.if_else(pc.is_in(trimmed, pa.array(MISSING)), pa.scalar(None, texts.type), texts)


def _read_numbers(
    texts: pa.Array, point: str, places: int, parse: Callable[[str], _One], *, compiled: bool = True
) -> Numbers:
    """Read plain decimal numbers in compiled code, and all other texts with `parse`."""
    numbers = _empty(len(texts))
    if len(texts) and compiled:
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        characters = np.frombuffer(data or b"\0", np.uint8)
        _decimals(bounds, characters, ord(point), places, *numbers[:3])
    return _parse_rest(texts, numbers, parse)


def _empty(rows: int) -> Numbers:
    whole, fraction = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    return Numbers(whole, fraction, np.zeros(rows, np.uint8), np.zeros(rows, np.int16))


def _parse_rest(texts: pa.Array, numbers: Numbers, parse: Callable[[str], _One]) -> Numbers:
    """Parse the texts without flags one by one; equal ones once."""
    rest = np.flatnonzero(numbers.flags == 0)
    encoded = texts.take(rest).dictionary_encode("encode")
    parsed = []
    for text in with_value(encoded.dictionary).cast(pa.binary()).to_pylist():
        plain = text and text.decode(errors="replace").strip(" ")
        parsed.append((0, 0, ABSENT, NO_ZONE) if plain is None else parse(plain))
    indices = np.asarray(encoded.indices)
    for number, values in enumerate(zip(*parsed, strict=True)):
        numbers[number][rest] = np.array(values, numbers[number].dtype)[indices]
    return numbers


# ---- many texts


@long_entry
def _decimals(bounds, characters, point, places, whole, fraction, flags):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # typed by its arguments
    """Read numbers of up to 18 digits, times 10**places, ignoring spaces around them. Sets no flag
    for any other text.
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


def _parsed(
    texts: pa.Array, form: str, places: int, zone: str | None, *, compiled: bool = True
) -> Numbers:
    """Read times; without a year, as in 2000. See `_strptime` for the zone."""
    numbers = _moments(texts, form, places) if compiled else _empty(len(texts))
    parse = partial(_strptime, zone=zone) if "%" in form else _matched
    return _parse_rest(texts, numbers, partial(parse, form=form, places=places))


def _moments(texts: pa.Array, form: str, places: int) -> Numbers:
    """Read times by Arrow. Sets no flag for a text that has another form."""
    head, tail = pc.ascii_trim(texts.view(pa.string()), " ").view(pa.binary()), None
    if form in _HEADS:
        length, form = _HEADS[form]
        tail = pc.binary_slice(head, length, _LONGEST).view(pa.string())
        head = pc.replace_substring(pc.binary_slice(head, 0, length), b"T", b" ")
    seconds = _seconds(head.view(pa.string()), form)
    numbers = _empty(len(texts))
    read = seconds.is_valid()
    if tail is not None:
        groups = pc.extract_regex(tail, _TAIL)
        read = pc.and_(read, groups.is_valid())
        fraction, zone = (pc.fill_null(group, "") for group in groups.flatten())
        numbers = _read_numbers(fraction, ",", places, partial(_number, places=places, point=","))
        numbers.zone[:] = _ahead_of_utc(zone)
    else:
        numbers.zone[:] = NO_ZONE
    minutes = np.where(numbers.zone == NO_ZONE, 0, numbers.zone).astype(np.int64)
    moment = np.asarray(pc.fill_null(seconds, 0)) - 60 * minutes
    numbers.whole[:] += moment * 10**places
    numbers.flags[:] = np.where(np.asarray(read), numbers.flags & MORE | VALID, 0)
    return numbers


def _seconds(texts: pa.Array, form: str) -> pa.Array:
    """The seconds since 1970; null for a text that does not print as itself."""
    dated = _with_year(form)
    if not {*re.findall("%.", dated)} <= {*_PRINTED, "%b"}:
        return pa.nulls(len(texts), pa.int64())
    if dated == form:
        return _exact(texts, form).cast(pa.int64())
    # In syslog, a day below 10 has a space in place of the zero.
    texts = pc.replace_substring(texts, "  ", " 0")
    return _exact(pc.binary_join_element_wise("2000", texts, " "), dated).cast(pa.int64())


def _exact(texts: pa.Array, form: str) -> pa.Array:
    """The moments that print as the texts; else null."""
    if "%b" in form:  # names of months take `strptime` ten times as long as numbers
        place = len(form[: form.index("%b")].replace("%Y", "%Y.."))
        before, name, after = (
            pc.binary_slice(texts.view(pa.binary()), *ends).view(pa.string())
            for ends in ((0, place), (place, place + 3), (place + 3, _LONGEST))
        )
        month = pc.take(pa.array(_NUMBERS), pc.index_in(name, pa.array(MONTHS)))
        texts = pc.binary_join_element_wise(before, month, after, "")
        form = form.replace("%b", "%m")
    moments = pc.strptime(texts, form, "s", error_is_null=True)
    shown = moments.cast(pa.string()).view(pa.binary())
    parts = [
        pc.binary_slice(shown, *_PRINTED[part]).view(pa.string()) if part in _PRINTED else part
        for part in filter(None, re.split("(%.)", form))
    ]
    printed = pc.binary_join_element_wise(*parts, "")
    return pc.if_else(pc.equal(printed, texts), moments, None)


def _ahead_of_utc(zones: pa.Array) -> npt.NDArray[np.int16]:
    """The minutes by which each zone is ahead of UTC, or NO_ZONE."""
    encoded = zones.dictionary_encode()
    minutes = [_zone(text) for text in encoded.dictionary.to_pylist()]
    return np.array(minutes, np.int16).take(np.asarray(encoded.indices))


# ---- one text


def _number(text: str, places: int, point: str = ".") -> _One:
    """The number in a text times 10**places."""
    text = text.replace(point, ".")
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


def _duration(text: str, default: str, places: int, point: str) -> _One:
    if text.startswith("<"):
        whole, fraction, flags, zone = _duration(text[1:].strip(" "), default, places, point)
        return whole, fraction, flags | (BOUND if flags & VALID else 0), zone
    if match := re.fullmatch(_APACHE, text):
        seconds, micros = match.groups()
        is_both = int(seconds) == int(micros) // 10**6
        return _number(micros, places - EXPONENTS["us"]) if is_both else _NONE
    for match in filter(None, (re.fullmatch(form, text) for form in _DURATIONS)):
        parts = match.groupdict("")
        total = Decimal()
        for name, count in _SECONDS_IN.items():
            part = Decimal(parts.get(name, "").replace(",", ".") or 0)
            total = _EXACT.add(total, _EXACT.multiply(part, count))
        return _number(f"{parts['sign']}{total:f}", places)
    digits, suffix = re.fullmatch("(.*?)([^0-9.,]*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # any text matches
    unit = UNIT_OF.get(suffix.strip(" "))
    exponent = EXPONENTS[unit or default]
    number = digits.rstrip(" ") if unit else text
    if re.fullmatch(_GROUPED, number):
        group = "." if "." in number.partition(",")[0] else ","
        number, point = number.replace(group, ""), ","
    return _number(number, places - exponent, point)


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
    return f"%Y {form}" if lacks_year(form) else form


def _strptime(text: str, form: str, places: int, *, zone: str | None) -> _One:
    """A time in a format of strptime.

    %Z stands for UTC, GMT, Z or an offset. Any other name is refused without a zone. It tells which
    of the zone's offsets is meant, such as EST or EDT. A name that the zone does not have counts as
    none, and so does any with the zone "" or without a year.
    """
    text = text if (dated := _with_year(form)) == form else f"2000 {text}"
    moment, is_named = None, False
    with suppress(ValueError):
        moment = datetime.strptime(text, dated.replace("%Z", "%z"))
    for word in re.finditer("[A-Za-z]+", text) if "%Z" in form and moment is None else ():
        is_utc = word[0] in _UTC
        if is_utc or zone is not None:
            with suppress(ValueError):
                zoned = f"{text[: word.start()]}+0000{text[word.end() :]}"
                moment = datetime.strptime(zoned, dated.replace("%Z", "%z"))
                if not is_utc:
                    moment = moment.replace(tzinfo=None)
                    if zone and dated == form:
                        named = _named_offset(moment, zone, word[0])
                        moment, is_named = moment.replace(tzinfo=named), named is not None
                break
    if moment is None:
        return _NONE
    offset = moment.utcoffset()
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (offset or timedelta())
    # Two names of one zone are not two zones.
    minutes = 0 if is_named else NO_ZONE if offset is None else offset // timedelta(minutes=1)
    scale = 10 ** (FRACTION_DIGITS + places - EXPONENTS["us"])
    return *divmod(since // timedelta(microseconds=1) * scale, ONE), VALID, minutes


def _named_offset(moment: datetime, zone: str, name: str) -> timezone | None:
    """The offset that a zone calls by a name: at this time, or at least in this year."""
    local = moment.replace(tzinfo=ZoneInfo(zone))
    winter, summer = local.replace(month=1, day=1), local.replace(month=7, day=1)
    for one in (local, local.replace(fold=1), winter, summer):
        if one.tzname() == name and (offset := one.utcoffset()) is not None:
            return timezone(offset)
    return None


def _matched(text: str, form: str, places: int) -> _One:
    """A time in a form of FORMS."""
    match = re.fullmatch(FORMS[form], text)
    if match is None:
        return _NONE
    minute, zone = match["minute"], _zone(match["zone"] or "")
    if form == "access":
        day, month, year = minute[:11].split("/")
        minute = f"{year}-{MONTHS.index(month) + 1:02}-{day}T{minute[-5:]}"
    try:
        # Unlike that of `datetime`, this calendar has a year 0.
        minutes = int(np.datetime64(minute.upper().replace(" ", "T"), "m").astype(np.int64))
    except ValueError:
        return _NONE
    if zone != NO_ZONE:
        minutes -= zone
    whole, fraction, flags, _ = _number((match["second"] or "0").replace(",", "."), places)
    return whole + minutes * 60 * 10**places, fraction, flags, zone


def _zone(text: str) -> int:
    """The minutes by which a zone is ahead of UTC, or NO_ZONE."""
    if text in ("", "z", *_UTC):
        return 0 if text else NO_ZONE
    digits = text[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return -minutes if text[0] == "-" else minutes
