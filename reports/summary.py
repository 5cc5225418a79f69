"""The figures of a stored run, one for each contestant, task and size. Nothing is measured here."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from compare.bench.contestant import COMPILED
from compare.bench.store import MEASURED, Run, RunError, parameters_json
from compare.bench.task import Task
from compare.purgatory.figures import Row
from compare.tapes.units import EXPONENTS, parse_duration
from reports import formats
from reports.statistics import Spread, fastest
from reports.trials import Case
from timers.rounding import UNKNOWN_BOUNDS

YARDSTICK = "delay-queue"
"""The timer that ratios refer to, where it took part: what one would use without wheels."""

LONGEST_NAME = 24  # characters of a timer's name in a chart


@dataclass(frozen=True, eq=False)
class Contestant:
    """A timer with its parameters, as it took part in the run."""

    timer: str
    label: str  # as on the command line: the name with the parameters that are not the defaults
    parameters: Mapping[str, int]
    engine: str
    exact: bool
    lateness: tuple[int, int]  # the least and greatest that its scheme allows, in units
    traits: Mapping[str, Any] = field(repr=False)  # compare.bench.store.traits_of
    variant: int = 0  # its number among the contestants of the same timer

    @property
    def compiled(self) -> bool:
        """Whether it ran in the compiled loop; else its times include the Python interpreter's."""
        return self.engine == COMPILED

    @property
    def dashed(self) -> bool:
        """Whether its lines are dashed: those of a Python loop."""
        return not self.compiled

    @property
    def settings(self) -> str:
        """Its parameters where they are not the defaults."""
        return ", ".join(self.label.split("/")[1:])

    @property
    def precision(self) -> str:
        """When it may fire: "exact", "0–100 late", "0–9 early", "lateness undeclared".

        The bounds are durations where its tick is one: "0–100 ms late".
        """
        if self.lateness == UNKNOWN_BOUNDS:
            return "lateness undeclared"
        unit = self.traits.get("unit", "")
        return "exact" if self.exact else formats.lateness(*self.lateness, unit)

    @property
    def remark(self) -> str:
        """Its settings, precision and engine, where they matter for comparing its figures."""
        precision = "" if self.exact else self.precision
        parts = [": ".join(filter(None, (self.settings, precision)))]
        if not self.compiled:
            parts.append("Python loop")
        return ", ".join(filter(None, parts))

    @property
    def short(self) -> str:
        """Its name, or the class alone of `module:Class`, cut to what fits beside a chart."""
        return formats.cut(self.timer.rpartition(":")[2], LONGEST_NAME)

    @property
    def plain(self) -> str:
        """Its short name with its settings."""
        return f"{self.short} ({self.settings})" if self.settings else self.short

    @property
    def full(self) -> str:
        """Its short name with the remark."""
        return f"{self.short} ({self.remark})" if self.remark else self.short


Subject = Contestant | Case
"""What a line of a chart or a row of a table is about."""


class Cell(NamedTuple):
    """The time of one contestant at one task and size: samples in ns per operation, or a
    prediction.
    """

    spread: Spread | None  # None: too long
    predicted_seconds: float
    operations: int

    @property
    def level(self) -> float:
        """Nanoseconds per operation, measured or predicted."""
        if self.spread is not None:
            return self.spread.level
        return self.predicted_seconds * 1e9 / max(self.operations, 1)

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest sample, or twice the prediction."""
        spread = self.spread
        return (self.level, self.level) if spread is None else (spread.low, spread.high)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the median, or twice the prediction."""
        return (self.level, self.level) if self.spread is None else self.spread.interval

    @property
    def text(self) -> str:
        """The time, or that it was too long to measure."""
        if self.spread is None:
            return f"too long: predicted {formats.duration(self.predicted_seconds)}"
        return formats.nanoseconds(self.level)


class Bin(NamedTuple):
    """So many timers fired `lateness` .. `lateness + width - 1` units late."""

    lateness: int
    width: int
    timers: int


class Memory(NamedTuple):
    """Bytes for each pending timer when all room is used, and what happens with one more."""

    at_rest: float
    peak: float  # while it grows
    grown: float  # after that
    pause: Spread | None  # ns that the insert takes; None where it was not measured


class Replayed(NamedTuple):
    """What was found for one contestant and source."""

    cell: Cell
    row: Mapping[str, Any]  # the counts, alike in all samples; see SCHEMAS["replays"]
    bins: tuple[Bin, ...] = ()

    @property
    def late(self) -> tuple[int, int] | None:
        """The least and the greatest lateness seen; None where nothing fired, or it was not run."""
        low, high = self.row["lateness_min"], self.row["lateness_max"]
        return None if low is None else (low, high)

    @property
    def counters(self) -> Mapping[str, int]:
        """Cost counters of the whole tape; empty where it has none."""
        return dict(self.row["counters"] or ())


@dataclass(frozen=True, eq=False)
class Source:
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
        """Whether its traffic was made up, and not read from a log."""
        return "workload" in self.details.get("details", {})

    @property
    def together(self) -> str:
        """What its rate and costs are of, where it has several shards."""
        shards = self.details.get("shards", 1)
        return f"all {formats.counted(shards, 'shard')} together" if shards > 1 else ""

    @property
    def seconds(self) -> float:
        """From its first operation to its last; 0.0 where that or the unit is not known."""
        exponent = EXPONENTS.get(self.unit)
        return 0.0 if exponent is None else self.details.get("span", 0) / 10**exponent

    @property
    def timeout(self) -> float:
        """Seconds of its timeouts, or idle periods; 0.0 where they are not all alike."""
        made = self.details.get("details", {})
        text = made.get("timeout") or made.get("idle")
        return parse_duration(text, self.unit) / 10 ** EXPONENTS[self.unit] if text else 0.0

    @property
    def rate(self) -> float:
        """Operations per second; 0.0 where that is not known."""
        return self.details["operations"] / self.seconds if self.seconds else 0.0


Column = Mapping[Contestant, Cell]


@dataclass(frozen=True)
class Summary:
    """A run's figures. Contestants are in the order of tables and charts, in each mapping too."""

    manifest: Mapping[str, Any]
    contestants: tuple[Contestant, ...]
    cells: Mapping[Task, Mapping[Contestant, Mapping[int, Cell]]]  # by size
    counts: Mapping[Task, Mapping[str, Mapping[Contestant, Mapping[int, float]]]]
    """Counter -> contestant -> size -> count per operation."""
    replays: Mapping[Source, Mapping[Contestant, Replayed]]
    memory: Mapping[Contestant, Mapping[int, Memory]]  # by capacity
    slots: Mapping[Contestant, Mapping[int, float]] = field(default_factory=dict)
    """Size -> the share of the pending timers that are in the slots of a wheel."""
    sample: str = "sample"  # what a spread is over: repeats, or "shard": the parts of a trace
    trials: Sequence[Row] = ()  # of the enqueue experiment

    @property
    def of_shards(self) -> bool:
        """Whether it is of replayed grids, each shard once, and not of repeats in one process."""
        return self.sample == "shard"

    @cached_property
    def own(self) -> list[Source]:
        """The traces that were given, where their rates are known."""
        return [source for source in self.replays if source.own and source.rate]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pending timers, ascending."""
        found = {n for task in self.cells.values() for cells in task.values() for n in cells}
        return tuple(sorted(found))

    @cached_property
    def base(self) -> Contestant | None:
        """What ratios refer to: the yardstick, else the first compiled contestant, else the
        first.
        """
        compiled = [who for who in self.contestants if who.compiled]
        yardsticks = [who for who in compiled if who.timer == YARDSTICK]
        return next(iter([*yardsticks, *compiled, *self.contestants]), None)

    @cached_property
    def largest(self) -> Mapping[Task, Column]:
        """The cells of each task at the largest size."""
        return {task: self.column(task, self.sizes[-1]) for task in self.cells}

    @cached_property
    def measurements(self) -> list[tuple[str, Contestant, Cell]]:
        """The cells of all tasks and replays: of what, and whose."""
        tasks = [
            (f"{task.title.lower()} at N = {formats.count(size)}", who, cell)
            for task, by_contestant in self.cells.items()
            for who, cells in by_contestant.items()
            for size, cell in cells.items()
        ]
        return tasks + [
            (f"replay of {source.name}", who, replayed.cell)
            for source, by_contestant in self.replays.items()
            for who, replayed in by_contestant.items()
        ]

    def column(self, task: Task, size: int) -> Column:
        """The cells of one task and size."""
        return {who: cells[size] for who, cells in self.cells[task].items() if size in cells}

    def replayed(self, source: Source) -> Column:
        """The times of one source."""
        return {who: replayed.cell for who, replayed in self.replays[source].items()}

    def footprint(self, who: Contestant) -> tuple[int, float] | None:
        """The largest capacity measured, and the bytes per timer at it; None where not measured."""
        found = self.memory.get(who)
        return (max(found), found[max(found)].at_rest) if found else None

    def counters(self, task: Task, *, idle: bool = False) -> list[str]:
        """The counters of a task that are not zero everywhere, or (`idle`) those that are."""
        return [
            name
            for name, curves in self.counts.get(task, {}).items()
            if idle != any(count > 0 for curve in curves.values() for count in curve.values())
        ]


def leaders(column: Column) -> list[Contestant]:
    """The fastest of the exact timers in a column, first, and those that are tied with it.

    Where no exact timer was measured, of all. A Python loop does not compete with compiled timers,
    and leads only where there are no others.
    """
    measured = {who: cell.spread for who, cell in column.items() if cell.spread is not None}
    exact = {who: spread for who, spread in measured.items() if who.exact}
    compiled = {who: spread for who, spread in exact.items() if who.compiled}
    return fastest(compiled or exact or measured)


def summarise(run: Run) -> Summary:
    """Reduce a run's samples. O(rows).

    Raises:
        RunError: The manifest lacks what describes a contestant.
    """
    try:
        contestants = contestants_of(run.manifest["traits"])
        described = {entry["name"]: entry for entry in run.manifest["sources"]}
        given = run.manifest["parameters"].get("traces", ())
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.path}: the manifest is damaged: {error} is missing") from None
    by_key = {(who.timer, parameters_json(who.parameters)): who for who in contestants}
    places = {who: place for place, who in enumerate(contestants)}

    def rows_of(table: pa.Table) -> Iterator[tuple[Contestant, dict[str, Any]]]:
        """The rows with their contestants, in the order of these and of sizes."""
        found = []
        for row in table.to_pylist():
            who = by_key.get((row["timer"], row["parameters"]))
            if who is None:
                raise RunError(
                    f"{run.path}: the manifest does not describe {row['timer']} {row['parameters']}"
                )
            found.append((who, row))
        yield from sorted(found, key=lambda item: (places[item[0]], item[1].get("size", 0)))

    samples, bins, repeats = defaultdict(list), defaultdict(list), defaultdict(list)
    for who, row in rows_of(run.samples):
        samples[Task(row["operation"], row["driver"]), who, row["size"]].append(row)
    for who, row in rows_of(run.lateness):
        bins[row["source"], who].append(Bin(row["lateness"], row["width"], row["timers"]))
    for who, row in rows_of(run.replays):
        repeats[row["source"], who].append(row)
    sources = {
        name: Source(name, rows[0]["unit"], described.get(name, {}), name in given)
        for (name, _), rows in repeats.items()
    }
    return Summary(
        run.manifest,
        contestants,
        cells=_nested((key, _cell(rows)) for key, rows in samples.items()),
        counts=_nested(
            (
                (Task(row["operation"], row["driver"]), row["counter"], who, row["size"]),
                row["count"] / max(row["operations"], 1),
            )
            for who, row in rows_of(run.counters)
        ),
        replays=_nested(
            ((sources[name], who), Replayed(_cell(rows), rows[0], tuple(bins[name, who])))
            for (name, who), rows in repeats.items()
        ),
        memory=_nested(((who, row["capacity"]), _memory(row)) for who, row in rows_of(run.memory)),
        slots=_nested(
            ((who, row["size"]), row["in_slots"] / max(row["pending"], 1))
            for who, row in rows_of(run.slots)
        ),
        trials=run.purgatory.to_pylist(),
    )


def _nested(items: Iterable[tuple[tuple[Any, ...], Any]]) -> dict[Any, Any]:
    """Mappings in mappings, one for each part of a key but the last.

    >>> _nested([(("a", 1), 2), (("b", 1), 3), (("a", 4), 5)])
    {'a': {1: 2, 4: 5}, 'b': {1: 3}}
    """
    found: dict[Any, Any] = {}
    for (*path, last), value in items:
        inner = found
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return found


def contestants_of(traits: Iterable[Mapping[str, Any]]) -> tuple[Contestant, ...]:
    """Contestants from what is kept of them (`compare.bench.store.traits_of`), in that order."""
    entries = list(traits)
    timers = [entry["timer"] for entry in entries]
    own = ("timer", "label", "parameters", "engine", "exact")
    return tuple(
        Contestant(
            **{name: entry[name] for name in own},
            lateness=(entry["lateness_low"], entry["lateness_high"]),
            traits=entry,
            variant=timers[:place].count(entry["timer"]),
        )
        for place, entry in enumerate(entries)
    )


def _cell(rows: list[dict[str, Any]]) -> Cell:
    samples = [row["ns_per_operation"] for row in rows if row["status"] == MEASURED]
    return Cell(
        Spread.of(samples) if samples else None,
        0.0 if samples else rows[0]["predicted_seconds"],
        rows[0]["operations"],
    )


def _memory(row: Mapping[str, Any]) -> Memory:
    peak, grown = (row[name] / row["capacity"] for name in ("peak_nbytes", "grown_nbytes"))
    pauses = [seconds * 1e9 for seconds in row["growth_seconds"]]
    return Memory(row["nbytes_per_timer"], peak, grown, Spread.of(pauses) if pauses else None)
