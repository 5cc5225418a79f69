"""Numbers, times and durations read in Spark, against Decimal and Fraction in Python."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import compress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.logs.parsing import (
    FRACTION_DIGITS,
    ONE,
    guess_form,
    read_duration,
    read_number,
    read_time,
)
from compare.tapes.units import EXPONENTS

pytestmark = pytest.mark.spark

NUMBERS = [
    "0",
    "5",
    "007",
    "1.",
    ".5",
    "+3",
    "-0",
    "-0.0",
    "-1.5",
    "1e3",
    "1E3",
    "1.5e-3",
    "8.7e-05",
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
    "9223372036854775.8079",
    "0" * 50 + "12.5",
    "12.5" + "0" * 50,
    "0e9999",
    "1e-9999",
    "123456789012345678901234567890e-20",
    "0.00000000000000000000000000012e30",
    " 42 ",
]
# Casts of Spark's pass over control characters at either end of a text.
CONTROLS = ("12{}", "{}12", "12.5{}", "12.{}", "12{}.5", "1.0625{}")
NOT_NUMBERS = [
    "",
    "x",
    "1,5",
    "1.2.3",
    "1..2",
    "1.2.",
    "--1",
    "1e",
    "e5",
    "0x10",
    "1_000",
    "NaN",
    "Infinity",
    "1e99999",
    "١",
    "1 2",
    ".",
    "+",
    "-.",
    *(form.format(control) for form in CONTROLS for control in "\t\n\v\x00\x1f"),
]


def expected(text, places):
    """(value rounded down, whether digits were cut off, whether it is negative), by Decimal."""
    with localcontext(Context(prec=30_000, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        number = Decimal(text.strip()).scaleb(places)
        kept = abs(number).quantize(Decimal(f"1e-{FRACTION_DIGITS}"), ROUND_DOWN)
        return Fraction(kept), kept != abs(number), number < 0


def read(spark, rows, reader):
    """What a reader makes of each row's column `text`: its number, or None, and two flags."""
    frame = spark.createDataFrame(list(enumerate(rows)), "number int, text string")
    columns = ("text_whole", "text_fraction", "text_more", "text_negative")
    found = reader(frame).orderBy("number").select(*columns).collect()
    assert all(0 <= row["text_fraction"] < ONE for row in found if row["text_whole"] is not None)
    return [
        (None if whole is None else whole + Fraction(fraction, ONE), *flags)
        for whole, fraction, *flags in found
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


@pytest.fixture(scope="module")
def some_numbers():
    made = []

    @settings(max_examples=400, database=None)
    @given(numbers())
    def generate(text):
        made.append(text)

    generate()
    return NUMBERS + made


@pytest.mark.parametrize("places", [-6, -3, 0, 3, 6])
def test_numbers_keep_every_digit(spark, some_numbers, places):
    numbers = [expected(text, places) for text in some_numbers]
    in_range = [number[0] < 2**63 for number in numbers]
    assert len(numbers) // 3 < sum(in_range) < len(numbers)
    found = read(spark, some_numbers, lambda frame: read_number(frame, "text", str(places)))
    assert list(compress(found, in_range)) == list(compress(numbers, in_range))
    assert {row[0] for row, fits in zip(found, in_range, strict=True) if not fits} == {None}


@pytest.mark.parametrize("places", [-3, 6])
def test_what_is_not_a_number_is_null(spark, places):
    rows = [*NOT_NUMBERS, "1e9999", "1" * 50, None]
    found = read(spark, rows, lambda frame: read_number(frame, "text", str(places)))
    assert [row[0] for row in found] == [None] * len(found)


def test_no_setting_of_the_session_changes_a_number(spark):
    before = spark.conf.get("spark.sql.ansi.enabled")
    rows = [*NUMBERS, *NOT_NUMBERS, "1e9999"]
    results = []
    try:
        for ansi in ("true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            results.append(read(spark, rows, lambda frame: read_number(frame, "text", "3")))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert results[0] == results[1]


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
    "2016-12-31T23:59:60Z": seconds(
        2017, 1, 1, 0, 0, 0
    ),  # the leap second is the next day's first one
    "1970-01-01T00:00:00Z": Fraction(0),
    " 1970-01-01T00:00:01Z ": Fraction(1),
}
NO_ISO = [
    "2015-02-29T10:00:00Z",
    "2015-13-01T10:00:00Z",
    "2015-05-17T24:00:00Z",
    "2015-05-17T10:60:00Z",
    "2015-05-17",
    "2015-05-17T10:05:03+25:00",
    "2015-05-17T10:05:03.Z",
    "17/May/2015:10:05:03 +0000",
    "20150517T100503Z",
    "now",
]
ACCESS = {
    "17/May/2015:10:05:03 +0000": seconds(2015, 5, 17, 10, 5, 3),
    "[17/May/2015:10:05:03 +0530]": seconds(2015, 5, 17, 10, 5, 3, zone=INDIA),
    "01/Jan/1970:00:00:00 +0000": Fraction(0),
    "31/Dec/2015:23:59:59.250 -0400": seconds(
        2015, 12, 31, 23, 59, 59, fraction="0.25", zone=NEW_YORK
    ),
    "29/Feb/2016:00:00:00 +0000": seconds(2016, 2, 29),
}
NO_ACCESS = [
    "17/Mai/2015:10:05:03 +0000",
    "31/Jun/2015:10:05:03 +0000",
    "17/May/2015:10:05:03",
    "2015-05-17T10:05:03Z",
]


@pytest.mark.parametrize(
    ("form", "times", "bad"), [("iso", ISO, NO_ISO), ("access", ACCESS, NO_ACCESS)]
)
@pytest.mark.parametrize("unit", ["us", "s"])
def test_times_in_words(spark, form, times, bad, unit):
    found = read(spark, [*times, *bad], lambda frame: read_time(frame, "text", form, unit))
    scaled = [moment * 10 ** EXPONENTS[unit] for moment in times.values()]
    assert [Fraction(row[0]) for row in found[: len(times)]] == scaled
    assert [row[0] for row in found[len(times) :]] == [None] * len(bad)


def test_times_before_1970_are_negative(spark):
    found = read(
        spark,
        ["1969-12-31T23:59:59Z", "1969-12-31T23:59:59.5Z"],
        lambda rows: read_time(rows, "text", "iso", "s"),
    )
    assert [row[2] for row in found] == [True, True]


@pytest.mark.parametrize(
    ("form", "text", "milliseconds"),
    [
        ("epoch-s", "1.5", 1500),
        ("epoch-ms", "1500", 1500),
        ("epoch-us", "1500000", 1500),
        ("epoch-ns", "1500999999", Decimal("1500.999999")),
    ],
)
def test_times_as_numbers(spark, form, text, milliseconds):
    assert (
        read(spark, [text], lambda rows: read_time(rows, "text", form, "ms"))[0][0] == milliseconds
    )


def test_durations_may_have_a_unit_of_their_own(spark):
    durations = {
        "2": 2000,
        "2ms": 2,
        "2 ms": 2,
        "2.5s": 2500,
        "2500us": Decimal("2.5"),
        "2500µs": Decimal("2.5"),
        "7e9ns": 7000,
        "1e-3": 1,
        "2e3ms": 2000,
    }
    found = read(
        spark, [*durations, "2m", "s", "2 min"], lambda rows: read_duration(rows, "text", "s", "ms")
    )
    assert [row[0] for row in found] == [*durations.values(), None, None, None]


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
