"""`wheelwork diff`: compare two stored runs; the exit code is 1 if something is slower."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from compare.base.arguments import percent
from compare.cli import options
from compare.cli.text import columns, figure, plural

if TYPE_CHECKING:
    from reports.diff import Change, Difference

REGRESSION = 1
"""The exit code if something is slower by more than the threshold."""


@options.command("""\b
Examples:
  wheelwork diff runs/20260131T* runs/20260207T*
  wheelwork diff before after --threshold 25 --json
  wheelwork diff laptop server --base delay-queue""")
@click.argument("run_a", type=options.PLACE)
@click.argument("run_b", type=options.PLACE)
@options.option(
    "--threshold",
    options.Parsed("percent", percent),
    "Fail if something is slower by more than this, beyond noise.",
    default="10",
)
@options.option("--base", options.TIMER, "Divide times by those of this timer in the same run.")
@options.json
def diff(run_a: str, run_b: str, threshold: float, base: str | None, as_json: bool) -> int:
    """Show what is faster or slower in RUN_B than in RUN_A, beyond noise.

    A RUN is a stored run of `compare` or `report`, or a directory of runs, whose
    newest is taken. A median differs beyond noise if the intervals of the two
    medians are more than 10 % apart; with fewer than five samples it is not
    judged. The exit code is 1 if something is slower by more than the threshold.

    Runs of different machines are compared by the ratios to --base, by default
    delay-queue.
    """
    from compare.trial.bench.store import find_run, read_run
    from reports.diff import difference

    compared = difference(read_run(find_run(run_a)), read_run(find_run(run_b)), base)
    regressions = compared.regressions(threshold / 100)
    if as_json:
        click.echo(json.dumps(as_plain(compared, threshold), indent=1))
    else:
        click.echo(text_of(compared, threshold))
    return REGRESSION if regressions else 0


def as_plain(compared: "Difference", threshold: float) -> dict[str, object]:
    """The comparison as plain values: times in ns per operation, or multiples of the base."""
    return {
        "runs": compared.paths,
        "base": compared.base,
        "threshold_percent": threshold,
        "regressions": len(compared.regressions(threshold / 100)),
        "changes": [
            {
                "task": change.subject.task,
                "size": change.subject.size,
                "contestant": change.contestant,
                "before": change.before.level,
                "after": change.after.level,
                "ratio": change.ratio,
                "ratio_low": change.interval[0],
                "ratio_high": change.interval[1],
                "verdict": change.verdict,
            }
            for change in compared.changes
        ],
        "only_in": compared.missing,
    }


def text_of(compared: "Difference", threshold: float) -> str:
    """Format the changes beyond noise in 80 columns, the slowest first, and count the others."""
    first, second = compared.paths
    parts = [f"A: {first}\nB: {second}"]
    for verdict, changes in (
        ("slower", compared.changes),
        ("faster", compared.changes[::-1]),
    ):
        if shown := [change for change in changes if change.verdict == verdict]:
            heading = f"{plural(len(shown), 'figure')} {verdict} in B, beyond noise"
            parts.append("\n".join([heading, *_table(shown)]))
    judged = [change.verdict for change in compared.changes if change.verdict != "few samples"]
    few = len(compared.changes) - len(judged)
    unit = f"multiples of {compared.base}" if compared.base else "ns per operation"
    lines = [f"A and B: medians, {unit}; change and its interval: percent"]
    lines.append(f"{judged.count('same'):,} of {plural(len(judged), 'figure')} within noise")
    lines += [f"not judged, fewer than 5 samples: {plural(few, 'figure')}"] if few else []
    missing = zip("AB", compared.missing, strict=True)
    lines += [f"{plural(number, 'figure')} only in {run}" for run, number in missing if number]
    beyond = len(compared.regressions(threshold / 100))
    lines.append(f"slower by more than {threshold:g} %: {beyond or 'nothing'}")
    return "\n\n".join([*parts, "\n".join(lines)])


def _table(changes: "Sequence[Change]") -> list[str]:
    from reports.formats import NO_BREAK, significant

    rows = []
    for change in changes:
        low, high = (100 * (ratio - 1) for ratio in change.interval)
        rows.append(
            {
                "": change.contestant,
                "task": change.subject.task,
                "pending": figure(change.subject.size, ","),
                "A": significant(change.before.level).replace(NO_BREAK, ","),
                "B": significant(change.after.level).replace(NO_BREAK, ","),
                "change": f"{100 * (change.ratio - 1):+.0f}",
                "interval": f"{low:+.0f} .. {high:+.0f}",
            }
        )
    return columns(rows)
