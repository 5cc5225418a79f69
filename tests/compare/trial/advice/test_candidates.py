from hypothesis import given
from hypothesis import strategies as st

from compare.trial.advice.candidates import Bounds, contestants
from compare.trial.replay.contestant import COMPILED, contestant
from timers.registry import TIMERS, names
from timers.rounding import OwnRounding, Rounding
from timers.traits import Traffic, ticks, wheel_sizes

COMPILED_NAMES = [name for name in names() if contestant(name).engine == COMPILED]


def test_every_compiled_timer_is_tried_with_the_values_of_its_grids():
    traffic = Traffic(100, 3000, max_late=7)
    found = list(contestants(traffic, "us"))
    labels = [each.label for each in found]
    assert len(labels) == len(set(labels))
    assert list(dict.fromkeys(each.name for each in found)) == COMPILED_NAMES
    by_name = {name: [x for x in found if x.name == name] for name in COMPILED_NAMES}
    assert [each.label for each in by_name["delay-queue"]] == ["delay-queue"]
    sizes = [each.parameters("us")["wheel_size"] for each in by_name["simple-wheel"]]
    assert sizes == wheel_sizes(traffic, {})
    expected = [
        {"tick": tick, "wheel_size": size}
        for tick in ticks(traffic, {})
        for size in wheel_sizes(traffic, {"tick": tick})
    ]
    for name in ("hashed-wheel", "hierarchical-wheel"):
        assert [each.parameters("us") for each in by_name[name]] == expected
    assert "hashed-wheel/tick=7us/wheel-size=64" in labels  # as on a command line


def test_parameters_of_an_added_timer_are_tried_under_their_own_names(monkeypatch):
    monkeypatch.setitem(TIMERS, "added-timer", "tests.compare.trial.advice.added_timer:AddedTimer")
    added = [each for each in contestants(Traffic(10, 10), "ms") if each.name == "added-timer"]
    assert [each.parameters("ms") for each in added] == [{"levels": n} for n in (2, 4, 6, 8)]


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 300))
def test_bounds_allow_what_is_as_precise(late, early, tick):
    bounds = Bounds(late, early)
    assert bounds.allow(Rounding("up", tick)) == (tick <= late)
    assert bounds.allow(Rounding("down", tick)) == (tick - 1 <= early)
    assert bounds.allow(OwnRounding(max, -tick, tick)) == (tick <= min(late, early))
    assert bounds.allow(Rounding("exact"))


def test_a_tick_that_grows_with_the_delay_is_allowed_for_the_delays_of_the_trace():
    levels = Rounding("levels")
    assert [Bounds(8).allow(levels, longest) for longest in (62, 503, 504)] == [True, True, False]
    assert [Bounds(8**8).allow(levels, longest) for longest in (10**9, 2 * 10**9)] == [True, False]
    assert not Bounds(8**8).allow(levels)
