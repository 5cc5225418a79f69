"""On both engines, every mismatch of a replay is found, with its kind, and nothing else."""

import dataclasses
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import compare.traffic.tapes.blocks
from compare.cli.commands import verify as command
from compare.cli.main import main
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.traffic.tapes.trace import write_trace
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.oracle.mismatches import KINDS, Mismatch, mismatch_order
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import EXPIRIES, ResultsError
from compare.trial.pipeline.verify import Verdict, Verification, verify
from tests.compare.conftest import on_both
from tests.compare.small_tapes import tape_of
from tests.compare.trial.oracle.test_check import (
    CORRUPTIONS,
    ROW,
    busy_tape,
    corrupted,
    counts_of,
    plain_mismatches,
    right_rows,
)
from tests.compare.trial.pipeline.contents import rewrite, rows_of, table_of
from tests.words import one_line
from timers import TimerError
from timers.limits import LIMIT
from timers.registry import timer_class
from timers.rounding import OwnRounding
from timers.traits import Parameter

ALL = 10**6
HALF = f"{__name__}:HalfTimer"
FORMS = [
    "delay-queue",
    "hierarchical-wheel/tick=7",
    "hashed-wheel/tick=100",
    f"{HALF}/scale=3",
]
"""A timer for each closed form, and one with a closed form of its own."""


class HalfTimer(timer_class("delay-queue")):
    """It should fire at the `scale`-th part of the deadline."""

    def __init__(self, scale=2, start=0, capacity=1, counting=False):
        super().__init__(scale=scale, start=start, capacity=capacity, counting=counting)

    traits = dataclasses.replace(
        timer_class("delay-queue").traits,
        rounding=lambda parameters: OwnRounding(
            lambda deadline, armed_at: max(deadline // parameters["scale"], armed_at)
        ),
        parameters={"scale": Parameter(2)},
    )


def write_results(path, tapes, timers, fired_by=None, **options):
    """Results of a replay; `fired_by(contestant, shard, tape)` are put in place of its expiries."""
    trace = write_trace(path.with_name(f"{path.name}.trace"), tapes, unit="us", source={})
    results = replay_trace(trace, timers, path, **options)
    if fired_by:
        by_label = {timer.label: timer for timer in results.contestants}
        fired = {
            (label, shard): fired_by(timer, shard, tape)
            for label, timer in by_label.items()
            for shard, tape in enumerate(tapes)
        }
        replace_expiries(results.expiries, fired)
    return results


def replace_expiries(dataset, fired):
    """Put other rows in place of the expiries of each (label, shard), in two pieces."""
    rows = []
    for row in rows_of(dataset):
        if row["outcome"] is not None:
            new = fired[row["contestant"], row["shard"]]
            half = len(new) // 2
            for piece, part in enumerate((new[:half], new[half:])):
                lists = {name: part[name].tolist() for name in ROW.names}
                outcome = row["outcome"] if piece else None
                rows.append({**row, **lists, "piece": piece, "outcome": outcome})
    rewrite(dataset, pa.Table.from_pylist(rows, EXPIRIES))


def moments(contestant, tape, *, drained=True):
    return expect(tape, id_space_of(tape), contestant.rounding("us"), drained=drained).fired_at


def random_tape(random):
    """Some operations of every kind on a few ids: equal times, deadlines past and far, up to the
    last moment.
    """
    now = int(random.choice([0, 255, 2**40, LIMIT - 2000]))
    rows, started = [], set()
    for _ in range(random.integers(0, 130)):
        now = min(now + int(random.choice([0, 0, 0, 1, 1, 2, 7, 100])), LIMIT)
        i = int(random.integers(0, min(len(started) + 1, 6)))  # never more ids than rows
        op = int(
            random.choice([START, CANCEL, REARM, REARM, ARM] if i in started else [START, ARM])
        )
        delay = int(random.choice([-3, 0, 1, 3, 8, 12, 99, 101, 256, 5000, 2**33]))
        started.add(i)
        rows.append((now, op, i, 0 if op == CANCEL else min(max(now + delay, 0), LIMIT)))
    return tape_of(*rows)


def random_rows(random, right, tape):
    """A third of them right; the others with some mistakes, and some out of order."""
    if random.random() < 1 / 3:
        return right
    changes = [
        (str(random.choice(CORRUPTIONS)), int(random.integers(200)), int(random.integers(-9, 10)))
        for _ in range(random.integers(1, 6))
    ]
    order = [tuple(random.integers(0, 200, 2).tolist()) for _ in range(random.integers(0, 3))]
    return corrupted(right, tape, changes, order)


@on_both
@pytest.mark.parametrize(
    ("drained", "timers"),
    [(True, FORMS[1::2]), (False, FORMS[2:3])],
    ids=["drained", "not-drained"],
)
@pytest.mark.parametrize("block", [10, 1 << 16])
def test_what_is_wrong_with_random_tapes_is_found(
    where, tmp_path, monkeypatch, drained, timers, block
):
    """Compared with an oracle in plain Python."""
    monkeypatch.setattr(compare.traffic.tapes.blocks, "BLOCK", block)
    random = np.random.default_rng(5 + drained)
    tapes = [random_tape(random) for _ in range(12)]
    wanted = {}

    def fired_by(contestant, shard, tape):
        fired_at = moments(contestant, tape, drained=drained)
        rows = random_rows(random, right_rows(tape, fired_at), tape)
        at_hand = wanted.setdefault(contestant.label, [0, 0, []])
        at_hand[0] += np.count_nonzero(fired_at != NEVER)
        at_hand[1] += rows.size
        at_hand[2] += plain_mismatches(tape, fired_at, rows, shard)
        return rows

    results = write_results(tmp_path / "some [results]", tapes, timers, fired_by, drained=drained)
    verified = verify(results.path, examples=ALL, allow=[HALF], **where)
    for verdict in verified.timers:
        expected, fired, mismatches = wanted[verdict.timer]
        assert list(verdict.examples) == sorted(mismatches, key=mismatch_order), verdict.timer
        assert verdict.counts == counts_of(mismatches)
        assert (verdict.expected, verdict.fired) == (expected, fired)
    assert [verdict.timer for verdict in verified.timers] == list(wanted)
    assert not verified.passed


@on_both
def test_what_timers_fire_is_right(where, tmp_path):
    tapes = [busy_tape(5_000, pending=300, seed=3), tape_of()]
    verified = verify(write_results(tmp_path / "results", tapes, FORMS[:3]).path, **where)
    assert verified.passed
    assert (verified.operations, verified.shards) == (5_000, 2)


@on_both
def test_the_closed_form_of_a_timer_of_ones_own_is_found_by_workers(where, tmp_path, monkeypatch):
    """Its module is where only the driver looks."""
    lines = f"from {__name__} import HalfTimer", "class Half(HalfTimer):", "    pass"
    (tmp_path / "half.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    tape = tape_of((0, START, 0, 9), (1, REARM, 0, 20))  # no arm beside the re-arm
    path = write_results(tmp_path / "results", [tape], ["half:Half"]).path
    assert verify(path, allow=["half:Half"], **where).timers[0].counts == dict.fromkeys(
        KINDS, 0
    ) | {"late": 1}


# ---- what cannot be verified


@pytest.fixture
def small(tmp_path):
    tapes = [tape_of((0, START, 0, 5), (1, START, 1, 7)), tape_of((0, START, 0, 5))]
    results = write_results(tmp_path / "results", tapes, ["delay-queue"])
    keep = {
        ("delay-queue", shard): right_rows(tape, moments(results.contestants[0], tape))
        for shard, tape in enumerate(tapes)
    }
    replace_expiries(results.expiries, keep)
    assert verify(results.path).passed
    return results


def fails(results, kind=ResultsError, *, says, **settings):
    with one_line(kind, says):
        verify(results.path, **settings)


def changed(number, **values):
    """Change a row, or leave it out without values. Each of two shards has two rows."""

    def change(table):
        rows = table.to_pylist()
        rows[number : number + 1] = [{**rows[number], **values}] if values else []
        return pa.Table.from_pylist(rows, EXPIRIES)

    return change


@on_both
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed(0), "the expiries of delay-queue in shard 0 lack piece 0"),
        (changed(3), "the expiries of delay-queue in shard 1 are not complete"),
        (lambda table: table.slice(0, 2), "delay-queue in shard 1 are not complete"),
        (
            lambda table: pa.concat_tables([table, table]),
            "delay-queue in shard [01] lack piece 1, or have pieces of two runs",
        ),
        (changed(1, contestant="other"), "the results have 'other', which was not replayed"),
        (changed(0, deadline=[None]), "an expiry has no deadline"),
        (changed(0, fired_at=None), "an expiry has no fired_at"),
    ],
    ids=["first", "last", "shard", "two-runs", "other-timer", "no-deadline", "no-list"],
)
def test_expiries_that_are_not_whole_are_one_line(where, small, change, says):
    rewrite(small.expiries, change(table_of(small.expiries)))
    fails(small, says=says, kind=TimerError, **where)


@on_both
@pytest.mark.parametrize("which", ["expiries", "trace"])
def test_a_trace_or_results_without_files_are_one_line(where, small, which):
    rewrite(small.expiries if which == "expiries" else small.trace.blocks)
    says = "not complete|has no blocks|lack|missing"
    fails(small, says=says, kind=TimerError, **where)


@on_both
def test_the_order_of_rows_and_files_does_not_matter(where, small):
    table = table_of(small.expiries)
    rewrite(small.expiries, table.take([2, 1]), table.take([3, 0]))
    assert verify(small.path, **where).passed


@on_both
@pytest.mark.parametrize("which", ["expiries", "trace"])
def test_a_damaged_file_is_one_line(where, small, which):
    [file] = (small.expiries if which == "expiries" else small.trace.blocks).files
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    fails(small, TimerError, says=re.escape(file.name), **where)


@on_both
def test_a_damaged_byte_is_an_error_and_not_another_number(where, small):
    [file] = small.expiries.files
    data = bytearray(file.read_bytes())
    with pq.ParquetFile(file) as opened:
        row_group = opened.metadata.row_group(0)
        names = [row_group.column(k).path_in_schema for k in range(row_group.num_columns)]
        chunk = row_group.column(names.index("fired_at.list.element"))
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    file.write_bytes(data)
    # Spark does not always say which file it is.
    fails(small, TimerError, says=f"CRC checksum|{file.name}", **where)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"operation": [1], "fired_at": [1]}, "has the columns (operation int64, fired_at int64);"),
        ({"shard": [0], "time": [[1.5]]}, "time list<element: double>); it must have (shard int32"),
    ],
)
def test_a_file_of_other_columns_is_one_line(small, columns, says):
    [file] = small.expiries.files
    pq.write_table(pa.table(columns), file)
    fails(small, says=re.escape(says))


def test_results_without_expiries_cannot_be_verified(small, tmp_path):
    kept = replay_trace(small.trace, ["delay-queue"], tmp_path / "kept", expiries=False)
    fails(kept, says="has only summaries; replay without --summaries-only to verify")


# ---- the command


@pytest.fixture
def run(capsys):
    """Runs the command; returns its exit code and what it printed."""

    def run(*arguments):
        code = main(["verify", *map(str, arguments)])
        return code, capsys.readouterr().out

    return run


def test_the_lowest_of_each_kind_are_told(run, small):
    wrong = np.array([(1, 7, 9), (9, 0, 5), (-2, 0, 5), (0, 5, 8)], ROW)
    right = np.array([(0, 5, 5)], ROW)
    replace_expiries(small.expiries, {("delay-queue", 0): wrong, ("delay-queue", 1): right})
    code, out = run(small.path, "--examples", "1")
    assert code == command.MISMATCHES
    assert "delay-queue: 2 spurious, 2 late" in out
    assert [line.split()[:5] for line in out.splitlines()[-2:]] == [
        ["spurious", "shard", "0,", "operation", "-2"],
        ["late", "shard", "0,", "operation", "0"],
    ]


def test_the_table_fits_80_columns(tmp_path):
    far = Mismatch("late", 99_999, 10**12, 2**31 - 1, LIMIT - 1, LIMIT - 1, LIMIT, LIMIT - 1)
    examples = tuple(Mismatch(kind, *list(vars(far).values())[1:]) for kind in KINDS)
    stray = Mismatch("spurious", 0, -1, None, None, None, LIMIT, LIMIT)
    name = "hierarchical-wheel/tick=1000/wheel-size=1024"
    counts = dict.fromkeys(KINDS, 10**12)
    verdict = Verdict(10**12, 10**12, counts, (*examples, stray), name)
    text = command.text_of(Verification(str(tmp_path), "us", 10**12, 10**5, (verdict,)))
    assert max(len(line) for line in text.splitlines()[1:]) <= 80
    assert "(not on the tape): fired at" in text
