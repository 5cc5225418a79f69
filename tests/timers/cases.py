"""Which timers the tests run on: every one of the registry, with several geometries each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compare.trial.peers import conformance
from compare.trial.peers.conformance import advance_model, rotation_of, rows_of
from compare.trial.peers.model import Model, Row
from timers.kernels import delay_queue, dispatch
from timers.kernels.dispatch import ARRIVED, FILLED
from timers.kernels.handles import LAST_GENERATION
from timers.kernels.pool import BASE, EXPIRY
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.registry import names, timer_class
from timers.rounding import AnyRounding
from timers.schemes.base import KernelTimer
from timers.snapshot import Snapshot
from timers.traits import Parameters, Traits

# Beside the defaults: the smallest geometries, sizes that are no powers of two, and ticks that do
# not divide anything. A timer that is not listed here is tested with its defaults.
GEOMETRIES: dict[str, list[dict[str, int]]] = {
    "simple-wheel": [{"wheel_size": 1}, {"wheel_size": 2}, {"wheel_size": 8}],
    "hashed-wheel": [
        {"tick": 1, "wheel_size": 8},
        {"tick": 1, "wheel_size": 1},
        {"tick": 10, "wheel_size": 6},
    ],
    "sorted-hashed-wheel": [{"wheel_size": 1}, {"wheel_size": 6}],
    "hierarchical-wheel": [
        {"tick": 1, "wheel_size": 2},
        {"tick": 200, "wheel_size": 20},
        {"tick": 7, "wheel_size": 3},
    ],
}

# Ticks around the edges of 32-bit arithmetic and near the end of the range, where a rotation no
# longer fits into it.
EXTREMES = {
    "hashed-wheel": [{"tick": 2**31 - 1, "wheel_size": 3}, {"tick": LIMIT, "wheel_size": 1}],
    "hierarchical-wheel": [
        {"tick": 2**31, "wheel_size": 5},
        {"tick": LIMIT // 7, "wheel_size": 7},
        {"tick": LIMIT, "wheel_size": 2},
    ],
}

STARTS = (0, 1, 255, 256, 2**31, 2**40, 2**62)
"""Clocks to begin at: zero, and where words and levels wrap."""


@dataclass(frozen=True)
class Case:
    """One timer with one geometry."""

    name: str
    parameters: Parameters = field(hash=False)

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(str, self.parameters.values()))})"

    def __call__(self, **keywords: Any) -> Timer:
        """A new timer; keywords as the constructor's (start, capacity, counting)."""
        timer: Timer = timer_class(self.name)(**self.parameters, **keywords)
        return timer

    @property
    def traits(self) -> Traits:
        traits: Traits = timer_class(self.name).traits
        return traits

    @property
    def rounding(self) -> AnyRounding:
        return self.traits.rounding(self.parameters)

    @property
    def has_kernel(self) -> bool:
        return issubclass(timer_class(self.name), KernelTimer)

    @property
    def rotation(self) -> int:
        return rotation_of(self.parameters)

    def due_at(self, deadline: int, armed_at: int) -> int:
        """When a timer must fire, by the scheme's closed form."""
        return self.rounding.due_at(deadline, armed_at)


def _cases() -> list[Case]:
    cases = []
    for name in names():
        defaults = timer_class(name).traits.defaults
        cases += [Case(name, parameters) for parameters in (defaults, *GEOMETRIES.get(name, []))]
    return cases


CASES = _cases()
"""Every timer with every geometry."""

EXTREME_CASES = [
    Case(name, parameters) for name in names() for parameters in EXTREMES.get(name, [])
]
"""Geometries that nobody would choose and everybody may."""

DEFAULTS = [case for case in CASES if case.parameters == case.traits.defaults]
"""Every timer once."""

BOUNDARY_CASES = list({case.name: case for case in CASES}.values())
"""Every timer once, with its last geometry: small wheels, so that the cases meet rotations and
cascades, and ticks that do not divide their moments.
"""

KERNELS = [case for case in DEFAULTS if case.has_kernel]


def check_snapshot(timer: Any, pending: Mapping[int, int]) -> None:
    """A snapshot holds exactly these timers and deadlines."""
    snapshot: Snapshot = timer.snapshot()
    assert snapshot.now == timer.now
    waiting = [timer for timer, _ in snapshot.places() if timer.pending]
    assert len(waiting) == len(pending)
    assert {timer.handle: timer.deadline for timer in waiting} == pending
    for ring in snapshot.rings:
        assert ring.current == snapshot.now // ring.tick % ring.size
        assert all(0 <= slot < ring.size and timers for slot, timers in ring.slots.items())
    deadlines = [waiting.deadline for waiting in snapshot.heap or ()]
    expirations = [bucket.expiration for bucket in snapshot.queue or ()]
    for heap, arity in ((deadlines, snapshot.arity), (expirations, 2)):
        assert all(heap[(k - 1) // arity] <= heap[k] for k in range(1, len(heap)))
    if snapshot.queue is not None:
        queued = {(bucket.level, bucket.slot) for bucket in snapshot.queue}
        assert queued >= {(ring.level, slot) for ring in snapshot.rings for slot in ring.slots}


def advance_into(timer: Any, now: int, rows: int) -> tuple[np.ndarray, bool]:
    """A kernel's own advance with a buffer of so many rows: what it filled, and whether it is done.

    Private: through the entry that the timer calls, which is cached on disk; `dispatch.advance`
    itself would be compiled anew.
    """
    out = np.zeros(1 + rows, EXPIRY)
    outcome = timer._call.advance(*timer.state, now, out)
    return out[1 : 1 + out[0][FILLED]], outcome == ARRIVED


def age(timer: Any, uses: int) -> None:
    """Leave the places of an unused kernel timer so many more uses than one before they are
    retired.

    And a heap some armings before it numbers its entries anew.
    """
    nodes, base = timer.state.nodes, timer.state.cells[BASE]
    nodes["generation"][base:] = LAST_GENERATION - uses
    if isinstance(timer.state, delay_queue.DelayQueueState):
        timer.state.cells[delay_queue.SEQUENCE] = delay_queue.LAST_SEQUENCE - 9 * uses


def agree(timer: Any, model: Model) -> None:
    """What can be asked of a timer agrees with the model; for a kernel, also whether it is due."""
    conformance.agree(timer, model)
    if isinstance(timer, KernelTimer):
        assert dispatch.due(timer.state) == (model.next_expiry() == model.now)


class Pair:
    """A timer and the model beside it: each operation runs on both, and both must agree."""

    def __init__(self, case: Case, start: int = 0, **keywords: Any) -> None:
        self.case = case
        self.timer = case(start=start, **keywords)
        self.model = Model(case.traits, case.parameters, start)

    def schedule(self, deadline: int) -> int:
        handle = self.timer.schedule(deadline)
        self.model.schedule(deadline, handle)
        return handle

    def schedule_after(self, delay: int) -> int:
        handle = self.timer.schedule_after(delay)
        self.model.schedule_after(delay, handle)
        return handle

    def cancel(self, handle: int) -> bool:
        cancelled = self.timer.cancel(handle)
        assert cancelled is self.model.cancel(handle)
        return cancelled

    def reschedule(self, handle: int, deadline: int) -> bool:
        rescheduled = self.timer.reschedule(handle, deadline)
        assert rescheduled is self.model.reschedule(handle, deadline)
        return rescheduled

    def advance(self, now: int, limit: int | None = None) -> list[Row]:
        """Advance both, compare, and return the timer's rows."""
        rows = self.advance_unchecked(now, limit)
        self.agree()
        return rows

    def advance_unchecked(self, now: int, limit: int | None = None) -> list[Row]:
        """`advance` without a look at the timer's inside: for steps by the thousand."""
        expired = self.timer.advance(now, limit)
        advance_model(self.model, now, limit, expired, self.case.traits)
        return rows_of(expired)

    def finish(self) -> list[Row]:
        """Advance to the last moment: everything must fire."""
        rows = self.advance(LIMIT)
        assert len(self.timer) == 0
        return rows

    def agree(self) -> None:
        """What can be asked of the timer agrees with the model."""
        agree(self.timer, self.model)
