"""`wheelwork purgatory`, with made-up trials: what it prints, stores and refuses."""

import itertools
import json
from dataclasses import replace

import pytest

from compare.bench.store import latest_run, read_run
from compare.cli.commands.purgatory import text_of
from compare.cli.main import main
from compare.purgatory import experiment
from compare.purgatory.options import QUICK, Experiment
from tests.reports.trials import trials

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
    assert "Sustained rate, load low: new 20,000/s or more, old 10,000/s" in out
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
    printed = json.loads(capsys.readouterr().out)
    run = read_run(latest_run("elsewhere"))
    assert printed == {
        "run": str(run.path),
        "trials": run.purgatory.to_pylist(maps_as_pydicts="strict"),
    }
    assert run.manifest["command"] == ["wheelwork", *QUICKLY, "--json", "--out", "elsewhere"]


ALL = {
    "rates": "300,500",
    "seconds": "0.5",
    "refinements": "0",
    "limits": "5000",
    "memory": "7",
    "requests": "40",
    "repeats": "2",
    "timer": "delay-queue",
    "seed": "9",
}


@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_each_option_sets_its_own_parameter(monkeypatch, quick):
    asked = []

    def run_experiment(options):
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run_experiment", run_experiment)
    line = ("purgatory", *quick, "--out", "there")
    main([*line, *(f"--{name}={value}" for name, value in ALL.items())])
    for name, value in ALL.items():
        main([*line, f"--{name}", value])
    main(["purgatory", *quick])
    together, *alone, nothing = asked
    wanted = {name: float(value) for name, value in ALL.items() if value.isdigit()}
    wanted |= {"memory_mib": wanted.pop("memory"), "timer": "delay-queue", "seconds": 0.5}
    wanted |= {"rates": (300, 500), "limits": (5000,), "runs": "there"}
    everything = vars(together).copy()
    assert everything.pop("command")[:2] == ("wheelwork", "purgatory")
    assert everything == wanted
    default = QUICK if quick else Experiment()
    assert nothing == replace(default, command=("wheelwork", "purgatory", *quick))
    for name, options in zip(ALL, alone, strict=True):
        field = "memory_mib" if name == "memory" else name
        changed = {field: wanted[field], "runs": "there", "command": options.command}
        assert options == replace(default, **changed)


TEXT = """\
Real time, rising rates, three threads of one process; medians
rate achieved CPU GC MiB late out
low none 10,000 10,000 25.0 2.5 25.0 - -
low none 40,000 40,000 26.0 2.6 26.0 - -
low new 10,000 10,000 27.0 2.7 27.0 7/27/81 2.7%
low new 40,000 40,000 28.0 2.8 28.0 7/28/84 2.8%
low old 10,000 10,000 29.0 2.9 29.0 7/29/87 2.9%
low old 40,000 32,000 30.0 3.0 30.0 8/30/90 3.0%
high new 10,000 10,000 31.0 3.1 31.0 8/31/93 3.1%
high new 40,000 20,000 32.0 3.2 32.0 8/32/96 3.2%
high old 10,000 10,000 33.0 3.3 33.0 8/33/99 3.3%
high old 40,000 32,000 34.0 3.4 34.0 8/34/102 3.4%

Sustained rate, load low: new 40,000/s or more, old 10,000/s
Sustained rate, load high: new 10,000/s, old 10,000/s

Requests in the lists
rate estimated total exact largest difference
low new 10,000 2,700 2,701 27
low new 40,000 2,800 2,801 28
high new 10,000 3,100 3,101 31
high new 40,000 3,200 3,201 32

Reaper limits: load low at 10,000/s
limit achieved CPU GC MiB late out
low new 1,000 10,000 35.0 3.5 35.0 9/35/105 3.5%
low old 1,000 10,000 36.0 3.6 36.0 9/36/108 3.6%
low old 100,000 10,000 37.0 3.7 37.0 9/37/111 3.7%

Little memory: load low at 10,000/s, 16 MiB more than at the start
limit achieved CPU GC MiB late out
low old* 100,000 10,000 38.0 3.8 38.0 10/38/114 3.8%
low new 1,000 10,000 39.0 3.9 39.0 10/39/117 3.9%
* failed: MemoryError

Compiled, simulated time, one core
rate ns each M/s scanned each most queued out
low new 10,000 200 5.00 3.0 10,000 1.0%
low new 40,000 400 2.50 6.0 40,003 2.0%
low old 10,000 600 1.67 9.0 10,006 3.0%
low old 40,000 800 1.25 12.0 40,009 4.0%
high new 10,000 1,000 1.00 15.0 10,012 5.0%
high new 40,000 1,200 0.83 18.0 40,015 6.0%
high old 10,000 1,400 0.71 21.0 10,018 7.0%
high old 40,000 0 - 24.0 40,021 8.0%
"""


def test_each_figure_is_in_its_own_place():
    rows = [row | {"counters": dict(row["counters"] or ())} for row in trials()]
    for row in rows:
        case = row["kind"], row["load"], row["design"], row["rate"]
        if case == ("rate", "high", "purging", 40_000):
            row["achieved"] = 20_000.0
        if case == ("compiled", "high", "scanning", 40_000):
            row["cpu_us"] = 0.0  # too few requests for the clock
    lines = [" ".join(line.split()) for line in text_of(rows).rpartition("\n\n")[0].splitlines()]
    assert lines == TEXT.splitlines()


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
