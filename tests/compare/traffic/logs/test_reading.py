"""What looks wrong in a log is said, and nothing else."""

from dataclasses import replace

import pytest

from compare.traffic.logs.reading import Reading, Times, time_text

NO_TIMES = Times(None, 0, None)
FINE = Reading(
    kind="requests",
    unit="ms",
    timeout="5s",
    time_format="iso",
    guessed=True,
    rows=7,
    first=1_521_911_720_865,
    last=1_521_911_730_865,
    timed_out=3,
    times=NO_TIMES._replace(zones=(60, 60)),
)
YEAR = 366 * 86_400 * 1000


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({"rows": 0, "timed_out": 0}, "The log has no rows."),
        ({"timed_out": 0}, "No request timed out. Are the timeout of 5s and the unit of the"),
        ({"timed_out": 7}, "Every request timed out. Are the timeout of 5s and the unit of the"),
        ({"timed_out": 4}, "4 of 7 requests timed out. Are the timeout of 5s and the unit"),
        (
            {"units": (("ts", "ms"), ("latency_ms", "s"), ("took_s", "s"))},
            "Column 'latency_ms' was read in s, and its name says ms. See --duration-unit and",
        ),
        ({"timed_out": 5, "pending": 2}, "Every request timed out. Are the timeout of 5s and"),
        ({"pending": 2}, "3 of 7 requests timed out. Are the timeout of 5s and the unit"),
        ({"timed_out": 7, "kind": "touches"}, "No key was touched again within 5s."),
        ({"timed_out": 0, "pending": 7, "kind": "touches"}, "No key was touched again within 5s."),
        ({"timed_out": 0, "kind": "touches"}, "No key was silent for 5s."),
        (
            {"times": NO_TIMES._replace(step="1s")},
            "All times are multiples of 1s, which is coarse for 5s.",
        ),
        (
            {"times": NO_TIMES._replace(without_zone=2)},
            "2 of 7 times without a zone were read as UTC.",
        ),
        (
            {"times": NO_TIMES._replace(zones=(-90, 0))},
            "The times have different zones, -01:30 to +00:00.",
        ),
        (
            {"rejected": 3, "bad_durations": 2},
            "2 of 10 rows (20%) were left out because of their duration. They may be the slow",
        ),
        ({"first": 1000, "last": 1001 + YEAR}, "The log spans 1.0 years."),
        ({"unit": "s", "first": 1000, "last": 1000 + YEAR}, "The log spans 1,000.0 years."),
    ],
)
def test_what_looks_wrong_is_said(change, warning):
    (said,) = replace(FINE, **change).warnings
    assert said.startswith(warning)


def test_nothing_else_is_said():
    assert FINE.warnings == ()
    assert replace(FINE, timed_out=1).warnings == replace(FINE, rows=6).warnings == ()
    assert replace(FINE, timed_out=6, kind="touches").warnings == ()
    assert replace(FINE, first=1000, last=1000 + YEAR).warnings == ()


def test_times_as_text():
    assert time_text(1_521_911_720_865, "ms") == "2018-03-24 17:15:20.865"
    assert time_text(0, "us") == "1970-01-01 00:00:00.000000"
    assert time_text(86_399, "s") == "1970-01-01 23:59:59"
