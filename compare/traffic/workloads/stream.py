"""The random numbers of workloads, and the times at which members arrive."""

import numpy as np
import numpy.typing as npt

from compare.traffic.workloads.variates import Floats
from timers.arrays import Int64s

BLOCK = 1 << 12
"""Members of a block: enough for NumPy to be fast, few enough to fit in memory."""

ARRIVAL, DELAY, CHOICE, LENGTH, GAP = range(5)
"""The purposes of streams."""


class Stream:
    """The random numbers of one block: a pure function of (seed, shard, block, purpose)."""

    def __init__(self, seed: int, shard: int, block: int) -> None:
        self._key, self._block = np.array([seed, shard], np.uint64), block

    def raw(self, purpose: int, size: int) -> npt.NDArray[np.uint64]:
        """Return 64-bit words of the generator."""
        # The lowest word of the counter counts within a stream; the others identify the stream.
        counter = np.array([0, self._block, purpose, 0], np.uint64)
        return np.random.Philox(key=self._key, counter=counter).random_raw(size)

    def uniform(self, purpose: int, size: int) -> Floats:
        """Return doubles in the open interval (0, 1), multiples of 2**-53."""
        # 52 random bits and a half are exact; 53 and a half could round to 1.
        bits = self.raw(purpose, size) >> np.uint64(12)
        return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)

    def arrivals(self, span: float, later: int = 0) -> Int64s:
        """Return when the members of this block arrive, or of one that comes `later` blocks later.

        A block takes `span` units, and its arrivals are Poisson, conditioned on BLOCK of them.
        """
        seed, shard = self._key.tolist()
        number = self._block + later
        within = np.sort(Stream(seed, shard, number).uniform(ARRIVAL, BLOCK))
        return np.asarray(((float(number) + within) * span).astype(np.int64))
