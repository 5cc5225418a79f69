"""`wheelwork summarise`: one table of replay results."""

import json

import click

from compare.cli.options import PLACE, Command, json_option, option, results_argument


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  wheelwork summarise replayed
  wheelwork summarise replayed --out table.parquet""",
)
@results_argument
@option("--out", PLACE, "Parquet file to write (default: RESULTS/summary.parquet).", metavar="FILE")
@json_option
def summarise(results: str, out: str | None, as_json: bool) -> None:
    """Summarise RESULTS, a directory that `wheelwork replay --out` wrote.

    The table has one row for each timer, over all shards. It is printed and
    written as a Parquet file.
    """
    from compare.pipeline.summarise import summarise as summary_of
    from compare.pipeline.summarise import text_of

    table = summary_of(results, out)
    click.echo(json.dumps(table.to_pylist(), indent=1) if as_json else text_of(table))
