"""Memory per pending timer, and what it costs to grow."""

from reports import formats
from reports.sections.parts import NOTHING, Entry, Section, Table, entry
from reports.summary import Footprint, Summary


def section(summary: Summary) -> Section | None:
    """Bytes per timer for each contestant and capacity, and the growth at the largest capacity."""
    if not summary.memory:
        return None
    capacities = sorted({capacity for sizes in summary.memory.values() for capacity in sizes})
    at_rest = Table(
        "memory",
        "Memory per pending timer at full capacity",
        list(map(formats.size, capacities)),
        {
            who: [
                entry(sizes[capacity].at_rest if capacity in sizes else None, formats.data_size)
                for capacity in capacities
            ]
            for who, sizes in summary.memory.items()
        },
    )
    most = capacities[-1]
    growth = Table(
        "growth",
        f"One timer more than there is room for, at {formats.size(most)}",
        ["at rest", "at the peak", "after growth", "pause"],
        {who: _growth(sizes[most]) for who, sizes in summary.memory.items() if most in sizes},
        "Bytes for each pending timer: when all room is used, at most while the timer grows, and "
        "from then on, since capacity is never given back. The pause is the time of the one insert "
        "that makes it grow: median, and the least and the greatest sample in brackets.",
    )
    return Section(
        "memory",
        "Memory",
        "Memory",
        lead="What a pending timer takes, and what happens when there is no room for one more.",
        tables=[at_rest, growth],
    )


def _growth(found: Footprint) -> list[Entry]:
    pause = NOTHING
    if found.pause:
        several = len(set(map(formats.nanoseconds, (found.pause.low, found.pause.high)))) > 1
        spread = f"({formats.time_range(found.pause.low, found.pause.high)})"
        pause = Entry(formats.nanoseconds(found.pause.level), spread if several else "")
    return [*(entry(value, formats.data_size) for value in found[:3]), pause]
