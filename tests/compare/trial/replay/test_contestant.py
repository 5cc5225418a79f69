"""A contestant is parsed once, and is a value: text, class, parameters in the unit of a trace."""

import pickle
import re

import pytest

from compare.trial.replay.contestant import ContestantError, contestant
from compare.trial.replay.lateness import lateness_text
from timers.errors import ParameterError, UnknownTimerError
from timers.registry import names
from timers.rounding import Rounding

OWN = "tests.compare.own_timers:"


@pytest.mark.parametrize("name", names())
def test_a_new_timer_stands_at_its_start_with_its_parameters(name):
    parsed = contestant(name)
    timer = parsed.new("ms", 7, 5)
    assert (timer.now, dict(timer.parameters)) == (7, parsed.parameters("ms"))
    assert (parsed.label, parsed.tick is None) == (name, "tick" not in timer.parameters)
    if parsed.engine == "compiled":
        sizes = [parsed.new("ms", 7, capacity).nbytes for capacity in (0, 1, 2)]
        assert sizes[0] == sizes[1] < sizes[2] < timer.nbytes < parsed.new("ms").nbytes
        assert parsed.new("ms", counting=True).counters and timer.counters is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("hashed-wheel", "hashed-wheel"),
        ("hashed-wheel/wheel-size=512", "hashed-wheel"),
        ("hashed-wheel/tick=0.1s", "hashed-wheel"),
        ("hashed-wheel/tick=100", "hashed-wheel/tick=100"),
        ("hashed-wheel/ wheel_size = 6_4/tick=5000us", "hashed-wheel/wheel-size=64/tick=5ms"),
        ("hierarchical-wheel/tick=1", "hierarchical-wheel"),
        ("hierarchical-wheel/tick=1ms", "hierarchical-wheel/tick=1ms"),
    ],
)
def test_the_label_is_what_one_would_type(text, label):
    parsed = contestant(text)
    assert parsed.label == label
    assert contestant(label) == parsed == pickle.loads(pickle.dumps(parsed))


@pytest.mark.parametrize(
    ("text", "unit", "tick"),
    [
        ("hashed-wheel", "us", 100_000),
        ("hashed-wheel", "ms", 100),
        ("hashed-wheel", "unit", 100),
        ("hashed-wheel/tick=100", "us", 100),
        ("hashed-wheel/tick=5ms", "us", 5000),
        ("hashed-wheel/tick=2s", "s", 2),
        ("hierarchical-wheel", "us", 1),
        ("hierarchical-wheel/tick=1ms", "us", 1000),
        ("hierarchical-wheel/tick=7", "unit", 7),
    ],
)
def test_a_tick_is_a_number_of_units_of_the_trace(text, unit, tick):
    assert contestant(text).parameters(unit)["tick"] == tick
    assert contestant(text).new(unit).parameters["tick"] == tick


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        (
            "hashed-wheel",
            "s",
            "hashed-wheel: the default tick 100ms is not a whole number of s; give another one, "
            "such as tick=1s",
        ),
        (
            "hashed-wheel/tick=500us",
            "ms",
            "hashed-wheel/tick=500us: tick 500us is not a whole number of ms; give another one",
        ),
        (
            "hashed-wheel/tick=5ms",
            "unit",
            "tick 5ms needs a trace whose unit is a duration; give a number of units",
        ),
    ],
)
def test_a_tick_that_is_not_a_whole_number_of_units_is_one_clear_error(text, unit, says):
    with pytest.raises(ParameterError, match=re.escape(says)):
        contestant(text).new(unit)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("nix", UnknownTimerError, "no timer is called 'nix'"),
        ("hashed-wheel/tick=0", ParameterError, "tick must lie in [1, 9223372036854775807], not 0"),
        ("hierarchical-wheel/wheel-size=1", ParameterError, "wheel_size must lie in [2, 1048576]"),
        ("hashed-wheel/tick=5ms/tick=6ms", ParameterError, "hashed-wheel: tick is given twice"),
        ("delay-queue/tick=5", ParameterError, "delay-queue has no parameter 'tick'; it has none"),
        ("simple-wheel/tick=5", ParameterError, "no parameter 'tick'; it has wheel-size"),
        ("hashed-wheel/tack=1ms", ParameterError, "'tack'; it has tick, wheel-size"),
        ("hashed-wheel/tick", ParameterError, "'tick' is not a parameter and its value"),
        ("hashed-wheel/=1ms", ParameterError, "'=1ms' is not a parameter and its value"),
        ("hashed-wheel/wheel-size=1s", ParameterError, "wheel-size: '1s' is not an integer"),
        ("hashed-wheel/tick=x", ParameterError, "duration 'x' is not a number with a unit"),
        ("hashed-wheel/tick=1.5ns", ParameterError, "'1.5ns' is not a positive multiple of 1 ns"),
        ("hashed-wheel/tick=-5ms", ParameterError, "tick must be a number of units or a duration"),
        (OWN + "Nix", UnknownTimerError, "has no attribute 'Nix'"),
        (OWN + "NoStart", ContestantError, "is not a timer: its traits are None"),
    ],
)
def test_what_is_not_a_contestant_is_one_clear_error(text, error, says):
    with pytest.raises(error, match=re.escape(says)):
        contestant(text)


@pytest.mark.parametrize(
    ("name", "says"),
    [("NoTimer", "it lacks now, parameters"), ("NeedsMore", "cannot be called with (start=0)")],
)
def test_a_class_that_is_not_a_timer_is_refused_when_one_is_made(name, says):
    with pytest.raises(ContestantError, match=re.escape(says)):
        contestant(OWN + name).new("ms")


def test_a_module_that_is_not_python_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_timer.py").write_text("class Timer:\n    def (\n")
    monkeypatch.chdir(tmp_path)
    says = r"cannot import 'broken_timer:Timer': .*broken_timer.py, line 2"
    with pytest.raises(UnknownTimerError, match=says):
        contestant("broken_timer:Timer")


def test_contestants_that_fire_alike_share_a_rounding():
    exact = ("delay-queue", "simple-wheel/wheel-size=7", "hierarchical-wheel")
    assert [contestant(text).rounding("ms") for text in exact] == [Rounding("exact")] * 3
    coarse = [contestant(f"hierarchical-wheel/tick={tick}").rounding("ms") for tick in (5, 6, 5)]
    assert coarse[0] == coarse[2] != coarse[1]


@pytest.mark.parametrize(
    ("text", "units", "says"),
    [
        ("hashed-wheel", ["us", "ms"], "up to 100ms late"),
        ("hashed-wheel", ["unit"], "up to 100 late"),
        ("hashed-wheel/tick=5", ["us"], "up to 5 late"),
        ("hashed-wheel/tick=1ms", ["us"], "up to 1ms late"),
        ("hierarchical-wheel", ["ms"], "exact"),
        ("hierarchical-wheel/tick=1ms", ["ms"], "exact"),
        # In microseconds it may be early, though a millisecond is the unit of another trace.
        ("hierarchical-wheel/tick=1ms", ["ms", "us"], "up to 1ms early"),
        ("hierarchical-wheel/tick=1s", ["s", "ms"], "up to 1s early"),
        ("hierarchical-wheel/tick=5", ["ms", "us"], "up to 4 early"),
        (OWN + "Undeclared", ["ms"], "lateness undeclared"),
    ],
)
def test_how_late_it_may_fire_is_told_in_the_finest_unit(text, units, says):
    assert lateness_text(*contestant(text).bounds(units)) == says
