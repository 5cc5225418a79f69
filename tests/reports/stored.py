"""Writes stored runs with made-up figures."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from compare.bench.store import SCHEMAS, write_run

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


def tables_of(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, pa.Table]:
    """The tables of a run from their rows, which may lack columns."""
    return {
        name: pa.Table.from_pylist(
            [dict.fromkeys(SCHEMAS[name].names) | row for row in records], SCHEMAS[name]
        )
        for name, records in rows.items()
    }


def store(root: Path, rows: Mapping[str, list[dict[str, Any]]], **manifest: Any) -> Path:
    """Store a run of rows by table and return its path."""
    return write_run(root, BASE | manifest, tables_of(rows))
