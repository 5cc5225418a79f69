"""Runs that are contributed: which ones, where they go, and what the command says."""

import json
import shutil

import pytest

from compare.cli.main import BAD_INPUT, main
from compare.trial.results.contributed import (
    MOST_BYTES,
    contribute,
    contributed,
    folder_of,
    machine_title,
)
from compare.trial.results.store import MANIFEST, RunError, read_run
from tests.reports.synthetic import write_synthetic
from tests.words import one_line


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    timers = ("delay-queue", "cascading-wheel")
    return write_synthetic(tmp_path_factory.mktemp("runs"), timers, (1_000, 10_000), ("uniform",))


@pytest.fixture
def path(stored, tmp_path):
    """A copy of a run that may be contributed."""
    return shutil.copytree(stored, tmp_path / "runs" / stored.name)


def changed(path, **entries):
    """The run with other entries in its manifest."""
    manifest = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(manifest | entries))
    return read_run(path)


def test_a_contributed_run_is_read_as_it_was_stored(path, tmp_path):
    run = read_run(path)
    target = contribute(run, tmp_path / "results")
    assert target == tmp_path / "results" / folder_of(run)
    assert target.parent.name == "example-cpu-2-60ghz-2-cores"
    assert target.name.endswith("-0123456")
    [again] = contributed(tmp_path / "results")
    assert (again.rows, again.manifest) == (run.rows, run.manifest)
    with one_line(RunError, "exists already$"):
        contribute(run, tmp_path / "results")


def test_the_newest_run_comes_first(path, tmp_path):
    """By when it was measured: the files of a fresh clone are all of one moment."""
    days = ("2026-11-02", "2026-11-28", "2026-11-09")
    for day in days:
        contribute(changed(path, created=f"{day}T12:00:00+00:00"), tmp_path / "results")
    created = [run.manifest["created"][:10] for run in contributed(tmp_path / "results")]
    assert created == sorted(days, reverse=True)
    assert contributed(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"kind": "claims"}, "is of kind 'claims'"),
        ({"commit": None}, "names no commit"),
        ({"dirty": True}, "files that were changed after their commit"),
        ({"peers": [{"name": "./my-peer"}]}, "figures on ./my-peer, which is not a peer"),
        (
            {"sources": [{"name": "secret", "details": {}, "description": {"log": "x"}}]},
            "figures on secret, a trace of your own",
        ),
        ({"contestants": [{"timer": "mine:Wheel"}]}, "mine:Wheel, which is not a timer"),
    ],
)
def test_what_others_cannot_repeat_is_refused(path, tmp_path, entries, says):
    with one_line(RunError, says):
        contribute(changed(path, **entries), tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_large_or_unfinished_run_is_refused(path, tmp_path):
    run = read_run(path)
    unfinished = changed(path, tasks={"all": None, "callers": None})
    with one_line(RunError, "is not finished; callers is missing$"):
        contribute(unfinished, tmp_path / "results")
    with (path / "all.parquet").open("ab") as file:
        file.truncate(MOST_BYTES + 1)
    with one_line(RunError, r"bytes; at most 300,000 are stored"):
        contribute(run, tmp_path / "results")


def test_the_command_says_what_to_send(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["contribute"]) == 0
    out = capsys.readouterr().out
    target = f"results/{folder_of(read_run(path))}"
    assert f"git add {target}" in out
    assert "machine   Example CPU @ 2.60GHz, 2 cores\n" in out
    assert all(len(line) <= 80 or target in line for line in out.splitlines())
    assert main(["contribute"]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["contribute", "nowhere"]) == BAD_INPUT


def test_a_machine_of_which_little_is_known():
    assert machine_title({"machine": {}}) == "unknown processor"
    assert machine_title({"machine": {"cpu": None, "platform": "X", "cores": 1}}) == "X, 1 core"
