"""`wheelwork diff`: compare two stored runs; the exit code is 1 if something is slower.

With --counters, the counted work is compared; with --rankings, the order of the timers. Of two runs
of `wheelwork claims`, the verdicts are compared.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from compare.base.arguments import percent
from compare.cli import options
from compare.cli.text import Sheet, figure, labelled, plural, shown

if TYPE_CHECKING:
    from compare.trial.results.store import Run
    from reports.claims import Verdicts
    from reports.counts import Count, CountedDifference
    from reports.diff import Change, Difference
    from reports.noise import Noise
    from reports.rankings import Rankings

REGRESSION = 1
"""The exit code if something is slower, or more work, by more than the threshold; or if rankings
or verdicts contradict each other.
"""

SLOWER, MORE_WORK = 10.0, 1.0
"""The default thresholds of times and of counted work, in percent."""

NOT_JUDGED = 3
"""The exit code if no figure has enough samples to tell, or no pair of timers, or claim, is decided
in both runs.
"""


@options.command("""\b
Examples:
  wheelwork diff runs/20260131T* runs/20260207T*
  wheelwork diff before after --threshold 25 --json
  wheelwork diff laptop server --base delay-queue
  wheelwork diff main branch --counters
  wheelwork diff monday tuesday --rankings""")
@click.argument("run_a", type=options.PLACE)
@click.argument("run_b", type=options.PLACE)
@options.option(
    "--threshold",
    options.Parsed("percent", percent),
    "Fail if something is slower by more than this, beyond noise (default: 10), or counts "
    "more work (default: 1).",
)
@options.option("--base", options.TIMER, "Divide times by those of this timer in the same run.")
@options.flag("--counters", "Compare the counted work, which is the same on every machine.")
@options.flag("--rankings", "Compare the order of the timers: is the result reproducible?")
@options.formats
def diff(
    run_a: str,
    run_b: str,
    threshold: float | None,
    base: str | None,
    counters: bool,
    rankings: bool,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Show what is faster or slower in RUN_B than in RUN_A, beyond noise.

    A RUN is a stored run of `compare`, `report` or `claims`, or a directory of
    runs, whose newest is taken. A median differs beyond noise if the intervals of the two
    medians are more than 10 % apart; with fewer than five samples it is not
    judged. The exit code is 1 if something is slower by more than the threshold,
    and 3 if no figure could be judged.

    Runs of different machines are compared by the ratios to --base, by default
    delay-queue.

    With --counters, the exit code is 1 if a counter has grown by more than the
    threshold. With --rankings, it is 1 if the runs contradict each other: a timer
    is faster than another in one run and slower in the other, and neither run
    counts the two as tied. It is 3 if no pair of timers is decided in both.

    Of two runs of `claims`, the verdicts are compared: the exit code is 1 if a
    claim that both decide has different verdicts.
    """
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    options.refuse_both({"--counters": counters, "--rankings": rankings, "--base": base})
    if rankings and threshold is not None:
        raise click.UsageError("--rankings has no threshold; --threshold is not used")
    from compare.trial.results.store import (
        CLAIMS,
        COMPARISON,
        PURGATORY,
        RunError,
        find_run,
        read_run,
    )

    first, second = (read_run(find_run(path, COMPARISON, CLAIMS)) for path in (run_a, run_b))
    kinds = [run.manifest["kind"] for run in (first, second)]
    if PURGATORY in kinds or kinds.count(CLAIMS) == 1:
        raise RunError(
            f"{first.path} is a run of kind {kinds[0]!r}, and {second.path} of {kinds[1]!r}: "
            "they cannot be compared"
        )
    if CLAIMS in kinds and (counters or rankings or base or threshold is not None):
        raise click.UsageError("runs of claims are compared by their verdicts, without options")
    if threshold is None:
        threshold = MORE_WORK if counters else SLOWER
    if CLAIMS in kinds:
        plain, sheets, code = _settled(first, second)
    elif rankings:
        plain, sheets, code = _ranked(first, second)
    elif counters:
        plain, sheets, code = _counted(first, second, threshold)
    else:
        plain, sheets, code = _timed(first, second, threshold, base)
    click.echo(json.dumps(plain, indent=1) if as_json else shown(sheets, as_markdown=as_markdown))
    return code


Outcome = tuple[dict[str, object], Iterable[Sheet], int]
"""Plain values, tables, and the exit code."""


def _timed(first: "Run", second: "Run", threshold: float, base: str | None) -> Outcome:
    from reports.diff import difference

    compared = difference(first, second, base)
    code = REGRESSION if compared.regressions(threshold / 100) else 0
    if not compared.judged:
        code = NOT_JUDGED
    return as_plain(compared, threshold), sheets_of(compared, threshold), code


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
        "noise": [noise.plain() for noise in compared.noise],
    }


FEW_SAMPLES = "nothing was judged: every figure has fewer than 5 samples in one of the runs"
"""The reason if no figure could be judged."""


def sheets_of(compared: "Difference", threshold: float) -> Iterator[Sheet]:
    """The changes beyond noise, the slowest first, and the numbers of the others."""
    first, second = compared.paths
    yield Sheet(notes=[*_noise(compared.noise), f"A: {first}", f"B: {second}"])
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
    if verdicts:
        same = verdicts.count("same")
        lines.append(f"{same:,} of {plural(len(verdicts), 'figure')} within noise")
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


def _noise(noises: "Sequence[Noise]") -> list[str]:
    """The noise of both runs in a line, and a warning."""
    from compare.base.formats import share

    scores = [
        f"{run} {'unknown' if noise.score is None else share(noise.score)}"
        for run, noise in zip("AB", noises, strict=True)
    ]
    busy = [run for run, noise in zip("AB", noises, strict=True) if noise.reasons]
    lines = [f"noise: {', '.join(scores)}"]
    return lines + [f"the machine was busy in {' and '.join(busy)}"] * bool(busy)


# ---- claims


def _settled(first: "Run", second: "Run") -> Outcome:
    from reports.claims import verdicts

    compared = verdicts(first, second)
    pairs = [*compared.differ, *compared.undecided]
    plain: dict[str, object] = {
        "runs": [str(first.path), str(second.path)],
        "alike": compared.alike,
        "different": [pair[0].claim.number for pair in compared.differ],
        "undecided": [pair[0].claim.number for pair in compared.undecided],
        "only_in": compared.missing,
        "claims": [[each.as_json() for each in pair] for pair in pairs],
    }
    decided = compared.alike + len(compared.differ)
    code = REGRESSION if compared.differ else 0 if decided else NOT_JUDGED
    return plain, _verdict_sheets(compared, first, second), code


def _verdict_sheets(compared: "Verdicts", first: "Run", second: "Run") -> Iterator[Sheet]:
    quick = [bool(run.manifest["parameters"].get("quick")) for run in (first, second)]
    note = ["one of the runs is quick, with smaller sizes"] * (quick[0] != quick[1])
    yield Sheet(notes=[f"A: {first.path}", f"B: {second.path}", *note])
    for pair in [*compared.differ, *compared.undecided]:
        claim = pair[0].claim
        verdicts = [f"{each.verdict.sentence} {each.verdict.text}" for each in pair]
        entries = zip((f"{claim.number}", "A", "B"), (claim.text, *verdicts), strict=True)
        yield Sheet(notes=[labelled(label, text, width=4) for label, text in entries])
    decided = compared.alike + len(compared.differ)
    lines = [f"{compared.alike:,} of {plural(decided, 'claim')} with the same verdict"]
    if compared.undecided:
        lines.append(f"not decided in A or B: {plural(len(compared.undecided), 'claim')}")
    missing = zip("AB", compared.missing, strict=True)
    lines += [f"{plural(number, 'claim')} only in {run}" for run, number in missing if number]
    yield Sheet(notes=lines)


# ---- counted work


def _counted(first: "Run", second: "Run", threshold: float) -> Outcome:
    from reports.counts import counted_difference

    compared = counted_difference(first, second)
    more = compared.more(threshold / 100)
    plain: dict[str, object] = {
        "runs": compared.paths,
        "threshold_percent": threshold,
        "regressions": len(more),
        "counts": [
            {
                "task": count.subject.task,
                "size": count.subject.size,
                "contestant": count.contestant,
                "counter": count.counter,
                "before": count.before,
                "after": count.after,
            }
            for count in compared.counts
        ],
        "only_in": compared.missing,
    }
    return plain, _counted_sheets(compared, threshold), REGRESSION if more else 0


def _counted_sheets(compared: "CountedDifference", threshold: float) -> Iterator[Sheet]:
    first, second = compared.paths
    yield Sheet(notes=[f"A: {first}", f"B: {second}"])
    more, less = compared.more(threshold / 100), compared.less(threshold / 100)
    for word, counts in (("more", more), ("less", less)):
        if counts:
            title = (
                f"{word} work in B, by more than {threshold:g} %: {plural(len(counts), 'count')}"
            )
            yield Sheet.of(title[:1].upper() + title[1:], [_count(count) for count in counts])
    lines = ["A and B: counted work per operation"]
    same = len(compared.counts) - len(more) - len(less)
    lines.append(f"{same:,} of {plural(len(compared.counts), 'count')} within {threshold:g} %")
    missing = zip("AB", compared.missing, strict=True)
    lines += [f"{plural(number, 'count')} only in {run}" for run, number in missing if number]
    yield Sheet(notes=lines)


def _count(count: "Count") -> dict[str, str]:
    from compare.base.formats import amount
    from compare.cli.printing import plain
    from compare.trial.results.metrics import metric

    change = f"{100 * (count.ratio - 1):+.3g}" if count.before else "new"
    return {
        "": count.contestant,
        "task": count.subject.task,
        "pending": figure(count.subject.size, ","),
        "counter": metric(count.counter).title,
        "A": plain(amount(count.before)),
        "B": plain(amount(count.after)),
        "change [%]": change,
    }


# ---- rankings


def _ranked(first: "Run", second: "Run") -> Outcome:
    from reports.diff import noise_in, same_machine
    from reports.rankings import rankings

    compared = rankings(first, second)
    noises = [noise_in(run) for run in (first, second)]
    alike = same_machine(first, second)
    plain: dict[str, object] = {
        "runs": compared.paths,
        "same_machine": alike,
        "cells": compared.cells,
        "agreed": compared.agreed,
        "tied": compared.tied,
        "contradictions": [
            {
                "task": each.subject.task,
                "size": each.subject.size,
                "faster_in_first": each.first,
                "faster_in_second": each.second,
                "times": each.times,
            }
            for each in compared.contradictions
        ],
        "noise": [noise.plain() for noise in noises],
    }
    sheets = _ranking_sheets(compared, noises, alike=alike)
    code = REGRESSION if compared.contradictions else 0
    return plain, sheets, NOT_JUDGED if compared.decided == 0 else code


def _ranking_sheets(
    compared: "Rankings", noises: "Sequence[Noise]", *, alike: bool
) -> Iterator[Sheet]:
    from compare.base.formats import NO_BREAK, significant

    def ns(time: float) -> str:
        return significant(time).replace(NO_BREAK, ",")

    first, second = compared.paths
    different = [] if alike else ["the runs are of different machines, or of unknown ones"]
    yield Sheet(notes=[*_noise(noises), f"A: {first}", f"B: {second}", *different])
    if compared.contradictions:
        rows = [
            {
                "faster in A": each.first,
                "faster in B": each.second,
                "task": each.subject.task,
                "pending": figure(each.subject.size, ","),
                "A [ns]": f"{ns(each.times[0])} < {ns(each.times[1])}",
                "B [ns]": f"{ns(each.times[2])} > {ns(each.times[3])}",
            }
            for each in compared.contradictions
        ]
        yield Sheet.of(plural(len(rows), "contradiction"), rows)
    pairs = compared.decided + compared.tied
    lines = [
        f"{plural(compared.cells, 'ranking')} with {plural(pairs, 'pair')} of timers:"
        f" {compared.agreed:,} alike, {compared.tied:,} tied in A or B",
        "pairs with fewer than 5 samples count as tied",
        "the rankings contradict each other"
        if compared.contradictions
        else "the rankings agree, apart from ties"
        if compared.decided
        else "nothing was judged: no pair was decided in both runs",
    ]
    yield Sheet(notes=lines)
