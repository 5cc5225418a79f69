"""The first section: the best timer, all timers at the largest size, and the findings."""

from compare.replay.lateness import lateness_text
from reports import formats
from reports.findings import find
from reports.sections.parts import NOTHING, Entry, Section, Table, entry, ratio_note, time_entry
from reports.summary import StoredContestant, StoredSource, Summary, leaders


def section(summary: Summary) -> Section:
    """The short answer."""
    found = find(summary)
    return Section(
        "answer",
        "In short",
        "In short",
        headline=found.headline,
        lead=found.remark,
        tables=[
            *([traffic(summary)] if summary.own else []),
            *([at_a_glance(summary)] if summary.sizes else []),
        ],
        terms=found.topics,
    )


def traffic(summary: Summary) -> Table:
    """What a second of each of one's own traces costs, and how far its timers fired from their
    deadlines.
    """
    whose = "The" if any(source.generated for source in summary.own) else "Your"
    return Table(
        "traffic",
        f"{whose} traffic: what each second of it costs, and how far from their deadlines timers "
        "fired",
        [
            heading
            for source in summary.own
            for heading in (f"{source.short}: cost of {_second(source)}", "timers fired")
        ],
        {
            who: [entry for source in summary.own for entry in _of_second(summary, source, who)]
            for who in summary.contestants
        },
        "Cost: time of one core; the interval that holds it in brackets. Bold: the fastest exact "
        "timer, and exact timers tied with it.",
    )


def _second(source: StoredSource) -> str:
    return f"each second of {source.together}" if source.together else "a second"


def _of_second(summary: Summary, source: StoredSource, who: StoredContestant) -> list[Entry]:
    replayed, column = summary.replays[source].get(who), summary.replayed(source)
    if replayed is None:
        return [time_entry(summary, source, column, who), NOTHING]
    low, high = (end * source.rate for end in replayed.cell.interval)
    detail = f"({formats.time_range(low, high)})"
    cost = formats.nanoseconds(replayed.cell.level * source.rate)
    late = lateness_text(*replayed.late, source.unit) if replayed.late else NOTHING.text
    return [Entry(cost, detail, who in leaders(column)), Entry(late, number=False)]


def at_a_glance(summary: Summary) -> Table:
    """Each contestant at the largest size: every task, memory, precision; the fastest in bold."""
    rows = {}
    for who in summary.contestants:
        _, nbytes = summary.footprint(who) or (0, None)
        rows[who] = {
            task.title: time_entry(summary, task, column, who, spread=False)
            for task, column in summary.largest.items()
        }
        rows[who]["memory per timer"] = entry(nbytes, formats.data_size)
        rows[who]["fires"] = Entry(who.precision, number=False)
    return Table.of_rows(
        "glance",
        f"With {formats.counted(summary.sizes[-1], 'timer')} pending: time per operation, memory, "
        "precision",
        rows,
        f"Bold: the fastest exact timer, and exact timers tied with it. {ratio_note(summary)}",
    )
