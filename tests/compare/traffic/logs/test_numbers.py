"""Numbers, times and durations, against Decimal, Fraction and datetime."""

import re
import time
from datetime import UTC, datetime, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs.numbers import (
    ABSENT,
    BOUND,
    FRACTION_DIGITS,
    MORE,
    NEGATIVE,
    NO_ZONE,
    ONE,
    VALID,
    Assumed,
    Year,
    check_directives,
    check_zone,
    first_in_year,
    read_durations,
    read_ends,
    read_times,
    year_behind,
)
from compare.traffic.logs.time_formats import EPOCHS, FORMS, MONTHS, guess_form
from compare.traffic.tapes.units import EXPONENTS, TAPE_UNITS
from timers.errors import ParameterError

NUMBERS = [
    "-0",
    "-0.0",
    "5.960464477539063e-08",
    "1521911720.865716",
    "1521911720.865716123456789",
    "0.99999999999999999",
    "0.999999999999999999",
    "0.9999999999999999999",
    "1e-18",
    "1e-19",
    "0.1e-17",
    "9223372036854775807",
    "9223372036854775807.9",
    "9223372036854775808",
    "922337203685477580700e-2",
    "9223372036854775.8079",
    "9223372036855",
    "0" * 50 + "12.5",
    "12.5" + "0" * 50,
    "0e9999",
    "1e-9999",
    "123456789012345678901234567890e-20",
    "0.00000000000000000000000000012e30",
    " 42 ",
]
# Only spaces at either end of a text are ignored.
CONTROLS = ("12{}", "{}12", "12.5{}", "12.{}", "12{}.5", "1.0625{}")
NOT_NUMBERS = [
    *("", "x", "1,5", "1.2.3", "1..2", "1.2.", "--1", "1e", "e5", "0x10", "1_000", "NaN"),
    *("Infinity", "1e99999", "١", "1 2", ".", "+", "-."),
    *(form.format(control) for form in CONTROLS for control in "\t\n\v\x00\x1f"),
]


def expected(text, places):
    """(value rounded down, whether digits were cut off, whether it is negative), by Decimal."""
    with localcontext(Context(prec=30_000, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        number = Decimal(text.strip()).scaleb(places)
        kept = abs(number).quantize(Decimal(f"1e-{FRACTION_DIGITS}"), ROUND_DOWN)
        return Fraction(kept), kept != abs(number), number < 0


def texts(rows):
    # The first text is cut off again: the others do not begin where their buffer does.
    return pa.array(["cut off", *rows], pa.string()).cast(pa.binary()).slice(1)


def read(numbers):
    """What was read from each row: its number, or None, and two flags."""
    assert ((numbers.fraction >= 0) & (numbers.fraction < ONE)).all()
    return [
        (
            whole + Fraction(fraction, ONE) if flags & VALID else None,
            bool(flags & MORE),
            bool(flags & NEGATIVE),
        )
        for whole, fraction, flags in zip(*(column.tolist() for column in numbers[:3]), strict=True)
    ]


@st.composite
def numbers(draw):
    """Texts of numbers, up to far beyond the digits that are kept."""
    digits = st.text("0123456789", max_size=25)
    whole, behind = draw(digits), draw(st.none() | digits)
    if not whole and not behind:
        whole = "0"
    text = draw(st.sampled_from(["", "", "+", "-"])) + whole
    text += "" if behind is None else f".{behind}"
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+", "-"]))
        text += str(draw(st.integers(0, 40)))
    return text


EPOCH_OF = {-9: ("epoch-ns", "s"), -3: ("epoch-ms", "s"), 0: ("epoch-s", "s"), 6: ("epoch-s", "us")}


def check_number(text, places):
    form, unit = EPOCH_OF[places]
    number = expected(text, places)
    (numbers_read,) = read(read_times(texts([text]), form, unit))
    assert numbers_read == (number if number[0] < 2**63 else (None, False, False))


@pytest.mark.parametrize("places", EPOCH_OF)
@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_in_odd_forms(text, places):
    check_number(text, places)


@given(numbers(), st.sampled_from(list(EPOCH_OF)))
def test_numbers_keep_every_digit(text, places):
    check_number(text, places)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("point", ".,")
def test_a_few_texts_are_read_without_compiled_code(form, point):
    rows = [*NUMBERS, *ISO, *ACCESS, *CLOCKS, *NOT_NUMBERS, *NO_ISO, "", "-", "1,5"]
    check_both(partial(read_times, texts(rows), form, "us", point))
    check_both(partial(read_durations, texts(rows), "ms", "us", point))


@st.composite
def moments(draw):
    """Texts of times in several forms, on days that may not exist, of which some are damaged."""
    number = st.integers
    date = draw(number(0, 9999)), draw(number(0, 13)), draw(number(0, 32))
    clock = draw(number(0, 24)), draw(number(0, 60)), draw(number(0, 60))
    year, month, day = date
    name = draw(st.sampled_from(MONTHS))
    shown = draw(
        st.sampled_from(
            [
                f"{year:04}-{month:02}-{day:02}" + draw(st.sampled_from("Tt ")),
                f"{day:02}/{name}/{year:04}:",
                f"[{day:02}/{name}/{year:04}:",
                f"{day:02}/{month:02}/{year:04} ",
                f"{name} {day:02} ",
                f"{name} {day:2} ",
            ]
        )
    ) + "{:02}:{:02}:{:02}".format(*clock)
    digits = st.text("0123456789", max_size=20)
    shown += draw(st.sampled_from(["", "", ".", ","])) + draw(st.sampled_from(["", draw(digits)]))
    hours, minutes = draw(number(0, 25)), draw(number(0, 61))
    zones = ["", "Z", "z", " Z", "UTC", f"+{hours:02}:{minutes:02}", f" -{hours:02}{minutes:02}"]
    shown += draw(st.sampled_from([*zones, f"-{hours:02}"])) + draw(st.sampled_from(["", "]"]))
    cut = draw(st.none() | number(0, len(shown)))  # a character may be missing
    return shown if cut is None else shown[:cut] + shown[cut + 1 :]


def check_both(read_texts):
    """Compiled code and Arrow read the same as the parsers of one text."""
    many, one_by_one = read_texts(), read_texts(compiled=False)
    valid = many.flags & VALID > 0
    assert (many.zone[valid] == one_by_one.zone[valid]).all()
    for column, other in zip(many[:3], one_by_one[:3], strict=True):
        assert column.tolist() == other.tolist()


@given(
    st.lists(numbers() | st.text("0123456789.,+-eE ", max_size=22), max_size=8),
    st.sampled_from(list(EPOCHS)),
    st.sampled_from(TAPE_UNITS),
    st.sampled_from(".,"),
)
def test_numbers_are_read_alike_by_compiled_code_and_one_by_one(rows, form, unit, point):
    check_both(partial(read_times, texts(rows), form, unit, point))
    check_both(partial(read_durations, texts(rows), EPOCHS[form], unit, point))


STRPTIME = ("%d/%m/%Y %H:%M:%S", "%b %d %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z")


@given(
    st.lists(moments(), max_size=8),
    st.sampled_from(["iso", "access", *STRPTIME]),
    st.sampled_from(TAPE_UNITS),
    st.sampled_from(["", "Europe/Berlin"]),
)
def test_times_are_read_alike_by_arrow_and_one_by_one(rows, form, unit, zone):
    check_both(partial(read_times, texts(rows), form, unit, ".", Assumed(zone=zone)))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_a_number(form):
    rows = [*NOT_NUMBERS, "1e9999", "1" * 50]
    present = [text.strip(" ") not in ("", "-") for text in rows]
    for numbers in (read_times(texts(rows), form, "us"), read_durations(texts(rows), "s", "us")):
        assert [row[0] for row in read(numbers)] == [None] * len(rows)
        assert ((numbers.flags & ABSENT) == 0).tolist() == present


def test_no_value():
    rows = [None, "", "  ", "-", " - "]
    for numbers in (read_times(texts(rows), "iso", "us"), read_durations(texts(rows), "s", "us")):
        assert numbers.flags.tolist() == [ABSENT] * len(rows)


@given(
    st.lists(st.text("0123456789.eE+- T:Zzs", max_size=12), max_size=8),
    st.sampled_from(list(FORMS)),
)
def test_any_text_is_a_number_as_its_pattern_says(rows, form):
    numbers = read_times(texts(rows), form, "ns" if form in ("iso", "access") else "s")
    for text, flags in zip(rows, numbers.flags.tolist(), strict=True):
        matches = re.fullmatch(FORMS[form], text.strip(" "))
        in_range = matches and (form in ("iso", "access") or abs(float(text)) < 2**63)
        if not matches or in_range:  # a day may not exist
            assert bool(flags & VALID) == bool(in_range), text


@pytest.mark.parametrize("point", [".", ","])
def test_both_signs_tell_which_one_is_the_decimal_point(point):
    rows = ["1.234,5", "1,234.5", "1.234.567", "1.23,5", "1.234,567,8", "1,234,5", "12345.678,5"]
    assert [row[0] for row in read(read_durations(texts(rows), "s", "s", point))] == [
        *[Fraction("1234.5")] * 2,
        1_234_567,
        *[None] * 4,
    ]


def test_a_decimal_comma():
    rows = ["1,5", "1.5", "1,5,5", "1.5,5", ",5"]
    assert [row[0] for row in read(read_durations(texts(rows), "s", "ms", ","))] == [
        1500,
        1500,
        None,
        None,
        500,
    ]


def seconds(*moment, fraction=0, zone=UTC):
    since = datetime(*moment, tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(seconds=1) + Fraction(fraction)


INDIA, NEW_YORK = timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-4))
ISO = {
    "2015-05-17T10:05:03Z": seconds(2015, 5, 17, 10, 5, 3),
    "2015-05-17 10:05:03": seconds(2015, 5, 17, 10, 5, 3),
    "2015-05-17t10:05:03z": seconds(2015, 5, 17, 10, 5, 3),
    "2015-05-17T10:05": seconds(2015, 5, 17, 10, 5),
    "2015-05-17T10:05-04": seconds(2015, 5, 17, 10, 5, zone=NEW_YORK),
    "2015-05-17T10:05:03+05:30": seconds(2015, 5, 17, 10, 5, 3, zone=INDIA),
    "2015-05-17T10:05:03 +0530": seconds(2015, 5, 17, 10, 5, 3, zone=INDIA),
    "2015-05-17T10:05:03.123456789Z": seconds(2015, 5, 17, 10, 5, 3, fraction="0.123456789"),
    "2015-05-17T10:05:03,5-04:00": seconds(2015, 5, 17, 10, 5, 3, fraction="0.5", zone=NEW_YORK),
    "2016-02-29T23:59:59.999999999999": seconds(2016, 2, 29, 23, 59, 59, fraction="0.999999999999"),
    "1970-01-01T00:00:00Z": Fraction(0),
    " 1970-01-01T00:00:01Z ": Fraction(1),
}
NO_ISO = [
    "2015-02-29T10:00:00Z",
    "2015-13-01T10:00:00Z",
    "2015-05-17T24:00:00Z",
    "2015-05-17T10:60:00Z",
    "2016-12-31T23:59:60Z",  # as in formats of strptime
    "2016-12-31T23:59:60.5Z",
    "2015-05-17",
    "2015-05-17T10:05:03+25:00",
    "2015-05-17T10:05:03.Z",
    "17/May/2015:10:05:03 +0000",
    "20150517T100503Z",
    "now",
]
ACCESS = {
    "17/May/2015:10:05:03 +0000": seconds(2015, 5, 17, 10, 5, 3),
    "17/May/2015:10:05:03+0000": seconds(2015, 5, 17, 10, 5, 3),
    "[17/May/2015:10:05:03 +0530]": seconds(2015, 5, 17, 10, 5, 3, zone=INDIA),
    "01/Jan/1970:00:00:00 +0000": Fraction(0),
    "31/Dec/2015:23:59:59.250 -0400": seconds(
        2015, 12, 31, 23, 59, 59, fraction="0.25", zone=NEW_YORK
    ),
    "29/Feb/2016:00:00:00 +0000": seconds(2016, 2, 29),
    "06/Feb/2009:12:14:14.655": seconds(2009, 2, 6, 12, 14, 14, fraction="0.655"),
}
NO_ACCESS = [
    "17/Mai/2015:10:05:03 +0000",
    "31/Jun/2015:10:05:03 +0000",
    "2015-05-17T10:05:03Z",
]


@pytest.mark.parametrize(
    ("form", "times", "bad"), [("iso", ISO, NO_ISO), ("access", ACCESS, NO_ACCESS)]
)
@pytest.mark.parametrize("unit", ["us", "s"])
def test_times_in_words(form, times, bad, unit):
    numbers_read = read(read_times(texts([*times, *bad]), form, unit))
    scaled = [moment * 10 ** EXPONENTS[unit] for moment in times.values()]
    assert [row[0] for row in numbers_read[: len(times)]] == scaled
    assert [row[0] for row in numbers_read[len(times) :]] == [None] * len(bad)


ZONES = st.none() | st.integers(-23 * 60 - 59, 23 * 60 + 59)


@given(
    st.datetimes(datetime(1969, 12, 20), datetime(9999, 12, 31)),  # gets a zone
    ZONES,
    st.sampled_from(["iso", "access"]),
    st.integers(0, 10),
)
def test_moments_of_all_years_and_zones(moment, zone, form, cut):
    """Against datetime; a text is also cut off, and is then what its pattern says."""
    text = moment.strftime("%d/%b/%Y:%H:%M:%S" if form == "access" else "%Y-%m-%dT%H:%M:%S")
    text += f".{moment.microsecond:06}"
    if form == "access":
        zone = zone or 0
    if zone is not None:
        sign = "-" if zone < 0 else "+"
        text += f" {sign}{abs(zone) // 60:02}:{abs(zone) % 60:02}"
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=zone or 0)))
    since = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    numbers = read_times(texts([text]), form, "us")
    assert numbers.zone.tolist() == [NO_ZONE if zone is None else zone]
    if since < 0:
        assert numbers.flags[0] & NEGATIVE
    else:
        assert read(numbers) == [(since, False, False)]
    cut_off = text[: len(text) - cut]
    valid = read_times(texts([cut_off]), form, "us").flags[0] & VALID
    assert bool(valid) == bool(re.fullmatch(FORMS[form], cut_off.strip(" ")))


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_days_that_exist(year, month, day):
    text = f"{year:04}-{month:02}-{day:02}T00:00"
    try:
        datetime(year or 4, month, day)  # there is no year 0 in datetime; a leap year
        exists = True
    except ValueError:
        exists = False
    assert bool(read_times(texts([text]), "iso", "s").flags[0] & VALID) == exists


FORMATS = ("%d/%m/%Y, %H:%M:%S", "%y%m%d %I:%M:%S.%f %p", "%c", "%d %b %Y %H:%M %z", "%j %Y")


@given(st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31)), st.sampled_from(FORMATS))
def test_times_in_formats_of_strptime(moment, form):
    text = moment.replace(tzinfo=INDIA if "%z" in form else UTC).strftime(form)
    parsed = datetime.strptime(text, form)
    zoned = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    since = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    # A decimal point is one of numbers alone.
    numbers = read_times(texts([text, f"{text} x", "never"]), form, "us", ",")
    assert read(numbers) == [(since, False, False), (None, False, False), (None, False, False)]
    assert numbers.zone[0] == (330 if "%z" in form else NO_ZONE)


FIELDS = st.tuples(
    *(st.integers(*ends) for ends in ((1968, 2070), (0, 13), (0, 32), (0, 24), (0, 60), (0, 61))),
)


@given(
    FIELDS,
    st.sampled_from(["%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d %b %y %M.%H", "%b %d %H:%M:%S"]),
    st.sampled_from([("", "", ""), ("0", "", ""), (" ", "", ""), ("", " ", ""), ("", "", "0")]),
    st.lists(st.integers(0, 20), max_size=2),
)
def test_texts_that_are_nearly_times_are_read_as_by_strptime(fields, form, signs, cuts):
    """Days and seconds that do not exist, digits that are missing, spaces and letters."""
    year, month, day, *clock = fields
    pad, inner, more = signs
    names = {"%Y": f"{year}", "%y": f"{year % 100:02}", "%m": f"{month:02}", "%d": f"{day:{pad}2}"}
    names |= dict(zip(("%H", "%M", "%S"), (f"{part:02}" for part in clock), strict=True))
    names["%b"] = ("Jan", "feb", "MAR", "Apr", "May", "Jun", "Mai")[month % 7] + inner
    text = re.sub("%.", lambda directive: names[directive[0]], form) + more
    for cut in cuts:
        text = text[:cut] + text[cut + 1 :]
    numbers = read_times(texts([text]), form, "s", assumed=Assumed(Year(year, 0)))
    try:
        if "%Y" in form or "%y" in form:
            wanted = datetime.strptime(text.strip(" "), form)
        else:
            wanted = datetime.strptime(f"2000 {text.strip(' ')}", f"%Y {form}")
            late = wanted.timetuple().tm_yday > 335 + 1 or (
                wanted - datetime(2000, 1, 1) > timedelta(days=335)
            )
            wanted = wanted.replace(year=year - late)
    except ValueError:
        assert numbers.flags[0] & (VALID | ABSENT) in (0, ABSENT)
    else:
        assert numbers.flags[0] & VALID
        assert numbers.whole[0] == (wanted - datetime(1970, 1, 1)) // timedelta(seconds=1)


def test_a_separator_of_iso_is_not_one_of_other_formats():
    rows = ["2015-05-17T10:05:03", "2015-05-17 10:05:03"]
    flags = read_times(texts(rows), "%Y-%m-%d %H:%M:%S", "s").flags
    assert (flags & VALID).tolist() == [0, 1]


def years_of(rows, year):
    numbers = read_times(texts(rows), "%b %d %H:%M:%S", "s", assumed=Assumed(year))
    return [
        datetime.fromtimestamp(whole, UTC).year if flags & VALID else None
        for whole, flags in zip(numbers.whole.tolist(), numbers.flags.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("year", "rows"),
    [
        # The year turns; a line comes late.
        (
            2023,
            {"Mar  2 12:00:00": 2023, "Dec 31 23:59:59": 2023, "Jan  1 00:00:00": 2024}
            | {"Dec 31 23:59:58": 2023, "Jan 01 00:00:01": 2024, "Feb 29 00:00:00": 2024},
        ),
        (2023, {"Feb 28 00:00:00": 2023, "Feb 29 00:00:00": None, "Mar  1 00:00:00": 2023}),
        (2024, {"Feb 28 00:00:00": 2024, "Feb 29 00:00:00": 2024, "Mar  1 00:00:00": 2024}),
        (2100, {"Feb 29 00:00:00": None, "Feb 30 00:00:00": None, "x": None, "": None}),
        (2024, {"May  5 00:00:00": 2024, "Apr  6 00:00:00": 2024, "Mar  1 00:00:00": 2025}),
    ],
)
def test_times_without_a_year_are_in_the_order_of_the_log(year, rows):
    assert years_of(rows, Year(year, 0)) == list(rows.values())
    assert years_of([], Year(year, 0)) == []


@given(
    st.integers(0, 3000),
    st.lists(st.integers(-29 * 86_400, 330 * 86_400), max_size=60),
    st.integers(1, 20),
)
def test_years_are_those_of_the_moments(day, gaps, size):
    """Of any moments that are not too far out of order, in parts of any size."""
    start = datetime(2015, 1, 1) + timedelta(days=day)
    moments = [start, *(start := start + timedelta(seconds=gap) for gap in gaps)]
    rows = [f"{moment:%b} {moment.day:2} {moment:%H:%M:%S}" for moment in moments]
    form, found = "%b %d %H:%M:%S", []
    year = Year(moments[0].year, first_in_year(texts(rows[:1]), form))
    for first in range(0, len(rows), size):
        part = texts(rows[first : first + size])
        found += read_times(part, form, "s", assumed=Assumed(year)).whole.tolist()
        year = year_behind(part, form, year)
    epoch = datetime(1970, 1, 1)
    assert found == [(moment - epoch) // timedelta(seconds=1) for moment in moments]


@pytest.mark.parametrize(("zone", "hour"), [("", 12), ("Europe/Berlin", 11)])
def test_an_end_without_a_year_is_after_its_start(zone, hour):
    starts = ["Dec 31 12:00:00", "Jan  1 12:00:00", "Dec 31 12:00:00"]
    ends = ["Jan  1 12:00:00", "Jan  1 11:00:00", ""]
    form, assumed = "%b %d %H:%M:%S", Assumed(Year(2023, 330 * 86_400), zone)
    start = read_times(texts(starts), form, "ms", assumed=assumed)
    end = read_ends(texts(ends), form, "ms", ".", assumed, start.whole)
    moments = start.whole.astype("datetime64[ms]").tolist()
    assert moments[:2] == [datetime(2023, 12, 31, hour), datetime(2024, 1, 1, hour)]
    moments = end.whole[:2].astype("datetime64[ms]").tolist()
    assert moments == [datetime(2024, 1, 1, hour), datetime(2024, 1, 1, hour - 1)]
    assert end.flags[2] == ABSENT


@pytest.mark.parametrize(
    ("text", "plain", "zoned"),
    [
        ("2024-07-01 12:00:00 UTC", 12, 12),
        ("2024-07-01 12:00:00 GMT", 12, 12),
        ("2024-07-01 12:00:00 Z", 12, 12),
        ("2024-07-01 12:00:00 +0200", 10, 10),
        ("2024-07-01 12:00:00 -01:30", 13.5, 13.5),
        ("2024-07-01 12:00:00 CEST", None, 10),
        ("2024-07-01 12:00:00 EST", None, 10),
        ("2024-07-01 12:00:00 x1", None, None),
    ],
)
@pytest.mark.parametrize("machine", ["UTC", "America/New_York", "Europe/Berlin"])
def test_a_name_of_a_zone_does_not_depend_on_the_machine(monkeypatch, machine, text, plain, zoned):
    monkeypatch.setenv("TZ", machine)
    time.tzset()
    midnight = 1_719_792_000
    try:
        for zone, hour in (("", plain), ("Europe/Berlin", zoned)):
            numbers = read_times(
                texts([text]), "%Y-%m-%d %H:%M:%S %Z", "s", assumed=Assumed(zone=zone)
            )
            assert bool(numbers.flags[0] & VALID) == (hour is not None)
            if hour is not None:
                assert numbers.whole[0] == midnight + hour * 3600
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_name_tells_which_of_a_zones_offsets_is_meant():
    """When clocks are set back, 01:30 comes twice; a program may always write winter's name."""
    named = ["11-03 01:30 EDT", "11-03 01:30 EST", "11-03 01:40 EST", "07-01 12:00 EST"]
    column = texts([f"2024-{text}" for text in named])
    assumed = Assumed(zone="America/New_York")
    numbers = read_times(column, "%Y-%m-%d %H:%M %Z", "s", assumed=assumed)
    shown = [moment.isoformat() for moment in numbers.whole.astype("datetime64[s]").tolist()]
    assert [text[5:16] for text in shown] == [
        "11-03T05:30",
        "11-03T06:30",
        "11-03T06:40",
        "07-01T17:00",
    ]
    assert set(numbers.zone.tolist()) == {0}


@pytest.mark.parametrize(
    ("text", "milliseconds", "bound"),
    [
        ("1-02:03:04", 93_784_000, 0),
        ("0-00:00:00.5", 500, 0),
        ("129 msecs", 129, 0),
        ("68000 micros", 68, 0),
        ("2.5 seconds", 2500, 0),
        ("<1 sec", 1000, BOUND),
        ("< 5ms", 5, BOUND),
        ("<0.5", 500, BOUND),
        ("1-24:03:04", None, 0),
        ("5 sacks", None, 0),
        ("<", None, 0),
        ("<soon", None, 0),
        ("msecs", None, 0),
    ],
)
def test_durations_as_people_write_them(text, milliseconds, bound):
    numbers = read_durations(texts([text]), "s", "ms")
    assert bool(numbers.flags[0] & VALID) == (milliseconds is not None)
    assert numbers.flags[0] & BOUND == bound
    assert milliseconds in (None, numbers.whole[0])


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("%Q", "'Q' is a bad directive in format '.*%Q'"),
        ("%d %", "stray %"),
        ("%d %d", "redefinition of group name"),
        ("%H:%M", "has no day"),
    ],
)
def test_directives_that_cannot_be(form, problem):
    with pytest.raises(ParameterError, match=f"^time format '{form}'.* ?{problem}"):
        check_directives(form)


ZONE_NAMES = (
    *(
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "America/St_Johns",
    ),
    *("Africa/Cairo", "Pacific/Apia", "Etc/GMT+12", "UTC"),
)
CHANGE = datetime(2024, 3, 31), datetime(2024, 10, 27)


@given(
    st.lists(
        st.datetimes(datetime(1970, 1, 3), datetime(2100, 1, 1))
        | st.builds(
            lambda day, minutes: day + timedelta(minutes=minutes),
            st.sampled_from(CHANGE),
            st.integers(0, 300),
        )
    ),
    st.sampled_from(ZONE_NAMES),
    st.sampled_from(["iso", "%Y-%m-%dT%H:%M:%S.%f"]),
    st.sampled_from(["us", "s"]),
)
def test_times_without_a_zone_are_in_the_zone_that_is_assumed(moments, name, form, unit):
    """As in zoneinfo, where a time that occurs twice is the first one."""
    rows = [moment.isoformat(timespec="microseconds") for moment in moments]
    numbers = read_times(texts([*rows, "x", ""]), form, unit, assumed=Assumed(zone=name))
    epoch, step = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    wanted = [(moment.replace(tzinfo=ZoneInfo(name)) - epoch) // step for moment in moments]
    scale = 10**6 // 10 ** EXPONENTS[unit]
    numbers_read = [row[0] for row in read(numbers)]
    assert numbers_read == [*(Fraction(number, scale) for number in wanted), None, None]
    assert NO_ZONE not in numbers.zone[: len(rows)].tolist()


def test_what_a_zone_does_not_change():
    berlin = Assumed(zone="Europe/Berlin")
    rows = ["2024-07-01T00:00:00Z", "2024-07-01T02:00:00+02:00", "2024-07-01T02:00:00"]
    assert len({row[0] for row in read(read_times(texts(rows), "iso", "s", assumed=berlin))}) == 1
    assert read(read_times(texts(["7"]), "epoch-s", "s", assumed=berlin))[0][0] == 7
    early = read_times(
        texts(["1970-01-01T00:30:00", "1969-12-31T23:00:00", "0000-01-01T00:00:00"]),
        *("iso", "s", ".", berlin),
    )
    assert (early.flags & NEGATIVE).all()
    for name in ("Europe/Nowhere", "Europe", "../etc/passwd", "/etc/passwd", "", "\0"):
        with pytest.raises(ParameterError, match="is not in the database"):
            check_zone(name)


CLOCKS = {
    "00:00:01": 1,
    "01:02:03.25": Fraction("3723.25"),
    "100:59:59,5": Fraction("363599.5"),
    "0:00:00.000000000000000001": Fraction(1, 10**18),
    "PT1.5S": Fraction("1.5"),
    "PT1M": 60,
    "PT0,5H2S": 1802,
    "P1DT2H": 93600,
    "P2W": 1209600,
    "P0D": 0,
    " PT1H ": 3600,
    "02:35": 155,
    "75:30.5": Fraction("4530.5"),
    "1.02:03:04": 93784,
    "1 day, 0:00:01.5": Fraction("86401.5"),
    "2 days, 0:00:00": 172800,
    "1m2.5s": Fraction("62.5"),
    "1h0m0s": 3600,
    "1m": 60,
    "2 min": 120,
    "1d 2h 3m 4s": 93784,
    "1.5h": 5400,
    "6/6500123": Fraction("6.500123"),
    "**0/21000**": Fraction("0.021"),
}
NO_CLOCKS = [
    *("1:2", "00:60:00", "00:00:60", "1:2:3", "P", "PT", "P1DT", "P1Y", "P1M", "PT1", "1H", "T1S"),
    *("1s2m", "1h1", "d", "m", "1:60", "-", "1m2.5", "1ms2s"),
    *("6/5500123", "0/1000000", "1/2/3", "6/", "/6", "-1/5", "0/1.5"),
]


def test_durations_in_hours_minutes_and_seconds():
    numbers_read = [row[0] for row in read(read_durations(texts([*CLOCKS, *NO_CLOCKS]), "ms", "s"))]
    assert numbers_read == [*CLOCKS.values(), *[None] * len(NO_CLOCKS)]
    negative = read_durations(texts(["-00:00:01", "-PT1S", "-PT0S"]), "s", "s")
    assert (negative.flags & NEGATIVE != 0).tolist() == [True, True, False]


def test_durations_may_have_a_unit_of_their_own():
    durations = {
        "2": 2000,
        "2ms": 2,
        "2 ms": 2,
        "2.5s": 2500,
        "2500us": Decimal("2.5"),
        "2500µs": Decimal("2.5"),
        "2500\u03bcs": Decimal("2.5"),
        "7e9ns": 7000,
        "1e-3": 1,
        "2e3ms": 2000,
        " 3  us ": Decimal("0.003"),
        "68.697ms": Decimal("68.697"),
        "1.234,5": 1_234_500,
        "1,234.5": 1_234_500,
        "12.345.678,25": Decimal(12_345_678_250),
        "-1.234,5 ms": Decimal("1234.5"),
        "1,234,567us": Decimal("1234.567"),
    }
    numbers_read = read(read_durations(texts([*durations, "s", "ms", "2 mins"]), "s", "ms"))
    assert [row[0] for row in numbers_read] == [*durations.values(), None, None, None]


def test_guesses_go_by_magnitude_and_form():
    guesses = {
        "0": "epoch-s",
        "99999999999": "epoch-s",
        "1521911720.865716": "epoch-s",
        "1.521911720865716E9": "epoch-s",
        "100000000000": "epoch-ms",
        "1521911720865": "epoch-ms",
        "1521911720865.716": "epoch-ms",
        "1521911720865716": "epoch-us",
        "1521911720865716123": "epoch-ns",
        " 5 ": "epoch-s",
        "2015-05-17T10:05:03Z": "iso",
        "17/May/2015:10:05:03 +0000": "access",
        "May 17": None,
        "": None,
        "nan": None,
    }
    assert {text: guess_form(text) for text in guesses} == guesses
