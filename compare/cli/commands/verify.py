"""`wheelwork verify`: check replay results against the oracle."""

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import WIDTH, replays_text, table

if TYPE_CHECKING:
    from compare.oracle.mismatches import Mismatch
    from compare.pipeline.verify import Verification

MISMATCHES = 1
"""The exit code when a timer did not fire what it had to; 2 is for bad input."""


@options.command("""\b
Examples:
  wheelwork replay low.trace --timers delay-queue,hashed-wheel --out replayed
  wheelwork verify replayed
  wheelwork verify replayed --method sql --json""")
@options.results_argument
@options.option(
    "--method",
    ("compiled", "sql"),
    "Run the compiled oracle, or the one in Spark SQL, which is slower.",
    default="compiled",
)
@options.option("--examples", options.COUNT, "Mismatches to print of each kind.", default=5)
@options.json
@options.master
def verify(results: str, method: str, examples: int, as_json: bool, master: str | None) -> int:
    """Check RESULTS, which `wheelwork replay --out` wrote, against the oracle.

    Every expiry is compared with the trace by an oracle that shares no code with
    the timers. Mismatches are counted by kind:

    \b
      missing   a timer that had to fire has no row
      spurious  a row of a timer that was cancelled, re-armed or never there
      early     fired before the moment that the scheme declares
      late      fired after it
      double    one more row of a timer that has one
      altered   fired when it had to, but with another deadline

    The exit code is 0 when there is no mismatch, and 1 when there is one.
    """
    from compare.pipeline.verify import verify as verification_of

    found = verification_of(results, method=method, examples=examples, master=master)
    click.echo(json.dumps(_object(found), indent=1) if as_json else text_of(found))
    return 0 if found.passed else MISMATCHES


def _object(found: "Verification") -> dict[str, Any]:
    described = asdict(found)
    timers = zip(described["timers"], found.timers, strict=True)
    return {
        "results": str(described.pop("path")),
        **described,
        "passed": found.passed,
        "timers": [entry | {"mismatches": verdict.mismatches} for entry, verdict in timers],
    }


# ---- text

_KIND = 10  # columns of a kind


def text_of(found: "Verification") -> str:
    """A table of 80 columns, and the mismatches."""
    rows: list[tuple[str, ...]] = [("", "must fire", "fired", "mismatches")]
    details: list[str] = []
    for verdict in found.timers:
        numbers = (verdict.expected, verdict.fired, verdict.mismatches)
        rows.append((verdict.timer, *(f"{number:,}" for number in numbers)))
        if verdict.mismatches:
            counts = (f"{number:,} {kind}" for kind, number in verdict.counts.items() if number)
            details += ["", *textwrap.wrap(f"{verdict.timer}: {', '.join(counts)}", WIDTH)]
            for example in verdict.examples:
                details += _example(example)
    title = replays_text(found.path, len(found.timers), found.shards, found.operations)
    return "\n".join([title, *table(rows), *details])


def _example(example: "Mismatch") -> list[str]:
    timer = f"id {example.id}, deadline {example.deadline}"
    where = f"shard {example.shard}, operation {example.operation}"
    where += f" ({'not on the tape' if example.id is None else timer})"
    due, fired = f"due at {example.expected}", f"fired at {example.fired_at}"
    reasons = {
        "missing": due,
        "spurious": fired,
        "early": f"{fired}, {due}",
        "late": f"{fired}, {due}",
        "double": f"fired again at {example.fired_at}, {due}",
        "altered": f"fired with deadline {example.reported}",
    }
    line = f"  {example.kind:<{_KIND}}{where}: {reasons[example.kind]}"
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * (_KIND + 2))
