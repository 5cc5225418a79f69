"""Exact numbers, times and durations from texts, as Spark SQL expressions.

A number of units becomes two integers, the whole units and a fraction in 10**-18ths of a unit, so
that no digit goes through a float.
"""

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from compare.tapes.units import EXPONENTS, SUFFIXES

FRACTION_DIGITS = 18
"""The decimals of a unit that are kept. The sum of two fractions still fits an int64."""
ONE = 10**FRACTION_DIGITS
"""A unit, in the unit of a fraction."""
_DECIMAL = f"DECIMAL(37, {FRACTION_DIGITS})"  # 19 digits before the point hold any int64

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":(?:[0-5][0-9]|60)"
_ZONE = r"(?:[zZ]|[+-](?:0[0-9]|1[0-9]|2[0-3])(?::?[0-5][0-9])?)"
_ISO = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}(?:{_SECONDS}(?:[.,][0-9]+)?)? ?{_ZONE}?"
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH = "|".join(re.findall("...", _MONTHS))
_ACCESS = rf"\[?[0-9]{{2}}/(?:{_MONTH})/[0-9]{{4}}:{_CLOCK}{_SECONDS}(?:[.,][0-9]+)? {_ZONE}\]?"

EPOCHS = {f"epoch-{unit}": unit for unit in EXPONENTS}
"""Time formats that count from 1970, and their unit."""
FORMS = dict.fromkeys(EPOCHS, _NUMBER) | {"iso": _ISO, "access": _ACCESS}
"""Time formats and their patterns, which mean the same in Python and Java."""

_EPOCH_BELOW = ((10**11, "epoch-s"), (10**14, "epoch-ms"), (10**17, "epoch-us"))
"""A number below the limit is assumed to be in that format. Each limit is in the year 5138."""


def guess_form(text: str) -> str | None:
    """The time format of a text, or None if it has no known format.

    Numbers count from 1970 in seconds below 10**11, in milliseconds below 10**14, in microseconds
    below 10**17 and in nanoseconds above that.

    >>> [guess_form(text) for text in ("1521911720.865", "17/May/2015:10:05:03 +0000", "noon")]
    ['epoch-s', 'access', None]
    """
    text = text.strip()
    for form in ("iso", "access"):
        if re.fullmatch(FORMS[form], text):
            return form
    if not re.fullmatch(_NUMBER, text):
        return None
    size = abs(float(text))  # the magnitude is all that matters
    return next((form for limit, form in _EPOCH_BELOW if size < limit), "epoch-ns")


def guessed_range(form: str, unit: str) -> tuple[int, int | None]:
    """The numbers of units that `guess_form` takes for times in an epoch format: from, below."""
    limits = [0, *(limit for limit, _ in _EPOCH_BELOW), None]
    place = [*(name for _, name in _EPOCH_BELOW), "epoch-ns"].index(form)
    shift = EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]
    low, high = (
        None if limit is None else limit * 10**shift if shift > 0 else limit // 10**-shift
        for limit in limits[place : place + 2]
    )
    return low or 0, high


_RESULTS = ("whole", "fraction", "more", "negative")


def read_time(rows: DataFrame, column: str, form: str, unit: str) -> DataFrame:
    """Replace a column of texts in a time format by units since 1970; see `read_number`.

    A time without a zone is UTC. There is a further column, `column_zone`: the minutes by which the
    time's zone is ahead of UTC, or null.
    """
    if form in EPOCHS:
        rows = rows.withColumn(f"{column}_zone", F.lit(0))
        return read_number(rows, column, str(EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]))
    steps = _CLOCK_STEPS | (_ACCESS_STEPS if form == "access" else {})
    return read_number(rows, column, str(EXPONENTS[unit]), steps, (*_RESULTS, "zone"))


def read_duration(rows: DataFrame, column: str, default: str, unit: str) -> DataFrame:
    """Replace a column of texts that are durations by units; see `read_number`.

    A text is a number of `default` units, or a number followed by ns, us, ms or s.
    """
    whens = " ".join(
        f"WHEN '{name}' THEN {EXPONENTS[unit] - places}" for name, places in SUFFIXES.items()
    )
    suffix = f"regexp_extract(trim({{column}}), '({'|'.join(SUFFIXES)})$', 1)"
    steps = {
        # All suffixes end in an s; most texts have none, and skip the pattern.
        "suffix": f"IF(endswith(trim({{column}}), 's'), {suffix}, '')",
        "places": f"CASE {{suffix}} {whens} ELSE {EXPONENTS[unit] - EXPONENTS[default]} END",
        "text": "IF({suffix} = '', trim({column}),"
        " trim(left(trim({column}), length(trim({column})) - length({suffix}))))",
    }
    return read_number(rows, column, "{places}", steps)


def read_number(
    rows: DataFrame,
    column: str,
    places: str,
    before: Mapping[str, str] | None = None,
    results: Sequence[str] = _RESULTS,
) -> DataFrame:
    """Replace a column of texts by the absolute values of the numbers in them, times 10**places.

    There are four columns in its place, or as many as there are `results`. `column_whole` is the
    value rounded down, and null for a text that is not a number or is out of range.
    `column_fraction` is the rest in units of 10**-18, rounded down. `column_more` says whether
    digits were cut off, and `column_negative` whether the number is negative. `places` is an
    expression. `before` has steps that come first; the last one is called "text" and is what is
    read. `results` are names of steps.
    """
    steps = dict(before or {"text": "trim({column})"}) | _NUMBER_STEPS
    # A step refers to another by its name in braces. Constants are inserted by name as well,
    # because the braces of patterns would be taken for names.
    names = {step: f"_{column}_{step}" for step in steps} | _CONSTANTS | {"column": column}
    names["shift"] = places.format_map(names)
    columns = [
        f"{expression.format_map(names)} AS {names[step]}" for step, expression in steps.items()
    ]
    kept = [name for name in rows.columns if name != column]
    kept += [f"{names[step]} AS {column}_{step}" for step in results]
    return rows.selectExpr("*", *columns).selectExpr(*kept)


_CONSTANTS = {
    f"is_{name}": rf"r'^(?:{regex})\z'"
    for name, regex in {"number": _NUMBER, "iso": _ISO, "access": _ACCESS}.items()
}
_CONSTANTS["powers"] = f"array({', '.join(f'{10**n}L' for n in range(FRACTION_DIGITS + 1))})"

# The steps are lateral aliases of one select: an expression without a name would be computed each
# time that it is used. Nearly all numbers are digits with at most one point. Without the point they
# are an int64, which is multiplied or divided by a power of ten: half the time of a decimal. The
# zero behind the digits is there because a cast accepts spaces and control characters at the ends
# of a text. The steps from "other" to "cut" are for all other numbers, and null for these.
_NUMBER_STEPS = {
    "size": "octet_length({text})",
    "point": "instr({text}, '.')",
    "digits": "replace({text}, '.', '')",
    "tens": "IF({text} >= '0' AND {text} < ':' AND octet_length({digits}) >= {size} - 1,"
    " try_cast(concat({digits}, '0') AS BIGINT), NULL)",
    "scale": "{shift} - IF({point} = 0, 0, {size} - {point}) - 1",
    "units": "IF({scale} < 0, {tens} div get({powers}, -{scale}),"
    " try_multiply({tens}, get({powers}, {scale})))",
    "rest": "IF({scale} < 0, {tens} % get({powers}, -{scale})"
    f" * get({{powers}}, {FRACTION_DIGITS} + {{scale}}), 0)",
    "other": "IF(({units} IS NULL OR {rest} IS NULL) AND {text} RLIKE {is_number},"
    " lower({text}), NULL)",
    "mantissa": "ltrim('+-', substring_index({other}, 'e', 1))",
    "exponent": "{shift}"
    " + IF(instr({other}, 'e') > 0, CAST(substring_index({other}, 'e', -1) AS INT), 0)",
    "kept": f"{FRACTION_DIGITS} + {{exponent}}",
    "before": "instr(concat({mantissa}, '.'), '.')",
    "length": "greatest(IF({kept} < 0, {before} - 1, {before}) + {kept}, 0)",
    # A cast rounds half up, so digits that it cannot keep are cut off the text first.
    "cut": "try_cast(concat('0', left({mantissa}, {length}), 'e',"
    f" {{exponent}} - least({{kept}}, 0)) AS {_DECIMAL})",
    "whole": "IF({other} IS NULL, {units}, try_cast({cut} AS BIGINT))",
    "fraction": f"IF({{other}} IS NULL, {{rest}}, CAST({{cut}} % 1 * {ONE}BD AS BIGINT))",
    "more": "{other} IS NOT NULL AND substring({mantissa}, {length} + 1) RLIKE '[1-9]'",
    "negative": "{other} IS NOT NULL AND startswith({other}, '-')"
    " AND ({whole} > 0 OR {fraction} > 0 OR {more})",
}

# From ISO 8601, as in `2015-05-17T10:05:03.5+00:00`, to seconds with all digits of the fraction.
_CLOCK_STEPS = {
    "iso": "IF(trim({column}) RLIKE {is_iso}, trim({column}), NULL)",
    "days": "unix_date(try_cast(left({iso}, 10) AS DATE))",
    "minutes": "try_cast(substring({iso}, 12, 2) AS BIGINT) * 60"
    " + try_cast(substring({iso}, 15, 2) AS BIGINT)",
    "clock": "substring({iso}, 17)",
    "second": "IF(startswith({clock}, ':'), try_cast(substring({clock}, 2, 2) AS INT), 0)",
    "suffix": "regexp_extract({clock}, '([zZ]|[+-][0-9:]+)$', 1)",
    "offset": "translate({suffix}, ':zZ', '')",
    "ahead": "coalesce(try_cast(substring({offset}, 2, 2) AS INT) * 60, 0)"
    " + coalesce(try_cast(substring({offset}, 4, 2) AS INT), 0)",
    "zone": "IF({suffix} = '', NULL, IF(startswith({offset}, '-'), -{ahead}, {ahead}))",
    "text": "concat(({days} * 1440 + {minutes} - coalesce({zone}, 0)) * 60 + {second}, '.',"
    " regexp_extract({clock}, '[.,]([0-9]+)', 1))",
}
# From `17/May/2015:10:05:03 +0000`; the other steps are those of ISO 8601.
_ACCESS_STEPS = {
    "iso": "IF(trim({column}) RLIKE {is_access}, translate(trim({column}), '[]', ''), NULL)",
    "days": "unix_date(try_cast(concat(substring({iso}, 8, 4), '-',"
    f" (instr('{_MONTHS}', substring({{iso}}, 4, 3)) + 2) div 3, '-', left({{iso}}, 2)) AS DATE))",
    "minutes": "try_cast(substring({iso}, 13, 2) AS BIGINT) * 60"
    " + try_cast(substring({iso}, 16, 2) AS BIGINT)",
    "clock": "substring({iso}, 18)",
}
