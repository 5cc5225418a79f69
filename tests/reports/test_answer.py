"""What the script of the page is given, beside what the browser tests see of it."""

from dataclasses import replace

import pytest

from compare.trial.advice.model import ROUGH
from compare.trial.bench.callers import (
    BATCHES,
    CALLERS,
    COMPILED_CODE,
    LOOP,
    METRICS,
    OWN_CLOCK,
    PYTHON,
    SERVICE,
    UVLOOP,
)
from compare.trial.bench.constants import Constants
from compare.trial.bench.peers import CALLER as PEER
from compare.trial.bench.replays import HOSTS
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import Row
from compare.trial.results.store import contestant_entry as stored
from reports.answer import code_of, data, memory_of
from reports.statistics import Estimate
from reports.summary import StoredSource, contestants_of, figures_of
from reports.titles import TITLES
from tests.reports.primes import LABELS, OWN, traits_of
from tests.reports.stored import ROUNDS, caller_rows, fit_rows


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


def test_constants_are_those_that_are_stored(primes):
    """Every number is another, for each caller, kind, timer and size."""
    number, rows, wanted = iter(range(10_000)), [*primes.run.rows], {}
    for caller in (PYTHON, LOOP):
        for kind in ("random", "keepalive"):
            for label in (LABELS[1], LABELS[0], *HOSTS[caller]):
                for size in (10, 1_000):
                    fit = Constants(*(float(next(number)) for _ in Constants._fields))
                    rows += fit_rows(label, caller, kind, size, fit, error := float(next(number)))
                    wanted[caller, kind, label, size] = fit, error
    answer = data(figures_of(replace(primes.run, rows=rows)))
    assert [*answer["callers"]] == [PYTHON, LOOP]
    names = [*LABELS, *(timer["name"] for timer in answer["timers"][len(LABELS) :])]
    found = {
        (caller, kind, names[number], size): (Constants(*fit["constants"]), fit["error"])
        for caller, about in answer["callers"].items()
        for kind, fits in about["fits"].items()
        for number, by_size in fits.items()
        for size, fit in by_size.items()
    }
    assert found == wanted
    for caller, about in answer["callers"].items():
        assert names[about["host"]] in HOSTS[caller] and not about["rough"]
        assert (about["title"], about["meaning"]) == TITLES[caller]
        for fits in about["fits"].values():
            for by_size in fits.values():
                for each in by_size.values():
                    expected = [[by * c for c in each["constants"]] for by in ROUNDS]
                    assert each["rounds"] == [pytest.approx(round) for round in expected]


def test_without_constants_the_costs_of_one_group_are_used_and_said_to_be_rough(called):
    answer = data(called)
    assert [*answer["callers"]] == [PYTHON, BATCHES, SERVICE, LOOP, UVLOOP, COMPILED_CODE]
    for k, caller in enumerate(CALLERS):
        about = answer["callers"][caller]
        assert about["rough"] and [*about["fits"]] == ["random"]
        for n, by_size in [*about["fits"]["random"].items()][: len(LABELS)]:
            assert [*by_size] == [1_000, 100_000]
            for size, fit in by_size.items():
                pair, fire, step = (
                    1_000.0 * k + 100 * n + size / 10_000 + 10 * part + 2 for part in range(3)
                )
                steps = (0, 0, step) if caller in OWN_CLOCK else (step, 0, 0)
                assert tuple(fit["constants"]) == (pair, fire, *steps, 0, 0)
                assert fit["error"] == ROUGH


def test_each_language_of_peers_is_a_caller(primes):
    rows = [*primes.run.rows]
    languages = {"java-netty": "Java", "rust-heap": "Rust", "python-heapq": "Python"}
    unknown = dict.fromkeys(("library", "rounding", "lateness"))
    peers = [{"name": name, "language": each, **unknown} for name, each in languages.items()]
    for k, peer in enumerate(peers):
        for size, more in ((1_000, 0.0), (101_000, 100.0)):
            costs = [[10.0 + k], [20.0 + k], [30.0 + k + more]]
            rows += caller_rows(peer["name"], PEER, size, costs)
        rows.append(Row(peer["name"], "peer insert", 100_000, "peer_memory", 0, 150.0 + k))
        # by hand: a tick costs 5 ns, of which a timer has 60 or 0.6; the rest are 8.324 looks
        for task, few, many in (("insert", 1, 21), ("hold", 2, 31), ("expiry", 1_130, 833)):
            for size, ns in ((1_000, few), (100_000, many)):
                rows.append(Row(peer["name"], f"peer {task}", size, "peer_time", 0, ns))
    run = replace(primes.run, rows=rows, manifest=primes.run.manifest | {"peers": peers})
    answer = data(figures_of(run))
    netty = len(LABELS)
    assert [*answer["callers"]] == [f"{PEER} Java", f"{PEER} Rust"]
    [fits] = answer["callers"][f"{PEER} Java"]["fits"].values()
    assert [*fits] == [netty] and fits[netty][1_000]["constants"] == [10, 20, 0, 0, 0, 0, 30]
    [fits] = answer["callers"][f"{PEER} Rust"]["fits"].values()  # a heap steps when it is called
    assert fits[netty + 1][1_000]["constants"] == [11, 21, 31, 0, 0, 0, 0]
    family = answer["tuning"]["FAMILIES"]["netty"]
    looks = 1 + 30_000 / 4_096
    assert family["paid"] == pytest.approx({"pair": 2, "start": 1, "visit": 830 / looks, "tick": 5})
    # by hand: 4 096 slots of 28 bytes are part of the 150 bytes of each of 100 000 timers
    assert family["memory"] == {"fixed": 0, "timer": pytest.approx(148.85312), "slot": 28}
    assert answer["tuning"]["FAMILIES"]["kafka"]["paid"] is None


@pytest.mark.parametrize(("timer", "slots"), [("hashed-wheel", 3_000), ("hierarchical-wheel", 70)])
def test_the_memory_of_a_setting_is_that_of_the_timer(timer, slots):
    about = memory_of(timer)
    made = contestant(f"{timer}/wheel-size={slots}").new("ms", 0, 7_000)
    stated = about["fixed"] + 7_000 * about["timer"] + slots * about["slot"]
    assert stated == pytest.approx(made.nbytes, rel=0.2)


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
    windows = ["up to 4 early", "1 to 10 late", "12 early to 7 late", "up to 100ms late"]
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
    some = without(contestant="delay-queue", subject=PYTHON, metric=METRICS[2])
    assert number not in some[PYTHON]["fits"]["random"]
    assert number in some[LOOP]["fits"]["random"]


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
        "traffic": {
            "rate": 250,
            "timeout": 0,
            "cancelled": pytest.approx(0.9),
            "answer": 20.0,  # 5 pending, at 250 a second
            "kind": "random",
            "step": 1,
            "pending": 5,
        },
    }
    assert [case["program"] for case in data(distinct)["cases"]] == [None] * 4


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
