"""The section on claims: each claim with its verdict, and the table and chart that decide it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from compare.base import formats
from compare.trial.claims.base import (
    HOLDS,
    NOT_DECIDED,
    ONLY_WHEN,
    PROBLEM,
    WRONG,
    Claim,
    Experiment,
)
from compare.trial.claims.catalogue import CLAIMS, experiments_of
from compare.trial.claims.run import Settled, settled
from compare.trial.results.metrics import metric as metric_named
from compare.trial.results.schema import Row as StoredRow
from compare.trial.results.store import Run, RunError
from reports.plots import CURVES, Panel, Plot, Plots, Point
from reports.select import Key, estimates
from reports.statistics import Estimate, statistic
from reports.summary import Measured, Subject, Summary
from reports.tables import Entry, Heading, Row, Table, cell

LEAD = (
    "Sentences about timers that are often repeated, each with an experiment. Claims about Kafka, "
    "Netty and the JDK are measured on their own code. Each verdict follows from the figures by "
    "the claim's criterion. Lateness and counted work are the same on every machine."
)


def lead(found: Sequence[Settled]) -> str:
    """What is shown, and which verdicts rest on times."""
    numbers = timed(found)
    if not numbers:
        return LEAD
    return (
        f"{LEAD} Other verdicts rest on times of one machine. They can change on another machine, "
        f"and from run to run on a busy one: claims {numbers}."
    )


@dataclass(frozen=True)
class Verdicts:
    """The claims of two runs."""

    differ: Sequence[tuple[Settled, Settled]]  # decided in both, and not alike
    undecided: Sequence[tuple[Settled, Settled]]  # in one run or in both
    alike: int
    missing: tuple[int, int]  # claims of each run that the other lacks


def verdicts(first: Run, second: Run) -> Verdicts:
    """Compare the verdicts of two runs, claim by claim.

    Raises RunError if they have no claim in common.
    """
    before, after = (
        {each.claim.number: each for each in settled(run.rows)} for run in (first, second)
    )
    pairs = [(each, after[number]) for number, each in before.items() if number in after]
    if not pairs:
        raise RunError(f"{first.path} and {second.path} have no claim in common")
    undecided = [pair for pair in pairs if NOT_DECIDED in [each.verdict.kind for each in pair]]
    decided = [pair for pair in pairs if pair not in undecided]
    differ = [pair for pair in decided if len({each.verdict.words for each in pair}) > 1]
    missing = len(before) - len(pairs), len(after) - len(pairs)
    return Verdicts(differ, undecided, len(decided) - len(differ), missing)


def timed(found: Sequence[Settled]) -> str:
    """The numbers of the claims whose verdicts rest on times."""
    return ", ".join(str(each.claim.number) for each in found if each.claim.experiment.timed)


_subject = cache(Measured)  # one for each name, so that charts and tables share it


def headline(summary: Summary) -> str:
    """How many claims have each verdict."""
    kinds = Counter(each.verdict.kind for each in summary.claims)
    texts = [
        f"{kinds[kind]} {verbs[kinds[kind] > 1]}" for kind, verbs in _VERBS.items() if kinds[kind]
    ]
    return f"Of {formats.counted(len(summary.claims), 'claim')}, {', '.join(texts)}." * bool(texts)


_VERBS = {
    HOLDS: ("holds", "hold"),
    WRONG: ("is wrong", "are wrong"),
    ONLY_WHEN: ("holds only under a condition", "hold only under a condition"),
    NOT_DECIDED: ("is not decided here", "are not decided here"),
}
"""For one claim, and for several."""


def table(each: Settled) -> Table:
    """The figures that decide a claim: a row for each contestant."""
    claim, verdict = each.claim, each.verdict
    deciding = claim.deciding(each.rows)
    found = estimates(deciding)
    rows: dict[Subject, dict[Heading, Entry]] = {}
    metrics = [*dict.fromkeys(row.metric for row in deciding)]
    for row in sorted(deciding, key=lambda row: (metrics.index(row.metric), row.size or 0)):
        key = Key(row.contestant, row.subject, row.size, row.metric)
        entries = rows.setdefault(_subject(row.contestant), {})
        if row.metric == PROBLEM:
            entries["remark", ""] = Entry(row.note or "")
        elif row.value is not None:
            heading = metric_named(row.metric).heading, _at(each, row.metric, row.size)
            shown = _statistic(claim.experiment, found[key])
            entries[heading] = cell(shown, row.metric, found[key])
    entries_of: dict[Subject, Row] = dict(rows)
    note = (
        f"{verdict.text}\nMeasured: {claim.experiment.measured}\nCriterion: {claim.rule}\n"
        f"Source: {claim.source}"
    )
    caption = f"{claim.number}. {claim.text} {verdict.sentence}"
    name = f"claim-{claim.number}"
    headings = [*dict.fromkeys(heading for row in rows.values() for heading in row)]
    # What all columns have in common stands above the names, since the columns leave it out.
    common = [{*parts}.pop() for parts in zip(*headings, strict=True) if len({*parts}) == 1]
    of = ", ".join(filter(None, common)) or "measured"
    return Table(name, _plain(caption), ("figure", "at"), entries_of, _plain(note), of=of)


def _plain(text: str) -> str:
    """Remove the marks of code, which only Markdown has, and group digits as the page does."""
    return re.sub(r"(?<=\d),(?=\d{3})", formats.NO_BREAK, text.replace("`", ""))


def _table(claim: Claim, summary: Summary) -> Table:
    """The table of a claim, which is empty if it was not measured."""
    found = [each for each in summary.claims if each.claim is claim]
    return table(found[0]) if found else Table(f"claim-{claim.number}", "", (), {})


TABLES = tuple(partial(_table, claim) for claim in CLAIMS)
"""A function for each claim."""


def _statistic(experiment: Experiment, estimate: Estimate) -> str:
    """The statistic that the criteria read, so that the figures agree with the sentence."""
    if experiment.least:
        return "least"
    return "range" if estimate.n > 1 else "median"


def _at(each: Settled, metric: str, size: int | None) -> str:
    if size is None:
        return "value" if each.claim.experiment.across else ""
    return f"{each.claim.experiment.across_of(metric)} {formats.count(size)}".strip()


def plots(summary: Summary) -> Plots:
    """A chart for each experiment whose figures depend on a number, with a panel for each figure.

    Zero and early expiries are not drawn: the axes are logarithmic.
    """
    for experiment in experiments_of(each.claim for each in summary.claims):
        of_it = [each for each in summary.claims if each.claim.experiment is experiment]
        rows = [*dict.fromkeys(row for each in of_it for row in each.claim.deciding(each.rows))]
        if panels := _panels(experiment, rows) if experiment.across else {}:
            order = [*dict.fromkeys(who for panel in panels.values() for who in panel.series)]
            numbers = " and ".join(str(each.claim.number) for each in of_it)
            title = f"Claim{'s' * (len(of_it) > 1)} {numbers}: {experiment.name}"
            caption = _plain(experiment.measured)
            yield Plot(
                CURVES, f"claim-{of_it[0].claim.number}", title, caption, order, panels, 1.75
            )


def _panels(experiment: Experiment, rows: Sequence[StoredRow]) -> dict[str, Panel]:
    series: dict[str, dict[Subject, list[Point]]] = {}
    for key, estimate in sorted(estimates(rows).items(), key=lambda item: item[0].size or 0):
        value = statistic(_statistic(experiment, estimate)).value(estimate)
        if key.size is not None and value > 0:
            curves = series.setdefault(key.metric, {})
            at = f"{experiment.across_of(key.metric)} {formats.count(key.size)}"
            point = Point(key.size, replace(estimate, value=value), at)
            curves.setdefault(_subject(key.contestant), []).append(point)
    return {
        metric_named(metric).heading: Panel(
            curves,
            metric_named(metric).form,
            f"{experiment.across_of(metric)} (log)",
            most_ticks=3,
        )
        for metric, curves in series.items()
        if max(map(len, curves.values())) > 1
    }


def subjects(summary: Summary) -> list[Subject]:
    """The contestants of the charts, for the legend."""
    return [*dict.fromkeys(who for plot in plots(summary) for who in plot.order)]
