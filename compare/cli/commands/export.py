"""`wheelwork export`: write a trace as flat tape files, for programs in any language."""

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import plural


@options.command("""\b
Example:
  wheelwork generate uniform --timer-count 1e5 --out uniform.trace
  wheelwork export uniform.trace --out tapes""")
@click.argument("trace", type=options.TRACE)
@options.option("--out", options.Place("directory"), "Directory of the tapes.", required=True)
def export(trace: str, out: str) -> None:
    """Write TRACE as flat files, one for each shard.

    A program in any language can map such a file into memory; docs/peers.md
    describes it byte by byte.
    """
    leave_out_pandas()
    from compare.traffic.tapes.flat import export as export_trace
    from compare.traffic.tapes.trace import open_trace

    opened = open_trace(trace)
    files = export_trace(opened, out)
    click.echo(f"{out}: {plural(len(files), 'tape')}, {opened.totals['rows']:,} operations")
