"""The figures of stored runs, with their contestants and sources."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from compare.base import formats
from compare.traffic.tapes.units import EXPONENTS
from compare.trial.bench.callers import CALLERS, HOSTS
from compare.trial.bench.callers import METRICS as METRICS_OF_CALLERS
from compare.trial.bench.constants import Fit
from compare.trial.bench.costs import METRICS as CONSTANTS
from compare.trial.bench.costs import fits_of
from compare.trial.bench.overload import CONTENDERS
from compare.trial.bench.peers import METRIC as PEER_TIME
from compare.trial.bench.replays import OWN
from compare.trial.bench.task import BY_NAME, TASKS, Task
from compare.trial.claims.run import Settled, settled
from compare.trial.peers.catalogue import NAMES as PEERS
from compare.trial.purgatory.figures import Row, trials_of
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.replay.lateness import lateness_text
from compare.trial.replay.ticks import Ticks
from compare.trial.results.metrics import METRICS, REPEATED, TIMED, is_counter
from compare.trial.results.schema import MEMORY, OVERLOAD, THREADS
from compare.trial.results.store import (
    CLAIMS,
    PURGATORY,
    REPLAY,
    SUMMARY,
    Run,
    RunError,
    contestant_entry,
)
from reports.diff import YARDSTICK, Difference
from reports.noise import Noise, noise_of
from reports.select import Key, Selection, estimates, pivot, where
from reports.statistics import Estimate, fastest
from reports.trials import Case

LONGEST_NAME = 24  # characters of a timer's name in a chart


@dataclass(frozen=True, eq=False)
class StoredContestant:
    """A timer with its parameters, as it took part in the run."""

    label: str  # as on the command line: the name with the parameters that are not the defaults
    traits: Mapping[str, Any] = field(repr=False)  # the manifest's entry
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
        """The precision in words: "exact" or "up to 100ms late"."""
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


@dataclass(frozen=True)
class Traffic:
    """A trace. Charts name it and colour it as they do a contestant."""

    name: str

    dashed: ClassVar[bool] = False
    remark: ClassVar[str] = ""
    variant: ClassVar[int] = 0

    @property
    def timer(self) -> str:
        """The name that decides on its colour and marker, unlike those of all timers."""
        return self.full

    @property
    def full(self) -> str:
        """Display name."""
        return f"Answers in {self.name}"

    short = plain = full


@dataclass(frozen=True, eq=False)
class StoredPeer:
    """A timer of another language. Tables name it and colour it as they do a contestant."""

    facts: Mapping[str, Any] = field(repr=False)  # the manifest's entry
    problem: str = ""  # why it was not timed, or not at all sizes

    remark: ClassVar[str] = ""
    variant: ClassVar[int] = 0
    dashed: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name, by which it is built and chosen."""
        return str(self.facts["name"])

    timer = label = short = plain = full = name


@dataclass(frozen=True)
class Measured:
    """A contestant known by its name: of an experiment on a claim, a timer or a peer, perhaps with
    a remark; under overload, a service or an event loop.
    """

    name: str

    remark: ClassVar[str] = ""

    @property
    def variant(self) -> int:
        """A number that tells peers of one colour apart."""
        return PEERS.index(self.timer) if self.timer in PEERS else 0

    @property
    def timer(self) -> str:
        """The timer or peer whose colour and marker it has."""
        return re.split("[/,]", self.name)[0]

    @property
    def dashed(self) -> bool:
        """Whether its lines are dashed, as those of variants of a timer are."""
        return self.timer != self.name

    @property
    def full(self) -> str:
        """Display name."""
        return self.name

    short = plain = label = full


Subject = StoredContestant | StoredPeer | Case | Traffic | Measured
"""The subject of a line of a chart or a row of a table."""


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


Column = Mapping[StoredContestant, Estimate]
"""The estimates of a metric, by contestant."""


@dataclass(frozen=True)
class Summary:
    """The figures of one or several runs. Contestants are in the order of tables and charts."""

    manifest: Mapping[str, Any]
    contestants: tuple[StoredContestant, ...]
    sources: tuple[StoredSource, ...] = ()  # in the order in which they were replayed
    figures: Selection = field(default_factory=dict)
    #: by contestant, subject and metric: the size at which it took too long, None of a source
    over_budget: Mapping[tuple[str, str, str], int | None] = field(default_factory=dict)
    #: why a service or event loop, or the process of a timer, was not measured
    failures: Mapping[Key, str] = field(default_factory=dict)
    trials: Sequence[Row] = ()  # of the enqueue experiment
    claims: Sequence[Settled] = ()  # by number
    of_shards: bool = False  # samples are shards, each replayed once
    missing: Sequence[str] = ()  # tasks of a run that was interrupted
    peers: tuple[StoredPeer, ...] = ()  # in the order of the run
    before: Difference | None = None  # from the run before
    #: by subject, contestant and size: the constants of the cost of traffic
    fits: Mapping[str, Mapping[str, Mapping[int, Fit]]] = field(default_factory=dict)

    @cached_property
    def own(self) -> list[StoredSource]:
        """The traces of a comparison."""
        return [source for source in self.sources if source.own and not self.of_shards]

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks that were measured, also if every contestant was over budget."""
        names = {key.subject for key in self.where(metric="time").figures}
        names |= {subject for _, subject, metric in self.over_budget if metric == "time"}
        return [task for task in TASKS if task.name in names]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of pending timers, ascending."""
        sizes = {key.size for key in self.where(metric="time").figures}
        return tuple(sorted(size for size in sizes | {*self.over_budget.values()} if size))

    @cached_property
    def base(self) -> StoredContestant | None:
        """The contestant that ratios refer to: the yardstick, else the first compiled contestant,
        else the first.
        """
        compiled = [timer for timer in self.contestants if timer.compiled]
        yardsticks = [timer for timer in compiled if timer.timer == YARDSTICK]
        return next(iter([*yardsticks, *compiled, *self.contestants]), None)

    @cached_property
    def _columns(self) -> dict[tuple[str, str, int | None], dict[str, Estimate]]:
        columns: dict[tuple[str, str, int | None], dict[str, Estimate]] = {}
        for key, estimate in self.figures.items():
            column = columns.setdefault((key.metric, key.subject, key.size), {})
            column[key.contestant] = estimate
        return columns

    def where(self, **columns: Any) -> "Summary":
        """Keep the figures whose keys have these values; see `reports.select.where`."""
        return replace(self, figures=where(self.figures, **columns))

    def column(self, metric: str, subject: str, size: int | None = None) -> Column:
        """The estimates of a metric, by contestant."""
        found = self._columns.get((metric, subject, size), {})
        return {timer: found[timer.label] for timer in self.contestants if timer.label in found}

    def curves(self, metric: str, subject: str) -> Mapping[StoredContestant, dict[int, Estimate]]:
        """The estimates of a metric by contestant and size, ascending."""
        selected = where(self.figures, metric=metric, subject=subject)
        sized = {key: each for key, each in selected.items() if key.size is not None}
        found = pivot(sized, "contestant", "size")
        return {
            timer: {size: found[timer.label][size] for size in sorted(found[timer.label])}
            for timer in self.contestants
            if timer.label in found
        }

    def value(self, timer: StoredContestant, source: StoredSource, metric: str) -> float | None:
        """A count of a replay; None if it was not counted."""
        estimate = self.figures.get(Key(timer.label, source.name, None, metric))
        return None if estimate is None else estimate.value

    def late(self, timer: StoredContestant, source: StoredSource) -> tuple[int, int] | None:
        """The lowest and highest lateness seen; None if nothing fired."""
        ends = [self.value(timer, source, f"lateness_{end}") for end in ("min", "max")]
        low, high = (None if end is None else int(end) for end in ends)
        return None if low is None or high is None else (low, high)

    def counters(self, subject: str) -> list[str]:
        """The counters of a task or source that are not zero for all contestants."""
        counted = where(self.figures, subject=subject).items()
        names = {key.metric for key, each in counted if is_counter(key.metric) and each.value}
        return sorted(names, key=_place)

    def stopped(self, count: Callable[[int], str] = formats.count) -> Iterator[str]:
        """A text for each task and source that was over budget, with the timers concerned."""
        sources = {source.name: source.short for source in self.sources}
        by_label = {timer.label: timer for timer in self.contestants}
        for (label, subject, _), size in self.over_budget.items():
            title = sources.get(subject, "") if size is None else BY_NAME[subject].title.lower()
            at = f" at {count(size)}" if size else ""
            yield f"{by_label[label].full}, {title}: over budget{at}"

    def called(self, source: StoredSource) -> str:
        """The short name of a source, or the full name if another has the same short name."""
        alike = [other for other in self.sources if other.short == source.short]
        return source.name if len(alike) > 1 else source.short

    @cached_property
    def noise(self) -> Noise:
        """The noise of the times. Shards differ by nature, so their samples do not count. An
        experiment on a claim may wait, so the share of a processor says nothing there.
        """
        times = () if self.of_shards else self.where(metric=REPEATED).figures.values()
        return noise_of(times, {} if self.claims else self.manifest)

    @cached_property
    def clocks(self) -> list[Ticks]:
        """The clocks of the latencies."""
        return [Ticks(**clock) for clock in self.manifest.get("clocks", ())]

    @cached_property
    def callers(self) -> list[str]:
        """The callers that were measured, in the order of CALLERS."""
        subjects = {key.subject for key in self.where(metric=METRICS_OF_CALLERS).figures}
        return [caller for caller in CALLERS if caller in subjects]

    @cached_property
    def hosts(self) -> list["Measured"]:
        """The timers of hosts that were measured for callers."""
        names = dict.fromkeys([*HOSTS, *sorted(OWN)])
        metrics = (*METRICS_OF_CALLERS, *CONSTANTS)
        measured = {
            key.contestant for key in where(self.figures, contestant=(*names,), metric=metrics)
        }
        return [Measured(name) for name in names if name in measured]

    @cached_property
    def absent(self) -> list[str]:
        """The hosts that were not measured for a caller, because they were not installed."""
        return [*dict.fromkeys(key.contestant for key in self.failures if key.subject in CALLERS)]


def leaders(column: Column) -> list[StoredContestant]:
    """The fastest exact timer of a column, followed by those that are tied with it.

    If no exact timer was measured, all timers compete. Python loops compete only if there are no
    compiled timers.
    """
    exact = {timer: time for timer, time in column.items() if timer.exact}
    compiled = {timer: time for timer, time in exact.items() if timer.compiled}
    return fastest(compiled or exact or column)


def _place(metric: str) -> tuple[int, str]:
    """The place of a metric in the order of tables."""
    return [*METRICS].index(metric) if metric in METRICS else len(METRICS), metric


def figures_of(*runs: Run) -> Summary:
    """Reduce the samples of a run, or of several grids, each a source of its own. O(rows).

    Raises:
        RunError: A manifest lacks what describes a contestant.
    """
    entries: dict[str, Mapping[str, Any]] = {}
    sources: list[StoredSource] = []
    figures: dict[Key, Estimate] = {}
    over_budget: dict[tuple[str, str, str], int | None] = {}
    failures: dict[Key, str] = {}
    trials: list[Row] = []
    claims: list[Settled] = []
    peers: list[StoredPeer] = []
    for run in runs:
        _check(run)
    names = Counter(source["name"] for run in runs for source in run.manifest["sources"])
    for run in runs:
        grid = run.manifest["kind"] == REPLAY
        if run.manifest["kind"] in (PURGATORY, CLAIMS):
            if run.manifest["kind"] == PURGATORY:
                trials += trials_of(run.rows)
            else:
                claims += settled(run.rows)
            figures |= estimates(row for row in run.rows if row.metric in REPEATED)
            continue
        problems = {
            row.contestant: row.note for row in run.rows if row.metric == PEER_TIME and row.note
        }
        peers += [
            StoredPeer(entry, problems.get(entry["name"], ""))
            for entry in run.manifest.get("peers", ())
        ]
        entries |= {entry["label"]: entry for entry in run.manifest["contestants"]}
        # Grids of one workload are told apart by their paths.
        renamed = {
            name: f"{name}, {_shown(run)}"
            for source in run.manifest["sources"]
            if grid and names[name := source["name"]] > 1
        }
        rows = [row._replace(subject=renamed.get(row.subject, row.subject)) for row in run.rows]
        seen = {row.subject for row in rows if row.size is None}
        given = run.manifest["parameters"].get("traces", ())
        for entry in run.manifest["sources"]:
            name = renamed.get(entry["name"], entry["name"])
            if name in seen:
                own = grid or entry["name"] in given
                sources.append(StoredSource(name, entry["unit"], entry, own))
        figures |= estimates(rows)
        over_budget |= {
            (row.contestant, row.subject, row.metric): row.size
            for row in rows
            if row.metric in TIMED and row.value is None
        }
        failures |= {
            Key(row.contestant, row.subject, row.size, row.metric): row.note or ""
            for row in rows
            if row.value is None
            and (row.subject in (OVERLOAD, MEMORY, *CALLERS) or row.subject.startswith(THREADS))
        }
    for source in sources:
        for key, time in where(figures, subject=source.name, metric="replay_time").items():
            if source.rate:
                figures[key._replace(metric="second")] = time * (source.rate / 1e6)
    units = {source.unit for source in sources}
    if len(runs) > 1 and len(units) > 1:  # bounds that hold for all of them
        entries = {label: contestant_entry(contestant(label), units) for label in entries}
    contestants = contestants_of(entries.values())
    order = {timer.label: place for place, timer in enumerate(contestants)}
    return Summary(
        _manifest(runs),
        contestants,
        tuple(sources),
        figures,
        # Tasks first, then sources, each in the order of the contestants.
        dict(sorted(over_budget.items(), key=lambda item: (item[1] is None, order[item[0][0]]))),
        failures,
        trials,
        claims,
        of_shards=all(run.manifest["kind"] == REPLAY for run in runs),
        missing=[task for run in runs for task in run.missing],
        peers=tuple(peers),
        fits=fits_of(row for run in runs for row in run.rows),
    )


def _check(run: Run) -> None:
    """Raise RunError unless the manifest describes every contestant of the run."""
    needed = contestant_entry(contestant(YARDSTICK), ["unit"]).keys()
    entries = run.manifest["contestants"]
    try:
        for missing in (needed - entry.keys() for entry in entries):
            if missing:
                raise KeyError(min(missing))
        labels = {entry["label"] for entry in entries}
        for source in run.manifest["sources"]:
            source["name"], source["unit"]
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.path}: the manifest is damaged: {error} is missing") from None
    if run.manifest["kind"] in (PURGATORY, CLAIMS):  # whose contestants are described elsewhere
        return
    known = {row.contestant for row in run.rows}
    peers = {entry["name"] for entry in run.manifest.get("peers", ())}
    if unknown := known - labels - peers - {*CONTENDERS, *HOSTS, *OWN}:
        raise RunError(f"{run.path}: the manifest does not describe {min(unknown)}")


def _shown(run: Run) -> str:
    """The path of a grid: of the results, if it is their summary."""
    return str(run.path.parent if run.path.name == SUMMARY else run.path)


def _manifest(runs: Sequence[Run]) -> Mapping[str, Any]:
    """The manifest of the first run; of several, the parameters say how each was made."""
    first = runs[0].manifest
    if first["kind"] != REPLAY:
        return first
    parameters = {}
    for number, run in enumerate(runs, 1):
        made = {"created": run.manifest["created"], "command": shlex.join(run.manifest["command"])}
        own = run.manifest["parameters"]
        parameters[f"results {number}"] = made | own if len(runs) > 1 else own
    checked = {f"results {n}": run.manifest["agreement"] for n, run in enumerate(runs, 1)}
    alike = all(each == first["agreement"] for each in checked.values())
    agreement = first["agreement"] if alike else checked
    return {**first, "parameters": parameters, "agreement": agreement}


def contestants_of(entries: Iterable[Mapping[str, Any]]) -> tuple[StoredContestant, ...]:
    """Contestants from the entries of a manifest, in order."""
    listed = list(entries)
    timers = [entry["timer"] for entry in listed]
    return tuple(
        StoredContestant(entry["label"], entry, timers[:place].count(entry["timer"]))
        for place, entry in enumerate(listed)
    )
