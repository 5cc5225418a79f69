"""Measure every operation that programs call often, here and in another commit, in turns.

    python -m tests.bench.against COMMIT ... [--only TEXT] [--limit 1.25]
        [--minutes 10] [--markdown FILE]

Installs the commit beside this one, in `.nox/commits`, with the versions of the
packages that this environment has. Prints for each operation, beside several
numbers of others, the CPU time there and here, the median ratio of neighbouring
turns, and the interval in which that lies with 95 % confidence. A row that
seems slower is measured again in two more pairs of processes ("?").

Ends with 1 if the whole interval of a row lies beyond the limit ("!"), if an
operation fails here, or if there was no time left for a row; "+" marks what is
faster by as much. Each commit has all the minutes for itself; installing and
compiling do not count. When they do not suffice, a row has too few turns ("~"),
and fails if it seems slower.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from .install import ROOT, CommitError, full_name, installed
from .measure import Gate, side_of
from .printing import group_line, heading, line, markdown, summary
from .ratios import Result
from .row import Row
from .table import ROWS

LIMIT, MINUTES = 1.25, 10.0


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.against",
        usage="%(prog)s COMMIT ... [--only TEXT] [--limit X] [--minutes X] [--markdown FILE]",
        description=(__doc__ or "").split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commits", metavar="COMMIT", nargs="+", help="of this repository")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows with this in their names")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"default: {LIMIT}")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"for each commit; default: {MINUTES:g}"
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the ratios, too; - prints them, and the lines go to stderr",
    )
    options = parser.parse_args()
    _check("limit", options.limit, 1)
    _check("minutes", options.minutes, 0)
    rows = [row for row in ROWS if options.only.lower() in row.name.lower()]
    if not rows:
        groups = ", ".join(dict.fromkeys(row.group for row in ROWS))
        sys.exit(f"no row has {options.only!r} in its name; the groups are {groups}")
    results = {}
    in_table = options.markdown == Path("-")
    try:
        for commit in options.commits:
            full_name(commit, ROOT)
        for commit in options.commits:
            with redirect_stdout(sys.stderr if in_table else sys.stdout):
                results[commit] = against(commit, rows, options.limit, options.minutes)
    except CommitError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if in_table:
        print(markdown(results, options.limit), end="")
    elif options.markdown:
        options.markdown.write_text(markdown(results, options.limit))
    sys.exit(any(result.fails(options.limit) for all_ in results.values() for result in all_))


def against(commit: str, rows: Sequence[Row], limit: float, minutes: float) -> list[Result]:
    """Measure the rows in a commit and here, and print each result."""
    python = installed(commit, ROOT / ".nox" / "commits", ROOT)
    gate = Gate(side_of(str(python)), side_of(sys.executable, ROOT), limit)
    results: dict[tuple[str, int], Result] = {}
    group = ""
    try:
        print(f"{len(rows)} operations against {commit}", flush=True)
        for number, _ in enumerate(gate.compile(rows), 1):
            if sys.stderr.isatty():
                print(f"\rcompiling, {number} of {len(rows)}\033[K", end="", file=sys.stderr)
        print("\r\033[K" * sys.stderr.isatty(), end="", file=sys.stderr, flush=True)
        print(heading(commit))
        for result in gate.measure(rows, 60 * minutes):
            key = result.name, result.size
            is_final = key in results or not result.is_open(limit)
            results[key] = result
            if group != (group := group_line(result)):
                print(group)
            print(line(result, limit, is_final), flush=True)
    finally:
        gate.end()
    print(summary(list(results.values()), limit))
    return list(results.values())


def _check(name: str, value: float, above: int) -> None:
    if not (math.isfinite(value) and value > above):
        sys.exit(f"{name} must be a number above {above}, not {value:g}")


if __name__ == "__main__":
    main()
