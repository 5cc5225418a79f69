"""Replay every shard of a trace through every timer, on an executor.

Operations are never sent to the executor. A part of the work reads its shard from the trace's
files, once for several timers, and writes each shard replay to its own files. Finished shard
replays are kept: a retried part or a rerun command continues with the rest.
"""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.executors import Executor, Stopped, Stopping, even_shares, until_stopping
from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    errors_as,
    new_directory,
    new_file,
    obstacle,
    parents,
    remove_leftovers,
    write_json,
)
from compare.base.progress import progress
from compare.spark.executor import executor
from compare.traffic.tapes.tape import MAX_ROWS
from compare.traffic.tapes.trace import Trace, open_trace
from compare.trial.bench.machine import surroundings
from compare.trial.oracle.compiled import compile_check
from compare.trial.pipeline.results import (
    EXPIRIES,
    FORMAT,
    REPLAYS,
    VERSION,
    Results,
    ResultsError,
    ShardReplay,
    open_results,
    outcome_table,
    results_manifest,
    timer_name,
)
from compare.trial.replay.contestant import COMPILED, Contestant, contestant
from compare.trial.replay.engine import (
    OPERATIONS_AT_ONCE,
    Batch,
    Buffers,
    Rows,
    TimerOnShard,
    batches,
)
from compare.trial.results.store import SUMMARY
from timers.kernels.jit import source_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDS_AT_ONCE = 1 << 21
"""Maximum for a group: the ids of all its timers, plus OPERATIONS_AT_ONCE per timer. An id takes at
most 60 bytes, so this is 120 MB."""

_GROUPS = pa.schema([("shard", pa.int32()), ("timers", pa.list_(pa.int32()))])
"""Timers, by number, that replay a shard together."""

BATCHES_AT_ONCE = 16
"""Batches that a timer replays in turn if several share them: one row group, 25 MB."""


def replay_trace(
    trace: str | os.PathLike[str] | Trace,
    timers: Sequence[str],
    out: str | os.PathLike[str],
    *,
    expiries: bool = True,
    drained: bool = True,
    counting: bool = False,
    check: bool = False,
    force: bool = False,
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Results:
    """Replay each shard of `trace` through each of `timers`, such as "hashed-wheel/tick=5ms".

    The results are written to the directory `out`. If it holds the same replay, unfinished, that
    replay is resumed; another replay is replaced only with `force`. The replay runs in this process
    or, with `master` or `session`, on Spark. On a cluster both paths must be the same on every
    machine.

    With `expiries`, everything that fires is stored, 24 bytes per expiry before compression;
    without it there are only outcomes, which cannot be verified. `drained` lets pending timers fire
    after the last operation. `counting` also records cost counters, which takes time. With `check`,
    the compiled oracle checks the expiries of each shard replay as part of it, also those that are
    not stored; `verify.checked` returns what it has found.

    Raises TimerError, with a message of one line.
    """
    opened = trace if isinstance(trace, Trace) else open_trace(trace)
    contestants = [contestant(text) for text in timers]
    for timer in contestants:
        # Compile the timer into the disk cache, where workers look.
        compiled = timer.new(opened.unit, counting=counting)
        TimerOnShard(compiled, Buffers(1), lambda rows: None).finish()
    if check:
        compile_check()
    options = {"expiries": expiries, "drained": drained, "counting": counting, "checked": check}
    manifest = _manifest(opened, contestants, options)
    path, allow = Path(out), [timer.name for timer in contestants]
    if problem := obstacle(path.parent):
        raise ResultsError(f"cannot write {path}: {problem}")
    with parents(path), _locked(path, manifest, force):
        stored = open_results(path, complete=False, allow=allow)
        # The same manifest, but from the caller: what was read from a file is not sent to workers.
        results = replace(stored, manifest=manifest)
        manifest["made_by"] = stored.manifest["made_by"]
        if todo := results.unfinished():
            with executor(master, session) as runner:
                manifest["made_by"] = _made_by(runner)
                with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"):
                    write_json(path / MANIFEST, manifest)
                _run(runner, results, todo)
        if missing := results.unfinished():
            raise ResultsError(
                f"{len(missing)} outcomes were not written to {path}: can all machines write there?"
            )
        for stray in path.glob("*/*/.shard-*"):  # of tasks that were killed while writing
            with suppress(OSError):
                stray.unlink()
        with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"):
            write_json(path / MANIFEST, manifest | {"complete": True})
    return open_results(path, allow=allow)


def _manifest(
    trace: Trace, contestants: Sequence[Contestant], options: Mapping[str, bool]
) -> dict[str, Any]:
    if not contestants:
        raise ResultsError("nothing to replay: name at least one timer")
    labels = [timer.label for timer in contestants]
    for label in labels:
        if labels.count(label) > 1:
            raise ResultsError(f"timer {label} is given {labels.count(label)} times")
    for number, shard in enumerate(trace.shards):
        if shard.rows > MAX_ROWS:
            raise ResultsError(
                f"shard {number} of {trace.path} has {shard.rows} rows; the maximum is {MAX_ROWS}"
            )
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": trace.unit,
        "source": trace.source,
        "trace": {"path": str(trace.path.resolve()), "digest": trace.manifest_digest},
        "timers": [asdict(timer) for timer in contestants],
        "shards": len(trace.shards),
        **options,
        "code": source_digest("compare"),
        "made_by": {},
        "complete": False,
    }


def _made_by(runner: Executor) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        **surroundings(),
        **runner.made_by,
    }


@contextmanager
def _locked(path: Path, manifest: dict[str, Any], force: bool) -> Iterator[None]:
    """Create the directory of the results or resume its replay, and lock it.

    The lock ends with the process. If the block fails before a shard replay is finished, a new
    directory is removed.
    """
    with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"):
        is_new = _prepare(path, manifest, force)
    try:
        with _lock(path):
            yield
    except BaseException:
        if is_new and not any(path.glob("outcomes/*/shard-*.parquet")):
            shutil.rmtree(path, ignore_errors=True)
        raise


def _prepare(path: Path, manifest: dict[str, Any], force: bool) -> bool:
    """Create the directory unless it holds the same replay; return whether it was created."""
    exists = path.exists()
    if exists:
        existing = results_manifest(path)
        differences = [
            f"{_DESCRIPTIONS.get(name, name)} differs"
            for name, value in manifest.items()
            if name not in ("complete", "made_by") and existing.get(name) != value
        ]
        if not differences:
            _make_directories(path, manifest)  # in case some are lost
            return False
        if not force:
            raise ResultsError(
                f"{path} has results of another replay ({differences[0]}); choose another path, or"
                " pass --force to replace them"
            )
        remove_leftovers(path)
        if others := {entry.name for entry in path.iterdir()} - ENTRIES:
            raise ResultsError(
                f"{path} contains {min(others)}, which would be deleted; choose another path"
            )
        with _lock(path):
            pass  # no other process is writing to it
    with new_directory(path, replace=exists) as unfinished:
        _make_directories(unfinished, manifest)
        write_json(unfinished / MANIFEST, manifest)
    return True


def _make_directories(path: Path, manifest: Mapping[str, Any]) -> None:
    for kind in ("outcomes", *(["expiries"] if manifest["expiries"] else [])):
        for timer in range(len(manifest["timers"])):
            (path / kind / timer_name(timer)).mkdir(parents=True, exist_ok=True)


ENTRIES = {MANIFEST, "outcomes", "expiries", SUMMARY, ".lock"}
"""The entries of a directory of results."""

_DESCRIPTIONS = {
    "timers": "the list of timers",
    "code": "the version of the timers",
    "expiries": "whether expiries are stored",
    "drained": "whether timers are drained",
    "counting": "whether work is counted",
    "checked": "whether expiries are checked",
}


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with (path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"another replay is writing to {path}") from None
        yield


def _run(runner: Executor, results: Results, todo: Sequence[ShardReplay]) -> None:
    entries = results.trace.shards
    rows = sum(entries[replay.shard].rows for replay in todo)
    loops = {n for n, timer in enumerate(results.contestants) if timer.engine != COMPILED}
    groups = groups_of(todo, [entry.id_space for entry in entries], runner.workers, alone=loops)
    results.send_own_timers(runner)

    def replay(tasks: pa.RecordBatch, stopping: Stopping) -> Iterator[pa.RecordBatch]:
        for task in tasks.to_pylist():
            done = [ShardReplay(timer, task["shard"]) for timer in task["timers"]]
            replay_side_by_side(results, done, stopping)
            yield pa.RecordBatch.from_pylist([each._asdict() for each in done], REPLAYS)

    def rows_done() -> int:
        return sum(entries[replay.shard].rows for replay in filter(results.is_finished, todo))

    tasks = [
        {"shard": group[0].shard, "timers": [each.timer for each in group]} for group in groups
    ]
    text = f"replay: {len(entries)} shards x {len(results.contestants)} timers"
    with progress("replay", runner.tasks, rows, rows_done):
        runner.map(pa.Table.from_pylist(tasks, _GROUPS), replay, REPLAYS, text)


def groups_of(
    replays: Sequence[ShardReplay],
    id_spaces: Sequence[int],
    workers: int,
    *,
    alone: Container[int] = (),
) -> list[list[ShardReplay]]:
    """Divide shard replays into groups that read a shard together.

    `replays` is ordered by shard. There are at least four groups per worker if possible, and a
    group of several timers has at most IDS_AT_ONCE ids. Each of the timers `alone` has its own
    group: without a kernel it would delay the results of the others.
    """
    share_of_worker = len(replays) // (4 * workers)
    groups = []
    for shard, grouped in groupby(replays, lambda replay: replay.shard):
        of_shard = list(grouped)
        together = [replay for replay in of_shard if replay.timer not in alone]
        fitting = IDS_AT_ONCE // (id_spaces[shard] + OPERATIONS_AT_ONCE)
        size = max(min(share_of_worker, fitting), 1)
        for share in even_shares(len(together), -(-len(together) // size)):
            groups.append([together[number] for number in share])
        groups += [[replay] for replay in of_shard if replay.timer in alone]
    return groups


# ---- a shard


def replay_side_by_side(
    results: Results, replays: Sequence[ShardReplay], stopping: Stopping
) -> None:
    """Replay one shard through several timers, and write their files.

    The shard is read once for all timers; finished replays are skipped. Memory: a row group, and
    the pending timers of all.
    """
    shard = replays[0].shard
    # Spark may retry a task that has finished some of its replays.
    todo = [replay for replay in replays if not results.is_finished(replay)]
    # A single timer replays each batch while it is in the cache. Several take turns, but so rarely
    # that it hardly matters that the others' timers are in the cache when a turn begins.
    at_once = 1 if len(todo) == 1 else BATCHES_AT_ONCE
    with errors_as(ResultsError, f"{CANNOT_WRITE} to {results.path}"), ExitStack() as stack:
        adding = [stack.enter_context(_running(results, replay, stopping)) for replay in todo]
        pieces = until_stopping(results.trace.pieces(shard), stopping) if todo else ()
        remaining = batches(pieces)
        while turn := list(islice(remaining, at_once)):
            for add in adding:
                for batch in turn:
                    add(batch)
            turn.clear()  # or there would be two row groups while the next one is read


@contextmanager
def _running(
    results: Results, replay: ShardReplay, stopping: Stopping
) -> Iterator[Callable[[Batch], None]]:
    """Yield a function to call with each batch; the files are complete after the block."""
    manifest, trace = results.manifest, results.trace
    shard, replayed = trace.shards[replay.shard], results.contestants[replay.timer]
    timer = replayed.new(trace.unit, shard.first_time or 0, counting=manifest["counting"])
    with _expiries_path(results, replay) as path:
        with ExitStack() as writing:
            writer = None
            if path is not None:
                writer = writing.enter_context(pq.ParquetWriter(path, EXPIRIES, **_WRITING))

            def write(rows: Rows) -> None:
                if stopping():
                    raise Stopped
                if writer is not None:  # a row group of its own, while the rows are in the cache
                    columns = [np.ascontiguousarray(rows[name]) for name in EXPIRIES.names]
                    writer.write_batch(pa.record_batch(columns, schema=EXPIRIES))

            # Processor time of this thread, because other threads run beside it.
            running = TimerOnShard(timer, Buffers(shard.id_space), write, time.thread_time)
            yield running.add
            outcome = running.finish(drain_timer=manifest["drained"])
        check = None
        if manifest["checked"]:
            rounding = replayed.rounding(trace.unit)
            check = results.check(replay, rounding, expiries=path, stopping=stopping)
    table = outcome_table(*replay, replayed.engine, outcome, check)
    with new_file(results.outcome_file(*replay)) as path:
        pq.write_table(table, path, write_page_checksum=True)


@contextmanager
def _expiries_path(results: Results, replay: ShardReplay) -> Iterator[Path | None]:
    """Yield where the expiries are written: a file of the results, or one that is checked only."""
    if results.manifest["expiries"]:
        with new_file(results.expiries_file(*replay)) as path:
            yield path
    elif results.manifest["checked"]:
        outcome = results.outcome_file(*replay)
        with NamedTemporaryFile(prefix=f".{outcome.stem}.", dir=outcome.parent) as file:
            yield Path(file.name)
    else:
        yield None


_WRITING: dict[str, Any] = {
    # Values differ little from row to row. Stored as differences, the expiries of 50 million exact
    # timers take 2.9 bytes each; adding zstd would make that 2.8, but takes a fifth more time.
    "compression": "none",
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(EXPIRIES.names, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "write_statistics": False,  # no query uses them
}
