"""Results of replaying a trace through several timers, on disk.

    RESULTS/manifest.json                     the description
    RESULTS/RUN/expiries/part-00000.parquet   what fired, and the outcomes
    RESULTS/summary/                          a stored run; see `summarise`

docs/pipeline.md explains the columns.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from compare.base.datasets import Dataset
from compare.base.files import MANIFEST, manifest_text, parse_manifest
from compare.base.records import arrow_type, row_of
from compare.base.stages import SHARD, Engine
from compare.spark.places import dataset_path, is_far, read_description
from compare.traffic.tapes.places import open_trace_at
from compare.traffic.tapes.trace import Trace
from compare.trial.oracle.mismatches import Verified
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.loops import FIRED
from compare.trial.replay.outcome import Outcome, stored_columns
from timers.errors import TimerError

FORMAT = "wheelwork-results"
VERSION = 5
EXPIRIES_IN = "expiries"

OUTCOME = pa.struct([("engine", pa.string()), *stored_columns(), ("check", arrow_type(Verified))])
"""The outcome of one shard replayed through one timer; see docs/pipeline.md."""

_LISTS = [(name, pa.list_(pa.int64())) for name in FIRED.names or ()]
EXPIRIES = pa.schema(
    [
        (SHARD, pa.int32()),
        ("contestant", pa.string()),
        ("piece", pa.int32()),
        ("block", pa.int32()),
        *_LISTS,
        ("outcome", OUTCOME),
    ]
)
"""Expiries of a timer in a shard, in order of delivery. `piece` counts from 0. `block` is the last
block of the trace before they were delivered. `operation` is the row of the shard's tape that last
armed the timer. Only the last piece has the outcome."""

KEY = (SHARD, "contestant", "piece")

OPTIONS = ("expiries", "drained", "counting", "checked")
"""The options of a replay in its manifest; see `replay_trace`."""

EXAMPLES = 5
"""Mismatches of each kind that are listed."""


class ResultsError(TimerError, ValueError):
    """Results cannot be read, written or verified. The message is one line."""


def outcome_row(engine: str, outcome: Outcome, check: Verified | None) -> dict[str, Any]:
    """The column `outcome`."""
    found = None if check is None else row_of(check)
    return {"engine": engine, **outcome.stored(), "check": found}


def expiries_dataset(path: str) -> Dataset:
    """The dataset of expiries in a directory."""
    return Dataset(path, EXPIRIES, KEY, ResultsError)


@dataclass(frozen=True)
class Results:
    """Open results, in a directory or at a place of Spark."""

    place: str  #: a directory, or a URI or table of Spark
    manifest: Mapping[str, Any]
    trace: Trace

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self.place)

    @cached_property
    def contestants(self) -> tuple[Contestant, ...]:
        """The timers of the replay."""
        return contestants_of(self.manifest)

    @cached_property
    def expiries(self) -> Dataset:
        """The dataset of expiries and outcomes."""
        return expiries_dataset(dataset_path(self.place, self.manifest["run"], EXPIRIES_IN))


def contestants_of(manifest: Mapping[str, Any]) -> tuple[Contestant, ...]:
    """The timers of a manifest."""
    return tuple(Contestant(**timer) for timer in manifest["timers"])


def send_own_timers(timers: Collection[Contestant], engine: Engine) -> None:
    """Send the modules of users' own timers to the workers, if they are single files."""
    own = [timer for timer in timers if ":" in timer.name]
    for module in {timer.timer_class.__module__ for timer in own}:
        file = getattr(sys.modules[module], "__file__", None)
        if file and "." not in module:
            engine.send_module(file)


def open_results(
    path: str | os.PathLike[str], *, allow: Collection[str] = (), engine: Any = None
) -> Results:
    """Open the results in the directory `path`, and their trace.

    A place that only Spark reads needs its engine, an `OnSpark`.

    Results may name classes of anybody, and an import runs their modules. Only those in `allow`,
    each as `module:Class`, are imported.

    Raises ResultsError for a path that does not exist or does not hold results, a damaged manifest,
    a class that is not allowed, and a trace that has moved or changed.
    """
    place = os.fspath(path)
    manifest = results_manifest(place, engine)
    check_timers(place, manifest, allow)
    try:
        trace = open_trace_at(engine, manifest["trace"]["path"])
    except TimerError as error:
        raise ResultsError(f"the trace of {path} cannot be opened: {error}") from None
    if trace.manifest_digest != manifest["trace"]["digest"]:
        raise ResultsError(f"{trace.place} is not the trace that was replayed for {path}")
    return Results(place, manifest, trace)


def check_timers(place: str, manifest: Mapping[str, Any], allow: Collection[str]) -> None:
    """Raise ResultsError for a class that is not allowed, then for invalid parameters."""
    timers = contestants_of(manifest)
    for timer in timers:
        if ":" in timer.name and timer.name not in allow:
            raise ResultsError(
                f"{place} names {timer.name!r}, a class that is not part of this package; its"
                f" module runs only with --allow {shlex.quote(timer.name)}"
            )
    try:
        for timer in timers:
            contestant(timer.label)
    except TimerError as error:
        raise ResultsError(f"{place}: {error}") from None


def results_manifest(place: str, engine: Any = None) -> dict[str, Any]:
    """Read the manifest of the results at a place; see `open_results`. Raises ResultsError."""
    if not is_far(place):
        text = manifest_text(Path(place), "a stored replay", ResultsError)
        return parse_results(text, str(Path(place, MANIFEST)))
    if engine is None:
        raise ResultsError(f"{place} can be read by Spark alone")
    description = read_description(engine.session, place)
    if description is None:
        raise ResultsError(f"{place} is not a stored replay, or does not exist")
    return parse_results(description, place)


def parse_results(text: str, place: str) -> dict[str, Any]:
    """Read a manifest of results. Raises ResultsError."""
    flags: dict[str, type] = dict.fromkeys(OPTIONS, bool)
    entries = {"trace": dict, "timers": list, "made_by": dict, "run": str, **flags}
    manifest = parse_manifest(
        text, place, "a stored replay", FORMAT, VERSION, entries, ResultsError
    )
    keys = {field.name for field in fields(Contestant)}
    for timer in manifest["timers"]:
        is_complete = isinstance(timer, dict) and timer.keys() == keys
        if not (
            is_complete and isinstance(timer["name"], str) and isinstance(timer["settings"], dict)
        ):
            raise ResultsError(f"{place}: each of timers must have a name and settings")
    if not {"path", "digest"} <= manifest["trace"].keys():
        raise ResultsError(f"{place}: trace must have a path and a digest")
    if not re.fullmatch(r"run-[0-9a-f]+", manifest["run"]):
        raise ResultsError(f"{place}: run {manifest['run']!r} is not the name of a run")
    return manifest


def timer_entries(timers: Collection[Contestant]) -> list[dict[str, Any]]:
    """The entry `timers` of a manifest."""
    return [asdict(timer) for timer in timers]
