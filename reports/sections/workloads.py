"""Replays of whole workloads and traces."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reports import formats
from reports.sections.parts import Entry, Section, Table, chart_notes, entry, ratio_note, time_entry
from reports.summary import Replayed, Source, Summary

Columns = Mapping[str, Callable[[Replayed], Entry]]


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


def replays(summary: Summary, source: Source) -> Table:
    """What each contestant did with one source, and how long it took."""
    found, column = summary.replays[source], summary.replayed(source)
    columns = _of_grid(found.values(), source) if summary.of_shards else _of_run(source)
    note = (
        "Time per operation: of all shards together, expiries included; the least and the greatest "
        "shard in brackets. Lateness is that of all timers that fired. Memory is the most that one "
        "shard's timer held at the end, with the room that a replay reserves."
        if summary.of_shards
        else "Median time per operation of the whole sequence, expiries included; the least and "
        "the greatest sample in brackets. The counts are the same in all samples."
    )
    return Table(
        f"replay-{source.name}",
        f"{source.short}: {described(source)}",
        ["time per operation", *columns],
        {
            who: [time_entry(summary, column, who), *(of(replayed) for of in columns.values())]
            for who, replayed in found.items()
        },
        f"{note} {ratio_note(summary)} Lateness is in {formats.unit_name(source.unit)}.",
    )


def _of_run(source: Source) -> Columns:
    return {
        **{name: _figure(name) for name in ("scheduled", "cancelled", "rescheduled", "fired")},
        "most pending": _figure("most_pending"),
        "still pending": _figure("pending"),
        "wake-ups at the end": _figure("wakeups"),
        "… with nothing due": _figure("idle_wakeups"),
        f"lateness: least / median / most [{formats.unit_symbol(source.unit)}]": _lateness,
    }


def _of_grid(replays: Iterable[Replayed], source: Source) -> Columns:
    counters = dict.fromkeys(
        name for replayed in replays for name, value in replayed.counters.items() if value
    )
    return {
        "fired": _figure("fired"),
        "still pending": _figure("pending"),
        "most pending, one shard": _figure("most_pending"),
        "memory, one shard": _figure("nbytes", formats.data_size),
        f"lateness [{formats.unit_symbol(source.unit)}]: min": _figure("lateness_min"),
        "p50": _figure("lateness_p50"),
        "p99": _figure("lateness_p99"),
        "p99.9": _figure("lateness_p999"),
        "max": _figure("lateness_max"),
        **{
            f"{formats.counter_title(name)} per operation": _per_operation(name)
            for name in counters
        },
    }


def _figure(name: str, form: Callable[[Any], str] = formats.count) -> Callable[[Replayed], Entry]:
    return lambda replayed: entry(replayed.row[name], form)


def _per_operation(name: str) -> Callable[[Replayed], Entry]:
    def of(replayed: Replayed) -> Entry:
        count, operations = replayed.counters.get(name), max(replayed.row["operations"], 1)
        return entry(None if count is None else count / operations, formats.amount)

    return of


def _lateness(replayed: Replayed) -> Entry:
    found = [replayed.row[f"lateness_{which}"] for which in ("min", "median", "max")]
    return entry(
        None if None in found else found, lambda late: " / ".join(map(formats.count, late))
    )


def described(source: Source) -> str:
    """How much was replayed."""
    counts = {"operation": "operations", "timer": "timers", "id": "id_space", "shard": "shards"}
    parts = [
        formats.counted(source.details[name], noun)
        for noun, name in counts.items()
        if name in source.details
    ]
    return ", ".join(parts) or "replayed"
