"""Ids of timers, given out and recycled.

The id that was freed first is given out first; a new one only where none is free. So the id space
is as large as the number of ids that were in use at once.
"""

# ruff: noqa: ANN001, ANN201, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np
import numpy.typing as npt

from timers.kernels.jit import entry, jit

_FIRST, _COUNT, _ID_SPACE = range(3)
"""Cells of `state`: the place of the first free id, how many are free, and how many ids exist."""

_SMALLEST = 1 << 10


class Ids:
    """The free ids, in a ring (int32; its size is a power of two), and its `state` (int64)."""

    def __init__(self) -> None:
        self.ring = np.empty(_SMALLEST, np.int32)
        self.state = np.zeros(3, np.int64)

    @property
    def id_space(self) -> int:
        """How many ids exist."""
        return int(self.state[_ID_SPACE])

    def reserve(self, starts: int) -> None:
        """Make room for the ids of so many further starts. Amortised O(1) for each."""
        needed = self.id_space + starts
        if needed > self.ring.size:
            first, count = self.state[_FIRST], self.state[_COUNT]
            ring = np.empty(1 << (needed - 1).bit_length(), np.int32)
            ring[:count] = np.roll(self.ring, -first)[:count]
            self.ring, self.state[_FIRST] = ring, 0

    def take(self) -> int:
        """An id for a start."""
        self.reserve(1)
        return int(_take_one(self.ring, self.state))

    def release(self, identity: int) -> None:
        """Free an id."""
        _release_one(self.ring, self.state, identity)

    def assign(
        self,
        ids: npt.NDArray[np.int32],
        member: npt.NDArray[np.intp],
        is_start: npt.NDArray[np.bool_],
    ) -> None:
        """Go through events in order: event k is the start of `member[k]`, or frees its id.

        `ids` holds the id of each member, and is filled in for those that start. O(events).
        """
        self.reserve(int(np.count_nonzero(is_start)))
        _assign(ids, member, is_start, self.ring, self.state)


@jit
def take_id(ring, state):
    """An id for a start; there is room for it."""
    if state[_COUNT] == 0:
        state[_ID_SPACE] += 1
        return state[_ID_SPACE] - 1
    identity = ring[state[_FIRST]]
    state[_FIRST] = (state[_FIRST] + 1) & (ring.size - 1)
    state[_COUNT] -= 1
    return np.int64(identity)


@jit
def release_id(ring, state, identity):
    """Free an id."""
    ring[(state[_FIRST] + state[_COUNT]) & (ring.size - 1)] = identity
    state[_COUNT] += 1


@entry
def _take_one(ring, state):
    return take_id(ring, state)


@entry
def _release_one(ring, state, identity):
    release_id(ring, state, identity)


@entry
def _assign(ids, member, is_start, ring, state):
    for k in range(member.size):
        if is_start[k]:
            ids[member[k]] = take_id(ring, state)
        else:
            release_id(ring, state, ids[member[k]])
