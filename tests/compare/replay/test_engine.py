import numpy as np
import pytest
from hypothesis import given, settings

import compare.replay.engine
from compare.bench.contestant import contestant
from compare.bench.sources import digest_of
from compare.oracle.compiled import check_agreement, expect
from compare.replay.engine import (
    MOST_IDLE,
    Replay,
    ReplayError,
    first_time,
    has_kernel,
    lateness_of,
    replay,
)
from compare.replay.lateness import Lateness
from compare.replay.outcome import NUMBERS
from compare.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.workloads.catalogue import WORKLOADS, make
from tests.compare.small_tapes import tape_of, tapes
from timers import HeapqDelayQueue
from timers.protocol import Expired
from timers.registry import names

TIMERS = [
    *((name, {}) for name in names()),
    ("hashed-wheel", {"tick": 1, "wheel_size": 7}),
    ("hierarchical-wheel", {"tick": 7, "wheel_size": 3}),
]
COMPILED = [(name, parameters) for name, parameters in TIMERS if name != "heapq-delay-queue"]
MADE = {name: make(name, operations=1500, seed=11) for name in WORKLOADS}


class Plain:
    """A timer that hides its kernel: whoever replays through it must call its methods."""

    def __init__(self, timer):
        self._timer = timer

    def __getattr__(self, name):
        if name in ("state", "counters"):
            raise AttributeError(name)
        return getattr(self._timer, name)

    def __len__(self):
        return len(self._timer)


def run(name, parameters, tape, *, drain=True, plain=False, counting=False) -> Replay:
    timer = contestant(name, parameters).new(first_time(tape), 4, counting=counting)
    return replay(Plain(timer) if plain else timer, tape, id_space_of(tape), drain_timer=drain)


def counts(done: Replay, *varies: str) -> dict[str, int]:
    """All that two replays must have in common; `nbytes` depends on the room that is reserved."""
    left_out = ("seconds", "nbytes", *varies)
    return {name: getattr(done.outcome, name) for name in NUMBERS if name not in left_out}


@pytest.mark.parametrize("drain", [True, False], ids=["drained", "not-drained"])
@pytest.mark.parametrize("workload", MADE)
@pytest.mark.parametrize(("name", "parameters"), TIMERS, ids=str)
def test_every_timer_does_what_the_oracle_expects_of_every_workload(
    name, parameters, workload, drain
):
    timer = contestant(name, parameters)
    tape, id_space = MADE[workload].tape, MADE[workload].id_space
    done = run(name, parameters, tape, drain=drain)
    expected = expect(tape, id_space, timer.rounding, drained=drain)
    check_agreement(name, timer.traits, tape, expected, done)
    outcome = done.outcome
    assert outcome.scheduled == outcome.cancelled + outcome.fired + outcome.pending
    assert outcome.fired == done.fired.size
    if drain:
        assert outcome.pending == 0
        assert outcome.fired > 0
    late = lateness_of(tape, done.fired)
    lowest, highest = timer.traits.rounding(timer.parameters).bounds()
    assert np.all((lowest <= late) & (late <= highest))
    assert outcome.lateness == Lateness.of(late)


@pytest.mark.parametrize("drain", [True, False], ids=["drained", "not-drained"])
@pytest.mark.parametrize(("name", "parameters"), TIMERS, ids=str)
@settings(max_examples=60)
@given(tape=tapes())
def test_every_timer_does_what_the_oracle_expects_of_any_tape(name, parameters, drain, tape):
    timer = contestant(name, parameters)
    expected = expect(tape, id_space_of(tape), timer.rounding, drained=drain)
    check_agreement(name, timer.traits, tape, expected, run(name, parameters, tape, drain=drain))


@pytest.mark.parametrize("drain", [True, False], ids=["drained", "not-drained"])
@pytest.mark.parametrize(("name", "parameters"), COMPILED, ids=str)
@settings(max_examples=40)
@given(tape=tapes())
def test_the_python_loop_and_the_compiled_one_do_the_same(name, parameters, drain, tape):
    compiled = run(name, parameters, tape, drain=drain)
    plain = run(name, parameters, tape, drain=drain, plain=True)
    assert compiled.fired.tolist() == plain.fired.tolist()
    assert counts(compiled) == counts(plain)


@pytest.mark.parametrize(("name", "parameters"), COMPILED, ids=str)
def test_counting_changes_no_row_and_counts_the_same_every_time(name, parameters):
    tape = MADE["keepalive"].tape
    counted, again = (run(name, parameters, tape, counting=True) for _ in range(2))
    assert counted.outcome.counters == again.outcome.counters
    assert sum(counted.outcome.counters.values()) > 0
    silent = run(name, parameters, tape)
    assert silent.outcome.counters is None
    assert digest_of(silent) == digest_of(counted)
    assert counts(silent) == counts(counted)


@pytest.mark.parametrize(("name", "parameters"), COMPILED, ids=str)
def test_how_much_is_done_at_a_time_changes_nothing(name, parameters, monkeypatch):
    tape = MADE["lognormal-high"].tape
    whole = run(name, parameters, tape, counting=True)
    monkeypatch.setattr(compare.replay.engine, "OPERATIONS_AT_ONCE", 13)
    monkeypatch.setattr(compare.replay.engine, "FIRED_AT_ONCE", 3)
    pieces = run(name, parameters, tape, counting=True)
    assert whole.fired.tolist() == pieces.fired.tolist()
    varies = "wakeups", "idle_wakeups"  # an advance that finds no room is counted again
    assert counts(whole, *varies) == counts(pieces, *varies)
    assert whole.outcome.counters == pieces.outcome.counters


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "python-loop"])
def test_operations_of_one_time_take_their_turns(plain):
    tape = tape_of(
        (5, START, 0, 3),  # overdue: the next operation, at the same time, finds it fired
        (5, CANCEL, 0, 0),
        (5, START, 1, 10),
        (10, CANCEL, 1, 0),  # it fires now, so this comes too late
        (10, ARM, 1, 12),  # and this starts a new one
        (11, REARM, 1, 13),
        (11, START, 1, 15),  # the former holder of the id still fires
        (12, CANCEL, 1, 0),
    )
    done = run("delay-queue", {}, tape, plain=plain)
    assert done.fired.tolist() == [(0, 3, 5), (2, 10, 10), (5, 13, 13)]
    outcome = done.outcome
    assert (outcome.operations, outcome.scheduled, outcome.cancelled) == (8, 4, 1)
    assert (outcome.rescheduled, outcome.fired, outcome.pending) == (1, 3, 0)
    assert (outcome.lateness.min, outcome.lateness.median, outcome.lateness.max) == (0, 0.0, 0)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "python-loop"])
def test_an_empty_tape_fires_nothing(plain):
    done = run("hierarchical-wheel", {}, tape_of(), plain=plain)
    assert set(counts(done).values()) == {0}
    assert done.outcome.lateness == Lateness()


def test_a_far_deadline_is_drained_in_few_wakeups():
    tape = tape_of((0, START, 0, 2**62))
    for plain in (False, True):
        done = run("hashed-wheel", {"tick": 1, "wheel_size": 1}, tape, plain=plain)
        assert done.fired["fired_at"].tolist() == [2**62 + 1]
        assert done.outcome.wakeups <= MOST_IDLE + 2


def test_a_timer_with_a_kernel_is_known_by_its_state():
    assert not has_kernel(Plain(contestant("delay-queue").new()))
    stateful = HeapqDelayQueue()
    stateful.state = "running"  # somebody's own attribute
    assert not has_kernel(stateful)
    assert has_kernel(contestant("delay-queue").new())


class FiresTwice(HeapqDelayQueue):
    def advance(self, now):
        rows = super().advance(now)
        return Expired(*(np.repeat(column, 2) for column in rows))


class NeverWakes(HeapqDelayQueue):
    def next_wakeup(self):
        return None


class StandsStill(HeapqDelayQueue):
    def next_wakeup(self):
        return self.now

    next_expiry = next_wakeup


@pytest.mark.parametrize(
    ("timer", "says"),
    [
        (FiresTwice(), "FiresTwice fired handle 4294967296 at 5, which was not pending"),
        (NeverWakes(), "NeverWakes has 1 timers pending, but after 0 idle wake-ups"),
        (
            StandsStill(),
            f"StandsStill has 1 timers pending, but after {2 * MOST_IDLE + 1} idle wake-ups",
        ),
    ],
)
def test_a_timer_that_breaks_the_protocol_is_named(timer, says):
    with pytest.raises(ReplayError, match=says):
        replay(timer, tape_of((0, START, 0, 5)), 1)
