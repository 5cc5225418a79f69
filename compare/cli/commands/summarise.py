"""`wheelwork summarise`: show replay results as one table."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from compare.cli import options
from compare.cli.text import columns, figure, plural


@options.command("""\b
Examples:
  wheelwork summarise replayed
  wheelwork summarise replayed --out table.parquet""")
@options.results_argument
@options.option(
    "--out", options.Place("file"), "Parquet file to write (default: RESULTS/summary.parquet)."
)
@options.json
def summarise(results: str, out: str | None, as_json: bool) -> None:
    """Summarise RESULTS, a directory written by `wheelwork replay --out`.

    The table has one row for each timer, over all shards. It is printed and
    written as a Parquet file.
    """
    from compare.trial.pipeline.summarise import summarise as summary_of

    rows = summary_of(results, out).to_pylist()
    if as_json:
        rows = [row | {"source": json.loads(row["source"])} for row in rows]
    click.echo(json.dumps(rows, indent=1) if as_json else text_of(rows))


def text_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of the table as text, in 80 columns."""
    first = rows[0]
    lines = [
        f"{first['workload']}: {first['operations']:,} operations in "
        f"{plural(first['shards'], 'shard')}; times in {first['unit']}",
        "",
        *columns([_figures(row) for row in rows]),
        "",
        "ns: per operation, expiries included; most pending: in one shard; late: fired_at",
        "- max(deadline, armed_at) of all timers that fired",
    ]
    return "\n".join(lines)


def _figures(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "": row["contestant"],
        "ns": figure(row["ns_per_operation"], ".1f"),
        "fired": figure(row["fired"], ","),
        "most pending": figure(row["most_pending"], ","),
        "late p50": figure(row["lateness_p50"], ","),
        "p99": figure(row["lateness_p99"], ","),
        "max": figure(row["lateness_max"], ","),
    }
