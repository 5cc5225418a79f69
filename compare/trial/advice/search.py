"""The search, by successive halving: the better half of the candidates replays twice as much."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from compare.base.stages import Engine
from compare.traffic.tapes.trace import Trace
from compare.traffic.tapes.units import EXPONENTS
from compare.trial.advice.candidates import AdviceError, Bounds, Candidate, contestants
from compare.trial.advice.choice import NEAR, USUAL, Choice, choose, is_decided
from compare.trial.advice.program import Program, program_of
from compare.trial.advice.replays import Sample, outcomes, sampled
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.outcome import Outcome
from timers.traits import Traffic

FIRST, LAST = 100_000, 10_000_000  # operations in the first round, and at most in the last
FINALISTS = 12  # candidates in the last round: within the bounds, and outside
SLOWEST = 8  # times the cost of USUAL or of the best so far; slower candidates are left out
TURNS, SECONDS = 5, 1.0  # of the last round, at least: turns, and CPU time of all replays
MOST_TURNS = 20  # of the last round, also where noise would decide
SHORTEST = 1e-3  # ns per operation that a clock may show; ratios need more than zero


@dataclass
class Advice:
    """The result of a search."""

    trace: Trace
    bounds: Bounds
    objective: str
    sample: Sample  #: replayed in the last round
    finalists: list[Candidate]  #: timed in the last round
    dropped: list[Candidate]  #: in earlier rounds, which replayed fewer operations
    rounds: list[tuple[int, int]]  #: the number of candidates and of operations in each round
    program: Program | None = None  #: an asyncio program with these timers

    @property
    def unit(self) -> str:
        """The unit of time."""
        return self.trace.unit

    def lateness(self, candidate: Candidate) -> tuple[int, int]:
        """The least and greatest lateness that a candidate's scheme allows for this traffic."""
        longest = traffic_of(self.trace, self.bounds).longest_delay
        return candidate.contestant.rounding(self.unit).bounds(longest)

    @cached_property
    def ranked(self) -> list[Candidate]:
        """The finalists that keep the bounds, best first."""
        return _ranked(self.finalists, self.objective)

    @cached_property
    def choice(self) -> Choice:
        """The choice among `ranked`."""
        if self.objective == "memory":
            return Choice(0, 0, 1, ())
        return choose([candidate.offer for candidate in self.ranked], self._core)

    @property
    def _core(self) -> float | None:
        """The nanoseconds that a core has for each operation; None if that is unknown."""
        if self.unit not in EXPONENTS:
            return None
        seconds = self.trace.span / float(10 ** EXPONENTS[self.unit])
        return 1e9 * seconds / float(self.trace.totals["rows"])

    @property
    def decided(self) -> bool:
        """Whether not only the noise decides."""
        if self.objective == "memory":
            return True
        turns = [*zip(*(candidate.times for candidate in self.ranked), strict=False)]
        return is_decided(turns, self.choice.number, self._core)

    @property
    def best(self) -> Candidate:
        """The recommended candidate."""
        return self.ranked[self.choice.number]

    @property
    def runner_up(self) -> Candidate | None:
        """The best candidate of another scheme."""
        name = self.best.contestant.name
        others = (each for each in self.ranked if each.contestant.name != name)
        return next(others, None)

    def best_of(self, name: str) -> Candidate | None:
        """The best candidate of a scheme."""
        return _best_of_each(self.ranked).get(name)

    @property
    def looser(self) -> Candidate | None:
        """The cheapest candidate that is less precise than the bounds require."""
        others = [candidate for candidate in self.finalists if not candidate.precise]
        return min(others, key=_cost, default=None)

    @property
    def front(self) -> list[Candidate]:
        """The Pareto front in cost, precision and memory, cheapest first."""
        return pareto_front(self.finalists)


def advise(trace: Trace, bounds: Bounds, engine: Engine, objective: str = "cpu") -> Advice:
    """Search for the best timer for a trace; the objective is to save "cpu" or "memory".

    All candidates replay FIRST operations. The better half replays twice as many, and so on, until
    FINALISTS are left or the sample, of at most LAST operations, is used up. This holds for those
    within the bounds. The best of each scheme, the Pareto front and the FINALISTS cheapest of the
    others are kept in every round. Those left replay the sample in several turns. Raises
    AdviceError for a trace without operations, and if no candidate keeps the bounds.
    """
    if not trace.totals["rows"]:
        raise AdviceError(f"{trace.path} has no operations, so there is nothing to advise on")
    last = sampled(trace, LAST)
    reference = outcomes(engine, last, [contestant(USUAL)])[USUAL]
    traffic = traffic_of(trace, bounds)
    left = list(contestants(traffic, trace.unit))
    limit = SLOWEST * reference.ns_per_operation
    dropped: list[Candidate] = []
    rounds: list[tuple[int, int]] = []

    def measured(sample: Sample, turns: Sequence[dict[str, Outcome]]) -> list[Candidate]:
        rounds.append((len(left), sample.total))
        candidates = [
            _candidate(
                each,
                [turn[each.label] for turn in turns],
                bounds,
                traffic.longest_delay,
                reference,
                trace.unit,
            )
            for each in left
            if all(each.label in turn for turn in turns)
        ]
        if not any(candidate.allowed for candidate in candidates):
            raise AdviceError(_unreachable(candidates, bounds))
        return candidates

    halving = True
    while halving:
        sample = sampled(trace, min(FIRST << len(rounds), LAST))
        groups = 4 * engine.workers
        turn = outcomes(engine, sample, left, limit=limit, groups=groups)
        candidates = measured(sample, [turn])
        ranked = _ranked(candidates, objective)
        limit = SLOWEST * min(candidate.cost for candidate in ranked)
        half = ranked[: max(len(ranked) // 2, FINALISTS)]
        looser = sorted((each for each in candidates if not each.allowed), key=_cost)[:FINALISTS]
        best = _best_of_each(ranked).values()
        kept = {each.label for each in [*half, *looser, *best, *pareto_front(candidates)]}
        left = [each.contestant for each in candidates if each.label in kept]
        dropped += [each for each in candidates if each.label not in kept]
        halving = len(half) > FINALISTS and sample.total < last.total
    turns = list[dict[str, Outcome]]()
    while True:
        turns += in_turns(engine, last, left, limit, MOST_TURNS - len(turns))
        finalists = measured(last, turns)
        advice = Advice(trace, bounds, objective, last, finalists, dropped, [*rounds])
        if advice.decided or len(turns) >= MOST_TURNS:
            break
        rounds.pop()
    schemes = [candidate.contestant.name for candidate in advice.ranked]
    advice.program = program_of(trace, bounds, schemes)
    return advice


def in_turns(
    engine: Engine,
    sample: Sample,
    candidates: Sequence[Contestant],
    limit: float = math.inf,
    most: int = MOST_TURNS,
) -> list[dict[str, Outcome]]:
    """The outcomes of at least TURNS turns, which together measure at least SECONDS of CPU time.

    There are at most `most` turns. Every second turn has the reverse order, so that no
    candidate always comes first.
    """
    turns: list[dict[str, Outcome]] = []
    seconds = 0.0
    while len(turns) < most and (len(turns) < TURNS or seconds < SECONDS):
        turns.append(outcomes(engine, sample, candidates, limit=limit))
        seconds += sum(outcome.seconds for outcome in turns[-1].values())
        candidates = candidates[::-1]
    return turns


def traffic_of(trace: Trace, bounds: Bounds) -> Traffic:
    """The delays of a trace, and the bounds."""
    median, longest = (max(trace.description.delay.get(name, 1), 1) for name in ("p50", "max"))
    return Traffic(median, longest, bounds.max_late, bounds.max_early)


def pareto_front(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates without a cheaper one about as precise and as small (NEAR), cheapest first.

    O(n^2).
    """
    front: list[Candidate] = []
    for candidate in sorted(
        candidates, key=lambda candidate: (candidate.cost, candidate.deviation, candidate.nbytes)
    ):
        if not any(
            other.deviation <= NEAR * candidate.deviation
            and other.nbytes <= NEAR * candidate.nbytes
            for other in front
        ):
            front.append(candidate)
    return front


def _candidate(
    timer: Contestant,
    turns: Sequence[Outcome],
    bounds: Bounds,
    longest: int,  # delay of the trace
    reference: Outcome,
    unit: str,
) -> Candidate:
    """The results of a round; `reference` had the most timers pending in the whole sample."""
    outcome, rounding = turns[-1], timer.rounding(unit)
    pending = max(outcome.most_pending, reference.most_pending)
    nbytes = int(timer.new(unit, capacity=pending).nbytes)
    precise = bounds.allow(rounding, longest)
    return Candidate(
        timer,
        outcome,
        times=[max(turn.ns_per_operation, SHORTEST) for turn in turns],
        pending=pending,
        nbytes=nbytes,
        deviation=max(map(abs, rounding.bounds(longest))),
        precise=precise,
        allowed=precise and nbytes <= (bounds.memory or math.inf),
    )


def _cost(candidate: Candidate) -> float:
    return candidate.cost


def _ranked(candidates: Iterable[Candidate], objective: str) -> list[Candidate]:
    """Candidates that keep the bounds, best first."""

    def rank(candidate: Candidate) -> tuple[float, ...]:
        both = candidate.cost, candidate.nbytes
        return both[::-1] if objective == "memory" else both

    return sorted((candidate for candidate in candidates if candidate.allowed), key=rank)


def _best_of_each(ranked: Iterable[Candidate]) -> dict[str, Candidate]:
    """The first candidate of each scheme, by name; best first."""
    best: dict[str, Candidate] = {}
    for candidate in ranked:
        best.setdefault(candidate.contestant.name, candidate)
    return best


def _unreachable(candidates: Iterable[Candidate], bounds: Bounds) -> str:
    """The reason why no candidate keeps the bounds."""
    precise = [candidate for candidate in candidates if candidate.precise]
    if not precise:
        return "no timer fires as precisely as --max-late and --max-early ask"
    smallest = min(precise, key=lambda candidate: candidate.nbytes)
    return (
        f"no timer as precise as that fits into {bounds.memory} bytes: the smallest,"
        f" {smallest.label}, takes {smallest.nbytes}"
    )
