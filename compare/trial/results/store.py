"""Stored runs: folders with the table of results and a manifest.

A run is written by `wheelwork compare`, `purgatory`, `summarise` and `claims`:

    runs/20260131T120000.123456Z-1f2e3d4c/
        manifest.json      the command, its parameters, the machine, and each contestant
        NAME.parquet       rows of the table of results, once the task NAME is finished

All files have the schema of `compare.trial.results.schema`. The manifest is written first without,
and last with, the numbers of rows. A run that was interrupted can be read: it has the rows of its
finished tasks, and names those that are missing. A run that is finished never changes.

    manifest.json
    format, version    "wheelwork-run", 6
    kind               "comparison", "purgatory", "replay" or "claims"
    created            UTC, ISO 8601
    command            the command line, a list
    commit, dirty      of the checkout; both null outside one
    versions           of python, numba, numpy, pyarrow and wheelwork
    machine            cpu (model or null), cores, memory_bytes (or null), platform
    parameters         all options and constants: timers, sizes, repeats, budget, seed, ...
    contestants        an object for each contestant, in the order of tables: see `contestant_entry`
    sources            an object for each source of replays: name, unit, timers (that exact
                       contestants schedule), shards, operations (of these starts, cancels, rearms,
                       arms), id_space (the largest of its shards), span (units from the first
                       operation to the last), details (its origin), description (of a trace:
                       `compare.traffic.tapes.description.Description`, else null), course
                       (of the first shard: `compare.traffic.tapes.profile.Profile`, or null)
    peers              of a comparison: an object for each timer of another language, with name,
                       language, library, scheme, rounding (as text) and lateness (the least and
                       the greatest, in units); the last four are null if it was not built
    clocks             of a comparison with tails: an object for each clock, with name, ns (of a
                       tick), cost (ns of a reading) and step (ns between readings)
    agreement          checked (a description of the checks, as text) and, once the run is
                       finished, contestants, tapes (each counted once for each contestant),
                       expiries (rows compared)
    tasks              the rows of each task; null until the run is finished
"""

import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from compare.base.files import (
    MANIFEST,
    errors_as,
    has_format,
    new_file,
    obstacle,
    open_parquet,
    parents,
    read_manifest,
    write_json,
)
from compare.trial.replay.contestant import Contestant
from compare.trial.results.schema import SCHEMA, Row, read_rows, table_of
from timers.errors import TimerError
from timers.traits import Load

FORMAT = "wheelwork-run"
VERSION = 6

COMPARISON, PURGATORY, REPLAY, CLAIMS = "comparison", "purgatory", "replay", "claims"
"""The kinds of runs."""

SUMMARY = "summary"
"""The run in a directory of replayed results."""

_ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "kind": str,
    "created": str,
    "command": list,
    "commit": (str, type(None)),
    "dirty": (bool, type(None)),
    "versions": dict,
    "machine": dict,
    "parameters": dict,
    "sources": list,
    "agreement": dict,
    "contestants": list,
    "tasks": dict,
}


class RunError(TimerError, ValueError):
    """A stored run cannot be read or written. The message names the path and the problem."""


@dataclass(frozen=True)
class Run:
    """A stored run."""

    path: Path
    manifest: Mapping[str, Any]
    rows: Sequence[Row]
    missing: Sequence[str] = ()  #: the tasks that are not finished


def contestant_entry(contestant: Contestant, units: Collection[str]) -> dict[str, Any]:
    """Return the manifest's entry for a contestant: plain values, formulas as text.

    Its lateness bounds hold for traces of these units: see `Contestant.bounds`.
    """
    traits = contestant.traits
    lowest, highest, unit = contestant.bounds(units)
    return {
        **{name: getattr(traits, name) for name in _KEPT_TRAITS},
        "timer": contestant.name,
        "label": contestant.label,
        "settings": dict(contestant.settings),
        "tick": contestant.tick,
        "engine": contestant.engine,
        "due_at": str(contestant.rounding(unit or "unit")),
        "parameters": contestant.parameters(unit or "ms"),
        "unit": unit,
        "lateness_low": lowest,
        "lateness_high": highest,
        "costs": list(  # without duplicates: several counters may show the same cost
            dict.fromkeys(
                str(cost) if cost.load == Load.ANY else f"{cost} [{cost.load}]"
                for cost in traits.costs
            )
        ),
        "deviations": list(traits.deviations),
    }


_KEPT_TRAITS = (
    *("name", "scheme", "summary", "order", "order_text", "exact_next_expiry"),
    *("horizon", "jumps", "suits", "drawback", "source"),
)

# ---- write


def check_store(root: str | os.PathLike[str]) -> None:
    """Raise RunError unless a run can be stored below `root`, which need not exist yet.

    Call this before a long measurement.
    """
    if problem := obstacle(root):
        raise RunError(f"cannot store runs in {root}: {problem}")


class Writer:
    """Writes a run into a directory, which exists: a manifest, and a file for each task.

    Methods raise RunError, with `problem` and the reason, if something cannot be written.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        manifest: Mapping[str, Any],
        tasks: Sequence[str],
        problem: str,
    ) -> None:
        self.path, self._problem = path, problem
        self._tasks: dict[str, int | None] = dict.fromkeys(tasks)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        head = {"format": FORMAT, "version": VERSION, "kind": kind, "created": created}
        self._manifest = {**head, **manifest}
        self._write_manifest()

    def write(self, task: str, rows: Sequence[Row]) -> None:
        """Write the rows of a task that is finished."""
        with errors_as(RunError, self._problem):
            table = table_of(rows)
            table.validate(full=True)
            with new_file(self.path / f"{task}.parquet") as file:
                pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        self._tasks[task] = table.num_rows

    def finish(self, **entries: Any) -> None:
        """Complete the manifest; `entries` replace those that were not known before."""
        self._manifest |= entries
        self._write_manifest(self._tasks)

    @property
    def is_empty(self) -> bool:
        """Whether no task is finished."""
        return not any(rows is not None for rows in self._tasks.values())

    def _write_manifest(self, tasks: Mapping[str, int | None] | None = None) -> None:
        entries = self._manifest | {"tasks": tasks or dict.fromkeys(self._tasks)}
        with errors_as(RunError, self._problem):
            write_json(self.path / MANIFEST, entries)


@contextmanager
def new_run(
    root: str | os.PathLike[str], kind: str, manifest: Mapping[str, Any], tasks: Sequence[str]
) -> Iterator[Writer]:
    """Create a run in `root/<UTC time>-<random>`, and yield its writer.

    `manifest` holds all entries but format, version, kind, created and tasks. The block writes the
    tasks and ends with `Writer.finish`. If it fails, the run is removed; if it is interrupted, the
    finished tasks stay. Raises RunError if the run cannot be written.
    """
    path = Path(root) / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{secrets.token_hex(4)}"
    problem = f"cannot store a run in {root}"
    with ExitStack() as stack:
        with errors_as(RunError, problem):
            stack.enter_context(parents(path))
            path.mkdir()
        writer = None
        try:
            writer = Writer(path, kind, manifest, tasks, problem)
            yield writer
        except BaseException as error:
            if isinstance(error, Exception) or writer is None or writer.is_empty:
                shutil.rmtree(path, ignore_errors=True)
            else:
                error.add_note(f"what was finished is in {path}")
            raise


# ---- find and read


def runs_in(root: str | os.PathLike[str]) -> list[Path]:
    """Return the runs in a store, also renamed ones, in the order in which they were finished.

    Raises RunError if it is not a directory.
    """
    root = Path(root)
    if not root.is_dir():
        raise RunError(f"{root} is not a directory of runs; `wheelwork compare` creates one")
    manifests = [
        manifest
        for manifest in root.glob(f"[!.]*/{MANIFEST}")
        # A damaged run is recognised by its name.
        if manifest.parent.match("[0-9]*T*Z-*") or has_format(manifest, FORMAT)
    ]
    manifests.sort(key=lambda manifest: (manifest.stat().st_mtime_ns, manifest))
    return [manifest.parent for manifest in manifests]


def latest_run(root: str | os.PathLike[str], *kinds: str) -> Path:
    """Return the newest run in a store: of any kind, or of the first of `kinds` that it has.

    One that is not finished is returned only if all others are unfinished, too.

    Raises RunError if there is none.
    """
    runs = runs_in(root)
    if not runs:
        raise RunError(f"{root} has no runs yet; `wheelwork compare` creates one")
    kind_of = {path: _entry(path, "kind") for path in runs}
    found = ([path for path in runs if kind_of[path] in (kind, None)] for kind in kinds)
    of_kind = next(filter(None, found), []) if kinds else runs
    if not of_kind:
        wanted = " or ".join(map(repr, kinds))
        raise RunError(f"{root} has no run of kind {wanted}; the newest is {runs[-1]}")
    return next(filter(_is_finished, reversed(of_kind)), of_kind[-1])


def _is_finished(path: Path) -> bool:
    """Return whether a run has all of its tasks, or is damaged."""
    tasks = _entry(path, "tasks")
    return not isinstance(tasks, dict) or None not in tasks.values()


def _entry(path: Path, name: str) -> Any:
    """Return an entry of a run's manifest; None if it is damaged."""
    try:
        return json.loads((path / MANIFEST).read_text(encoding="utf-8"))[name]
    except (ValueError, LookupError, TypeError):
        return None


def run_before(run: Run) -> Run | None:
    """Return the finished run of the same kind that precedes a run in its store, if any."""
    paths = [path.resolve() for path in runs_in(run.path.absolute().parent)]
    here = run.path.resolve()
    for path in reversed(paths[: paths.index(here)] if here in paths else []):
        try:
            before = read_run(path)
        except RunError:
            continue  # damaged, or of an older release
        if not before.missing and before.manifest["kind"] == run.manifest["kind"]:
            return before
    return None


def find_run(path: str | os.PathLike[str], *kinds: str) -> Path:
    """Return the run at `path`; of a directory of runs, the one that `latest_run` returns."""
    path = Path(path)
    is_store = path.is_dir() and not (path / MANIFEST).exists() and runs_in(path)
    return latest_run(path, *kinds) if is_store else path


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read the run in the directory `path`, as far as it is finished.

    Raises RunError if it is missing, damaged, of another version or not a run.
    """
    path = Path(path)
    manifest = read_manifest(path, "a stored run", FORMAT, VERSION, _ENTRIES, RunError)
    rows: list[Row] = []
    missing = []
    for task, expected in manifest["tasks"].items():
        if expected is None and not (path / f"{task}.parquet").exists():
            missing.append(task)
        else:
            rows += _read(path / f"{task}.parquet", expected)
    return Run(path, manifest, rows, missing)


def _read(file: Path, expected: int | None) -> list[Row]:
    with open_parquet(file, RunError) as source:
        table = source.read()
    if not table.schema.equals(SCHEMA):
        names = ", ".join(table.column_names)
        raise RunError(f"{file} has the columns {names}, not those of this release")
    if expected not in (None, table.num_rows):
        raise RunError(f"{file} has {table.num_rows} rows; the manifest says {expected}")
    return read_rows(table)
