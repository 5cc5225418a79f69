"""`wheelwork diff`: compare two stored runs; the exit code is 1 if something is slower."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from compare.base.arguments import percent
from compare.cli import options
from compare.cli.text import Sheet, figure, plural, shown

if TYPE_CHECKING:
    from reports.diff import Change, Difference

REGRESSION = 1
"""The exit code if something is slower by more than the threshold."""

NOT_JUDGED = 3
"""The exit code if no figure has enough samples to tell."""


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
@options.formats
def diff(
    run_a: str, run_b: str, threshold: float, base: str | None, as_json: bool, as_markdown: bool
) -> int:
    """Show what is faster or slower in RUN_B than in RUN_A, beyond noise.

    A RUN is a stored run of `compare` or `report`, or a directory of runs, whose
    newest is taken. A median differs beyond noise if the intervals of the two
    medians are more than 10 % apart; with fewer than five samples it is not
    judged. The exit code is 1 if something is slower by more than the threshold,
    and 3 if no figure could be judged.

    Runs of different machines are compared by the ratios to --base, by default
    delay-queue.
    """
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    from compare.trial.results.store import find_run, read_run
    from reports.diff import difference

    compared = difference(read_run(find_run(run_a)), read_run(find_run(run_b)), base)
    regressions = compared.regressions(threshold / 100)
    if as_json:
        click.echo(json.dumps(as_plain(compared, threshold), indent=1))
    else:
        click.echo(shown(sheets_of(compared, threshold), as_markdown=as_markdown))
    if not compared.judged:
        return NOT_JUDGED
    return REGRESSION if regressions else 0


def as_plain(compared: "Difference", threshold: float) -> dict[str, object]:
    """The comparison as plain values: times in ns per operation, or multiples of the base."""
    return {
        "runs": compared.paths,
        "base": compared.base,
        "threshold_percent": threshold,
        "regressions": len(compared.regressions(threshold / 100)),
        "judged": len(compared.judged),
        "reason": None if compared.judged else FEW_SAMPLES,
        "changes": [
            {
                "task": change.subject.task,
                "size": change.subject.size,
                "contestant": change.contestant,
                "before": change.before.value,
                "after": change.after.value,
                "ratio": change.ratio,
                "ratio_low": change.interval[0],
                "ratio_high": change.interval[1],
                "verdict": change.verdict,
            }
            for change in compared.changes
        ],
        "only_in": compared.missing,
    }


FEW_SAMPLES = "nothing was judged: every figure has fewer than 5 samples in one of the runs"
"""The reason if no figure could be judged."""


def sheets_of(compared: "Difference", threshold: float) -> Iterator[Sheet]:
    """The changes beyond noise, the slowest first, and the numbers of the others."""
    first, second = compared.paths
    yield Sheet(notes=[f"A: {first}", f"B: {second}"])
    for verdict, changes in (
        ("slower", compared.changes),
        ("faster", compared.changes[::-1]),
    ):
        if beyond := [change for change in changes if change.verdict == verdict]:
            title = f"{plural(len(beyond), 'figure')} {verdict} in B, beyond noise"
            yield _table(title, beyond)
    verdicts = [change.verdict for change in compared.judged]
    few = len(compared.changes) - len(verdicts)
    unit = f"multiples of {compared.base}" if compared.base else "ns per operation"
    lines = [f"A and B: medians, {unit}; change and its interval: percent"]
    lines.append(f"{verdicts.count('same'):,} of {plural(len(verdicts), 'figure')} within noise")
    lines += [f"not judged, fewer than 5 samples: {plural(few, 'figure')}"] if few else []
    missing = zip("AB", compared.missing, strict=True)
    lines += [f"{plural(number, 'figure')} only in {run}" for run, number in missing if number]
    beyond_threshold = len(compared.regressions(threshold / 100))
    if verdicts:
        lines.append(f"slower by more than {threshold:g} %: {beyond_threshold or 'nothing'}")
    else:
        lines.append(FEW_SAMPLES)
    yield Sheet(notes=lines)


def _table(title: str, changes: "Sequence[Change]") -> Sheet:
    from compare.base.formats import NO_BREAK, significant

    rows = []
    for change in changes:
        low, high = (100 * (ratio - 1) for ratio in change.interval)
        rows.append(
            {
                "": change.contestant,
                "task": change.subject.task,
                "pending": figure(change.subject.size, ","),
                "A": significant(change.before.value).replace(NO_BREAK, ","),
                "B": significant(change.after.value).replace(NO_BREAK, ","),
                "change": f"{100 * (change.ratio - 1):+.0f}",
                "interval": f"{low:+.0f} .. {high:+.0f}",
            }
        )
    return Sheet.of(title, rows)
