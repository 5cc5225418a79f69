"""Numbers, times and durations in text, read digit by digit as Spark SQL expressions: no float in between.

A number of units becomes two integers, whole units and 10**-18ths of a unit, and a flag for digits beyond those.
Sums and differences of two such numbers are rounded down to a unit exactly.
"""
import re
from collections.abc import Mapping
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from compare.units import EXPONENTS

FRACTION_DIGITS = 18
"""A fraction of a unit as an integer: with 18 digits the sum of two still fits int64."""
ONE = 10**FRACTION_DIGITS
_ENOUGH = 40
"""Digits before the point: more than any number in range has, unless they are zeros."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_SIMPLE = r"[0-9]+(?:\.[0-9]*)?"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":(?:[0-5][0-9]|60)"
_ZONE = r"(?:[zZ]|[+-](?:0[0-9]|1[0-9]|2[0-3])(?::?[0-5][0-9])?)"
_ISO = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}(?:{_SECONDS}(?:[.,][0-9]+)?)? ?{_ZONE}?"
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH = "|".join(re.findall("...", _MONTHS))
_ACCESS = (
    rf"\[?[0-9]{{2}}/(?:{_MONTH})/[0-9]{{4}}:{_CLOCK}{_SECONDS}(?:[.,][0-9]+)? {_ZONE}\]?"
)

EPOCHS = {f"epoch-{unit}": unit for unit in EXPONENTS}
"""Time formats that are a number since 1970, and its unit."""
FORMS = dict.fromkeys(EPOCHS, _NUMBER) | {"iso": _ISO, "access": _ACCESS}
"""Each time format and what it looks like, as a pattern that Python and Java read alike."""

_EPOCH_BELOW = ((10**11, "epoch-s"), (10**14, "epoch-ms"), (10**17, "epoch-us"))
"""A number below the limit is taken for that format: each limit is in the year 5138."""


def guess_form(text: str) -> str | None:
    """The time format of one value, or None when it has none.

    Numbers are since 1970 in seconds below 10**11, in milliseconds below 10**14, in microseconds below 10**17
    and in nanoseconds from there on.

    >>> [guess_form(text) for text in ("1521911720.865", "1521911720865", "17/May/2015:10:05:03 +0000", "noon")]
    ['epoch-s', 'epoch-ms', 'access', None]
    """
    text = text.strip()
    for form in ("iso", "access"):
        if re.fullmatch(FORMS[form], text):
            return form
    if not re.fullmatch(_NUMBER, text):
        return None
    size = abs(float(text))  # only to tell magnitudes apart
    return next((form for limit, form in _EPOCH_BELOW if size < limit), "epoch-ns")


def read_time(rows: DataFrame, column: str, form: str, unit: str) -> DataFrame:
    """Replace a column of texts by the times that they are in the given format, in units since 1970.

    See `read_number` for what comes instead. A time without a zone is UTC.
    """
    if form in EPOCHS:
        return read_number(rows, column, F.lit(EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]))
    text = F.trim(column)
    if form == "access":
        iso = F.when(_is(text, _ACCESS), _iso_from_access(F.translate(text, "[]", "")))
    else:
        iso = F.when(_is(text, _ISO), text)
    return read_number(rows, column, F.lit(EXPONENTS[unit]), before=_epoch_seconds(column, iso))


def read_duration(rows: DataFrame, column: str, default: str, unit: str) -> DataFrame:
    """Replace a column of texts by the durations that they are, in units: see `read_number`.

    A text is a number of `default` units, or one with a unit of its own behind it: ns, us, ms or s.
    """
    suffix = F.regexp_extract(F.trim(column), "(?:ns|[uµμ]s|ms|s)$", 0)
    places = F.lit(EXPONENTS[unit] - EXPONENTS[default])
    for name in ("ns", "us", "µs", "μs", "ms", "s"):
        own = EXPONENTS[name.replace("µ", "u").replace("μ", "u")]
        places = F.when(_step(column, "suffix") == name, EXPONENTS[unit] - own).otherwise(places)
    length = F.length(F.trim(column)) - F.length(_step(column, "suffix"))
    number = F.trim(F.substring(F.trim(column), F.lit(1), length))
    before = {"suffix": suffix, "places": places, "text": number}
    return read_number(rows, column, _step(column, "places"), before)


def read_number(
    rows: DataFrame, column: str, places: Column, before: Mapping[str, Column] | None = None
) -> DataFrame:
    """Replace a column of texts by the decimal numbers that they are, times 10**places.

    Instead of `column` come `column_whole` (bigint) and `column_fraction` (bigint, in 10**-18ths), both null for
    a text that is no number; `column_more`, whether it has more digits than these; and `column_negative`, where
    the others describe its absolute value.

    `before` are steps that come first, by name; a step "text" is read in place of `column`.
    """
    step = partial(_step, column)
    text = step("text") if before else F.trim(column)
    steps = dict(before or {})
    # Each step has a name, for expressions that are used twice would be computed twice. They are lateral aliases
    # of one select, which Spark analyses once.
    #
    # Nearly all numbers are digits with a point between them. The steps before "decimal" bring the others
    # into that form; for a simple number they are null, which costs next to nothing.
    simple = (places >= 0) & _is(text, _SIMPLE)
    steps["simple"] = F.when(simple, text)
    steps["plain"] = F.when(step("simple").isNull() & _is(text, _NUMBER), F.translate(text, "E+", "e"))
    mantissa = F.translate(F.substring_index(step("plain"), "e", 1), "-", "")
    steps["mantissa"] = F.ltrim(mantissa, F.lit("0"))
    steps["exponent"] = F.when(
        F.instr(step("plain"), "e") > 0, _int(F.substring_index(step("plain"), "e", -1))
    ).otherwise(0)
    ahead = F.instr(F.concat(step("mantissa"), F.lit(".")), ".") - 1
    # Digits before the point of the result, or minus the zeros behind it.
    steps["size"] = ahead + step("exponent") + F.least(places, F.lit(0))
    zeros = F.repeat(F.lit("0"), F.least(-step("size"), F.lit(_ENOUGH)))
    steps["digits"] = F.concat(zeros, F.translate(step("mantissa"), ".", ""))
    steps["cut"] = F.least(F.greatest(step("size"), F.lit(0)), F.lit(_ENOUGH))
    behind = F.substring(step("digits"), step("cut") + 1, F.length(step("digits")))
    shifted = F.concat(F.rpad(step("digits"), step("cut"), F.lit("0")), F.lit("."), behind)
    steps["decimal"] = F.coalesce(step("simple"), shifted)

    steps["point"] = F.instr(step("decimal"), ".")
    steps["behind"] = F.when(
        step("point") > 0, F.substring(step("decimal"), step("point") + 1, F.length(step("decimal")))
    ).otherwise("")
    before_point = F.when(
        step("point") > 0, F.substring(step("decimal"), F.lit(1), step("point") - 1)
    ).otherwise(step("decimal"))
    shift = F.greatest(places, F.lit(0))
    steps["rest"] = F.substring(step("behind"), shift + 1, F.length(step("behind")))
    results = {
        "whole": _bigint(F.concat(before_point, F.rpad(step("behind"), shift, F.lit("0")))),
        "fraction": F.when(step("rest") == "", 0).otherwise(_bigint(F.rpad(step("rest"), FRACTION_DIGITS, "0"))),
        "more": F.substring(step("rest"), F.lit(FRACTION_DIGITS + 1), F.length(step("rest"))).rlike("[1-9]"),
        "negative": F.coalesce(step("plain").startswith("-") & step("digits").rlike("[1-9]"), F.lit(False)),
    }
    kept = [name for name in rows.columns if name != column]
    named = [expression.alias(_step_name(column, name)) for name, expression in (steps | results).items()]
    return rows.select("*", *named).select(*kept, *(step(name).alias(f"{column}_{name}") for name in results))


def _step_name(column: str, step: str) -> str:
    return f"_{column}_{step}"


def _step(column: str, step: str) -> Column:
    return F.col(_step_name(column, step))


def _is(text: Column, pattern: str) -> Column:
    return text.rlike(rf"^(?:{pattern})\z")


def _int(text: Column) -> Column:
    # A try, for ANSI mode; of digits that a pattern has let through, or null.
    return text.try_cast("int")


def _bigint(digits: Column) -> Column:
    """The value of a text of digits, 0 if there are none; null when out of range."""
    return F.concat(F.lit("0"), digits).try_cast("bigint")


def _iso_from_access(text: Column) -> Column:
    """`17/May/2015:10:05:03 +0000` as `2015-05-17T10:05:03 +0000`."""
    month = _int((F.instr(F.lit(_MONTHS), F.substring(text, 4, 3)) + 2) / 3).cast("string")
    day, year = F.substring(text, 1, 2), F.substring(text, 8, 4)
    clock = F.substring(text, F.lit(len("17/May/2015:") + 1), F.length(text))
    return F.concat(year, F.lit("-"), F.lpad(month, 2, "0"), F.lit("-"), day, F.lit("T"), clock)


def _epoch_seconds(column: str, iso: Column) -> dict[str, Column]:
    """Steps to `text`: an ISO 8601 time as a decimal number since 1970, with every digit of its fraction."""
    text, rest, zone = (_step(column, name) for name in ("iso", "clock", "zone"))
    days = F.unix_date(F.substring(text, 1, len("2015-05-17")).try_cast("date")).cast("bigint")
    second = F.when(rest.startswith(":"), _int(F.substring(rest, 2, 2))).otherwise(0)
    clock = _int(F.substring(text, 12, 2)) * 3600 + _int(F.substring(text, 15, 2)) * 60 + second
    ahead = _int(F.substring(zone, 2, 2)) * 3600 + F.coalesce(_int(F.substring(zone, 4, 2)), F.lit(0)) * 60
    ahead = F.when(zone == "", 0).when(zone.startswith("-"), -ahead).otherwise(ahead)
    fraction = F.regexp_extract(rest, "[.,]([0-9]+)", 1)
    return {
        "iso": iso,
        "clock": F.substring(text, F.lit(len("2015-05-17T10:05") + 1), F.length(text)),
        "zone": F.translate(F.regexp_extract(rest, "(?:[zZ]|[+-][0-9:]+)$", 0), ":zZ", ""),
        "text": F.concat((days * 86400 + clock - ahead).cast("string"), F.lit("."), fraction),
    }
