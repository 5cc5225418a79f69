"""Measure every operation that programs call often, here and in another commit, in turns.

    python -m tests.bench.against COMMIT [--only TEXT] [--limit 1.25] [--minutes 10]

Installs the commit beside this one, in `.nox/against`, with the versions of the packages that this
environment has. Prints for each operation, beside several numbers of others, the CPU time there and
here, the ratio of neighbouring turns, and the interval that has its median with 95 % confidence.
Ends with 1 if a whole interval lies beyond the limit, in three pairs of processes, or if this
commit fails in a row.
"""

import argparse
import sys

from .install import ROOT, CommitError, installed
from .measure import Gate, side_of
from .printing import heading, line, summary
from .ratios import Result
from .row import Row
from .table import ROWS

LIMIT, MINUTES = 1.25, 10.0


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.against",
        description=(__doc__ or "").replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit", nargs="+")
    parser.add_argument("--only", metavar="TEXT", help="rows whose name has this text")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    options = parser.parse_args()
    rows = [row for row in ROWS if (options.only or "").lower() in row.name.lower()]
    if not rows:
        sys.exit(f"no row has {options.only!r} in its name; groups: {', '.join(groups())}")
    passed = [against(commit, rows, options.limit, options.minutes) for commit in options.commit]
    sys.exit(not all(passed))


def against(commit: str, rows: list[Row], limit: float, minutes: float) -> bool:
    """Measure and print; return whether the gate is open."""
    try:
        python = installed(commit, ROOT / ".nox" / "against")
    except CommitError as error:
        sys.exit(str(error))
    gate = Gate(side_of(str(python)), side_of(sys.executable, ROOT), limit)
    print(f"{len(rows)} operations against {commit}: compiling, which is not counted", flush=True)
    for _ in gate.compile(rows):
        pass
    print(heading(commit))
    results: dict[tuple[str, int], Result] = {}
    group = ""
    for result in gate.measure(rows, 60 * minutes):
        is_final = (result.name, result.size) in results or not result.is_open(limit)
        results[result.name, result.size] = result
        if group != (group := result.name.partition(":")[0]):
            print(group)
        print(line(result, limit, is_final), flush=True)
    print(summary(list(results.values()), limit))
    return not any(result.fails(limit) for result in results.values())


def groups() -> list[str]:
    """The groups of the table."""
    return list(dict.fromkeys(row.group for row in ROWS))


if __name__ == "__main__":
    main()
