"""How many timers had each lateness."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from compare.replay.engine import Lateness

Int64s = npt.NDArray[np.int64]

MOST_BINS = 4096  # lateness values that are kept one by one; more than that are put into bins of equal width


class Histogram:
    """How many timers had each lateness; exact."""

    def __init__(self) -> None:
        self.values = np.empty(0, np.int64)  # ascending
        self.counts = np.empty(0, np.int64)

    def add(self, lateness: Int64s) -> None:
        """Count more timers. O(n log n)."""
        self.merge(*np.unique(lateness, return_counts=True))

    def merge(self, values: Int64s, counts: Int64s) -> None:
        """Add another histogram's values and counts."""
        joined, where = np.unique(np.concatenate([self.values, values]), return_inverse=True)
        totals = np.zeros(joined.size, np.int64)
        np.add.at(totals, where, np.concatenate([self.counts, counts]))
        self.values, self.counts = joined, totals

    def lateness(self) -> Lateness:
        """Least, median, greatest."""
        if not self.values.size:
            return Lateness(None, None, None)
        up_to = np.cumsum(self.counts)
        # The middle one, or the two around the middle.
        middle = np.searchsorted(up_to, [(up_to[-1] - 1) // 2, up_to[-1] // 2], side="right")
        low, high = (int(self.values[k]) for k in middle)
        return Lateness(int(self.values[0]), (low + high) / 2, int(self.values[-1]))

    def bins(self) -> Iterator[tuple[int, int, int]]:
        """(least value, width, timers) of each bin that is not empty, ascending; width 1 for up to
        MOST_BINS values.
        """
        values, counts, width = self.values, self.counts, 1
        if values.size > MOST_BINS:
            width = (int(values[-1]) - int(values[0])) // MOST_BINS + 1
            number = (values - values[0]) // width
            filled, first = np.unique(number, return_index=True)
            counts = np.add.reduceat(counts, first)
            values = values[0] + filled * width
        yield from zip(values.tolist(), [width] * values.size, counts.tolist(), strict=True)
