"""Replays of shards side by side: the same as each alone, resumed, and never half a result."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import compare.pipeline.replay
import compare.pipeline.shard_replay
import compare.tapes.trace
from compare.bench.contestant import Contestant, parse_contestant
from compare.cli.commands.summarise import text_of
from compare.cli.main import COMPILING
from compare.files import MANIFEST
from compare.pipeline.replay import IDS_AT_ONCE, groups_of, replay_trace
from compare.pipeline.results import (
    Results,
    ResultsError,
    ShardReplay,
    open_results,
    outcome_of,
    outcome_table,
)
from compare.pipeline.shard_replay import run_side_by_side
from compare.pipeline.summarise import SCHEMA, summarise
from compare.replay.engine import first_time, lateness_of, replay
from compare.replay.lateness import Lateness
from compare.replay.outcome import NUMBERS, Outcome
from compare.spark.session import PipelineError
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import open_trace, write_trace
from compare.workloads.catalogue import make
from tests.compare.small_tapes import tape_of
from timers.errors import TimerError

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[3]
TIMERS = (
    "hierarchical-wheel",
    "hashed-wheel/tick=700",
    "hierarchical-wheel/tick=64",
    "heapq-delay-queue",
)


def write(path, *tapes, unit="us"):
    return write_trace(path, tapes, unit=unit, source={"kind": "test"})


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Three shards in small row groups; in the last one, timers are overdue when they are armed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare.tapes.trace, "ROW_GROUP", 500)
        path = tmp_path_factory.mktemp("grid") / "trace"
        tapes = [
            make(name, operations=3_000, seed=4).tape for name in ("lognormal-high", "keepalive")
        ]
        overdue = tape_of(
            (10, START, 0, 3),
            (12, ARM, 1, 12),
            (15, START, 2, 9),
            (15, CANCEL, 2, 0),
            (15, START, 2, 8),
        )
        return write(path, *tapes, overdue)


@pytest.fixture(scope="module")
def results(spark, trace, tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "results"
    return replay_trace(trace.path, TIMERS, out, counting=True, session=spark)


def alone(tape, id_space, timer, *, counting=False, **options):
    """What a timer does with a tape, without Spark; lateness is coarse, as in results."""
    counting = counting and timer.engine == "compiled"
    done = replay(timer.new(first_time(tape), counting=counting), tape, id_space, **options)
    return dataclasses.replace(done.outcome, lateness=done.outcome.lateness.coarse()), done.fired


def comparable(outcome):
    """Without what varies: time, and the room that is reserved for as many as a batch arms."""
    return dataclasses.replace(outcome, seconds=0.0, nbytes=0)


def check_file(outcome_file, expiries_file, expected, fired):
    (row,) = pq.read_table(outcome_file).to_pylist()
    assert comparable(outcome_of(row)) == comparable(expected)
    assert row["lateness_median"] == expected.lateness.median
    kept = pq.read_table(expiries_file)
    for name in ("operation", "deadline", "fired_at"):
        assert kept[name].to_pylist() == fired[name].tolist()


def test_each_shard_replay_is_what_replaying_alone_gives(results, trace):
    rows = results.read_outcomes().to_pylist()
    assert [(row["timer"], row["shard"]) for row in rows] == [
        (t, s) for t in range(4) for s in range(3)
    ]
    for row in rows:
        number, shard = row["timer"], row["shard"]
        timer = parse_contestant(TIMERS[number])
        assert row["engine"] == timer.engine
        expected = alone(trace.load(shard), trace.shards[shard].id_space, timer, counting=True)
        files = results.outcome_file(number, shard), results.expiries_file(number, shard)
        check_file(*files, *expected)


def test_no_file_is_left_beside_the_results(results):
    assert results.complete
    names = {
        path.relative_to(results.path).as_posix()
        for path in results.path.rglob("*")
        if path.is_file()
    }
    files = {
        f"{kind}/timer-{t:03d}/shard-{s:05d}.parquet"
        for kind in ("outcomes", "expiries")
        for t in range(4)
        for s in range(3)
    }
    assert names - {"summary.parquet"} == files | {"manifest.json", ".lock"}


def replays_of(trace, names, out, shard=0):
    """Results, and the replays of one shard, to be made without Spark."""
    for number in range(len(names)):
        for kind in ("outcomes", "expiries"):
            (out / kind / f"timer-{number:03d}").mkdir(parents=True, exist_ok=True)
    timers = [
        {"name": timer.name, "parameters": timer.parameters, "tick": timer.tick}
        for timer in map(parse_contestant, names)
    ]
    asked = dict.fromkeys(("expiries", "drained", "counting"), True)
    results = Results(out, {"timers": timers, **asked}, trace)
    return results, [ShardReplay(number, shard) for number in range(len(names))]


def files_of(path):
    return sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_replays_side_by_side_are_each_what_it_is_alone(
    results, trace, tmp_path, monkeypatch, at_once
):
    monkeypatch.setattr(compare.pipeline.shard_replay, "BATCHES_AT_ONCE", at_once)
    monkeypatch.setattr(compare.tapes.trace, "PIECE", 130)
    assert len(list(trace.pieces(0))) == 24  # of four in each row group
    for shard in range(3):
        own, replays = replays_of(trace, TIMERS, tmp_path, shard)
        assert run_side_by_side(own, replays) == 4 * trace.shards[shard].rows
        for one in replays:
            mine, other = (pq.read_table(of.outcome_file(*one)) for of in (own, results))
            varies = ["seconds", "nbytes"]  # room is reserved for as many as a batch arms
            assert mine.drop_columns(varies).equals(other.drop_columns(varies))
            mine, other = (pq.read_table(of.expiries_file(*one)) for of in (own, results))
            assert mine.equals(other)


@pytest.mark.parametrize("names", [TIMERS[:1], TIMERS])
def test_timers_overdue_when_armed_are_told_apart_in_whatever_piece(tmp_path, monkeypatch, names):
    monkeypatch.setattr(compare.tapes.trace, "PIECE", 7)
    monkeypatch.setattr(compare.pipeline.shard_replay, "BATCHES_AT_ONCE", 3)
    rows = [
        (10 * k, START, k - 20, 10 * k + (500 if k % 9 else -10 * (k % 7) - 1))
        for k in range(20, 120)
    ]
    tape = tape_of(*rows)
    own, replays = replays_of(write(tmp_path / "trace", tape), names, tmp_path / "out")
    starts, new = [], Contestant.new

    def noted(self, start=0, **settings):
        starts.append(start)
        return new(self, start, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Contestant, "new", noted)
        run_side_by_side(own, replays)
    assert starts == [200] * len(names)
    for one in replays:
        timer = parse_contestant(names[one.timer])
        files = own.outcome_file(*one), own.expiries_file(*one)
        check_file(*files, *alone(tape, 100, timer, counting=True))


def test_a_finished_replay_is_left_alone_by_those_beside_it(trace, tmp_path):
    own, replays = replays_of(trace, TIMERS, tmp_path)
    run_side_by_side(own, replays[1:2])
    before = own.outcome_file(1, 0).stat().st_mtime_ns
    run_side_by_side(own, replays)
    assert own.outcome_file(1, 0).stat().st_mtime_ns == before
    assert len(files_of(tmp_path)) == 2 * len(TIMERS)


def test_one_that_fails_leaves_no_half_of_those_beside_it(trace, tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "from timers import HeapqDelayQueue\n\n\nclass Failing(HeapqDelayQueue):\n"
        "    def next_wakeup(self):\n        raise ValueError('no wake-up')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    own, replays = replays_of(trace, (*TIMERS[:2], "failing:Failing", TIMERS[2]), out)
    with pytest.raises(ValueError, match="no wake-up"):
        run_side_by_side(own, replays)
    # They end in turn: the last one had ended, the first ones had not.
    assert files_of(out) == [
        path.relative_to(out) for path in (own.expiries_file(3, 0), own.outcome_file(3, 0))
    ]


def test_replays_share_a_shard_as_long_as_there_are_groups_for_all():
    def sizes(timers, id_spaces, workers, alone=()):
        replays = [
            ShardReplay(timer, shard) for shard in range(len(id_spaces)) for timer in range(timers)
        ]
        groups = groups_of(replays, id_spaces, workers, alone=alone)
        assert sorted(one for group in groups for one in group) == sorted(replays)
        assert all(len(group) == 1 for group in groups if group[0].timer in alone)
        assert all(len({one.shard for one in group}) == 1 for group in groups)
        return [len(group) for group in groups]

    assert sizes(4, [100] * 64, 2) == [4] * 64
    assert sizes(4, [100] * 2, 2) == [1] * 8  # else some workers would have nothing to do
    assert sizes(5, [100] * 4, 2) == [1, 2, 2] * 4
    assert (
        sizes(4, [IDS_AT_ONCE // 3, IDS_AT_ONCE, 10**9, 0] * 16, 2)
        == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 4] * 16
    )
    assert sizes(1, [100] * 64, 2) == [1] * 64
    assert sizes(4, [100] * 64, 2, alone={1, 3}) == [2, 1, 1] * 64
    assert max(sizes(200, [0] * 64, 2)) <= 32  # a timer takes some memory whatever its ids


def test_summaries_alone_keep_no_expiries(spark, trace, results, tmp_path):
    only = replay_trace(
        trace.path, TIMERS[:1], tmp_path / "out", expiries=False, counting=True, session=spark
    )
    assert not (only.path / "expiries").exists()
    mine, other = (
        table.read_outcomes().slice(0, 3).drop_columns("seconds") for table in (only, results)
    )
    assert mine.equals(other)


def test_most_pending_is_the_most_when_the_clock_moves_on(spark, tmp_path):
    tape = tape_of(
        *((0, START, k, 50) for k in range(5)),
        (1, CANCEL, 0, 0),
        (2, REARM, 1, 60),
        (3, START, 0, 70),
    )
    trace = write(tmp_path / "trace", tape)
    replays = replay_trace(
        trace.path, ["delay-queue", "heapq-delay-queue"], tmp_path / "out", session=spark
    ).read_outcomes()
    assert replays["most_pending"].to_pylist() == [5, 5]


def test_without_draining_what_is_pending_stays(spark, trace, tmp_path):
    done = replay_trace(
        trace.path, ["simple-wheel"], tmp_path / "out", drained=False, session=spark
    ).read_outcomes()
    for row in done.to_pylist():
        shard, timer = row["shard"], parse_contestant("simple-wheel")
        id_space = trace.shards[shard].id_space
        expected, _ = alone(trace.load(shard), id_space, timer, drain_timer=False)
        assert comparable(outcome_of(row)) == comparable(expected)


# ---- interrupted, resumed

SLOW = ("unordered-list", "heapq-delay-queue")


@pytest.fixture(scope="module")
def whole(spark, tmp_path_factory):
    """A replay that was not interrupted."""
    path = tmp_path_factory.mktemp("whole")
    tapes = (make("uniform", operations=4_000, seed=seed).tape for seed in range(6))
    return replay_trace(write(path / "trace", *tapes).path, SLOW, path / "out", session=spark)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGKILL, -9, ""), (signal.SIGINT, 130, "wheelwork: interrupted\n")],
    ids=["killed", "interrupted"],
)
def test_a_replay_that_is_killed_is_resumed(spark, whole, tmp_path, number, code, said):
    out = tmp_path / "out"
    arguments = ["replay", str(whole.trace.path), "--timers", ",".join(SLOW), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "compare.cli", *arguments],
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        # A background process ignores SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not (first := sorted(out.glob("outcomes/*/shard-*"))):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)  # for another process's files there is no manual clock
    finally:
        os.killpg(process.pid, number)
        complaints = process.communicate()[1]
    assert (process.returncode, complaints) == (code, said)
    before = {path: path.stat().st_mtime_ns for path in first}
    with pytest.raises(
        ResultsError, match=r"not complete: \d+ of 12 shard replays are missing; rerun the replay"
    ):
        open_results(out)
    resumed = replay_trace(whole.trace.path, SLOW, out, session=spark)
    assert {path: path.stat().st_mtime_ns for path in first} == before, (
        "a finished shard was replayed again"
    )
    mine, other = (one.read_outcomes().drop_columns("seconds") for one in (resumed, whole))
    assert mine.equals(other)
    for one in whole.replays():
        files = (pq.read_table(results.expiries_file(*one)) for results in (resumed, whole))
        assert next(files).equals(next(files))
    assert not list(out.rglob(".shard-*"))


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
            os.kill(os.getpid(), 9)
'''


def test_a_task_whose_worker_dies_is_tried_again(spark, tmp_path, monkeypatch):
    Path(tmp_path, "mortal.py").write_text(
        textwrap.dedent(MORTAL).format(marker=str(tmp_path / "died"))
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = write(
        tmp_path / "trace", *(make("uniform", operations=100, seed=seed).tape for seed in range(4))
    )
    done = replay_trace(trace.path, ["mortal:Mortal"], tmp_path / "out", session=spark)
    assert (tmp_path / "died").exists()
    assert done.complete
    assert done.read_outcomes()["operations"].to_pylist() == [100] * 4


def test_the_same_replay_again_changes_nothing(spark, results, trace):
    before = {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")}
    again = replay_trace(trace.path, TIMERS, results.path, counting=True, session=spark)
    assert again.complete
    assert {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")} == before


def test_a_replay_is_not_resumed_by_other_kernels(results, trace, monkeypatch):
    """Some shards would be the old kernels', and some the new ones'."""
    outcome = results.outcome_file(0, 1)
    kept = outcome.read_bytes()
    before = (results.path / MANIFEST).read_text()
    monkeypatch.setattr(compare.pipeline.replay, "source_digest", lambda package: "of a change")
    outcome.unlink()
    try:
        refused(
            ResultsError,
            "the version of the timers differs",
            trace.path,
            TIMERS,
            results.path,
            counting=True,
        )
        assert not outcome.exists()
        assert (results.path / MANIFEST).read_text() == before
    finally:
        outcome.write_bytes(kept)


# ---- refusals


def refused(error, match, *arguments, **options):
    with pytest.raises(error, match=match) as caught:
        replay_trace(*arguments, **options)
    assert isinstance(caught.value, TimerError)
    assert "\n" not in str(caught.value)


def test_another_replay_is_refused_and_replaced_by_force(spark, trace, tmp_path):
    out = tmp_path / "out"
    replay_trace(trace.path, ["delay-queue"], out, session=spark)
    refused(
        ResultsError,
        "another replay .the list of timers differs.",
        trace.path,
        ["simple-wheel"],
        out,
        session=spark,
    )
    for option, says in (
        ({"drained": False}, "whether timers are drained"),
        ({"counting": True}, "whether work is counted"),
        ({"expiries": False}, "whether expiries are kept"),
    ):
        differs = f"another replay .{says} differs."
        refused(ResultsError, differs, trace.path, ["delay-queue"], out, **option, session=spark)
    assert open_results(out).contestants[0].name == "delay-queue"
    forced = replay_trace(trace.path, ["simple-wheel"], out, force=True, session=spark)
    assert [timer.name for timer in forced.contestants] == ["simple-wheel"]


def test_nothing_is_left_of_a_replay_that_could_not_begin(spark, trace, tmp_path):
    out = tmp_path / "out"
    refused(
        PipelineError,
        "Spark is already running on .*, so spark://127.0.0.1:1 cannot be used",
        trace.path,
        ["delay-queue"],
        out,
        session=spark,
        master="spark://127.0.0.1:1",
    )
    refused(TimerError, "no timer is called|'no-such'", trace.path, ["no-such"], out, session=spark)
    refused(
        ResultsError,
        "delay-queue is given 2 times",
        trace.path,
        ["delay-queue"] * 2,
        out,
        session=spark,
    )
    (tmp_path / "file").touch()
    refused(ResultsError, "nothing to replay", trace.path, [], out, session=spark)
    refused(TimerError, "does not exist", tmp_path / "nowhere", ["delay-queue"], out, session=spark)
    refused(
        ResultsError,
        "cannot write .*: .*file is not a directory",
        trace.path,
        ["delay-queue"],
        tmp_path / "file" / "out",
        session=spark,
    )
    assert not out.exists()


def test_a_damaged_shard_ends_the_replay_in_one_line(spark, trace, tmp_path):
    broken = write(
        tmp_path / "broken",
        *(make("uniform", operations=2_000, seed=seed).tape for seed in range(2)),
    )
    shard = broken.path / "shard-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    refused(
        PipelineError,
        "shard-00001.parquet is not a readable Parquet file",
        broken.path,
        ["delay-queue"],
        tmp_path / "out",
        session=spark,
    )
    with pytest.raises(ResultsError):
        open_results(tmp_path / "out")


def test_a_gap_among_the_shards_is_told(spark, tmp_path):
    gappy = write(
        tmp_path / "gappy", *(make("uniform", operations=200, seed=seed).tape for seed in range(3))
    )
    (gappy.path / "shard-00001.parquet").unlink()
    refused(
        PipelineError,
        "shard-00001.parquet does not exist",
        gappy.path,
        ["delay-queue"],
        tmp_path / "out",
        session=spark,
    )


@pytest.mark.cluster
def test_an_unreachable_master_leaves_nothing(trace, tmp_path, spark):
    code = "import sys; from compare.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "replay", str(trace.path), "--timers", "delay-queue"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out"), "--master", "spark://127.0.0.1:1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    said = done.stderr.removeprefix(f"{COMPILING}\n")  # on the first run after a change
    assert said.startswith("wheelwork: error: cannot reach the Spark master spark://127.0.0.1:1")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_something_else_is_never_written_over(spark, trace, tmp_path):
    (tmp_path / "precious").write_text("x")
    refused(
        ResultsError,
        "precious is not a stored replay: it is not a directory",
        trace.path,
        ["delay-queue"],
        tmp_path / "precious",
        force=True,
        session=spark,
    )
    refused(
        ResultsError,
        "has no manifest.json",
        trace.path,
        ["delay-queue"],
        tmp_path,
        force=True,
        session=spark,
    )
    refused(
        ResultsError,
        "is not the manifest of a stored replay",
        trace.path,
        ["delay-queue"],
        trace.path,
        force=True,
        session=spark,
    )
    assert (tmp_path / "precious").read_text() == "x"
    assert open_trace(trace.path)


def test_two_at_once_are_refused(spark, results, trace):
    import fcntl

    with (results.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(
            ResultsError,
            "another replay is writing",
            trace.path,
            TIMERS,
            results.path,
            counting=True,
            session=spark,
        )


def test_a_trace_that_changed_is_not_that_of_the_results(spark, tmp_path):
    trace = write(tmp_path / "trace", make("uniform", operations=100).tape)
    replay_trace(trace.path, ["delay-queue"], tmp_path / "out", session=spark)
    write_trace(
        trace.path,
        [make("uniform", operations=90).tape],
        unit="us",
        source={"kind": "test"},
        force=True,
    )
    with pytest.raises(ResultsError, match="is not the one that .* was made of"):
        open_results(tmp_path / "out")


# ---- summaries


def test_the_summary_adds_up(results):
    table = summarise(results.path)
    assert table.schema.equals(SCHEMA)
    assert pq.read_table(results.path / "summary.parquet").equals(table)
    rows = results.read_outcomes().to_pylist()
    for number, row in enumerate(table.to_pylist()):
        own = [outcome_of(one) for one in rows if one["timer"] == number]
        total = sum(own, Outcome())
        assert row["label"] == TIMERS[number]
        assert row["most_pending"] == max(one.most_pending for one in own)
        assert comparable(Outcome.of_row(row, total.lateness)) == comparable(total)
        assert row["seconds"] == pytest.approx(sum(one.seconds for one in own))
        timer = parse_contestant(TIMERS[number])
        shards = zip(map(results.trace.load, range(3)), results.trace.shards, strict=True)
        late = np.concatenate(
            [lateness_of(tape, alone(tape, one.id_space, timer)[1]) for tape, one in shards]
        )
        late.sort()
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
            assert row[f"lateness_{name}"] == late[max(int(np.ceil(share * late.size)), 1) - 1]
        assert (row["lateness_min"], row["lateness_max"]) == (late[0], late[-1])
    text = text_of(table.to_pylist())
    assert max(map(len, text.splitlines())) <= 80
    for name in TIMERS:
        assert name in text


def test_the_summary_takes_each_shard_into_account(results, tmp_path):
    """Another prime for each number of each shard of each timer."""
    (tmp_path / "expiries").mkdir()
    shutil.copy(results.path / MANIFEST, tmp_path / MANIFEST)
    is_prime = (n for n in range(101, 10**6) if all(n % k for k in range(2, int(n**0.5) + 1)))
    made = {}
    for timer, shard in results.replays():
        numbers = {name: next(is_prime) for name in NUMBERS}
        late = Lateness.of(np.array([next(is_prime) for _ in range(5 + shard)]))
        counters = {"comparisons": next(is_prime)}
        done = Outcome(**numbers, counters=counters, lateness=late)
        made.setdefault(timer, []).append(done)
        path = Results(tmp_path, {}, results.trace).outcome_file(timer, shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(outcome_table(timer, shard, f"engine {timer}", done), path)
    table = summarise(tmp_path).to_pylist()
    assert len(table) == len(made) == 4
    for timer, row in enumerate(table):
        shards = made[timer]
        assert len(shards) == 3
        for name in NUMBERS:
            add = max if name in ("most_pending", "nbytes") else sum
            assert row[name] == add(getattr(one, name) for one in shards)
        operations = [one.operations for one in shards]
        ns = [one.seconds * 1e9 / one.operations for one in shards]
        assert row["ns_per_operation"] == sum(one.seconds for one in shards) * 1e9 / sum(operations)
        for name, values in (("operations", operations), ("ns_per_operation", ns)):
            found = [row[f"shard_{name}_{which}"] for which in ("least", "median", "most")]
            assert found == sorted(values)
        assert dict(row["counters"]) == {
            "comparisons": sum(one.counters["comparisons"] for one in shards)
        }
        late = sorted(value for one in shards for value in one.lateness.values.tolist())
        assert (row["lateness_min"], row["lateness_max"]) == (late[0], late[-1])
        assert row["lateness_p50"] == late[8]  # of 18
        assert row["lateness_p90"] == late[16]
        assert (row["engine"], row["shards"], row["unit"]) == (f"engine {timer}", 3, "us")


def test_long_names_stand_on_lines_of_their_own(results):
    row = summarise(results.path).slice(1, 1).to_pylist()[0]
    row |= {
        "label": "hashed-wheel/tick=123456789/wheel-size=654321",
        "fired": 10**12,
        "lateness_max": 10**8,
    }
    lines = text_of(pa.Table.from_pylist([row], schema=SCHEMA).to_pylist()).splitlines()
    assert max(map(len, lines)) <= 80
    assert "hashed-wheel/tick=123456789/wheel-size=654321" in lines


def test_the_summary_of_an_unwritable_place_is_refused(results, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="cannot write .*file"):
        summarise(results.path, tmp_path / "file" / "table.parquet")
