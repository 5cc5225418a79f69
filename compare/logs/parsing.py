"""Numbers, times and durations in text, read digit by digit as Spark SQL expressions: no float in
between.

A number of units becomes two integers, whole units and 10**-18ths of a unit, and a flag for digits
beyond those. Sums and differences of two such numbers are rounded down to a unit exactly.
"""

import re
from collections.abc import Mapping

from pyspark.sql import DataFrame

from compare.tapes.units import EXPONENTS

FRACTION_DIGITS = 18
"""A fraction of a unit as an integer: with 18 digits the sum of two still fits int64."""
ONE = 10**FRACTION_DIGITS
_ENOUGH = 40
"""Digits before the point: more than any number in range has, unless they are zeros."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":(?:[0-5][0-9]|60)"
_ZONE = r"(?:[zZ]|[+-](?:0[0-9]|1[0-9]|2[0-3])(?::?[0-5][0-9])?)"
_ISO = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}(?:{_SECONDS}(?:[.,][0-9]+)?)? ?{_ZONE}?"
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH = "|".join(re.findall("...", _MONTHS))
_ACCESS = rf"\[?[0-9]{{2}}/(?:{_MONTH})/[0-9]{{4}}:{_CLOCK}{_SECONDS}(?:[.,][0-9]+)? {_ZONE}\]?"

EPOCHS = {f"epoch-{unit}": unit for unit in EXPONENTS}
"""Time formats that are a number since 1970, and its unit."""
FORMS = dict.fromkeys(EPOCHS, _NUMBER) | {"iso": _ISO, "access": _ACCESS}
"""Each time format and what it looks like, as a pattern that Python and Java read alike."""

_EPOCH_BELOW = ((10**11, "epoch-s"), (10**14, "epoch-ms"), (10**17, "epoch-us"))
"""A number below the limit is taken for that format: each limit is in the year 5138."""


def guess_form(text: str) -> str | None:
    """The time format of one value, or None when it has none.

    Numbers are since 1970 in seconds below 10**11, in milliseconds below 10**14, in microseconds
    below 10**17 and in nanoseconds from there on.

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
    """Replace a column of texts by the times that they are in the given format, in units since
    1970.

    See `read_number` for what comes instead. A time without a zone is UTC.
    """
    if form in EPOCHS:
        return read_number(rows, column, str(EXPONENTS[unit] - EXPONENTS[EPOCHS[form]]))
    return read_number(
        rows,
        column,
        str(EXPONENTS[unit]),
        _CLOCK_STEPS | (_ACCESS_STEPS if form == "access" else {}),
    )


def read_duration(rows: DataFrame, column: str, default: str, unit: str) -> DataFrame:
    """Replace a column of texts by the durations that they are, in units: see `read_number`.

    A text is a number of `default` units, or one with a unit of its own behind it: ns, us, ms or s.
    """
    whens = " ".join(
        f"WHEN '{name}' THEN {EXPONENTS[unit] - places}" for name, places in _SUFFIXES.items()
    )
    steps = {
        # All of them end in an s; the pattern is for those that do.
        "suffix": f"IF(endswith(trim({{column}}), 's'), regexp_extract(trim({{column}}), '({'|'.join(_SUFFIXES)})$', 1), '')",
        "places": f"CASE {{suffix}} {whens} ELSE {EXPONENTS[unit] - EXPONENTS[default]} END",
        "text": "IF({suffix} = '', trim({column}), trim(left(trim({column}), length(trim({column})) - length({suffix}))))",
    }
    return read_number(rows, column, "{places}", steps)


def read_number(
    rows: DataFrame, column: str, places: str, before: Mapping[str, str] | None = None
) -> DataFrame:
    """Replace a column of texts by the decimal numbers that they are, times 10**places; `places` is
    an expression.

    Instead of `column` come `column_whole` (bigint) and `column_fraction` (bigint, in 10**-18ths),
    both null for a text that is no number; `column_more`, whether it has more digits than these;
    and `column_negative`, where the others describe its absolute value. `before` are steps that
    come first and end in "text", which is read.
    """
    steps = dict(before or {"text": "trim({column})"}) | _NUMBER_STEPS
    # A step is used by its name in braces; so are the patterns, whose own braces would be taken for
    # names.
    names = {step: f"_{column}_{step}" for step in steps} | _PATTERNS | {"column": column}
    names["shift"] = places.format_map(names)
    columns = [
        f"{expression.format_map(names)} AS {names[step]}" for step, expression in steps.items()
    ]
    kept = [name for name in rows.columns if name != column]
    results = [
        f"{names[step]} AS {column}_{step}" for step in ("whole", "fraction", "more", "negative")
    ]
    return rows.selectExpr("*", *columns).selectExpr(*kept, *results)


# ---- steps
# --------------------------------------------------------------------------------------------------------
#
# Each has a name, for an expression that is used twice would be computed twice; they are lateral
# aliases of one select. All are SQL and not calls of functions, which would take thousands of
# messages to the JVM. A `try_cast` is of digits that a pattern has let through; in ANSI mode a
# plain one would end the job where it is out of range.


def _literal(pattern: str) -> str:
    return f"r'^(?:{pattern})\\z'"


_PATTERNS = {
    "is_number": _literal(_NUMBER),
    "is_iso": _literal(_ISO),
    "is_access": _literal(_ACCESS),
}

_SUFFIXES = {"ns": 9, "us": 6, "µs": 6, "μs": 6, "ms": 3, "s": 0}
"""Units that a duration may have behind it, the longer ones first: decimal places of a second."""

# Nearly all numbers are some digits with a point between them. These are "quick": read without a
# pattern, for a cast takes nothing but digits between two digits, and refuses all others and what
# is too long, which are read thoroughly. For a quick number the steps from "plain" to "rest" are
# null, which costs next to nothing.
_NUMBER_STEPS = {
    "point": "instr({text}, '.')",
    "before": "IF({point} > 0, left({text}, {point} - 1), {text})",
    "behind": "IF({point} > 0, substring({text}, {point} + 1), '')",
    "beyond": "substring({behind}, {shift} + 1)",
    "quick": f"{{shift}} >= 0 AND {{before}} != '' AND length({{beyond}}) < {FRACTION_DIGITS}",
    "units": "IF({quick}, try_cast(concat('0', {before}, rpad({behind}, {shift}, '0'), '0') AS BIGINT) div 10, NULL)",
    "parts": f"IF({{beyond}} = '', 0, try_cast(concat('0', rpad({{beyond}}, {FRACTION_DIGITS - 1}, '0'), '0') AS BIGINT))",
    "plain": "IF(({units} IS NULL OR {parts} IS NULL) AND {text} RLIKE {is_number}, translate({text}, 'E+', 'e'), NULL)",
    "mantissa": "ltrim('0', translate(substring_index({plain}, 'e', 1), '-', ''))",
    "exponent": "IF(instr({plain}, 'e') > 0, try_cast(substring_index({plain}, 'e', -1) AS INT), 0)",
    # Digits before the point of the result; if negative, zeros behind it.
    "size": "instr(concat({mantissa}, '.'), '.') - 1 + {exponent} + least({shift}, 0)",
    "digits": f"concat(repeat('0', least(-{{size}}, {_ENOUGH})), translate({{mantissa}}, '.', ''))",
    "cut": f"least(greatest({{size}}, 0), {_ENOUGH})",
    "front": "rpad({digits}, {cut}, '0')",
    "back": "substring({digits}, {cut} + 1)",
    "rest": "substring({back}, greatest({shift}, 0) + 1)",
    "whole": "IF({plain} IS NULL, IF({parts} IS NULL, NULL, {units}),"
    " try_cast(concat('0', {front}, rpad({back}, greatest({shift}, 0), '0')) AS BIGINT))",
    "fraction": "IF({plain} IS NULL, IF({units} IS NULL, NULL, {parts}),"
    f" IF({{rest}} = '', 0, try_cast(rpad({{rest}}, {FRACTION_DIGITS}, '0') AS BIGINT)))",
    "more": f"IF({{plain}} IS NULL, FALSE, substring({{rest}}, {FRACTION_DIGITS + 1}) RLIKE '[1-9]')",
    "negative": "IF({plain} IS NULL, FALSE, startswith({plain}, '-') AND {digits} RLIKE '[1-9]')",
}

# From ISO 8601, `2015-05-17T10:05:03.5+00:00`, to a decimal number of seconds with every digit of
# the fraction.
_CLOCK_STEPS = {
    "iso": "IF(trim({column}) RLIKE {is_iso}, trim({column}), NULL)",
    "days": "unix_date(try_cast(left({iso}, 10) AS DATE))",
    "minutes": "try_cast(substring({iso}, 12, 2) AS BIGINT) * 60 + try_cast(substring({iso}, 15, 2) AS BIGINT)",
    "clock": "substring({iso}, 17)",
    "second": "IF(startswith({clock}, ':'), try_cast(substring({clock}, 2, 2) AS INT), 0)",
    "zone": "translate(regexp_extract({clock}, '([zZ]|[+-][0-9:]+)$', 1), ':zZ', '')",
    "ahead": "coalesce(try_cast(substring({zone}, 2, 2) AS INT) * 60, 0)"
    " + coalesce(try_cast(substring({zone}, 4, 2) AS INT), 0)",
    "utc": "{minutes} + IF(startswith({zone}, '-'), {ahead}, -{ahead})",
    "text": "concat(({days} * 1440 + {utc}) * 60 + {second}, '.', regexp_extract({clock}, '[.,]([0-9]+)', 1))",
}
# From `17/May/2015:10:05:03 +0000` to the above.
_ACCESS_STEPS = {
    "iso": "IF(trim({column}) RLIKE {is_access}, translate(trim({column}), '[]', ''), NULL)",
    "days": "unix_date(try_cast(concat(substring({iso}, 8, 4), '-',"
    f" (instr('{_MONTHS}', substring({{iso}}, 4, 3)) + 2) div 3, '-', left({{iso}}, 2)) AS DATE))",
    "minutes": "try_cast(substring({iso}, 13, 2) AS BIGINT) * 60 + try_cast(substring({iso}, 16, 2) AS BIGINT)",
    "clock": "substring({iso}, 18)",
}
