"""Both methods find every mismatch of a replay, with its kind, and nothing else."""

import dataclasses
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.cli.commands import verify as command
from compare.cli.main import main
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.traffic.tapes.trace import shard_name, write_trace
from compare.trial.oracle import sql
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.oracle.mismatches import KINDS, Mismatch, mismatch_order
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.results import EXPIRIES, ResultsError, read_expiries
from compare.trial.pipeline.verify import METHODS, Verdict, Verification, verify
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
from tests.words import one_line
from timers import TimerError
from timers.limits import LIMIT
from timers.registry import timer_class
from timers.rounding import OwnRounding, Rounding
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


@pytest.fixture(
    params=["compiled", *(pytest.param(name, marks=pytest.mark.spark) for name in METHODS)],
    ids=["threads", *METHODS],
)
def how(request):
    """The compiled method in this process, and both on Spark, as keywords of `verify`."""
    if request.param_index == 0:
        return {}
    return {"method": request.param, "session": request.getfixturevalue("spark")}


def write_results(path, tapes, timers, rows_of=None, **options):
    """Results of a replay; `rows_of(contestant, shard, tape)` are put in place of its expiries."""
    trace = write_trace(path.with_name(f"{path.name}.trace"), tapes, unit="us", source={})
    results = replay_trace(trace, timers, path, **options)
    for timer, shard in results.replays() if rows_of else ():
        rows = rows_of(results.contestants[timer], shard, tapes[shard])
        write_expiries(results.expiries_file(timer, shard), rows)
    return path


def write_expiries(file, rows):
    columns = [pa.array(np.ascontiguousarray(rows[name])) for name in EXPIRIES.names]
    pq.write_table(pa.table(columns, schema=EXPIRIES), file)


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


@pytest.mark.parametrize(
    ("drained", "timers"),
    [(True, FORMS[1::2]), (False, FORMS[2:3])],
    ids=["drained", "not-drained"],
)
def test_what_is_wrong_with_random_tapes_is_found(how, tmp_path, drained, timers):
    """The one test that compares both oracles with a third one, in plain Python."""
    random = np.random.default_rng(5 + drained)
    tapes = [random_tape(random) for _ in range(12)]
    wanted = {}

    def rows_of(contestant, shard, tape):
        fired_at = moments(contestant, tape, drained=drained)
        rows = random_rows(random, right_rows(tape, fired_at), tape)
        at_hand = wanted.setdefault(contestant.label, [0, 0, []])
        at_hand[0] += np.count_nonzero(fired_at != NEVER)
        at_hand[1] += rows.size
        at_hand[2] += plain_mismatches(tape, fired_at, rows, shard)
        return rows

    path = write_results(tmp_path / "some [results]", tapes, timers, rows_of, drained=drained)
    verified = verify(path, examples=ALL, allow=[HALF], **how)
    for verdict in verified.timers:
        expected, fired, mismatches = wanted[verdict.timer]
        assert list(verdict.examples) == sorted(mismatches, key=mismatch_order), verdict.timer
        assert verdict.counts == counts_of(mismatches)
        assert (verdict.expected, verdict.fired) == (expected, fired)
    assert [verdict.timer for verdict in verified.timers] == list(wanted)
    assert not verified.passed


@pytest.mark.spark
def test_a_rounding_in_sql_is_that_of_the_traits_up_to_the_last_moment(spark):
    random = np.random.default_rng(3)
    ticks = [1, 2, 7, 2**62, LIMIT, *(2 ** random.uniform(0, 63, 10)).astype(np.int64).tolist()]
    roundings = [Rounding(), Rounding("levels")]
    roundings += [Rounding(way, tick) for way in ("down", "up") for tick in ticks]
    edges = [0, 1, 6, 7, 8, 99, 2**40, LIMIT // 2, LIMIT - 8, LIMIT - 1, LIMIT]
    edges += [min(edge * ticks[-1], LIMIT) for edge in (1, 2, 3)]
    pairs = [(deadline, time) for deadline in edges for time in edges]
    pairs += [(63 * 8**level + by, 0) for level in range(9) for by in (-1, 0, 1)]
    pairs += (2 ** random.uniform(0, 63, (200, 2))).astype(np.int64).tolist()
    rows = spark.createDataFrame(pairs, "deadline BIGINT, time BIGINT").coalesce(1)
    verified = rows.selectExpr("deadline", "time", *(sql.due(rounding) for rounding in roundings))
    for deadline, time, *moments in verified.collect():
        assert moments == [rounding.due_at(deadline, time) for rounding in roundings]


def test_what_timers_fire_is_right(how, tmp_path):
    tapes = [busy_tape(5_000, pending=300, seed=3), tape_of()]
    verified = verify(write_results(tmp_path / "results", tapes, FORMS[:3]), **how)
    assert verified.passed
    method = how.get("method", "compiled")
    assert (verified.operations, verified.shards, verified.method) == (5_000, 2, method)


def test_the_closed_form_of_a_timer_of_ones_own_is_found_by_workers(how, tmp_path, monkeypatch):
    """Its module is where only the driver looks."""
    lines = f"from {__name__} import HalfTimer", "class Half(HalfTimer):", "    pass"
    (tmp_path / "half.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    tape = tape_of((0, START, 0, 9), (1, REARM, 0, 20))  # no arm beside the re-arm
    path = write_results(tmp_path / "results", [tape], ["half:Half"])
    assert verify(path, allow=["half:Half"], **how).timers[0].counts == dict.fromkeys(KINDS, 0) | {
        "late": 1
    }


# ---- what cannot be verified


@pytest.fixture
def small(tmp_path):
    tape = tape_of((0, START, 0, 5), (1, START, 1, 7))
    return write_results(tmp_path / "results", [tape], ["delay-queue"])


def fails(path, kind=ResultsError, *, says, **settings):
    with one_line(kind, re.escape(says)):
        verify(path, **settings)


def test_an_unknown_method_is_one_line(small):
    fails(small, says="method 'guess' is not compiled or sql", method="guess")


def test_a_missing_file_is_one_line(small, how):
    (small / "expiries" / "timer-000" / shard_name(0)).unlink()
    fails(small, says="timer-000/shard-00000.parquet does not exist", **how)


@pytest.mark.parametrize("which", ["expiries", "trace"])
def test_a_damaged_file_is_one_line(small, how, which):
    file = small / "expiries" / "timer-000" / shard_name(0)
    if which == "trace":
        file = small.with_name("results.trace") / shard_name(0)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    fails(small, TimerError, says=f"{file} is not a readable Parquet file", **how)


def test_a_damaged_byte_is_an_error_and_not_another_number(small, how):
    file = small / "expiries" / "timer-000" / shard_name(0)
    data = bytearray(file.read_bytes())
    with pq.ParquetFile(file) as opened:
        chunk = opened.metadata.row_group(0).column(2)
    last = chunk.data_page_offset + chunk.total_compressed_size - 1
    data[last] ^= 1
    file.write_bytes(data)
    # Spark does not say which file it is.
    says = "CRC checksum" if how.get("method") == "sql" else file.name
    fails(small, TimerError, says=says, **how)


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
    with pytest.raises(ResultsError) as raised:
        list(read_expiries(path))
    assert str(raised.value).startswith(str(path))
    assert says in str(raised.value)


def test_a_file_is_read_in_pieces(tmp_path, monkeypatch):
    # Private: the public way is a file of 300 000 rows.
    monkeypatch.setattr("compare.trial.pipeline.results._ROWS_AT_ONCE", 10)
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({name: pa.array(range(25)) for name in EXPIRIES.names[::-1]}), path)
    pieces = list(read_expiries(path))
    assert max(piece.fired_at.size for piece in pieces) <= 10
    assert np.concatenate([piece.fired_at for piece in pieces]).tolist() == list(range(25))


# ---- the command


@pytest.fixture
def run(capsys):
    """Runs the command; returns its exit code and what it printed."""

    def run(*arguments):
        code = main(["verify", *map(str, arguments)])
        return code, capsys.readouterr().out

    return run


def test_the_lowest_of_each_kind_are_told(run, small, how):
    """With SQL, the command finds the tests' session running."""
    file = small / "expiries" / "timer-000" / shard_name(0)
    write_expiries(file, np.array([(1, 7, 9), (9, 0, 5), (-2, 0, 5), (0, 5, 8)], ROW))
    code, out = run(small, "--method", how.get("method", "compiled"), "--examples", "1")
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
    text = command.text_of(Verification(tmp_path, "compiled", "us", 10**12, 10**5, (verdict,)))
    assert max(len(line) for line in text.splitlines()[1:]) <= 80
    assert "(not on the tape): fired at" in text
