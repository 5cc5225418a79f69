"""What a replay times and counts, on short tapes: exact seconds by a clock of the tests' own."""

import numpy as np
import pytest

import compare.trial.replay.engine
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, part
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import Buffers, OverBudgetError, loop_for, operations_of, replay
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.loops import STEPS_AT_ONCE
from tests.compare.clocks import COSTS, spend_in_compiled_code
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import tape_of

# ---- what is timed


def pieces(tape, size):
    """The operations of a tape, some at a time."""
    return [operations_of(part(tape, k, k + size)) for k in range(0, len(tape.op), size)]


def new(text):
    return contestant(text).new("unit", 0, 1)


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
    timer, taken = new("delay-queue"), []
    loop = loop_for(timer, Buffers(5, room), slow_take(clock, taken), clock)
    reserve = timer.reserve

    def slow_reserve(extra):
        clock.seconds += 10**6
        reserve(extra)

    timer.reserve = slow_reserve
    calls.clear()
    spent = []

    def check_calls(name, seconds):
        """So long did the calls of one loop take, and nothing else is counted."""
        assert {called for called, _ in calls} == {name}
        assert seconds == sum(cost for _, cost in calls)
        spent.append(seconds)
        number = len(calls)
        calls.clear()
        return number

    several = [check_calls("run", loop.run(piece)) for piece in pieces(SHORT, 5)]
    if room == 5:
        assert check_calls("tick", loop.tick(12)) == 1
    several.append(check_calls("drain", loop.drain()))
    assert several == {0: [1, 2, 4], 1: [1, 1, 3], 5: [1, 1, 1]}[room]
    outcome = loop.finish()
    assert outcome.seconds == sum(spent)
    assert sum(map(len, taken)) == outcome.fired == 5
    fired = replay(new("delay-queue"), SHORT, 5).fired
    assert np.concatenate(taken).tolist() == fired.tolist()


def test_a_replay_is_timed_in_all_its_pieces(clock, monkeypatch):
    monkeypatch.setattr(compare.trial.replay.engine, "OPERATIONS_AT_ONCE", 3)
    t = Timed
    operations = 6 * t.SCHEDULE + 2 * t.RESCHEDULE + t.CANCEL + 5 * t.ADVANCE + 2 * t.FIRE
    done = replay(Timed(), SHORT, 5, drain_timer=False, clock=clock)
    assert done.outcome.seconds == operations
    drained = replay(Timed(), SHORT, 5, clock=clock)
    assert drained.outcome.seconds == operations + 3 * (t.WAKE + t.ADVANCE + t.FIRE)
    spend_in_compiled_code(monkeypatch, clock)
    done = replay(new("delay-queue"), SHORT, 5, clock=clock)
    (run, each), (drain, every) = COSTS["run"], COSTS["drain"]
    assert done.outcome.seconds == 3 * run + 8 * each + drain + 3 * every
    assert done.outcome.ns_per_operation == done.outcome.seconds * 1e9 / 8


@pytest.mark.parametrize("limit", [0, 40, 41, 81])
def test_a_python_loop_stops_within_a_step_of_its_limit(clock, monkeypatch, limit):
    """The seconds of all calls together count, and those of what was made before do not."""
    monkeypatch.setattr(compare.trial.replay.engine, "STEPS_AT_ONCE", 2)
    with pytest.raises(OverBudgetError, match=f"it takes longer than {limit} s"):
        replay(Timed(), SHORT, 5, clock=clock, limit=limit)
    longest_step = 2 * max(
        Timed.ADVANCE + Timed.FIRE + Timed.WAKE, Timed.SCHEDULE + Timed.RESCHEDULE
    )
    assert limit < Timed.instances[-1].spent <= limit + longest_step


def test_a_compiled_loop_stops_within_a_step_of_its_limit(clock, monkeypatch):
    calls = spend_in_compiled_code(monkeypatch, clock)
    tape = tape_of((0, START, 0, 3 * STEPS_AT_ONCE))
    limit = sum(COSTS["run"]) + sum(COSTS["drain"]) - 1
    with pytest.raises(OverBudgetError, match=f"it takes longer than {limit} s"):
        replay(new("hashed-wheel/tick=1/wheel-size=2"), tape, 1, clock=clock, limit=limit)
    # First each has nothing to do; of the last there would be another.
    assert [name for name, _ in calls] == ["run", "drain"] * 2


@pytest.mark.parametrize("text", ["delay-queue", "tests.compare.own_timers:Timed"])
def test_what_takes_no_longer_than_its_limit_is_not_stopped(clock, monkeypatch, text):
    spend_in_compiled_code(monkeypatch, clock)
    free = replay(new(text), SHORT, 5, clock=clock)
    limited = replay(new(text), SHORT, 5, clock=clock, limit=free.outcome.seconds)
    assert limited.outcome == free.outcome


@pytest.mark.parametrize("name", ["delay-queue", "cascading-wheel", "heapq-delay-queue"])
def test_what_is_counted(name):
    """By hand: of a tape in pieces, and of the clock that then moves unit by unit to 12."""
    tape = tape_of(
        *zip(*(column.tolist() for column in SHORT), strict=True),
        (9, START, 0, 9),
        (9, CANCEL, 0, 0),  # too late, as is the next
        (9, CANCEL, 1, 0),
        (9, START, 0, 30),
        (9, CANCEL, 0, 0),
    )
    taken = []
    timer = new(name)
    loop = loop_for(timer, Buffers(5, 6), lambda rows: taken.append(rows.copy()))
    for piece in pieces(tape, 4):
        loop.run(piece)
    loop.tick(12)
    loop.drain()
    done = loop.finish()
    assert (done.operations, done.scheduled, done.cancelled, done.rescheduled) == (13, 8, 2, 1)
    assert (done.fired, done.pending, done.most_pending) == (6, 0, 3)
    assert (done.wakeups - done.idle_wakeups, timer.now) == (2, 21)
    if name != "cascading-wheel":  # which wakes up to cascade
        assert done.wakeups == 3 + 2
    rows = [row for part in taken for row in part.tolist()]
    assert rows == [(3, 7, 7), (5, 7, 7), (2, 9, 9), (8, 9, 9), (6, 20, 20), (7, 21, 21)]
    assert done.nbytes == timer.nbytes


@pytest.mark.parametrize("name", ["delay-queue", "hashed-wheel", "heapq-delay-queue"])
def test_the_most_pending_are_counted_when_the_clock_moves_and_in_the_end(name):
    two = [(0, START, 0, 50), (0, START, 1, 60), (1, CANCEL, 0, 0), (2, CANCEL, 1, 0)]
    three = [(3, START, 0, 50), (3, START, 1, 60), (3, START, 2, 70)]
    for rows, drained, highest in [
        (two, True, 2),
        (two + three, False, 3),
        (two + three, True, 3),
        (two + three[:1], True, 2),
        ([*two[:2], (0, CANCEL, 0, 0), (0, CANCEL, 1, 0)], True, 0),
    ]:
        done = replay(new(name), tape_of(*rows), 3, drain_timer=drained).outcome
        assert done.most_pending == highest
        assert done.pending == (0 if drained else 3)


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize("own", ["", "tests.compare.own_timers:Right"])
def test_lateness_is_counted_from_the_arming_or_the_deadline_whichever_is_later(
    own, at_once, monkeypatch
):
    """In batches of operations and of expiries of several sizes."""
    for name in ("OPERATIONS_AT_ONCE", "FIRED_AT_ONCE", "STEPS_AT_ONCE"):
        monkeypatch.setattr(compare.trial.replay.engine, name, at_once)
    tape = tape_of(
        (0, START, 0, 30),
        (0, START, 1, 55),
        (40, START, 2, 13),
        (40, START, 3, 11),
        (40, CANCEL, 3, 0),  # too late, in the next batch as well
        (45, REARM, 1, 44),
        (50, START, 0, 99),
    )
    done = replay(new(own or "hashed-wheel/tick=10/wheel-size=4"), tape, 4)
    late = done.outcome.lateness
    overdue = [(2, 13, 40), (3, 11, 40), (5, 44, 45)]
    assert done.outcome.cancelled == 0
    if own:
        assert done.fired.tolist() == [(0, 30, 30), *overdue, (6, 99, 99)]
        assert late == Lateness.of(np.zeros(5, np.int64))
    else:
        assert sorted(done.fired.tolist()) == [(0, 30, 40), *overdue, (6, 99, 100)]
        assert late == Lateness.of(np.array([0, 0, 0, 1, 10]))
        assert (late.min, late.median, late.max) == (0, 0.0, 10)
