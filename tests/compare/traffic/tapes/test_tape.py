"""Tapes that break a rule are refused with the number of the first row that does."""

import re

import numpy as np
import pytest

from compare.traffic.tapes.tape import (
    ARM,
    CANCEL,
    DTYPES,
    MAX_ID_SPACE,
    OP_COUNTS,
    REARM,
    START,
    Rules,
    Tape,
    TapeError,
    count_ops,
    id_space_of,
    joined,
    part,
    validate,
)
from tests.compare.small_tapes import tape_of
from timers import LIMIT, TimerError

GOOD = [
    (0, START, 0, 5),
    (0, ARM, 1, LIMIT),
    (3, REARM, 0, 0),
    (3, CANCEL, 1, 0),
    (3, CANCEL, 1, 0),  # its timer is gone, which is no fault of the tape
    (LIMIT, START, 1, LIMIT),
]


def with_row(number, **values):
    rows = [dict(zip(Tape._fields, row, strict=True)) for row in GOOD]
    rows[number] |= values
    return tape_of(*(tuple(row.values()) for row in rows))


def test_good_tapes():
    validate(tape_of(*GOOD), 2)
    validate(tape_of(*GOOD), MAX_ID_SPACE)
    validate(tape_of(), 0)
    assert count_ops(tape_of(*GOOD)) == {"starts": 2, "cancels": 2, "rearms": 1, "arms": 1}
    assert count_ops(tape_of()) == dict.fromkeys(OP_COUNTS, 0)
    assert (id_space_of(tape_of(*GOOD)), id_space_of(tape_of())) == (2, 0)


@pytest.mark.parametrize("cuts", [[], [0], [2], [1, 4], [6]])
def test_a_tape_is_joined_of_its_parts(cuts):
    tape, ends = tape_of(*GOOD), [*cuts, None]
    whole = joined([part(tape, start, end) for start, end in zip([0, *cuts], ends, strict=True)])
    assert [column.tolist() for column in whole] == [column.tolist() for column in tape]
    assert tuple(column.dtype for column in whole) == DTYPES
    assert joined([]).time.size == 0


@pytest.mark.parametrize(
    ("tape", "row", "why"),
    [
        (with_row(2, time=-1), 2, "time -1 is negative"),
        (with_row(4, time=2), 4, "time 2 is before 3, the time of the previous row"),
        (with_row(5, op=4), 5, "op 4 is unknown; ops are 0 to 3"),
        (with_row(5, op=-1), 5, "op -1 is unknown"),
        (with_row(1, id=2), 1, r"id 2 is outside \[0, 2\)"),
        (with_row(1, id=-1), 1, r"id -1 is outside \[0, 2\)"),
        (with_row(0, deadline=-5), 0, "deadline -5 is negative"),
        (with_row(3, deadline=7), 3, "deadline 7 of a cancel; it must be 0"),
        (with_row(1, id=0), 3, "cancel of id 1, which was never started"),
        (with_row(0, op=REARM), 0, "re-arm of id 0, which was never started"),
    ],
)
def test_broken_rules_are_told_with_the_row(tape, row, why):
    with pytest.raises(TapeError, match=f"^row {row}: {why}") as error:
        validate(tape, 2)
    assert error.value.row == row
    assert isinstance(error.value, TimerError)
    assert isinstance(error.value, ValueError)
    for cut in range(len(GOOD)):  # the same in three pieces
        rules = Rules(2)
        with pytest.raises(TapeError, match=f"^{re.escape(str(error.value))}$") as again:
            for start, stop in ((0, cut // 2), (cut // 2, cut), (cut, None)):
                rules.check(part(tape, start, stop))
        assert again.value.row == row


@pytest.mark.parametrize("column", Tape._fields)
def test_columns_of_another_kind_are_named(column):
    good = tape_of(*GOOD)
    array = getattr(good, column)
    for wrong in (
        array.astype(np.float64),
        array.astype(">i8"),
        array.astype(np.uint8),
        array.tolist(),
        array[:, None],
    ):
        with pytest.raises(
            TapeError, match=f"^column {column} is .*; it must be a 1-D array of int"
        ):
            validate(good._replace(**{column: wrong}), 2)
    if column != "time":
        with pytest.raises(TapeError, match=f"column {column} has 5 rows, column time has 6"):
            validate(good._replace(**{column: array[:5]}), 2)


@pytest.mark.parametrize("id_space", [-1, MAX_ID_SPACE + 1, 2.0, True, None])
def test_id_spaces_that_are_none(id_space):
    with pytest.raises(TapeError, match="id_space is"):
        validate(tape_of(*GOOD), id_space)


def test_one_far_id_takes_no_memory():
    tape = tape_of((0, START, 2**31 - 1, 5), (1, CANCEL, 2**31 - 1, 0), (1, CANCEL, 7, 0))
    with pytest.raises(TapeError, match="row 2: cancel of id 7"):
        validate(tape, MAX_ID_SPACE)
