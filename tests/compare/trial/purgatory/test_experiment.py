"""The whole experiment, with trials that are made up: what is run, kept and refused."""

import json
from collections import Counter
from dataclasses import asdict, replace
from itertools import groupby

import pytest

from compare.trial.purgatory import experiment
from compare.trial.purgatory.experiment import run_experiment
from compare.trial.purgatory.figures import (
    FIGURES,
    PURGING,
    SCANNING,
    keeps_up,
    median_row,
    mostly_keeps_up,
    saturation,
    trials_of,
)
from compare.trial.purgatory.options import QUICK
from compare.trial.purgatory.traffic import traffic
from compare.trial.purgatory.trial import Trial
from compare.trial.results.store import RunError, read_run
from timers.errors import ParameterError, UnknownTimerError

CAN = {"none": 10**9, PURGING: 90_000, SCANNING: 30_000}
"""Requests in a second that the made-up designs can do."""


@pytest.fixture
def trials(monkeypatch):
    """Replaces all trials; the list of those that were asked for."""
    asked = []

    def measure(trial, given):
        rate = len(given.arrivals) / 0.1
        asked.append((trial, given))
        return {
            "requests": len(given.arrivals),
            "achieved": min(rate, CAN[trial.design]),
            "late_p99_ms": 3.0,
            "failed": "MemoryError" if trial.memory_bytes and trial.design == SCANNING else None,
        }

    monkeypatch.setattr(experiment, "measure", measure)
    return asked


@pytest.fixture
def options(tmp_path):
    return replace(QUICK, seconds=0.1, repeats=3, runs=str(tmp_path / "runs"))


def run(options):
    """The rows of a stored run of the experiment."""
    return trials_of(read_run(run_experiment(options)).rows)


def of(rows, *case):
    """The rows of a kind, a load and a design."""
    return [row for row in rows if (row["kind"], row["load"], row["design"]) == case]


@pytest.mark.parametrize(
    ("can", "rates", "tried", "highest"),
    [
        (30_000, (80_000, 20_000, 40_000), [20_000, 40_000, 28_000, 33_000, 30_000], 30_000),
        (300, (200, 400), [200, 400], 200),  # too close to be refined
        (30_000, (30_000, 32_000), [30_000, 32_000, 31_000], 31_000),  # 95 % of it
    ],
)
def test_rates_rise_until_a_design_cannot_keep_up_and_are_refined(
    monkeypatch, trials, options, can, rates, tried, highest
):
    monkeypatch.setitem(CAN, SCANNING, can)
    rows = run(replace(options, rates=rates * 2, refinements=3, limits=()))
    for load in ("low", "high"):
        ladder = Counter(row["rate"] for row in of(rows, "rate", load, SCANNING))
        # Two failures settle it.
        assert list(ladder.items()) == [(rate, 2 if 0.95 * rate > can else 3) for rate in tried]
        for ordered in (rows, rows[::-1]):
            assert saturation(ordered)[load, SCANNING] == (highest, True)
            assert saturation(ordered)[load, PURGING] == (max(rates), False)
    limited = [(row["design"], row["interval"], row["rate"]) for row in rows if row["memory_bytes"]]
    rate = max(rates)  # the third or the last
    assert limited == [(SCANNING, 10_000, rate)] * 3 + [(PURGING, 1000, rate)] * 3


def test_a_disturbed_trial_does_not_end_the_ladder(monkeypatch, trials, options):
    calm = experiment.measure
    disturbed = []

    def measure(trial, traffic):
        figures = calm(trial, traffic)
        if trial.design == PURGING and not disturbed:
            disturbed.append(figures | {"late_p99_ms": 300.0})
            return disturbed[0]
        return figures

    monkeypatch.setattr(experiment, "measure", measure)
    rows = run(options)
    figures = [(row["rate"], row["late_p99_ms"]) for row in of(rows, "rate", "low", PURGING)]
    assert figures == [(10_000, 300.0)] + [(10_000, 3.0)] * 2 + [(40_000, 3.0)] * 3
    assert saturation(rows)["low", PURGING] == (40_000, False)


def test_the_run_has_every_kind_of_trial_and_what_they_found(trials, options):
    options = replace(
        options,
        rates=(10_000, 80_000, 20_000, 40_000),
        limits=(20_000, 10_000, 300),
        repeats=4,
        memory_mib=7,
        timer="cascading-wheel",
        seed=9,
        command=("wheelwork", "x"),
    )
    stored = read_run(run_experiment(options))
    rows = trials_of(stored.rows)
    new, old = ("purging", 1000), ("scanning", 10_000)
    none = "none", 0
    timers = {"scanning": "delay-queue"}
    wheels = [(rate, 4) for rate in (10_000, 20_000, 40_000, 80_000)]
    queues = [*wheels[:2], (40_000, 2)]  # two failures of four settle it
    wanted = [("rate", "low", *none, None, *rate) for rate in wheels]
    for load in ("low", "high"):
        wanted += [("rate", load, *new, None, *rate) for rate in wheels]
        wanted += [("rate", load, *old, None, *rate) for rate in queues]
    swept = [(*new, None, 40_000, 4)]
    swept += [
        (old[0], limit, None, 40_000, number)
        for limit, number in zip(options.limits, (4, 2, 4), strict=True)
    ]
    wanted += [("limit", "low", *case) for case in swept]
    wanted += [("memory", "low", old[0], 20_000, 7 << 20, 40_000, 4)]
    wanted += [("memory", "low", *new, 7 << 20, 40_000, 4)]
    names = ("kind", "load", "design", "interval", "memory_bytes", "rate")
    grouped = groupby(rows, key=lambda row: tuple(row[name] for name in names))
    assert [(*key, len(list(same))) for key, same in grouped] == wanted
    assert {row["failed"] for row in rows if row["memory_bytes"]} == {"MemoryError", None}
    # Those of the sweep that were run before were not run again.
    run_once = [row for row in rows if row["kind"] != "limit" or row["interval"] in (20_000, 300)]
    for row, (trial, given) in zip(run_once, trials, strict=True):
        timer = timers.get(row["design"], "cascading-wheel")
        assert trial == Trial(row["design"], timer, row["interval"], row["memory_bytes"])
        expected = traffic(row["load"], row["rate"], row["rate"] // 10, 9)
        assert given.services.tolist() == expected.services.tolist()
        assert row["requests"] == row["rate"] // 10
    parameters = asdict(options)
    assert stored.manifest["command"] == list(parameters.pop("command"))
    assert stored.manifest["parameters"] == json.loads(json.dumps(parameters))
    assert stored.manifest["machine"]["cores"] > 0
    assert [*stored.manifest["tasks"]] == ["rate", "limit", "memory"]


def test_the_median_row_of_trials_has_each_median_and_the_first_failure():
    figures = [(3, 5.0, None), (9, None, "lost"), (4, 0.0, "other")]
    row = median_row(
        [
            dict.fromkeys(FIGURES)
            | {"rate": 7, "cpu_us": cpu, "late_p99_ms": late, "failed": failed}
            for cpu, late, failed in figures
        ]
    )
    assert (row["rate"], row["cpu_us"], row["late_p99_ms"]) == (7, 4, 2.5)
    assert (row["failed"], row["gc_us"]) == ("lost", None)


@pytest.mark.parametrize(
    ("achieved", "late", "failed", "expected"),
    [
        (9500.0, 200.0, None, True),
        (9499.0, 1.0, None, False),
        (10000.0, 201.0, None, False),
        (10000.0, None, None, True),  # no request timed out, or none was timed
        (10000.0, 1.0, "MemoryError", False),
        (None, None, "the process ended with exit code -9", False),
    ],
)
def test_a_design_keeps_up_if_it_is_in_time_and_fails_nothing(achieved, late, failed, expected):
    row = {"rate": 10_000, "achieved": achieved, "late_p99_ms": late, "failed": failed}
    assert keeps_up(row) is expected
    assert mostly_keeps_up([row, row, row | {"failed": "x"}]) is expected
    assert not mostly_keeps_up([row, row | {"failed": "x"}])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rates": ()}, ParameterError, "no rate is given"),
        ({"rates": (99,)}, ParameterError, "rate must lie in [100, 10000000], not 99"),
        ({"rates": (100, 10**7 + 1)}, ParameterError, "rate must lie in [100, 10000000], not 1"),
        ({"limits": (-1,)}, ParameterError, "limit must lie in [0, 10000000], not -1"),
        ({"memory_mib": 0}, ParameterError, "memory must lie in [1, 1048576], not 0"),
        ({"repeats": 0}, ParameterError, "repeats must lie in [1, 1000], not 0"),
        ({"refinements": 11}, ParameterError, "refinements must lie in [0, 10], not 11"),
        ({"seed": -1}, ParameterError, "seed must lie in [0, 9223372036854775807], not -1"),
        ({"seconds": 0.05}, ParameterError, "seconds must lie in [0.1, 250] at a rate of 40000"),
        ({"seconds": 251.0}, ParameterError, "a rate of 40000, not 251"),
        ({"timer": "no-such"}, UnknownTimerError, "no-such"),
        ({"timer": "heapq-delay-queue"}, ParameterError, "is not a compiled timer without"),
        ({"timer": "hashed-wheel/tick=1us"}, ParameterError, "is not a compiled timer without"),
        ({"runs": "/dev/null/x"}, RunError, "cannot store runs"),
    ],
)
def test_options_that_cannot_be_used_are_refused_before_anything_runs(
    trials, options, change, error, message
):
    with pytest.raises(error) as caught:
        run_experiment(replace(options, **change))
    assert message in str(caught.value)
    assert not trials
