"""Each scheme is that scheme: kernels and plain references of the originals agree on places and on
costs.

On random tapes, after every operation, the place of each pending timer (level, slot, rounds, index,
bucket) and every cost counter of the kernel equal those of the reference of its name.
"""

from random import Random
from typing import Any

import numpy as np
import pytest

from compare.trial.peers.conformance import assert_fired
from compare.trial.peers.model import Row
from tests.references import REFERENCES
from tests.references.common import Armed
from tests.timers.cases import CASES, Case, advance_into
from timers.kernels import dispatch
from timers.limits import LIMIT
from timers.protocol import Expired
from timers.registry import names, timer_class
from timers.traits import Parameters

STARTS = (0, 5, 255, 2**31 - 7, 2**40 - 300, 2**62, LIMIT - 3000)
STEPS = 250
MOST_PENDING = 30
LEVELS = 6  # whose edges are tried: past the reach of the cascading wheel, and more on the others

REFERRED = [case for case in CASES if case.name in REFERENCES]


class Tape:
    """Random operations, one after the other, whatever they are done to."""

    def __init__(self, parameters: Parameters, start: int, seed: int) -> None:
        self.random = Random(f"{seed} {start}")
        self.now = start
        self.tick, self.wheel_size = parameters.get("tick", 1), parameters.get("wheel_size", 256)

    def operation(self, pending: int) -> str:
        if not pending:
            return "schedule"
        weights = (50, 10, 15, 25) if pending <= MOST_PENDING else (10, 40, 10, 40)
        return self.random.choices(("schedule", "cancel", "reschedule", "advance"), weights)[0]

    def width(self) -> int:
        """A power of the wheel size, of a level or just a power of two."""
        return self.tick * max(self.wheel_size, 2) ** self.random.randrange(LEVELS)

    def deadline(self) -> int:
        kind, random = self.random.random(), self.random
        if kind < 0.4:
            moment = self.now + random.randint(-5, 3 * self.tick * self.wheel_size)
        elif kind < 0.6:
            moment = self.now + self.width() + random.randint(-1, 1)
        elif kind < 0.85:
            width = self.width()
            turns = random.choice((1, 1, 2, random.randint(1, self.wheel_size)))
            moment = (self.now // width + turns) * width + random.randint(-1, 1)
        elif kind < 0.98:
            moment = self.now + 2 ** random.randint(0, 62)
        else:
            moment = LIMIT
        return min(max(moment, 0), LIMIT)

    def later(self, deadlines: list[int]) -> int:
        """Where to advance to: mostly near, often around a deadline, seldom very far."""
        kind, random = self.random.random(), self.random
        if kind < 0.3:
            moment = self.now + random.choice((0, 1, 1, 2, 3, 9))
        elif kind < 0.5:
            moment = self.now + random.randint(0, self.tick * self.wheel_size)
        elif kind < 0.85:
            early = sorted(deadlines)[:3]
            moment = random.choice(early) + random.randint(-1, 1) * random.choice((1, self.tick))
        elif kind < 0.95:
            width = self.width()
            moment = (self.now // width + 1) * width + random.randint(-1, 1)
        else:
            moment = self.now + 2 ** random.randint(8, 44)
        self.now = min(max(moment, self.now), LIMIT)
        return self.now


class Twins:
    """A case's timer and the reference of the same name, which get the same operations."""

    def __init__(self, case: Case, start: int, seed: int) -> None:
        self.timer: Any = case(start=start, capacity=2, counting=True)
        self.reference = REFERENCES[case.name](case.parameters, start)
        self.tape = Tape(case.parameters, start, seed)
        self.pending: dict[int, Armed] = {}

    def run(self) -> None:
        for _ in range(STEPS):
            getattr(self, self.tape.operation(len(self.pending)))()
            self.agree()

    def schedule(self) -> None:
        deadline = self.tape.deadline()
        handle = self.timer.schedule(deadline)
        self.pending[handle] = self.reference.schedule(deadline)
        self.pending[handle].handle = handle

    def cancel(self) -> None:
        handle = self.pick()
        assert self.timer.cancel(handle)
        self.reference.cancel(self.pending.pop(handle))

    def reschedule(self) -> None:
        handle, deadline = self.pick(), self.tape.deadline()
        assert self.timer.reschedule(handle, deadline)
        self.reference.reschedule(self.pending[handle], deadline)

    def advance(self) -> None:
        """The timer stops whenever a buffer is full, and goes on within the same unit."""
        now = self.tape.later([timer.deadline for timer in self.pending.values()])
        rows, parts, done = self.tape.random.choice((1, 2, 7, 1000)), [], False
        while not done:
            part, done = advance_into(self.timer, now, rows)
            if not done:
                assert part.size == rows
                assert self.timer.now == part["fired_at"][-1]
                self.timer.check()
            for handle in part["handle"].tolist():
                del self.pending[handle]
            parts.append(part)
        fired = np.concatenate(parts)
        expected = [
            Row(timer.handle, timer.deadline, moment)
            for timer, moment in self.reference.advance(now)
        ]
        columns = (fired[name] for name in ("handle", "deadline", "fired_at"))
        assert_fired(Expired(*columns), expected, self.timer.traits)

    def pick(self) -> int:
        return self.tape.random.choice(list(self.pending))

    def agree(self) -> None:
        assert dispatch.due(self.timer.state) == self.reference.has_due()
        places = self.timer.snapshot().places()
        assert {timer.handle: place for timer, place in places} == {
            handle: self.reference.place(timer) for handle, timer in self.pending.items()
        }
        assert self.timer.counters == self.reference.counters


@pytest.mark.parametrize("case", REFERRED, ids=str)
def test_kernel_files_each_timer_where_the_original_does_and_counts_the_same_costs(
    case: Case,
) -> None:
    for start in STARTS:
        for seed in range(2):
            Twins(case, start, seed).run()


def test_each_reference_is_that_of_a_registered_timer() -> None:
    assert set(names()) >= set(REFERENCES)


# ---- the timer without a kernel


def test_heapq_delay_queue_compacts_when_most_entries_are_stale() -> None:
    timer = timer_class("heapq-delay-queue")()
    handles = timer.schedule_many(range(1000)).tolist()
    full = timer.nbytes
    timer.cancel_many(handles[10:])
    timer.advance(0)
    few = timer.nbytes
    assert few < full / 2
    for k in range(10_000):
        timer.reschedule(handles[k % 10], k + 100)
        timer.advance(k)
        assert timer.nbytes <= few + 100 * 200  # at most twice as many entries as timers, or 64
    timer.check()
