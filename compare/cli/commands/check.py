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
QUICK_SHRINK = 20.0


@options.command("""\b
Examples:
  wheelwork check -- ./my-peer
  wheelwork check --quick --junit check.xml --markdown check.md -- ./my-peer
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
@options.option(
    "--shrink",
    options.SECONDS,
    "Time limit for the search for the smallest tape that fails, in seconds.",
    default=60.0,
)
@options.flag("--quick", "Try as much as 7 seconds allow, and shrink for 20 at most.")
@options.option("--junit", options.Place("file"), "Also write the result as JUnit's XML.")
@options.option("--markdown", options.Place("file"), "Also write it as Markdown; - is the output.")
@options.option("--badge", options.Place("file"), "Also write a badge as SVG.")
@options.json
def check(
    peer: tuple[str, ...],
    examples: int,
    seed: int,
    timeout: float,
    shrink: float,
    quick: bool,
    junit: str | None,
    markdown: str | None,
    badge: str | None,
    as_json: bool,
) -> int:
    """Check a timer in any language: COMMAND is a peer, as in docs/peers.md.

    The peer does boundary cases, workloads, random tapes, and a million timers
    at one moment; the growth of its costs is measured. If it is made for threads,
    several start and cancel timers at once. When it fails, the
    smallest tape that still fails is printed as a table of operations, with
    what must come out and what did.

    The exit code is 0 if the peer passes, also if it is slow, 1 if it fails,
    and 2 if it cannot be started or described.
    """
    if not peer:
        raise click.UsageError("name the command of the peer, after --: -- ./my-peer")

    from compare.base.files import new_file, obstacle
    from compare.trial.peers import verdicts
    from compare.trial.peers.check import check_peer
    from compare.trial.peers.run import Peer

    files = {"junit": junit, "badge": badge, "markdown": markdown if markdown != "-" else None}
    for option, path in files.items():
        if path is not None and (why := obstacle(path)):
            raise click.UsageError(f"--{option} {path}: {why}")
    verdict = check_peer(
        Peer(peer, timeout=timeout),
        seed=seed,
        examples=examples,
        shrink_seconds=min(shrink, QUICK_SHRINK) if quick else shrink,
        quick=quick,
    )
    for option, path in files.items():
        if path is not None:
            with new_file(path) as temporary:
                text = getattr(verdicts, option)(verdict)
                temporary.write_text(text, encoding="utf-8")
    if markdown == "-":
        click.echo(verdicts.markdown(verdict), nl=False)
    else:
        click.echo(json.dumps(verdict.as_json(), indent=1) if as_json else text_of(verdict))
    return 0 if verdict.failure is None else FAILED


def text_of(verdict: "Verdict") -> str:
    """The result of a check as text."""
    from compare.base.formats import significant
    from compare.trial.peers.check import operations_table
    from compare.trial.peers.verdicts import result_text

    described = verdict.description
    library = f", {described.library_text}" if described.library_text else ""
    lines = [f"{described.name} ({described.language}{library}): {described.fires}"]
    if verdict.tried:
        counts = {kind: number for kind, number in verdict.tried.items() if kind != "growth"}
        tried = ", ".join(plural(number, kind) for kind, number in counts.items())
        lines.append(labelled("tried", f"{tried}; seed {verdict.seed}", indent=2))
    if verdict.skipped:
        skipped = plural(len(verdict.skipped), "tape")
        text = f"{skipped} beyond its limits (--json lists them)"
        lines.append(labelled("skipped", text, indent=2))
    if verdict.costs:
        costs = ", ".join(f"{name} {significant(ns)} ns" for name, ns in verdict.costs.items())
        lines.append(labelled("costs", f"{costs}; {verdict.grown_to:,} pending", indent=2))
    failure = verdict.failure
    if failure is None:
        return "\n".join([*lines, labelled("result", result_text(verdict), indent=2)])
    lines.append(labelled("fault", failure.fault.text, indent=2))
    if not failure.is_small:
        return "\n".join(lines)
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
