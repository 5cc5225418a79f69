"""`wheelwork summarise`: one table of a grid replay."""

import argparse
from typing import Any

_DESCRIPTION = """\
Sum up the results of `wheelwork replay --timers ... --out RESULTS`: a row for
each timer, all shards together, printed and written as a Parquet file."""

_EXAMPLE = """\
example:
  wheelwork summarise replayed
  wheelwork summarise replayed --out table.parquet"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "summarise",
        help="one table of a grid replay",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", metavar="RESULTS", help="directory that `replay --out` wrote")
    parser.add_argument(
        "--out", metavar="FILE", help="Parquet file to write (default: RESULTS/summary.parquet)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Sum up, write and print."""
    from compare.pipeline.summarise import summarise, text_of

    print(text_of(summarise(arguments.results, arguments.out)))
