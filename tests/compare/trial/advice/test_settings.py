import asyncio
from types import SimpleNamespace

import pytest

import timers
from compare.trial.advice.candidates import Bounds, Candidate
from compare.trial.advice.program import Program
from compare.trial.advice.settings import NO_WHEEL, python_line, settings
from compare.trial.bench.callers import Costs
from compare.trial.replay.contestant import contestant
from compare.trial.replay.outcome import Outcome
from timers.services import wheel_event_loop

LOOPS = SimpleNamespace(Loop=asyncio.SelectorEventLoop)  # uvloop need not be installed


def advice(unit, *labels, bounds=Bounds(), program=None):  # noqa: B008  # it is frozen
    ranked = [
        Candidate(contestant(label), Outcome(), [], 70, 1, 0, precise=True, allowed=True)
        for label in labels
    ]

    def best_of(name):
        return next((each for each in ranked if each.contestant.name == name), None)

    return SimpleNamespace(
        unit=unit, best=ranked[0], best_of=best_of, bounds=bounds, program=program
    )


@pytest.mark.parametrize(
    ("unit", "label", "line"),
    [
        (
            "us",
            "hashed-wheel/tick=10ms",
            "timers.HashedWheel(tick=10_000, wheel_size=512, capacity=70)",
        ),
        (
            "ms",
            "hashed-wheel/tick=10ms/wheel-size=64",
            "timers.HashedWheel(tick=10, wheel_size=64, capacity=70)",
        ),
        ("ms", "delay-queue", "timers.DelayQueue(capacity=70)"),
        (
            "unit",
            "hierarchical-wheel/tick=5",
            "timers.HierarchicalWheel(tick=5, wheel_size=20, capacity=70)",
        ),
    ],
)
def test_the_line_to_paste_makes_the_timer(unit, label, line):
    best = advice(unit, label).best
    assert python_line(best, unit) == line
    timer = eval(line, {"timers": timers})
    assert type(timer) is best.contestant.timer_class
    assert timer.parameters == best.contestant.parameters(unit)


@pytest.mark.parametrize(("size", "netty"), [(100, 128), (512, 512)])  # a power of two; default
def test_each_system_gets_the_best_of_its_scheme(size, netty):
    lines = settings(
        advice(
            "us",
            f"hashed-wheel/tick=2500us/wheel-size={size}",
            "hierarchical-wheel/tick=2ms/wheel-size=32",
            bounds=Bounds(2500, 2000),
        )
    )
    assert lines == {
        "Netty": f"new HashedWheelTimer(2500, TimeUnit.MICROSECONDS, {netty})",
        "Kafka": 'new SystemTimer("name", 2, 32, Time.SYSTEM.hiResClockMs())',
        "tokio": "nothing to set: 6 levels of 64 slots of 1 ms, up to 1 ms late; keeps --max-late"
        " 2500us",
        "asyncio": "nothing was measured: the trace has no time between its operations",
    }


@pytest.mark.parametrize(("unit", "late", "shown"), [("us", 999, "999us"), ("ms", 0, "0")])
def test_systems_that_cannot_be_that_precise_say_so(unit, late, shown):
    labels = ["delay-queue"]
    if unit == "us":
        labels += ["hashed-wheel/tick=500us", "hierarchical-wheel/tick=1us"]
    lines = settings(advice(unit, *labels, bounds=Bounds(late)))
    assert f"--max-late {shown} does not allow its shortest, 1 ms" in lines["Netty"]
    if unit == "us":
        assert "--max-early 0 does not allow its shortest, 1 ms" in lines["Kafka"]
    else:  # a tick of one unit is exact
        assert lines["Kafka"] == NO_WHEEL
    assert lines["tokio"].endswith(f"does not keep --max-late {shown}")


def test_the_shortest_ticks_of_others_are_a_millisecond():
    """Of this project's timers, one with a shorter tick may be the best."""
    labels = "hashed-wheel/tick=900us/wheel-size=8", "hierarchical-wheel/tick=10us/wheel-size=64"
    lines = settings(advice("us", *labels, bounds=Bounds(1000, 999)))
    assert lines["Netty"] == "new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 8)"
    assert lines["Kafka"] == 'new SystemTimer("name", 1, 64, Time.SYSTEM.hiResClockMs())'
    assert lines["tokio"].endswith("; keeps --max-late 1ms")  # it is never early


def test_units_that_are_not_durations_have_no_settings_elsewhere():
    lines = settings(advice("unit", "delay-queue"))
    assert lines["Netty"] == lines["Kafka"] == lines["tokio"] == lines["asyncio"]


@pytest.mark.parametrize(
    ("host", "best", "line"),
    [
        ("asyncio", "asyncio", "keep asyncio"),
        ("asyncio", "uvloop", "uvloop"),
        (
            "asyncio",
            "cascading-wheel",
            "wheel_event_loop(timers.CascadingWheel, unit_ns=1_000_000)",
        ),
        ("uvloop", "uvloop", "keep uvloop"),
        (
            "uvloop",
            "dense-wheel",
            "wheel_event_loop(timers.DenseWheel, unit_ns=1_000_000, base=uvloop.Loop)",
        ),
    ],
)
def test_asyncio_gets_the_loop_to_use(host, best, line):
    costs = {"asyncio": [Costs(9e8, 0, 0)], "uvloop": [Costs(9e8, 0, 0)], best: [Costs(0, 0, 0)]}
    program = Program(host, Costs(1, 0, 0), costs, frozenset({"uvloop"}))
    lines = settings(advice("us", "delay-queue", program=program))
    assert lines["asyncio"] == line
    if "wheel" in line:
        factory = eval(
            line, {"timers": timers, "wheel_event_loop": wheel_event_loop, "uvloop": LOOPS}
        )
        assert callable(factory)
