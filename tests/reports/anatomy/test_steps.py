"""A timer that is walked through operations: every step against the model, then the sentences."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.trial.peers.model import Model
from reports.anatomy.steps import AnatomyError, Walk
from tests.timers.cases import DEFAULTS, Case, check_snapshot
from timers import HashedWheel, HierarchicalWheel, SimpleWheel

MOST = 60  # steps that are followed

operations = st.lists(
    st.tuples(
        st.integers(0, 40),  # after the operation before
        st.sampled_from((START, START, CANCEL, REARM, ARM)),
        st.integers(0, 5),  # id
        st.integers(-3, 3000),  # delay
    ),
    min_size=1,
    max_size=25,
)


def rows_of(drawn, origin):
    time, rows = origin, []
    for gap, op, id_, delay in drawn:
        time += gap
        rows.append((time, op, id_, 0 if op == CANCEL else max(time + delay, 0)))
    return rows


def apply(model, handles, row, scheduled):
    """What an operation of a tape does; `scheduled` gives the handles of new timers."""
    _, op, id_, deadline = row
    handle = handles.get(id_, 0)
    if op == CANCEL:
        model.cancel(handle)
    elif (op == START or not model.reschedule(handle, deadline)) and op != REARM:
        handles[id_] = next(scheduled)
        model.schedule(deadline, handles[id_])


class Recording:
    """A timer that remembers the handles that it gave out."""

    def __init__(self, timer):
        self.timer, self.given = timer, []

    def __getattr__(self, name):
        return getattr(self.timer, name)

    def schedule(self, deadline):
        self.given.append(self.timer.schedule(deadline))
        return self.given[-1]


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
@given(drawn=operations, origin=st.sampled_from((0, 255, 10**9)), late=st.integers(0, 300))
@settings(max_examples=10)
def test_each_step_shows_what_the_model_expects(case: Case, drawn, origin, late):
    rows = rows_of(drawn, origin)
    timer = Recording(case(start=origin))
    model, handles = Model(case.traits, case.parameters, origin), {}
    following = iter(rows)
    row = next(following, None)
    before = None
    scheduled = (timer.given[k] for k in range(len(rows)))
    for step in islice(Walk(timer, rows, origin).steps(origin + late), MOST):
        moment = step.after.now
        while row and row[0] < moment:
            model.advance(row[0])
            apply(model, handles, row, scheduled)
            row = next(following, None)
        fired = model.advance(moment)
        while row and row[0] == moment:
            apply(model, handles, row, scheduled)
            row = next(following, None)
        pending = {handle: timer.deadline for handle, timer in model.pending.items()}
        check_snapshot(timer.timer, pending)
        assert step.after == timer.snapshot()
        assert step.visited[-1] == moment
        assert list(step.visited) == sorted(step.visited)
        assert step.moved.keys() <= pending.keys()
        if before is not None:
            assert ("fire" in step.text) == bool(fired)
            assert step.moved.keys() <= {waiting.handle for waiting, _ in before.places()}
        before = step.after
        assert step.text.startswith("The clock")


def walk(timer, deadlines, time=0):
    rows = [(0, START, k, deadline) for k, deadline in enumerate(deadlines)]
    return list(islice(Walk(timer, rows).steps(time), MOST))


WALK_THROUGH = {
    0: "The clock is at 0. 9, 88, 222, 520, 521 and 522 are scheduled.",
    9: "The clock jumps from 0 to 9. The bucket of level 1, slot 9 expires. 9 fires.",
    80: "The clock jumps from 9 to 80. The bucket of level 2, slot 8 expires. "
    "88 moves from level 2, slot 8 to level 1, slot 8.",
    88: "The clock jumps from 80 to 88. The bucket of level 1, slot 8 expires. 88 fires.",
    200: "The clock jumps from 88 to 200. The bucket of level 3, slot 2 expires. "
    "222 moves from level 3, slot 2 to level 2, slot 2.",
    220: "The clock jumps from 200 to 220. The bucket of level 2, slot 2 expires. "
    "222 moves from level 2, slot 2 to level 1, slot 2.",
    222: "The clock jumps from 220 to 222. The bucket of level 1, slot 2 expires. 222 fires.",
    500: "The clock jumps from 222 to 500. The bucket of level 3, slot 5 expires. "
    "520, 521 and 522 move from level 3, slot 5 to level 2, slot 2.",
    520: "The clock jumps from 500 to 520. The bucket of level 2, slot 2 expires. "
    "521 moves from level 2, slot 2 to level 1, slot 1. "
    "522 moves from level 2, slot 2 to level 1, slot 2. 520 fires.",
    521: "The clock jumps from 520 to 521. The bucket of level 1, slot 1 expires. 521 fires.",
    522: "The clock jumps from 521 to 522. The bucket of level 1, slot 2 expires. 522 fires.",
}


def test_the_walk_through_of_the_literature():
    steps = walk(HierarchicalWheel(tick=1, wheel_size=10), [9, 88, 222, 520, 521, 522])
    assert {step.after.now: step.text for step in steps} == WALK_THROUGH
    assert steps[-1].visited == (0, 9, 80, 88, 200, 220, 222, 500, 520, 521, 522)


def texts(timer, rows, time=0, origin=0):
    return [step.text for step in islice(Walk(timer, rows, origin).steps(time), MOST)]


def test_operations_that_come_in_time_or_too_late():
    rows = [
        *((0, START, 0, 5), (0, START, 1, 50), (0, START, 2, 60)),
        *((5, CANCEL, 0, 0), (5, REARM, 0, 70), (7, REARM, 1, 90), (7, CANCEL, 2, 0)),
        (9, ARM, 0, 12),
    ]
    after = texts(SimpleWheel(), rows, time=5)
    assert after[:3] == [
        "The clock jumps from 0 to 5. 5 fires. 1 timer is cancelled too late. "
        "1 timer is re-armed too late.".replace("1 timer", "1\N{NO-BREAK SPACE}timer"),
        "The clock jumps from 5 to 7. 90 moves from slot 50 to slot 90. 90 is re-armed. "
        "1\N{NO-BREAK SPACE}timer is cancelled.",
        "The clock jumps from 7 to 9. 12 is scheduled.",
    ]


def test_an_emptied_bucket_expires_in_the_queue():
    rows = [(0, START, 0, 42), (1, CANCEL, 0, 0)]
    last = texts(HierarchicalWheel(tick=1, wheel_size=10), rows)[-1]
    assert last == (
        "The clock jumps from 1 to 40. The bucket of level 2, slot 4 expires. It is empty."
    )


def test_rounds_are_counted_and_moments_are_those_after_the_origin():
    rows = [(1000, START, 0, 1020), (1000, START, 1, 1020), (1000, START, 2, 1002)]
    after = texts(HashedWheel(tick=1, wheel_size=8, start=1000), rows, 1004, 1000)
    assert after[0] == "The clock jumps from 3 to 4. Nothing happens."
    assert "The clock jumps from 4 to 5. 2 timers have one round less to wait." in after


def test_nothing_is_left_to_do():
    assert texts(SimpleWheel(), []) == ["The clock is at 0. Nothing happens."]


def test_a_timer_without_a_snapshot_is_refused():
    with pytest.raises(AnatomyError, match=r"^object has no snapshot\(\) to draw$"):
        Walk(object(), [])
