"""Memory per pending timer."""

from reports import formats
from reports.sections.parts import Section, Table, entry
from reports.summary import Summary


def section(summary: Summary) -> Section | None:
    """Bytes per timer for each contestant and capacity."""
    if not summary.memory:
        return None
    capacities = sorted({capacity for sizes in summary.memory.values() for capacity in sizes})
    table = Table.of(
        "memory",
        "Memory per pending timer at full capacity",
        map(formats.size, capacities),
        {
            who: [entry(sizes.get(capacity), formats.data_size) for capacity in capacities]
            for who, sizes in summary.memory.items()
        },
    )
    return Section("memory", "Memory", "Memory", lead="What a pending timer takes.", tables=[table])
