"""Stored runs: the measurements of `wheelwork compare` and `wheelwork purgatory`, for reports.

A store is a directory of runs. Each run is a directory that is written once and never changed:

    runs/20260131T120000.123456Z-1f2e3d4c/
        manifest.json      the command, its parameters, the machine, and each contestant's traits
        samples.parquet    every sample of insert, cancel, hold and expiry, by timers pending
        counters.parquet   the counted work of the same measurements: the same on every machine
        replays.parquet    every sample of whole tapes, from workloads and traces
        memory.parquet     bytes at full capacity, and while and after it grows
        slots.parquet      how many pending timers a wheel had in its slots
        calls.parquet      what schedule and cancel cost a Python program, by timers per call
        purgatory.parquet  trials of the enqueue experiment

A contestant is a timer with its parameters. Its label, as on a command line, identifies it in every
table (column `contestant`) and in the manifest's `traits`. The schemas below describe the columns.

    manifest.json
    format, version    "wheelwork-run", 4
    created            UTC, ISO 8601
    command            the command line, a list
    commit, dirty      of the checkout; both null outside one
    versions           of python, numba, numpy, pyarrow and wheelwork
    machine            cpu (model or null), cores, memory_bytes (or null), platform
    parameters         all options and constants: timers, sizes, repeats, budget, seed, ...
    sources            an object for each source of replays: name, unit, timers (that exact
                       contestants schedule), shards, operations (of these starts, cancels, rearms,
                       arms), id_space (the largest of its shards), span (units from the first
                       operation to the last), details (its origin),
                       description (of a trace: `compare.traffic.tapes.description.Description`,
                       else null)
    agreement          checked (a description of the checks, as text), contestants, tapes (each
                       counted once for each contestant), expiries (rows compared)
    traits             an object for each contestant, in the order of tables: see `traits_of`
    tables             rows of each Parquet file
"""

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compare.base.files import (
    MANIFEST,
    errors_as,
    has_format,
    new_directory,
    obstacle,
    open_parquet,
    read_manifest,
    write_json,
)
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.outcome import columns
from timers.errors import TimerError
from timers.traits import Load

FORMAT = "wheelwork-run"
VERSION = 5


Row = dict[str, Any]
"""A row of a table, by the names of its columns."""


def _schema(*columns: tuple[str, pa.DataType], nullable: tuple[str, ...] = ()) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name in nullable) for name, kind in columns])


_TEXT, _INTEGER, _NUMBER = pa.string(), pa.int64(), pa.float64()
_CONTESTANT = ("contestant", _TEXT)  # its label, as in the manifest's `traits`
_MEASUREMENT = (
    ("size", _INTEGER),  # timers pending
    ("operation", _TEXT),  # of a `compare.trial.bench.task.Task`
    ("driver", _TEXT),  # of the same task
)
_SAMPLE = (
    ("repeat", _INTEGER),  # from 0; both are null in a row that means "over budget"
    ("ns_per_operation", _NUMBER),
)
_NULLABLE = ("repeat", "ns_per_operation")

_OUTCOME = columns()
_TRIAL = (
    ("requests", _INTEGER),  # enqueued
    ("achieved", _NUMBER),  # requests per second
    ("cpu_us", _NUMBER),  # processor time of all threads per request
    ("gc_us", _NUMBER),  # the part of it spent in garbage collection
    ("peak_bytes", _INTEGER),  # peak of resident memory, minus that at the start
    ("late_p50_ms", _NUMBER),  # quantiles of the lateness of timeouts
    ("late_p99_ms", _NUMBER),
    ("late_max_ms", _NUMBER),
    ("share_expired", _NUMBER),
    ("estimated_total", _NUMBER),  # mean of the new design's estimate
    ("exact_total", _NUMBER),  # mean of the exact number of requests in the lists
    ("estimate_error", _NUMBER),  # the greatest difference between the two
    ("failed", _TEXT),  # the reason if it failed, else null
)
FIGURES = [name for name, kind in _TRIAL if kind in (_INTEGER, _NUMBER)]
"""The numeric columns of a trial."""

SCHEMAS: Mapping[str, pa.Schema] = {
    # One row for each sample, and one for a task over budget, which was not run at larger sizes.
    "samples": _schema(
        _CONTESTANT,
        *_MEASUREMENT,
        ("operations", _INTEGER),  # in the sample: timers inserted, cancelled or fired, or pairs
        *_SAMPLE,
        nullable=_NULLABLE,
    ),
    # One row for each counter of each measurement; without a kernel, only the advances.
    "counters": _schema(
        _CONTESTANT,
        *_MEASUREMENT,
        ("counter", _TEXT),  # of timers.kernels.counters, or "advances", "idle_advances" of expiry
        ("count", _INTEGER),
        ("operations", _INTEGER),  # in the measurement
    ),
    # One row for each sample, or one for a replay over budget. All samples have the same counts.
    "replays": _schema(
        _CONTESTANT,
        ("source", _TEXT),  # name of a workload, or path of a trace
        ("source_json", _TEXT),  # its origin: JSON with workload or importer, parameters, seed
        ("unit", _TEXT),  # of its time: us, ms, s or unit
        *_SAMPLE,
        *_OUTCOME,  # see `compare.trial.replay.outcome`; null if over budget, but `operations`
        nullable=(*_NULLABLE, *(name for name, _ in _OUTCOME if name != "operations")),
    ),
    "memory": _schema(
        _CONTESTANT,
        ("capacity", _INTEGER),  # timers pending, so that the timer is full
        ("nbytes", _INTEGER),  # held when full, including geometry and bookkeeping
        ("nbytes_per_timer", _NUMBER),
        ("peak_nbytes", _INTEGER),  # peak while one more insert makes it grow
        ("grown_nbytes", _INTEGER),  # held after it has grown
        ("growth_seconds", pa.list_(_NUMBER)),  # of that insert, by repeat
    ),
    # One row for each wheel and size at which it was held.
    "slots": _schema(
        _CONTESTANT,
        ("size", _INTEGER),  # timers pending at first
        ("pending", _INTEGER),  # after holding
        ("in_slots", _INTEGER),  # in slots of the wheel; the others wait in a list
    ),
    # One row for each sample of a schedule and a cancel from Python.
    "calls": _schema(
        _CONTESTANT,  # null for an event loop, which has its own timers
        ("interface", _TEXT),  # "timer", "system-timer", or an event loop: "asyncio", "uvloop"
        ("batch", _INTEGER),  # timers per call; 1 is a call of `schedule` or `cancel`
        ("pending", _INTEGER),  # timers pending besides those of the sample
        ("operations", _INTEGER),  # pairs in the sample
        ("repeat", _INTEGER),  # from 0
        ("ns_per_operation", _NUMBER),  # of CPU time for a pair
        nullable=("contestant",),
    ),
    # One row for each trial of the enqueue experiment, in execution order.
    "purgatory": _schema(
        ("kind", _TEXT),  # what is varied: "rate", "limit" or "memory"
        ("load", _TEXT),  # rate of timeouts: low or high
        ("design", _TEXT),  # purging (new), scanning (old), or none: the experiment's own threads
        ("timer", _TEXT),  # name
        ("rate", _INTEGER),  # requests that arrive per second, on average
        ("interval", _INTEGER),  # purge interval of the new design, limit of the old one
        ("memory_bytes", _INTEGER),  # limit of allocated memory; null if there is none
        *_TRIAL,
        nullable=("memory_bytes", *(name for name, _ in _TRIAL)),
    ),
}
"""Table -> schema. Table `t` is in `t.parquet`; it has no rows if its figures were not measured."""

_ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "created": str,
    "command": list,
    "commit": (str, type(None)),
    "dirty": (bool, type(None)),
    "versions": dict,
    "machine": dict,
    "parameters": dict,
    "sources": list,
    "agreement": dict,
    "traits": list,
    "tables": dict,
}


class RunError(TimerError, ValueError):
    """A stored run cannot be read or written. The message names the path and the problem."""


@dataclass(frozen=True)
class Run:
    """A stored run: its manifest, and its tables with the schemas above."""

    path: Path
    manifest: Mapping[str, Any]
    samples: pa.Table
    counters: pa.Table
    replays: pa.Table
    memory: pa.Table
    slots: pa.Table
    calls: pa.Table
    purgatory: pa.Table


def traits_of(contestant: Contestant, units: Collection[str]) -> dict[str, Any]:
    """The manifest's entry for a contestant and its traits: plain values, formulas as text.

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
    *("name", "scheme", "summary", "order", "exact_next_expiry"),
    *("horizon", "jumps", "suits", "drawback", "source"),
)


def check_store(root: str | os.PathLike[str]) -> None:
    """Raise RunError unless a run can be stored below `root`, which need not exist yet.

    Call this before a long measurement.
    """
    if problem := obstacle(root):
        raise RunError(f"cannot store runs in {root}: {problem}")


def write_run(
    root: str | os.PathLike[str], manifest: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]
) -> Path:
    """Store a run and return its path, `root/<UTC time>-<random>`.

    A partial run is never visible. `manifest` holds all entries but format, version, created and
    tables. `rows` are those of each table in SCHEMAS; a column that a row lacks is null. Raises
    RunError if the run cannot be written.
    """
    root = Path(root)
    created = datetime.now(UTC)
    tables = {
        name: pa.Table.from_pylist(rows.get(name, []), schema) for name, schema in SCHEMAS.items()
    }
    complete = {
        "format": FORMAT,
        "version": VERSION,
        "created": created.isoformat(timespec="seconds"),
        **manifest,
        "tables": {name: table.num_rows for name, table in tables.items()},
    }
    target = root / f"{created:%Y%m%dT%H%M%S.%fZ}-{secrets.token_hex(4)}"
    with errors_as(RunError, f"cannot store a run in {root}"), new_directory(target) as directory:
        for name, table in tables.items():
            file = directory / f"{name}.parquet"
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        write_json(directory / MANIFEST, complete)
    return target


def runs_in(root: str | os.PathLike[str]) -> list[Path]:
    """The runs in a store, also renamed ones, in the order in which their manifests were written.

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


def latest_run(root: str | os.PathLike[str]) -> Path:
    """The newest run in a store. Raises RunError if there is none."""
    runs = runs_in(root)
    if not runs:
        raise RunError(f"{root} has no runs yet; `wheelwork compare` creates one")
    return runs[-1]


def find_run(path: str | os.PathLike[str]) -> Path:
    """The run at `path`, or the newest of a directory of runs."""
    path = Path(path)
    is_store = path.is_dir() and not (path / MANIFEST).exists() and runs_in(path)
    return latest_run(path) if is_store else path


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read the whole run in the directory `path`.

    Raises RunError if it is missing, damaged, of another version or not a run.
    """
    path = Path(path)
    manifest = read_manifest(path, "a stored run", FORMAT, VERSION, _ENTRIES, RunError)
    return Run(path, manifest, **{name: _read_table(path, name, manifest) for name in SCHEMAS})


def _read_table(path: Path, name: str, manifest: Mapping[str, Any]) -> pa.Table:
    file = path / f"{name}.parquet"
    with open_parquet(file, RunError) as source:
        table = source.read()
    if not table.schema.equals(SCHEMAS[name]):
        names = ", ".join(table.column_names)
        raise RunError(f"{file} has the columns {names}, not those of this release")
    if table.num_rows != (rows := manifest["tables"].get(name)):
        raise RunError(f"{file} has {table.num_rows} rows; the manifest says {rows}")
    return table
