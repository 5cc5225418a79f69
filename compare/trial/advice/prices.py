"""The objective of the search: the work that a replay counts, times the price of each kind of work.

Amounts are the counters of the replay; the operations, at a price for each scheme; and, as no
counter shows how the empty slots of a wheel are skipped, the operations times the words of
occupancy bits of a wheel. The prices, in ns, are fitted to measured times of this machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compare.trial.advice.candidates import WHEEL_SIZE
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.outcome import Outcome
from timers.kernels.counters import COUNTERS

_ASSUMED = {  # ns; where the candidates hardly differ in an amount
    **dict.fromkeys(COUNTERS, 5.0),
    "comparisons": 1.5,
    "timers_touched": 3.0,
    "queue_offers": 15.0,
    "queue_polls": 15.0,
}
_ASSUMED_OF_OPERATION, _ASSUMED_OF_WORD = 10.0, 0.1  # ns
_TRUST = 0.02  # weight of an assumed price, beside that of one measured time
_WORD_BITS = 64


@dataclass(frozen=True)
class Counted:
    """A candidate, with what its replay of the sample has counted."""

    contestant: Contestant
    outcome: Outcome
    nbytes: int  #: of a timer made for as many timers as were pending at once
    deviation: int  #: how far from a deadline its scheme may fire, late or early, in units
    allowed: bool  #: whether it keeps the bounds

    @property
    def label(self) -> str:
        """Its text on a command line."""
        return self.contestant.label

    @property
    def wheel_size(self) -> int:
        """The slots of a wheel; 0 without one, or if its size is fixed."""
        own, defaults = self.contestant.settings, self.contestant.traits.defaults
        return int(own.get(WHEEL_SIZE, defaults.get(WHEEL_SIZE, 0)))

    @property
    def amounts(self) -> dict[str, int]:
        """The amount of each kind of work."""
        operations, name = self.outcome.operations, self.contestant.name
        words = operations * (self.wheel_size // _WORD_BITS)
        return {**(self.outcome.counters or {}), name: operations, f"{name} words": words}


def priced(candidate: Counted, prices: Mapping[str, float]) -> float:
    """The objective of a candidate, in ns per operation."""
    total = sum(amount * prices.get(name, 0.0) for name, amount in candidate.amounts.items())
    return total / candidate.outcome.operations


def fitted_prices(measured: Sequence[tuple[Counted, float]]) -> dict[str, float]:
    """The prices that explain measured times best, in ns per operation; none is negative.

    A least-squares fit of relative errors. A weak pull towards assumed prices decides what the
    times leave open.
    """
    names = list(dict.fromkeys(name for candidate, _ in measured for name in candidate.amounts))
    assumed = np.array([_assumed(name) for name in names])
    rows = np.array(
        [
            [candidate.amounts.get(name, 0) / (candidate.outcome.operations * ns) for name in names]
            for candidate, ns in measured
        ]
    )
    # The unknowns are prices relative to the assumed ones, so that all of them are about 1.
    pull = np.sqrt(_TRUST)
    matrix = np.concatenate([rows * assumed, pull * np.eye(len(names))])
    target = np.concatenate([np.ones(len(measured)), np.full(len(names), pull)])
    used = np.arange(len(names))
    while (fit := np.linalg.lstsq(matrix[:, used], target, rcond=None)[0]).min() < 0:
        used = used[fit > 0]
    relative = np.zeros(len(names))
    relative[used] = fit
    return dict(zip(names, (relative * assumed).tolist(), strict=True))


def _assumed(name: str) -> float:
    other = _ASSUMED_OF_WORD if name.endswith(" words") else _ASSUMED_OF_OPERATION
    return _ASSUMED.get(name, other)


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; NaN if all values on a side are equal."""

    def ranks(values: Sequence[float]) -> npt.NDArray[np.int64]:
        # Twice the mean rank of equal values.
        ordered = np.sort(values)
        return np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")

    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(ranks(left), ranks(right))[0, 1])
