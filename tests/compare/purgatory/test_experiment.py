"""The whole experiment, with trials that are made up: what is run, kept and refused."""

from collections import Counter
from dataclasses import replace

import pytest

from compare.bench.store import SCHEMAS, RunError, read_run
from compare.purgatory import experiment
from compare.purgatory.experiment import ExperimentError, run_experiment
from compare.purgatory.figures import PURGING, SCANNING, keeps_up, middle, saturation
from compare.purgatory.options import QUICK
from timers.errors import UnknownTimerError

CAN = {"none": 10**9, PURGING: 90_000, SCANNING: 30_000}
"""Requests in a second that the made-up designs can do."""


@pytest.fixture
def trials(monkeypatch):
    """Replaces the trials in real time; the list of those that were asked for."""
    asked = []

    def measure(trial, traffic):
        rate = len(traffic.arrivals) / 0.1
        asked.append((trial, rate))
        return {
            "requests": len(traffic.arrivals),
            "achieved": min(rate, CAN[trial.design]),
            "late_p99_ms": 3.0,
            "failed": "MemoryError" if trial.memory_bytes and trial.design == SCANNING else None,
        }

    monkeypatch.setattr(experiment, "measure", measure)
    return asked


@pytest.fixture
def options(tmp_path):
    return replace(QUICK, seconds=0.1, requests=500, repeats=3, runs=str(tmp_path / "runs"))


def test_rates_rise_until_a_design_cannot_keep_up_and_are_refined(trials, options):
    path = run_experiment(replace(options, rates=(80_000, 20_000, 40_000), refinements=2))
    rows = read_run(path).purgatory.to_pylist()
    ladder = {
        design: Counter(
            row["rate"]
            for row in rows
            if (row["kind"], row["load"], row["design"]) == ("rate", "low", design)
        )
        for design in CAN
    }
    assert {design: list(rates.items()) for design, rates in ladder.items()} == {
        "none": [(20_000, 3), (40_000, 3), (80_000, 3)],
        PURGING: [(20_000, 3), (40_000, 3), (80_000, 3)],
        SCANNING: [(20_000, 3), (40_000, 2), (28_000, 3), (33_000, 2)],  # two failures settle it
    }
    assert (
        saturation(rows)
        == saturation(rows[::-1])
        == {
            (load, design): found
            for load in ("low", "high")
            for design, found in ((PURGING, (80_000, False)), (SCANNING, (28_000, True)))
        }
    )


@pytest.mark.parametrize(
    ("can", "rates", "tried"),
    [(300, (200, 400), [200, 400]), (30_000, (30_000, 32_000), [30_000, 32_000, 31_000])],
)
def test_rates_that_are_close_are_not_refined(monkeypatch, trials, options, can, rates, tried):
    monkeypatch.setitem(CAN, SCANNING, can)
    path = run_experiment(replace(options, rates=rates, refinements=2))
    rows = read_run(path).purgatory.to_pylist()
    found = [row["rate"] for row in rows if (row["kind"], row["design"]) == ("rate", SCANNING)]
    assert list(dict.fromkeys(found)) == tried


def test_a_disturbed_trial_does_not_end_the_ladder(monkeypatch, trials, options):
    calm = experiment.measure
    disturbed = []

    def measure(trial, traffic):
        found = calm(trial, traffic)
        if trial.design == PURGING and not disturbed:
            disturbed.append(found | {"late_p99_ms": 300.0})
            return disturbed[0]
        return found

    monkeypatch.setattr(experiment, "measure", measure)
    rows = read_run(run_experiment(options)).purgatory.to_pylist()
    found = [
        (row["rate"], row["late_p99_ms"])
        for row in rows
        if (row["kind"], row["load"], row["design"]) == ("rate", "low", PURGING)
    ]
    assert found == [(10_000, 300.0)] + [(10_000, 3.0)] * 2 + [(40_000, 3.0)] * 3
    assert saturation(rows)["low", PURGING] == (40_000, False)


def test_the_run_has_every_kind_of_trial_and_what_they_found(trials, options):
    run = read_run(run_experiment(options))
    rows = run.purgatory.to_pylist(maps_as_pydicts="strict")
    assert list(dict.fromkeys(row["kind"] for row in rows)) == [
        "compiled",
        "rate",
        "limit",
        "memory",
    ]
    assert [row["interval"] for row in rows if row["kind"] == "limit"][:: options.repeats] == [
        1000,
        *options.limits,
    ]
    new = [trial for trial, rate in trials if (trial.design, rate) == (PURGING, 40_000)]
    assert len(new) == 3 * options.repeats  # both loads, and with little memory; not for the sweep
    little = [row for row in rows if row["kind"] == "memory"]
    assert [
        (row["design"], row["failed"], row["interval"]) for row in little[:: options.repeats]
    ] == [
        (SCANNING, "MemoryError", max(options.limits)),
        (PURGING, None, 1000),
    ]
    assert {row["memory_bytes"] for row in little} == {8 << 20}
    compiled = [row for row in rows if row["kind"] == "compiled"]
    assert all(row["counters"]["most_pending"] > 0 and row["cpu_us"] > 0 for row in compiled)
    assert len(compiled) == 2 * 2 * 2 * options.repeats  # loads, designs, rates
    assert run.manifest["parameters"]["seconds"] == 0.1
    assert run.samples.num_rows == run.replays.num_rows == 0


def test_the_middle_of_trials_has_each_median_and_the_first_failure():
    figures = [(3, 5.0, None), (9, None, "lost"), (4, 1.0, "other")]
    found = middle(
        [
            dict.fromkeys(SCHEMAS["purgatory"].names)
            | {"rate": 7, "cpu_us": cpu, "late_p99_ms": late, "failed": failed}
            for cpu, late, failed in figures
        ]
    )
    assert (found["rate"], found["cpu_us"], found["late_p99_ms"]) == (7, 4, 3.0)
    assert (found["failed"], found["gc_us"]) == ("lost", None)


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


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rates": ()}, ExperimentError, "no rate is given"),
        ({"rates": (99,)}, ExperimentError, "rate must lie in [100, 10000000], not 99"),
        ({"limits": (-1,)}, ExperimentError, "limit must lie"),
        ({"seconds": 0.05}, ExperimentError, "seconds must lie in [0.1, 250] at a rate of 40000"),
        ({"seconds": 251.0}, ExperimentError, "seconds must lie"),
        ({"timer": "no-such"}, UnknownTimerError, "no-such"),
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
