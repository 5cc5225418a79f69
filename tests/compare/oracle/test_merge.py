"""The merge inside a shard finds every mismatch, with its kind, and nothing else; the oracle is the
third opinion.
"""

import dataclasses
import os
import subprocess
import sys
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.bench.contestant import contestant
from compare.oracle.compiled import NEVER, expect
from compare.oracle.merge import (
    COLUMNS,
    EXACT,
    FOREIGN,
    KINDS,
    ROUND_DOWN,
    ROUND_UP,
    ROW,
    Cell,
    Form,
    Mismatch,
    VerifyError,
    due_by,
    merge,
    mismatch_order,
    read_expiries,
)
from compare.replay.engine import replay
from compare.tapes.tape import ARM, CANCEL, REARM, START, Tape, count_ops, id_space_of
from compare.tapes.trace import Shard
from tests.compare.small_tapes import tape_of, tapes
from timers.errors import RoundingError
from timers.limits import LIMIT
from timers.registry import timer_class
from timers.rounding import OwnRounding, Rounding

ALL = 10**6
"""Examples: all there are."""

FORMS = [
    ("delay-queue", {}, Form(EXACT)),
    ("hierarchical-wheel", {"tick": 7, "wheel_size": 20}, Form(ROUND_DOWN, 7)),
    ("hashed-wheel", {"tick": 100, "wheel_size": 8}, Form(ROUND_UP, 100)),
    ("hashed-wheel", {"tick": 1, "wheel_size": 8}, Form(ROUND_UP, 1)),
]
"""A timer and parameters for each closed form."""


# ---- helpers, for the tests of the join as well


def expected_of(tape, name, parameters, *, drained=True):
    """When each operation's timer fires, by compare.oracle.compiled; NEVER where none does."""
    return expect(
        tape,
        id_space_of(tape),
        timer_class(name).traits.rounding(parameters),
        drained=drained,
    ).fired_at


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
        operation: sorted((at, said) for _, said, at in group)
        for operation, group in groupby(sorted(rows.tolist()), key=lambda row: row[0])
    }
    expected = {k: at for k, at in enumerate(fired_at.tolist()) if at != NEVER}
    found = []
    for operation in sorted(expected.keys() | by_operation.keys()):
        on_tape = 0 <= operation < tape.time.size
        i, deadline = (
            (int(tape.id[operation]), int(tape.deadline[operation])) if on_tape else (None, None)
        )
        due, got = expected.get(operation), by_operation.get(operation, [])

        def wrong(kind, at=None, said=None, where=(shard, operation, i, deadline, due)):
            found.append(Mismatch(kind, *where, at, said))

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
    return sorted(found, key=mismatch_order)


def counts_of(mismatches):
    return tuple(sum(mismatch.kind == kind for mismatch in mismatches) for kind in KINDS)


def shard_of(tape):
    ends = (int(tape.time[0]), int(tape.time[-1])) if tape.time.size else (None, None)
    return Shard("", tape.time.size, id_space_of(tape), *ends, *count_ops(tape))


def cut(length, cuts):
    """Slices at these places."""
    return [
        slice(*pair) for pair in pairwise(sorted({0, *(at % (length + 1) for at in cuts), length}))
    ]


def merged(
    tape,
    rows,
    form=Form(EXACT),  # noqa: B008
    *,
    drained=True,
    cuts=(),
    row_cuts=(),
    patience=4,
    examples=ALL,
):
    pieces = [Tape(*(column[part].copy() for column in tape)) for part in cut(tape.time.size, cuts)]
    parts = [rows[part].copy() for part in cut(rows.size, row_cuts)]
    cell = Cell(0, 0, "", "", "", form, drained, examples)
    return merge(lambda: iter(pieces), parts, shard_of(tape), cell, patience)


CORRUPTIONS = ("drop", "twice", "again", "shift", "other deadline", "other operation", "far", "add")


def corrupted(rows, tape, changes, order):
    """Rows after some changes (what, which row, by how much), some of them moved to another
    place.
    """
    found = rows.tolist()
    size = tape.time.size
    for what, which, by in changes:
        if what == "add" or not found:
            found.append((which % (size + 4) - 2, max(by, 0), abs(by)))
            continue
        at = which % len(found)
        operation, deadline, fired_at = found[at]
        moved = min(max(fired_at + by, 0), LIMIT)
        match what:
            case "drop":
                del found[at]
            case "twice":
                found.insert(at, found[at])
            case "again":
                found.insert(which % (len(found) + 1), (operation, deadline, moved))
            case "shift":
                found[at] = (operation, deadline, moved)
            case "other deadline":
                found[at] = (operation, min(max(deadline + by, 0), LIMIT), fired_at)
            case "other operation":
                found[at] = (which % (size + 4) - 2, deadline, fired_at)
            case "far":
                found[at] = (operation, deadline, LIMIT)
    for start, to in order:
        if found:
            found.insert(to % len(found), found.pop(start % len(found)))
    return np.array(found, ROW)


places = st.integers(0, 200)
changes = st.lists(st.tuples(st.sampled_from(CORRUPTIONS), places, st.integers(-9, 9)), max_size=6)
orders = st.lists(st.tuples(places, places), max_size=4)


# ---- closed forms


@pytest.mark.parametrize("tick", [1, 7, 100, 2**40, 2**62, LIMIT])
@pytest.mark.parametrize(
    "kind",
    [EXACT, ROUND_DOWN, ROUND_UP],
)
def test_a_closed_form_of_arrays_is_that_of_the_traits_up_to_the_last_moment(kind, tick):
    moments = sorted(
        {
            0,
            1,
            6,
            7,
            8,
            99,
            100,
            2**40,
            LIMIT // 2,
            LIMIT - 101,
            LIMIT - 8,
            LIMIT - 1,
            LIMIT,
            tick - 1,
            tick,
        }
    )
    pairs = [(deadline, armed_at) for deadline in moments for armed_at in moments]
    deadlines, times = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    assert due_by(Form(kind, tick))(deadlines, times).tolist() == [
        Rounding(kind, tick).due_at(*pair) for pair in pairs
    ]


def test_a_closed_form_of_somebodys_own_is_asked_for_each_arming():
    form = Form(FOREIGN, 1, f"{__name__}:HalfTimer", (("scale", 2),))
    assert due_by(form)(np.array([10, LIMIT]), np.array([7, 0])).tolist() == [7, LIMIT // 2]
    tape = tape_of((0, START, 0, 10), (3, START, 1, 20), (4, CANCEL, 0, 0), (9, REARM, 1, 40))
    rows = np.array([(0, 10, 5)], ROW)
    found = merged(tape, rows, form)
    assert (found.expected, found.fired) == (1, 1)
    assert [(m.kind, m.operation, m.expected) for m in found.examples] == [
        ("missing", 3, 20),
        ("spurious", 0, None),
    ]


def test_a_closed_form_that_gives_no_moment_is_one_line():
    form = Form(FOREIGN, 1, f"{__name__}:HalfTimer", (("scale", 0),))
    with pytest.raises(
        RoundingError, match=r"due_at\(10, 0\) is -1; it must be an integer in \[0, 2"
    ):
        merged(tape_of((0, START, 0, 10)), np.empty(0, ROW), form)


class HalfTimer(timer_class("delay-queue")):
    """It fires at the `scale`-th part of the deadline."""

    def __init__(self, scale=2, start=0, capacity=1, counting=False):
        super().__init__(start=start, capacity=capacity, counting=counting)
        self._scale = scale

    @property
    def parameters(self):
        return {"scale": self._scale}

    traits = dataclasses.replace(
        timer_class("delay-queue").traits,
        rounding=lambda parameters: OwnRounding(
            lambda deadline, armed_at: (
                max(deadline // parameters["scale"], armed_at) if parameters["scale"] else -1
            )
        ),
        defaults={"scale": 2},
    )


# ---- the merge


@pytest.mark.parametrize("drained", [True, False], ids=["drained", "not-drained"])
@pytest.mark.parametrize(("name", "parameters", "form"), FORMS, ids=lambda value: str(value))
@settings(max_examples=150)
@given(
    tape=tapes(),
    changes=changes,
    orders=orders,
    cuts=st.lists(places, max_size=3),
    row_cuts=st.lists(places, max_size=3),
    patience=st.sampled_from([0, 1, 4, ALL]),
)
def test_every_mismatch_is_found_and_named(
    name, parameters, form, drained, tape, changes, orders, cuts, row_cuts, patience
):
    fired_at = expected_of(tape, name, parameters, drained=drained)
    rows = corrupted(right_rows(tape, fired_at), tape, changes, orders)
    found = merged(
        tape, rows, form, drained=drained, cuts=cuts, row_cuts=row_cuts, patience=patience
    )
    wanted = plain_mismatches(tape, fired_at, rows)
    assert sorted(found.examples, key=mismatch_order) == wanted
    assert found.counts == counts_of(wanted)
    assert (found.expected, found.fired) == (np.count_nonzero(fired_at != NEVER), rows.size)


@pytest.mark.parametrize(("name", "parameters", "form"), FORMS, ids=lambda value: str(value))
@settings(max_examples=100)
@given(tape=tapes())
def test_what_a_timer_fires_has_no_mismatch(name, parameters, form, tape):
    timer = contestant(name, parameters).new(int(tape.time[0]) if tape.time.size else 0)
    rows = replay(timer, tape, id_space_of(tape)).fired
    assert not any(merged(tape, rows.view(ROW), form, patience=0).counts)


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


def one_of_each(rows, tape, fired_at, seed=1, times=1):
    """Rows with `times` corruptions of each kind, on operations of their own, and the corruptions
    as {operation: kind}.
    """
    random = np.random.default_rng(seed)
    never = np.flatnonzero(fired_at == NEVER)
    chosen = random.choice(rows.size, 5 * times, replace=False).tolist()
    kinds = [kind for kind in KINDS if kind != "spurious" for _ in range(times)]
    rows, added, dropped = rows.copy(), [], []
    which = {}
    for at, kind in zip(chosen, kinds, strict=True):
        which[int(rows[at]["operation"])] = kind
        match kind:
            case "missing":
                dropped.append(at)
            case "early":
                rows[at]["fired_at"] -= 1
            case "late":
                rows[at]["fired_at"] += 1
            case "double":
                added.append((at, rows[at]))
            case "altered":
                rows[at]["deadline"] += 1
    for operation in random.choice(never, times, replace=False).tolist():
        which[operation] = "spurious"
        deadline = int(tape.deadline[operation])
        added.append(
            (
                random.integers(rows.size),
                (operation, deadline, max(deadline, int(tape.time[operation]))),
            )
        )
    whole = np.insert(
        rows, [at for at, _ in added], np.array([tuple(row) for _, row in added], ROW)
    )
    gone = [at + sum(before <= at for before, _ in added) for at in dropped]
    return np.delete(whole, gone), which


def test_one_wrong_row_of_each_kind_among_many_is_found_and_nothing_else():
    tape = busy_tape(200_000)
    fired_at = expected_of(tape, "delay-queue", {})
    rows, which = one_of_each(right_rows(tape, fired_at), tape, fired_at)
    found = merged(tape, rows, cuts=[70_000], row_cuts=[10_000], patience=1000)
    assert {mismatch.operation: mismatch.kind for mismatch in found.examples} == which
    assert found.counts == (1,) * len(KINDS)


@pytest.mark.parametrize("lost", ["all", "the first half", "every third"])
def test_many_mismatches_are_counted_and_the_lowest_told(lost):
    tape = busy_tape(30_000)
    fired_at = expected_of(tape, "delay-queue", {})
    rows = right_rows(tape, fired_at)
    kept = {
        "all": rows[:0],
        "the first half": rows[rows.size // 2 :],
        "every third": rows[np.arange(rows.size) % 3 > 0],
    }[lost]
    found = merged(tape, kept, patience=50, examples=3)
    wanted = plain_mismatches(tape, fired_at, kept)
    assert found.counts == counts_of(wanted)
    assert list(found.examples) == wanted[:3]


def test_rows_late_to_come_are_not_awaited_for_long():
    """Two rows that claim to be from the end of time must not make it hold all that come after
    them.
    """
    tape = busy_tape(100_000, pending=100)
    fired_at = expected_of(tape, "delay-queue", {})
    rows = right_rows(tape, fired_at)
    rows["fired_at"][[10, 11]] = LIMIT
    taken = []
    pieces = [
        Tape(*(column[part].copy() for column in tape))
        for part in cut(tape.time.size, range(0, 100_000, 500))
    ]

    def watched():
        for k, piece in enumerate(pieces):
            taken.append(k)
            yield piece

    behind = []

    def expiries():
        for first in range(0, rows.size, 200):
            behind.append(len(taken))
            yield rows[first : first + 200].copy()

    found = merge(
        watched, expiries(), shard_of(tape), Cell(0, 0, "", "", "", Form(EXACT), True, ALL), 300
    )
    assert found.counts == counts_of(plain_mismatches(tape, fired_at, rows))
    # Row pieces were asked for all along the tape, not after its end.
    assert behind[len(behind) // 2] < len(pieces) * 0.7


def test_a_tape_of_nothing_has_nothing_to_fire():
    empty = tape_of()
    assert merged(empty, np.empty(0, ROW)).counts == (0,) * len(KINDS)
    found = merged(empty, np.array([(0, 5, 5)], ROW))
    assert found.counts == counts_of(found.examples)
    assert found.examples == (Mismatch("spurious", 0, 0, None, None, None, 5, 5),)


# ---- files


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            {"operation": [1], "fired_at": [1]},
            "has the columns (operation int64, fired_at int64); expiries have",
        ),
        ({"operation": [1], "deadline": [1.5], "fired_at": [1]}, "deadline double"),
        ({"operation": [1], "deadline": [None], "fired_at": [1]}, "has a row without deadline"),
    ],
)
def test_a_file_of_other_columns_is_one_line(tmp_path, table, says):
    kinds = {name: pa.float64() if 1.5 in values else pa.int64() for name, values in table.items()}
    path = tmp_path / "some.parquet"
    pq.write_table(
        pa.table({name: pa.array(values, kinds[name]) for name, values in table.items()}), path
    )
    with pytest.raises(VerifyError) as raised:
        list(read_expiries(path))
    assert str(raised.value).startswith(str(path))
    assert says in str(raised.value)


def test_a_file_that_is_damaged_or_missing_is_one_line(tmp_path):
    path = tmp_path / "some.parquet"
    with pytest.raises(VerifyError, match="some.parquet does not exist"):
        list(read_expiries(path))
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(VerifyError, match="is not a readable Parquet file") as raised:
        list(read_expiries(path))
    assert "\n" not in str(raised.value)


def test_a_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("compare.oracle.merge._ROWS_AT_ONCE", 10)
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({name: pa.array(range(25)) for name in reversed(COLUMNS)}), path)
    pieces = list(read_expiries(path))
    assert max(piece.size for piece in pieces) <= 10
    assert np.concatenate(pieces)["fired_at"].tolist() == list(range(25))


# ---- the compiled functions


def test_without_the_compiler_it_does_the_same():
    probe = (
        "import warnings; warnings.simplefilter('error');"
        "from tests.compare.oracle.test_merge import *;"
        "tape = busy_tape(2000, pending=50); fired_at = expected_of(tape, 'delay-queue', {});"
        "rows, which = one_of_each(right_rows(tape, fired_at), tape, fired_at);"
        "found = merged(tape, rows, patience=5);"
        "assert {m.operation: m.kind for m in found.examples} == which, found"
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


def test_it_knows_no_timer_and_no_replay():
    source = open(merge.__code__.co_filename).read()  # noqa: PTH123, SIM115
    imported = [
        line.split()[1] for line in source.splitlines() if line.startswith(("from ", "import "))
    ]
    assert {name for name in imported if name.startswith(("timers", "compare"))} == {
        "compare.files",
        "compare.tapes.tape",
        "compare.tapes.trace",
        "timers.errors",
        "timers.kernels.jit",
        "timers.limits",
        "timers.rounding",
    }
