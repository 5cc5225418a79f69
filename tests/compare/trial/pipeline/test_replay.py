"""Replays of shards side by side: the same as each alone, resumed, and never half a result."""

import dataclasses
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

import compare.traffic.tapes.trace
import compare.trial.pipeline.replay
from compare.base.executors import Stopped, Threads
from compare.base.files import MANIFEST
from compare.traffic.tapes.tape import START
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.pipeline.replay import IDS_AT_ONCE, groups_of, replay_side_by_side, replay_trace
from compare.trial.pipeline.results import (
    OPTIONS,
    Results,
    ResultsError,
    ShardReplay,
    open_results,
)
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.engine import first_time, replay
from compare.trial.replay.outcome import outcome_of
from tests.compare.conftest import on_both
from tests.compare.interrupts import interrupt_when_one_has_ended
from tests.compare.own_timers import slow_timer
from tests.compare.small_tapes import tape_of
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


def write(path, *tapes):
    return write_trace(path, tapes, unit="us", source={"kind": "test"})


def uniform(path, shards, operations):
    return write(
        path, *(make("uniform", operations=operations, seed=k).tape for k in range(shards))
    )


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Three shards in small row groups; in the last one, timers are overdue when they are armed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare.traffic.tapes.trace, "ROW_GROUP", 500)
        workloads = ("lognormal-high", "keepalive")
        tapes = [make(name, operations=3_000, seed=4).tape for name in workloads]
        overdue = [
            (10 * k, START, k - 20, 10 * k + (500 if k % 9 else -10 * (k % 7) - 1))
            for k in range(20, 120)
        ]
        return write(tmp_path_factory.mktemp("replay") / "trace", *tapes, tape_of(*overdue))


@pytest.fixture(scope="module")
def results(trace):
    return replay_trace(trace, TIMERS, trace.path.with_name("results"), counting=True)


def comparable(outcome):
    """Without what varies: time, and the room that is reserved for as many as a batch arms."""
    return dataclasses.replace(outcome, seconds=0.0, nbytes=0)


def check_files(results, shard_replay, **options):
    """The files of a shard replay are what the timer does with the shard's tape alone."""
    timer, number = results.contestants[shard_replay.timer], shard_replay.shard
    tape, id_space = results.trace.load(number), results.trace.shards[number].id_space
    created = timer.new("us", first_time(tape), counting=results.manifest["counting"])
    expected = replay(created, tape, id_space, **options)
    (row,) = pq.read_table(results.outcome_file(*shard_replay)).to_pylist()
    assert comparable(outcome_of(row)) == comparable(expected.outcome)
    assert row["engine"] == timer.engine
    kept = pq.read_table(results.expiries_file(*shard_replay))
    for name in ("operation", "deadline", "fired_at"):
        assert kept[name].to_pylist() == expected.fired[name].tolist()


def files_of(results):
    """The bytes of every file of expiries, and all outcomes but their seconds."""
    expiries = {
        shard_replay: results.expiries_file(*shard_replay).read_bytes()
        for shard_replay in results.replays()
    }
    return expiries, results.read_outcomes().drop_columns("seconds").to_pylist()


def names_in(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_each_shard_replay_is_what_replaying_alone_gives(results):
    for shard_replay in results.replays():
        check_files(results, shard_replay)


@pytest.mark.spark
def test_spark_writes_the_same_files(spark, results, trace, tmp_path):
    other = replay_trace(trace.path, TIMERS, tmp_path / "out", counting=True, session=spark)
    assert files_of(other) == files_of(results)
    assert names_in(other.path) == names_in(results.path)


def test_no_file_is_left_beside_the_results(results):
    assert results.complete
    files = [
        f"{kind}/timer-{t:03d}/shard-{s:05d}.parquet"
        for kind in ("expiries", "outcomes")
        for t in range(4)
        for s in range(3)
    ]
    assert names_in(results.path) == [".lock", *files[:12], "manifest.json", *files[12:]]


def test_the_manifest_says_what_was_replayed(results, trace):
    manifest = dict(results.manifest)
    made_by = manifest.pop("made_by")
    assert made_by.keys() > {"created", "command", "versions", "machine"}
    assert (made_by["executor"], made_by["master"]) == ("threads", None)
    assert manifest.pop("code")
    assert manifest == {
        "format": "wheelwork-results",
        "version": 4,
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
        "complete": True,
    }


def test_results_whose_end_alone_is_missing_say_where_they_were_made(trace, tmp_path, monkeypatch):
    real = compare.trial.pipeline.replay._run

    def killed_at_the_end(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(compare.trial.pipeline.replay, "_run", killed_at_the_end)
        replay_trace(trace, TIMERS[:1], tmp_path / "out")
    made_by = open_results(tmp_path / "out", complete=False).manifest["made_by"]
    assert made_by["executor"] == "threads"
    assert replay_trace(trace, TIMERS[:1], tmp_path / "out").manifest["made_by"] == made_by


def test_progress_is_in_rows_of_the_shard_replays_that_are_left(tmp_path, monkeypatch):
    """Of shards with 10, 20 and 30 operations through two timers, one of which is done already."""
    shown = []

    @contextmanager
    def progress(name, tasks, rows, rows_done):
        shown.append((rows, rows_done()))
        yield
        shown.append((rows, rows_done()))

    monkeypatch.setattr(compare.trial.pipeline.replay, "progress", progress)
    tapes = [make("uniform", operations=number, seed=1).tape for number in (10, 20, 30)]
    trace = write(tmp_path / "trace", *tapes)
    done = replay_trace(trace, PAIR, tmp_path / "out")
    done.outcome_file(1, 1).unlink()
    done.outcome_file(0, 2).unlink()
    replay_trace(trace, PAIR, tmp_path / "out")
    assert shown == [(120, 0), (120, 120), (50, 0), (50, 50)]


def test_a_shard_may_have_no_more_rows_than_an_id_can_count(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(compare.trial.pipeline.replay, "MAX_ROWS", 3000)
    assert replay_trace(trace, PAIR[:1], tmp_path / "out").complete
    monkeypatch.setattr(compare.trial.pipeline.replay, "MAX_ROWS", 2999)
    says = "shard 0 of .* has 3000 rows; the maximum is 2999"
    refused(ResultsError, says, trace, PAIR[:1], tmp_path / "other")


def test_summaries_alone_keep_no_expiries(trace, results, tmp_path):
    out = tmp_path / "out"
    only = replay_trace(trace, TIMERS[:1], out, expiries=False, counting=True)
    assert not (only.path / "expiries").exists()
    mine, other = (
        table.read_outcomes().slice(0, 3).drop_columns("seconds") for table in (only, results)
    )
    assert mine.equals(other)


def test_without_draining_what_is_pending_stays(trace, tmp_path):
    done = replay_trace(trace, ["simple-wheel"], tmp_path / "out", drained=False)
    assert done.outcomes()[0][0].pending > 0
    for shard_replay in done.replays():
        check_files(done, shard_replay, drain_timer=False)


# ---- a shard through several timers


def never():
    return False


def replays_of(trace, names, out, shard=0):
    """Results, and the replays of one shard, to be made without an executor."""
    for number in range(len(names)):
        for kind in ("outcomes", "expiries"):
            (out / kind / f"timer-{number:03d}").mkdir(parents=True, exist_ok=True)
    asked = dict.fromkeys(OPTIONS, True)
    timers = [dataclasses.asdict(contestant(name)) for name in names]
    results = Results(out, {"timers": timers, **asked}, trace)
    return results, [ShardReplay(number, shard) for number in range(len(names))]


@pytest.mark.parametrize(
    ("names", "piece", "at_once"),
    [(TIMERS, 130, 1), (TIMERS, 130, 16), (TIMERS, 7, 3), (TIMERS[:1], 7, 1)],
)
def test_replays_side_by_side_are_each_what_it_is_alone(
    trace, tmp_path, monkeypatch, names, piece, at_once
):
    monkeypatch.setattr(compare.trial.pipeline.replay, "BATCHES_AT_ONCE", at_once)
    monkeypatch.setattr(compare.traffic.tapes.trace, "PIECE", piece)
    for shard in range(3):
        own, replays = replays_of(trace, names, tmp_path, shard)
        replay_side_by_side(own, replays, never)
        for shard_replay in replays:
            check_files(own, shard_replay)


def test_a_timer_begins_at_the_first_operation(trace, tmp_path, monkeypatch):
    starts, new = [], Contestant.new

    def noted(self, unit, start=0, **settings):
        starts.append(start)
        return new(self, unit, start, **settings)

    monkeypatch.setattr(Contestant, "new", noted)
    replay_side_by_side(*replays_of(trace, TIMERS[:2], tmp_path, shard=2), never)
    assert starts == [200, 200]


def test_seconds_are_those_of_the_thread_alone(trace, tmp_path, monkeypatch):
    """Its clock stands still here; other threads run beside it."""
    clock = SimpleNamespace(thread_time=lambda: 7.0)
    monkeypatch.setattr(compare.trial.pipeline.replay, "time", clock)
    own, replays = replays_of(trace, TIMERS[:1], tmp_path)
    replay_side_by_side(own, replays, never)
    assert pq.read_table(own.outcome_file(*replays[0]))["seconds"].to_pylist() == [0.0]


def test_a_finished_replay_is_left_alone_by_those_beside_it(trace, tmp_path):
    own, replays = replays_of(trace, TIMERS, tmp_path)
    replay_side_by_side(own, replays[1:2], never)
    before = own.outcome_file(1, 0).stat().st_mtime_ns
    replay_side_by_side(own, replays, never)
    assert own.outcome_file(1, 0).stat().st_mtime_ns == before
    assert len(names_in(tmp_path)) == 2 * len(TIMERS)


def test_one_that_fails_leaves_no_half_of_those_beside_it(trace, tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "from timers import HeapqDelayQueue\n\n\nclass Failing(HeapqDelayQueue):\n"
        "    def next_wakeup(self):\n        raise ValueError('no wake-up')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    own, replays = replays_of(trace, (*TIMERS[:2], "failing:Failing", TIMERS[2]), out)
    with pytest.raises(ValueError, match="no wake-up"):
        replay_side_by_side(own, replays, never)
    # They end in turn: the last one had ended, the first ones had not.
    last = own.expiries_file(3, 0), own.outcome_file(3, 0)
    assert names_in(out) == [str(path.relative_to(out)) for path in last]


def test_replays_that_are_stopped_leave_nothing(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(compare.traffic.tapes.trace, "PIECE", 130)
    own, replays = replays_of(trace, TIMERS[:1], tmp_path)
    asked = iter([False, False, True])
    with pytest.raises(Stopped):
        replay_side_by_side(own, replays, lambda: next(asked))
    assert names_in(tmp_path) == []


def test_replays_share_a_shard_as_long_as_there_are_groups_for_all():
    def sizes(timers, id_spaces, workers, alone=()):
        replays = [
            ShardReplay(timer, shard) for shard in range(len(id_spaces)) for timer in range(timers)
        ]
        groups = groups_of(replays, id_spaces, workers, alone=alone)
        assert sorted(sum(groups, [])) == sorted(replays)
        assert all(len(group) == 1 for group in groups if group[0].timer in alone)
        assert all(len({shard_replay.shard for shard_replay in group}) == 1 for group in groups)
        return [len(group) for group in groups]

    assert sizes(4, [100] * 64, 2) == [4] * 64
    assert sizes(4, [100] * 2, 2) == [1] * 8  # else some workers would have nothing to do
    assert sizes(5, [100] * 4, 2) == [1, 2, 2] * 4
    id_spaces = [IDS_AT_ONCE // 3, IDS_AT_ONCE, 10**9, 0]
    assert sizes(4, id_spaces * 16, 2) == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 4] * 16
    assert sizes(1, [100] * 64, 2) == [1] * 64
    assert sizes(4, [100] * 64, 2, alone={1, 3}) == [2, 1, 1] * 64
    assert max(sizes(200, [0] * 64, 2)) <= 32  # a timer takes some memory whatever its ids


# ---- failed or interrupted, resumed

PAIR = ("delay-queue", "heapq-delay-queue")


def resumes(out, whole, marker=None, **where):
    """A replay that has not finished is resumed, and what is finished is not replayed again."""
    finished = {path: path.stat().st_mtime_ns for path in out.glob("outcomes/*/shard-*")}
    assert 0 < len(finished) < 12
    missing = r"\d+" if where else 12 - len(finished)  # Spark may not have stopped all tasks yet
    says = rf"not complete: {missing} of 12 shard replays are missing; rerun the replay"
    with pytest.raises(ResultsError, match=says):
        open_results(out, allow=["slow:Slow"])
    if marker:
        marker.unlink()  # not before: a worker that outlives its Spark would end at once
    for kind in ("expiries", "outcomes"):  # half a file of a task that was killed
        (out / kind / "timer-001" / ".shard-00005.parquet.host-1.0f").touch()
    timers = [timer.label for timer in whole.contestants]
    resumed = replay_trace(whole.trace, timers, out, **where)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert files_of(resumed) == files_of(whole)
    assert names_in(out) == names_in(whole.path)


@pytest.fixture
def whole(tmp_path):
    """A replay that was not interrupted."""
    return replay_trace(uniform(tmp_path / "trace", 6, 400), PAIR, tmp_path / "whole")


@on_both
def test_a_shard_that_cannot_be_read_ends_the_replay_in_one_line(
    where, whole, tmp_path, monkeypatch
):
    """It is the last one, and two are read at a time: others are finished before."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1}, raising=False)
    shard, out = whole.trace.path / whole.trace.shards[5].file, tmp_path / "out"
    kept = shard.read_bytes()
    for spoil, says in (
        (lambda: shard.write_bytes(kept[:-100]), "is not a readable Parquet file"),
        (shard.unlink, "does not exist"),
    ):
        spoil()
        refused(TimerError, f"shard-00005.parquet {says}", whole.trace, PAIR, out, **where)
    shard.write_bytes(kept)
    assert where or not list(out.rglob(".shard-*"))
    resumes(out, whole, **where)


def test_a_replay_that_is_interrupted_is_resumed(whole, tmp_path, monkeypatch):
    threads, running, real = Threads(), threading.Event(), replay_side_by_side
    threads.workers = 2

    def interrupted(results, replays, stopping):
        if replays == [ShardReplay(0, 5)]:
            running.set()
            while not stopping():  # until the interrupt has come
                time.sleep(0.001)
        return real(results, replays, stopping)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(compare.trial.pipeline.replay, "executor", lambda *_: nullcontext(threads))
        patch.setattr(compare.trial.pipeline.replay, "replay_side_by_side", interrupted)
        interrupt_when_one_has_ended(patch, running)
        replay_trace(whole.trace, PAIR, tmp_path / "out")
    assert not list(tmp_path.rglob(".shard-*"))
    resumes(tmp_path / "out", whole)


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
def test_a_command_that_is_ended_is_resumed(tmp_path, monkeypatch, number, code, said, options):
    marker, out, timers = slow_timer(tmp_path), tmp_path / "out", ["delay-queue", "slow:Slow"]
    monkeypatch.syspath_prepend(str(tmp_path))
    marker.unlink()
    whole = replay_trace(uniform(tmp_path / "trace", 6, 400), timers, tmp_path / "whole")
    marker.touch()
    command = ["replay", str(whole.trace.path), "--timers", ",".join(timers), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "compare", *command, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(out.glob("outcomes/*/shard-*")):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)  # for another process's files there is no manual clock
    finally:
        os.killpg(process.pid, number)
        complaints = process.communicate()[1]
    assert (process.returncode, complaints.replace(f"{COMPILING}\n", "")) == (code, said)
    # Nothing half-written is left by threads that can still remove it.
    assert number == signal.SIGKILL or options or not list(out.rglob("*/.shard-*"))
    resumes(out, whole, marker)


@pytest.mark.spark
def test_a_task_whose_worker_dies_is_tried_again(spark, tmp_path, monkeypatch):
    marker = tmp_path / "died"
    Path(tmp_path, "mortal.py").write_text(textwrap.dedent(MORTAL).format(marker=str(marker)))
    monkeypatch.syspath_prepend(str(tmp_path))
    trace = uniform(tmp_path / "trace", 4, 100)
    done = replay_trace(trace.path, ["mortal:Mortal"], tmp_path / "out", session=spark)
    assert marker.exists()
    assert done.complete
    assert done.read_outcomes()["operations"].to_pylist() == [100] * 4


def test_the_same_replay_again_changes_nothing(results, trace):
    before = {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")}
    assert replay_trace(trace.path, TIMERS, results.path, counting=True).complete
    assert {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")} == before


def test_a_replay_is_not_resumed_by_other_kernels(whole, monkeypatch):
    """Some shards would be the old kernels', and some the new ones'."""
    before = (whole.path / MANIFEST).read_text()
    whole.outcome_file(0, 1).unlink()
    monkeypatch.setattr(
        compare.trial.pipeline.replay, "source_digest", lambda package: "of a change"
    )
    refused(ResultsError, "the version of the timers differs", whole.trace, PAIR, whole.path)
    assert not whole.outcome_file(0, 1).exists()
    assert (whole.path / MANIFEST).read_text() == before


# ---- refusals


def refused(error, match, *arguments, **options):
    with one_line(error, match):
        replay_trace(*arguments, **options)


def test_another_replay_is_refused_and_replaced_by_force(trace, tmp_path):
    out = tmp_path / "out"
    replay_trace(trace, ["delay-queue"], out)
    for timer, option, says in (
        ("simple-wheel", {"drained": False}, "the list of timers"),
        ("delay-queue", {"drained": False}, "whether timers are drained"),
        ("delay-queue", {"counting": True}, "whether work is counted"),
        ("delay-queue", {"expiries": False}, "whether expiries are stored"),
    ):
        differs = f"another replay .{says} differs."
        refused(ResultsError, differs, trace, [timer], out, **option)
    assert open_results(out).contestants[0].name == "delay-queue"
    ended = subprocess.Popen(["true"])
    ended.wait()
    (out / f".summary.{socket.gethostname()}-{ended.pid}.{'0' * 32}").touch()  # killed
    forced = replay_trace(trace, ["simple-wheel"], out, force=True)
    assert [timer.name for timer in forced.contestants] == ["simple-wheel"]
    (out / "notes.txt").touch()
    refused(
        ResultsError, "contains notes.txt, which would be deleted", trace, PAIR[:1], out, force=True
    )


def test_lost_expiries_are_written_again_and_a_moved_outcome_is_refused(trace, tmp_path):
    results = replay_trace(trace, PAIR[:1], tmp_path / "out")
    lost = results.expiries_file(0, 1)
    content = lost.read_bytes()
    for lose in (
        lost.unlink,
        lambda: shutil.rmtree(tmp_path / "out" / "expiries"),
        lambda: shutil.rmtree(tmp_path / "out" / "outcomes"),
    ):
        lose()
        replay_trace(trace, PAIR[:1], tmp_path / "out")
        assert lost.read_bytes() == content
    results.outcome_file(0, 0).write_bytes(results.outcome_file(0, 1).read_bytes())
    with pytest.raises(ResultsError, match="is not the outcome of a replay; remove it and rerun"):
        results.read_outcomes()


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


def test_two_at_once_are_refused(trace, tmp_path):
    """Nothing of the other one is finished yet."""
    other = replay_trace(trace, PAIR[:1], tmp_path / "out")
    for shard_replay in other.replays():
        other.outcome_file(*shard_replay).unlink()
    before = names_in(other.path)
    with (other.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(ResultsError, "another replay is writing", trace, PAIR[:1], other.path)
        refused(ResultsError, "is writing", trace, PAIR[1:], other.path, force=True)
    assert names_in(other.path) == before
