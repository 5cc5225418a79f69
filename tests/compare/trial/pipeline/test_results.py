"""Results on disk: opened as they were written, and refused where they are damaged."""

import json

import pytest

from compare.base.files import MANIFEST
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import ResultsError, open_results
from compare.trial.pipeline.summarise import outcomes_of
from tests.compare.trial.pipeline.contents import rows_of
from tests.words import one_line

TIMERS = ["hashed-wheel/tick=7ms", "heapq-delay-queue"]
SHARDS = 4


@pytest.fixture
def results(tmp_path):
    tapes = (make("keepalive", operations=10 + shard, shard=shard).tape for shard in range(SHARDS))
    trace = write_trace(tmp_path / "of.trace", tapes, unit="us", source={"kind": "test"})
    return replay_trace(trace, TIMERS, tmp_path / "results")


def changed(results, **entries):
    """Another manifest; None removes an entry."""
    manifest = json.loads((results.path / MANIFEST).read_text()) | entries
    left = {name: value for name, value in manifest.items() if value is not None}
    (results.path / MANIFEST).write_text(json.dumps(left))


def refused(results, says):
    with one_line(ResultsError, says):
        open_results(results.path)


def test_results_are_opened_as_they_were_written(results):
    opened = open_results(results.path)
    assert opened == results
    assert [timer.label for timer in opened.contestants] == TIMERS


def test_outcomes_are_those_of_each_timer_over_all_shards(results):
    first, second = outcomes_of(results)
    assert [first.label, second.label] == TIMERS
    engines = {row["outcome"]["engine"] for row in rows_of(results.expiries) if row["outcome"]}
    assert engines == {"compiled", "python loop"}
    for each in (first, second):
        assert each.outcome.operations == 10 + 11 + 12 + 13
        assert (len(each.samples), each.check) == (SHARDS, None)


def test_results_of_another_trace_are_refused(results):
    path = results.trace.path
    write_trace(path, [results.trace.load(0)], unit="us", source={"kind": "other"}, force=True)
    refused(results, "of.trace is not the trace that was replayed for")
    path.rename(path.with_name("moved.trace"))
    refused(results, "the trace of .* cannot be opened: .*of.trace does not exist")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"version": 4}, "has version 4, of an older release; this release reads 5"),
        ({"timers": ["delay-queue"]}, "each of timers must have a name and settings"),
        ({"timers": [{"name": "delay-queue"}]}, "each of timers must have a name and settings"),
        ({"timers": None}, "timers is missing or not a list"),
        ({"run": "../of.trace"}, "run '../of.trace' is not the name of a run"),
        ({"trace": {"path": "of.trace"}}, "trace must have a path and a digest"),
        *(
            ({flag: None}, f"{flag} is missing or not a boolean")
            for flag in ("expiries", "drained", "counting", "checked")
        ),
    ],
)
def test_a_damaged_manifest_is_refused(results, entries, says):
    changed(results, **entries)
    refused(results, says)
