import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.traffic.tapes.tape import ARM, CANCEL, START, Tape, id_space_of
from compare.trial.oracle.compiled import NEVER, AgreementError, check_agreement, expect
from compare.trial.peers.model import Model
from compare.trial.replay.engine import FIRED, Replay
from compare.trial.replay.outcome import Outcome
from tests.compare.small_tapes import tape_of, tapes
from tests.words import one_line
from timers.registry import timer_class
from timers.traits import Parameters, Traits

FORMS = [
    ("delay-queue", {}),
    ("hashed-wheel", {"tick": 1, "wheel_size": 8}),
    ("hashed-wheel", {"tick": 100, "wheel_size": 8}),
    ("hierarchical-wheel", {"tick": 1, "wheel_size": 20}),
    ("hierarchical-wheel", {"tick": 7, "wheel_size": 20}),
    ("linux-wheel", {}),
]
"""One timer and parameters for each closed form."""

EXACT = timer_class("delay-queue").traits


def played(
    tape: Tape, traits: Traits, parameters: Parameters, *, drained: bool
) -> tuple[list[int], list[int]]:
    """(fired_at by operation, [scheduled, cancelled, rescheduled, pending]) as the naive model has
    them.
    """
    model = Model(traits, parameters, int(tape.time[0]) if tape.time.size else 0)
    fired_at, armed_by, holder = [NEVER] * tape.time.size, {}, {}
    scheduled = cancelled = rescheduled = 0

    def advance(now):
        for row in model.advance(now):
            fired_at[armed_by[row.handle]] = row.fired_at

    for k, (now, op, i, deadline) in enumerate(
        zip(*(column.tolist() for column in tape), strict=True)
    ):
        advance(now)
        if op == CANCEL:
            cancelled += model.cancel(holder.get(i, NEVER))
        elif op != START and model.reschedule(holder.get(i, NEVER), deadline):
            rescheduled += 1
            armed_by[holder[i]] = k
        elif op in (START, ARM):
            # The operation's number serves as the handle.
            model.schedule(deadline, k)
            holder[i], armed_by[k] = k, k
            scheduled += 1
    while drained and len(model):
        advance(model.next_expiry())
    return fired_at, [scheduled, cancelled, rescheduled, len(model)]


@pytest.mark.parametrize(("name", "parameters"), FORMS, ids=str)
@settings(max_examples=80)
@given(tape=tapes(), drained=st.booleans())
def test_oracle_expects_what_the_model_does(name, parameters, drained, tape):
    traits = timer_class(name).traits
    expected = expect(tape, id_space_of(tape), traits.rounding(parameters), drained=drained)
    fired_at, counts = played(tape, traits, parameters, drained=drained)
    assert expected.fired_at.tolist() == fired_at
    assert [
        expected.scheduled,
        expected.cancelled,
        expected.rescheduled,
        expected.pending,
    ] == counts
    assert expected.scheduled == expected.cancelled + expected.fired + expected.pending


# ---- agreement

TAPE = tape_of((0, START, 0, 5), (0, START, 1, 5), (1, START, 2, 3), (2, CANCEL, 2, 0))
ROWS = [(0, 5, 5), (1, 5, 5)]


def done(rows, **changes):
    counts = {"operations": 4, "scheduled": 3, "cancelled": 1, "fired": len(rows)} | changes
    return Replay(Outcome(**counts), np.array(rows, FIRED))


def check(replay, tape=TAPE, traits=EXACT):
    expected = expect(tape, id_space_of(tape), traits.rounding({}))
    check_agreement("some-timer", traits, tape, expected, replay)


def test_a_replay_that_does_what_is_expected_agrees():
    check(done(ROWS))


@pytest.mark.parametrize(
    ("replay", "says"),
    [
        (
            done([(0, 5, 5), (1, 5, 6)]),
            "by operation 1 (id 1, at 0, deadline 5): fired at 6, expected: fired at 5",
        ),
        (
            done([(1, 5, 5)]),
            "armed by operation 0 (id 0, at 0, deadline 5): did not fire, expected: fired at 5",
        ),
        (
            done([*ROWS, (2, 3, 3)]),
            "operation 2 (id 2, at 1, deadline 3): fired at 3, expected: did not fire",
        ),
        (done([(0, 5, 5), (1, 5, 5), (1, 5, 5)]), "fired a timer twice"),
        (done([(0, 5, 5), (1, 4, 5)]), "row 1 with another deadline: (1, 4, 5)"),
        (done([(0, 6, 5), (1, 4, 5)]), "row 0 with another deadline: (0, 6, 5)"),
        (done([(1, 5, 5), (0, 5, 5)]), "delivered (1, 5, 5) before (0, 5, 5)"),
        (done(ROWS, scheduled=4), "4 scheduled, expected 3"),
        (done(ROWS, cancelled=0), "0 cancelled, expected 1"),
        (done(ROWS, rescheduled=1), "1 rescheduled, expected 0"),
        (done(ROWS, pending=1), "1 pending, expected 0"),
    ],
)
def test_a_difference_is_named(replay, says):
    with one_line(AgreementError, f"^some-timer .*{re.escape(says)}"):
        check(replay)


def test_the_order_of_equal_deadlines_is_seen_among_others():
    """All are overdue, and are delivered at once."""
    tape = tape_of((9, START, 0, 5), (9, START, 1, 3), (9, START, 2, 5))
    replay = done([(2, 5, 9), (1, 3, 9), (0, 5, 9)], cancelled=0)
    with pytest.raises(AgreementError, match=r"delivered \(2, 5, 9\) before \(0, 5, 9\)"):
        check(replay, tape)


def test_any_order_within_a_unit_is_fine_where_the_traits_say_so():
    traits = dataclasses.replace(EXACT, order="unspecified")
    check(done([(1, 5, 5), (0, 5, 5)]), traits=traits)
    tape = tape_of((0, START, 0, 5), (0, START, 1, 9))
    with pytest.raises(AgreementError, match=r"delivered \(1, 9, 9\) before"):
        check(done([(1, 9, 9), (0, 5, 5)], scheduled=2, cancelled=0), tape, traits)
