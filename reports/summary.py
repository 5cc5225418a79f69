"""The figures of a stored run: one for each contestant, task and size."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from compare.traffic.tapes.units import EXPONENTS
from compare.trial.bench.store import Run, RunError, traits_of
from compare.trial.bench.task import TASKS, Task
from compare.trial.purgatory.figures import Row
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.replay.lateness import lateness_text
from reports import formats
from reports.statistics import Spread, fastest
from reports.trials import Case

YARDSTICK = "delay-queue"
"""The timer that ratios refer to, if it took part: the usual choice without wheels."""

LONGEST_NAME = 24  # characters of a timer's name in a chart


@dataclass(frozen=True, eq=False)
class StoredContestant:
    """A timer with its parameters, as it took part in the run."""

    label: str  # as on the command line: the name with the parameters that are not the defaults
    traits: Mapping[str, Any] = field(repr=False)  # compare.trial.bench.store.traits_of
    variant: int = 0  # its number among the contestants of the same timer

    @property
    def timer(self) -> str:
        """The timer's name, without parameters."""
        return str(self.traits["timer"])

    @property
    def lateness(self) -> tuple[int, int]:
        """The lowest and highest lateness that its scheme allows, in units."""
        return self.traits["lateness_low"], self.traits["lateness_high"]

    @property
    def exact(self) -> bool:
        """Whether it fires each timer exactly at its deadline."""
        return self.lateness == (0, 0)

    @property
    def compiled(self) -> bool:
        """Whether it ran in the compiled loop; otherwise its times include the interpreter's."""
        return bool(self.traits["engine"] == COMPILED)

    @property
    def dashed(self) -> bool:
        """Whether its lines are dashed, as those of a Python loop are."""
        return not self.compiled

    @property
    def settings(self) -> str:
        """The parameters that differ from the defaults."""
        own = self.traits["settings"].items()
        return ", ".join(f"{name.replace('_', '-')}={value}" for name, value in own)

    @property
    def precision(self) -> str:
        """The precision in words: "exact" or "0 to 100ms late"."""
        return lateness_text(*self.lateness, self.traits["unit"])

    @property
    def remark(self) -> str:
        """Settings, precision and engine, as far as they matter for a comparison."""
        precision = "" if self.exact else self.precision
        parts = [": ".join(filter(None, (self.settings, precision)))]
        if not self.compiled:
            parts.append("Python loop")
        return ", ".join(filter(None, parts))

    @property
    def short(self) -> str:
        """The name, or only the class of `module:Class`, truncated to fit beside a chart."""
        return formats.cut(self.timer.rpartition(":")[2], LONGEST_NAME)

    @property
    def plain(self) -> str:
        """The short name with the settings."""
        return f"{self.short} ({self.settings})" if self.settings else self.short

    @property
    def full(self) -> str:
        """The short name with the remark."""
        return f"{self.short} ({self.remark})" if self.remark else self.short


Subject = StoredContestant | Case
"""The subject of a line of a chart or a row of a table."""


class Footprint(NamedTuple):
    """Bytes for each pending timer at full capacity, and the cost of growing."""

    at_rest: float
    peak: float  # while it grows
    grown: float  # after that
    pause: Spread | None  # ns that the insert takes; None where it was not measured


class Replayed(NamedTuple):
    """One contestant's results on one source."""

    time: Spread  # in ns per operation
    row: Mapping[str, Any]  # the counts, alike in all samples; see SCHEMAS["replays"]

    @property
    def late(self) -> tuple[int, int] | None:
        """The lowest and highest lateness seen; None if nothing fired."""
        low, high = self.row["lateness_min"], self.row["lateness_max"]
        return None if low is None else (low, high)

    @property
    def counters(self) -> Sequence[tuple[str, int]]:
        """Cost counters of the whole tape; empty if nothing was counted."""
        return self.row["counters"] or ()


@dataclass(frozen=True, eq=False)
class StoredSource:
    """A workload or trace that was replayed."""

    name: str
    unit: str
    details: Mapping[str, Any]  # the manifest's entry
    own: bool = False  # a trace that was given, not one of the built-in workloads

    @property
    def short(self) -> str:
        """The name, or the last part of a path."""
        return self.name.rstrip("/").rpartition("/")[2]

    @property
    def generated(self) -> bool:
        """Whether its traffic was generated, not read from a log."""
        return "workload" in self.details.get("details", {})

    @property
    def together(self) -> str:
        """Label for figures that cover several shards."""
        shards = self.details.get("shards", 1)
        return f"all {formats.counted(shards, 'shard')} together" if shards > 1 else ""

    @property
    def seconds(self) -> float:
        """Seconds from the first operation to the last; 0.0 if unknown."""
        exponent = EXPONENTS.get(self.unit)
        return 0.0 if exponent is None else self.details.get("span", 0) / 10**exponent

    @property
    def rate(self) -> float:
        """Operations per second; 0.0 if unknown."""
        return self.details["operations"] / self.seconds if self.seconds else 0.0


Column = Mapping[StoredContestant, Spread]
"""Times in ns per operation."""


@dataclass(frozen=True)
class Summary:
    """The figures of a run. Contestants are in the order of tables and charts, also in mappings."""

    manifest: Mapping[str, Any]
    contestants: tuple[StoredContestant, ...]
    cells: Mapping[Task, Mapping[StoredContestant, Mapping[int, Spread]]]
    """Task -> contestant -> size -> ns per operation."""
    counts: Mapping[Task, Mapping[str, Mapping[StoredContestant, Mapping[int, float]]]]
    """Counter -> contestant -> size -> count per operation."""
    replays: Mapping[StoredSource, Mapping[StoredContestant, Replayed]]
    memory: Mapping[StoredContestant, Mapping[int, Footprint]]  # by capacity
    slots: Mapping[StoredContestant, Mapping[int, float]] = field(default_factory=dict)
    """Size -> the share of the pending timers that are in the slots of a wheel."""
    of_shards: bool = False  # of replayed grids: a spread is over shards, each replayed once
    trials: Sequence[Row] = ()  # of the enqueue experiment
    #: from Python, by interface and timers per call: a schedule and a cancel
    calls: Mapping[tuple[str, int], Column] = field(default_factory=dict)
    loops: Mapping[str, Spread] = field(default_factory=dict)  # event loops' own: the same
    #: by task or source, and contestant: the size at which it took longer than the budget, or None
    over_budget: Mapping[tuple[Task | StoredSource, StoredContestant], int | None] = field(
        default_factory=dict
    )

    @cached_property
    def own(self) -> list[StoredSource]:
        """The traces of a comparison."""
        return [source for source in self.replays if source.own and not self.of_shards]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pending timers, ascending."""
        measured = {n for task in self.cells.values() for cells in task.values() for n in cells}
        return tuple(sorted(measured.union(size for size in self.over_budget.values() if size)))

    @cached_property
    def base(self) -> StoredContestant | None:
        """The contestant that ratios refer to: the yardstick, else the first compiled contestant,
        else the first.
        """
        compiled = [timer for timer in self.contestants if timer.compiled]
        yardsticks = [timer for timer in compiled if timer.timer == YARDSTICK]
        return next(iter([*yardsticks, *compiled, *self.contestants]), None)

    def stopped(self, count: Callable[[int], str] = formats.count) -> Iterator[str]:
        """A text for each task and source that was over budget, with the timers concerned."""
        for (what, timer), size in self.over_budget.items():
            title = what.title.lower() if isinstance(what, Task) else what.short
            yield f"{timer.full}, {title}: over budget{f' at {count(size)}' if size else ''}"

    def called(self, source: StoredSource) -> str:
        """The short name of a source, or the full name if another has the same short name."""
        alike = [other for other in self.replays if other.short == source.short]
        return source.name if len(alike) > 1 else source.short

    def column(self, task: Task, size: int) -> Column:
        """The cells of one task and size."""
        return {timer: cells[size] for timer, cells in self.cells[task].items() if size in cells}

    def replayed(self, source: StoredSource) -> Column:
        """The times of one source."""
        return {timer: replayed.time for timer, replayed in self.replays[source].items()}

    def counters(self, task: Task) -> list[str]:
        """The counters of a task that are not zero for all contestants."""
        return [
            name
            for name, curves in self.counts.get(task, {}).items()
            if any(count for curve in curves.values() for count in curve.values())
        ]


def leaders(column: Column) -> list[StoredContestant]:
    """The fastest exact timer of a column, followed by those that are tied with it.

    If no exact timer was measured, all timers compete. Python loops compete only if there are no
    compiled timers.
    """
    exact = {timer: time for timer, time in column.items() if timer.exact}
    compiled = {timer: time for timer, time in exact.items() if timer.compiled}
    return fastest(compiled or exact or column)


def figures_of(run: Run) -> Summary:
    """Reduce a run's samples. O(rows).

    Raises:
        RunError: The manifest lacks what describes a contestant.
    """
    needed = traits_of(contestant(YARDSTICK), ["unit"]).keys()
    try:
        for missing in (needed - entry.keys() for entry in run.manifest["traits"]):
            if missing:
                raise KeyError(min(missing))
        contestants = contestants_of(run.manifest["traits"])
        described = {entry["name"]: entry for entry in run.manifest["sources"]}
        given = run.manifest["parameters"].get("traces", ())
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.path}: the manifest is damaged: {error} is missing") from None
    by_label = {timer.label: timer for timer in contestants}
    over_budget: dict[tuple[Any, StoredContestant], int | None] = {}

    def rows_of(table: pa.Table) -> list[tuple[StoredContestant, dict[str, Any]]]:
        """The rows with their contestants, ordered by contestant and size."""
        rows, order = table.to_pylist(), [*by_label]
        if unknown := {row["contestant"] for row in rows} - by_label.keys():
            raise RunError(f"{run.path}: the manifest does not describe {min(unknown)}")
        rows.sort(key=lambda row: (order.index(row["contestant"]), row.get("size", 0)))
        return [(by_label[row["contestant"]], row) for row in rows]

    samples, replays, calls = defaultdict(list), defaultdict(list), defaultdict(list)
    for timer, row in rows_of(run.samples):
        task = Task(row["operation"], row["driver"])
        if row["ns_per_operation"] is None:
            over_budget[task, timer] = row["size"]
        else:
            samples[task, timer, row["size"]].append(row)
    sources = {
        row["source"]: StoredSource(
            row["source"], row["unit"], described.get(row["source"], {}), row["source"] in given
        )
        for row in run.replays.to_pylist()
    }
    for timer, row in rows_of(run.replays):
        if row["ns_per_operation"] is None:
            over_budget[sources[row["source"]], timer] = None
        else:
            replays[row["source"], timer].append(row)
    for row in run.calls.to_pylist():
        caller = by_label.get(row["contestant"])  # an event loop has none
        calls[(row["interface"], row["batch"]), caller].append(row)
    cells = _nested((key, _time(rows)) for key, rows in samples.items())
    replayed = _nested((key, Replayed(_time(rows), rows[0])) for key, rows in replays.items())
    return Summary(
        run.manifest,
        contestants,
        # In the order in which they were run, and also where every contestant was over budget.
        cells={
            task: cells.get(task, {})
            for task in TASKS
            if task in cells or any(task == what for what, _ in over_budget)
        },
        counts=_nested(
            (
                (Task(row["operation"], row["driver"]), row["counter"], timer, row["size"]),
                row["count"] / max(row["operations"], 1),
            )
            for timer, row in rows_of(run.counters)
        ),
        replays={source: replayed.get(name, {}) for name, source in sources.items()},
        memory=_nested(
            ((timer, row["capacity"]), _footprint(row)) for timer, row in rows_of(run.memory)
        ),
        slots=_nested(
            ((timer, row["size"]), row["in_slots"] / max(row["pending"], 1))
            for timer, row in rows_of(run.slots)
        ),
        trials=run.purgatory.to_pylist(),
        calls=_nested(((way, timer), _time(rows)) for (way, timer), rows in calls.items() if timer),
        loops={loop: _time(rows) for ((loop, _), timer), rows in calls.items() if not timer},
        over_budget=over_budget,
    )


def _nested(items: Iterable[tuple[tuple[Any, ...], Any]]) -> dict[Any, Any]:
    """Nest mappings: one level for each part of a key but the last.

    >>> _nested([(("a", 1), 2), (("b", 1), 3), (("a", 4), 5)])
    {'a': {1: 2, 4: 5}, 'b': {1: 3}}
    """
    nested: dict[Any, Any] = {}
    for (*path, last), value in items:
        inner = nested
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return nested


def contestants_of(traits: Iterable[Mapping[str, Any]]) -> tuple[StoredContestant, ...]:
    """Contestants from their stored traits (`compare.trial.bench.store.traits_of`), in order."""
    entries = list(traits)
    timers = [entry["timer"] for entry in entries]
    return tuple(
        StoredContestant(entry["label"], entry, timers[:place].count(entry["timer"]))
        for place, entry in enumerate(entries)
    )


def _time(rows: list[dict[str, Any]]) -> Spread:
    return Spread.of(row["ns_per_operation"] for row in rows)


def _footprint(row: Mapping[str, Any]) -> Footprint:
    peak, grown = (row[name] / row["capacity"] for name in ("peak_nbytes", "grown_nbytes"))
    pauses = [seconds * 1e9 for seconds in row["growth_seconds"]]
    return Footprint(row["nbytes_per_timer"], peak, grown, Spread.of(pauses) if pauses else None)
