"""`wheelwork summarise`: show replay results as one table."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import Sheet, figure, plural, shown

if TYPE_CHECKING:
    from compare.trial.results.store import Run


@options.command("""\b
Examples:
  wheelwork summarise replayed
  wheelwork summarise replayed --out summary""")
@options.results_argument
@options.option(
    "--out", options.Place("run"), "Directory of the summary (default: RESULTS/summary)."
)
@options.allow
@options.formats
def summarise(
    results: str, out: str | None, allow: tuple[str, ...], as_json: bool, as_markdown: bool
) -> None:
    """Summarise RESULTS, a directory written by `wheelwork replay --out`.

    The figures of each timer, over all shards, are printed and stored as a run,
    which `report` and `diff` read.
    """
    leave_out_pandas()
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    from compare.cli import printing
    from compare.trial.pipeline.summarise import summarise as summary_of
    from reports.summary import figures_of

    run = summary_of(results, out, allow=allow)
    if as_json:
        click.echo(json.dumps(printing.values(figures_of(run), run), indent=1))
    else:
        click.echo(shown([sheet_of(run)], as_markdown=as_markdown))


_COLUMNS: Mapping[str, tuple[str, str]] = {
    "ns": ("replay_time", ".1f"),
    "fired": ("fired", ",.0f"),
    "most pending": ("most_pending", ",.0f"),
    "late p50": ("lateness_p50", ",.0f"),
    "p99": ("lateness_p99", ",.0f"),
    "max": ("lateness_max", ",.0f"),
}
"""Heading -> metric and format."""


def sheet_of(run: "Run") -> Sheet:
    """The table of a summary."""
    from reports.summary import figures_of

    summary = figures_of(run)
    [source] = summary.sources
    rows = [
        {"": timer.label}
        | {
            heading: figure(summary.value(timer, source, metric), form)
            for heading, (metric, form) in _COLUMNS.items()
        }
        for timer in summary.contestants
    ]
    operations, shards = source.details["operations"], source.details["shards"]
    title = (
        f"{source.name}: {operations:,} operations in {plural(shards, 'shard')}; "
        f"times in {source.unit}"
    )
    return Sheet.of(
        title,
        rows,
        [
            "ns: per operation, expiries included; most pending: in one shard",
            "late: fired_at - max(deadline, armed_at) of all timers that fired",
        ],
    )
