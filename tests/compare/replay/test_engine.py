import numpy as np
import pytest
from hypothesis import given, settings

import compare.replay.engine
from compare.bench.contestant import contestant
from compare.bench.sources import digest_of
from compare.oracle.compiled import check_agreement, expect
from compare.replay.engine import (
    PATIENCE,
    Buffers,
    Replay,
    ReplayError,
    first_time,
    has_kernel,
    lateness_of,
    loop_for,
    operations_of,
    replay,
)
from compare.replay.lateness import Lateness
from compare.replay.outcome import NUMBERS
from compare.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.workloads.catalogue import WORKLOADS, make
from tests.compare.clocks import COSTS, FakeClock, spend_in_compiled_code
from tests.compare.own_timers import Timed
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
    assert outcome.pending == 0 or not drain
    late = lateness_of(tape, done.fired)
    lowest, highest = timer.traits.rounding(timer.parameters).bounds()
    assert not late.size or lowest <= late.min() <= late.max() <= highest
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
    assert done.outcome.ns_per_operation >= 0.0


def test_a_far_deadline_is_drained_in_few_wakeups():
    tape = tape_of((0, START, 0, 2**62))
    for plain in (False, True):
        done = run("hashed-wheel", {"tick": 1, "wheel_size": 1}, tape, plain=plain)
        assert done.fired["fired_at"].tolist() == [2**62 + 1]
        assert done.outcome.wakeups <= PATIENCE + 2


def test_a_timer_with_a_kernel_is_known_by_its_state():
    assert not has_kernel(Plain(contestant("delay-queue").new()))
    stateful = HeapqDelayQueue()
    stateful.state = "running"  # somebody's own attribute
    assert not has_kernel(stateful)
    assert has_kernel(contestant("delay-queue").new())


# ---- what is timed


def pieces(tape, size):
    """The operations of a tape, some at a time."""
    return [
        operations_of(tape, k, min(k + size, len(tape.op))) for k in range(0, len(tape.op), size)
    ]


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by what `Timed` does, and by calls of compiled loops."""
    clock = FakeClock()
    monkeypatch.setattr(Timed, "clock", clock)
    monkeypatch.setattr(Timed, "factor", 1)
    return clock


def slow_take(clock, taken):
    def take(rows):
        clock.seconds += 10**6
        taken.append(rows.copy())

    return take


SHORT = tape_of(
    (0, START, 0, 5),
    (0, START, 1, 9),
    (0, START, 2, 9),
    (1, REARM, 0, 7),
    (2, CANCEL, 1, 0),
    (7, ARM, 1, 7),  # overdue: the next operation finds it fired
    (7, START, 3, 20),
    (8, START, 4, 21),
)


def test_a_python_loop_is_timed_from_its_first_call_to_its_last(clock):
    taken = []
    loop = loop_for(Timed(), Buffers(5), slow_take(clock, taken), clock)
    t = Timed
    seconds = [loop.run(piece) for piece in pieces(SHORT, 5)]
    # The clock is moved to 1, 2, 7 (the first timer fires), 7 again (the overdue one) and 8.
    first = 3 * t.SCHEDULE + t.RESCHEDULE + t.CANCEL + 2 * t.ADVANCE
    # A re-arm of a timer that is not pending is tried before it is started.
    then = 3 * t.SCHEDULE + t.RESCHEDULE + 3 * t.ADVANCE + 2 * t.FIRE
    assert seconds == [first, then]
    assert loop.tick(12) == 4 * t.ADVANCE + t.FIRE
    assert loop.drain() == 2 * (t.WAKE + t.ADVANCE + t.FIRE)
    outcome = loop.finish()
    assert outcome.seconds == first + then + 4 * t.ADVANCE + 3 * t.FIRE + 2 * (t.WAKE + t.ADVANCE)
    assert (outcome.wakeups, outcome.idle_wakeups) == (4 + 2, 3)
    assert (outcome.operations, outcome.most_pending, outcome.pending) == (8, 3, 0)
    assert outcome.fired == sum(map(len, taken)) == 5


@pytest.mark.parametrize("room", [0, 1, 5])
def test_a_compiled_loop_is_timed_in_its_calls_alone(clock, monkeypatch, room):
    calls = spend_in_compiled_code(monkeypatch, clock)
    timer, taken = contestant("delay-queue").new(0, 1), []
    loop = loop_for(timer, Buffers(5, room), slow_take(clock, taken), clock)
    reserve = timer.reserve

    def slow_reserve(extra):
        clock.seconds += 10**6
        reserve(extra)

    timer.reserve = slow_reserve
    calls.clear()
    spent = []

    def one(name, seconds):
        """So long did the calls of one loop take, and nothing else is counted."""
        assert {called for called, _ in calls} == {name}
        assert seconds == sum(cost for _, cost in calls)
        spent.append(seconds)
        number = len(calls)
        calls.clear()
        return number

    several = [one("run", loop.run(piece)) for piece in pieces(SHORT, 5)]
    if room == 5:
        assert one("tick", loop.tick(12)) == 1
    several.append(one("drain", loop.drain()))
    assert several == {0: [1, 2, 4], 1: [1, 1, 3], 5: [1, 1, 1]}[room]
    outcome = loop.finish()
    assert outcome.seconds == sum(spent)
    assert sum(map(len, taken)) == outcome.fired == 5
    fired = replay(contestant("delay-queue").new(), SHORT, 5).fired
    assert np.concatenate(taken).tolist() == fired.tolist()


def test_a_replay_is_timed_in_all_its_pieces(clock, monkeypatch):
    monkeypatch.setattr(compare.replay.engine, "OPERATIONS_AT_ONCE", 3)
    t = Timed
    operations = 6 * t.SCHEDULE + 2 * t.RESCHEDULE + t.CANCEL + 5 * t.ADVANCE + 2 * t.FIRE
    done = replay(Timed(), SHORT, 5, drain_timer=False, clock=clock)
    assert done.outcome.seconds == operations
    drained = replay(Timed(), SHORT, 5, clock=clock)
    assert drained.outcome.seconds == operations + 3 * (t.WAKE + t.ADVANCE + t.FIRE)
    spend_in_compiled_code(monkeypatch, clock)
    done = replay(contestant("delay-queue").new(), SHORT, 5, clock=clock)
    (run, each), (drain, every) = COSTS["run"], COSTS["drain"]
    assert done.outcome.seconds == 3 * run + 8 * each + drain + 3 * every
    assert done.outcome.ns_per_operation == done.outcome.seconds * 1e9 / 8


@pytest.mark.parametrize(("name", "parameters"), COMPILED, ids=str)
def test_by_clock_all_fires_as_by_event(name, parameters):
    tape = MADE["uniform"].tape
    taken = []
    timer = contestant(name, parameters).new(first_time(tape))
    loop = loop_for(timer, Buffers(1500), lambda rows: taken.append(rows.copy()))
    loop.run(operations_of(tape, 0, len(tape.op)))
    drained = run(name, parameters, tape)
    last = int(drained.fired["fired_at"].max())
    begun = timer.now
    loop.tick(last)
    outcome = loop.finish()
    assert timer.now == last
    assert np.concatenate(taken).tolist() == drained.fired.tolist()
    fired = drained.fired["fired_at"]
    assert outcome.wakeups == last - begun
    assert outcome.idle_wakeups == last - begun - np.unique(fired[fired > begun]).size


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
            f"StandsStill has 1 timers pending, but after {2 * PATIENCE + 1} idle wake-ups",
        ),
    ],
)
def test_a_timer_that_breaks_the_protocol_is_named(timer, says):
    with pytest.raises(ReplayError, match=says):
        replay(timer, tape_of((0, START, 0, 5)), 1)
