"""Quantiles of lateness that merge exactly: counts in bins whose edges are the same for all shards
and machines.

A value below 2**11 in magnitude is its own bin; of a greater one the first 11 binary digits tell
the bin. So a quantile is exact for lateness below 2048 units, and towards zero by less than 0.1 %
for more. Merging two sketches adds their counts: the result is that of one sketch over all values,
in whatever order shards are merged. There are at most 2 * 2**10 * 53 bins, whatever comes in.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from compare.replay.histogram import Histogram

DIGITS = 11  # binary digits of a value that are kept
SMALL = 1 << DIGITS  # below it every value is its own bin

Int64s = npt.NDArray[np.int64]


def edges_of(values: Int64s) -> Int64s:
    """The edge of each value's bin: the value of least magnitude in it."""
    magnitude = np.abs(values)
    # The exponent of a double is the number of digits; beyond 2**53 it may be rounded up, on every
    # machine alike.
    digits = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(digits - DIGITS, 0)
    return np.asarray(np.sign(values) * (magnitude >> shift << shift))


class Sketch:
    """The distribution of some values: its bins' edges and counts, and the least and greatest
    value.
    """

    def __init__(self) -> None:
        self._bins = Histogram()
        self.least: int | None = None
        self.greatest: int | None = None

    @property
    def edges(self) -> Int64s:
        """Ascending; of the bins that are not empty."""
        return self._bins.values

    @property
    def counts(self) -> Int64s:
        """How many values each bin holds."""
        return self._bins.counts

    def add(self, values: Int64s) -> None:
        """Count values. O(n), or O(n log n) if one has a magnitude of SMALL or more."""
        if not values.size:
            return
        least, greatest = int(values.min()), int(values.max())
        self._extend(least, greatest)
        if least == greatest and abs(least) < SMALL:  # as from a timer that is never early or late
            self._bins.merge(values[:1], np.array([values.size]))
        elif least > -SMALL and greatest < SMALL:
            counts = np.bincount(values - least)
            filled = np.flatnonzero(counts)
            self._bins.merge(filled + least, counts[filled])
        else:
            self._bins.add(edges_of(values))

    def merge(self, edges: Int64s, counts: Int64s, least: int | None, greatest: int | None) -> None:
        """Add another sketch's bins."""
        if least is not None and greatest is not None:
            self._extend(least, greatest)
            self._bins.merge(edges, counts)

    def quantiles(self, shares: Iterable[float]) -> list[int | None]:
        """For each share in (0, 1]: the least value that so many are not above; None where there
        are no values.

        It is the edge of that value's bin, kept within the least and the greatest value.
        """
        if self.least is None or self.greatest is None:
            return [None for _ in shares]
        up_to = np.cumsum(self.counts)
        ranks = [max(int(np.ceil(share * up_to[-1])), 1) for share in shares]
        found = self.edges[np.searchsorted(up_to, ranks)].tolist()
        return [min(max(edge, self.least), self.greatest) for edge in found]

    def _extend(self, least: int, greatest: int) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)
