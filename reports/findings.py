"""The short answer: what a reader may conclude from a run, worked out from its figures alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from compare.bench.task import Task
from reports import style
from reports.summary import Cell, Contestant, Source, Summary
from reports.words import lateness_words, list_of

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
class Answer:
    """A headline, what qualifies it, and findings: topics with sentences."""

    headline: str
    remark: str
    findings: list[tuple[str, list[str]]]


def answer(summary: Summary) -> Answer:
    """What the run shows. O(cells)."""
    largest = style.count(summary.sizes[-1]) if summary.sizes else ""
    findings = [
        (f"With {largest} timers pending", _operations(summary)),
        (
            f"With only {style.count(summary.sizes[0])} timers" if summary.sizes else "",
            _small(summary),
        ),
        ("Whole workloads", _workloads(summary)),
        ("Precision", _precision(summary)),
        ("Grows with N", _growth(summary)),
        ("Memory", _memory(summary)),
        ("Plain Python", _interpreter(summary)),
        ("Not run", _skipped(summary)),
        ("Noise", _noise(summary)),
    ]
    headline, remark = _headline(summary)
    return Answer(
        headline, remark, [(topic, sentences) for topic, sentences in findings if sentences]
    )


def _headline(summary: Summary) -> tuple[str, str]:
    """The timer whose worst case against the fastest is the best, and how often it is the
    fastest.
    """
    contests = _contests(summary)
    rivals = _rivals(contests)
    if not rivals:
        return "This run compared nothing.", ""
    worst = {
        who: max(cells[who].level / cells[leaders[0]].level for cells, leaders in contests)
        for who in rivals
    }
    first, *others = sorted(rivals, key=lambda who: worst[who])
    all_exact = all(who.exact for who in summary.contestants)
    kind = "timer" if all_exact or not first.exact else "exact timer"
    where = _where(summary)
    if len(rivals) == 1:
        return f"{first.label} is the only {kind} that took part in all of this.", where
    headline = (
        f"{first.label} is the best all-rounder: the fastest {kind}, or at most {style.ratio(worst[first])} its time, "
        "at everything measured."
        if worst[first] > ABOUT_ONE
        else f"{first.label} is the fastest {kind} at everything measured, alone or level with others."
    )
    won = sum(first in leaders for _, leaders in contests)
    remark = (
        f"{where} It leads, alone or level with others, {won} of {len(contests)} times. Next in this is "
        f"{others[0].label}, at worst {style.ratio(worst[others[0]])}."
    )
    return headline, remark


def _where(summary: Summary) -> str:
    parts = []
    if summary.tasks:
        parts.append(
            f"{len(summary.tasks)} operations with {style.count(summary.sizes[-1])} timers pending"
        )
    if summary.sources:
        parts.append(
            f"{len(summary.sources)} replayed workload{'s' if len(summary.sources) > 1 else ''}"
        )
    return f"Compared: {list_of(parts)}."


Contest = tuple[Mapping[Contestant, Cell], list[Contestant]]


def _rivals(contests: list[Contest]) -> list[Contestant]:
    """Who was measured or predicted in every contest, of the kind that leads them."""
    if not contests:
        return []
    present = set.intersection(*(set(cells) for cells, _ in contests))
    exact = all(leaders[0].exact for _, leaders in contests)
    compiled = all(leaders[0].compiled for _, leaders in contests)
    return [
        who
        for who in contests[0][0]
        if who in present and (who.exact or not exact) and (who.compiled or not compiled)
    ]


def _contests(summary: Summary) -> list[Contest]:
    """The tasks at the largest size, and the sources; those in which nothing was measured left
    out.
    """
    columns = [summary.column(task, summary.sizes[-1]) for task in summary.tasks]
    columns += [summary.replayed(source) for source in summary.sources]
    found = [(cells, summary.leaders(cells)) for cells in columns]
    return [(cells, leaders) for cells, leaders in found if leaders and cells[leaders[0]].level > 0]


def _operations(summary: Summary) -> list[str]:
    return [
        f"{task.title}: {sentence}"
        for task in summary.tasks
        if (
            sentence := _verdict(
                summary, summary.column(task, summary.sizes[-1]), f"per {task.unit}"
            )
        )
    ]


def _verdict(summary: Summary, cells: Mapping[Contestant, Cell], per: str) -> str:
    leaders = summary.leaders(cells)
    if not leaders:
        return ""
    first, *level = leaders
    best = cells[first].level
    text = f"{first.label}, {_time(cells[first])} {per}"
    if level:
        text += f", level with {list_of(f'{who.label}, {_time(cells[who])}' for who in level)}"
    base = summary.base
    slower = [
        who
        for who, cell in cells.items()
        if cell.spread and who not in leaders and who.exact and who.compiled
    ]
    if base and base in slower:
        text += f"; {base.label} takes {style.ratio(cells[base].level / best)} as long"
    elif slower:
        following = min(slower, key=lambda who: cells[who].level)
        text += f"; next {following.label}, {style.ratio(cells[following].level / best)} as long"
    rough = [
        who
        for who, cell in cells.items()
        if cell.spread and not who.exact and who.compiled and first.exact
    ]
    quicker = [who for who in rough if cells[who].level < best]
    if quicker:
        text += f"; quicker but less precise: {list_of(f'{who.label}, {_time(cells[who])}' for who in quicker)}"
    return text + "."


def _time(cell: Cell) -> str:
    return style.nanoseconds(cell.level)


def _small(summary: Summary) -> list[str]:
    if len(summary.sizes) < 2:
        return []
    smallest, largest = summary.sizes[0], summary.sizes[-1]
    found = []
    for task in summary.tasks:
        few, many = (summary.leaders(summary.column(task, size)) for size in (smallest, largest))
        if few and many and not set(few) & set(many):
            found.append(f"{task.title}: {list_of(who.label for who in few)} instead.")
    return found


def _growth(summary: Summary) -> list[str]:
    worst: dict[Contestant, tuple[float, Task, int, int, bool]] = {}
    for task in summary.tasks:
        for who in summary.contestants:
            cells = summary.by_size(task, who)
            if len(cells) < 2:
                continue
            low, high = min(cells), max(cells)
            few, many = cells[low].spread, cells[high].spread
            if few is None or few.median <= 0:
                continue
            growth = cells[high].level / few.median
            surely = (many.low if many else cells[high].level) / few.high  # whatever the noise did
            if surely > MUCH and growth > worst.get(who, (0.0,))[0]:
                worst[who] = (growth, task, low, high, many is None)
    return [
        f"{who.label}: {task.title.lower()} takes {style.ratio(growth)} as long per timer at N = {style.count(high)} "
        f"as at N = {style.count(low)}{', as predicted' if predicted else ''}."
        for who, (growth, task, low, high, predicted) in worst.items()
    ]


def _workloads(summary: Summary) -> list[str]:
    return [
        f"{source.short}{_outcome(summary, source)}: {sentence}"
        for source in summary.sources
        if (sentence := _verdict(summary, summary.replayed(source), "per operation"))
    ]


def _outcome(summary: Summary, source: Source) -> str:
    """How many timers fired, where exact timers tell."""
    for who in summary.contestants:
        replayed = summary.replays.get((source.name, who.key))
        if who.exact and replayed and replayed.cell.spread:
            fired, scheduled = replayed.row["fired"], replayed.row["scheduled"]
            return f" ({style.count(fired)} of {style.count(scheduled)} timers fired)"
    return ""


def _precision(summary: Summary) -> list[str]:
    exact = [who.plain for who in summary.contestants if who.exact]
    found = []
    if len(exact) == len(summary.contestants):
        found.append("All timers fired exactly at their deadlines, to the unit.")
    elif exact:
        found.append(f"Exact to the unit: {list_of(exact)}.")
    for who in summary.contestants:
        if who.exact:
            continue
        seen: dict[str, list[str]] = {}
        for source in summary.sources:
            replayed = summary.replays.get((source.name, who.key))
            if replayed and replayed.row["lateness_min"] is not None:
                words = lateness_words(
                    replayed.row["lateness_min"], replayed.row["lateness_max"], source.unit
                )
                seen.setdefault(words, []).append(source.short)
        observed = "; ".join(f"{words} on {list_of(sources)}" for words, sources in seen.items())
        found.append(
            f"{who.label} fired {observed}." if observed else f"{who.label}, by its scheme."
        )
    return found


def _memory(summary: Summary) -> list[str]:
    sizes = {
        who: footprint[1] for who in summary.contestants if (footprint := summary.footprint(who))
    }
    if not sizes:
        return []
    low, high = min(sizes, key=lambda who: sizes[who]), max(sizes, key=lambda who: sizes[who])
    text = f"{style.data_size(sizes[low])} per pending timer ({low.plain})"
    if low is not high:
        text = f"From {text} to {style.data_size(sizes[high])} ({high.plain})"
    return [f"{text}."]


def _interpreter(summary: Summary) -> list[str]:
    found = []
    for who in summary.contestants:
        ratios = []
        for task in summary.tasks:
            cells = summary.column(task, summary.sizes[-1])
            leaders = summary.leaders(cells)
            own = cells.get(who)
            if (
                not who.compiled
                and own
                and own.spread
                and leaders
                and leaders[0].compiled
                and cells[leaders[0]].level
            ):
                ratios.append(own.level / cells[leaders[0]].level)
        if ratios:
            found.append(
                f"{who.plain} takes {style.ratio(min(ratios))} to {style.ratio(max(ratios))} the time of the fastest "
                "compiled timer at these operations, the interpreter's share included."
            )
    return found


def _skipped(summary: Summary) -> list[str]:
    found: dict[str, list[float]] = {}
    for _, who, seconds in summary.too_long():
        found.setdefault(who.label, []).append(seconds)
    return [
        f"{label}: {len(predicted)} measurement{'s' if len(predicted) > 1 else ''}, too long, predicted "
        + (f"{style.span(min(predicted))} to " if len(predicted) > 1 else "")
        + f"{style.span(max(predicted))}; listed under how it was measured."
        for label, predicted in found.items()
    ]


def _noise(summary: Summary) -> list[str]:
    spreads = [cell.spread for cell in summary.cells.values()]
    spreads += [replayed.cell.spread for replayed in summary.replays.values()]
    repeated = [spread for spread in spreads if spread is not None and spread.samples > 1]
    noisy = sum(spread.scatter > NOISY for spread in repeated)
    if noisy <= MANY * len(repeated):
        return []
    return [
        f"In {noisy} of {len(repeated)} measurements the slowest {summary.sample} took more than {NOISY:g} times as long as the "
        "fastest: the machine was busy. Do not rely on small differences here; the counted work is not affected."
    ]
