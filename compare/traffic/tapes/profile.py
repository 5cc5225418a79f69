"""A tape's course: how many timers are pending over time, what the operations do, and how far away
the deadlines are. A random sequence may be degenerate, and this shows it.

Timers are taken to be exact.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.base import formats
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape
from timers.kernels.jit import long_entry
from timers.kernels.operations import NONE

LONGEST = 10**7  # operations; commands do not describe longer tapes
TENTHS = 10
LEVEL_BITS = 8  # a level of the cascading wheel spans this many binary digits of a delay


@dataclass(frozen=True)
class Profile:
    """What the operations of a tape do."""

    pending: Sequence[int]  #: at each tenth of the time, from the first operation to the last
    shares: dict[str, float]  #: of starts, cancels, re-arms, and operations that come too late
    levels: Sequence[float]  #: the share of armings in each level of a wheel with 256 slots each

    def lines(self) -> dict[str, str]:
        """Texts by label."""
        levels = (
            f"{formats.share(share)} in level {level}"
            for level, share in enumerate(self.levels, 1)
            if share
        )
        return {
            "over time": f"{', '.join(map(formats.count, self.pending))} pending, in tenths",
            "shares": ", ".join(
                f"{formats.share(share)} {name}" for name, share in self.shares.items() if share
            ),
            "delays": f"{', '.join(levels) or 'none'}, of wheels with 256 slots each",
        }


def profile(tape: Tape, id_space: int) -> Profile:
    """Describe a valid tape that has operations. O(n log n)."""
    ends = np.full(tape.time.size, NONE, np.int64)
    kinds = np.zeros(tape.time.size, np.int8)
    _follow(*tape, np.full(id_space, NONE, np.int64), ends, kinds)
    armed = ends != NONE
    moments = np.linspace(tape.time[0], tape.time[-1], TENTHS + 1).astype(np.int64)
    begun, ended = (
        np.searchsorted(np.sort(times[armed]), moments, side="right") for times in (tape.time, ends)
    )
    counts = np.bincount(kinds, minlength=len(_KINDS)) / tape.time.size
    delays = np.maximum(tape.deadline[armed] - tape.time[armed], 1)
    digits = np.frexp(delays.astype(np.float64))[1]
    levels = np.bincount((digits - 1) // LEVEL_BITS) / max(delays.size, 1)
    return Profile(
        (begun - ended).tolist(), dict(zip(_KINDS, counts.tolist(), strict=True)), levels.tolist()
    )


_KINDS = ("starts", "cancels", "re-arms", "too late")
_TOO_LATE = 3


@long_entry
def _follow(time, op, ids, deadline, latest, ends, kinds):
    """Set `ends` to when each armed timer ends, and `kinds` to what each operation does.

    `latest` has the operation that last armed each id.
    """
    for k in range(time.size):
        i, now = ids[k], time[k]
        before = latest[i]
        is_pending = before != NONE and ends[before] > now
        kind = op[k]
        if kind == ARM:
            kind = REARM if is_pending else START
        if kind in (CANCEL, REARM):
            if is_pending:
                ends[before] = now
            else:
                kind = _TOO_LATE
        kinds[k] = kind
        if kind in (START, REARM):
            ends[k] = max(deadline[k], now)
            latest[i] = k
