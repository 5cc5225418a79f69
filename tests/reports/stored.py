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


def store(root: Path, rows: Mapping[str, list[dict[str, Any]]], **manifest: Any) -> Path:
    """Store a run of rows by table, which may lack columns, and return its path."""
    tables = {
        name: pa.Table.from_pylist(
            [dict.fromkeys(SCHEMAS[name].names) | row for row in records], SCHEMAS[name]
        )
        for name, records in rows.items()
    }
    return write_run(root, BASE | manifest, tables)
