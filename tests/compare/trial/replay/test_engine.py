"""What every timer does with a tape, in both loops, is what the oracle expects of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compare.trial.replay.engine
from compare.traffic.tapes.tape import CANCEL, START, TapeError, id_space_of
from compare.traffic.workloads.catalogue import WORKLOADS, make
from compare.trial.bench.sources import digest_of
from compare.trial.oracle.compiled import check_agreement, expect
from compare.trial.replay.contestant import COMPILED, contestant
from compare.trial.replay.engine import MAX_IDLE, Replay, ReplayError, first_time, replay
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.loops import STEPS_AT_ONCE
from compare.trial.replay.outcome import NUMBERS
from tests.compare.own_timers import Asleep, Twice
from tests.compare.small_tapes import tape_of, tapes
from timers import HeapqDelayQueue
from timers.registry import names

TIMERS = [*names(), "hashed-wheel/tick=1/wheel-size=7", "hierarchical-wheel/tick=7/wheel-size=3"]
WITH_KERNEL = [text for text in TIMERS if contestant(text).engine == COMPILED]
MADE = {name: make(name, operations=1500, seed=11) for name in WORKLOADS}

both_loops = pytest.mark.parametrize("plain", [False, True], ids=["compiled", "python-loop"])
drained_or_not = pytest.mark.parametrize("drain", [True, False], ids=["drained", "not-drained"])


class Plain:
    """A timer that hides its kernel: whoever replays through it must call its methods."""

    def __init__(self, timer):
        self._timer = timer

    def __getattr__(self, name):
        return getattr(self._timer, name)

    def __len__(self):
        return len(self._timer)


def run(text, tape, *, unit="unit", drain=True, plain=False, counting=False) -> Replay:
    timer = contestant(text).new(unit, first_time(tape), 4, counting=counting)
    return replay(Plain(timer) if plain else timer, tape, id_space_of(tape), drain_timer=drain)


def counts(done: Replay, *varies: str) -> dict[str, int]:
    """All that two replays must have in common; `nbytes` depends on the room that is reserved."""
    left_out = ("seconds", "nbytes", *varies)
    return {name: getattr(done.outcome, name) for name in NUMBERS if name not in left_out}


@drained_or_not
@pytest.mark.parametrize("workload", MADE)
@pytest.mark.parametrize("text", TIMERS)
def test_every_timer_does_what_the_oracle_expects_of_every_workload(text, workload, drain):
    timer, generated = contestant(text), MADE[workload]
    tape, rounding = generated.tape, timer.rounding(generated.unit)
    done = run(text, tape, unit=generated.unit, drain=drain)
    expected = expect(tape, generated.id_space, rounding, drained=drain)
    check_agreement(text, timer.traits, tape, expected, done)
    outcome, fired = done.outcome, done.fired
    assert outcome.scheduled == outcome.cancelled + outcome.fired + outcome.pending
    assert outcome.fired == fired.size
    if drain:
        assert outcome.pending == 0
        assert outcome.fired > 0
    late = fired["fired_at"] - np.maximum(fired["deadline"], tape.time[fired["operation"]])
    lowest, highest = rounding.bounds()
    assert np.all((lowest <= late) & (late <= highest))
    assert outcome.lateness == Lateness.of(late).coarse()


@pytest.mark.parametrize("text", TIMERS)
@settings(max_examples=60)
@given(tape=tapes(), drain=st.booleans())
def test_every_timer_does_what_the_oracle_expects_of_any_tape(text, drain, tape):
    timer = contestant(text)
    expected = expect(tape, id_space_of(tape), timer.rounding("unit"), drained=drain)
    check_agreement(text, timer.traits, tape, expected, run(text, tape, drain=drain))


@pytest.mark.parametrize("text", WITH_KERNEL)
@settings(max_examples=40)
@given(tape=tapes(), drain=st.booleans())
def test_the_python_loop_and_the_compiled_one_do_the_same(text, drain, tape):
    compiled, plain = (run(text, tape, drain=drain, plain=plain) for plain in (False, True))
    assert compiled.fired.tolist() == plain.fired.tolist()
    assert counts(compiled) == counts(plain)


@pytest.mark.parametrize("text", WITH_KERNEL)
def test_counting_changes_no_row_and_counts_the_same_every_time(text):
    tape = MADE["keepalive"].tape
    counted, again = (run(text, tape, counting=True) for _ in range(2))
    assert counted.outcome.counters == again.outcome.counters
    assert sum(counted.outcome.counters.values()) > 0
    silent = run(text, tape)
    assert silent.outcome.counters is None
    assert digest_of(silent) == digest_of(counted)
    assert counts(silent) == counts(counted)


@pytest.mark.parametrize("text", TIMERS)
def test_how_much_is_done_at_a_time_changes_nothing(text, monkeypatch):
    tape = MADE["lognormal-high"].tape
    whole = run(text, tape, counting=True)
    for name, value in (("OPERATIONS_AT_ONCE", 13), ("FIRED_AT_ONCE", 3), ("STEPS_AT_ONCE", 2)):
        monkeypatch.setattr(compare.trial.replay.engine, name, value)
    pieces = run(text, tape, counting=True)
    assert whole.fired.tolist() == pieces.fired.tolist()
    varies = "wakeups", "idle_wakeups"  # an advance that finds no room is counted again
    assert counts(whole, *varies) == counts(pieces, *varies)
    assert whole.outcome.counters == pieces.outcome.counters


def test_room_is_reserved_for_what_is_armed_alone():
    tape = tape_of((0, START, 0, 9), *[(1, CANCEL, 0, 0)] * 100)
    assert run("delay-queue", tape).outcome.nbytes == contestant("delay-queue").new("", 0, 4).nbytes


@both_loops
def test_an_empty_tape_fires_nothing(plain):
    done = run("hierarchical-wheel", tape_of(), plain=plain)
    assert set(counts(done).values()) == {0}
    assert done.outcome.lateness == Lateness()


@both_loops
def test_a_far_deadline_is_drained_in_few_wakeups(plain):
    tape = tape_of((0, START, 0, 2**62))
    done = run("hashed-wheel/tick=1/wheel-size=1", tape, plain=plain)
    assert done.fired["fired_at"].tolist() == [2**62 + 1]
    assert MAX_IDLE < done.outcome.wakeups <= MAX_IDLE + 2


@both_loops
def test_a_drain_of_many_steps_counts_each_wakeup_once(plain):
    """More of them than are made at once; only the second half of them are idle."""
    often = [(0, START, k, k + 1) for k in range(STEPS_AT_ONCE)]
    done = run(
        "hashed-wheel/tick=1/wheel-size=1",
        tape_of(*often, (0, START, STEPS_AT_ONCE, 2 * STEPS_AT_ONCE)),
        plain=plain,
    )
    assert done.outcome.fired == STEPS_AT_ONCE + 1
    assert done.outcome.wakeups - done.outcome.idle_wakeups == STEPS_AT_ONCE + 1
    assert done.fired["fired_at"].tolist() == [*range(2, STEPS_AT_ONCE + 2), 2 * STEPS_AT_ONCE + 1]


class StandsStill(HeapqDelayQueue):
    def next_wakeup(self):
        return self.now

    next_expiry = next_wakeup


@pytest.mark.parametrize(
    ("timer", "says"),
    [
        (Twice, "Twice fired handle 4294967296 at 5, which was not pending"),
        (Asleep, "Asleep has 1 timers pending, but after 0 idle wake-ups"),
        (StandsStill, f"has 1 timers pending, but after {2 * MAX_IDLE + 1} idle wake-ups"),
    ],
)
def test_a_timer_that_breaks_the_protocol_is_named(timer, says):
    with pytest.raises(ReplayError, match=says):
        replay(timer(), tape_of((0, START, 0, 5)), 1)


@both_loops
def test_what_cannot_be_replayed_is_refused(plain):
    """Compiled loops check nothing: they would write elsewhere, or advance for ever."""
    tape = tape_of((5, START, 0, 10), (6, START, 1, 12))
    late, used = (contestant("hierarchical-wheel").new("unit", start) for start in (6, 5))
    used.schedule(7)
    for timer, says in ((late, "is at 6 with 0 pending; it"), (used, "is at 5 with 1 pending; it")):
        with pytest.raises(ReplayError, match=says):
            replay(Plain(timer) if plain else timer, tape, 2)
    with pytest.raises(TapeError, match="row 1: id 1"):
        replay(late, tape, 1)
