"""Replays of whole workloads and traces."""

from compare.traffic.tapes.description import Description
from compare.trial.replay.engine import OPERATIONS_AT_ONCE
from compare.trial.replay.lateness import lateness_text
from reports import formats
from reports.sections.parts import (
    BOLD,
    GREATEST,
    LEAST,
    MEDIAN,
    NOTHING,
    Entry,
    Figures,
    Section,
    Table,
    entries,
    entry,
    times,
    with_range,
)
from reports.summary import StoredContestant, StoredSource, Summary, leaders

PER_SECOND = "cost of a second [ms]"


def section(summary: Summary) -> Section | None:
    """Make the section: all replays."""
    if not summary.replays:
        return None
    return Section(
        "workloads",
        "Whole workloads: time and precision",
        lead="Recorded or generated traffic, replayed from the first operation to the last expiry. "
        "A timer with a coarse tick saves work by firing late or early, so its times are not "
        "directly comparable with those of an exact timer.",
        tables=[table(summary)],
    )


def table(summary: Summary) -> Table:
    """A table of each timer's results and times on each source."""
    first = next(iter(summary.replays))
    about = (
        "Times are those of all shards together; lateness is that of all timers that fired; memory "
        "is the most that one shard's timer held at the end"
        if summary.of_shards
        else "Times are those of the whole sequence, expiries included; memory is what the timer "
        "held at the end"
    )
    room = formats.count(OPERATIONS_AT_ONCE)
    about += f", with the room that compiled timers reserve for up to {room} operations at a time."
    return Table(
        "replays",
        "Replays",
        ("source", "figure"),
        {
            timer: {
                (summary.called(source), figure): shown
                for source in summary.replays
                for figure, shown in figures(summary, source, timer).items()
            }
            for timer in summary.contestants
        },
        f"{about} {BOLD}",
        chosen={"source": summary.called(first)},
    )


_OUTCOME: Figures = {  # a row of a run has no quantiles
    "scheduled": ("scheduled", formats.count),
    "cancelled": ("cancelled", formats.count),
    "rescheduled": ("rescheduled", formats.count),
    "fired": ("fired", formats.count),
    "most pending": ("most_pending", formats.count),
    "still pending": ("pending", formats.count),
    "memory": ("nbytes", formats.data_size),
    "wake-ups at the end": ("wakeups", formats.count),
    "… with nothing due": ("idle_wakeups", formats.count),
    "median lateness": ("lateness_median", formats.count),
    "p99 lateness": ("lateness_p99", formats.count),
    "p99.9 lateness": ("lateness_p999", formats.count),
}


def figures(summary: Summary, source: StoredSource, timer: StoredContestant) -> dict[str, Entry]:
    """The time and the results of one timer on one source."""
    column, replayed = summary.replayed(source), summary.replays[source].get(timer)
    timed = times(summary, source, column, timer)
    shown = {f"time per operation, {MEDIAN}": timed.pop(MEDIAN), **timed}
    del shown[LEAST], shown[GREATEST]
    if replayed is None:
        return shown
    row, time, best = replayed.row, replayed.time, timer in leaders(column)
    shown[f"time per operation, {MEDIAN}"] = with_range(time, best=best)
    if source.rate:
        cost = time.level * source.rate / 1e6
        low, high = (end * source.rate / 1e6 for end in time.interval)
        ends = formats.span(low, high, formats.significant)
        shown[PER_SECOND] = Entry(formats.significant(cost), f"({ends})", best, value=cost)
    late = lateness_text(*replayed.late, source.unit) if replayed.late else NOTHING.text
    shown |= {"timers fired": Entry(late), **entries(row, _OUTCOME)}
    if summary.of_shards:
        used = {
            name for replay in summary.replays[source].values() for name, n in replay.counters if n
        }
        for name, count in replayed.counters:
            if name in used:
                each = count / max(row["operations"], 1)
                title = f"{formats.counter_title(name)} per operation"
                shown[title] = entry(each, formats.amount)
    return shown


def facts(summary: Summary, source: StoredSource) -> dict[str, str]:
    """Facts about a source, from its replays and from `ingest`, by title."""
    terms = {"operations": described(source)}
    if row := next((replay.row for replay in summary.replays[source].values()), None):
        scheduled, fired = row["scheduled"], row["fired"]
        several = " in one shard" * (source.details.get("shards", 1) > 1)
        terms["pending"] = f"at most {formats.count(row['most_pending'])} at once{several}"
        terms["fired"] = f"{formats.count(fired)} of {formats.counted(scheduled, 'timer')}"
        if scheduled:
            terms["fired"] += f" ({formats.share(fired / scheduled)})"
    if description := source.details.get("description"):
        span, shards = source.details["span"], source.details["shards"]
        terms = Description(**description).lines(source.unit, span, shards) | terms
    return terms


def described(source: StoredSource) -> str:
    """The amount of traffic that was replayed, and its rate."""
    counts = {"operation": "operations", "timer": "timers", "id": "id_space", "shard": "shards"}
    parts = [
        formats.counted(source.details[name], noun)
        for noun, name in counts.items()
        if name in source.details
    ]
    if source.rate:
        parts.append(
            f"{formats.amount(source.rate)} operations per second for "
            f"{formats.nanoseconds(1e9 * source.seconds)}"
        )
    return ", ".join(parts) or "replayed"
