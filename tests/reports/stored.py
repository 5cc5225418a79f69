"""Writes stored runs with made-up figures."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compare.trial.bench.store import write_run

BASE = {
    "command": ["wheelwork", "compare"],
    "commit": None,
    "dirty": None,
    "versions": {},
    "machine": {"cpu": "Example CPU"},
    "parameters": {},
    "sources": [],
    "agreement": {},
    "traits": [],
}


def repeated(row: dict[str, Any], samples: Iterable[float]) -> list[dict[str, Any]]:
    """A row for each sample of a time."""
    return [row | {"repeat": k, "ns_per_operation": ns} for k, ns in enumerate(samples)]


def store(root: Path, rows: Mapping[str, list[dict[str, Any]]], **manifest: Any) -> Path:
    """Store a run of rows by table, which may lack columns, and return its path."""
    return write_run(root, BASE | manifest, rows)
