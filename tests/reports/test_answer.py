"""What the script of the page is given, beside what the browser tests see of it."""

from dataclasses import replace

import pytest

from compare.trial.bench.callers import (
    BATCHES,
    CALLERS,
    COMPILED_CODE,
    LOOP,
    METRICS,
    PYTHON,
    SERVICE,
    UVLOOP,
)
from compare.trial.replay.contestant import contestant
from compare.trial.results.store import contestant_entry as stored
from reports.answer import ANSWERS, RATES, SHARES, TIMEOUTS, TITLES, code_of, data
from reports.statistics import Estimate
from reports.summary import StoredSource, contestants_of
from tests.reports.primes import LABELS, OWN, traits_of


@pytest.mark.parametrize(
    ("label", "unit", "name", "arguments"),
    [
        ("cascading-wheel", "ms", "CascadingWheel", "(capacity=70)"),
        (
            "hierarchical-wheel/wheel-size=8",
            "ms",
            "HierarchicalWheel",
            "(tick=1, wheel_size=8, capacity=70)",
        ),
        (
            "hashed-wheel",
            "ms",
            "HashedWheel",
            "(tick=100, wheel_size=512, capacity=70)  # one unit is 1 ms",
        ),
        (
            "hashed-wheel",
            "us",
            "HashedWheel",
            "(tick=100000, wheel_size=512, capacity=70)  # one unit is 1 us",
        ),
    ],
)
def test_the_code_makes_the_timer(label, unit, name, arguments):
    [timer] = contestants_of([stored(contestant(label), [unit])])
    code = "70".join(code_of(timer))
    assert code == f"from timers import {name}\ntimer = {name}{arguments}"
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["timer"]) == 0


def test_the_code_of_another_modules_class():
    [timer] = contestants_of([traits_of("some.where:Mine")])
    assert "9".join(code_of(timer)) == "from some.where import Mine\ntimer = Mine(capacity=9)"


def test_costs_are_medians_with_their_intervals(called):
    answer = data(called)
    assert [*answer["callers"]] == [PYTHON, BATCHES, SERVICE, LOOP, UVLOOP, COMPILED_CODE]
    for k, caller in enumerate(CALLERS):
        costs = answer["callers"][caller]["costs"]
        host = [len(LABELS)] if caller == LOOP else []  # uvloop, which was measured for it alone
        assert [*costs] == [*range(len(LABELS)), *host]
        for n, by_size in [*costs.items()][: len(LABELS)]:
            assert [*by_size] == [1_000, 100_000]
            for size, parts in by_size.items():
                for part, cost in enumerate(parts):
                    ns = 1_000.0 * k + 100 * n + size / 10_000 + 10 * part
                    time = Estimate.of([ns, ns + 2, ns + 4])
                    assert cost == [time.value, time.low, time.high]
        assert answer["callers"][caller]["title"] == TITLES[caller][0]


def test_traces_of_ones_own_come_first(primes, distinct):
    sources = sorted(distinct.sources, key=lambda source: source.own)
    answer = data(replace(distinct, sources=tuple(sources)))
    assert [case["name"] for case in answer["cases"]][:2] == ["dns.trace", "clients.trace"]
    assert [case["own"] for case in answer["cases"]] == [True, True, False, False]
    case, about = answer["cases"][0], primes.sources[OWN[0]]
    assert case["rate"] == pytest.approx(about["operations"] * 1e6 / about["span"])
    assert case["started"] == pytest.approx(about["timers"] * 1e6 / about["span"])
    number = LABELS.index("delay-queue")
    time = Estimate.of(primes.times["delay-queue", OWN[0]])
    assert case["costs"][number] == [time.value, time.low, time.high]
    precisions = [distinct.contestants[number].precision for number in answer["precisions"]]
    windows = ["0 to 4 early", "1 to 10 late", "12 early to 7 late", "0 to 100ms late"]
    assert precisions == ["exact", *windows]  # each once, the most precise first


def test_missing_data_is_a_missing_choice(called, distinct):
    assert data(distinct)["callers"] == {}
    assert data(replace(distinct, sources=()))["cases"] == []

    def without(**columns):
        left = {
            key: time
            for key, time in called.figures.items()
            if not columns.items() <= key._asdict().items()
        }
        return data(replace(called, figures=left))["callers"]

    assert PYTHON in without(subject=LOOP) and LOOP not in without(subject=LOOP)
    number = LABELS.index("delay-queue")
    for missing in ({"metric": METRICS[2]}, {"size": 1_000}):  # a cost, or all but one size
        some = without(contestant="delay-queue", subject=PYTHON, **missing)
        assert number not in some[PYTHON]["costs"] and number in some[LOOP]["costs"]


@pytest.mark.parametrize(
    ("loops", "caller"), [(["asyncio"], LOOP), (["uvloop", "wheel_event_loop"], UVLOOP)]
)
def test_a_recorded_program_has_the_traffic_of_its_trace(loops, caller, distinct):
    """By hand: in 4 s, 1 000 calls; 100 fire, 20 are pending in the end; 5 at a time."""
    about = {"armed": 1_000, "answered": 880, "pending": 20, "waited": 20e6}
    details = {"span": 4_000_000, "operations": 9, "details": {"kind": "recording", "loops": loops}}
    [made] = data(
        replace(
            distinct,
            sources=(StoredSource(OWN[0], "us", details | {"description": about}, own=True),),
        )
    )["cases"]
    assert made["program"] == {
        "caller": caller,
        "setting": pytest.approx({"rate": 250, "share": 0.9, "pending": 5, "steps": 24.69}, 1e-3),
    }
    assert [case["program"] for case in data(distinct)["cases"]] == [None] * 4


def test_the_choices_cover_what_readers_have():
    assert tuple(10**n for n in range(2, 8)) == RATES
    assert TIMEOUTS == (10, 100, 1_000, 10_000, 60_000, 600_000)  # 10 ms to 10 min
    assert max(SHARES) < 1 and max(ANSWERS) < 1


def test_what_was_over_budget_is_named(distinct):
    missing = {case["name"]: case["missing"] for case in data(distinct)["cases"]}
    assert missing["keepalive"] == ["heapq-delay-queue"]
    assert not any(names for source, names in missing.items() if source != "keepalive")


def test_a_case_gives_the_figures_of_its_timers(primes, distinct):
    sources = {distinct.called(source): source for source in distinct.sources}
    for case in data(distinct)["cases"]:
        source = sources[case["name"]]
        row = primes.rows[LABELS[0], source.name]
        assert case["pending"] == row["most_pending"]
        assert case["together"] == source.together
