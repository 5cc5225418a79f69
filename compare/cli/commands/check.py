"""`wheelwork check`: check a timer in any language on tapes that are made to find faults."""

import json
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.cli.text import labelled, plural

if TYPE_CHECKING:
    from compare.trial.peers.check import Verdict

FAILED = 1
LONGEST_TABLE = 20


@options.command("""\b
Examples:
  wheelwork check -- ./my-peer
  wheelwork check --examples 1000 --seed 7 -- java -cp classes MyPeer
  wheelwork check --json -- python my_peer.py""")
@click.argument("peer", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]...")
@options.option("--examples", options.COUNT, "Number of random tapes.", default=200)
@options.seed
@options.option(
    "--timeout",
    options.SECONDS,
    "Time limit for each command of the peer, in seconds.",
    default=60.0,
)
@options.json
def check(peer: tuple[str, ...], examples: int, seed: int, timeout: float, as_json: bool) -> int:
    """Check a timer in any language: COMMAND is a peer, as in docs/peers.md.

    The peer does boundary cases, workloads, random tapes, and a million timers
    at one moment. When it fails, the smallest tape that still fails is printed
    as a table of operations, with what must come out and what did.

    The exit code is 0 if the peer passes, 1 if it fails, and 2 if it cannot be
    started or described.
    """
    if not peer:
        raise click.UsageError("name the command of the peer, after --: -- ./my-peer")

    from compare.trial.peers.check import check_peer
    from compare.trial.peers.run import Peer

    verdict = check_peer(Peer(peer, timeout=timeout), seed=seed, examples=examples)
    click.echo(json.dumps(verdict.as_json(), indent=1) if as_json else text_of(verdict))
    return 0 if verdict.failure is None else FAILED


def text_of(verdict: "Verdict") -> str:
    """The result of a check as text."""
    from compare.trial.peers.check import operations_table

    described = verdict.description
    library = f", {described.library_text}" if described.library_text else ""
    lines = [f"{described.name} ({described.language}{library}): {described.rounding.text}"]
    if verdict.tried:
        tried = ", ".join(plural(number, kind) for kind, number in verdict.tried.items())
        lines.append(labelled("tried", f"{tried}; seed {verdict.seed}", indent=2))
    if verdict.skipped:
        skipped = plural(len(verdict.skipped), "tape")
        text = f"{skipped} beyond its limits (--json lists them)"
        lines.append(labelled("skipped", text, indent=2))
    failure = verdict.failure
    if failure is None:
        return "\n".join([*lines, labelled("result", "no fault", indent=2)])
    lines.append(labelled("fault", failure.fault.text, indent=2))
    size = plural(failure.tape.time.size, "operation")
    sometimes = "" if failure.repeats else "; it did not fail when it was run once more"
    lines.append(labelled("tape", f"{size}, of: {failure.origin}{sometimes}", indent=2))
    table = operations_table(failure, described)
    if len(table) > LONGEST_TABLE:
        lines.append(f"The first {LONGEST_TABLE} operations:")
    rows = [["", "time", "operation", "id", "deadline", "expected", "delivered"]]
    for entry in table[:LONGEST_TABLE]:
        rows.append(["-" if value is None else str(value) for value in entry.values()])
    return "\n".join([*lines, "", *_aligned(rows)])


def _aligned(rows: list[list[str]]) -> list[str]:
    """Align columns: numbers to the right, texts to the left."""
    right = (True, True, False, True, True, False, False)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, right, strict=True)
        texts = (cell.rjust(width) if side else cell.ljust(width) for cell, width, side in cells)
        lines.append("  ".join(texts).rstrip())
    return lines
