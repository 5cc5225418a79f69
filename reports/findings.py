"""What a reader may conclude from a run, in sentences worked out from its figures alone."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from compare.replay.lateness import lateness_text
from reports import formats
from reports.summary import Column, StoredContestant, StoredSource, Summary, leaders

MUCH = 10.0
"""A cost that grows by more than this from the smallest N to the largest is worth a sentence."""

NOISY = 1.5
MANY = 0.05
"""A warning is due when the samples of more than this share of measurements scatter by more than
that factor.
"""

CHEAP = 1e6
"""Nanoseconds of a core in each second of traffic, 0.1 %: below that, speed decides nothing."""

BEARABLE = 0.01
"""The share of a timeout by which a tick may delay it, where precision is advised on."""


class Findings(NamedTuple):
    """A headline, what qualifies it, and topics with their sentences."""

    headline: str
    remark: str
    topics: Mapping[str, Sequence[str]]


def find(summary: Summary) -> Findings:
    """What the run shows. O(cells)."""
    sizes = [formats.counted(size, "timer") for size in summary.sizes] or [""]
    all_round = _all_round(summary)
    columns = [(task.title, column, task.unit) for task, column in summary.largest.items()]
    replays = [
        (_fired(summary, source), summary.replayed(source), "operation")
        for source in summary.replays
    ]
    topics = {
        "In all measurements": all_round if summary.own else [],
        f"With {sizes[-1]} pending": _verdicts(summary, columns),
        f"With only {sizes[0]}": _small(summary),
        "Whole workloads": _verdicts(summary, replays),
        "Precision": [*_precision(summary), *_needed(summary)],
        "Grows with N": _growth(summary),
        "Memory": _memory(summary),
        "Noise": _noise(summary),
    }
    headline, *remarks = _traffic(summary) or all_round
    told = {topic: sentences for topic, sentences in topics.items() if sentences}
    return Findings(headline, " ".join(remarks), told)


# ---- one's own traces


def _traffic(summary: Summary) -> list[str]:
    """What a second of one's own traffic costs, and a sentence about each trace."""
    cheap, verdicts = [], []
    for source in summary.own:
        column = summary.replayed(source)
        most = {who: cell.interval[1] * source.rate for who, cell in column.items()}
        everyone = summary.taking_part(source)
        few = [who for who in column if most[who] <= CHEAP]
        if len(few) == len(everyone):
            cheap.append((_named(source), max(most.values())))
        elif few:
            dear = formats.listed(who.full for who in everyone if who not in few)
            verdicts.append(
                f"On {_named(source)}, {dear} may take more than {formats.nanoseconds(CHEAP)} of "
                "each second: choose by precision among the others."
            )
        elif column:
            verdicts.append(f"On {_named(source)}, {_fastest(column, source)}.")
    if cheap:
        names, worst = zip(*cheap, strict=True)
        verdicts.insert(
            0,
            f"Choose by precision: on {formats.listed(names)} every timer takes at most "
            f"{formats.nanoseconds(max(worst))} of each second of that traffic.",
        )
    if not verdicts:
        return []
    return [" ".join(verdicts), *(_rate(summary, source) for source in summary.own)]


def _named(source: StoredSource) -> str:
    return f"{source.short} ({source.together})" if source.together else source.short


def _rate(summary: Summary, source: StoredSource) -> str:
    """How many operations there were, in which time, and how many timers were pending."""
    found = summary.replays[source]
    pending = [of.row["most_pending"] for who, of in found.items() if who.exact]
    text = (
        f"{source.short}: {formats.counted(source.details['operations'], 'operation')} in "
        f"{formats.duration(source.seconds)}, {formats.amount(source.rate)} per second"
    )
    if pending:
        where = " in one shard" if source.details["shards"] > 1 else ""
        text += f", with at most {formats.counted(pending[0], 'timer')} pending{where}"
    return f"{text}."


def _fastest(column: Column, source: StoredSource) -> str:
    """Who is fastest on a trace, and how much of each second it takes."""
    first, *tied = leaders(column) or sorted(column, key=lambda who: column[who].level)
    low, high = (formats.nanoseconds(end * source.rate) for end in column[first].interval)
    text = f"{first.full} is fastest: it takes {low} to {high} of each second"
    return f"{text}, tied with {formats.listed(who.full for who in tied)}" if tied else text


def _needed(summary: Summary) -> list[str]:
    """The tick that the timeouts of one's own traces bear."""
    return [
        f"{source.short}: its timeout is {formats.duration(source.timeout)}. A tick of up to "
        f"{formats.duration(BEARABLE * source.timeout)} shifts a timer by at most {BEARABLE:.0%} "
        "of the timeout."
        for source in summary.own
        if source.timeout
    ]


# ---- all measurements


def _all_round(summary: Summary) -> list[str]:
    """The timers whose greatest ratio to the fastest is the least, and how often they lead."""
    # The tasks at the largest size, and the sources, where anything was measured.
    columns = [*summary.largest.values(), *map(summary.replayed, summary.replays)]
    columns = [
        column for column in columns if any(column[who].level for who in leaders(column)[:1])
    ]
    rivals = _rivals(columns)
    if not rivals:
        return ["This run has no measurements to compare."]
    worst = {who: _worst(who, columns) for who in rivals}
    ordered = sorted(rivals, key=lambda who: worst[who])
    first = ordered[0]
    all_exact = all(who.exact for who in summary.contestants)
    kind = "timer" if all_exact or not first.exact else "exact timer"
    extent = _extent(summary)
    if len(ordered) == 1:
        return [f"{first.full} is the only {kind} that took part in every measurement.", extent]
    best = [who for who in ordered if worst[who].low <= worst[first].high]
    names, several = formats.listed(who.full for who in best), len(best) > 1
    are, s, they = ("are", "s", "they take") if several else ("is", "", "it takes")
    always = all(who in leaders(column) for who in best for column in columns)
    if always:
        headline = f"{names} {are} the fastest {kind}{s}, or tied for it, in every measurement."
    else:
        most = formats.ratio(worst[best[-1]].level) if several else _with_range(worst[first])
        headline = (
            f"{names} {are} the best all-rounder{s}: in every measurement {they} at most {most} "
            f"the time of the fastest {kind}, or {are} tied with it."
        )
    won = sum(first in leaders(column) for column in columns)
    of = formats.counted(len(columns), "measurement")
    if several:
        each = [f"{_with_range(worst[who])} for {who.full}" for who in best]
        most = "" if always else f": at most {formats.listed(each)}"
        others = f"The samples are too noisy to separate them{most}."
    else:
        most, second = formats.ratio(worst[ordered[1]].level), ordered[1].full
        others = f"Next comes {second}, with at most {most} the time of the fastest."
    return [headline, extent, f"{first.full} is fastest or tied in {won} of {of}.", others]


class Ratio(NamedTuple):
    """A ratio of two times, and the interval that it lies in."""

    level: float
    low: float
    high: float


def _worst(who: StoredContestant, columns: Sequence[Column]) -> Ratio:
    """A contestant's time over that of the fastest, where it is greatest; 1 where they are tied."""
    found = [Ratio(1.0, 1.0, 1.0)]
    for column in columns:
        fastest = leaders(column)
        if who not in fastest:
            own, best = column[who], column[fastest[0]]
            low, high = own.interval[0] / best.interval[1], own.interval[1] / best.interval[0]
            found.append(Ratio(own.level / best.level, low, high))
    return max(found)  # by its level


def _with_range(ratio: Ratio) -> str:
    low, high = formats.ratio(ratio.low), formats.ratio(ratio.high)
    return f"{formats.ratio(ratio.level)} ({low} to {high})"


def _extent(summary: Summary) -> str:
    parts = []
    if summary.cells:
        size = formats.counted(summary.sizes[-1], "timer")
        parts.append(f"{formats.counted(len(summary.cells), 'operation')} with {size} pending")
    if summary.replays:
        parts.append(formats.counted(len(summary.replays), "replayed workload"))
    return f"Compared: {formats.listed(parts)}."


def _rivals(columns: Sequence[Column]) -> list[StoredContestant]:
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


def _verdicts(summary: Summary, columns: Iterable[tuple[str, Column, str]]) -> list[str]:
    """A sentence about each column where anything was measured: (title, column, operation)."""
    return [
        f"{title}: {_verdict(summary, column, unit)}"
        for title, column, unit in columns
        if leaders(column)
    ]


def _verdict(summary: Summary, column: Column, unit: str) -> str:
    """Who is fastest in a column, who is tied with it, who follows, and who is less precise."""
    first, *tied = leaders(column)
    best = column[first].level
    text = f"{_timed(column, [first])} per {unit}"
    if tied:
        text += f", tied with {_timed(column, tied)}"
    others = {who: cell for who, cell in column.items() if who.compiled}
    slower = [who for who in others if who.exact and who not in (first, *tied)]
    base = summary.base
    if base in slower:
        text += f"; {base.full} takes {formats.ratio(column[base].level / best)} as long"
    elif slower:
        second = min(slower, key=lambda who: column[who].level)
        ratio = formats.ratio(column[second].level / best)
        text += f"; next comes {second.full} with {ratio} the time"
    rough = [
        who
        for who, cell in others.items()
        if not who.exact and first.exact and cell.interval[1] < column[first].interval[0]
    ]
    if rough:
        text += f"; faster but less precise: {_timed(column, rough)}"
    return text + "."


def _timed(column: Column, contestants: Sequence[StoredContestant]) -> str:
    return formats.listed(
        f"{who.full} at {formats.nanoseconds(column[who].level)}" for who in contestants
    )


def _fired(summary: Summary, source: StoredSource) -> str:
    """A source's name, and how many timers fired, according to the first exact timer."""
    for who, of in summary.replays[source].items():
        if who.exact:
            fired, scheduled = (formats.count(of.row[name]) for name in ("fired", "scheduled"))
            return f"{source.short} ({fired} of {scheduled} timers fired)"
    return source.short


def _small(summary: Summary) -> list[str]:
    """The tasks in which others are fastest at the smallest size than at the largest."""
    found = []
    for task in summary.cells:
        few = leaders(summary.column(task, summary.sizes[0]))
        many = leaders(summary.largest[task])
        if few and many and not set(few) & set(many):
            are = "are" if len(few) > 1 else "is"
            names = formats.listed(who.full for who in few)
            found.append(f"{task.title}: {names} {are} fastest instead.")
    return found


def _growth(summary: Summary) -> list[str]:
    """For each contestant whose cost grows by more than MUCH, the task with the greatest growth."""
    worst: dict[StoredContestant, tuple[float, str]] = {}
    for task, by_contestant in summary.cells.items():
        for who, cells in by_contestant.items():
            low, high = min(cells), max(cells)
            few, many = cells[low].spread, cells[high]
            if few.level <= 0:
                continue
            growth = many.level / few.level
            surely = many.reach[0] / few.high  # however the samples scatter
            if surely > MUCH and growth > worst.get(who, (0.0,))[0]:
                worst[who] = (
                    growth,
                    f"{who.full}: {task.title.lower()} takes {formats.ratio(growth)} as long per "
                    f"timer at {formats.size(high)} as at {formats.size(low)}.",
                )
    return [sentence for _, sentence in worst.values()]


def _precision(summary: Summary) -> list[str]:
    exact = [who.plain for who in summary.contestants if who.exact]
    found = []
    if exact:
        who = "All of them" if len(exact) == len(summary.contestants) else formats.listed(exact)
        found.append(f"{who} fired every timer exactly at its deadline.")
    return found + [_lateness(summary, who) for who in summary.contestants if not who.exact]


def _lateness(summary: Summary, who: StoredContestant) -> str:
    """How late a contestant fired in the replays."""
    seen: dict[str, list[str]] = defaultdict(list)
    for source, by_contestant in summary.replays.items():
        if who in by_contestant and (late := by_contestant[who].late):
            seen[lateness_text(*late, source.unit)].append(source.short)
    if not seen:
        return f"{who.full}: as declared; nothing fired in a replay."
    parts = [f"{late} on {formats.listed(sources)}" for late, sources in seen.items()]
    return f"{who.full} fired {'; '.join(parts)}."


def _memory(summary: Summary) -> list[str]:
    size = max((capacity for sizes in summary.memory.values() for capacity in sizes), default=0)
    found = {who: sizes[size] for who, sizes in summary.memory.items() if size in sizes}
    if not found:
        return []
    texts = [_range({who: of.at_rest for who, of in found.items()}, formats.data_size)]
    texts[0] += " per pending timer."
    if pauses := {who: of.pause.level for who, of in found.items() if of.pause}:
        texts.append(
            "One insert more than there is room for takes "
            f"{_range(pauses, formats.nanoseconds)} at {formats.size(size)}."
        )
    return texts


def _range(found: Mapping[StoredContestant, float], form: Callable[[float], str]) -> str:
    """From the least to the greatest, and whose they are."""
    least, most = (by(found, key=lambda who: found[who]) for by in (min, max))
    first, last = form(found[least]), form(found[most])
    return first if first == last else f"{first} ({least.plain}) to {last} ({most.plain})"


def _noise(summary: Summary) -> list[str]:
    if summary.of_shards:  # they differ by nature
        return []
    spreads = [cell.spread for *_, cell in summary.measurements]
    repeated = [spread for spread in spreads if spread.samples > 1]
    noisy = sum(spread.scatter > NOISY for spread in repeated)
    if noisy <= MANY * len(repeated):
        return []
    return [
        f"In {noisy} of {formats.counted(len(repeated), 'measurement')} the slowest sample took "
        f"more than {NOISY:g} times as long as the fastest: the machine was busy. Do not rely on "
        "small differences in time. The counted work is not affected."
    ]
