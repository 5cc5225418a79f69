"""Ids of timers: assigned and recycled.

The id that was freed first is reused first; a new one is created only if none is free. So the id
space is as large as the number of ids that were in use at once.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections import deque

import numpy as np
import numpy.typing as npt

from timers.kernels.jit import long_entry


class Ids:
    """The free ids, and the number of ids that exist: `id_space`."""

    def __init__(self) -> None:
        self.id_space = 0
        self._free: deque[int] = deque()

    def take(self) -> int:
        """Return an id for a start."""
        if self._free:
            return self._free.popleft()
        self.id_space += 1
        return self.id_space - 1

    def release(self, identity: int) -> None:
        """Free an id."""
        self._free.append(identity)

    def assign(
        self,
        ids: npt.NDArray[np.int32],
        starting: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        leaving: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> None:
        """Fill in the ids of the members `starting`, and free those of the members `leaving`.

        `ids` holds the id of each member. `starts` and `ends` are the times of both, ascending; at
        the same time, starts come first. O(starts + ends + free ids).
        """
        free = np.fromiter(self._free, np.int32, len(self._free))
        taken, self.id_space = _assign(ids, starting, starts, leaving, ends, free, self.id_space)
        self._free = deque(np.concatenate([free, ids[leaving]])[taken:].tolist())


@long_entry
def _assign(ids, starting, starts, leaving, ends, free, id_space):
    """Return how many ids were reused: first free ones, then those of leaving members."""
    taken = 0
    for k in range(starting.size):
        ended = taken - free.size
        if ended < 0:
            ids[starting[k]] = free[taken]
            taken += 1
        elif ended < ends.size and ends[ended] < starts[k]:
            ids[starting[k]] = ids[leaving[ended]]
            taken += 1
        else:
            ids[starting[k]] = id_space
            id_space += 1
    return taken, id_space
