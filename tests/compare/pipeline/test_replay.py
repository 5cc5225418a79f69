"""The grid replay: the same as replaying alone, resumed where it stopped, and never half a
result.
"""

import os
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

import compare.pipeline.cell
import compare.tapes.trace
from compare.bench.contestant import parse_contestant
from compare.pipeline.cell import Cell, run_cells
from compare.pipeline.replay import IDS_AT_ONCE, groups_of, replay_grid
from compare.pipeline.results import ResultsError, open_results
from compare.pipeline.summarise import SCHEMA, summarise, text_of
from compare.replay.engine import first_time, lateness_of, replay
from compare.replay.quantiles import Sketch, edges_of
from compare.spark.session import PipelineError
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import open_trace, write_trace
from compare.workloads.catalogue import make
from tests.compare.small_tapes import tape_of
from timers.errors import TimerError

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).resolve().parents[3]
TIMERS = (
    "hierarchical-wheel",
    "hashed-wheel/tick=700",
    "hierarchical-wheel/tick=64",
    "heapq-delay-queue",
)
SUMMED = ("operations", "scheduled", "cancelled", "rescheduled", "fired", "pending")


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
    return replay_grid(trace.path, TIMERS, out, counting=True, session=spark)


def test_each_cell_is_what_replaying_alone_gives(results, trace):
    cells = results.read_cells().to_pylist()
    assert [(cell["timer"], cell["shard"]) for cell in cells] == [
        (t, s) for t in range(4) for s in range(3)
    ]
    for cell in cells:
        timer = parse_contestant(TIMERS[cell["timer"]])
        tape = trace.load(cell["shard"])
        made = timer.new(first_time(tape), counting=timer.engine == "compiled")
        alone = replay(made, tape, trace.shards[cell["shard"]].id_space)
        for name in (
            "operations",
            "scheduled",
            "cancelled",
            "rescheduled",
            "pending",
            "most_pending",
            "wakeups",
            "engine",
        ):
            assert cell[name] == getattr(alone, name), name
        kept = pq.read_table(results.expiries_file(cell["timer"], cell["shard"]))
        for name in ("operation", "deadline", "fired_at"):
            assert kept[name].to_pylist() == alone.fired[name].tolist()
        assert cell["fired"] == alone.fired.size
        assert {name: cell[name] for name in alone.counters or {}} == (alone.counters or {})
        late = lateness_of(tape, alone.fired)
        assert (cell["lateness_min"], cell["lateness_max"]) == (late.min(), late.max())
        values, counts = np.unique(edges_of(late), return_counts=True)
        assert (cell["lateness_edges"], cell["lateness_counts"]) == (
            values.tolist(),
            counts.tolist(),
        )


def test_no_file_is_left_beside_the_results(results):
    assert results.complete
    names = {
        path.relative_to(results.path).as_posix()
        for path in results.path.rglob("*")
        if path.is_file()
    }
    files = {
        f"{kind}/timer-{t:03d}/shard-{s:05d}.parquet"
        for kind in ("cells", "expiries")
        for t in range(4)
        for s in range(3)
    }
    assert names - {"summary.parquet"} == files | {"manifest.json", ".lock"}


def cells_of(trace, names, out, shard=0):
    """The cells of one shard, to be replayed without Spark."""
    for number in range(len(names)):
        for kind in ("cells", "expiries"):
            (out / kind / f"timer-{number:03d}").mkdir(parents=True, exist_ok=True)
    return [
        Cell(
            str(trace.path),
            trace.manifest_digest,
            timer.name,
            tuple(timer.parameters.items()),
            number,
            shard,
            str(out / "cells" / f"timer-{number:03d}" / f"shard-{shard:05d}.parquet"),
            str(out / "expiries" / f"timer-{number:03d}" / f"shard-{shard:05d}.parquet"),
            True,
            True,
        )
        for number, timer in enumerate(map(parse_contestant, names))
    ]


def files_of(path):
    return sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_cells_side_by_side_are_each_what_it_is_alone(
    results, trace, tmp_path, monkeypatch, at_once
):
    monkeypatch.setattr(compare.pipeline.cell, "BATCHES_AT_ONCE", at_once)
    monkeypatch.setattr(compare.tapes.trace, "PIECE", 130)
    assert len(list(trace.pieces(0))) == 24  # of four in each row group
    for shard in range(3):
        cells = cells_of(trace, TIMERS, tmp_path, shard)
        assert run_cells(cells) == 4 * trace.shards[shard].rows
        for cell in cells:
            mine, other = (
                pq.read_table(path) for path in (cell.summary, results.cell_file(cell.timer, shard))
            )
            varies = ["seconds", "nbytes"]  # room is reserved for as many as a batch arms
            assert mine.drop_columns(varies).equals(other.drop_columns(varies))
            assert pq.read_table(cell.expiries).equals(
                pq.read_table(results.expiries_file(cell.timer, shard))
            )


@pytest.mark.parametrize("names", [TIMERS[:1], TIMERS])
def test_timers_overdue_when_armed_are_told_apart_in_whatever_piece(tmp_path, monkeypatch, names):
    monkeypatch.setattr(compare.tapes.trace, "PIECE", 7)
    monkeypatch.setattr(compare.pipeline.cell, "BATCHES_AT_ONCE", 3)
    rows = [
        (10 * k, START, k, 10 * k + (500 if k % 9 else -10 * (k % 7) - 1)) for k in range(20, 120)
    ]
    tape = tape_of(*rows)
    cells = cells_of(write(tmp_path / "trace", tape), names, tmp_path / "out")
    run_cells(cells)
    for cell in cells:
        timer = parse_contestant(names[cell.timer])
        alone = replay(timer.new(first_time(tape)), tape, 120)
        late = lateness_of(tape, alone.fired)
        found = pq.read_table(cell.summary).to_pylist()[0]
        assert (found["lateness_min"], found["lateness_max"]) == (late.min(), late.max())
        values, counts = np.unique(edges_of(late), return_counts=True)
        assert (found["lateness_edges"], found["lateness_counts"]) == (
            values.tolist(),
            counts.tolist(),
        )
        assert (
            pq.read_table(cell.expiries)["operation"].to_pylist()
            == alone.fired["operation"].tolist()
        )


def test_a_finished_cell_is_left_alone_by_those_beside_it(trace, tmp_path):
    cells = cells_of(trace, TIMERS, tmp_path)
    run_cells(cells[1:2])
    before = Path(cells[1].summary).stat().st_mtime_ns
    run_cells(cells)
    assert Path(cells[1].summary).stat().st_mtime_ns == before
    assert len(files_of(tmp_path)) == 2 * len(TIMERS)


def test_one_that_fails_leaves_no_half_of_those_beside_it(trace, tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "from timers import HeapqDelayQueue\n\n\nclass Failing(HeapqDelayQueue):\n"
        "    def advance(self, now):\n        raise ValueError(f'no advance to {now}')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    cells = cells_of(trace, (*TIMERS[:2], "failing:Failing", TIMERS[2]), out)
    with pytest.raises(ValueError, match="no advance to"):
        run_cells(cells)
    # They end in turn: the last one had ended, the first ones had not.
    assert files_of(out) == [
        Path(path).relative_to(out) for path in (cells[3].summary, cells[3].expiries)
    ]


def test_cells_share_a_shard_as_long_as_there_are_groups_for_all():
    def sizes(timers, id_spaces, workers, alone=()):
        cells = [
            Cell("trace", "digest", "delay-queue", (), timer, shard, "", None, True, False)
            for shard in range(len(id_spaces))
            for timer in range(timers)
        ]
        groups = groups_of(cells, id_spaces, workers, alone=alone)
        assert sorted(cell for group in groups for cell in group) == sorted(cells)
        assert all(len(group) == 1 for group in groups if group[0].timer in alone)
        assert all(len({cell.shard for cell in group}) == 1 for group in groups)
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
    only = replay_grid(
        trace.path, TIMERS[:1], tmp_path / "out", expiries=False, counting=True, session=spark
    )
    assert not (only.path / "expiries").exists()
    mine, other = (
        table.read_cells().slice(0, 3).drop_columns("seconds") for table in (only, results)
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
    cells = replay_grid(
        trace.path, ["delay-queue", "heapq-delay-queue"], tmp_path / "out", session=spark
    ).read_cells()
    assert cells["most_pending"].to_pylist() == [5, 5]


def test_without_draining_what_is_pending_stays(spark, trace, tmp_path):
    done = replay_grid(
        trace.path, ["simple-wheel"], tmp_path / "out", drained=False, session=spark
    ).read_cells()
    for cell in done.to_pylist():
        tape = trace.load(cell["shard"])
        alone = replay(
            parse_contestant("simple-wheel").new(first_time(tape)),
            tape,
            trace.shards[cell["shard"]].id_space,
            drain_timer=False,
        )
        assert (cell["pending"], cell["fired"]) == (alone.pending, alone.fired.size)


# ---- interrupted, resumed

SLOW = ("unordered-list", "hierarchical-wheel", "heapq-delay-queue")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGKILL, -9, ""), (signal.SIGINT, 130, "wheelwork: interrupted\n")],
    ids=["killed", "interrupted"],
)
def test_a_replay_that_is_killed_goes_on_where_it_stopped(spark, tmp_path, number, code, said):
    trace = write(
        tmp_path / "trace",
        *(make("uniform", operations=4_000, seed=seed).tape for seed in range(8)),
    )
    whole = replay_grid(trace.path, SLOW, tmp_path / "whole", session=spark)
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "compare.cli",
        "replay",
        str(trace.path),
        "--timers",
        ",".join(SLOW),
        "--out",
        str(out),
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored by what runs in the background
    )
    try:
        while not (first := sorted(out.glob("cells/*/shard-*"))):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)  # for another process's files there is no manual clock
    finally:
        os.killpg(process.pid, number)
        complaints = process.communicate()[1]
    assert (process.returncode, complaints) == (code, said)
    before = {path: path.stat().st_mtime_ns for path in first}
    with pytest.raises(
        ResultsError,
        match=r"is not complete: \d+ of 24 cells are missing; say the same replay again",
    ):
        open_results(out)
    resumed = replay_grid(trace.path, SLOW, out, session=spark)
    assert {path: path.stat().st_mtime_ns for path in first} == before, (
        "a finished cell was replayed again"
    )
    mine, other = (one.read_cells().drop_columns("seconds") for one in (resumed, whole))
    assert mine.equals(other)
    for cell in whole.cells():
        assert pq.read_table(resumed.expiries_file(*cell)).equals(
            pq.read_table(whole.expiries_file(*cell))
        )
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
    done = replay_grid(trace.path, ["mortal:Mortal"], tmp_path / "out", session=spark)
    assert (tmp_path / "died").exists()
    assert done.complete
    assert done.read_cells()["operations"].to_pylist() == [100] * 4


def test_the_same_replay_again_changes_nothing(spark, results, trace):
    before = {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")}
    again = replay_grid(trace.path, TIMERS, results.path, counting=True, session=spark)
    assert again.complete
    assert {path: path.stat().st_mtime_ns for path in results.path.rglob("*.parquet")} == before


# ---- refusals


def refused(error, match, *arguments, **options):
    with pytest.raises(error, match=match) as caught:
        replay_grid(*arguments, **options)
    assert isinstance(caught.value, TimerError)
    assert "\n" not in str(caught.value)


def test_another_replay_is_refused_and_replaced_by_force(spark, trace, tmp_path):
    out = tmp_path / "out"
    replay_grid(trace.path, ["delay-queue"], out, session=spark)
    refused(
        ResultsError,
        "another replay .their list of timers differs.",
        trace.path,
        ["simple-wheel"],
        out,
        session=spark,
    )
    refused(
        ResultsError,
        "their drained differs|choice",
        trace.path,
        ["delay-queue"],
        out,
        drained=False,
        session=spark,
    )
    assert open_results(out).contestants[0].name == "delay-queue"
    forced = replay_grid(trace.path, ["simple-wheel"], out, force=True, session=spark)
    assert [timer.name for timer in forced.contestants] == ["simple-wheel"]


def test_nothing_is_left_of_a_replay_that_could_not_begin(spark, trace, tmp_path):
    out = tmp_path / "out"
    refused(
        PipelineError,
        "cannot be used on spark://127.0.0.1:1 too",
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
    refused(ResultsError, "nothing to replay", trace.path, [], out, session=spark)
    refused(TimerError, "does not exist", tmp_path / "nowhere", ["delay-queue"], out, session=spark)
    refused(
        ResultsError,
        "cannot write .*: No such file",
        trace.path,
        ["delay-queue"],
        tmp_path / "no" / "out",
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
        "shard-00001.parquet does not exist, though the manifest lists it",
        gappy.path,
        ["delay-queue"],
        tmp_path / "out",
        session=spark,
    )


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
    assert done.stderr.startswith(
        "wheelwork: error: cannot reach the Spark master spark://127.0.0.1:1"
    )
    assert done.stderr.count("\n") == 1
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
    replay_grid(trace.path, ["delay-queue"], tmp_path / "out", session=spark)
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
    cells = results.read_cells().to_pylist()
    for number, row in enumerate(table.to_pylist()):
        own = [cell for cell in cells if cell["timer"] == number]
        for name in SUMMED:
            assert row[name] == sum(cell[name] for cell in own)
        assert row["most_pending"] == max(cell["most_pending"] for cell in own)
        assert row["seconds"] == pytest.approx(sum(cell["seconds"] for cell in own))
        late = np.concatenate(
            [
                lateness_of(tape, replay(timer.new(first_time(tape)), tape, shard.id_space).fired)
                for timer in [parse_contestant(TIMERS[number])]
                for tape, shard in (
                    (results.trace.load(s), results.trace.shards[s]) for s in range(3)
                )
            ]
        )
        late.sort()
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
            assert row[f"lateness_{name}"] == late[max(int(np.ceil(share * late.size)), 1) - 1]
        assert (row["lateness_min"], row["lateness_max"]) == (late[0], late[-1])
    text = text_of(table)
    assert max(map(len, text.splitlines())) <= 80
    assert all(name in text for name in TIMERS)


def test_long_names_stand_on_lines_of_their_own(results):
    row = summarise(results.path).slice(1, 1).to_pylist()[0]
    row |= {
        "parameters": '{"tick": 123456789, "wheel_size": 654321}',
        "fired": 10**12,
        "lateness_max": 10**8,
    }
    lines = text_of(pa.Table.from_pylist([row], schema=SCHEMA)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "hashed-wheel/tick=123456789/wheel-size=654321" in lines


def test_the_summary_of_an_unwritable_place_is_refused(results, tmp_path):
    with pytest.raises(ResultsError, match="cannot write .*nowhere"):
        summarise(results.path, tmp_path / "nowhere" / "table.parquet")


@pytest.mark.parametrize("seed", range(5))
def test_merged_sketches_are_the_sketch_of_all(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(-(2**62), 2**62, 300) >> rng.integers(0, 62, 300) for _ in range(4)]
    parts += [np.full(300, value) for value in (0, -5, -2047, 2047, 2048, 5000)]
    parts += [rng.integers(-2047, 2048, 300)]
    whole, merged = Sketch(), Sketch()
    whole.add(np.concatenate(parts))
    for part in parts:
        one = Sketch()
        one.add(part)
        merged.merge(one.edges, one.counts, one.least, one.greatest)
    shares = (0.001, 0.5, 0.9, 1.0)
    assert merged.quantiles(shares) == whole.quantiles(shares)
    assert merged.edges.tolist() == whole.edges.tolist()
    assert merged.counts.tolist() == whole.counts.tolist()
    values = np.sort(np.concatenate(parts))
    for share, found in zip(shares, whole.quantiles(shares), strict=True):
        true = int(values[max(int(np.ceil(share * values.size)), 1) - 1])
        assert abs(found) <= abs(true)
        assert abs(true) - abs(found) <= abs(true) / 1000
        assert found == true or abs(true) >= 2**11


def test_a_sketch_without_values_has_no_quantiles():
    assert Sketch().quantiles([0.5, 1.0]) == [None, None]
