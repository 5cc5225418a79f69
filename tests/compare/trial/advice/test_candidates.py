import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.trial.advice.candidates import WHEEL_SIZES, Bounds, Grid
from compare.trial.replay.contestant import COMPILED, contestant
from timers.registry import names

COMPILED_NAMES = [name for name in names() if contestant(name).engine == COMPILED]


ANY = 10**9  # a delay for which each wheel size may be useful


def labels(candidates):
    return [candidate.label for candidate in candidates]


@pytest.mark.parametrize(
    ("bounds", "longest", "ticks"),
    [
        (Bounds(), 1, [1]),
        (Bounds(), 30, [1, 2, 5, 10, 20]),
        (Bounds(7), 3, [1, 2, 5, 7]),
        (Bounds(7, 8), 3, [1, 2, 5, 7, 9]),
        (Bounds(0, 99), 100, [1, 2, 5, 10, 20, 50, 100]),
    ],
)
def test_ticks_are_a_series_with_the_longest_in_the_bounds(bounds, longest, ticks):
    assert Grid("ms", bounds, longest, longest).ticks == ticks


def test_the_grid_has_every_compiled_timer_with_its_own_parameters():
    grid = labels(Grid("ms", Bounds(10, 4), 100, ANY).all())
    assert len(grid) == len(set(grid))
    assert list(dict.fromkeys(label.split("/")[0] for label in grid)) == COMPILED_NAMES
    by_name = {name: [x for x in grid if x.split("/")[0] == name] for name in COMPILED_NAMES}
    assert by_name["delay-queue"] == ["delay-queue"]
    assert len(by_name["simple-wheel"]) == len(WHEEL_SIZES)
    assert len(by_name["hashed-wheel"]) == 4 * len(WHEEL_SIZES)  # ticks of 1, 2, 5 and 10
    assert len(by_name["hierarchical-wheel"]) == 3 * len(WHEEL_SIZES)  # 1, 2, and 5: 4 early


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 300))
def test_only_what_is_as_precise_as_the_bounds_ask(late, early, longest):
    bounds = Bounds(late, early)
    grid = Grid("us", bounds, longest, ANY)
    for candidate in [*grid.all(), *grid.around(contestant("hashed-wheel/tick=5us"))]:
        low, high = candidate.rounding("us").bounds()
        assert -early <= low <= high <= late
    # The longest tick that the bounds allow is a candidate, in the coarse grid already.
    assert f"hashed-wheel/tick={late}us/wheel-size=64" in labels(grid.coarse()) or not late
    ticks = {timer.parameters("us")["tick"] for timer in grid.coarse() if "hier" in timer.name}
    assert early + 1 in ticks


def test_around_a_candidate_are_the_next_two_values_of_each_parameter():
    grid = Grid("ms", Bounds(100), 100, ANY)
    near = labels(grid.around(contestant("hashed-wheel/tick=10ms/wheel-size=64")))
    ticks, sizes = ("2ms", "5ms", "10ms", "20ms", "50ms"), (16, 32, 64, 128, 256)
    assert near == [
        f"hashed-wheel/tick={tick}/wheel-size={size}" for tick in ticks for size in sizes
    ]
    assert labels(grid.around(contestant("delay-queue"))) == ["delay-queue"]
    edge = labels(grid.around(contestant("simple-wheel/wheel-size=8")))
    assert edge == [f"simple-wheel/wheel-size={size}" for size in (8, 16, 32)]


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_one_wheel_at_most_is_larger_than_the_longest_delay(delay, late):
    sizes = {}
    for candidate in Grid("unit", Bounds(late), 1, delay).all():
        parameters = candidate.parameters("unit")
        if "wheel_size" in parameters:
            key = candidate.name, parameters.get("tick", 1)
            sizes.setdefault(key, []).append(parameters["wheel_size"])
    assert 8 in sizes["hashed-wheel", late]
    for (_, tick), slots in sizes.items():
        assert slots == list(WHEEL_SIZES[: len(slots)])
        larger = [size for size in slots if size * tick > delay]
        assert len(larger) == 1 or slots == list(WHEEL_SIZES)
