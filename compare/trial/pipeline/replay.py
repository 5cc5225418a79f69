"""Replay every shard of a trace through every timer.

A shard is a stream of blocks, which is read once for several timers. The check is part of the
replay, so an expiry need not be stored to be checked.
"""

import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from compare.base.executors import even_shares
from compare.base.files import (
    CANNOT_WRITE,
    MANIFEST,
    errors_as,
    json_text,
    new_directory,
    obstacle,
)
from compare.base.progress import progress
from compare.base.stages import SHARD, Batches, Engine, Here, Stage
from compare.spark.engine import OnSpark, engine
from compare.spark.places import dataset_path, is_far, new_run, read_description
from compare.traffic.tapes.blocks import Tapes
from compare.traffic.tapes.places import open_trace_at
from compare.traffic.tapes.tape import MAX_ROWS, Tape, id_space_of
from compare.traffic.tapes.trace import Trace, open_trace
from compare.trial.bench.machine import surroundings
from compare.trial.oracle.compiled import Check, Rows, compile_check
from compare.trial.pipeline.results import (
    EXAMPLES,
    EXPIRIES,
    EXPIRIES_IN,
    FORMAT,
    OPTIONS,
    VERSION,
    Results,
    ResultsError,
    open_results,
    outcome_row,
    parse_results,
    results_manifest,
    send_own_timers,
    timer_entries,
)
from compare.trial.pipeline.summarise import outcomes_of
from compare.trial.replay.contestant import COMPILED, Contestant, contestant
from compare.trial.replay.engine import (
    FIRED_AT_ONCE,
    OPERATIONS_AT_ONCE,
    Batch,
    Buffers,
    TimerOnShard,
    batches,
    first_time,
)
from compare.trial.replay.engine import Rows as Fired
from compare.trial.replay.loops import FIRED
from compare.trial.results.store import SUMMARY
from timers.kernels.jit import source_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDS_AT_ONCE = 1 << 21
"""Maximum for timers that read a shard together: the ids of all, plus OPERATIONS_AT_ONCE per timer.
An id takes at most 60 bytes, so this is 120 MB."""

BLOCKS_AT_ONCE = 16
"""Blocks that a timer replays in turn if several share them: 25 MB."""

_ROWS_AT_ONCE = 1 << 16
"""Expiries of a row."""


@dataclass(frozen=True)
class Options:
    """How a shard is replayed."""

    unit: str
    expiries: bool = True  # whether they are kept
    drained: bool = True
    counting: bool = False
    checked: bool = False


def stage(timers: Sequence[Contestant], options: Options) -> Stage:
    """Turn blocks into expiries and outcomes of some timers."""
    function = partial(_replayed, tuple(timers), options)
    return Stage("replay", (SHARD,), ("block",), EXPIRIES, function)


def _replayed(timers: Sequence[Contestant], options: Options, blocks: Batches) -> Batches:
    """Replay one shard. Memory: some blocks, and the pending timers of all."""
    first = next(blocks)
    shard = first[SHARD][0].as_py()
    tapes = Tapes("the trace", shard)
    pieces, copies = tee(tapes.of(chain([first], blocks)))
    remaining = zip(pieces, batches(copies), strict=True)
    # A single timer replays each block while it is in the cache. Several take turns, but so rarely
    # that it hardly matters that the others' timers are in the cache when a turn begins.
    at_once = 1 if len(timers) == 1 else BLOCKS_AT_ONCE
    running: list[_Running] = []
    while turn := list(islice(remaining, at_once)):
        if tapes.shard.rows > MAX_ROWS:
            raise ResultsError(f"shard {shard} has more rows than a replay counts, {MAX_ROWS}")
        if not running:
            start = first_time(turn[0][0])
            # A trace may have thousands of shards with one short block.
            room = tapes.shard.rows if first["end"][0].is_valid else FIRED_AT_ONCE
            running = [_Running(timer, shard, start, room, options) for timer in timers]
        for each in running:
            for tape, batch in turn:
                each.add(tape, batch)
            yield from each.rows()
        turn.clear()  # or there would be two turns while the next one is read
    for each in running:
        yield from each.finish()


class _Running:
    """A timer that replays a shard, its check, and the expiries that are not written yet."""

    def __init__(
        self, timer: Contestant, shard: int, start: int, room: int, options: Options
    ) -> None:
        self._timer, self._shard, self._options = timer, shard, options
        self._buffers = Buffers(0, room)
        made = timer.new(options.unit, start, counting=options.counting)
        # Processor time of this thread, because other threads run beside it.
        self._running = TimerOnShard(made, self._buffers, self._take, time.thread_time)
        self._check: Check | None = None
        if options.checked:
            rounding = timer.rounding(options.unit)
            self._check = Check(rounding, shard, drained=options.drained, examples=EXAMPLES)
        self._held: list[Fired] = []
        self._pieces, self._block = 0, -1

    def add(self, tape: Tape, batch: Batch) -> None:
        """Run the operations of the next block."""
        self._block += 1
        self._buffers.reserve(id_space_of(tape))
        if self._check is not None:
            self._check.follow(tape)
        self._running.add(batch)

    def _take(self, rows: Fired) -> None:
        if self._check is not None:
            self._check.match(Rows(*(np.ascontiguousarray(rows[name]) for name in Rows._fields)))
        if self._options.expiries:
            self._held.append(rows.copy())  # they are overwritten

    def rows(self, least: int = _ROWS_AT_ONCE) -> Batches:
        """The expiries so far, unless they are fewer."""
        if sum(map(len, self._held)) >= least:
            rows = np.concatenate(self._held)
            self._held.clear()
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                yield self._row(rows[begin : begin + _ROWS_AT_ONCE])

    def finish(self) -> Batches:
        """Let the timer end; the rest of the expiries, and the outcome."""
        outcome = self._running.finish(drain_timer=self._options.drained)
        check = None if self._check is None else self._check.finish()
        yield from self.rows(1)
        yield self._row(np.empty(0, FIRED), outcome_row(self._timer.engine, outcome, check))

    def _row(self, rows: Fired, outcome: Mapping[str, Any] | None = None) -> pa.RecordBatch:
        offsets = pa.array([0, len(rows)], pa.int32())
        lists = [
            pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows[name]))
            for name in FIRED.names or ()
        ]
        keys = [self._shard, self._timer.label, self._pieces, self._block]
        columns = [pa.array([key], EXPIRIES.types[k]) for k, key in enumerate(keys)]
        self._pieces += 1
        columns += [*lists, pa.array([outcome], EXPIRIES.field("outcome").type)]
        return pa.RecordBatch.from_arrays(columns, schema=EXPIRIES)


def groups_of(
    timers: Sequence[Contestant], shards: int, id_space: int, workers: int
) -> list[list[Contestant]]:
    """Divide timers into groups that read a shard together.

    There are at least two shard replays per worker if possible, and a group of several timers has
    at most IDS_AT_ONCE ids. A timer without a kernel has its own group: it would delay the others.
    """
    together = [timer for timer in timers if timer.engine == COMPILED]
    fitting = IDS_AT_ONCE // (id_space + OPERATIONS_AT_ONCE)
    size = max(min(len(timers) * shards // (2 * workers), fitting), 1)
    groups = [
        [together[number] for number in share]
        for share in even_shares(len(together), -(-len(together) // size))
    ]
    return groups + [[timer] for timer in timers if timer.engine != COMPILED]


def replayed(
    chosen: Engine,
    blocks: Any,
    timers: Sequence[Contestant],
    options: Options,
    shards: int,
    id_space: int,
) -> Any:
    """The rows of an engine with the expiries and outcomes of all timers."""
    groups = groups_of(timers, shards, id_space, chosen.workers)
    return chosen.union(*(chosen.apply(stage(group, options), blocks) for group in groups))


def compiled(timers: Sequence[Contestant], options: Options) -> None:
    """Compile what a replay needs into the disk cache, where workers look."""
    for timer in timers:
        made = timer.new(options.unit, counting=options.counting)
        TimerOnShard(made, Buffers(1), lambda rows: None).finish()
    if options.checked:
        compile_check()


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

    The results are written to the directory `out` or, with Spark, to a URI or
    `table:catalog.database.name`. If it holds the results of the same replay, these are returned;
    those of another one are replaced only with `force`. The replay runs in this process or, with
    `master` or `session`, on Spark.

    With `expiries`, everything that fires is stored, 24 bytes per expiry before compression;
    without it there are only outcomes, which cannot be verified. `drained` lets pending timers fire
    after the last operation. `counting` also records cost counters, which takes time. With `check`,
    the compiled oracle checks the expiries of each shard replay as part of it, also those that are
    not stored; `verify.checked` returns what it has found.

    Raises TimerError, with a message of one line; nothing is left behind.
    """
    contestants = [contestant(text) for text in timers]
    check_labels(contestants)
    allow = [timer.name for timer in contestants]
    chosen_options = {"expiries": expiries, "drained": drained, "counting": counting}

    def manifest_for(opened: Trace) -> dict[str, Any]:
        options = Options(opened.unit, **chosen_options, checked=check)
        return new_manifest(opened, contestants, options)

    place = trace.place if isinstance(trace, Trace) else trace
    near = None if is_far(place) else _near(trace)
    if near is not None and not is_far(out):  # before Spark is started
        if problem := obstacle(Path(out).parent):
            raise ResultsError(f"cannot write {out}: {problem}")
        if Path(out).exists() and _is_same(out, manifest_for(near), force):
            return open_results(out, allow=allow)
    with engine(master, session, [out, place]) as chosen:
        opened = near or open_trace_at(chosen, place)
        manifest = manifest_for(opened)
        if is_far(out) and _is_same(out, manifest, force, chosen):
            return open_results(out, allow=allow, engine=chosen)
        _replay(chosen, opened, contestants, manifest, out, force)
        return open_results(out, allow=allow, engine=chosen)


def _near(trace: str | os.PathLike[str] | Trace) -> Trace:
    return trace if isinstance(trace, Trace) else open_trace(trace)


def _replay(
    chosen: Here | OnSpark,
    trace: Trace,
    contestants: Sequence[Contestant],
    manifest: dict[str, Any],
    out: str | os.PathLike[str],
    force: bool,
) -> None:
    options = Options(trace.unit, **{name: manifest[name] for name in OPTIONS})
    compiled(contestants, options)
    manifest["made_by"] = made_by(chosen)
    send_own_timers(contestants, chosen)
    shards, id_space = trace.totals["shards"], trace.totals["id_space"]
    blocks = chosen.read(trace.blocks, shards)
    rows = replayed(chosen, blocks, contestants, options, shards, id_space)
    text = f"replay: {shards} shards x {len(contestants)} timers"
    with (
        _new_results(chosen, out, manifest, trace, force=force) as path,
        progress("replay", chosen.tasks),
    ):
        chosen.write(rows, path, text)


def new_manifest(
    trace: Trace, contestants: Sequence[Contestant], options: Options
) -> dict[str, Any]:
    """The manifest of a replay."""
    chosen = asdict(options)
    place = trace.place if is_far(trace.place) else str(trace.path.resolve())
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": chosen.pop("unit"),
        "source": trace.source,
        "trace": {"path": place, "digest": trace.manifest_digest},
        "timers": timer_entries(contestants),
        "shards": trace.totals["shards"],
        **chosen,
        "code": source_digest("compare"),
        "made_by": {},
        "run": f"run-{uuid.uuid4().hex}",
    }


def check_labels(contestants: Sequence[Contestant]) -> None:
    """Raise ResultsError if there is no timer, or one is given twice."""
    if not contestants:
        raise ResultsError("nothing to replay: name at least one timer")
    labels = [timer.label for timer in contestants]
    for label in labels:
        if labels.count(label) > 1:
            raise ResultsError(f"timer {label} is given {labels.count(label)} times")


def made_by(chosen: Engine) -> dict[str, Any]:
    """The entry `made_by` of a manifest."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        **surroundings(),
        **chosen.made_by,
    }


@contextmanager
def _new_results(
    engine: Any,
    out: str | os.PathLike[str],
    manifest: Mapping[str, Any],
    trace: Trace,
    *,
    force: bool,
) -> Iterator[str]:
    """Yield the path of the dataset of expiries, which the block writes.

    The results are seen complete or not at all. Raises ResultsError, PipelineError.
    """

    def complete(path: str) -> str:
        outcomes_of(Results(path, manifest, trace), engine)  # nothing is missing
        return json_text(manifest)

    if is_far(out):

        def run_of(text: str) -> str:
            return str(parse_results(text, str(out))["run"])

        place, session = str(out), engine.session
        with new_run(session, place, ResultsError, force=force, run_of=run_of) as new:
            new.run = manifest["run"]
            yield new.dataset(EXPIRIES_IN)
            new.describe(complete(place))
        return
    with (
        errors_as(ResultsError, f"{CANNOT_WRITE} {out}"),
        new_directory(out, replace=force) as directory,
    ):
        path = Path(dataset_path(directory, manifest["run"], EXPIRIES_IN))
        path.mkdir(parents=True)
        yield str(path)
        (directory / MANIFEST).write_text(complete(str(directory)), encoding="utf-8")


def _is_same(
    place: str | os.PathLike[str], manifest: Mapping[str, Any], force: bool, engine: Any = None
) -> bool:
    """Whether a place holds the results of this replay. Raises ResultsError if it holds anything
    else that may not be replaced.
    """
    path = os.fspath(place)
    if engine is not None and read_description(engine.session, path) is None:
        return False
    existing = results_manifest(path, engine)
    differences = [
        f"{_DESCRIPTIONS.get(name, name)} differs"
        for name, value in manifest.items()
        if name not in ("made_by", "run") and existing.get(name) != value
    ]
    if not differences:
        return True
    if not force:
        raise ResultsError(
            f"{path} has results of another replay ({differences[0]}); choose another path, or pass"
            " --force to replace them"
        )
    names = set() if is_far(path) else {entry.name for entry in Path(path).iterdir()}
    if others := names - {MANIFEST, SUMMARY, existing["run"]}:
        raise ResultsError(
            f"{path} contains {min(others)}, which would be deleted; choose another path"
        )
    return False


_DESCRIPTIONS = {
    "timers": "the list of timers",
    "code": "the version of the timers",
    "expiries": "whether expiries are stored",
    "drained": "whether timers are drained",
    "counting": "whether work is counted",
    "checked": "whether expiries are checked",
}
