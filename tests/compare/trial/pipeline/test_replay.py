"""Replays of shards: the same as each alone, complete or not there, and of whole traces only."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import compare.spark.engine
import compare.traffic.tapes.blocks
import compare.trial.pipeline.replay
from compare.base import stages
from compare.base.datasets import part_name, write_part
from compare.base.files import MANIFEST
from compare.traffic.tapes.tape import START
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import IDS_AT_ONCE, groups_of, replay_trace
from compare.trial.pipeline.results import ResultsError, open_results
from compare.trial.pipeline.summarise import outcomes_of as added_outcomes
from compare.trial.pipeline.summarise import summarise
from compare.trial.pipeline.verify import verify
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.engine import OPERATIONS_AT_ONCE, first_time, replay
from compare.trial.replay.outcome import outcome_of
from tests.compare.conftest import on_both
from tests.compare.interrupts import interrupt_when_one_has_ended
from tests.compare.own_timers import slow_timer
from tests.compare.small_tapes import tape_of
from tests.compare.trial.pipeline.contents import (
    expiries_of,
    outcomes_of,
    rewrite,
    rows_of,
    table_of,
)
from tests.words import one_line
from timers.errors import TimerError
from timers.kernels.jit import COMPILING

ROOT = Path(__file__).resolve().parents[4]
TIMERS = (
    "hierarchical-wheel",
    "hashed-wheel/tick=700",
    "hierarchical-wheel/tick=64us",
    "heapq-delay-queue",
)
PAIR = ("delay-queue", "heapq-delay-queue")


def write(path, *tapes):
    return write_trace(path, tapes, unit="us", source={"kind": "test"})


def uniform(path, shards, operations):
    return write(
        path, *(make("uniform", operations=operations, seed=k).tape for k in range(shards))
    )


@pytest.fixture(scope="module")
def small_blocks():
    """Blocks of 500 operations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare.traffic.tapes.blocks, "BLOCK", 500)
        yield


@pytest.fixture(scope="module")
def trace(tmp_path_factory, small_blocks):
    """Three shards; in the last one, timers are overdue when they are armed."""
    tapes = [make(name, operations=3_000, seed=4).tape for name in ("lognormal-high", "keepalive")]
    overdue = [
        (10 * k, START, k - 20, 10 * k + (500 if k % 9 else -10 * (k % 7) - 1))
        for k in range(20, 120)
    ]
    return write(tmp_path_factory.mktemp("replay") / "trace", *tapes, tape_of(*overdue))


@pytest.fixture
def copied(trace, tmp_path):
    """A copy of the trace, to be damaged."""
    path = tmp_path / "trace"
    shutil.copytree(trace.path, path)
    return open_trace(path)


@pytest.fixture(scope="module")
def results(trace):
    return replay_trace(trace, TIMERS, trace.path.with_name("results"), counting=True)


def comparable(outcome):
    """Without what varies: time, and the room that is reserved for as many as a batch arms."""
    return dataclasses.replace(outcome, seconds=0.0, nbytes=0)


def check_rows(results, rows=None, **options):
    """What is stored is what each timer does with the tape of each shard alone."""
    rows = rows_of(results.expiries) if rows is None else rows
    found = {}
    for row in rows:
        found.setdefault((row["contestant"], row["shard"]), []).append(row)
    shards = range(results.trace.totals["shards"])
    assert found.keys() == {(t.label, shard) for t in results.contestants for shard in shards}
    for timer in results.contestants:
        for shard in shards:
            tape, id_space = results.trace.load(shard), results.trace.shards[shard].id_space
            created = timer.new("us", first_time(tape), counting=results.manifest["counting"])
            expected = replay(created, tape, id_space, **options)
            pieces = found[timer.label, shard]
            assert [row["piece"] for row in pieces] == list(range(len(pieces)))
            *others, last = pieces
            assert all(row["outcome"] is None for row in others)
            assert last["outcome"]["engine"] == timer.engine
            assert comparable(outcome_of(last["outcome"])) == comparable(expected.outcome)
            for name in ("operation", "deadline", "fired_at"):
                values = [value for row in pieces for value in row[name]]
                assert values == expected.fired[name].tolist()


def test_each_shard_replay_is_what_replaying_alone_gives(results):
    check_rows(results)


@pytest.mark.spark
def test_spark_stores_the_same_rows(spark, results, trace, tmp_path):
    other = replay_trace(trace.path, TIMERS, tmp_path / "out", counting=True, session=spark)
    assert expiries_of(other) == expiries_of(results)
    assert outcomes_of(other) == outcomes_of(results)


def names_in(path):
    """The directories and files below, without the names of runs and parts."""
    return {
        "/".join(name.split("-")[0] for name in file.relative_to(path).parts)
        for file in path.rglob("*")
    }


def test_no_file_is_left_beside_the_results(results, trace):
    parts = {MANIFEST, "run", "run/expiries", "run/expiries/part"}
    assert names_in(results.path) == parts
    assert {path.name for path in trace.path.parent.iterdir()} == {"trace", "results"}


def test_the_manifest_says_what_was_replayed(results, trace):
    manifest = dict(results.manifest)
    made_by = manifest.pop("made_by")
    assert made_by.keys() > {"created", "command", "versions", "machine"}
    assert (made_by["executor"], made_by["master"]) == ("threads", None)
    assert manifest.pop("code")
    assert manifest.pop("run") in {path.name for path in results.path.iterdir()}
    assert manifest == {
        "format": "wheelwork-results",
        "version": 5,
        "unit": "us",
        "source": {"kind": "test"},
        "trace": {"path": str(trace.path), "digest": trace.manifest_digest},
        "timers": [
            {"name": "hierarchical-wheel", "settings": {}},
            {"name": "hashed-wheel", "settings": {"tick": 700}},
            {"name": "hierarchical-wheel", "settings": {"tick": "64us"}},
            {"name": "heapq-delay-queue", "settings": {}},
        ],
        "shards": 3,
        "expiries": True,
        "drained": True,
        "counting": True,
        "checked": False,
    }


def test_a_shard_may_have_no_more_rows_than_an_id_can_count(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(compare.trial.pipeline.replay, "MAX_ROWS", 3000)
    replay_trace(trace, PAIR[:1], tmp_path / "out")
    monkeypatch.setattr(compare.trial.pipeline.replay, "MAX_ROWS", 2999)
    says = "shard [01] has more rows than a replay counts, 2999"
    refused(ResultsError, says, trace, PAIR[:1], tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_summaries_alone_keep_no_expiries(trace, results, tmp_path):
    only = replay_trace(trace, TIMERS[:1], tmp_path / "out", expiries=False, counting=True)
    rows = rows_of(only.expiries)
    assert [(row["shard"], row["piece"], row["operation"]) for row in rows] == [
        (shard, 0, []) for shard in range(3)
    ]
    kept = outcomes_of(results)
    assert outcomes_of(only) == {(TIMERS[0], shard): kept[TIMERS[0], shard] for shard in range(3)}


def test_without_draining_what_is_pending_stays(trace, tmp_path):
    done = replay_trace(trace, ["simple-wheel"], tmp_path / "out", drained=False)
    assert outcomes_of(done)["simple-wheel", 0]["pending"] > 0
    check_rows(done, drain_timer=False)


@pytest.mark.parametrize(("rows", "at_once"), [(1, 1), (7, 3), (1 << 16, 16)])
def test_turns_and_pieces_change_no_expiry(trace, tmp_path, monkeypatch, rows, at_once):
    monkeypatch.setattr(compare.trial.pipeline.replay, "BLOCKS_AT_ONCE", at_once)
    # Private: the public way is a trace of millions of operations.
    monkeypatch.setattr(compare.trial.pipeline.replay, "_ROWS_AT_ONCE", rows)
    monkeypatch.setattr(compare.trial.pipeline.replay._Running.rows, "__defaults__", (rows,))
    made = replay_trace(trace, TIMERS, tmp_path / "out")
    check_rows(made)
    assert max(len(row["operation"]) for row in rows_of(made.expiries)) <= rows
    assert verify(made.path).passed


def test_a_timer_begins_at_the_first_operation(trace, tmp_path, monkeypatch):
    starts, new = set(), Contestant.new

    def noted(self, unit, start=0, **settings):
        starts.add(start)
        return new(self, unit, start, **settings)

    monkeypatch.setattr(Contestant, "new", noted)
    replay_trace(trace, TIMERS[:2], tmp_path / "out")
    first = [shard.first_time for shard in trace.shards]
    assert first[2] == 200
    assert starts == {0, *first}  # 0 is that of the compilation


def test_seconds_are_those_of_the_thread_alone(trace, tmp_path, monkeypatch):
    """Its clock stands still here; other threads run beside it."""
    clock = SimpleNamespace(thread_time=lambda: 7.0)
    monkeypatch.setattr(compare.trial.pipeline.replay, "time", clock)
    done = replay_trace(trace, TIMERS[:1], tmp_path / "out")
    assert [row["outcome"]["seconds"] for row in rows_of(done.expiries) if row["outcome"]] == (
        [0.0] * 3
    )


def test_timers_share_a_shard_as_long_as_there_are_groups_for_all():
    def sizes(timers, shards, id_space, workers, alone=()):
        names = ["heapq-delay-queue" if k in alone else "delay-queue" for k in range(timers)]
        contestants = [contestant(name) for name in names]
        groups = groups_of(contestants, shards, id_space, workers)
        # Each timer is in one group, in order.
        together = [t for group in groups for t in group if t.name == "delay-queue"]
        assert together == [t for t in contestants if t.name == "delay-queue"]
        assert sum(map(len, groups)) == timers
        return [len(group) for group in groups]

    assert sizes(4, 64, 100, 2) == [4]
    assert sizes(4, 2, 100, 2) == [2, 2]
    assert sizes(4, 1, 100, 2) == [1] * 4  # else some workers would have nothing to do
    assert sizes(5, 4, 100, 4) == [1, 2, 2]
    assert sizes(4, 64, IDS_AT_ONCE // 2 - OPERATIONS_AT_ONCE, 2) == [2, 2]
    assert sizes(4, 64, IDS_AT_ONCE, 2) == [1] * 4
    assert sizes(1, 64, 100, 2) == [1]
    assert sizes(4, 64, 100, 2, alone={1, 3}) == [2, 1, 1]
    # A timer takes some memory whatever its ids.
    assert max(sizes(200, 64, 0, 2)) <= IDS_AT_ONCE // OPERATIONS_AT_ONCE


def test_two_thousand_shards_take_a_few_seconds(tmp_path):
    """Each stage; nothing is done once for each shard that need not be."""
    trace = generate("uniform", tmp_path / "trace", operations=100_000, shards=2_000)
    assert len(list(trace.blocks.files)) == stages.PARTS
    done = replay_trace(trace, PAIR[:1], tmp_path / "results", check=True)
    assert verify(done.path).passed
    [outcome] = added_outcomes(done)
    assert (outcome.outcome.operations, len(outcome.samples)) == (100_000, 2_000)
    assert summarise(done.path).manifest["sources"][0]["shards"] == 2_000


# ---- traces that are not whole


def refused(error, match, *arguments, **options):
    with one_line(error, match):
        replay_trace(*arguments, **options)


def damages():
    """What changes the table of blocks, and what is said."""

    def without(shard, block):
        def change(table):
            rows = zip(table["shard"].to_pylist(), table["block"].to_pylist(), strict=True)
            return table.filter(pa.array([row != (shard, block) for row in rows]))

        return change

    def twice(table):
        return pa.concat_tables([table, table.slice(1, 1)])

    def two_runs(table):
        return pa.concat_tables([table, table])

    def other_end(table):
        rows = table.to_pylist()
        rows[5]["end"]["starts"] += 1
        return pa.Table.from_pylist(rows, table.schema)

    def backwards(table):
        rows = table.to_pylist()
        rows[1]["time"][7] = 0
        return pa.Table.from_pylist(rows, table.schema)

    def nowhere(table):
        rows = table.to_pylist()
        rows[1]["block"] = None
        return pa.Table.from_pylist(rows, table.schema)

    def without_times(table):
        rows = table.to_pylist()
        rows[1]["time"] = None
        return pa.Table.from_pylist(rows, table.schema)

    def null_inside(table):
        rows = table.to_pylist()
        rows[1]["deadline"][3] = None
        return pa.Table.from_pylist(rows, table.schema)

    def fewer_times(table):
        rows = table.to_pylist()
        rows[1]["time"].pop()
        return pa.Table.from_pylist(rows, table.schema)

    return {
        "fewer-times": (fewer_times, "shard 0 of the trace: "),
        "lacks-a-block": (without(1, 2), "shard 1 of the trace lacks block 2"),
        "lacks-the-first": (without(0, 0), "shard 0 of the trace lacks block 0"),
        "lacks-the-last": (without(0, 5), "shard 0 of the trace ends after block 4: others are"),
        "block-twice": (twice, "shard 0 of the trace has block 1 twice"),
        "two-runs": (two_runs, "shard [012] of the trace has block 0 twice"),
        "lacks-a-shard": (without(2, 0), "has outcomes of 2 of 3 shards"),
        "other-end": (other_end, r"starts is \d+; its last block says \d+"),
        "backwards": (backwards, "shard 0 of the trace: row 507: time"),
        "nowhere": (nowhere, "has a row without block"),
        "without-times": (without_times, "shard 0 of the trace: block 1 lacks a value of time"),
        "null-inside": (null_inside, "shard 0 of the trace: block 1 lacks a value of deadline"),
    }


DAMAGES = damages()


ON_SPARK = ("lacks-a-block", "two-runs", "lacks-a-shard", "nowhere", "null-inside")
"""Each takes Spark four tries."""


@pytest.mark.parametrize(
    ("name", "where"),
    [
        *((name, "threads") for name in DAMAGES),
        *(pytest.param(name, "spark", marks=pytest.mark.spark) for name in ON_SPARK),
    ],
    indirect=["where"],
)
def test_blocks_that_are_not_a_whole_trace_are_one_line(where, copied, tmp_path, name):
    change, says = DAMAGES[name]
    rewrite(copied.blocks, change(table_of(copied.blocks)))
    refused(TimerError, says, copied.path, PAIR[:1], tmp_path / "out", **where)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


@on_both
def test_the_order_of_rows_and_files_does_not_matter(where, copied, results, tmp_path):
    """It is found, not assumed."""
    table = table_of(copied.blocks)
    number = table.num_rows
    order = [(5 * row) % number for row in range(number)]
    assert sorted(order) == list(range(number)), "5 divides the number of blocks"
    mixed = table.take(order)
    rewrite(copied.blocks, mixed.slice(0, 4), mixed.slice(4, 0), mixed.slice(4))
    assert copied.load(1).time.tolist() == results.trace.load(1).time.tolist()
    made = replay_trace(copied.path, TIMERS, tmp_path / "out", counting=True, **where)
    assert expiries_of(made) == expiries_of(results)
    assert outcomes_of(made) == outcomes_of(results)


@on_both
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_one_line(where, copied, tmp_path, damage):
    [file] = copied.blocks.files
    data = bytearray(file.read_bytes())
    if damage == "flipped":  # in the data of the first column of numbers
        with pa.parquet.ParquetFile(file) as opened:
            chunk = opened.metadata.row_group(0).column(2)
        data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    file.write_bytes({"cut": data[: len(data) // 2], "flipped": data, "empty": b""}[damage])
    # Spark does not always say which file it is, and it passes over empty ones.
    says = file.name if not where else f"{file.name}|CRC checksum|outcomes of no timer"
    refused(TimerError, says, copied.path, PAIR[:1], tmp_path / "out", **where)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


@on_both
@pytest.mark.parametrize("columns", ["others", "another-type"])
def test_a_file_of_other_columns_is_one_line(where, copied, tmp_path, columns):
    table = table_of(copied.blocks)
    if columns == "others":
        table = table.rename_columns([f"my_{name}" for name in table.column_names])
    else:
        times = pa.array([[str(t) for t in times] for times in table["time"].to_pylist()])
        table = table.set_column(2, "time", times)
    write_part(copied.path / copied.run / "blocks" / part_name(7), table.schema, table.to_batches())
    # Spark reads a column that is missing as null.
    says = "part-00007" if not where else "part-00007|a row without shard|time"
    refused(TimerError, says, copied.path, PAIR[:1], tmp_path / "out", **where)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"version": 2}, "has version 2, of an older release; this release reads 3"),
        ({"version": 4}, "has version 4; this release reads 3"),
        ({"format": "wheelwork-results"}, "is not the manifest of a trace"),
        ({"run": "../../elsewhere"}, "run '../../elsewhere' is not the name of a run"),
        ({"run": "run-0"}, "run-0/blocks is not a directory"),
    ],
)
def test_a_trace_of_another_version_or_kind_is_one_line(copied, tmp_path, entries, says):
    manifest = json.loads((copied.path / MANIFEST).read_text()) | entries
    (copied.path / MANIFEST).write_text(json.dumps(manifest))
    refused(TimerError, says, copied.path, PAIR[:1], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


# ---- failed or interrupted: nothing is left, and the same again works


FAILING = '''
    """A timer that cannot say when it wants to be woken."""
    from timers import HeapqDelayQueue

    class Failing(HeapqDelayQueue):
        def next_wakeup(self):
            raise ValueError("no wake-up")
'''


@on_both
def test_one_that_fails_leaves_nothing_of_those_beside_it(where, trace, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    (own / "failing.py").write_text(textwrap.dedent(FAILING))
    monkeypatch.syspath_prepend(str(own))
    compiled = compare.trial.pipeline.replay.compiled
    monkeypatch.setattr(
        compare.trial.pipeline.replay,
        "compiled",
        lambda timers, options: compiled(timers[:1], options),
    )
    with pytest.raises((ValueError, TimerError), match="no wake-up"):
        replay_trace(
            trace.path, [*TIMERS[:2], "failing:Failing"], tmp_path / "new" / "out", **where
        )
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_an_interrupt_in_the_middle_leaves_nothing(trace, tmp_path, monkeypatch):
    running = threading.Event()
    running.set()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_when_one_has_ended(patch, running)
        replay_trace(trace, TIMERS, tmp_path / "new" / "out")
    assert list(tmp_path.iterdir()) == []
    check_rows(replay_trace(trace, TIMERS, tmp_path / "new" / "out"))


@on_both
def test_an_interrupt_at_the_end_leaves_nothing(where, trace, results, tmp_path, monkeypatch):
    """All is written then but the description."""
    engine = compare.spark.engine.OnSpark if where else stages.Here
    real = engine.write

    def interrupted(self, rows, path, description):
        real(self, rows, path, description)
        assert list(Path(path).glob("*.parquet"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(engine, "write", interrupted)
        replay_trace(trace, TIMERS, tmp_path / "out", counting=True, **where)
    assert list(tmp_path.iterdir()) == []
    again = replay_trace(trace, TIMERS, tmp_path / "out", counting=True, **where)
    assert expiries_of(again) == expiries_of(results)


@on_both
def test_of_two_at_once_one_wins_and_the_other_is_told(where, trace, tmp_path, monkeypatch):
    """The second one begins and ends when the first one has written all but its description."""
    out, real, runs = tmp_path / "out", compare.trial.pipeline.replay.outcomes_of, []

    def overtaken(results, engine=None):
        if not runs:
            runs.append(None)
            runs[0] = replay_trace(trace, PAIR[:1], out, **where).manifest["run"]
        return real(results, engine)

    monkeypatch.setattr(compare.trial.pipeline.replay, "outcomes_of", overtaken)
    says = "cannot write .*out: another process has written it meanwhile"
    refused(ResultsError, says, trace, PAIR[:1], out, **where)
    assert open_results(out).manifest["run"] == runs[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.cluster
@pytest.mark.parametrize("options", [[], ["--master", "local[2]"]], ids=["threads", "spark"])
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGKILL, -9, ""),
        (signal.SIGINT, 130, "wheelwork: interrupted\n"),
        (signal.SIGTERM, 143, "wheelwork: terminated\n"),
    ],
    ids=["killed", "interrupted", "terminated"],
)
def test_a_command_that_is_ended_is_run_again(tmp_path, monkeypatch, number, code, said, options):
    marker, out, timers = (
        slow_timer(tmp_path),
        tmp_path / "new" / "out",
        ("delay-queue", "slow:Slow"),
    )
    out.parent.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = uniform(tmp_path / "trace", 6, 400)
    command = ["replay", str(trace.path), "--timers", ",".join(timers), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "compare", *command, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(out.parent.rglob("*.parquet")):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)  # for another process's files there is no manual clock
    finally:
        os.killpg(process.pid, number)
        complaints = process.communicate()[1]
    assert (process.returncode, complaints.replace(f"{COMPILING}\n", "")) == (code, said)
    # What a killed process leaves is not seen, and removed by the next one.
    if number != signal.SIGKILL:
        assert list(out.parent.iterdir()) == []
    marker.unlink()
    check_rows(replay_trace(trace, timers, out))
    assert [path.name for path in out.parent.iterdir()] == ["out"]


MORTAL = '''
    """A timer whose first instance in a worker takes the worker with it."""
    import os
    from pathlib import Path

    from timers import HeapqDelayQueue

    class Mortal(HeapqDelayQueue):
        def schedule(self, deadline):
            try:
                Path({marker!r}).touch(exist_ok=False)
            except FileExistsError:
                return super().schedule(deadline)
            {end}
'''
ENDS = {"dies": "os.kill(os.getpid(), 9)", "fails": "raise ValueError('once')"}


@pytest.mark.spark
@pytest.mark.parametrize("end", ENDS)
def test_a_task_that_ends_early_is_tried_again_and_nothing_is_doubled(
    spark, tmp_path, monkeypatch, end
):
    marker = tmp_path / "ended"
    text = textwrap.dedent(MORTAL).format(marker=str(marker), end=ENDS[end])
    Path(tmp_path, f"mortal_{end}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = uniform(tmp_path / "trace", 4, 100)
    timers = ["delay-queue", f"mortal_{end}:Mortal"]
    done = replay_trace(trace.path, timers, tmp_path / "out", session=spark)
    assert marker.exists()
    check_rows(done)
    assert verify(done.path, allow=timers, session=spark).passed


# ---- the same again, and another


@on_both
def test_the_same_replay_again_returns_what_is_there(where, results, trace, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in results.path.rglob("*")}
    monkeypatch.setattr(compare.trial.pipeline.replay, "_replay", None)
    again = replay_trace(trace.path, TIMERS, results.path, counting=True, **where)
    assert again == results
    assert {path: path.stat().st_mtime_ns for path in results.path.rglob("*")} == before


def test_a_replay_of_other_kernels_is_another_one(trace, tmp_path, monkeypatch):
    done = replay_trace(trace, PAIR[:1], tmp_path / "out")
    before = (done.path / MANIFEST).read_text()
    monkeypatch.setattr(
        compare.trial.pipeline.replay, "source_digest", lambda package: "of a change"
    )
    refused(ResultsError, "the version of the timers differs", trace, PAIR[:1], done.path)
    assert (done.path / MANIFEST).read_text() == before
    replay_trace(trace, PAIR[:1], done.path, force=True)
    assert open_results(done.path).manifest["code"] == "of a change"


def test_another_replay_is_refused_and_replaced_by_force(trace, tmp_path):
    out = tmp_path / "out"
    replay_trace(trace, ["delay-queue"], out)
    for timer, option, says in (
        ("simple-wheel", {"drained": False}, "the list of timers"),
        ("delay-queue", {"drained": False}, "whether timers are drained"),
        ("delay-queue", {"counting": True}, "whether work is counted"),
        ("delay-queue", {"expiries": False}, "whether expiries are stored"),
        ("delay-queue", {"check": True}, "whether expiries are checked"),
    ):
        differs = f"another replay .{says} differs."
        refused(ResultsError, differs, trace, [timer], out, **option)
    assert open_results(out).contestants[0].name == "delay-queue"
    summarise(out)
    forced = replay_trace(trace, ["simple-wheel"], out, force=True)
    assert [timer.name for timer in forced.contestants] == ["simple-wheel"]
    # The summary was of the other one.
    assert names_in(out) == {MANIFEST, "run", "run/expiries", "run/expiries/part"}
    (out / "notes.txt").touch()
    says = "contains notes.txt, which would be deleted"
    refused(ResultsError, says, trace, PAIR[:1], out, force=True)


def test_nothing_is_left_of_a_replay_that_could_not_begin(trace, tmp_path):
    (tmp_path / "file").touch()
    out, below = tmp_path / "new" / "out", tmp_path / "file" / "out"
    timers = ["delay-queue"]
    refused(TimerError, "no timer is called 'no-such'", trace, ["no-such"], out)
    refused(ResultsError, "delay-queue is given 2 times", trace, timers * 2, out)
    refused(ResultsError, "nothing to replay", trace, [], out)
    refused(TimerError, "does not exist", tmp_path / "nowhere", timers, out)
    refused(ResultsError, "cannot write .*: .*file is not a directory", trace, timers, below)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.spark
def test_nothing_is_left_where_spark_cannot_be_had(spark, trace, tmp_path):
    says = "Spark is already running on .*, so spark://127.0.0.1:1 cannot be used"
    other = {"session": spark, "master": "spark://127.0.0.1:1"}
    refused(TimerError, says, trace, ["delay-queue"], tmp_path / "out", **other)
    assert not (tmp_path / "out").exists()


def test_something_else_is_never_written_over(trace, tmp_path):
    (tmp_path / "precious").write_text("x")
    for out, says in (
        (tmp_path / "precious", "precious is not a stored replay: it is not a directory"),
        (tmp_path, "has no manifest.json"),
        (trace.path, "is not the manifest of a stored replay"),
    ):
        refused(ResultsError, says, trace, ["delay-queue"], out, force=True)
    assert (tmp_path / "precious").read_text() == "x"
    assert open_trace(trace.path)


def test_an_empty_trace_has_outcomes_of_nothing(tmp_path):
    done = replay_trace(write(tmp_path / "trace", tape_of(), tape_of()), PAIR, tmp_path / "out")
    assert [each.outcome.operations for each in added_outcomes(done)] == [0, 0]
    assert verify(done.path).passed
