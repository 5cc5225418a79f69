"""Replays of whole workloads and traces."""

from collections.abc import Iterable, Mapping
from typing import Any

from compare.replay.lateness import lateness_text
from reports import formats
from reports.sections.parts import (
    BOLD,
    MEDIAN,
    NOTHING,
    Entry,
    Section,
    Table,
    entry,
    times,
)
from reports.summary import Replayed, StoredContestant, StoredSource, Summary, leaders

PER_SECOND = "cost of a second [ms]"


def section(summary: Summary) -> Section | None:
    """All replays."""
    if not summary.replays:
        return None
    return Section(
        "workloads",
        "Workloads",
        "Whole workloads: time and precision",
        lead="Recorded or generated traffic, replayed from the first operation to the last expiry. "
        "A timer with a coarse tick saves work by firing late or early, so its times are not "
        "directly comparable with those of an exact timer.",
        tables=[table(summary)],
    )


def table(summary: Summary) -> Table:
    """What each contestant did with each source, and how long it took."""
    first = next(iter(summary.replays))
    about = (
        "Times are those of all shards together; lateness is that of all timers that fired; memory "
        "is the most that one shard's timer held at the end."
        if summary.of_shards
        else "Times are those of the whole sequence, expiries included."
    )
    return Table(
        "replays",
        "Replays",
        ("source", "figure"),
        {
            who: {
                (summary.called(source), figure): shown
                for source in summary.replays
                for figure, shown in figures(summary, source, who).items()
            }
            for who in summary.contestants
        },
        " ".join([*(f"{summary.called(of)}: {described(of)}." for of in summary.replays), about])
        + f" {BOLD}",
        chosen={"source": summary.called(first)},
    )


def figures(summary: Summary, source: StoredSource, who: StoredContestant) -> dict[str, Entry]:
    """The time of one contestant with one source, and what it did."""
    column, replayed = summary.replayed(source), summary.replays[source].get(who)
    timed = times(summary, source, column, who)
    spread = timed.pop("least [ns]"), timed.pop("greatest [ns]")
    median = timed.pop(MEDIAN)
    if replayed is None:
        return {f"time per operation, {MEDIAN}": median, **timed}
    if replayed.cell.spread.samples > 1:
        detail = "–".join(one.text for one in spread)
        median = Entry(median.text, f"({detail})", median.best, value=median.value)
    shown = {f"time per operation, {MEDIAN}": median, **timed}
    if source.rate:
        cost = replayed.cell.level * source.rate / 1e6
        low, high = (end * source.rate for end in replayed.cell.interval)
        shown[PER_SECOND] = Entry(
            formats.significant(cost),
            f"({formats.time_range(low, high)})",
            who in leaders(column),
            value=cost,
        )
    used = [name for of in summary.replays[source].values() for name, n in of.counters.items() if n]
    own = _of_grid(replayed, used) if summary.of_shards else _of_run(replayed.row)
    late = lateness_text(*replayed.late, source.unit) if replayed.late else NOTHING.text
    return {**shown, "timers fired": Entry(late, number=False), **own}


def _of_run(row: Mapping[str, Any]) -> dict[str, Entry]:
    return {
        **{name: entry(row[name]) for name in ("scheduled", "cancelled", "rescheduled", "fired")},
        "most pending": entry(row["most_pending"]),
        "still pending": entry(row["pending"]),
        "wake-ups at the end": entry(row["wakeups"]),
        "… with nothing due": entry(row["idle_wakeups"]),
        "median lateness": entry(row["lateness_median"]),
    }


def _of_grid(replayed: Replayed, counters: Iterable[str]) -> dict[str, Entry]:
    row, counts = replayed.row, replayed.counters
    operations = max(row["operations"], 1)
    per_operation = {
        f"{formats.counter_title(name)} per operation": entry(
            counts[name] / operations if name in counts else None, formats.amount
        )
        for name in counters
    }
    return {
        "fired": entry(row["fired"]),
        "still pending": entry(row["pending"]),
        "most pending, one shard": entry(row["most_pending"]),
        "memory, one shard": entry(row["nbytes"], formats.data_size),
        "lateness: p50": entry(row["lateness_p50"]),
        "p99": entry(row["lateness_p99"]),
        "p99.9": entry(row["lateness_p999"]),
        **per_operation,
    }


def described(source: StoredSource) -> str:
    """How much was replayed, at which rate."""
    counts = {"operation": "operations", "timer": "timers", "id": "id_space", "shard": "shards"}
    parts = [
        formats.counted(source.details[name], noun)
        for noun, name in counts.items()
        if name in source.details
    ]
    if source.rate:
        parts.append(
            f"{formats.amount(source.rate)} operations per second for "
            f"{formats.duration(source.seconds)}"
        )
    return ", ".join(parts) or "replayed"
