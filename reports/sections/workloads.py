"""Replays of whole workloads and traces."""

from collections.abc import Iterable, Mapping
from typing import Any

from reports import formats
from reports.sections.parts import (
    NOTHING,
    Entry,
    Section,
    Table,
    chart_notes,
    entry,
    ratio_note,
    time_entry,
)
from reports.summary import Replayed, StoredSource, Summary


def section(summary: Summary) -> Section | None:
    """All replays."""
    if not summary.replays:
        return None
    shown = [cell for source in summary.replays for cell in summary.replayed(source).values()]
    return Section(
        "workloads",
        "Workloads",
        "Whole workloads: time and precision",
        lead="Recorded or generated traffic, replayed from the first operation to the last expiry. "
        "A timer with a coarse tick saves work by firing late or early, so its times are not "
        f"directly comparable with those of an exact timer. {chart_notes(summary, shown)}",
        tables=[replays(summary, source) for source in summary.replays],
    )


def replays(summary: Summary, source: StoredSource) -> Table:
    """What each contestant did with one source, and how long it took."""
    found, column = summary.replays[source], summary.replayed(source)
    if summary.of_shards:
        note = (
            "Time per operation: of all shards together, expiries included; the least and the "
            "greatest shard in brackets. Lateness is that of all timers that fired. Memory is the "
            "most that one shard's timer held at the end, with the room that a replay reserves."
        )
        used = [name for of in found.values() for name, value in of.counters.items() if value]
        figures = {who: _of_grid(of, source, used) for who, of in found.items()}
    else:
        note = (
            "Median time per operation of the whole sequence, expiries included; the least and the "
            "greatest sample in brackets. The counts are the same in all samples."
        )
        figures = {who: _of_run(of.row, source) for who, of in found.items()}
    nothing = dict.fromkeys(next(iter(figures.values()), {}), NOTHING)
    return Table.of_rows(
        f"replay-{source.name}",
        f"{source.short}: {described(source)}",
        {
            who: {
                "time per operation": time_entry(summary, source, column, who),
                **figures.get(who, nothing),
            }
            for who in summary.taking_part(source)
        },
        f"{note} {ratio_note(summary)} Lateness is in {formats.unit_name(source.unit)}.",
    )


def _of_run(row: Mapping[str, Any], source: StoredSource) -> dict[str, Entry]:
    late = [row[f"lateness_{which}"] for which in ("min", "median", "max")]
    shown = None if None in late else " / ".join(map(formats.count, late))
    return {
        **{name: entry(row[name]) for name in ("scheduled", "cancelled", "rescheduled", "fired")},
        "most pending": entry(row["most_pending"]),
        "still pending": entry(row["pending"]),
        "wake-ups at the end": entry(row["wakeups"]),
        "… with nothing due": entry(row["idle_wakeups"]),
        f"lateness: least / median / most [{formats.unit_symbol(source.unit)}]": entry(shown, str),
    }


def _of_grid(replayed: Replayed, source: StoredSource, counters: Iterable[str]) -> dict[str, Entry]:
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
        f"lateness [{formats.unit_symbol(source.unit)}]: min": entry(row["lateness_min"]),
        "p50": entry(row["lateness_p50"]),
        "p99": entry(row["lateness_p99"]),
        "p99.9": entry(row["lateness_p999"]),
        "max": entry(row["lateness_max"]),
        **per_operation,
    }


def described(source: StoredSource) -> str:
    """How much was replayed."""
    counts = {"operation": "operations", "timer": "timers", "id": "id_space", "shard": "shards"}
    parts = [
        formats.counted(source.details[name], noun)
        for noun, name in counts.items()
        if name in source.details
    ]
    return ", ".join(parts) or "replayed"
