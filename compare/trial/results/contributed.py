"""Runs of several machines, kept in a repository: `results/MACHINE/TIME-COMMIT/`, each as stored.

A run is contributed only if others can repeat it and it tells nothing of its owner's traffic.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compare.base.files import MANIFEST, errors_as, new_directory
from compare.trial.results.store import COMPARISON, Run, RunError, read_run
from timers.registry import TIMERS

MOST_BYTES = 300_000
"""The size of a run that is contributed, at most."""

FOLDER = "results"
"""Where contributed runs are, in a checkout."""


def machine_title(manifest: Mapping[str, Any]) -> str:
    """A machine in words, by what stays the same when its system is updated.

    >>> machine_title({"machine": {"cpu": "AMD EPYC", "cores": 2, "memory_bytes": 25_276_510_208}})
    'AMD EPYC, 2 cores, 24 GiB'
    """
    machine = manifest["machine"]
    cores, memory = machine.get("cores"), machine.get("memory_bytes")
    parts = [machine.get("cpu") or machine.get("platform") or "unknown processor"]
    parts += [f"{cores} core{'s' * (cores != 1)}"] if cores else []
    return ", ".join([*parts, *([f"{memory / 2**30:.0f} GiB"] if memory else [])])


def folder_of(run: Run) -> Path:
    """The folder of a run below `results`: the machine, then the date and the commit.

    The time keeps two runs of one day apart.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", machine_title(run.manifest).lower()).strip("-")
    created = re.sub(r"[^0-9T]", "", str(run.manifest["created"])[:19])
    return Path(slug, f"{created}-{str(run.manifest['commit'])[:7]}")


def obstacles(run: Run) -> Iterator[str]:
    """What keeps a run from being contributed, each as the end of "RUN ..."."""
    manifest = run.manifest
    if manifest["kind"] != COMPARISON:
        yield f"is of kind {manifest['kind']!r}; a run of `wheelwork compare` or `report` is needed"
    if run.missing:
        yield f"is not finished; {run.missing[0]} is missing"
    for source in manifest["sources"]:
        if source["description"] is not None:
            yield f"has figures on {source['name']}, a trace of your own; compare without traces"
    for entry in manifest["contestants"]:
        if entry["timer"] not in TIMERS:
            yield f"has figures on {entry['timer']}, which is not a timer of wheelwork"
    for peer in manifest.get("peers", ()):
        if not re.fullmatch(r"[\w-]+", peer["name"]):  # the command of a program
            yield f"has figures on {peer['name']}, which is not a peer of wheelwork"
    if not manifest["commit"]:
        yield "names no commit; run the comparison in a checkout"
    elif manifest["dirty"]:
        yield "is of files that were changed after their commit; commit them, and compare again"
    size = sum(file.stat().st_size for file in run.path.iterdir())
    if size > MOST_BYTES:
        yield f"has {size:,} bytes; at most {MOST_BYTES:,} are stored. Choose fewer --sizes"


def contribute(run: Run, out: str | os.PathLike[str] = FOLDER) -> Path:
    """Copy a run below `out`, and return its folder. Raises RunError if something is against it."""
    for obstacle in obstacles(run):
        raise RunError(f"{run.path} {obstacle}")
    target = Path(out, folder_of(run))
    if target.exists():
        raise RunError(f"{target} exists already")
    with errors_as(RunError, f"cannot write {target}"), new_directory(target) as directory:
        for name in (MANIFEST, *(f"{task}.parquet" for task in run.manifest["tasks"])):
            shutil.copy(run.path / name, directory / name)
    return target


def contributed(folder: str | os.PathLike[str] = FOLDER) -> list[Run]:
    """The runs below `folder`, the newest first. Raises RunError for one that cannot be read."""
    runs = [read_run(path.parent) for path in Path(folder).glob(f"*/*/{MANIFEST}")]
    return sorted(runs, key=lambda run: (run.manifest["created"], run.path), reverse=True)
