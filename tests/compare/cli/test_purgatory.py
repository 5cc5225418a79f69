"""`wheelwork purgatory`, with made-up trials: what it prints and stores."""

import json

import pytest

from compare.cli.commands.purgatory import sheets_of
from compare.cli.text import shown
from compare.trial.purgatory import experiment, figures
from compare.trial.results.store import latest_run, read_run
from tests.reports.trials import trials

QUICKLY = ("purgatory", "--quick", "--rates", "1e4,2e4", "--seconds", "0.1")


def trials_of(run):
    return figures.trials_of(run.rows)


def test_a_run_is_stored_and_printed(said, monkeypatch):
    cpu = iter([10.0, 13.0] * 100)

    def measure(trial, traffic):
        requests = len(traffic.arrivals)
        return {"requests": requests, "achieved": requests / 0.1, "cpu_us": next(cpu)}

    monkeypatch.setattr(experiment, "measure", measure)
    code, out, err = said(*QUICKLY)
    run = read_run(latest_run("runs"))
    assert (code, err) == (0, "")
    noise = "Noise unknown: each measurement has only one sample."
    assert out == f"{noise}\n\n{shown(sheets_of(trials_of(run)))}\n\nstored in {run.path}\n"
    code, out, _ = said(*QUICKLY, "--markdown")
    assert (code, out.count("\n| low  new |")) == (0, 4)
    assert out.startswith(f"{noise}\n\n### Real time, rising rates,")
    line = [*QUICKLY, "--repeats", "2", "--json", "--out", "elsewhere"]
    printed = json.loads(said(*line)[1])
    run = read_run(latest_run("elsewhere"))
    noise = {"score": pytest.approx(0.3), "processor_share": None, "busy": False}
    assert printed == {"run": str(run.path), "noise": noise, "trials": trials_of(run)}
    assert run.manifest["command"] == ["wheelwork", *line]


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
high old 10,000 8,000 33.0 3.3 33.0 8/33/99 3.3%
high old 40,000 32,000 34.0 3.4 34.0 8/34/102 3.4%

Sustained rate, load low: new 40,000/s or more, old 10,000/s
Sustained rate, load high: new 10,000/s, old none of the rates tried

Requests in the lists
rate estimated total exact largest difference
low new 10,000 2,700 2,701 27
low new 40,000 2,800 2,801 28
high new 10,000 3,100 3,101 31
high new 40,000 3,200 3,201 32

Reaper limits: load low at 10,000/s
limit achieved CPU GC MiB late out
low new 1,000 10,000 35.0 10.0..40 3.5 35.0 9/35/105 3.5%
low old 1,000 10,000 36.0 3.6 36.0 9/36/108 3.6%
low old 100,000 10,000 37.0 3.7 37.0 9/37/111 3.7%

Little memory: load low at 10,000/s, 16 MiB more than at the start
limit achieved CPU GC MiB late out
low old* 100,000 10,000 38.0 3.8 38.0 10/38/114 3.8%
low new 1,000 10,000 39.0 3.9 39.0 10/39/117 3.9%
* failed: MemoryError
"""


def test_each_figure_is_in_its_own_place():
    rows = trials()
    for row in rows:
        match row["kind"], row["load"], row["design"], row["rate"]:
            case "rate", "high", "purging", 40_000:
                row["achieved"] = 20_000.0
            case "rate", "high", "scanning", 10_000:
                row["achieved"] = 8_000.0
    (once,) = (row for row in rows if (row["kind"], row["design"]) == ("limit", "purging"))
    rows += [once | {"cpu_us": 9.96}, once | {"cpu_us": 40.0}]  # the median is that of one row
    text, legend = shown(sheets_of(rows)).split("\n\nCPU: ")
    assert max(map(len, [*text.splitlines(), *legend.splitlines()])) <= 80
    assert [" ".join(line.split()) for line in text.splitlines()] == TEXT.splitlines()
