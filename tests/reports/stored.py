"""Writes stored runs with made-up figures."""

from collections.abc import Mapping
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
