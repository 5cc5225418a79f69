"""`wheelwork verify`: check replay results against the oracle."""

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import WIDTH, replays_text, table

if TYPE_CHECKING:
    from compare.trial.oracle.mismatches import Mismatch
    from compare.trial.pipeline.verify import Verification

MISMATCHES = 1
"""The exit code if there is a mismatch; 2 is for bad input."""


@options.command("""\b
Examples:
  wheelwork replay low.trace --timers delay-queue,hashed-wheel --out replayed
  wheelwork verify replayed
  wheelwork verify replayed --json""")
@options.results_argument
@options.option("--examples", options.COUNT, "Mismatches to print per kind.", default=5)
@options.allow
@options.json
@options.master
def verify(
    results: str,
    examples: int,
    allow: tuple[str, ...],
    as_json: bool,
    master: str | None,
) -> int:
    """Check RESULTS, written by `wheelwork replay --out`, against the oracle.

    Every expiry is compared with the trace by an oracle that shares no code with
    the timers. Mismatches are counted by kind:

    \b
      missing   did not fire
      spurious  fired although cancelled, re-armed or never scheduled
      early     fired before the time that the scheme declares
      late      fired after that time
      double    fired more than once
      altered   fired on time, but with another deadline

    The exit code is 1 if there is a mismatch.
    """
    leave_out_pandas()
    from compare.trial.pipeline.verify import verify as verification_of

    result = verification_of(results, examples=examples, allow=allow, master=master)
    click.echo(json.dumps(_object(result), indent=1) if as_json else text_of(result))
    return 0 if result.passed else MISMATCHES


def _object(result: "Verification") -> dict[str, Any]:
    values = asdict(result)
    timers = zip(values["timers"], result.timers, strict=True)
    return {
        "results": str(values.pop("path")),
        **values,
        "passed": result.passed,
        "timers": [entry | {"mismatches": verdict.mismatches} for entry, verdict in timers],
    }


# ---- text

_KIND = 10  # width of the column of kinds


def text_of(result: "Verification") -> str:
    """Format a table in 80 columns, and examples of the mismatches."""
    rows: list[tuple[str, ...]] = [("", "must fire", "fired", "mismatches")]
    details: list[str] = []
    for verdict in result.timers:
        numbers = (verdict.expected, verdict.fired, verdict.mismatches)
        rows.append((verdict.timer, *(f"{number:,}" for number in numbers)))
        if verdict.mismatches:
            counts = (f"{number:,} {kind}" for kind, number in verdict.counts.items() if number)
            details += ["", *textwrap.wrap(f"{verdict.timer}: {', '.join(counts)}", WIDTH)]
            for example in verdict.examples:
                details += _example(example)
    title = replays_text(result.path, len(result.timers), result.shards, result.operations)
    return "\n".join([title, *table(rows), *details])


def _example(example: "Mismatch") -> list[str]:
    timer = f"id {example.id}, deadline {example.deadline}"
    place = f"shard {example.shard}, operation {example.operation}"
    place += f" ({'not on the tape' if example.id is None else timer})"
    due, fired = f"due at {example.expected}", f"fired at {example.fired_at}"
    reasons = {
        "missing": due,
        "spurious": fired,
        "early": f"{fired}, {due}",
        "late": f"{fired}, {due}",
        "double": f"fired again at {example.fired_at}, {due}",
        "altered": f"fired with deadline {example.reported}",
    }
    line = f"  {example.kind:<{_KIND}}{place}: {reasons[example.kind]}"
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * (_KIND + 2))
