"""The tables of a run: plain cells of text, for the page to lay out and for tests to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compare.bench.task import Task
from reports import style
from reports.style import NO_BREAK
from reports.summary import Cell, Contestant, Replayed, Source, Summary
from reports.words import counter_title, list_of, unit_symbol, unit_words


@dataclass(frozen=True)
class Entry:
    """One cell of a table: its text, and in smaller print what qualifies it."""

    text: str
    detail: str = ""
    best: bool = False  # to be set in bold
    number: bool = True


@dataclass(frozen=True)
class Row:
    """A row with its heading; `timer` gives it that timer's colour."""

    heading: str
    remark: str
    entries: Sequence[Entry]
    timer: str | None = None


@dataclass(frozen=True)
class Table:
    """A table. `headings` are those of the columns, the first of them that of the rows'
    headings.
    """

    name: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    loose: bool = False  # figures may be broken into two lines

    def is_number(self, column: int) -> bool:
        """Whether the entries of a column are numbers, and so aligned at the right; -1 are the
        rows' headings.
        """
        return column >= 0 and all(row.entries[column].number for row in self.rows)

    @property
    def narrow(self) -> bool:
        """Whether it fits beside a chart."""
        return not self.in_words and len(self.headings) <= NARROW

    @property
    def in_words(self) -> bool:
        """Whether it holds texts, which need broad columns."""
        return not any(self.is_number(column) for column in range(len(self.headings) - 1))


NARROW = 3  # columns
NOTHING = Entry("–")


def at_a_glance(summary: Summary) -> Table:
    """Each contestant at the largest size: every task, memory, and when it fires; the leaders
    marked.
    """
    largest = summary.sizes[-1]
    base = summary.base
    columns = {task: summary.column(task, largest) for task in summary.tasks}
    leaders = {task: set(summary.leaders(cells)) for task, cells in columns.items()}
    rows = []
    for who in summary.contestants:
        entries = []
        for task, cells in columns.items():
            found = cells.get(who)
            entries.append(
                NOTHING
                if found is None
                else _time(
                    found,
                    cells.get(base) if base else None,
                    best=who in leaders[task],
                    spread=False,
                )
            )
        footprint = summary.footprint(who)
        entries.append(Entry(style.data_size(footprint[1])) if footprint else NOTHING)
        entries.append(Entry(who.precision, number=False))
        rows.append(_row(who, entries))
    note = "Bold: the fastest of the exact timers, and those whose medians lie within each other's samples."
    if base:
        note += f" ×: times the {base.timer}'s."
    return Table(
        "glance",
        f"With {style.count(largest)} timers pending: time per operation, memory, precision",
        ["timer", *(task.title for task in columns), "memory per timer", "fires"],
        rows,
        note,
    )


def times(summary: Summary, task: Task) -> Table:
    """Median, spread and ratio to the base for each contestant and size of one task."""
    columns = {size: summary.column(task, size) for size in summary.sizes}
    base = summary.base
    rows = []
    for who in summary.contestants:
        entries = []
        for cells in columns.values():
            found = cells.get(who)
            entries.append(
                NOTHING
                if found is None
                else _time(
                    found, cells.get(base) if base else None, best=who in summary.leaders(cells)
                )
            )
        if any(entry is not NOTHING for entry in entries):
            rows.append(_row(who, entries))
    return Table(
        f"times-{task.name}",
        f"{task.title}: time per {task.unit}",
        ["timer", *map(style.size, columns)],
        rows,
        f"{task.meaning} Median; in brackets the least and the greatest sample{_ratio_words(base)}.",
    )


def work(summary: Summary, task: Task) -> Table | None:
    """Counts per operation for each contestant and counter of one task, from the smallest size to
    the largest.

    None where nothing was counted.
    """
    counters = summary.counters(task)
    rows = []
    for who in summary.contestants:
        entries = [_growth(summary, task, name, who) for name in counters]
        if any(entry is not NOTHING for entry in entries):
            rows.append(_row(who, entries))
    if not rows:
        return None
    idle = summary.idle_counters(task)
    first, last = (style.count(size) for size in (summary.sizes[0], summary.sizes[-1]))
    return Table(
        f"work-{task.name}",
        f"{task.title}: work per {task.unit}, counted",
        ["timer", *map(counter_title, counters)],
        rows,
        (
            f"With N = {first} pending → with N = {last}"
            if first != last
            else f"With N = {last} pending"
        )
        + (f". Zero for all: {list_of(map(counter_title, idle))}" if idle else "")
        + ".",
        loose=True,
    )


def _growth(summary: Summary, task: Task, name: str, who: Contestant) -> Entry:
    counts = {
        size: summary.counts[task, name, who.key, size]
        for size in summary.sizes
        if (task, name, who.key, size) in summary.counts
    }
    if not counts:
        return NOTHING
    low, high = min(counts), max(counts)
    detail = "" if high == summary.sizes[-1] else f"at N = {style.count(high)}"
    words = [style.amount(counts[size]) for size in (low, high)]
    return Entry(f" →{NO_BREAK}".join(words) if words[0] != words[1] else words[0], detail)


def replays(summary: Summary, source: Source) -> Table:
    """What each contestant did with one source, and how long it took."""
    cells = {
        who: replayed
        for who in summary.contestants
        if (replayed := summary.replays.get((source.name, who.key)))
    }
    base = summary.base
    leaders = summary.leaders({who: replayed.cell for who, replayed in cells.items()})
    rows = []
    for who, replayed in cells.items():
        row = replayed.row
        counted = [
            NOTHING if row[name] is None else Entry(style.count(row[name]))
            for name in (
                "scheduled",
                "cancelled",
                "rescheduled",
                "fired",
                "pending",
                "wakeups",
                "idle_wakeups",
            )
        ]
        late = [row["lateness_min"], row["lateness_median"], row["lateness_max"]]
        lateness = NOTHING if None in late else Entry(" / ".join(f"{value:g}" for value in late))
        time = _time(
            replayed.cell, cells[base].cell if base in cells else None, best=who in leaders
        )
        rows.append(_row(who, [time, *counted, lateness]))
    return Table(
        f"replay-{source.name}",
        f"{source.short}: {source_words(source)}",
        [
            "timer",
            "time per operation",
            "scheduled",
            "cancelled",
            "re-armed",
            "fired",
            "still pending",
            "wake-ups to drain",
            "… with nothing due",
            f"lateness: least / median / most [{unit_symbol(source.unit)}]",
        ],
        rows,
        "Median time per operation of the whole sequence, expiries included; in brackets the least and the greatest "
        f"sample{_ratio_words(base)}. Counts are the same in all samples. Lateness is in {unit_words(source.unit)}.",
    )


def grid(summary: Summary, source: Source) -> Table:
    """What each contestant of a replayed grid did with one source, all shards together, and how
    long it took.
    """
    cells = {
        who: replayed
        for who in summary.contestants
        if (replayed := summary.replays.get((source.name, who.key)))
    }
    base = summary.base
    leaders = summary.leaders({who: replayed.cell for who, replayed in cells.items()})
    counters = [
        name
        for name in _counted(cells.values())
        if any(replayed.counters.get(name) for replayed in cells.values())
    ]
    rows = []
    for who, replayed in cells.items():
        row = replayed.row
        entries = [
            _time(replayed.cell, cells[base].cell if base in cells else None, best=who in leaders)
        ]
        entries += [Entry(style.count(row[name])) for name in ("fired", "pending", "most_pending")]
        entries.append(Entry(style.data_size(row["nbytes"])))
        late = [row[f"lateness_{which}"] for which in ("min", "p50", "p99", "p999", "max")]
        entries += [NOTHING if value is None else Entry(style.count(value)) for value in late]
        counts = replayed.counters
        entries += [
            Entry(style.amount(counts[name] / max(row["operations"], 1)))
            if name in counts
            else NOTHING
            for name in counters
        ]
        rows.append(_row(who, entries))
    symbol = unit_symbol(source.unit)
    return Table(
        f"grid-{source.name}",
        f"{source.short}: {source_words(source)}",
        [
            "timer",
            "time per operation",
            "fired",
            "still pending",
            "most pending, one shard",
            "memory, one shard",
            f"lateness [{symbol}]: least",
            "median",
            "99 %",
            "99.9 %",
            "most",
            *(f"{counter_title(name)} per operation" for name in counters),
        ],
        rows,
        "Time per operation: median of the shards, expiries included; in brackets the least and the greatest "
        f"shard{_ratio_words(base)}. Lateness is in {unit_words(source.unit)}, of all timers that fired; memory is the most "
        "that a shard's timer held in the end, with the room that a replay keeps free ahead of itself.",
    )


def _counted(cells: Iterable[Replayed]) -> list[str]:
    """The names of all counters, in the order of the run."""
    return list(dict.fromkeys(name for replayed in cells for name in replayed.counters))


def memory(summary: Summary) -> Table:
    """Bytes per timer for each contestant and capacity."""
    capacities = sorted({capacity for _, capacity in summary.memory})
    rows = []
    for who in summary.contestants:
        found = [summary.memory.get((who.key, capacity)) for capacity in capacities]
        if any(value is not None for value in found):
            rows.append(
                _row(
                    who,
                    [
                        NOTHING if value is None else Entry(style.data_size(value))
                        for value in found
                    ],
                )
            )
    return Table(
        "memory",
        "Memory per pending timer, all of the capacity used",
        ["timer", *map(style.size, capacities)],
        rows,
    )


def behaviour(summary: Summary) -> Table:
    """The traits that say what a scheme does."""
    rows = []
    for who in summary.contestants:
        traits = who.traits
        rows.append(
            _row(
                who,
                _texts(
                    traits["scheme"],
                    _fires(who),
                    {"fifo": "first armed, first fired"}.get(traits["order"], traits["order"]),
                    traits["horizon"],
                    traits["jumps"],
                    "; ".join(traits["deviations"]) or "none",
                ),
            )
        )
    return Table(
        "behaviour",
        "What each scheme does",
        [
            "timer",
            "scheme",
            "fires at",
            "order within one unit",
            "horizon",
            "over empty time",
            "deviations",
        ],
        rows,
    )


def _fires(who: Contestant) -> str:
    form = str(who.traits["due_at"])
    return form if who.exact else f"{form}. Here: {who.precision}."


def advice(summary: Summary) -> Table:
    """The traits that say what a scheme costs and is good for."""
    rows = [
        _row(
            who,
            _texts(
                "; ".join(who.traits["costs"]),
                who.traits["suits"],
                who.traits["drawback"],
                "exact" if who.traits["exact_next_expiry"] else "a bound that may come earlier",
                who.traits["source"],
            ),
        )
        for who in summary.contestants
    ]
    return Table(
        "advice",
        "What each scheme costs and suits",
        ["timer", "declared costs", "suits", "drawback", "its answer to “when next?”", "source"],
        rows,
    )


def source_words(source: Source) -> str:
    """What was replayed, in words."""
    told = {
        "operations": "{} operations",
        "timers": "{} timers",
        "id_space": "at most {} at once",
        "shards": "{} shards",
    }
    numbers = {name: source.details.get(name) for name in told}
    parts = [
        told[name].format(style.count(number))
        for name, number in numbers.items()
        if isinstance(number, int)
    ]
    return ", ".join(parts) or "replayed"


def _time(cell: Cell, base: Cell | None, *, best: bool, spread: bool = True) -> Entry:
    if cell.spread is None:
        return Entry("too long", f"predicted {style.span(cell.predicted_seconds or 0.0)}")
    details = []
    if spread and cell.spread.samples > 1:
        details.append(f"({style.short_range(cell.spread.low, cell.spread.high)})")
    if base is not None and base.spread is not None:
        details.append(
            style.ratio(cell.spread.median / base.spread.median) if base.spread.median else ""
        )
    return Entry(style.nanoseconds(cell.spread.median), " ".join(details), best)


def _ratio_words(base: Contestant | None) -> str:
    return f"; ×: times the {base.timer}'s in the same column" if base else ""


def _row(who: Contestant, entries: Sequence[Entry]) -> Row:
    return Row(who.short, who.remark, entries, who.timer)


def _texts(*texts: str) -> list[Entry]:
    return [Entry(text, number=False) for text in texts]
