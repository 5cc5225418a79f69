import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.oracle.deliveries import Delivery, first_fault
from compare.trial.peers.protocol import PeerRounding
from tests.compare.small_tapes import tape_of, tapes
from timers.limits import LIMIT
from timers.rounding import Rounding

EXACT = PeerRounding()


def right_rows(tape, rounding):
    """What a timer with a closed form delivers, if it advances from moment to moment."""
    expected = expect(tape, id_space_of(tape), rounding).fired_at
    fired = np.flatnonzero(expected != NEVER)
    due = expected[fired]
    before = np.maximum(fired + 1, np.searchsorted(tape.time, due))
    order = np.lexsort((fired, tape.deadline[fired], due, before))
    fired, due, before = fired[order], due[order], before[order]
    # In an advance that goes further, the clock is already at the operation.
    at = np.append(tape.time, LIMIT)[before]
    clock = np.where(before == tape.time.size, due, at)
    return Delivery(fired, before, clock, due)


def fault_of(tape, rows, rounding=EXACT, *, fifo=False):
    columns = (np.array(column, np.int64) for column in rows)
    bounds = rounding.bounds(tape)
    return first_fault(tape, id_space_of(tape), bounds, Delivery(*columns), fifo=fifo)


def kind_of(tape, *rows, rounding=EXACT, fifo=False):
    """The fault of rows (operation, before, clock)."""
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    operation, before, clock = columns
    fault = fault_of(tape, (operation, before, clock, clock), rounding, fifo=fifo)
    return fault and fault.kind


@settings(max_examples=300)
@given(
    tape=tapes(),
    rounding=st.sampled_from(
        [Rounding(), Rounding("up", 1), Rounding("up", 7), Rounding("down", 7)]
    ),
)
def test_what_a_closed_form_delivers_is_right(tape, rounding):
    """The bounds of a peer hold the closed form of the same rounding."""
    rows = right_rows(tape, rounding)
    peer = PeerRounding(rounding.direction, rounding.tick)
    bounds = peer.bounds(tape)
    fired = rows.operation
    assert (bounds.earliest[fired] <= rows.fired_at).all()
    assert (rows.fired_at <= bounds.latest[fired]).all()
    assert fault_of(tape, rows, peer) is None
    if rounding.exact:
        assert fault_of(tape, rows, fifo=True) is None


@settings(max_examples=300)
@given(tape=tapes(), data=st.data())
def test_any_change_of_right_rows_is_a_fault(tape, data):
    """An exact timer has no choice, but for the clock within an advance and the order of equals."""
    rows = right_rows(tape, Rounding())
    if not rows.operation.size:
        return
    r = data.draw(st.integers(0, rows.operation.size - 1))
    end = tape.time.size
    changed = [column.copy() for column in rows]
    match data.draw(st.sampled_from(["drop", "repeat", "sooner", "later", "other"])):
        case "drop":
            changed = [np.delete(column, r) for column in changed]
        case "repeat":
            changed = [np.insert(column, r, column[r]) for column in changed]
        case "sooner":
            changed[1][r] -= 1
            changed[2][r] = min(changed[2][r], np.append(tape.time, LIMIT)[changed[1][r]])
        case "later" if changed[1][r] < end:
            changed[1][r] += 1
            changed[2][r] = max(changed[2][r], tape.time[changed[1][r] - 1])
        case "later" if changed[2][r] < LIMIT:
            changed[2][r] += 1
        case "other":
            changed[0][r] = data.draw(st.integers(-1, end).filter(lambda k: k != rows.operation[r]))
        case _:
            return
    assert fault_of(tape, changed) is not None


TAPE = tape_of(
    (0, START, 0, 10),
    (0, START, 1, 20),
    (5, CANCEL, 1, 0),
    (6, START, 2, 3),  # overdue
    (6, START, 1, 30),
    (20, REARM, 1, 40),
    (30, ARM, 0, 30),
)
RIGHT = [(3, 4, 6), (0, 5, 20), (6, 7, 30), (5, 7, 40)]


def test_the_rows_of_the_table_are_right():
    assert kind_of(TAPE, *RIGHT) is None


@pytest.mark.parametrize(
    ("number", "row", "kind", "says"),
    [
        (0, (9, 4, 6), "unknown", "row 0 is of operation 9; the tape has 7"),
        (0, (-1, 4, 6), "unknown", "row 0 is of operation -1"),
        (0, (3, 0, 6), "back in time", "operation 3 came out at 6, before 0"),
        (0, (3, 8, 6), "back in time", "operation 3 came out at 6, before 8"),
        (1, (0, 3, 5), "back in time", "at 5, before 3, after a row at 6, before 4"),
        (1, (0, 5, 21), "back in time", "operation 0 came out at 21, before 5"),
        (1, (0, 5, 5), "back in time", "operation 0 came out at 5, before 5"),
        (1, (3, 5, 20), "twice", "operation 3 came out 2 times"),
        (0, (2, 4, 6), "not armed", "operation 2 arms no timer, but one came out at 6, before 4"),
        (0, (4, 4, 6), "not armed", "operation 4 came out at 6, before 4, before it was armed"),
        (0, (1, 4, 6), "cancelled", "operation 1 was cancelled by operation 2, but came out"),
        (3, (4, 7, 40), "cancelled", "operation 4 was re-armed by operation 5, but came out"),
        (1, (0, 4, 6), "early", "operation 0 came out at 6, before 4; it must fire at 10"),
        (1, (0, 6, 20), "late", "operation 0 came out at 20, before 6; it must fire at 10"),
        (3, (5, 7, 41), "late", "operation 5 came out at 41, in the drain; it must fire at 40"),
        (1, None, "missing", "operation 0 did not come out before operation 6; it must fire at 10"),
        (0, None, "missing", "operation 3 never came out; it must fire at 6"),
    ],
)
def test_each_fault_is_one_sentence(number, row, kind, says):
    rows = [*RIGHT]
    rows[number : number + 1] = [row] if row else []
    operation, before, clock = zip(*rows, strict=True)
    fault = fault_of(TAPE, (operation, before, clock, clock))
    assert fault.kind == kind
    assert says in fault.text


def test_a_cancel_that_comes_too_late_is_a_missing_timer():
    tape = tape_of((0, START, 0, 5), (5, CANCEL, 0, 0))
    fault = fault_of(tape, ([], [], [], []))
    assert fault.text == (
        "the timer of operation 0 did not come out before operation 1; it must fire at 5"
    )
    assert kind_of(tape, (0, 1, 5)) is None
    assert kind_of(tape_of((0, START, 0, 6), (5, CANCEL, 0, 0))) is None


def test_the_order_within_an_advance():
    tape = tape_of((0, START, 0, 5), (0, START, 1, 3), (0, START, 2, 5), (9, START, 3, 9))
    rows = [(1, 3, 9), (0, 3, 9), (2, 3, 9), (3, 4, 9)]
    assert kind_of(tape, *rows, fifo=True) is None
    swapped = [rows[1], rows[0], *rows[2:]]
    assert kind_of(tape, *swapped) == "order"
    equal = [rows[0], rows[2], rows[1], rows[3]]
    assert kind_of(tape, *equal) is None
    assert kind_of(tape, *equal, fifo=True) == "fifo"


def test_where_bounds_differ_the_expiry_says_whether_a_cancel_was_too_late():
    tape = tape_of((0, START, 0, 10), (15, CANCEL, 0, 0), (16, REARM, 0, 40), (20, START, 1, 90))
    share = PeerRounding("share", 1, (1, 2))  # fires at 10 to 15
    assert share.bounds(tape).latest[0] == 15
    assert kind_of(tape, (0, 1, 15), (3, 4, 90), rounding=share) is None
    assert kind_of(tape, (3, 4, 90), rounding=share) == "missing"  # at 15 it must have fired
    tape = tape_of((0, START, 0, 10), (14, REARM, 0, 40), (20, START, 1, 90))
    assert kind_of(tape, (0, 1, 14), (2, 3, 90), rounding=share) is None
    assert kind_of(tape, (1, 3, 53), (2, 3, 90), rounding=share) is None  # it was re-armed
    assert kind_of(tape, (1, 3, 54), (2, 3, 90), rounding=share) == "late"
    both = [(0, 1, 14), (1, 3, 53), (2, 3, 90)]
    assert kind_of(tape, *both, rounding=share) == "not armed"


def test_timers_of_overlapping_bounds_may_come_in_any_order():
    tape = tape_of((0, START, 0, 10), (0, START, 1, 14), (0, START, 2, 31))
    up = PeerRounding("up", 10)
    assert kind_of(tape, (1, 3, 20), (0, 3, 20), (2, 3, 40), rounding=up) is None
    share = PeerRounding("share", 4)
    rows = [(2, 3, 35), (0, 3, 35), (1, 3, 35)]
    assert kind_of(tape, *rows, rounding=share) == "late"
    far = tape_of((0, START, 0, 10), (0, START, 1, 21), (99, START, 2, 99))
    rows = [(1, 2, 99), (0, 2, 99), (2, 3, 99)]
    assert kind_of(far, *rows, rounding=PeerRounding("up", 10)) == "order"


@pytest.mark.parametrize(
    ("rounding", "earliest", "latest"),
    [
        (EXACT, [25, 20], [25, 20]),
        (PeerRounding("up", 4), [26, 20], [29, 24]),
        (PeerRounding("down", 4), [22, 20], [25, 20]),
        (PeerRounding("down", 9), [20, 20], [25, 20]),
        (PeerRounding("share", 1, (1, 2)), [25, 20], [28, 21]),
        (PeerRounding("share", 4, (1, 2)), [25, 20], [29, 24]),
    ],
)
def test_the_bounds_of_each_rounding(rounding, earliest, latest):
    """Of a timer armed at 20 with deadline 25, and of one that is overdue."""
    bounds = rounding.bounds(tape_of((20, START, 0, 25), (20, START, 1, 3)))
    assert bounds.earliest.tolist() == earliest
    assert bounds.latest.tolist() == latest


def test_bounds_end_at_the_last_moment():
    tape = tape_of((LIMIT - 3, START, 0, LIMIT), (LIMIT - 3, START, 1, 0))
    for rounding in (PeerRounding("up", 10), PeerRounding("share", 10, (8, 63))):
        bounds = rounding.bounds(tape)
        assert bounds.latest.tolist() == [LIMIT, LIMIT]
    assert PeerRounding("down", 10).bounds(tape).earliest.tolist() == [LIMIT - 3, LIMIT - 3]


def test_a_share_of_a_long_delay_is_rounded_up_and_does_not_overflow():
    tape = tape_of((0, START, 0, LIMIT - 63), (0, START, 1, 64), (0, START, 2, 0))
    bounds = PeerRounding("share", 1, (8, 63)).bounds(tape)
    assert bounds.latest.tolist() == [LIMIT, 64 + 9, 1]
