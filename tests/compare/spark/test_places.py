"""URIs of Spark and tables of its catalogs: complete or not seen, and never mixed."""

import shutil
from pathlib import Path

import pytest

import compare.trial.pipeline.replay
from compare.spark.engine import OnSpark
from compare.spark.failures import PipelineError
from compare.spark.places import read_description
from compare.traffic.logs.ingest import ingest_requests
from compare.traffic.tapes.places import open_far
from compare.traffic.tapes.trace import TraceError, blocks_dataset, open_trace
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import ResultsError, open_results
from compare.trial.pipeline.summarise import outcomes_of, summarise
from compare.trial.pipeline.verify import checked, verify
from tests.words import one_line
from timers.errors import TimerError

pytestmark = pytest.mark.spark

TIMERS = ["delay-queue", "hashed-wheel/tick=5ms"]
AMOUNT = {"operations": 600, "shards": 2}


@pytest.fixture(params=["uri", "table"])
def place(request, spark, tmp_path):
    """Names a place of Spark under the temporary directory."""
    if request.param == "uri":
        yield lambda name: f"{tmp_path.as_uri()}/{name}"
        return
    database = f"db_{tmp_path.name.replace('[', '_').replace(']', '_').replace('-', '_')}"
    spark.sql(f"CREATE DATABASE `{database}` LOCATION '{tmp_path.as_uri()}/warehouse'")
    yield lambda name: f"table:{database}.{name}"
    spark.sql(f"DROP DATABASE `{database}` CASCADE")


@pytest.fixture
def near(tmp_path):
    """The same in directories."""
    trace = generate("uniform", tmp_path / "near" / "trace", **AMOUNT)
    return replay_trace(trace, TIMERS, tmp_path / "near" / "results", check=True)


def figures(run):
    rows = [row for row in run.rows if row.metric not in ("replay_time", "nbytes", "seconds")]
    return sorted(map(str, rows))


def test_every_stage_gives_what_it_gives_in_directories(spark, place, near, tmp_path):
    trace = generate("uniform", place("trace"), **AMOUNT, session=spark)
    assert (trace.place, trace.totals) == (place("trace"), near.trace.totals)
    results = replay_trace(trace, TIMERS, place("results"), check=True, session=spark)
    assert (results.place, results.manifest["trace"]["path"]) == (place("results"), place("trace"))
    assert verify(results.place, session=spark).timers == checked(near).timers
    run = summarise(results.place, tmp_path / "run", session=spark)
    assert figures(run) == figures(summarise(near.path))
    with one_line(ResultsError, "name a directory of this machine for the summary"):
        summarise(results.place, session=spark)
    # A trace of this machine can be replayed to a place of Spark.
    mixed = replay_trace(near.trace, TIMERS, place("mixed"), session=spark)
    assert verify(mixed.place, session=spark).passed


def test_the_same_again_is_returned_and_another_needs_force(spark, place, near, monkeypatch):
    first = replay_trace(near.trace, TIMERS[:1], place("results"), session=spark)
    with monkeypatch.context() as patch:
        patch.setattr(compare.trial.pipeline.replay, "_replay", None)
        assert replay_trace(near.trace, TIMERS[:1], place("results"), session=spark) == first
    with one_line(ResultsError, "another replay .the list of timers differs."):
        replay_trace(near.trace, TIMERS[1:], place("results"), session=spark)
    second = replay_trace(near.trace, TIMERS[1:], place("results"), force=True, session=spark)
    assert second.manifest["run"] != first.manifest["run"]
    assert verify(second.place, session=spark).passed
    engine = OnSpark(spark)
    assert [each.label for each in outcomes_of(second, engine)] == TIMERS[1:]


def test_a_taken_place_is_refused_and_force_replaces_it(spark, place):
    def made(**options):
        return generate("uniform", place("trace"), operations=10, session=spark, **options)

    first = made()
    with one_line(TraceError, "exists; pass --force"):
        made()
    assert made(force=True).run != first.run
    rows = OnSpark(spark).read(open_far(OnSpark(spark), place("trace")).blocks, 1)
    assert rows.count() == 1


def test_results_whose_trace_was_replaced_are_refused(spark, place):
    trace = generate("uniform", place("trace"), **AMOUNT, session=spark)
    replay_trace(trace, TIMERS[:1], place("results"), session=spark)
    generate("uniform", place("trace"), operations=50, force=True, session=spark)
    with one_line(ResultsError, "is not the trace that was replayed for"):
        verify(place("results"), session=spark)


def test_what_is_not_there_or_of_another_kind_is_one_line(spark, place, near):
    replay_trace(near.trace, TIMERS[:1], place("results"), session=spark)
    out = {"session": spark}
    with one_line(TraceError, "nowhere is not a trace, or does not exist"):
        replay_trace(place("nowhere"), TIMERS, place("out"), **out)
    with one_line(TraceError, "results is not the manifest of a trace"):
        replay_trace(place("results"), TIMERS, place("out"), **out)
    with one_line(ResultsError, "nowhere is not a stored replay, or does not exist"):
        verify(place("nowhere"), **out)
    with one_line(TimerError, "results is not the manifest of a trace"):
        generate("uniform", place("results"), operations=5, force=True, **out)
    assert verify(place("results"), **out).passed


def test_an_interrupt_leaves_nothing_that_is_seen(spark, place, near, tmp_path, monkeypatch):
    real = OnSpark.write

    def interrupted(self, rows, path, description):
        real(self, rows, path, description)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(OnSpark, "write", interrupted)
        replay_trace(near.trace, TIMERS[:1], place("results"), session=spark)
    assert read_description(spark, place("results")) is None
    assert not [file for file in tmp_path.rglob("*.parquet") if "near" not in file.parts]
    done = replay_trace(near.trace, TIMERS[:1], place("results"), session=spark)
    assert verify(done.place, session=spark).passed


def test_of_two_at_once_one_wins_and_the_other_is_told(spark, place, near, monkeypatch):
    """The second one begins and ends when the first one is about to write."""
    real, runs = OnSpark.write, []

    def again():
        return replay_trace(near.trace, TIMERS[:1], place("results"), session=spark)

    def overtaken(self, rows, path, description):
        if not runs:
            runs.append(None)
            runs[0] = again()
        real(self, rows, path, description)

    with monkeypatch.context() as patch:
        patch.setattr(OnSpark, "write", overtaken)
        with one_line(TimerError, "already exists"):
            again()
    assert open_results(place("results"), engine=OnSpark(spark)) == runs[0]
    assert verify(place("results"), session=spark).passed


def test_a_path_is_never_a_pattern(spark, near):
    """Whatever a name looks like, it is no pattern."""
    trace = open_trace(near.trace.path)
    path = Path(trace.blocks.path)
    copy = path.with_name("a {b} [c] *d")
    shutil.copytree(path, copy)
    assert OnSpark(spark).read(blocks_dataset(str(copy)), 2).count() == 2


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nosuch://bucket/trace", "nosuch"),
        ("table:a.b.c.d", "table:a.b.c.d does not name a table"),
        ("table:", "table: does not name a table"),
        ("table:nosuch.trace", "nosuch"),
        ("table:x; DROP TABLE y", "x; DROP TABLE y"),
    ],
)
def test_a_place_that_cannot_be_is_one_line(spark, place, says):
    with one_line(TimerError, says):
        generate("uniform", place, operations=5, session=spark)


def test_a_table_of_somebody_else_is_never_replaced(spark, place):
    if not place("t").startswith("table:"):
        pytest.skip("a URI has no table")
    name = place("theirs")
    spark.range(3).write.saveAsTable(name.removeprefix("table:"))
    for force in (False, True):
        with one_line((TraceError, PipelineError), "is not a table of this package"):
            generate("uniform", name, operations=5, force=force, session=spark)
    assert spark.table(name.removeprefix("table:")).count() == 3


def test_rejected_rows_of_a_table_are_a_table_beside_it(spark, place, tmp_path):
    if not place("t").startswith("table:"):
        pytest.skip("at a URI they are a dataset beside the blocks")
    log = tmp_path / "log.csv"
    log.write_text("t,d\n1,2\nx,3\n4,y\n5,9\n")
    name = place("logged").removeprefix("table:")
    meant = {"time": "t", "duration": "d", "timeout": "5s", "session": spark}
    done = ingest_requests(log, f"table:{name}", **meant)
    assert done.trace.totals["rows"] == 3  # one request is answered
    assert spark.table(f"{name}_rejected").count() == 2
    log.write_text("t,d\n1,2\n")
    ingest_requests(log, f"table:{name}", force=True, **meant)
    assert not spark.catalog.tableExists(f"{name}_rejected")
    assert done.trace.rejected == f"table:{name}_rejected"
    # One of somebody else is never replaced.
    spark.range(3).write.saveAsTable(f"{name}_rejected")
    for force in (False, True):
        with one_line((TraceError, PipelineError), "exists"):
            ingest_requests(log, f"table:{name}", force=force, **meant)
    assert spark.table(f"{name}_rejected").count() == 3
