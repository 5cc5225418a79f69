"""Replays every shard of a trace through every timer, as tasks of Spark.

Operations never travel through Spark. A task reads its shards from the trace's files, once for
several timers, and writes the results of each shard replay into files of their own. What is
finished is kept: a task that is tried again, or a command that is rerun after an interruption,
continues with the rest.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from compare.bench.contestant import COMPILED, Contestant, parse_contestant
from compare.bench.machine import surroundings
from compare.files import MANIFEST, errors_as, obstacle, parents, write_json
from compare.pipeline.results import (
    FORMAT,
    VERSION,
    Results,
    ResultsError,
    ShardReplay,
    open_results,
    results_manifest,
    timer_name,
)
from compare.pipeline.shard_replay import run_side_by_side, warm
from compare.replay.engine import OPERATIONS_AT_ONCE
from compare.spark.progress import progress
from compare.spark.session import PipelineError, plain_failures, send_module, spark_session
from compare.spark.tasks import even_shares, in_tasks, workers_of
from compare.tapes.trace import Trace, open_trace
from timers.kernels.jit import source_digest

MOST_ROWS = 2**31 - 1
"""Operations of a shard are counted in 32 bits while it is replayed."""

IDS_AT_ONCE = 1 << 21
"""Ids of all timers that are replayed together, plus OPERATIONS_AT_ONCE for each timer. An id takes
60 bytes at most, so this is 120 MB."""

_ROWS = pa.schema([("rows", pa.int64())])


def replay_trace(
    trace: str | os.PathLike[str],
    timers: Sequence[str],
    out: str | os.PathLike[str],
    *,
    expiries: bool = True,
    drained: bool = True,
    counting: bool = False,
    force: bool = False,
    master: str | None = None,
    session: SparkSession | None = None,
) -> Results:
    """Replay each shard of `trace` through each of `timers` (as in "hashed-wheel/tick=5").

    The results go into the directory `out`. Where it holds the same replay, unfinished, the replay
    is resumed; any other one is refused unless `force` is given. On a cluster both paths must be
    the same on every machine.

    With `expiries`, what fires is kept, 24 bytes a timer before compression; without it there are
    only outcomes, and nothing to verify. `drained` lets pending timers fire after the last
    operation. `counting` also counts the timers' work, which takes time.

    Raises TimerError in one line for anything that is wrong.
    """
    opened = open_trace(trace)
    contestants = [parse_contestant(text, [opened.unit]) for text in timers]
    manifest = _manifest(opened, contestants, expiries, drained, counting)
    path = Path(out)
    if problem := obstacle(path.parent):
        raise ResultsError(f"cannot write {path}: {problem}")
    with parents(path), _locked(path, manifest, force):
        results = open_results(path, complete=False)
        todo = results.unfinished()
        if todo:
            for timer in contestants:
                warm(timer, counting)
            with (
                spark_session(master, session) as spark,
                plain_failures(f"the replay into {path} failed"),
            ):
                _run(spark, results, todo)
        left = results.unfinished()
        if left:
            raise PipelineError(
                f"{len(left)} outcomes were not written to {path}: can all machines write there?"
            )
        for stray in path.glob("*/*/.shard-*"):  # of tasks that were killed while they wrote
            with suppress(OSError):
                stray.unlink()
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
        "timers": [
            {
                "name": timer.name,
                "label": timer.label,
                "parameters": dict(timer.parameters),
                "tick": timer.tick,
            }
            for timer in contestants
        ],
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
    with errors_as(ResultsError, f"cannot write {path}"):
        made = _prepare(path, manifest, force)
        try:
            with _lock(path):
                if made:
                    for kind in ("outcomes", *(["expiries"] if manifest["expiries"] else [])):
                        for timer in range(len(manifest["timers"])):
                            (path / kind / timer_name(timer)).mkdir(parents=True)
                    write_json(path / MANIFEST, manifest)
                yield
        except BaseException:
            if made and not any(path.glob("outcomes/*/shard-*.parquet")):
                shutil.rmtree(path, ignore_errors=True)
            raise


def _prepare(path: Path, manifest: dict[str, Any], force: bool) -> bool:
    """Make the directory unless it holds the same replay already; whether it was made."""
    if path.exists():
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
            shutil.rmtree(path)
    path.mkdir()
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


def _run(spark: SparkSession, results: Results, todo: Sequence[ShardReplay]) -> None:
    """Make shard replays as tasks."""
    entries = results.trace.shards
    rows = sum(entries[one.shard].rows for one in todo)
    loops = {n for n, timer in enumerate(results.contestants) if timer.engine != COMPILED}
    groups = groups_of(todo, [entry.id_space for entry in entries], workers_of(spark), alone=loops)
    _ship_own_timers(spark, results.contestants)

    def replay(number: int) -> pa.RecordBatch:
        return pa.record_batch({"rows": [run_side_by_side(results, groups[number])]})

    def rows_done() -> int:
        done = (one for one in todo if results.outcome_file(*one).exists())
        return sum(entries[one.shard].rows for one in done)

    with progress(spark, "replay", rows, rows_done):
        in_tasks(spark, len(groups), replay, _ROWS).agg({"rows": "sum"}).collect()


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


def _ship_own_timers(spark: SparkSession, contestants: Sequence[Contestant]) -> None:
    """Send the modules of users' own timers to the workers, if they are single files."""
    for module in {timer.timer_class.__module__ for timer in contestants if ":" in timer.name}:
        file = getattr(sys.modules[module], "__file__", None)
        if file and "." not in module:
            send_module(spark, file)
