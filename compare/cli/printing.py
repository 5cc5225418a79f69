"""The figures of stored runs: tables for a terminal or Markdown, and plain values for JSON."""

from collections.abc import Iterable, Mapping
from itertools import chain
from textwrap import wrap
from typing import Any

from compare.base.formats import NO_BREAK, SPACE
from compare.cli.text import WIDTH, Sheet
from compare.trial.results.metrics import metric as metric_named
from compare.trial.results.schema import OVER_BUDGET
from compare.trial.results.store import Run
from reports.noise import Noise
from reports.statistics import RATIO, statistic
from reports.summary import StoredContestant, Subject, Summary
from reports.tables import NOTHING, Entry, Table


def plain(text: str) -> str:
    """Replace the characters that keep a number together on a page."""
    return text.replace(NO_BREAK, ",").replace(SPACE, " ").replace(NOTHING.text, "-")


def label(subject: Subject) -> str:
    """The name as on a command line, with marks that `remarks` explains."""
    if not isinstance(subject, StoredContestant):
        return subject.full
    return subject.label + " *" * (not subject.compiled) + " +" * (not subject.exact)


def remarks(summary: Summary) -> Sheet:
    """What the marks mean, what was over budget, and what is missing."""
    lines = []
    if not all(contestant.compiled for contestant in summary.contestants):
        lines.append("*  plain Python loop: not comparable with compiled figures")
    for contestant in summary.contestants:
        if not contestant.exact:
            lines.append(f"+  {contestant.label} fires {contestant.precision}")
    lines += [f"-  {text}" for text in summary.stopped("{:,}".format)]
    lines += [f"latencies: {clock.text}" for clock in summary.clocks]
    lines += [f"not timed: {peer.name}: {peer.problem}" for peer in summary.peers if peer.problem]
    lines += [
        f"not measured: {key.contestant}, {key.subject}: it {reason}"
        for key, reason in summary.failures.items()
    ]
    if summary.missing:
        lines.append(f"not finished: {', '.join(summary.missing)}")
    wrapped = (wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False) for line in lines)
    return Sheet(notes=[*chain.from_iterable(wrapped)])


def noise_sheets(noise: Noise) -> list[Sheet]:
    """The noise, to be shown first."""
    lines = wrap(plain(noise.text), WIDTH)
    return [Sheet(notes=lines)] if lines else []


def sheets(table: Table, *, whole: bool = False, **chosen: str | None) -> Iterable[Sheet]:
    """Divide a table of the page; see `Table.parts`. With `whole`, cells have their ranges."""

    def text(entry: Entry) -> str:
        return plain((entry.whole if whole else entry.text) or NOTHING.text)

    for title, columns in table.parts(**chosen):
        rows = [
            [label(who), *(text(table.entry(who, heading)) for heading in columns.values())]
            for who, row in table.rows.items()
            if any(heading in row for heading in columns.values())
        ]
        headings = ["", *map(plain, columns)]
        yield Sheet(
            plain(f"{table.caption}: {title}" if title else table.caption), [headings, *rows]
        )


def values(summary: Summary, run: Run) -> dict[str, Any]:
    """A run as plain values: its path, contestants and sources, and the statistics of each metric.

    A time has the number of samples `n`, and the ends `low` and `high` of the interval in which the
    true median lies. A value of null has a note with the reason.
    """
    return {
        "run": str(run.path),
        "missing": list(summary.missing),
        "noise": summary.noise.plain(),
        "contestants": run.manifest["contestants"],
        "peers": [{**peer.facts, "problem": peer.problem or None} for peer in summary.peers],
        "sources": run.manifest["sources"],
        "figures": [*_figures(summary)],
    }


def _figures(summary: Summary) -> Iterable[Mapping[str, Any]]:
    for key, estimate in summary.figures.items():
        metric = metric_named(key.metric)
        about = {"unit": metric.unit, "better": metric.better or None}
        figure = {**key._asdict(), **about, "value": _number(estimate.value)}
        if metric.better and not metric.per_operation and estimate.n > 1:
            figure |= {"low": estimate.low, "high": estimate.high, "n": estimate.n}
        for name in metric.statistics:
            if name == RATIO:
                column = summary.column(key.metric, key.subject, key.size)
                base = summary.base and column.get(summary.base)
                if base and base.value:
                    figure[name] = estimate.value / base.value
            elif statistic(name).ends:
                figure |= {"least": estimate.least, "greatest": estimate.greatest}
            elif len(metric.statistics) > 1:
                figure[name] = statistic(name).value(estimate)
        yield figure
    for (contestant, subject, name), size in summary.over_budget.items():
        what = {"contestant": contestant, "subject": subject, "size": size, "metric": name}
        yield {**what, "value": None, "note": OVER_BUDGET}
    for key, reason in summary.failures.items():
        yield {**key._asdict(), "value": None, "note": reason}


def _number(value: float) -> float:
    return int(value) if value.is_integer() else value
