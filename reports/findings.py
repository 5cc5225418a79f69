"""What a reader may conclude from a run, in sentences worked out from its figures alone."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.bench.task import Task
from reports import formats
from reports.summary import Column, Contestant, Source, Summary, leaders

MUCH = 10.0
"""A cost that grows by more than this from the smallest N to the largest is worth a sentence."""

NOISY = 1.5
MANY = 0.05
"""A warning is due when the samples of more than this share of measurements scatter by more than
that factor.
"""

ABOUT_ONE = 1.005
"""A ratio that is not shown as more than 1.00."""


@dataclass(frozen=True)
class Findings:
    """A headline, what qualifies it, and topics with their sentences."""

    headline: str
    remark: str
    topics: Sequence[tuple[str, Sequence[str]]]


def find(summary: Summary) -> Findings:
    """What the run shows. O(cells)."""
    sizes = [formats.count(size) for size in summary.sizes] or [""]
    topics = [
        (f"With {sizes[-1]} timers pending", _operations(summary)),
        (f"With only {sizes[0]} timers", _small(summary)),
        ("Whole workloads", _workloads(summary)),
        ("Precision", _precision(summary)),
        ("Grows with N", _growth(summary)),
        ("Memory", _memory(summary)),
        ("Plain Python", _interpreter(summary)),
        ("Not run", _skipped(summary)),
        ("Noise", _noise(summary)),
    ]
    return Findings(*_headline(summary), [topic for topic in topics if topic[1]])


def _headline(summary: Summary) -> tuple[str, str]:
    """The timer whose greatest ratio to the fastest is the least, and how often it is fastest."""
    columns = _columns(summary)
    rivals = _rivals(columns)
    if not rivals:
        return "This run has no measurements to compare.", ""
    worst = {
        who: max(column[who].level / column[leaders(column)[0]].level for column in columns)
        for who in rivals
    }
    first, *others = sorted(rivals, key=lambda who: worst[who])
    all_exact = all(who.exact for who in summary.contestants)
    kind = "timer" if all_exact or not first.exact else "exact timer"
    extent = _extent(summary)
    if not others:
        return f"{first.full} is the only {kind} that took part in every measurement.", extent
    headline = (
        f"{first.full} is the best all-rounder: in every measurement it takes at most "
        f"{formats.ratio(worst[first])} the time of the fastest {kind}."
        if worst[first] > ABOUT_ONE
        else f"{first.full} is the fastest {kind}, or tied for it, in every measurement."
    )
    won = sum(first in leaders(column) for column in columns)
    return headline, (
        f"{extent} It is fastest or tied in {won} of {formats.counted(len(columns), 'measurement')}"
        f". Next comes {others[0].full}, with at most {formats.ratio(worst[others[0]])} the time "
        "of the fastest."
    )


def _extent(summary: Summary) -> str:
    parts = []
    if summary.cells:
        size = formats.count(summary.sizes[-1])
        parts.append(f"{len(summary.cells)} operations with {size} timers pending")
    if summary.replays:
        parts.append(formats.counted(len(summary.replays), "replayed workload"))
    return f"Compared: {formats.listed(parts)}."


def _columns(summary: Summary) -> list[Column]:
    """The tasks at the largest size, and the sources, where anything was measured."""
    columns = [summary.column(task, summary.sizes[-1]) for task in summary.cells]
    columns += [summary.replayed(source) for source in summary.replays]
    return [column for column in columns if any(column[who].level for who in leaders(column)[:1])]


def _rivals(columns: Sequence[Column]) -> list[Contestant]:
    """The contestants in every column that are of the kind that leads all of them."""
    if not columns:
        return []
    first = [leaders(column)[0] for column in columns]
    exact, compiled = all(who.exact for who in first), all(who.compiled for who in first)
    return [
        who
        for who in columns[0]
        if all(who in column for column in columns)
        and (who.exact or not exact)
        and (who.compiled or not compiled)
    ]


def _operations(summary: Summary) -> list[str]:
    found = {task: _verdict(summary, _last(summary, task), task.unit) for task in summary.cells}
    return [f"{task.title}: {sentence}" for task, sentence in found.items() if sentence]


def _workloads(summary: Summary) -> list[str]:
    found = {
        source: _verdict(summary, summary.replayed(source), "operation")
        for source in summary.replays
    }
    return [
        f"{source.short}{_fired(summary, source)}: {sentence}"
        for source, sentence in found.items()
        if sentence
    ]


def _last(summary: Summary, task: Task) -> Column:
    return summary.column(task, summary.sizes[-1])


def _verdict(summary: Summary, column: Column, unit: str) -> str:
    """Who is fastest in a column, who is tied with it, who follows, and who is less precise."""
    if not leaders(column):
        return ""
    first, *tied = leaders(column)
    best = column[first].level
    text = f"{_timed(column, [first])} per {unit}"
    if tied:
        text += f", tied with {_timed(column, tied)}"
    others = {who: cell for who, cell in column.items() if cell.spread and who.compiled}
    slower = [who for who in others if who.exact and who not in (first, *tied)]
    base = summary.base
    if base in slower:
        text += f"; {base.full} takes {formats.ratio(column[base].level / best)} as long"
    elif slower:
        second = min(slower, key=lambda who: column[who].level)
        ratio = formats.ratio(column[second].level / best)
        text += f"; next comes {second.full} with {ratio} the time"
    rough = [who for who in others if not who.exact and first.exact and column[who].level < best]
    if rough:
        text += f"; faster but less precise: {_timed(column, rough)}"
    return text + "."


def _timed(column: Column, contestants: Sequence[Contestant]) -> str:
    return formats.listed(
        f"{who.full} at {formats.nanoseconds(column[who].level)}" for who in contestants
    )


def _fired(summary: Summary, source: Source) -> str:
    """How many timers fired, according to the first exact timer."""
    for who, replayed in summary.replays[source].items():
        if who.exact and replayed.cell.spread:
            fired, scheduled = (
                formats.count(replayed.row[name]) for name in ("fired", "scheduled")
            )
            return f" ({fired} of {scheduled} timers fired)"
    return ""


def _small(summary: Summary) -> list[str]:
    """The tasks in which others are fastest at the smallest size than at the largest."""
    found = []
    for task in summary.cells:
        few, many = (
            leaders(summary.column(task, n)) for n in (summary.sizes[0], summary.sizes[-1])
        )
        if few and many and not set(few) & set(many):
            are = "are" if len(few) > 1 else "is"
            names = formats.listed(who.full for who in few)
            found.append(f"{task.title}: {names} {are} fastest instead.")
    return found


def _growth(summary: Summary) -> list[str]:
    """For each contestant whose cost grows by more than MUCH, the task with the greatest growth."""
    worst: dict[Contestant, tuple[float, str]] = {}
    for task, by_contestant in summary.cells.items():
        for who, cells in by_contestant.items():
            low, high = min(cells), max(cells)
            few, many = cells[low].spread, cells[high]
            if few is None or few.median <= 0:
                continue
            growth = many.level / few.median
            surely = many.reach[0] / few.high  # however the samples scatter
            if surely > MUCH and growth > worst.get(who, (0.0,))[0]:
                worst[who] = (
                    growth,
                    f"{who.full}: {task.title.lower()} takes {formats.ratio(growth)} as long per "
                    f"timer at {formats.size(high)} as at {formats.size(low)}"
                    f"{'' if many.spread else ' (predicted)'}.",
                )
    return [sentence for _, sentence in worst.values()]


def _precision(summary: Summary) -> list[str]:
    exact = [who.plain for who in summary.contestants if who.exact]
    found = []
    if exact:
        who = "All of them" if len(exact) == len(summary.contestants) else formats.listed(exact)
        found.append(f"{who} fired every timer exactly at its deadline.")
    return found + [_lateness(summary, who) for who in summary.contestants if not who.exact]


def _lateness(summary: Summary, who: Contestant) -> str:
    """How late a contestant fired in the replays."""
    seen: dict[str, list[str]] = defaultdict(list)
    for source, by_contestant in summary.replays.items():
        row = by_contestant[who].row if who in by_contestant else {}
        if row.get("lateness_min") is not None:
            late = formats.lateness(row["lateness_min"], row["lateness_max"], source.unit)
            seen[late].append(source.short)
    if not seen:
        return f"{who.full}: as declared; nothing fired in a replay."
    parts = [f"{late} on {formats.listed(sources)}" for late, sources in seen.items()]
    return f"{who.full} fired {'; '.join(parts)}."


def _memory(summary: Summary) -> list[str]:
    found = {who: at[1] for who in summary.contestants if (at := summary.footprint(who))}
    if not found:
        return []
    ordered = sorted(found, key=lambda who: found[who])
    least, most = (formats.data_size(found[ordered[place]]) for place in (0, -1))
    if least == most:
        return [f"{least} per pending timer."]
    return [f"From {least} per pending timer ({ordered[0].plain}) to {most} ({ordered[-1].plain})."]


def _interpreter(summary: Summary) -> list[str]:
    ratios: dict[Contestant, list[float]] = defaultdict(list)
    for column in (_last(summary, task) for task in summary.cells):
        for first in leaders(column)[:1]:
            for who, cell in column.items():
                if first.compiled and not who.compiled and cell.spread and column[first].level:
                    ratios[who].append(cell.level / column[first].level)
    return [
        f"{who.plain} takes {formats.ratio(min(found))} to {formats.ratio(max(found))} the time of "
        "the fastest compiled timer at these operations. This includes the interpreter's overhead."
        for who, found in ratios.items()
    ]


def _skipped(summary: Summary) -> list[str]:
    found: Mapping[Contestant, list[float]] = defaultdict(list)
    for _, who, seconds in summary.too_long():
        found[who].append(seconds)
    return [
        f"{who.full}: {formats.counted(len(seconds), 'measurement')} would take too long, "
        + " to ".join(dict.fromkeys(map(formats.duration, (min(seconds), max(seconds)))))
        + " by prediction. “How it was measured” lists them."
        for who, seconds in found.items()
    ]


def _noise(summary: Summary) -> list[str]:
    spreads = [cell.spread for cell in summary.all_cells]
    repeated = [spread for spread in spreads if spread and spread.samples > 1]
    noisy = sum(spread.scatter > NOISY for spread in repeated)
    if noisy <= MANY * len(repeated):
        return []
    why = "the shards differ, or the machines were" if summary.of_shards else "the machine was"
    return [
        f"In {noisy} of {formats.counted(len(repeated), 'measurement')} the slowest "
        f"{summary.sample} took more than {NOISY:g} times as long as the fastest: {why} busy. Do "
        "not rely on small differences in time. The counted work is not affected."
    ]
