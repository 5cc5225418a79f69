"""`wheelwork purgatory`, with made-up trials: what it prints, stores and refuses."""

import itertools
import json

import pytest

from compare.bench.store import latest_run, read_run
from compare.cli.main import main
from compare.purgatory import experiment

QUICKLY = ("purgatory", "--quick", "--rates", "1e4,2e4", "--seconds", "0.1", "--requests", "300")


@pytest.fixture(autouse=True)
def made_up(monkeypatch, tmp_path):
    """Trials in which the old design fails at 20,000/s, and when there is little memory."""

    def measure(trial, traffic):
        rate = round(len(traffic.arrivals) / 0.1)
        old = trial.design == "scanning"
        return {
            "requests": len(traffic.arrivals),
            "achieved": 0.9 * rate if old and rate > 10_000 else float(rate),
            "cpu_us": 12.34,
            "gc_us": 1.5,
            "peak_bytes": 3 << 20,
            "late_p50_ms": None if trial.design == "none" else 1.0,
            "late_p99_ms": None if trial.design == "none" else 25.4,
            "late_max_ms": None if trial.design == "none" else 12_345.6,
            "share_expired": None if trial.design == "none" else 0.0787,
            "estimated_total": 1234.5 if trial.design == "purging" else None,
            "exact_total": 1230.0 if trial.design == "purging" else None,
            "estimate_error": 17.0 if trial.design == "purging" else None,
            "failed": "MemoryError" if old and trial.memory_bytes else None,
        }

    monkeypatch.setattr(experiment, "measure", measure)
    monkeypatch.chdir(tmp_path)


def test_the_text_fits_and_says_what_was_found(capsys):
    assert main(QUICKLY) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 80  # the last line is a path
    assert "Keeps up with, load low: new 20,000/s or more, old 10,000/s" in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "high old 20,000 18,000 12.3 1.5 3.0 1/25/12346 7.9%" in rows
    assert "low old* 1,000,000 18,000 12.3 1.5 3.0 1/25/12346 7.9%" in rows
    assert "* failed: MemoryError" in rows
    assert "low new 20,000 1,234 1,230 17" in rows
    assert out.splitlines()[-1] == f"stored in {latest_run('runs')}"


def test_a_design_that_keeps_up_with_no_rate_is_said_to(capsys):
    assert main(["purgatory", "--quick", "--rates", "2e4", "--seconds", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "load low: new 20,000/s or more, old none of the rates tried\n" in out
    assert max(map(len, out.splitlines()[:-1])) <= 80


def test_repeated_trials_are_one_row_with_their_median_and_range(capsys, monkeypatch):
    once, cpu = experiment.measure, itertools.cycle([20.0, 9.96, 12.34])
    monkeypatch.setattr(experiment, "measure", lambda *a: once(*a) | {"cpu_us": next(cpu)})
    assert main([*QUICKLY, "--repeats", "3"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert rows.count("low new 10,000 10,000 12.3 10.0..20 1.5 3.0 1/25/12346 7.9%") == 1
    assert rows.count("low new 20,000 1,234 1,230 17") == 1


def test_json_has_every_trial_and_nothing_else(capsys):
    assert main([*QUICKLY, "--json", "--out", "elsewhere"]) == 0
    found = json.loads(capsys.readouterr().out)
    run = read_run(latest_run("elsewhere"))
    assert found == {
        "run": str(run.path),
        "trials": run.purgatory.to_pylist(maps_as_pydicts="strict"),
    }
    assert run.manifest["command"] == ["wheelwork", *QUICKLY, "--json", "--out", "elsewhere"]


def test_what_is_not_given_is_that_of_quick(capsys):
    assert main([*QUICKLY, "--memory", "7", "--limits", "5000"]) == 0
    parameters = read_run(latest_run("runs")).manifest["parameters"]
    asked = {"rates": [10_000, 20_000], "seconds": 0.1, "memory_mib": 7, "limits": [5000]}
    assert parameters.items() >= (asked | {"repeats": 1, "refinements": 0, "seed": 0}).items()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rates", "5", "rate must lie in [100, 10000000], not 5"),
        ("--rates", "fast", "not a positive whole number"),
        ("--timer", "no-such", "no-such"),
        ("--refinements", "-1", "refinements must lie in [0, 10], not -1"),
    ],
)
def test_nonsense_is_one_line(capsys, tmp_path, option, value, message):
    assert main([*QUICKLY, option, value]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())
