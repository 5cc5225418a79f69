"""Each metric has the direction and the unit that its name and its title promise."""

import pytest

from compare.trial.results.metrics import HIGHER, LOWER, METRICS

every_metric = pytest.mark.parametrize("name", METRICS)

UNITS = {"_ms": "ms", "_us": "us", "_ns": "ns", "_bytes": "B"}
MEASURED = ("ns", "us", "µs", "ms")
NEITHER = {"median", "quartile", "horizon", "lateness_min"}
"""Times that describe a setting or an answer."""


@every_metric
def test_the_unit_is_that_of_the_name(name):
    for end, unit in UNITS.items():
        if name.endswith(end):
            assert METRICS[name].unit == unit


@every_metric
def test_what_takes_time_is_better_low_and_what_is_achieved_is_better_high(name):
    metric = METRICS[name]
    if name in ("capacity", "achieved", "sustained", "too_many"):
        assert metric.better == HIGHER
    elif metric.unit in MEASURED and name not in NEITHER:
        assert metric.better == LOWER
    else:
        assert metric.better != HIGHER
