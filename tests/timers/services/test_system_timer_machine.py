"""A random user of a SystemTimer on a ManualClock, checked step by step against a naive model."""

# `_pending.timer` is private: the invariants of the timer are checked after each step.

from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.timers.services.cases import MS, TIMERS, Recorder, bounds_of
from timers import HierarchicalWheel
from timers.services import ManualClock, SystemTimer, calls, pending

# Fractions of a unit, whole units, and distances that use upper levels.
DELAYS = st.sampled_from([0, 1, MS // 3, MS - 1, MS, MS + 1, 2 * MS, 7 * MS, 40 * MS, 5000 * MS])
ACTIONS = ("nothing", "raise", "cancel", "reschedule", "reschedule self", "cancel self", "schedule")
MISSED = ("skip", "burst", "delay")


@dataclass
class Expected:
    """What the model knows of one call."""

    moment: int
    armed_at: int  # the clock
    period: int = 0
    missed: str = ""
    call: object = None
    pending: bool = True


class Machine(RuleBasedStateMachine):
    made = Bundle("calls")

    def __init__(self, timer):
        super().__init__()
        self.usual_batch = pending.BATCH
        pending.BATCH = calls.BATCH = 3  # callers often apply what was gathered
        self.clock = ManualClock()
        self.errors = Recorder()
        self.least, self.greatest = bounds_of(timer)
        self.timer = SystemTimer(timer, clock=self.clock, on_error=self.errors)
        self.raised = 0
        self.expected = []

    def unit(self, moment):
        return -(-moment // MS)

    def add(self, delay, schedule, action, other, period=0, missed=""):
        """What is expected of a call that is made by `schedule`."""
        now = self.clock.now()
        expected = Expected(now + delay, now, period, missed)
        expected.call = schedule(self.fire, expected, action, other)
        assert expected.call.when() == expected.moment / 1e9
        self.expected.append(expected)
        return expected

    def fire(self, expected, action, other):
        now = self.clock.now()
        assert expected.pending, "ran twice, or after it was cancelled"
        assert now // MS >= self.unit(expected.moment) + self.least, "ran early"
        for rest in self.expected:
            if rest.pending and rest.armed_at < now:  # due at an earlier stop
                due = self.unit(rest.moment) + self.greatest
                assert due >= min(self.unit(expected.moment), now // MS), "overtook another"
        if not expected.period:
            expected.pending = False
        before = expected.moment
        expected.armed_at = now
        try:
            self.act(expected, action, other)
        finally:
            if expected.period and expected.pending and expected.moment is before:
                skipped = max((now - before) // expected.period, 0)
                expected.moment = {
                    "burst": before + expected.period,
                    "delay": max(before, now) + expected.period,
                    "skip": before + expected.period * (skipped + 1),
                }[expected.missed]

    def act(self, expected, action, other):
        match action:
            case "raise":
                self.raised += 1
                raise ValueError("on purpose")
            case "cancel":
                self.cancel(other)
            case "reschedule":
                self.reschedule(other, 3 * MS)
            case "reschedule self":
                self.reschedule(expected, 40 * MS)
            case "cancel self":
                self.cancel(expected)
            case "schedule":
                self.add(MS, partial(self.timer.schedule_after, 0.001), "nothing", None)

    def cancel(self, expected):
        if expected is not None:
            assert expected.call.cancel() == expected.pending
            assert expected.call.done()
            expected.pending = False

    def reschedule(self, expected, delay):
        if expected is not None:
            assert expected.call.reschedule_after(delay / 1e9) == expected.pending
            if expected.pending:
                expected.moment = self.clock.now() + delay
                expected.armed_at = self.clock.now()
                assert expected.call.when() == expected.moment / 1e9

    @rule(
        target=made,
        delay=DELAYS,
        absolute=st.booleans(),
        action=st.sampled_from(ACTIONS),
        other=st.none() | made,
    )
    def schedule(self, delay, absolute, action, other):
        schedule = (
            partial(self.timer.schedule_at, (self.clock.now() + delay) / 1e9)
            if absolute
            else partial(self.timer.schedule_after, delay / 1e9)
        )
        return self.add(delay, schedule, action, other)

    @rule(
        target=made,
        period=st.sampled_from([MS // 2, MS, 3 * MS, 50 * MS]),
        missed=st.sampled_from(MISSED),
        action=st.sampled_from(ACTIONS),
        other=st.none() | made,
    )
    def schedule_every(self, period, missed, action, other):
        schedule = partial(self.timer.schedule_every, period / 1e9, missed=missed)
        return self.add(period, schedule, action, other, period, missed)

    @rule(expected=made)
    def cancel_one(self, expected):
        self.cancel(expected)

    @rule(expected=consumes(made))
    def cancel_for_good(self, expected):
        self.cancel(expected)

    @rule(expected=made, delay=DELAYS)
    def reschedule_one(self, expected, delay):
        self.reschedule(expected, delay)

    @rule(delay=st.sampled_from([0, 1, MS - 1, MS, 2 * MS, 10 * MS, 60 * MS]))
    def advance(self, delay):
        self.clock.advance(delay / 1e9)
        unit = self.clock.now() // MS
        for rest in self.expected:
            if rest.pending and rest.armed_at < self.clock.now():
                assert self.unit(rest.moment) + self.greatest > unit - 1, "did not run"
        assert len(self.errors.errors) == self.raised, self.errors.texts

    @invariant()
    def the_size_is_exact(self):
        assert self.timer.size == sum(expected.pending for expected in self.expected)

    def teardown(self):
        pending.BATCH = calls.BATCH = self.usual_batch
        self.timer._pending.timer.check()
        assert self.timer.close()
        assert self.timer.size == len(self.timer._pending.timer) == 0
        for expected in self.expected:
            assert expected.call.done()
            assert not expected.call.cancel()


FACTORIES = {**TIMERS, "hierarchical-wheel, tick 20": lambda: HierarchicalWheel(tick=20)}


@pytest.mark.parametrize("name", FACTORIES)
def test_it_agrees_with_the_model(name):
    run_state_machine_as_test(
        lambda: Machine(FACTORIES[name]()),
        settings=settings(max_examples=settings().max_examples // 8),
    )
