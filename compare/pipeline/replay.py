"""Replays every shard of a trace through every timer, on an executor.

Operations never travel to the executor. A part of the work reads its shard from the trace's files,
once for several timers, and writes the results of each shard replay into files of their own. What
is finished is kept: a part that is tried again, or a command that is rerun after an interruption,
continues with the rest.
"""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compare.bench.machine import surroundings
from compare.executors import Executor, Stopped, Stopping, even_shares, until_stopping
from compare.files import (
    CANNOT_WRITE,
    MANIFEST,
    errors_as,
    new_directory,
    new_file,
    obstacle,
    parents,
    write_json,
)
from compare.pipeline.results import (
    EXPIRIES,
    FORMAT,
    VERSION,
    Results,
    ResultsError,
    ShardReplay,
    open_results,
    outcome_table,
    results_manifest,
    timer_name,
)
from compare.progress import progress
from compare.replay.contestant import COMPILED, Contestant, contestant
from compare.replay.engine import OPERATIONS_AT_ONCE, Batch, Buffers, Rows, TimerOnShard, batches
from compare.spark.executor import executor
from compare.tapes.trace import Trace, open_trace
from timers.kernels.jit import source_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS = 2**31 - 1
"""Operations of a shard are counted in 32 bits while it is replayed."""

IDS_AT_ONCE = 1 << 21
"""Ids of all timers that are replayed together, plus OPERATIONS_AT_ONCE for each timer. An id takes
60 bytes at most, so this is 120 MB."""

BATCHES_AT_ONCE = 16
"""Batches that a timer takes in a row when several share them: a row group's, 25 MB."""

_ROWS = pa.schema([("rows", pa.int64())])


def replay_trace(
    trace: str | os.PathLike[str] | Trace,
    timers: Sequence[str],
    out: str | os.PathLike[str],
    *,
    expiries: bool = True,
    drained: bool = True,
    counting: bool = False,
    force: bool = False,
    master: str | None = None,
    session: "SparkSession | None" = None,
) -> Results:
    """Replay each shard of `trace` through each of `timers` (as in "hashed-wheel/tick=5ms").

    The results go into the directory `out`. Where it holds the same replay, unfinished, the replay
    is resumed; any other one is refused unless `force` is given. The replay runs in this process
    or, with `master` or `session`, on Spark. On a cluster both paths must be the same on every
    machine.

    With `expiries`, what fires is kept, 24 bytes a timer before compression; without it there are
    only outcomes, and nothing to verify. `drained` lets pending timers fire after the last
    operation. `counting` also counts the timers' work, which takes time.

    Raises TimerError in one line for anything that is wrong.
    """
    opened = trace if isinstance(trace, Trace) else open_trace(trace)
    contestants = [contestant(text) for text in timers]
    for timer in contestants:
        warm(timer.new(opened.unit, counting=counting and timer.engine == COMPILED))
    manifest = _manifest(opened, contestants, expiries, drained, counting)
    path = Path(out)
    if problem := obstacle(path.parent):
        raise ResultsError(f"cannot write {path}: {problem}")
    with parents(path), _locked(path, manifest, force):
        results = open_results(path, complete=False)
        if todo := results.unfinished():
            with executor(master, session) as found:
                _run(found, results, todo)
        if left := results.unfinished():
            raise ResultsError(
                f"{len(left)} outcomes were not written to {path}: can all machines write there?"
            )
        for stray in path.glob("*/*/.shard-*"):  # of tasks that were killed while they wrote
            with suppress(OSError):
                stray.unlink()
        with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"):
            write_json(path / MANIFEST, manifest | {"complete": True})
    return open_results(path)


def _manifest(
    trace: Trace, contestants: Sequence[Contestant], expiries: bool, drained: bool, counting: bool
) -> dict[str, Any]:
    if not contestants:
        raise ResultsError("there is nothing to replay: name at least one timer")
    labels = [timer.label for timer in contestants]
    for label in labels:
        if labels.count(label) > 1:
            raise ResultsError(f"timer {label} is given {labels.count(label)} times")
    for number, shard in enumerate(trace.shards):
        if shard.rows > MOST_ROWS:
            which = f"shard {number} of {trace.path}"
            raise ResultsError(f"{which} has {shard.rows} rows; a replay takes at most {MOST_ROWS}")
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": trace.unit,
        "source": trace.source,
        "trace": {"path": str(trace.path.resolve()), "digest": trace.manifest_digest},
        "timers": labels,
        "shards": len(trace.shards),
        "expiries": expiries,
        "drained": drained,
        "counting": counting,
        "code": source_digest("compare"),
        "made": {"created": created, "command": sys.argv, **surroundings()},
        "complete": False,
    }


@contextmanager
def _locked(path: Path, manifest: dict[str, Any], force: bool) -> Iterator[None]:
    """Make the results' directory, or resume what is there; one replay at a time.

    The lock ends with the process, however that ends. When the block fails before any shard replay
    is finished, nothing is left.
    """
    with errors_as(ResultsError, f"{CANNOT_WRITE} {path}"):
        made = _prepare(path, manifest, force)
    try:
        with _lock(path):
            yield
    except BaseException:
        if made and not any(path.glob("outcomes/*/shard-*.parquet")):
            shutil.rmtree(path, ignore_errors=True)
        raise


def _prepare(path: Path, manifest: dict[str, Any], force: bool) -> bool:
    """Make the directory unless it holds the same replay already; whether it was made."""
    exists = path.exists()
    if exists:
        found = results_manifest(path)
        differences = [
            f"{_DESCRIPTIONS.get(name, name)} differs"
            for name, value in manifest.items()
            if name not in ("complete", "made") and found.get(name) != value
        ]
        if not differences:
            return False
        if not force:
            raise ResultsError(
                f"{path} has results of another replay ({differences[0]}); choose another path, or"
                " pass --force to replace them"
            )
        with _lock(path):
            pass  # nobody is writing to it
    with new_directory(path, replace=exists) as unfinished:
        for kind in ("outcomes", *(["expiries"] if manifest["expiries"] else [])):
            for timer in range(len(manifest["timers"])):
                (unfinished / kind / timer_name(timer)).mkdir(parents=True)
        write_json(unfinished / MANIFEST, manifest)
    return True


_DESCRIPTIONS = {
    "timers": "the list of timers",
    "code": "the version of the timers",
    "expiries": "whether expiries are kept",
    "drained": "whether timers are drained",
    "counting": "whether work is counted",
}


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with (path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"another replay is writing to {path} now") from None
        yield


def _run(where: Executor, results: Results, todo: Sequence[ShardReplay]) -> None:
    """Make shard replays on an executor."""
    entries = results.trace.shards
    rows = sum(entries[one.shard].rows for one in todo)
    loops = {n for n, timer in enumerate(results.contestants) if timer.engine != COMPILED}
    groups = groups_of(todo, [entry.id_space for entry in entries], where.workers, alone=loops)
    _send_own_timers(where, results.contestants)

    def replay(number: int, stopping: Stopping) -> pa.RecordBatch:
        done = replay_side_by_side(results, groups[number], stopping)
        return pa.record_batch({"rows": [done]})

    def rows_done() -> int:
        done = (one for one in todo if results.outcome_file(*one).exists())
        return sum(entries[one.shard].rows for one in done)

    with progress("replay", where.tasks, rows, rows_done):
        where.run(len(groups), replay, _ROWS)


def groups_of(
    replays: Sequence[ShardReplay],
    id_spaces: Sequence[int],
    workers: int,
    *,
    alone: Container[int] = (),
) -> list[list[ShardReplay]]:
    """Groups of shard replays that read their one shard together.

    `replays` has those of a shard side by side. The groups are small enough that there are four for
    each worker, and that their timers together do not hold much: a group of several has no more
    than IDS_AT_ONCE ids. The timers `alone` get groups by themselves: without a kernel they would
    keep the results of all others waiting.
    """
    for_all_workers = len(replays) // (4 * workers)
    groups = []
    for shard, found in groupby(replays, lambda one: one.shard):
        of_shard = list(found)
        together = [one for one in of_shard if one.timer not in alone]
        most = max(min(for_all_workers, IDS_AT_ONCE // (id_spaces[shard] + OPERATIONS_AT_ONCE)), 1)
        for share in even_shares(len(together), -(-len(together) // most)):
            groups.append([together[number] for number in share])
        groups += [[one] for one in of_shard if one.timer in alone]
    return groups


def _send_own_timers(where: Executor, contestants: Sequence[Contestant]) -> None:
    """Send the modules of users' own timers to where they run, if they are single files."""
    for module in {timer.timer_class.__module__ for timer in contestants if ":" in timer.name}:
        file = getattr(sys.modules[module], "__file__", None)
        if file and "." not in module:
            where.send_module(file)


# ---- a shard


def replay_side_by_side(
    results: Results, replays: Sequence[ShardReplay], stopping: Stopping
) -> int:
    """Replay one shard through several timers and write their files; returns the operations.

    The shard is read once for all of them, and what is finished is not replayed again. Memory: a
    row group, and the pending timers of all.
    """
    shard = replays[0].shard
    # Spark may give a task up for lost after it has finished some of them.
    todo = [one for one in replays if not results.outcome_file(*one).exists()]
    # A timer alone takes a batch while it is in the cache. Several take turns so seldom that it
    # hardly matters that each finds the caches full of the others' timers.
    at_once = 1 if len(todo) == 1 else BATCHES_AT_ONCE
    with errors_as(ResultsError, f"{CANNOT_WRITE} to {results.path}"), ExitStack() as stack:
        adding = [stack.enter_context(_running(results, one, stopping)) for one in todo]
        pieces = until_stopping(results.trace.pieces(shard), stopping) if todo else ()
        left = batches(pieces)
        while at_hand := list(islice(left, at_once)):
            for add in adding:
                for batch in at_hand:
                    add(batch)
            at_hand.clear()  # or there would be two row groups while the next one is read
    return results.trace.shards[shard].rows * len(replays)


@contextmanager
def _running(
    results: Results, one: ShardReplay, stopping: Stopping
) -> Iterator[Callable[[Batch], None]]:
    """A function that takes the batches in order; the files are complete after the block."""
    manifest, trace = results.manifest, results.trace
    shard, timer = trace.shards[one.shard], results.contestants[one.timer]
    counting = manifest["counting"] and timer.engine == COMPILED
    made = timer.new(trace.unit, shard.first_time or 0, counting=counting)
    with ExitStack() as stack:
        writer = None
        if manifest["expiries"]:
            path = stack.enter_context(new_file(results.expiries_file(*one)))
            writer = stack.enter_context(pq.ParquetWriter(path, EXPIRIES, **_WRITING))

        def write(rows: Rows) -> None:
            if stopping():
                raise Stopped
            if writer is not None:  # one row group, while it is still in the cache
                columns = [np.ascontiguousarray(rows[name]) for name in EXPIRIES.names]
                writer.write_batch(pa.record_batch(columns, schema=EXPIRIES))

        # Processor time of this thread: others run beside it.
        running = TimerOnShard(made, Buffers(shard.id_space), write, time.thread_time)
        yield running.add
        outcome = running.finish(drain_timer=manifest["drained"])
    with new_file(results.outcome_file(*one)) as path:
        pq.write_table(outcome_table(*one, timer.engine, outcome), path, write_page_checksum=True)


_WRITING: dict[str, Any] = {
    # Moments hardly differ from row to row. Their differences take 2.9 bytes a row where 50 million
    # timers fire exactly; zstd on top would make it 2.8, for a fifth more time.
    "compression": "none",
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(EXPIRIES.names, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "write_statistics": False,  # nothing asks for a range of them
}


def warm(timer: Any) -> None:
    """Compile what a replay through a timer needs, so that workers find it in the disk cache."""
    TimerOnShard(timer, Buffers(1), lambda rows: None).finish()
