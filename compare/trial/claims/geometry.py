"""Claims about levels and horizons: of the kernel's wheels, and of Kafka's."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from compare.traffic.tapes.tape import START, Tape
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Verdict,
    figures,
    number,
    of_peer,
    rule,
)
from compare.trial.claims.lateness import HIERARCHICAL, KAFKA
from compare.trial.peers.run import Peer
from compare.trial.peers.tapes import tape_of
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import replay
from compare.trial.results.schema import Row

OLD_LINUX, NEW_LINUX, CASCADING = "Linux before 4.8", "Linux since 4.8", "cascading-wheel"
DAY = 86_400_000  # ms


class Geometry(NamedTuple):
    """Levels of slots, the lowest first: slots, and units of a slot."""

    levels: tuple[tuple[int, int], ...]
    spare: int = 0  # slots of the highest level that cannot be used

    @property
    def horizon(self) -> int:
        """The longest delay that the levels cover, in units."""
        slots, units = self.levels[-1]
        return (slots - self.spare) * units


LINUX = {
    OLD_LINUX: Geometry(((256, 1), *((64, 256 * 64**level) for level in range(4)))),
    NEW_LINUX: Geometry(tuple((64, 8**level) for level in range(9)), spare=1),
}
"""TVR_BITS and TVN_BITS of kernel/timer.c; LVL_BITS, LVL_CLK_SHIFT and LVL_DEPTH of
kernel/time/timer.c with 1,000 ticks in a second."""

CLAIMED_LEVELS, CLAIMED_SLOTS, CLAIMED_HORIZON = 5, 256, 340_000_000


def _horizon(label: str) -> int:
    """The first power of two at which a timer is no longer in a slot."""
    timer = contestant(label).new("unit")
    for bits in range(62):
        if "level" not in timer.locate(timer.schedule(1 << bits)):
            return 1 << bits
    return 1 << 62


def _geometries(quick: bool) -> Iterator[Row]:
    for name, geometry in LINUX.items():
        slots = [slots for slots, _ in geometry.levels]
        yield from figures(
            name,
            levels=len(slots),
            slots_least=min(slots),
            slots_most=max(slots),
            horizon=geometry.horizon,
        )
    horizon = _horizon(CASCADING)
    yield from figures(CASCADING, levels=5, slots_least=256, slots_most=256, horizon=horizon)


DELAYS = (100, 1_000, 7_500, 30_000, 300_000)
FEW_LEVELS = 3
_START = 8_421  # from it, each of the delays needs every level below its own


def _levels(quick: bool) -> Iterator[Row]:
    for delay in DELAYS:
        tape = tape_of([(_START, START, 0, _START + delay)])
        timer = contestant(HIERARCHICAL).new("unit", _START)
        level = timer.locate(timer.schedule(_START + delay))["level"]
        outcome = replay(contestant(HIERARCHICAL).new("unit", _START), tape, 1).outcome
        yield from figures(HIERARCHICAL, delay, level=level, wake_ups=outcome.wakeups)

        def buckets(peer: Peer, tape: Tape, delay: int) -> Iterator[Row]:
            *_, drain = peer.time(tape, 1, rounds=1, warm_up=1)
            passed = drain.counts["wake_ups"]
            yield from figures(KAFKA, delay, level=passed, wake_ups=passed)

        yield from of_peer(KAFKA, partial(buckets, tape=tape, delay=delay))


GEOMETRIES = Experiment(
    "geometries",
    "The levels, the slots of a level and the horizon of each geometry, in ms with 1,000 ticks in "
    "a second. That of 5 wheels of 256 slots is found by filing timers in `cascading-wheel`.",
    _geometries,
)
LEVELS = Experiment(
    "levels",
    "The level at which a timer enters wheels of 20 slots with a tick of 1 ms, and the buckets "
    "through which it passes until it fires. Kafka's own wheel counts the buckets; the clock "
    "starts where each delay passes through every level below its own.",
    _levels,
    "delay",
)


@rule(
    "Holds if one of the kernel's geometries has 5 levels of 256 slots and covers 340 million "
    "ms, within a tenth."
)
def linux_geometry(found: Figures) -> Verdict:
    """Claim 4."""
    texts = []
    for name in LINUX:
        horizon = found.value(name, "horizon")
        levels = found.value(name, "levels")
        low, high = (found.value(name, f"slots_{end}") for end in ("least", "most"))
        slots = number(high) if low == high else f"{number(low)} to {number(high)}"
        texts.append(
            f"{name}: {number(levels)} levels of {slots} slots, {number(horizon / DAY, '.1f')} days"
        )
        near = abs(horizon / CLAIMED_HORIZON - 1) <= 0.1
        if (levels, low, high) == (CLAIMED_LEVELS, CLAIMED_SLOTS, CLAIMED_SLOTS) and near:
            return Verdict(HOLDS, "; ".join(texts) + ".")
    years = found.value(CASCADING, "horizon") / DAY / 365.25
    return Verdict(WRONG, f"{'; '.join(texts)}. 5 levels of 256 slots cover {years:.1f} years.")


@rule("Holds if it enters level 3, in Kafka's code and in ours.")
def enters_level_3(found: Figures) -> Verdict:
    """Claim 6."""
    levels = {who: found.value(who, "level", 30_000) for who in (KAFKA, HIERARCHICAL)}
    text = (
        f"Kafka's timer of 30 s passes through {number(levels[KAFKA])} buckets, so it enters level "
        f"{number(levels[KAFKA])}; in `{HIERARCHICAL}` it enters level "
        f"{number(levels[HIERARCHICAL])}."
    )
    return Verdict(HOLDS if {*levels.values()} == {3} else WRONG, text)


@rule(
    "Holds if timeouts of up to 5 min enter one of three levels; holds only up to the longest "
    "of the measured timeouts that does."
)
def few_levels(found: Figures) -> Verdict:
    """Claim 7."""
    levels = found.curve(KAFKA, "level")
    text = "The delays enter these levels: " + ", ".join(
        f"{number(delay / 1_000)} s level {number(level)}" for delay, level in levels.items()
    )
    fitting = [delay for delay, level in levels.items() if level <= FEW_LEVELS]
    if len(fitting) == len(levels):
        return Verdict(HOLDS, f"{text}.")
    if fitting:
        longest = number(max(fitting) / 1_000)
        return Verdict(ONLY_WHEN, f"{text}.", f"timeouts are not much longer than {longest} s")
    return Verdict(WRONG, f"{text}.")
