"""`wheelwork verify`: hold what a grid replay fired against the trace."""

import argparse
import json
import textwrap
from typing import TYPE_CHECKING, Any

from compare.arguments import count

if TYPE_CHECKING:
    from compare.oracle.merge import Mismatch
    from compare.pipeline.verify import Verification

MISMATCHES = 1
"""The exit code when a timer did not fire what it had to; 2 is for bad input."""

_DESCRIPTION = """\
Prove that each timer of `wheelwork replay --timers ... --out RESULTS` fired
what it had to: every expiry is held against the trace by an oracle that shares
nothing with the timers. What is wrong is counted by kind:

  missing   a timer that had to fire has no row
  spurious  a row of a timer that was cancelled, re-armed or never there
  early     fired before the moment that the scheme declares
  late      fired after it
  double    one more row of a timer that has one
  altered   fired when it had to, but with another deadline

The exit code is 0 when nothing is wrong, and 1 when something is."""

_EXAMPLE = """\
example:
  wheelwork replay low.trace --timers delay-queue,hashed-wheel --out replayed
  wheelwork verify replayed
  wheelwork verify replayed --method join --json"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "verify",
        help="prove that a grid replay fired what it had to",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", metavar="RESULTS", help="directory that `replay --out` wrote")
    parser.add_argument(
        "--method",
        choices=("merge", "join"),
        default="merge",
        help="a merge inside each shard, or a plain join in Spark SQL, slower (default: merge)",
    )
    parser.add_argument(
        "--examples",
        type=count,
        default=5,
        metavar="N",
        help="mismatches told of each kind (default: 5)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead")
    parser.add_argument(
        "--master", metavar="URL", help="a Spark master (default: local[*], this machine)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Verify and print."""
    from compare.spark.session import require_spark

    require_spark()
    from compare.pipeline.verify import verify

    found = verify(
        arguments.results,
        method=arguments.method,
        examples=arguments.examples,
        master=arguments.master,
    )
    print(json.dumps(_object(found), indent=1) if arguments.json else text_of(found))
    return 0 if found.right else MISMATCHES


def _object(found: "Verification") -> dict[str, Any]:
    return {
        "results": str(found.path),
        "method": found.method,
        "unit": found.unit,
        "operations": found.operations,
        "shards": found.shards,
        "right": found.right,
        "timers": [
            {
                "timer": verdict.timer,
                "expected": verdict.expected,
                "fired": verdict.fired,
                "mismatches": verdict.mismatches,
                "counts": dict(verdict.counts),
                "examples": [vars(example) for example in verdict.examples],
            }
            for verdict in found.timers
        ],
    }


# ---- for people
# ---------------------------------------------------------------------------------------------------

_WIDTH = 80
_FIGURE = 18  # columns of a number: a trillion, and a blank
_KIND = 10  # columns of a kind


def text_of(found: "Verification") -> str:
    """A table of 80 columns, and what is wrong."""
    timers = len(found.timers)
    head = (
        f"{found.path}: {timers} timer{'s' * (timers != 1)} x {found.shards} shard{'s' * (found.shards != 1)},"
        f" {found.operations:,} operations"
    )
    lines = [head, _line("", "must fire", "fired", "mismatches")]
    for verdict in found.timers:
        figures = (f"{verdict.expected:,}", f"{verdict.fired:,}", f"{verdict.mismatches:,}")
        lines.append(_line(verdict.timer, *figures))
    for verdict in found.timers:
        if verdict.mismatches:
            counts = ", ".join(
                f"{number:,} {kind}" for kind, number in verdict.counts.items() if number
            )
            lines += ["", *textwrap.wrap(f"{verdict.timer}: {counts}", _WIDTH)]
            for example in verdict.examples:
                lines += _example(example)
    return "\n".join(lines)


def _line(name: str, *figures: str) -> str:
    width = _WIDTH - _FIGURE * len(figures)
    if len(name) > width:
        name = f"{textwrap.fill(name, _WIDTH)}\n{'':{width}}"
    return (f"{name:<{width}}" + "".join(f"{figure:>{_FIGURE}}" for figure in figures)).rstrip()


def _example(example: "Mismatch") -> list[str]:
    where = f"shard {example.shard}, operation {example.operation}"
    if example.id is None:
        where += " (not on the tape)"
    else:
        where += f" (id {example.id}, deadline {example.deadline})"
    says = {
        "missing": f"due at {example.expected}",
        "spurious": f"fired at {example.fired_at}",
        "early": f"fired at {example.fired_at}, due at {example.expected}",
        "late": f"fired at {example.fired_at}, due at {example.expected}",
        "double": f"fired again at {example.fired_at}, due at {example.expected}",
        "altered": f"fired with deadline {example.said}",
    }
    line = f"  {example.kind:<{_KIND}}{where}: {says[example.kind]}"
    return textwrap.wrap(line, _WIDTH, subsequent_indent=" " * (_KIND + 2))
