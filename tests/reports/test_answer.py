"""What the script of the page is given, beside what the browser tests see of it."""

from dataclasses import replace

import pytest

from compare.trial.bench.task import BY_EVENT, HOLD, INSERT
from compare.trial.replay.contestant import contestant
from compare.trial.results.store import contestant_entry as stored
from reports.answer import code_of, data, noise
from reports.select import Key
from reports.statistics import Estimate
from reports.summary import contestants_of
from tests.reports.primes import LABELS, OWN, SIZES, WHO, traits_of


@pytest.mark.parametrize(
    ("label", "unit", "name", "arguments"),
    [
        ("cascading-wheel", "ms", "CascadingWheel", "()"),
        ("hierarchical-wheel/wheel-size=8", "ms", "HierarchicalWheel", "(tick=1, wheel_size=8)"),
        ("hashed-wheel", "ms", "HashedWheel", "(tick=100, wheel_size=512)  # one unit is 1 ms"),
        ("hashed-wheel", "us", "HashedWheel", "(tick=100000, wheel_size=512)  # one unit is 1 us"),
    ],
)
def test_the_code_makes_the_timer(label, unit, name, arguments):
    [timer] = contestants_of([stored(contestant(label), [unit])])
    assert code_of(timer) == f"from timers import {name}\ntimer = {name}{arguments}"
    names: dict[str, object] = {}
    exec(code_of(timer), names)
    assert len(names["timer"]) == 0


def test_the_code_of_another_modules_class():
    [timer] = contestants_of([traits_of("some.where:Mine")])
    assert code_of(timer) == "from some.where import Mine\ntimer = Mine()"


def test_costs_are_medians_with_their_intervals(primes, distinct):
    sources = sorted(distinct.sources, key=lambda source: source.own)
    answer = data(replace(distinct, sources=tuple(sources)))
    assert list(answer["callers"]) == ["compiled code"]
    for size, by_timer in answer["callers"]["compiled code"].items():
        assert {LABELS[number] for number in by_timer} == {
            label for label in LABELS if WHO[label][0] == "compiled"
        }
        for number, costs in by_timer.items():
            for name, task in {"hold": HOLD, "insert": INSERT, "expiry": BY_EVENT}.items():
                time = Estimate.of(primes.samples[LABELS[number], task, size])
                assert costs[name] == [time.value, time.low, time.high]
    assert answer["sizes"] == list(SIZES)
    # One's own traces come first.
    assert [case["name"] for case in answer["cases"]][:2] == ["dns.trace", "clients.trace"]
    assert [case["own"] for case in answer["cases"]] == [True, True, False, False]
    case, about = answer["cases"][0], primes.sources[OWN[0]]
    assert case["rate"] == pytest.approx(about["operations"] * 1e6 / about["span"])
    number = LABELS.index("delay-queue")
    time = Estimate.of(primes.times["delay-queue", OWN[0]])
    assert case["costs"][number] == [time.value, time.low, time.high]
    precisions = [distinct.contestants[number].precision for number in answer["precisions"]]
    windows = ["0 to 4 early", "1 to 10 late", "12 early to 7 late", "0 to 100ms late"]
    assert precisions == ["exact", *windows]  # each once, the most precise first


def test_missing_data_is_a_missing_choice(distinct):
    replayed = replace(distinct.where(metric="replay_time"), over_budget={})
    assert data(replayed)["callers"] == {}
    assert data(replace(distinct, sources=()))["cases"] == []
    some = {key: time for key, time in distinct.figures.items() if key.subject != HOLD.name}
    assert data(replace(distinct, figures=some))["sizes"] == []


def test_a_busy_machine_is_said(distinct):
    timer = distinct.contestants[0]

    def of(*scatters, samples=2):
        times = {
            size: Estimate.of([10.0, *[10.0 * by] * (samples - 1)])
            for size, by in enumerate(scatters, 1)
        }
        times[10**6] = Estimate.of([10.0])  # which cannot scatter
        figures = {Key(timer.label, "hold", size, "time"): each for size, each in times.items()}
        return replace(distinct, figures=figures)

    assert noise(of(1.6, 1.4)).startswith(
        "In 1 of 2\xa0measurements the slowest sample took more than 1.5 times"
    )
    assert noise(of(1.4, 1.4)) == noise(of(1.6, samples=1)) == ""
    assert noise(of(1.6, *[1.0] * 18)) and not noise(of(1.6, *[1.0] * 19))
    assert not noise(replace(of(1.6), of_shards=True))


def test_the_answer_for_python_adds_up_calls_and_expiries(called):
    callers = data(called)["callers"]
    assert list(callers) == [
        "compiled code",
        "Python, batches of 1000",
        "Python, one by one",
        "Python, through a SystemTimer",
    ]
    compiled = callers["compiled code"]
    for size, by_timer in callers["Python, one by one"].items():
        # Also a Python loop competes where a Python program calls.
        assert by_timer.keys() >= compiled[size].keys()
        for number, costs in by_timer.items():
            assert costs["hold"][0] == 102 + number
            assert costs["insert"] == [ns / 2 for ns in costs["hold"]]
            if number in compiled[size]:
                assert costs["expiry"] == compiled[size][number]["expiry"]


def test_a_case_gives_the_figures_of_its_timers(primes, distinct):
    sources = {distinct.called(source): source for source in distinct.sources}
    for case in data(distinct)["cases"]:
        source = sources[case["name"]]
        row = primes.rows[LABELS[0], source.name]
        started = row["scheduled"] + row["rescheduled"]
        per_second = started / source.seconds if source.seconds else 0
        assert case["timers_per_second"] == pytest.approx(per_second)
        assert case["share"] * started == pytest.approx(row["cancelled"] + row["rescheduled"])
        assert case["pending"] == row["most_pending"]
        assert case["together"] == source.together
