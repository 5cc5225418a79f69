"""A program that makes random calls, on clocks that it moves, and says what it did; the trace must
say exactly the same.
"""

import asyncio
import sched
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.recording import record
from compare.traffic.tapes.tape import CANCEL, REARM, START
from compare.traffic.tapes.trace import open_trace
from timers import DelayQueue
from timers.services import ManualClock, SystemTimer, wheel_event_loop

BEGIN = 123_456_789_123
"""The clock when the recording begins, in nanoseconds."""
BEHIND = 100.0
"""Seconds by which the clocks of the loop and of the scheduler are behind that of the recorder."""
NEVER_S = 3600.0
"""Seconds for which threads wait in real time; the programs cancel them."""


@dataclass
class Pending:
    """What the model knows of a timer."""

    deadline: int
    id: int | None = None  # what the trace calls it


class Program:
    """Makes calls, and keeps what the trace should say of them: (time, op, timer, deadline)."""

    def __init__(self, on_a_wheel):
        self.clock = ManualClock()
        self.clock.advance(BEGIN / 1e9)
        clock = self.clock

        class Loop(asyncio.SelectorEventLoop):
            def time(self):
                return clock.now() / 1e9 - BEHIND

        self.loop = wheel_event_loop(base=Loop)() if on_a_wheel else Loop()
        self.service = SystemTimer(DelayQueue(), clock=self.clock)
        self.scheduler = sched.scheduler(lambda: clock.now() / 1e9 - BEHIND)
        self.timers, self.rows = [], []

    def seconds(self):
        return self.clock.now() / 1e9

    def started(self, handle, delay):
        self.timers.append((handle, Pending(0)))
        self.set(START, self.timers[-1][1], delay)

    def set(self, op, timer, delay):
        timer.deadline = self.clock.now() + delay
        self.rows.append((self.clock.now(), op, timer, timer.deadline))

    def run(self, actions):
        for name, which, nanoseconds in actions:
            getattr(self, name)(which, nanoseconds)

    # Actions

    def call_later(self, which, delay):
        self.started(self.loop.call_later(delay / 1e9, int), delay)

    def call_at(self, which, delay):
        self.started(self.loop.call_at(self.loop.time() + delay / 1e9 - 1, int), delay - 10**9)

    def schedule_after(self, which, delay):
        self.started(self.service.schedule_after(delay / 1e9, int), delay)

    def schedule_at(self, which, delay):
        self.started(self.service.schedule_at(self.seconds() + delay / 1e9, int), delay)

    def enter(self, which, delay):
        self.started(self.scheduler.enter(delay / 1e9, 0, int), delay)

    def thread(self, which, delay):
        timer = threading.Timer(NEVER_S, int)
        timer.start()
        self.started(timer, int(NEVER_S * 1e9))

    def cancel(self, which, delay):
        if not self.timers:
            return
        handle, timer = self.timers[which % len(self.timers)]
        with suppress(ValueError):  # an event that the scheduler has run
            if isinstance(handle, sched.Event):
                self.scheduler.cancel(handle)
            else:
                handle.cancel()
        if timer.deadline > self.clock.now():
            self.rows.append((self.clock.now(), CANCEL, timer, 0))
        timer.deadline = -1  # a second cancel is none

    def reschedule(self, which, delay):
        calls = [pair for pair in self.timers if hasattr(pair[0], "reschedule")]
        if calls:
            call, timer = calls[which % len(calls)]
            late = timer.deadline <= self.clock.now()
            if delay % 2:
                moved = call.reschedule_after(delay / 1e9)
            else:
                moved = call.reschedule(self.seconds() + delay / 1e9)
            if moved:
                self.set(START if late else REARM, timer, delay)

    def advance(self, which, span):
        self.clock.advance(span / 1e9)
        self.scheduler.run(blocking=False)
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def close(self):
        for handle, _ in self.timers:
            if isinstance(handle, threading.Timer):
                handle.cancel()
        self.service.close()
        self.loop.close()


ACTIONS = [name for name in vars(Program) if name not in ("seconds", "started", "set", "run")]
ACTIONS = [name for name in ACTIONS if not name.startswith("_") and name != "close"]
NANOSECONDS = st.one_of(
    st.integers(0, 3000),  # within a few units
    st.sampled_from([0, 999, 1000, 1001, 500_000, 10**6, 3 * 10**9]),
    st.integers(0, 4 * 10**9),
)


@pytest.mark.parametrize("on_a_wheel", [False, True], ids=["asyncio", "wheel"])
@given(actions=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99), NANOSECONDS)))
def test_the_trace_says_what_the_program_did(on_a_wheel, actions):
    program = Program(on_a_wheel)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "some.trace")
        try:
            with record(path, clock=program.seconds):
                program.run(actions)
        finally:
            program.close()
        trace = open_trace(path)
        tape = trace.load()
    pending, largest = {}, 0
    for row, (time, op, timer, deadline) in zip(
        zip(*(column.tolist() for column in tape), strict=True), program.rows, strict=True
    ):
        if op == START:
            timer.id = row[2]
        due = deadline - BEGIN
        moment = 0 if op == CANCEL else max(-(-due // 1000), 0)
        assert row == ((time - BEGIN) // 1000, op, timer.id, moment)
        pending = {i: other for i, other in pending.items() if other > time}
        if op == START:
            assert timer.id not in pending  # an id is free when its timer has been due
        if op == CANCEL:
            del pending[timer.id]
        else:
            pending[timer.id] = deadline
        largest = max(largest, len(pending))
    assert trace.unit == "us"
    assert trace.totals["id_space"] == largest
