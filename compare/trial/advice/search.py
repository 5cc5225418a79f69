"""The search: coarse, then fine, by counted work; the best candidates are then timed in turns."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compare.base.executors import Executor, even_shares
from compare.traffic.tapes.tape import CANCEL
from compare.traffic.tapes.trace import Trace
from compare.trial.advice.candidates import AdviceError, Bounds, Grid
from compare.trial.advice.prices import Counted, fitted_prices, priced, rank_correlation
from compare.trial.advice.replays import Sample, outcomes, sampled
from compare.trial.replay.contestant import Contestant, contestant

SEARCHED, TIMED = 1_000_000, 10_000_000  # operations of a large trace: counted, and timed
REFERENCE = "delay-queue"
SLOWEST = 8  # times the time of REFERENCE; slower candidates are left out
FINE_ROUNDS = 4  # of the search around the best of each scheme
FINALISTS = 12  # candidates that are timed, beside those of the Pareto front
CHECKED = 30  # candidates for the rank correlation
# Rounds of measurements in any case, and the seconds within which more of them begin. A machine can
# be slow for a second, so the last ones take longer.
FIT, FINAL = (2, 0.5), (3, 2.5)
NEAR = 1.1  # a candidate is not on the front if a cheaper one is this near in precision and memory

Key = Callable[[Counted], float]


@dataclass
class Advice:
    """The result of a search. Times are in ns of CPU per operation, by label."""

    trace: Trace
    grid: Grid
    objective: str
    sample: Sample  #: whose work was counted
    timed_sample: Sample
    counted: dict[str, Counted]
    ns: dict[str, float]  #: the objective of the search
    checked: list[str]  #: candidates at even distances from the best to the worst, by label
    samples: dict[str, list[float]]  #: measured, of the finalists, the front and these, by round

    @property
    def unit(self) -> str:
        """The unit of time."""
        return self.trace.unit

    def cost(self, candidate: Counted) -> float:
        """The measured time: of the fastest round, since noise only ever adds time."""
        return min(self.samples[candidate.label])

    def noise(self, candidate: Counted) -> float:
        """The relative difference of the time between the odd and the even rounds."""
        rounds = self.samples[candidate.label]
        first, second = min(rounds[::2]), min(rounds[1::2])
        return max(first, second) / min(first, second) - 1

    @cached_property
    def measured(self) -> list[Counted]:
        """The candidates that were timed."""
        return [self.counted[label] for label in self.samples]

    @cached_property
    def ranked(self) -> list[Counted]:
        """Those that keep the bounds, best first."""
        return _ranked(self.measured, self.cost, self.objective)

    @property
    def best(self) -> Counted:
        """What to use."""
        return self.ranked[0]

    @property
    def runner_up(self) -> Counted | None:
        """The best of another scheme."""
        others = [*_best_of_each(self.ranked).values()][1:]
        return others[0] if others else None

    def best_of(self, name: str) -> Counted | None:
        """The best of a scheme."""
        return _best_of_each(self.ranked).get(name)

    @property
    def looser(self) -> Counted | None:
        """The cheapest that is less precise than the bounds ask."""
        others = [
            candidate for candidate in self.measured if not self.grid.precise(candidate.contestant)
        ]
        return min(others, key=self.cost, default=None)

    @property
    def front(self) -> list[Counted]:
        """The Pareto front in cost, precision and memory, cheapest first."""
        return pareto_front(self.measured, self.cost)

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation of the search's objective with the measured time."""
        measured = [min(self.samples[label]) for label in self.checked]
        return rank_correlation([self.ns[label] for label in self.checked], measured)


def advise(trace: Trace, bounds: Bounds, executor: Executor, objective: str = "cpu") -> Advice:
    """Search for the best timer for a trace; the objective is to save "cpu" or "memory".

    Of a large trace, SEARCHED operations are replayed for the search, and TIMED operations through
    the finalists. Raises AdviceError for a trace without operations, and if no candidate keeps the
    bounds.
    """
    if not trace.totals["rows"]:
        raise AdviceError(f"{trace.path} has no operations, so there is nothing to advise on")
    sample = sampled(trace, SEARCHED)
    grid = Grid(trace.unit, bounds, *_delays(sample))
    counted: dict[str, Counted] = {}
    reference = outcomes(executor, sample, [contestant(REFERENCE)], counting=True)
    limit = SLOWEST * reference[REFERENCE].ns_per_operation

    def count(candidates: Iterable[Contestant]) -> None:
        new = {
            candidate.label: candidate for candidate in candidates if candidate.label not in counted
        }
        done = outcomes(executor, sample, list(new.values()), counting=True, limit=limit)
        for label, outcome in done.items():
            candidate = new[label]
            nbytes = int(candidate.new(trace.unit, capacity=outcome.most_pending).nbytes)
            allowed = grid.precise(candidate) and nbytes <= (bounds.memory or math.inf)
            deviation = max(map(abs, candidate.rounding(trace.unit).bounds()))
            counted[label] = Counted(candidate, outcome, nbytes, deviation, allowed)

    def objective_of(candidate: Counted) -> float:
        return priced(candidate, prices)

    count(grid.coarse())
    times = _times(executor, sample, counted.values(), *FIT)
    prices = fitted_prices([(counted[label], min(rounds)) for label, rounds in times.items()])
    tried: set[str] = set()
    for _ in range(FINE_ROUNDS):
        best = _best_of_each(_ranked(counted.values(), objective_of, objective)).values()
        centres = [candidate for candidate in best if candidate.label not in tried]
        tried.update(candidate.label for candidate in centres)
        count(near for candidate in centres for near in grid.around(candidate.contestant))
    ranked = _ranked(counted.values(), objective_of, objective)
    if not ranked:
        raise AdviceError(_unreachable(counted.values(), grid))
    by_objective = sorted(counted.values(), key=objective_of)
    checked = [by_objective[share[0]] for share in even_shares(len(by_objective), CHECKED)]
    chosen = [*checked, *_best_of_each(ranked).values(), *ranked[:FINALISTS]]
    chosen += pareto_front(counted.values(), objective_of)
    final = sampled(trace, TIMED)
    return Advice(
        trace,
        grid,
        objective,
        sample,
        final,
        counted,
        ns={label: objective_of(candidate) for label, candidate in counted.items()},
        checked=[candidate.label for candidate in checked],
        samples=_times(executor, final, chosen, *FINAL),
    )


def pareto_front(candidates: Iterable[Counted], cost: Key) -> list[Counted]:
    """Those for which no cheaper one is about as precise and as small, cheapest first. O(n^2)."""
    front: list[Counted] = []
    for candidate in sorted(
        candidates, key=lambda candidate: (cost(candidate), candidate.deviation, candidate.nbytes)
    ):
        if not any(
            other.deviation <= NEAR * candidate.deviation
            and other.nbytes <= NEAR * candidate.nbytes
            for other in front
        ):
            front.append(candidate)
    return front


def _ranked(candidates: Iterable[Counted], cost: Key, objective: str) -> list[Counted]:
    """Those that keep the bounds, best first."""

    def rank(candidate: Counted) -> tuple[float, ...]:
        both = cost(candidate), candidate.nbytes
        return both[::-1] if objective == "memory" else both

    return sorted((candidate for candidate in candidates if candidate.allowed), key=rank)


def _best_of_each(ranked: Iterable[Counted]) -> dict[str, Counted]:
    """The first of each scheme, by its name; best first."""
    best: dict[str, Counted] = {}
    for candidate in ranked:
        best.setdefault(candidate.contestant.name, candidate)
    return best


def _times(
    executor: Executor,
    sample: Sample,
    candidates: Iterable[Counted],
    rounds: int,
    seconds: float,
) -> dict[str, list[float]]:
    """The ns per operation of each candidate, by label; one list item for each round.

    There are more than `rounds` rounds as long as `seconds` have not passed.
    """
    contestants = list({candidate.label: candidate.contestant for candidate in candidates}.values())
    times: dict[str, list[float]] = {candidate.label: [] for candidate in contestants}
    started, done = time.monotonic(), 0
    while done < rounds or time.monotonic() - started < seconds:
        for label, outcome in outcomes(executor, sample, contestants, counting=False).items():
            times[label].append(max(outcome.ns_per_operation, 1e-3))
        done += 1
    return times


def _delays(sample: Sample) -> tuple[int, int]:
    """The median and the longest delay.

    A tick coarser than the median would fire half of the timers in the wrong place.
    """
    tape = sample.tape(sample.shards[0])
    delays = (tape.deadline - tape.time)[tape.op != CANCEL]
    if not delays.size:
        return 1, 1
    return max(int(np.median(delays)), 1), max(int(delays.max()), 1)


def _unreachable(counted: Iterable[Counted], grid: Grid) -> str:
    """Why no candidate keeps the bounds."""
    precise = [candidate for candidate in counted if grid.precise(candidate.contestant)]
    if not precise:
        return "no timer fires as precisely as --max-late and --max-early ask"
    smallest = min(precise, key=lambda candidate: candidate.nbytes)
    return (
        f"no timer as precise as that fits into {grid.bounds.memory} bytes: the smallest,"
        f" {smallest.label}, takes {smallest.nbytes}"
    )
