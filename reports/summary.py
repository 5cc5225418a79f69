"""A stored run, boiled down: a median with its spread for each cell, keyed by contestant. Nothing
is measured here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from compare.bench.store import MEASURED, Run, RunError, parameters_json
from compare.bench.task import TASKS, Task
from reports import style
from reports.style import NO_BREAK
from reports.words import lateness_words

YARDSTICK = "delay-queue"
"""The timer that ratios refer to, where it took part: what one would use if there were no
wheels.
"""


ABOUT_LEVEL = 1.25
"""Medians further apart than this are never called level: with so much noise they are only
uncertain.
"""


class Spread(NamedTuple):
    """The median, least and greatest of a cell's samples."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Of one or more samples.

        >>> Spread.of([3.0, 1.0, 8.0])
        Spread(median=3.0, low=1.0, high=8.0, samples=3)
        """
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1], len(ordered))

    def level_with(self, other: "Spread") -> bool:
        """Whether the two are about the same: the median of one lies within the samples of the
        other.

        [Not so where one median is far above the other, however much the samples scatter.]

        >>> Spread(10.0, 9.0, 12.0, 5).level_with(Spread(11.5, 11.0, 13.0, 5))
        True
        >>> Spread(10.0, 9.0, 99.0, 5).level_with(Spread(50.0, 50.0, 50.0, 5))
        False
        """
        if max(self.median, other.median) > ABOUT_LEVEL * min(self.median, other.median):
            return False
        return self.low <= other.median <= self.high or other.low <= self.median <= other.high

    @property
    def scatter(self) -> float:
        """The greatest sample over the least."""
        return self.high / self.low if self.low > 0 else 1.0


LONGEST_NAME = 24  # characters of a timer's name in a chart

Key = tuple[str, str]  # a contestant: its timer's name and its parameters as JSON


@dataclass(frozen=True, eq=False)
class Contestant:
    """A timer with its parameters, as it took part in the run."""

    key: Key
    timer: str
    parameters: Mapping[str, int]
    engine: str
    exact: bool
    lateness: tuple[int, int]  # the least and greatest that its scheme allows, in units
    traits: Mapping[str, Any] = field(repr=False)  # compare.bench.store.traits_of
    differing: frozenset[str] = (
        frozenset()
    )  # parameters in which it differs from contestants of the same timer
    variant: int = 0  # its number among them

    @property
    def compiled(self) -> bool:
        """Whether it ran in the compiled loop; else its times include the Python interpreter's."""
        return self.engine == "compiled"

    @property
    def settings(self) -> str:
        """Its parameters in words.

        Given where they are not the defaults, or needed to tell two contestants apart.
        """
        chosen = {
            name: value
            for name, value in self.parameters.items()
            if name in self.differing
            or value != self.traits["defaults"].get(name)
            or (name == "tick" and value > 1)
        }
        return ", ".join(
            f"{name.replace('_', ' ')}{NO_BREAK}{style.count(value)}"
            for name, value in chosen.items()
        )

    @property
    def precision(self) -> str:
        """When it may fire, in words: "exact", "0–100 late", "0–9 early"."""
        return "exact" if self.exact else lateness_words(*self.lateness)

    @property
    def remark(self) -> str:
        """What a reader must know to compare its figures with others': precision, settings, engine;
        often nothing.
        """
        parts = [self.settings] if self.settings else []
        if not self.exact:
            parts = [": ".join([*parts, self.precision])]
        if not self.compiled:
            parts.append("Python loop")
        return ", ".join(parts)

    @property
    def short(self) -> str:
        """Its name, or the class alone of `module:Class`, cut to what fits beside a chart."""
        name = self.timer.rpartition(":")[2]
        return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"

    @property
    def plain(self) -> str:
        """Its short name, with its settings only where another contestant has the same name."""
        return f"{self.short} ({self.settings})" if self.differing and self.settings else self.short

    @property
    def label(self) -> str:
        """Its short name with the remark."""
        return f"{self.short} ({self.remark})" if self.remark else self.short


class Cell(NamedTuple):
    """What was found for one contestant, task and size: samples in ns per operation, or a
    prediction.
    """

    spread: Spread | None  # None: too long
    predicted_seconds: float | None
    operations: int

    @property
    def level(self) -> float:
        """Nanoseconds per operation, measured or predicted."""
        if self.spread is not None:
            return self.spread.median
        return (self.predicted_seconds or 0.0) * 1e9 / max(self.operations, 1)


class Replayed(NamedTuple):
    """What was found for one contestant and source."""

    cell: Cell
    row: Mapping[str, Any]  # the counts, alike in all samples; see compare.bench.store.REPLAYS

    @property
    def counters(self) -> Mapping[str, int]:
        """Cost counters of the whole tape; empty where it has none."""
        return dict(self.row["counters"] or ())


class Bin(NamedTuple):
    """So many timers fired `lateness` .. `lateness + width - 1` units late."""

    lateness: int
    width: int
    timers: int


@dataclass(frozen=True)
class Source:
    """A workload or trace that was replayed."""

    name: str
    unit: str
    details: Mapping[str, Any]

    @property
    def short(self) -> str:
        """The name, or the last part of a path."""
        return self.name.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class Summary:
    """A run's figures. `contestants` are in the order of tables and charts."""

    manifest: Mapping[str, Any]
    contestants: tuple[Contestant, ...]
    described: Mapping[str, Mapping[str, Any]]  # the manifest's sources by name
    cells: Mapping[tuple[Task, Key, int], Cell]
    counts: Mapping[
        tuple[Task, str, Key, int], float
    ]  # task, counter, contestant, size -> count per operation
    replays: Mapping[tuple[str, Key], Replayed]
    lateness: Mapping[tuple[str, Key], tuple[Bin, ...]]
    memory: Mapping[tuple[Key, int], float]  # contestant, capacity -> bytes per timer
    sample: str = (
        "sample"  # what a spread is over: repeats of the same, or "shard": other parts of a trace
    )

    @property
    def of_shards(self) -> bool:
        """Whether it is of replayed grids, each shard once, and not of repeats in one process."""
        return self.sample == "shard"

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that were measured, in the order of tables and charts."""
        found = {task for task, _, _ in self.cells}
        return (*(task for task in TASKS if task in found), *sorted(found - set(TASKS)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pending timers, rising."""
        return tuple(sorted({size for _, _, size in self.cells}))

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What was replayed, in the run's order."""
        found = {name: replayed.row["unit"] for (name, _), replayed in self.replays.items()}
        return tuple(
            Source(name, unit, self.described.get(name, {})) for name, unit in found.items()
        )

    @cached_property
    def base(self) -> Contestant | None:
        """What ratios refer to: the yardstick, else the first compiled contestant, else the first
        one.
        """
        compiled = [contestant for contestant in self.contestants if contestant.compiled]
        yardsticks = [contestant for contestant in compiled if contestant.timer == YARDSTICK]
        return next(iter([*yardsticks, *compiled, *self.contestants]), None)

    def by_size(self, task: Task, contestant: Contestant) -> dict[int, Cell]:
        """Size -> cell, sizes rising."""
        cells = ((size, self.cells.get((task, contestant.key, size))) for size in self.sizes)
        return {size: cell for size, cell in cells if cell is not None}

    def column(self, task: Task, size: int) -> dict[Contestant, Cell]:
        """Contestant -> cell of one task and size, in the order of tables."""
        cells = ((who, self.cells.get((task, who.key, size))) for who in self.contestants)
        return {who: cell for who, cell in cells if cell is not None}

    def replayed(self, source: Source) -> dict[Contestant, Cell]:
        """Contestant -> time per operation of one source, in the order of tables."""
        found = ((who, self.replays.get((source.name, who.key))) for who in self.contestants)
        return {who: replayed.cell for who, replayed in found if replayed is not None}

    def leaders(self, cells: Mapping[Contestant, Cell]) -> list[Contestant]:
        """The fastest of the exact timers in a column, first, and those that are level with it.

        Where no exact timer was measured, of all. Times of a Python loop are no rivals to compiled
        ones, and lead only where there are no others.
        """
        measured = {who: cell.spread for who, cell in cells.items() if cell.spread is not None}
        for fair in (
            lambda who: who.exact and who.compiled,
            lambda who: who.exact,
            lambda who: True,
        ):
            rivals = {who: spread for who, spread in measured.items() if fair(who)}
            if rivals:
                first = min(rivals, key=lambda who: rivals[who].median)
                return [
                    first,
                    *(
                        who
                        for who in rivals
                        if who is not first and rivals[who].level_with(rivals[first])
                    ),
                ]
        return []

    def footprint(self, contestant: Contestant) -> tuple[int, float] | None:
        """The largest capacity measured, and the bytes per timer at it; None where memory was not
        measured.
        """
        found = [
            (capacity, size)
            for (key, capacity), size in self.memory.items()
            if key == contestant.key
        ]
        return max(found, default=None)

    def counters(self, task: Task) -> tuple[str, ...]:
        """The counters of a task that are not zero everywhere, in the order of the run."""
        found = {name: None for at, name, _, _ in self.counts if at == task}
        busy = {name for (at, name, _, _), count in self.counts.items() if at == task and count > 0}
        return tuple(name for name in found if name in busy)

    def idle_counters(self, task: Task) -> tuple[str, ...]:
        """The counters of a task that are zero everywhere."""
        busy = self.counters(task)
        return tuple(
            dict.fromkeys(name for at, name, _, _ in self.counts if at == task and name not in busy)
        )

    def too_long(self) -> list[tuple[str, Contestant, float]]:
        """What was not run: where, whom, and the predicted seconds of one repeat."""
        by_key = {contestant.key: contestant for contestant in self.contestants}
        found = [
            (
                f"{task.title.lower()} at N = {style.count(size)}",
                by_key[key],
                cell.predicted_seconds or 0.0,
            )
            for (task, key, size), cell in self.cells.items()
            if cell.spread is None
        ]
        return found + [
            (f"replay of {name}", by_key[key], replayed.cell.predicted_seconds or 0.0)
            for (name, key), replayed in self.replays.items()
            if replayed.cell.spread is None
        ]


def summarise(run: Run) -> Summary:
    """Reduce a run's samples. O(rows).

    Raises RunError when the manifest lacks what describes a contestant.
    """
    try:
        contestants = contestants_of(run.manifest["traits"])
        described = {contestant.key for contestant in contestants}
        sources = {entry["name"]: entry for entry in run.manifest["sources"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"{run.path}: the manifest is damaged: no {error} where one is due"
        ) from None
    for table in (run.samples, run.counters, run.replays, run.lateness, run.memory):
        for row in (
            table.select(["timer", "parameters"])
            .group_by(["timer", "parameters"])
            .aggregate([])
            .to_pylist()
        ):
            if (row["timer"], row["parameters"]) not in described:
                raise RunError(
                    f"{run.path}: the manifest does not describe {row['timer']} {row['parameters']}"
                )
    return Summary(
        manifest=run.manifest,
        contestants=contestants,
        described=sources,
        cells={
            (Task(operation, driver), (timer, parameters), size): _cell(rows)
            for (operation, driver, timer, parameters, size), rows in _groups(
                run.samples.to_pylist(), "operation", "driver", "timer", "parameters", "size"
            ).items()
        },
        counts={
            (
                Task(row["operation"], row["driver"]),
                row["counter"],
                (row["timer"], row["parameters"]),
                row["size"],
            ): row["count"] / max(row["operations"], 1)
            for row in run.counters.to_pylist()
        },
        replays={
            (source, (timer, parameters)): Replayed(_cell(rows), rows[0])
            for (source, timer, parameters), rows in _groups(
                run.replays.to_pylist(), "source", "timer", "parameters"
            ).items()
        },
        lateness={
            (source, (timer, parameters)): tuple(
                Bin(row["lateness"], row["width"], row["timers"]) for row in rows
            )
            for (source, timer, parameters), rows in _groups(
                run.lateness.to_pylist(), "source", "timer", "parameters"
            ).items()
        },
        memory={
            ((row["timer"], row["parameters"]), row["capacity"]): row["nbytes_per_timer"]
            for row in run.memory.to_pylist()
        },
    )


def contestants_of(traits: Iterable[Mapping[str, Any]]) -> tuple[Contestant, ...]:
    """Contestants from what is kept of them (`compare.bench.store.traits_of`), in that order."""
    found: list[Contestant] = []
    entries = list(traits)
    for entry in entries:
        namesakes = [other["parameters"] for other in entries if other["timer"] == entry["timer"]]
        parameters = entry["parameters"]
        found.append(
            Contestant(
                key=(entry["timer"], parameters_json(parameters)),
                timer=entry["timer"],
                parameters=parameters,
                engine=entry["engine"],
                exact=entry["exact"],
                lateness=(entry["lateness_low"], entry["lateness_high"]),
                traits=entry,
                differing=frozenset(
                    name
                    for name in parameters
                    if any(other.get(name) != parameters[name] for other in namesakes)
                ),
                variant=sum(other.timer == entry["timer"] for other in found),
            )
        )
    return tuple(found)


def _groups(
    rows: Iterable[dict[str, Any]], *columns: str
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def _cell(rows: list[dict[str, Any]]) -> Cell:
    samples = [row["ns_per_operation"] for row in rows if row["status"] == MEASURED]
    return Cell(
        Spread.of(samples) if samples else None,
        None if samples else rows[0]["predicted_seconds"],
        rows[0]["operations"],
    )
