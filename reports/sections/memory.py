"""Memory per pending timer, and the cost of growing."""

from reports import formats
from reports.sections.parts import NOTHING, Entry, Section, Table, entry
from reports.summary import Footprint, Summary


def section(summary: Summary) -> Section | None:
    """Make the section: bytes per timer by contestant and capacity, and the cost of growing."""
    if not summary.memory:
        return None
    sizes = sorted({capacity for footprints in summary.memory.values() for capacity in footprints})
    table = Table(
        "memory",
        "Memory for each pending timer, and one timer more than there is room for",
        ("size", "figure"),
        {
            contestant: {
                (formats.size(size), figure): shown
                for size in sizes
                if size in footprints
                for figure, shown in _figures(footprints[size]).items()
            }
            for contestant, footprints in summary.memory.items()
        },
        "Bytes for each pending timer: when all room is used, at most while the timer grows, and "
        "from then on, since capacity is never given back. The pause is the time of the one insert "
        "that makes it grow: median, and the least and the greatest sample.",
        chosen={"size": formats.size(sizes[-1])},
    )
    return Section(
        "memory",
        "Memory",
        lead="What a pending timer takes, and what happens when there is no room for one more.",
        tables=[table],
        folded=True,
    )


def _figures(footprint: Footprint) -> dict[str, Entry]:
    names = ("at rest [B]", "at the peak [B]", "after growth [B]")
    pause = NOTHING
    if footprint.pause:
        milliseconds = [ns / 1e6 for ns in footprint.pause[:3]]
        median, *ends = map(formats.significant, milliseconds)
        several = footprint.pause.samples > 1
        pause = Entry(median, "–".join(ends) if several else "", value=milliseconds[0])
    figures = [entry(value, formats.amount) for value in footprint[:3]]
    return {**dict(zip(names, figures, strict=True)), "pause [ms]": pause}
