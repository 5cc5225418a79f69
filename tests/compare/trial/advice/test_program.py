"""What an asyncio program is told: to keep its loop, or which one saves enough."""

import pytest

from compare.traffic.tapes.tape import CANCEL, REARM, START
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.trial.advice import program
from compare.trial.advice.candidates import Bounds
from compare.trial.advice.program import Program, measured, program_of, traffic_of
from compare.trial.bench.callers import HOSTS, LOOP, UVLOOP, Costs, Plan
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError
from tests.compare.small_tapes import tape_of

WHEEL, QUEUE = "cascading-wheel", "delay-queue"
RATES = Costs(1_000, 200, 100)
ASYNCIO = Costs(2_000, 5_000, 30_000)  # 2 + 1 + 3 ms in a second


def costing(share, *noise):
    """Samples that cost these shares of a core at RATES."""
    return [Costs((share + each) * 1e6, 0, 0) for each in (0, *noise)]


def test_the_share_of_a_program_is_that_of_its_pairs_fires_and_wake_ups():
    """By hand: 6 ms a second are 0.6 % of a core, and a fifth of a program that takes 3 %."""
    one = Program("asyncio", RATES, {"asyncio": [ASYNCIO], WHEEL: costing(0.0045)}, core=0.03)
    assert one.share("asyncio") == pytest.approx(0.006)
    assert one.share("asyncio") / one.core == pytest.approx(0.2)
    assert one.saving / one.core == pytest.approx(0.05)
    assert [*one.costs] == [WHEEL, "asyncio"]


@pytest.mark.parametrize(
    ("samples", "best", "small"),
    [
        ({"asyncio": costing(0.02), WHEEL: costing(0.03)}, "asyncio", True),  # it is cheaper
        ({"asyncio": costing(0.02), WHEEL: costing(0.0101)}, "asyncio", True),  # by 0.99 %
        ({"asyncio": costing(0.02), WHEEL: costing(0.0099)}, WHEEL, False),  # by 1.01 %
        ({"asyncio": costing(0.04), WHEEL: costing(0.01, 0.0, 0.05)}, "asyncio", False),  # noise
        ({"asyncio": costing(0.04), WHEEL: costing(0.01, 0.0, 0.02)}, WHEEL, False),
        # Of two wheels about as cheap, the usual choice.
        ({"asyncio": costing(0.05), WHEEL: costing(0.01), QUEUE: costing(0.011)}, QUEUE, False),
        ({"asyncio": costing(0.05), WHEEL: costing(0.01), QUEUE: costing(0.021)}, WHEEL, False),
        # uvloop may be early, so it competes only within bounds that allow that.
        ({"asyncio": costing(0.05), "uvloop": costing(0.01)}, "asyncio", True),
    ],
)
def test_asyncio_is_kept_unless_another_saves_more_than_a_share_of_a_core_and_the_noise(
    samples, best, small
):
    one = Program("asyncio", RATES, samples)
    assert (one.best, one.keeps, one.is_small) == (best, best == "asyncio", small)


def test_a_host_that_is_precise_enough_competes_and_one_s_own_always():
    samples = {"asyncio": costing(0.05), "uvloop": costing(0.01), WHEEL: costing(0.04)}
    assert Program("asyncio", RATES, samples, frozenset({"uvloop"})).best == "uvloop"
    assert Program("uvloop", RATES, samples).best == "uvloop"


def trace_of(path, rows, unit="ms", **source):
    return write_trace(path, [tape_of(*rows)], unit=unit, source=source)


ROWS = [
    (1_000, START, 0, 1_100),  # fires
    (1_000, START, 1, 1_100),  # with it
    (1_050, START, 2, 5_000),
    (1_060, REARM, 2, 1_500),  # fires
    (1_200, START, 3, 1_900),
    (1_700, CANCEL, 3, 0),
    (3_000, START, 0, 3_500),  # after the end
]


def test_pairs_fires_and_wake_ups_are_counted_in_the_trace(tmp_path):
    trace = trace_of(tmp_path / "a", ROWS)
    rates, pending = traffic_of(trace)
    assert rates == pytest.approx(Costs(3 / 2, 3 / 2, 2 / 2))
    assert pending == round((100 + 100 + 10 + 440 + 500) / 2_000)
    finer = [(1_000 * t + k, op, id_, 1_000 * due) for k, (t, op, id_, due) in enumerate(ROWS)]
    rates, _ = traffic_of(trace_of(tmp_path / "b", finer, "us"))
    assert rates == pytest.approx(Costs(3 / 2, 3 / 2, 2 / 2), rel=1e-4)  # a unit is not a wake-up
    assert traffic_of(trace_of(tmp_path / "c", ROWS, "unit")) is None
    assert traffic_of(trace_of(tmp_path / "d", ROWS[:2])) is None  # at one moment


@pytest.fixture
def asked(monkeypatch):
    """What was to be measured; each loop costs the same."""
    asked = []

    def measured(caller, contestants, plan):
        asked.append((caller, plan.size, [each.label for each in contestants]))
        return {each.label: [ASYNCIO] for each in contestants}

    monkeypatch.setattr(program, "measured", measured)
    return asked


def test_the_loop_and_the_cpu_of_a_recorded_program(tmp_path, asked):
    usage = {"kind": "recording", "seconds": 2.0, "cpu_seconds": 0.5}
    made = {
        loops: program_of(
            trace_of(tmp_path / "-".join(("t", *loops)), ROWS, loops=list(loops), **usage),
            Bounds(10, 0),
            ["hashed-wheel", "dense-wheel"],
        )
        for loops in ((), ("asyncio",), ("uvloop",), ("asyncio", "wheel_event_loop"))
    }
    assert [one.host for one in made.values()] == ["asyncio", "asyncio", "uvloop", "asyncio"]
    assert [one.core for one in made.values()] == [0.25] * 4
    assert [one.recorded for one in made.values()] == [False, True, True, True]
    assert [one.on_a_wheel for one in made.values()] == [False, False, False, True]
    assert [caller for caller, _, _ in asked] == [LOOP, LOOP, UVLOOP, LOOP]
    for caller, size, labels in asked:  # the inexact wheel is left out
        hosts = [name for name, host in HOSTS.items() if caller in host.callers and host.installed]
        assert labels == [*hosts, WHEEL, QUEUE, "dense-wheel"]
        assert size == program.FEWEST


@pytest.mark.parametrize(
    ("unit", "early", "late", "within"),
    [("us", 0, 10_000, False), ("us", 2_000, 1_000, True), ("ms", 2, 1, True), ("ms", 1, 1, False)],
)
def test_uvloop_keeps_bounds_that_allow_its_milliseconds(
    tmp_path, asked, unit, early, late, within
):
    trace = trace_of(tmp_path / "a", ROWS, unit)
    assert ("uvloop" in program_of(trace, Bounds(late, early), []).precise) == within


@pytest.mark.parametrize(
    "source", [{"kind": "other", "loops": "uvloop"}, {"kind": "recording"}, {"loops": ["uvloop"]}]
)
def test_a_trace_without_known_loops_is_taken_for_one_of_asyncio(tmp_path, asked, source):
    one = program_of(trace_of(tmp_path / "a", ROWS, **source), Bounds(), [])
    assert (one.host, one.recorded, one.core) == ("asyncio", False, None)


def test_without_its_loop_here_a_program_is_not_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "measured", lambda *_: {WHEEL: [ASYNCIO]})
    trace = trace_of(tmp_path / "a", ROWS, kind="recording", loops=["uvloop"])
    assert program_of(open_trace(trace.path), Bounds(), []) is None


def test_loops_take_turns_and_what_takes_too_long_is_left_out(monkeypatch):
    turns = []

    def measure(caller, contestant, plan):
        turns.append(contestant.label)
        if contestant.label == "unordered-list" and len(turns) > 3:
            raise OverBudgetError("it takes longer")
        return Costs(len(turns), 0, 0)

    monkeypatch.setattr(program, "measure", measure)
    contestants = [HOSTS["asyncio"], contestant("unordered-list"), contestant(WHEEL)]
    found = measured(LOOP, contestants, Plan(10, 10, 0))
    assert turns == ["asyncio", "unordered-list", WHEEL] * 2 + ["asyncio", WHEEL]
    assert {name: [cost.pair for cost in each] for name, each in found.items()} == {
        "asyncio": [1, 4, 7],
        WHEEL: [3, 6, 8],
    }
