"""All sections of the page, in order: words, tables and charts, as queries of the figures.

A new section is a function here and a line in SECTIONS. Its tables and charts are plain data; the
page, the terminal and Markdown show the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from compare.base import formats, quantiles
from compare.base.quantiles import TAIL
from compare.trial.bench.callers import LOOP, METRICS, OWN_CLOCK
from compare.trial.bench.costs import ERROR, subject_of
from compare.trial.bench.costs import METRICS as CONSTANTS
from compare.trial.bench.idle import TICKS
from compare.trial.bench.peers import MEMORY as PEER_MEMORY
from compare.trial.bench.peers import METRIC, SINGLE, SUBJECTS
from compare.trial.bench.replays import OWN as OWN_OF_PROGRAMS
from compare.trial.bench.steady import KINDS
from compare.trial.bench.task import HOLD
from compare.trial.bench.threads import OWN
from compare.trial.replay.engine import OPERATIONS_AT_ONCE
from compare.trial.replay.lateness import lateness_text
from compare.trial.results.metrics import LATENCIES, is_counter
from compare.trial.results.metrics import metric as metric_named
from compare.trial.results.schema import IDLE, MEMORY, TAILS, THREADS
from reports import changes, claims, method, overload, purgatory, timeouts
from reports.plots import COLUMNS, CURVES, SCATTER, Panel, Plot, Plots, Point
from reports.select import Key, pivot, where
from reports.statistics import Estimate
from reports.summary import (
    Measured,
    StoredContestant,
    StoredPeer,
    StoredSource,
    Subject,
    Summary,
)
from reports.tables import (
    LAST,
    NOTHING,
    Entry,
    Heading,
    Row,
    Section,
    Table,
    cell,
    cells,
    plain_row,
)
from reports.titles import TITLES

BOLD = "Bold: the fastest exact timer, and exact timers tied with it."
MEDIAN = "median [ns]"
"""The heading of the statistic that is shown at first."""

Wanted = tuple[str, str, int | None] | Callable[[StoredContestant], Mapping[str, Entry]]
"""Cells: a metric, a subject and a size; or a function that makes others."""


def tabulate(
    summary: Summary,
    name: str,
    caption: str,
    facets: Sequence[str],
    places: Mapping[Heading, Sequence[Wanted]],
    note: str = "",
    chosen: Mapping[str, str] | None = None,
    *,
    ranked: bool = False,
) -> Table:
    """Make a table of figures; the last facet of a heading names the metric or statistic.

    `places` maps the parts of the other facets to the cells below them. If these are all facets,
    the names of the metrics are left out.
    """

    def row(timer: StoredContestant) -> Iterator[tuple[Heading, Entry]]:
        for place, wanted in places.items():
            for each in wanted:
                made = (
                    each(timer) if callable(each) else cells(summary, timer, *each, ranked=ranked)
                )
                for heading, entry in made.items():
                    yield (*place, heading)[: len(facets)], entry

    entries = {timer: dict(row(timer)) for timer in summary.contestants}
    return Table(name, caption, facets, entries, note, chosen=chosen or {})


# ---- times


def times_lead(summary: Summary) -> str:
    """What the charts show, and what was over budget."""
    notes = [
        "What one operation costs as the number of pending timers (N) grows. Markers show the "
        "median of the samples, bars the range from the least to the greatest. Axes are "
        "logarithmic."
    ]
    if not all(timer.compiled for timer in summary.contestants):
        notes.append("Dashed: times of a “Python loop”, which include the interpreter's overhead.")
    if summary.over_budget:
        notes.append(
            f"What takes a timer longer than {summary.manifest['parameters']['budget']:g} s is "
            "over budget, and is not run with more timers pending."
        )
    return " ".join(notes)


def times(summary: Summary) -> Table:
    """The time of an operation against the number of pending timers."""
    return tabulate(
        summary,
        "times",
        "Time per operation",
        ("operation", "size", "statistic"),
        {
            (task.title, formats.size(size)): [("time", task.name, size)]
            for task in summary.tasks
            for size in summary.sizes
        },
        f"{BOLD} Expiry is the time for each timer that fires.",
        {"size": _largest(summary.sizes), "statistic": MEDIAN},
        ranked=True,
    )


def _largest(sizes: Sequence[int]) -> str:
    return formats.size(max(sizes, default=0))


def times_plots(summary: Summary) -> Plots:
    """A chart for each task."""
    for task in summary.tasks:
        if curves := summary.curves("time", task.name):
            title = f"{task.title}: time per {task.unit}"
            yield _curves(summary, f"time-{task.name}", title, {"": curves}, task.meaning)


Curves = Mapping[StoredContestant, Mapping[int, Estimate]]


def _curves(
    summary: Summary,
    name: str,
    title: str,
    shown: Mapping[str, Curves],
    caption: str,
    form: Callable[[float], str] = formats.nanoseconds,
    height: float = 2.1,
) -> Plot:
    """A chart over the number of pending timers, with a panel for each heading."""
    sizes = sorted({n for curves in shown.values() for curve in curves.values() for n in curve})
    across = "timers pending, N" + " (log scale)" * (len(shown) == 1)
    lowest = [*shown][-2:]
    panels = {
        heading: Panel(
            {
                timer: [Point(n, value, formats.size(n)) for n, value in curve.items()]
                for timer, curve in curves.items()
            },
            form,
            across if heading in lowest else "",
            ticks=sizes,
        )
        for heading, curves in shown.items()
    }
    return Plot(CURVES, name, title, caption, summary.contestants, panels, height)


# ---- tails

_KINDS = dict(zip(LATENCIES, ("Start", "Cancel", "Re-arm", "Advance"), strict=True))
_MORE = {
    "start": ("growths", "rounds"),
    "advance": ("worst_fired", "worst_refiled", "worst_moment"),
}


def tails_lead(summary: Summary) -> str:
    """What is measured, and by which clocks."""
    beside = " Those of peers are below, with the timers of other languages." * any(
        key.metric in SINGLE for key in summary.figures
    )
    return (
        "The time of each single operation. The median hides what a few of them wait for: a "
        "cascade, a scan, or the growth of a timer that started small. An operation's time is the "
        "least of several rounds of the same operations, so that interruptions by the machine are "
        "left out. With N timers pending, the clock advances by one unit; in a replay, to the time "
        f"of the next operation. Clocks: {'. '.join(clock.text for clock in summary.clocks)}."
        + beside
    )


def tails(summary: Summary) -> Table:
    """The quantiles of the latencies, and the slowest advance."""
    places = _tailed(summary)
    return tabulate(
        summary,
        "tails",
        "Latency of single operations",
        ("of", "operation", "figure"),
        {
            (place, title): [
                (metric, subject, size)
                for metric in (*(f"{kind}_{name}" for name in TAIL), *_MORE.get(kind, ()))
            ]
            for place, (subject, size) in places.items()
            for kind, title in _KINDS.items()
        },
        "The last columns of an advance say what the slowest one did, and at which time of the "
        "timer's clock. An advance never grows a timer; a start does when there is no room.",
        {"of": next(iter(places)), "operation": _KINDS["advance"]} if places else {},
    )


def _tailed(summary: Summary) -> dict[str, tuple[str, int | None]]:
    """Subject and size of each tape with latencies, by title: the largest size first."""
    keys = summary.where(metric=f"{LATENCIES[0]}_max").figures
    sizes = sorted({key.size for key in keys if key.size is not None}, reverse=True)
    subjects = {key.subject for key in keys if key.size is None}
    titles = {summary.called(source): source.name for source in summary.sources}
    return {
        **{formats.size(size): (TAILS, size) for size in sizes},
        **{title: (name, None) for title, name in titles.items() if name in subjects},
    }


def tails_plots(summary: Summary) -> Plots:
    """Latency against the quantile, for the largest size or else the first source."""
    for place, (subject, size) in [*_tailed(summary).items()][:1]:
        floor = max(clock.step for clock in summary.clocks)
        panels = {}
        for kind, title in _KINDS.items():
            columns = [summary.column(f"{kind}_{name}", subject, size) for name in TAIL]
            series: dict[Subject, list[Point]] = {
                timer: [
                    Point(x, Estimate.of([max(column[timer].value, floor)]), quantiles.title(name))
                    for x, (name, column) in enumerate(zip(TAIL, columns, strict=True))
                ]
                for timer in summary.contestants
                if timer in columns[0]
            }
            if series:
                names = [quantiles.title(name) for name in TAIL]
                panels[title] = Panel(series, names=names)
        yield Plot(
            CURVES,
            "tails",
            f"Latency of single operations, {place}",
            f"Times below a step of the clock are drawn at {formats.nanoseconds(floor)}.",
            summary.contestants,
            panels,
        )


# ---- wake-ups


def idle(summary: Summary) -> Table:
    """The wake-ups of an idle program in an hour."""
    found = summary.where(metric="hour_wakeups").figures
    timers = formats.counted(max((key.size or 0 for key in found), default=0), "timer")
    subjects = {IDLE: "no tick"} | {f"{IDLE}, tick {tick}": tick for tick in TICKS}
    entries: dict[Subject, Row] = {
        timer: {
            (heading, tick): entry
            for name in ("hour_ms", "hour_wakeups")
            for subject, tick in subjects.items()
            for size in {key.size for key in found}
            for heading, entry in cells(summary, timer, name, subject, size).items()
        }
        for timer in summary.contestants
    }
    return Table(
        "idle",
        "An hour of an idle program",
        ("figure", "tick"),
        entries,
        f"With {timers} pending, none of which is due within the hour: the timer's wake-ups and "
        "its CPU time in them, without that of waking the process. What takes longer than the "
        "budget is extrapolated.",
        chosen={"figure": metric_named("hour_wakeups").heading} if found else {},
    )


# ---- callers


def callers_lead(summary: Summary) -> str:
    """What the costs are, and which hosts are missing."""
    missing = "".join(f" {name} is not installed here." for name in summary.absent)
    return (
        "CPU time with N timers pending. The constants of a caller are fitted to replays. Services "
        "and event loops move their own clock: a start and the cancel of a random timer, a start "
        "and the expiry, and a wake-up, which is what a call that fires alone costs more than one "
        "of many. A timer that takes long to fill is not measured with more timers pending."
        + missing
    )


def callers(summary: Summary) -> Table:
    """The costs of each way of calling a timer whose clock the caller moves."""
    ways = [caller for caller in summary.callers if caller not in OWN_CLOCK]
    table = _costs(summary, "callers", "Costs of a caller", ways, ranked=True)
    return replace(table, note=f"Median and range, in ns. {BOLD}")


def constants(summary: Summary) -> Table:
    """What the cost of traffic is made of, for each caller and kind of timeouts."""
    places = {
        (TITLES[caller][0], KINDS[kind].partition(":")[0], formats.size(size)): (subject, size)
        for caller in TITLES
        for kind in KINDS
        if (subject := subject_of(caller, kind)) in summary.fits
        for size in sorted({n for by_size in summary.fits[subject].values() for n in by_size})
    }
    table = tabulate(
        summary,
        "constants",
        "What the cost of traffic is made of",
        ("caller", "timeouts", "size", "figure"),
        {place: [(name, *at) for name in (*CONSTANTS, ERROR)] for place, at in places.items()},
        "In ns, fitted to replays; below, from the least to the greatest of the rounds of samples. "
        "A cost adds them up, as often as each occurs.",
        dict(zip(("caller", "timeouts", "size"), next(iter(places)), strict=True))
        if places
        else {},
    )
    hosts: dict[Subject, Row] = {
        host: {
            (*place, metric_named(name).heading): cell("interval", name, summary.figures[key])
            for place, at in places.items()
            for name in (*CONSTANTS, ERROR)
            if (key := Key(host.name, *at, name)) in summary.figures
        }
        for host in summary.hosts
        if host.name in OWN_OF_PROGRAMS
    }
    rows = {who: row for who, row in hosts.items() if row} | dict(table.entries)
    return replace(table, entries=rows)


def services(summary: Summary) -> Table:
    """The costs of services and event loops on each timer, and of what programs have today."""
    ways = [caller for caller in summary.callers if caller in OWN_CLOCK]
    table = _costs(summary, "services", "Costs of a service or an event loop", ways, ranked=False)
    titles = {metric_named(name).heading: title for name, title in _OF_SERVICES.items()}
    rows: dict[Subject, Row] = {host: _of_host(summary, host, ways) for host in summary.hosts}
    rows |= table.entries
    entries = {
        who: {(*heading[:-1], titles[heading[-1]]): entry for heading, entry in row.items()}
        for who, row in rows.items()
    }
    note = (
        "Median and range. The first rows are what programs have without a timer of this project."
    )
    return replace(table, entries=entries, note=note)


_OF_SERVICES = {
    "pair_time": "call and cancel [ns]",
    "fire_time": "call that fires among others [ns]",
    "step_time": "wake-up [ns]",
}
"""Metric of a caller -> what it is for a service or an event loop."""


def _of_host(summary: Summary, host: Measured, ways: Sequence[str]) -> Row:
    found = summary.where(contestant=host.name, subject=ways, metric=METRICS).figures
    return {
        (TITLES[key.subject][0], formats.size(key.size or 0), metric_named(key.metric).heading): (
            cell("range", key.metric, estimate)
        )
        for key, estimate in found.items()
    }


def _costs(
    summary: Summary, name: str, caption: str, ways: Sequence[str], *, ranked: bool
) -> Table:
    places: dict[Heading, Sequence[Wanted]] = {
        (TITLES[caller][0], formats.size(size)): [(name, caller, size) for name in METRICS]
        for caller in ways
        for size in sorted(
            {key.size or 0 for key in summary.where(subject=caller, metric=METRICS).figures}
        )
    }
    first = LOOP if LOOP in ways else next(iter(ways), "")
    sizes = [size for title, size in places if title == TITLES.get(first, ("",))[0]]
    return tabulate(
        summary,
        name,
        caption,
        ("caller", "size", "figure"),
        places,
        chosen={"caller": TITLES[first][0], "size": sizes[-1]} if places else {},
        ranked=ranked,
    )


# ---- timers of other languages


def peers_lead(summary: Summary) -> str:
    """What was compared, and which peers are missing and why."""
    missing = [f"{peer.name}: {peer.problem}." for peer in summary.peers if peer.problem]
    text = (
        "The same tapes in other languages: CPU time per operation, in turns with the project's "
        "timers. Each peer was first checked, and one that disagrees was not timed. For expiry, "
        "the clock moves unit by unit until all timers have fired. A turn is a new process, in "
        "which one round counts. Rounds before it warm up: as many as have a million operations "
        "in Java and JavaScript, which compile while they run, and one in other languages. Java "
        "collects its garbage before a round, which pays for its own. "
        "Nothing is batched: a peer calls its structure once for each operation, from a loop in "
        "its own language, and the project's timers run in the compiled loop of a replay. The "
        "clock is the CPU time of the process, read before and after a phase; for the project's "
        "timers, that of the thread. Single operations were timed on their own, by the monotonic "
        "clock, with one reading in each: for expiry, a step of the clock. With several threads, "
        "timers run in real time, and each was first judged by the interval of each call."
    )
    return " ".join([text, *(["Not timed:"] if missing else []), *missing])


def peers(summary: Summary) -> Table:
    """The peers, and what is known about them."""
    rows: dict[Subject, Row] = {}
    for peer in summary.peers:
        words = {name: Entry(peer.facts.get(name) or NOTHING.text) for name in _FACTS}
        if peer.problem:
            words["remark"] = Entry(peer.problem)
        rows[peer] = plain_row(words)
    return Table("peers", "Timers of other languages", ("figure",), rows, of="peer")


_FACTS = ("language", "library", "scheme", "rounding")


def peer_times(summary: Summary) -> Table:
    """The times of peers, and of the project's timers beside them."""
    return _of_peers(
        summary,
        "peer-times",
        "Time per operation beside other languages",
        ("size", "figure"),
        [(METRIC, subject, (f"{name} [ns]",)) for subject, name in SUBJECTS.items()]
        + [(PEER_MEMORY, next(iter(SUBJECTS)), ("memory [B]",))],
        "Median and range. A turn times a single round, so the project's timers take longer here "
        "than in the other tables. Memory is how much the process grows for each timer.",
    )


def peer_singles(summary: Summary) -> Table:
    """The quantiles of single operations."""
    return _of_peers(
        summary,
        "peer-singles",
        "Single operations in other languages, in ns",
        ("size", "operation", "quantile"),
        [
            (metric, subject, (name, metric_named(metric).title.partition(" ")[0]))
            for subject, name in SUBJECTS.items()
            for metric in SINGLE
        ],
        "A quantile is the end of its bin, up to an eighth above the true time.",
        {"operation": HOLD.operation},
    )


def _of_peers(
    summary: Summary,
    name: str,
    caption: str,
    facets: Sequence[str],
    columns: Sequence[tuple[str, str, Heading]],
    note: str,
    chosen: Mapping[str, str] | None = None,
) -> Table:
    """A table of peers and contestants. A column is a metric, a subject and facets but the size."""
    subjects: dict[str, Subject] = {each.label: each for each in summary.peers}
    subjects |= {each.label: each for each in summary.contestants if summary.peers}
    metrics = tuple(metric for metric, _, _ in columns)
    timed = where(summary.figures, metric=metrics, subject=(*SUBJECTS,), contestant=(*subjects,))
    sizes = sorted({key.size for key in timed if key.size is not None})
    entries: dict[Subject, dict[Heading, Entry]] = {each: {} for each in subjects.values()}
    for size in sizes:
        for metric, subject, heading in columns:
            at = where(timed, metric=metric, subject=subject, size=size)
            for label, estimate in pivot(at, "contestant").items():
                place = (formats.size(size), *heading)
                entries[subjects[label]][place] = cell("range", metric, estimate)
    choice = {"size": _largest(sizes)} if sizes else {}
    return Table(name, caption, facets, entries, note, chosen=choice | dict(chosen or {}))


def threads(summary: Summary) -> Table:
    """Timers that several threads use at once, and why one was not timed."""
    keys = [key for key in (*summary.figures, *summary.failures) if key.subject.startswith(THREADS)]
    names = {key.contestant for key in keys}
    known: list[Measured | StoredPeer] = [Measured(OWN), *summary.peers]
    subjects: dict[str, Subject] = {each.label: each for each in known if each.label in names}
    entries: dict[Subject, dict[Heading, Entry]] = {each: {} for each in subjects.values()}
    for subject in sorted({key.subject for key in keys}):
        for metric, statistic in _THREADED.items():
            heading = (subject.removeprefix(THREADS), metric_named(metric).heading)
            at = {"subject": subject, "metric": metric}
            for label, estimate in pivot(where(summary.figures, **at), "contestant").items():
                entries[subjects[label]][heading] = cell(statistic, metric, estimate)
            for label, reason in pivot(where(summary.failures, **at), "contestant").items():
                entries[subjects[label]][heading] = Entry("", f"not timed: it {reason}", value=LAST)
    counts = [*dict.fromkeys(heading[0] for row in entries.values() for heading in row)]
    return Table(
        "threads",
        f"Several threads, {formats.size(max((key.size or 0 for key in keys), default=0))}",
        ("threads", "figure"),
        entries,
        "Half of the operations are starts and half are cancels. CPU time is that of all threads, "
        "with the one that drives; wall time is until all are done, divided by their number. Lost: "
        "neither came out nor was cancelled. Doubled: came out twice, or though its cancel "
        "succeeded. Oversubscribed: more threads than cores.",
        of="timer",
        chosen={"threads": counts[-1]} if counts else {},
    )


_THREADED = {
    "threads_cpu": "range",
    "threads_wall": "range",
    "threads_start_p99": "median",
    "threads_late_p99": "median",
    "threads_lost": "median",
    "threads_doubled": "median",
}
"""The metrics of timers that several threads use, with the statistic of each."""

# ---- workloads and traces

_COUNTS = (
    *("scheduled", "cancelled", "rescheduled", "fired", "most_pending", "nbytes"),
    *("lateness_median", "lateness_p99", "lateness_p999"),
    *("driver_wakeups", "driver_idle"),
)
_NAME = 16  # characters of a source below its column
_FEW_PRECISIONS = 2  # up to this number, the charts of time and lateness suffice


def workloads(summary: Summary) -> Table:
    """A table of each timer's results and times on each source."""
    about = (
        "Times are those of all shards together; lateness is that of all timers that fired; memory "
        "is the most that one shard's timer held at the end"
        if summary.of_shards
        else "Times are those of the whole sequence, expiries included; memory is what the timer "
        "held at the end"
    )
    room = formats.count(OPERATIONS_AT_ONCE)
    about += f", with the room that compiled timers reserve for up to {room} operations at a time."
    return tabulate(
        summary,
        "replays",
        "Replays",
        ("source", "figure"),
        {(summary.called(source),): _of_source(summary, source) for source in summary.sources},
        f"{about} {BOLD}",
        {"source": summary.called(summary.sources[0])} if summary.sources else {},
        ranked=True,
    )


def _of_source(summary: Summary, source: StoredSource) -> list[Wanted]:
    def fired(timer: StoredContestant) -> Mapping[str, Entry]:
        """The lateness in words, of a timer that was replayed."""
        if timer not in summary.column("replay_time", source.name):
            return {}
        late = summary.late(timer, source)
        return {
            "lateness range": Entry(lateness_text(*late, source.unit) if late else NOTHING.text)
        }

    def counted(timer: StoredContestant) -> Mapping[str, Entry]:
        """The counts, and of a grid the counted work."""
        work = summary.counters(source.name) if summary.of_shards else []
        return {
            heading + " per operation" * is_counter(name): entry
            for name in (*_COUNTS, *work)
            for heading, entry in cells(summary, timer, name, source.name).items()
        }

    times: list[Wanted] = [(name, source.name, None) for name in ("replay_time", "second")]
    return [*times, fired, counted]


def replays_plots(summary: Summary) -> Plots:
    """The median time per operation: a column for each source."""
    columns = {
        source: column
        for source in summary.sources
        if (column := summary.column("replay_time", source.name))
    }
    if columns:
        series: dict[Subject, list[Point]] = {
            timer: [
                Point(x, column[timer], source.short)
                for x, (source, column) in enumerate(columns.items())
                if timer in column
            ]
            for timer in summary.contestants
            if any(timer in column for column in columns.values())
        }
        names = [formats.cut(source.short, _NAME) for source in columns]
        yield Plot(
            COLUMNS,
            "replays",
            "Replays of whole workloads: time per operation",
            "The time of the whole sequence, expiries included, divided by its operations.",
            [*series],
            {"": Panel(series, names=names)},
        )


def trade_off_plots(summary: Summary) -> Plots:
    """Time against the worst lateness seen: a panel for each source."""
    precisions = {timer.lateness for timer in summary.contestants}
    if len(precisions) <= _FEW_PRECISIONS or not summary.sources:
        return

    def panel(source: StoredSource) -> Panel:
        series: dict[Subject, list[Point]] = {}
        for timer, time in summary.column("replay_time", source.name).items():
            if late := summary.late(timer, source):
                deviation = max(map(abs, late))
                where = f"at most {formats.count(deviation)} {source.unit} off"
                series[timer] = [Point(deviation, time, where)]
        return Panel(series, across=f"worst deviation [{source.unit}]")

    panels = {summary.called(source): panel(source) for source in summary.sources}
    if not any(each.series for each in panels.values()):
        return
    yield Plot(
        SCATTER,
        "trade-off",
        "Time per operation against precision",
        "Across: how far from its deadline the worst timer fired, late or early; 0 is exact. Up: "
        "the time per operation. Lower left is better in both.",
        summary.contestants,
        panels,
    )


# ---- memory

_HELD = ("at_rest", "at_peak", "grown")
_MEMORY = (*_HELD, *(f"process_{at}" for at in _HELD), "pause")


def memory(summary: Summary) -> Table:
    """Memory per pending timer, and the cost of growing."""
    curves = summary.curves("at_rest", MEMORY)
    sizes = sorted({size for curve in curves.values() for size in curve})
    return tabulate(
        summary,
        "memory",
        "Memory for each pending timer, and one timer more than there is room for",
        ("size", "figure"),
        {
            (formats.size(size),): [
                (name, MEMORY, size)
                for name in (*_HELD, *(f"process_{at}" for at in _HELD), "pause")
            ]
            for size in sizes
        },
        "Bytes for each pending timer: when all room is used, at most while the timer grows, and "
        "from then on, since capacity is never given back. Those of the process are the growth of "
        "its resident memory, measured in a new process for each timer. The pause is the time of "
        "the one insert that makes it grow: median, and the least and the greatest sample.",
        {"size": _largest(sizes)},
    )


def memory_plots(summary: Summary) -> Plots:
    """The bytes per pending timer at full capacity."""
    if curves := summary.curves("at_rest", MEMORY):
        caption = (
            "All that the timer holds, bookkeeping included, divided by the number of pending "
            "timers when its capacity is used up."
        )
        title = "Memory per pending timer"
        yield _curves(summary, "memory", title, {"": curves}, caption, formats.data_size)


# ---- counted work


def work_lead(summary: Summary) -> str:
    """What the counts are."""
    uncompiled = any(not timer.compiled for timer in summary.contestants)
    return (
        "What the same operations did inside the timer. These counts explain the times, and "
        "they are the same on every machine. Both axes of the charts are logarithmic, so zero is "
        "not drawn. Where lines overlap, hide one in the legend."
        + " Timers without a compiled kernel count only calls to advance."
        * uncompiled
    )


def work(summary: Summary) -> Table:
    """The cost counters of the tasks."""
    tasks = [task for task in summary.tasks if summary.counters(task.name)]
    return tabulate(
        summary,
        "work",
        "Counted work per operation",
        ("operation", "size", "counter"),
        {
            (task.title, formats.size(size)): [
                (name, task.name, size) for name in [*summary.counters(task.name), "in_slots"]
            ]
            for task in summary.tasks
            for size in summary.sizes
        },
        "In slots: the share of the pending timers that are in the slots of a wheel while it is "
        "held. The others wait in a list, until the wheel reaches that far or for the end of the "
        "tick; with a low share, the time of a cancel and insert is that of the list.",
        {"operation": tasks[-1].title, "size": _largest(summary.sizes)} if tasks else {},
    )


def work_plots(summary: Summary) -> Plots:
    """A chart for each task, with a panel for each counter."""
    for task in summary.tasks:
        names = summary.counters(task.name)
        all_curves = {name: summary.curves(name, task.name) for name in names}
        shown = {
            metric_named(name).title: {
                timer: points
                for timer, curve in curves.items()
                if (points := {n: each for n, each in curve.items() if each.value})
            }
            for name, curves in all_curves.items()
        }
        if not shown:
            continue
        counted = {timer for curves in all_curves.values() for timer in curves}
        drawn = {timer for curves in shown.values() for timer in curves}
        others = [timer for timer in summary.contestants if timer not in drawn]
        notes = {
            "Zero, so not drawn": [timer.plain for timer in others if timer in counted],
            "Not counted": [timer.plain for timer in others if timer not in counted],
        }
        remarks = [f"{note}: {', '.join(names)}." for note, names in notes.items() if names]
        title, caption = f"{task.title}: work per {task.unit}", " ".join([task.meaning, *remarks])
        name = f"work-{task.name}"
        yield _curves(summary, name, title, shown, caption, formats.amount, 1.4)


# ---- traits and prose

_DOES, _SUITS = "what it does", "what it costs and suits"


def schemes_lead(summary: Summary) -> str:
    """What is declared, and what was checked."""
    checked = "" if summary.of_shards else "Expiries are checked before anything is timed. "
    return (
        f"What each scheme declares about itself. {checked}"
        "The tests check the counted work against the declared costs."
    )


def schemes(summary: Summary) -> Table:
    """The declared traits of each scheme."""
    rows = {timer: _traits(timer) for timer in summary.contestants}
    return Table("schemes", "Traits", ("about", "trait"), rows, chosen={"about": _DOES})


def _traits(timer: StoredContestant) -> Row:
    traits = timer.traits
    shown = dict(traits["parameters"])
    if traits["tick"] is not None:
        shown["tick"] = traits["tick"]
    parameters = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
    fires = traits["due_at"]
    exact = traits["exact_next_expiry"]
    texts: dict[Heading, str] = {
        (_DOES, "fires at"): fires if timer.exact else f"{fires}. Here: {timer.precision}.",
        (_DOES, "order within one unit"): traits["order_text"],
        (_DOES, "horizon"): traits["horizon"],
        (_DOES, "over empty time"): traits["jumps"],
        (_DOES, "deviations"): "; ".join(traits["deviations"]) or "none",
        (_SUITS, "declared costs"): "; ".join(traits["costs"]),
        (_SUITS, "suits"): traits["suits"],
        (_SUITS, "drawback"): traits["drawback"],
        (_SUITS, "next expiry"): "exact" if exact else "a bound that may be earlier",
        (_SUITS, "source"): traits["source"],
    }
    entries = {heading: Entry(text) for heading, text in texts.items()}
    return {(_DOES, "scheme"): Entry(traits["scheme"], parameters), **entries}


# ---- the catalogue


class Item(NamedTuple):
    """A section of the page, which is shown if it has a table with rows or words of its own."""

    title: str
    lead: str | Callable[[Summary], str] = ""
    tables: tuple[Callable[[Summary], Table], ...] = ()
    plots: tuple[Callable[[Summary], Plots], ...] = ()
    folded: bool = True  # behind its heading, until the reader opens it
    headline: Callable[[Summary], str] = lambda summary: ""
    terms: Callable[[Summary], Mapping[str, Sequence[str]]] = lambda summary: {}
    template: str = ""  # of its prose, which is about timers
    controls: str = ""  # a template that asks the reader, above the charts and tables


SECTIONS: Mapping[str, Item] = {
    "changes": Item("Since the run before", "", (changes.table,), headline=changes.headline),
    "times": Item(
        "Time against the number of pending timers",
        times_lead,
        (times,),
        (times_plots,),
        folded=False,
    ),
    "tails": Item(
        "Tails: the slowest operations", tails_lead, (tails,), (tails_plots,), folded=False
    ),
    "wakeups": Item(
        "Wake-ups of an idle program",
        "A driver sleeps until the timer's next wake-up. Some wheels wake up to look at slots or "
        "to move timers down, although nothing is due; with a fine tick this keeps a processor "
        "awake. The replays below have the wake-ups of a driver for each workload.",
        (idle,),
    ),
    "overload": Item(
        "Overload: lateness against load",
        overload.LEAD,
        (overload.table,),
        (overload.plots,),
        controls="load.html",
    ),
    "callers": Item("What a program pays", callers_lead, (constants, callers, services)),
    "peers": Item(
        "Timers of other languages", peers_lead, (peers, peer_times, peer_singles, threads)
    ),
    "workloads": Item(
        "Whole workloads: time and precision",
        "Recorded or generated traffic, replayed from the first operation to the last expiry. A "
        "timer with a coarse tick saves work by firing late or early, so its times are not "
        "directly comparable with those of an exact timer.",
        (workloads,),
        (replays_plots, trade_off_plots),
        folded=False,
    ),
    "timeouts": Item(
        "Which timeout for your traffic?",
        timeouts.lead,
        plots=(timeouts.plots,),
        folded=False,
        headline=timeouts.headline,
    ),
    "memory": Item(
        "Memory",
        "What a pending timer takes, and what happens when there is no room for one more.",
        (memory,),
        (memory_plots,),
    ),
    "purgatory": Item(
        "Requests that wait: the enqueue experiment",
        purgatory.LEAD,
        (purgatory.of_rates, purgatory.of_memory),
        (purgatory.plots,),
        folded=False,
        headline=purgatory.headline,
    ),
    "claims": Item(
        "Claims of the literature, settled",
        lambda summary: claims.lead(summary.claims),
        claims.TABLES,
        (claims.plots,),
        folded=False,
        headline=claims.headline,
    ),
    "work": Item(
        "Counted work: why the times are what they are", work_lead, (work,), (work_plots,)
    ),
    "schemes": Item("The schemes", schemes_lead, (schemes,)),
    "reading": Item("How to read this page", template="reading.html"),
    "method": Item("How it was measured", terms=method.terms, template="method.html"),
    "limits": Item("What these figures cannot say", template="limits.html"),
}
"""The sections by name, in the order of the page."""


def section(name: str, summary: Summary) -> Section | None:
    """Make a section; None if there are no figures for it."""
    item = SECTIONS[name]
    made = (table(summary) for table in item.tables)
    tables = [table for table in made if table.rows]
    terms = item.terms(summary)
    template = item.template if summary.contestants else ""
    lead = item.lead if isinstance(item.lead, str) else item.lead(summary)
    headline = item.headline(summary)
    if not (tables or headline or terms or template):
        return None
    controls = item.controls if tables else ""
    return Section(
        name, item.title, headline, lead, tables, terms, template, controls, folded=item.folded
    )


def sections(summary: Summary) -> list[Section]:
    """Make the sections for which there are figures."""
    made = (section(name, summary) for name in SECTIONS)
    return [each for each in made if each is not None]


def plots(summary: Summary) -> dict[str, list[Plot]]:
    """Make the charts of each section for which there are figures."""
    made = {
        name: [plot for make in item.plots for plot in make(summary)]
        for name, item in SECTIONS.items()
    }
    return {name: found for name, found in made.items() if found}
