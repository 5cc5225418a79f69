"""A check finds every mismatch, with its kind, and nothing else."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, pairwise, repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, Tape, id_space_of
from compare.trial.oracle.compiled import NEVER, Check, Rows, expect
from compare.trial.oracle.mismatches import (
    KINDS,
    Mismatch,
    Verified,
    combined,
    lowest,
    mismatch_order,
)
from tests.compare.small_tapes import tape_of, tapes
from timers.errors import RoundingError
from timers.limits import LIMIT
from timers.rounding import OwnRounding, Rounding

ALL = 10**6
"""Examples: all there are."""

ROW = np.dtype([(name, "i8") for name in Rows._fields])

EXACT = Rounding()
ROUNDINGS = [EXACT, Rounding("down", 7), Rounding("up", 100), Rounding("up", 1)]


# ---- helpers, for the tests of the join as well


def expected_of(tape, rounding=EXACT, *, drained=True):
    """When each operation's timer fires; NEVER where none does."""
    return expect(tape, id_space_of(tape), rounding, drained=drained).fired_at


def right_rows(tape, fired_at):
    """The rows of a timer that fires as it must, in the order of delivery."""
    operations = np.flatnonzero(fired_at != NEVER)
    rows = np.empty(operations.size, ROW)
    rows["operation"], rows["deadline"], rows["fired_at"] = (
        operations,
        tape.deadline[operations],
        fired_at[operations],
    )
    return rows[np.argsort(rows["fired_at"], kind="stable")]


def plain_mismatches(tape, fired_at, rows, shard=0):
    """All that is wrong with rows, said as plainly as can be."""
    by_operation = {
        operation: sorted((moment, said) for _, said, moment in group)
        for operation, group in groupby(sorted(rows.tolist()), key=lambda row: row[0])
    }
    expected = {k: moment for k, moment in enumerate(fired_at.tolist()) if moment != NEVER}
    mismatches = []
    for operation in sorted(expected.keys() | by_operation.keys()):
        on_tape = 0 <= operation < tape.time.size
        i, deadline = (
            (int(tape.id[operation]), int(tape.deadline[operation])) if on_tape else (None, None)
        )
        due, got = expected.get(operation), by_operation.get(operation, [])

        def wrong(kind, moment=None, said=None, where=(shard, operation, i, deadline, due)):
            mismatches.append(Mismatch(kind, *where, moment, said))

        if due is None:
            for row in got:
                wrong("spurious", *row)
        elif not got:
            wrong("missing")
        else:
            first = (due, deadline) if (due, deadline) in got else got[0]
            got.remove(first)
            if first[0] != due:
                wrong("early" if first[0] < due else "late", *first)
            elif first[1] != deadline:
                wrong("altered", *first)
            for row in got:
                wrong("double", *row)
    return sorted(mismatches, key=mismatch_order)


def counts_of(mismatches):
    return {kind: sum(mismatch.kind == kind for mismatch in mismatches) for kind in KINDS}


def cut(length, cuts):
    """Slices at these places."""
    return [
        slice(*pair)
        for pair in pairwise(sorted({0, *(cut % (length + 1) for cut in cuts), length}))
    ]


def checked(
    tape,
    rows,
    rounding=EXACT,
    *,
    cuts=(),
    row_cuts=(),
    drained=True,
    examples=ALL,
    chunk=1 << 18,
    turns=(),
    again=True,
):
    """The comparison; of the pieces left, `turns` says whether rows or operations are next."""
    pieces = [Tape(*(column[part].copy() for column in tape)) for part in cut(tape.time.size, cuts)]
    parts = [
        Rows(*(rows[name][part].copy() for name in Rows._fields))
        for part in cut(rows.size, row_cuts)
    ]
    check = Check(rounding, drained=drained, examples=examples, chunk=chunk)
    calls = {False: [*map(partial(partial, check.follow), pieces)]}
    calls[True] = [*map(partial(partial, check.match), parts)]
    for is_row in chain(turns, repeat(False, len(pieces)), repeat(True, len(parts))):
        if calls[is_row]:
            calls[is_row].pop(0)()
    return check.finish((lambda: pieces) if again else None)


CORRUPTIONS = ("drop", "twice", "again", "shift", "other deadline", "other operation", "far", "add")


def corrupted(rows, tape, changes, order):
    """Rows after some changes (what, which row, by how much), some of them moved to another
    place.
    """
    fired = rows.tolist()
    size = tape.time.size
    for what, which, by in changes:
        if what == "add" or not fired:
            fired.append((which % (size + 4) - 2, max(by, 0), abs(by)))
            continue
        k = which % len(fired)
        operation, deadline, fired_at = fired[k]
        moved = min(max(fired_at + by, 0), LIMIT)
        match what:
            case "drop":
                del fired[k]
            case "twice":
                fired.insert(k, fired[k])
            case "again":
                fired.insert(which % (len(fired) + 1), (operation, deadline, moved))
            case "shift":
                fired[k] = (operation, deadline, moved)
            case "other deadline":
                fired[k] = (operation, min(max(deadline + by, 0), LIMIT), fired_at)
            case "other operation":
                fired[k] = (which % (size + 4) - 2, deadline, fired_at)
            case "far":
                fired[k] = (operation, deadline, LIMIT)
    for start, to in order:
        if fired:
            fired.insert(to % len(fired), fired.pop(start % len(fired)))
    return np.array(fired, ROW)


def with_lies(rows, tape, rounding, which):
    """Rows after some that look right, whether or not their timers are cancelled."""
    arms = np.flatnonzero(tape.op != CANCEL)
    operations = arms[np.array(which, np.int64) % arms.size] if arms.size else arms
    due = rounding.due_at(tape.deadline[operations], tape.time[operations])
    lies = zip(operations.tolist(), tape.deadline[operations].tolist(), due.tolist(), strict=True)
    return np.concatenate([np.array([*lies], ROW), rows])


places = st.integers(0, 200)
changes = st.lists(st.tuples(st.sampled_from(CORRUPTIONS), places, st.integers(-9, 9)), max_size=6)
orders = st.lists(st.tuples(places, places), max_size=4)


def test_a_rounding_of_ones_own_is_called_for_each_arming_and_not_for_a_cancel():
    def half(deadline, armed_at):
        assert deadline != 0
        return max(deadline // 2, armed_at)

    tape = tape_of((0, START, 0, 10), (3, START, 1, 20), (4, CANCEL, 0, 0), (9, REARM, 1, 40))
    verified = checked(tape, np.array([(0, 10, 5)], ROW), OwnRounding(half))
    assert (verified.expected, verified.fired) == (1, 1)
    assert [(m.kind, m.operation, m.expected) for m in verified.examples] == [
        ("spurious", 0, None),
        ("missing", 3, 20),
    ]


def test_a_rounding_that_gives_no_moment_is_one_line():
    with pytest.raises(
        RoundingError, match=r"due_at\(10, 0\) is -1; it must be an integer in \[0, 2"
    ):
        checked(tape_of((0, START, 0, 10)), np.empty(0, ROW), OwnRounding(lambda *_: -1))


# ---- the check


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=str)
@settings(max_examples=150)
@given(
    drained=st.booleans(),
    tape=tapes(),
    changes=changes,
    orders=orders,
    cuts=st.lists(places, max_size=8),
    row_cuts=st.lists(places, max_size=8),
    chunk=st.sampled_from([0, 1, 3, 10, 1 << 18]),
    turns=st.lists(st.booleans(), max_size=16),
    lies=st.lists(places, max_size=4),
)
def test_every_mismatch_is_found_and_named(
    rounding, drained, tape, changes, orders, lies, cuts, row_cuts, chunk, turns
):
    fired_at = expected_of(tape, rounding, drained=drained)
    rows = corrupted(right_rows(tape, fired_at), tape, changes, orders)
    rows = with_lies(rows, tape, rounding, lies)
    verified = checked(
        tape,
        rows,
        rounding,
        drained=drained,
        cuts=cuts,
        row_cuts=row_cuts,
        chunk=chunk,
        turns=turns,
    )
    wanted = plain_mismatches(tape, fired_at, rows)
    assert list(verified.examples) == wanted
    assert verified.counts == counts_of(wanted)
    assert (verified.expected, verified.fired) == (np.count_nonzero(fired_at != NEVER), rows.size)


@settings(max_examples=150)
@given(
    drained=st.booleans(),
    tape=tapes(),
    changes=changes,
    cuts=st.lists(places, max_size=8),
    row_cuts=st.lists(places, max_size=8),
    turns=st.lists(st.booleans(), max_size=16),
    lies=st.lists(places, max_size=4),
)
def test_without_a_second_look_only_rows_of_settled_operations_lack_what_was_expected(
    drained, tape, changes, cuts, row_cuts, turns, lies
):
    fired_at = expected_of(tape, drained=drained)
    rows = corrupted(right_rows(tape, fired_at), tape, changes, [])
    rows = with_lies(rows, tape, EXACT, lies)
    verified = checked(
        tape,
        rows,
        drained=drained,
        cuts=cuts,
        row_cuts=row_cuts,
        chunk=0,
        turns=turns,
        again=False,
    )
    wanted = plain_mismatches(tape, fired_at, rows)
    assert verified.counts == counts_of(wanted)
    blank = {"id": None, "deadline": None, "expected": None}
    for found, whole in zip(verified.examples, wanted, strict=True):
        settled = found.kind in ("double", "spurious") and found == replace(whole, **blank)
        assert settled or found == whole


def test_a_late_double_and_a_row_of_a_cancelled_timer_are_looked_up_again():
    """And what is wrong with a row in time is known without that."""
    tape = tape_of(
        (0, START, 3, 5), (1, START, 4, 9), (2, CANCEL, 4, 0), (8, START, 3, 20), (9, START, 1, 9)
    )
    rows = np.array([(0, 5, 5), (0, 5, 5), (1, 9, 9), (3, 20, 20), (3, 20, 21), (4, 9, 10)], ROW)
    order = {"cuts": [1, 2, 3, 4], "row_cuts": [1], "turns": [0, 1], "chunk": 0}
    known = (
        Mismatch("double", 0, 3, 3, 20, 20, 21, 20),
        Mismatch("late", 0, 4, 1, 9, 9, 10, 9),
    )
    assert checked(tape, rows, **order).examples == (
        Mismatch("double", 0, 0, 3, 5, 5, 5, 5),
        Mismatch("spurious", 0, 1, 4, 9, None, 9, 9),
        *known,
    )
    assert checked(tape, rows, **order, again=False).examples == (
        Mismatch("double", 0, 0, None, None, None, 5, 5),
        Mismatch("spurious", 0, 1, None, None, None, 9, 9),
        *known,
    )


@pytest.mark.parametrize("drained", [True, False])
def test_a_row_before_its_time_is_spurious_if_its_timer_is_then_cancelled_or_left_pending(drained):
    tape = tape_of((0, START, 0, 9), (1, START, 1, 30), (2, START, 2, 3), (5, CANCEL, 0, 0))
    rows = np.array([(0, 9, 9), (1, 30, 30), (2, 3, 3)], ROW)
    order = {"cuts": [3], "row_cuts": [], "turns": [0, 1], "chunk": 0, "drained": drained}
    cancelled = Mismatch("spurious", 0, 0, 0, 9, None, 9, 9)
    pending = Mismatch("spurious", 0, 1, 1, 30, None, 30, 30)
    verified = checked(tape, rows, **order, again=False)
    assert verified.examples == ((cancelled,) if drained else (cancelled, pending))


def test_memory_does_not_grow_with_the_operations():
    def nbytes_of(size):
        tape = busy_tape(size, pending=300)
        deadline = np.minimum(tape.deadline, tape.time + 4000)  # a thousand operations later
        tape = tape._replace(deadline=np.where(tape.op == CANCEL, 0, deadline))
        rows, done, before = right_rows(tape, expected_of(tape)), 0, 0
        check = Check(EXACT, chunk=1000)
        for start in range(0, size, 1000):
            piece = Tape(*(column[start : start + 1000] for column in tape))
            done = np.searchsorted(rows["fired_at"], piece.time[-1])
            check.follow(piece)
            check.match(Rows(*(rows[name][before:done].copy() for name in Rows._fields)))
            before = done
        check.match(Rows(*(rows[name][before:].copy() for name in Rows._fields)))
        found = check.finish()
        assert (sum(found.counts.values()), found.expected, found.fired) == (0, *[rows.size] * 2)
        return check.nbytes

    a_bit = 1 / 8
    few, many = map(nbytes_of, (20_000, 200_000))
    assert few < 300_000
    assert many - few <= 2 * 3 * a_bit * 200_000  # an array has at most twice what it needs


def busy_tape(size, pending=5000, seed=1, shares=(0.4, 0.2, 0.2, 0.2)):
    """Starts, cancels, re-arms and arms in these shares, at random over many ids."""
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, 4 * size, size)).astype(np.int64)
    ids = random.integers(0, pending, size).astype(np.int32)
    op = random.choice([START, CANCEL, REARM, ARM], size, p=shares).astype(np.int8)
    op[np.unique(ids, return_index=True)[1]] = START
    deadline = np.where(
        op == CANCEL, 0, np.maximum(time + random.integers(-100, 40_000, size), 0)
    ).astype(np.int64)
    return Tape(time, op, ids, deadline)


def test_many_mismatches_are_counted_and_the_lowest_told():
    tape = busy_tape(30_000)
    fired_at = expected_of(tape)
    rows = right_rows(tape, fired_at)
    kept = rows[np.arange(rows.size) % 3 > 0]
    verified = checked(tape, kept, cuts=range(0, 30_000, 999), chunk=2000, examples=3)
    wanted = plain_mismatches(tape, fired_at, kept)
    assert verified.counts == counts_of(wanted)
    assert list(verified.examples) == wanted[:3]


def test_parts_add_up_to_the_lowest_examples_of_each_kind():
    """In the order of shard, operation, moment and deadline."""
    in_order = [
        Mismatch(kind, shard, operation, 1, 5, 7, fired_at, said)
        for kind, shard, operation, fired_at, said in (
            ("missing", 0, 3, None, None),
            ("late", 0, 3, 9, 8),
            ("late", 0, 3, 11, 2),
            ("spurious", 0, 6, 4, 4),
            ("late", 1, 2, 8, 8),
            ("missing", 1, 2, 9, 9),
        )
    ]
    assert lowest(in_order[::-1], 9) == tuple(in_order)
    counts = [dict.fromkeys(KINDS, number) for number in (3, 7)]
    parts = [
        Verified(11, 13, counts[0], tuple(in_order[3:])),
        Verified(17, 19, counts[1], tuple(in_order[:3])),
    ]
    verified = combined(iter(parts), 1)
    assert (verified.expected, verified.fired) == (28, 32)
    assert verified.counts == dict.fromkeys(KINDS, 10)
    assert verified.examples == (in_order[0], in_order[1], in_order[3])


# ---- the compiled functions


def test_without_the_compiler_it_does_the_same():
    probe = (
        "import warnings; warnings.simplefilter('error');"
        "from tests.compare.trial.oracle.test_check import *;"
        "tape = busy_tape(2000, pending=50); fired_at = expected_of(tape);"
        "changes = [(what, 7 * k, 2) for k, what in enumerate(CORRUPTIONS)];"
        "rows = corrupted(right_rows(tape, fired_at), tape, changes, [(3, 90)]);"
        "found = checked(tape, rows, cuts=range(0, 2000, 300), chunk=500, turns=[0, 0, 1, 0]);"
        "assert list(found.examples) == plain_mismatches(tape, fired_at, rows), found"
    )
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
