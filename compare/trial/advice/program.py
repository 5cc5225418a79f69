"""What the timers of an asyncio program cost on its own loop, and on others that it could have.

The measure is that of the page: pairs, fires and wake-ups of `compare.trial.bench.callers`, with as
many calls pending as the trace has on average. How many of each the program has is counted in the
trace: a wake-up is a millisecond in which something fires. The program keeps its own loop unless
another saves more than ENOUGH of a core and the noise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np

from compare.traffic.tapes.tape import CANCEL
from compare.traffic.tapes.trace import Trace
from compare.traffic.tapes.units import EXPONENTS
from compare.trial.advice.candidates import Bounds
from compare.trial.advice.choice import ENOUGH, USUAL, Choice, Offer, choose
from compare.trial.advice.model import CORE
from compare.trial.bench.callers import (
    HOST_OF,
    HOSTS,
    LOOP,
    PAIRS,
    SERVICE_SIZES,
    UVLOOP,
    Costs,
    Host,
    Plan,
    can_call,
    measure,
)
from compare.trial.bench.work import UNIT
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.replay.engine import OverBudgetError
from timers.rounding import Rounding

ROUNDS = 3  # samples of each loop, in turns
FEWEST = 10  # calls pending in a sample
MOST = 1_000_000  # operations whose firings are counted
DEFAULT = "cascading-wheel"  # of wheel_event_loop
FEW = 4  # schemes besides DEFAULT and USUAL


@dataclass(frozen=True)
class Program:
    """An asyncio program: its traffic, and samples of the costs of each loop."""

    host: str  #: whose loop it uses: "asyncio" or "uvloop"
    rates: Costs  #: pairs, fires and wake-ups in a second
    samples: Mapping[str, Sequence[Costs]]  #: loop, or timer of wheel_event_loop -> a cost a round
    precise: frozenset[str] = frozenset()  #: the hosts that keep the bounds of lateness
    recorded: bool = False  #: whether it is known to use such a loop
    on_a_wheel: bool = False  #: whether it uses wheel_event_loop today
    core: float | None = None  #: the share of a core that all of it took; None if unknown

    @cached_property
    def costs(self) -> dict[str, list[float]]:
        """Shares of a core that the timers take on each loop, ascending; the cheapest first."""
        costs = {
            name: sorted(_spent(each, self.rates) / CORE for each in samples)
            for name, samples in self.samples.items()
        }
        return dict(sorted(costs.items(), key=lambda item: median(item[1])))

    def share(self, name: str) -> float:
        """The share of a core that the timers take on a loop."""
        return median(self.costs[name])

    @cached_property
    def rivals(self) -> list[str]:
        """The loops that the program may have: its own, and those that are precise enough."""
        return [
            name
            for name in self.costs
            if name == self.host or name not in HOSTS or name in self.precise
        ]

    @cached_property
    def choice(self) -> Choice:
        """The choice among `rivals`. The calls take far more memory than any of the timers."""
        offers = [
            Offer(
                self.share(name),
                low=self.costs[name][0],
                high=self.costs[name][-1],
                exact=name not in HOSTS or HOSTS[name].early == HOSTS[name].late == 0,
                nbytes=1,
                default=True,
                usual=name == USUAL,
                host=name == self.host,
            )
            for name in self.rivals
        ]
        return choose(offers, 1.0)

    @property
    def best(self) -> str:
        """The loop to use."""
        return self.rivals[self.choice.number]

    @property
    def cheapest(self) -> str:
        """The loop that costs least, whatever the noise."""
        return self.rivals[self.choice.cheapest]

    @property
    def keeps(self) -> bool:
        """Whether the host's own loop is the one to use."""
        return self.best == self.host

    @property
    def saving(self) -> float:
        """The share of a core that the cheapest loop would save; 0.0 if it is the host's."""
        return self.share(self.host) - self.share(self.cheapest)

    @property
    def is_small(self) -> bool:
        """Whether so little is saved that even without noise it would decide nothing."""
        return self.saving <= ENOUGH


def _spent(costs: Costs, rates: Costs) -> float:
    """Nanoseconds of CPU in a second with this rate of each."""
    return sum(cost * rate for cost, rate in zip(costs, rates, strict=True))


def program_of(trace: Trace, bounds: Bounds, schemes: Iterable[str]) -> Program | None:
    """Measure a program with the timers of a trace, on its own loop and with FEW of these schemes.

    None if the trace has no durations. A trace that was not recorded is taken for one of a program
    on asyncio; of several shards, the first that is not empty.
    """
    traffic = traffic_of(trace)
    if traffic is None:
        return None
    rates, pending = traffic
    recording = trace.source if trace.source.get("kind") == "recording" else {}
    loops = recording.get("loops", ())
    host = "uvloop" if "uvloop" in loops else "asyncio"
    caller = next(each for each in (LOOP, UVLOOP) if HOST_OF[each] == host)
    timers = [contestant(name) for name in dict.fromkeys([DEFAULT, USUAL, *schemes])]
    everyone: list[Contestant | Host] = [*HOSTS.values()]
    everyone += [timer for timer in timers if timer.rounding(UNIT).bounds() == (0, 0)][: 2 + FEW]
    plan = Plan(min(max(pending, FEWEST), SERVICE_SIZES[-1]), PAIRS[caller], 0)
    samples = measured(caller, [each for each in everyone if can_call(caller, each)], plan)
    if host not in samples:  # it is not installed here
        return None
    ms = 10 ** EXPONENTS[trace.unit] / 1_000  # units
    precise = {
        name
        for name, each in HOSTS.items()
        if each.early * ms <= bounds.max_early and each.late * ms <= bounds.max_late
    }
    core = recording.get("cpu_seconds", 0.0) / (recording.get("seconds") or 1.0) or None
    return Program(
        host,
        rates,
        samples,
        frozenset(precise),
        recorded=bool(loops),
        on_a_wheel="wheel_event_loop" in loops,
        core=core,
    )


def traffic_of(trace: Trace) -> tuple[Costs, int] | None:
    """Pairs, fires and wake-ups in a second, and the calls pending on average; None if unknown."""
    if trace.unit not in EXPONENTS:
        return None
    number = next((n for n, shard in enumerate(trace.shards) if shard.rows), None)
    if number is None:
        return None
    tape, id_space = trace.beginning(MOST, number), trace.shards[number].id_space
    second = 10 ** EXPONENTS[trace.unit]
    span = int(tape.time[-1] - tape.time[0])
    if not span:
        return None
    fired_at = expect(tape, id_space, Rounding(), drained=False).fired_at
    arms = np.flatnonzero(tape.op != CANCEL)
    fired = fired_at[(fired_at != NEVER) & (fired_at <= tape.time[-1])]
    wakeups = np.unique(fired // max(second // 1_000, 1)).size
    counts = Costs(arms.size - fired.size, fired.size, wakeups)
    rates = Costs(*(count * second / span for count in counts))
    about = trace.description
    return rates, round(about.waited / max(trace.span, 1) / len(trace.shards))


def measured(
    caller: str, contestants: Sequence[Contestant | Host], plan: Plan
) -> dict[str, list[Costs]]:
    """A sample for each round, by label; without those that take too long to fill."""
    samples: dict[str, list[Costs]] = {each.label: [] for each in contestants}
    for _ in range(ROUNDS):
        for each in contestants:
            if each.label in samples:
                try:
                    samples[each.label].append(measure(caller, each, plan))
                except OverBudgetError:
                    del samples[each.label]
    return samples
