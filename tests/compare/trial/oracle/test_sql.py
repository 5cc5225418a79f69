"""A third oracle, in SQL: it shares no code with the compiled one and that in plain Python."""

import numpy as np
import pytest

from compare import dataframes
from compare.traffic.tapes.blocks import BLOCK
from compare.traffic.tapes.trace import write_trace
from compare.trial.oracle.mismatches import KINDS, Mismatch, lowest
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.verify import verify
from tests.compare.trial.oracle import sql
from tests.compare.trial.oracle.test_check import right_rows
from tests.compare.trial.pipeline.test_verify import (
    moments,
    random_rows,
    random_tape,
    replace_expiries,
)
from timers.limits import LIMIT
from timers.rounding import Rounding

pytestmark = pytest.mark.spark

TIMERS = ["delay-queue", "hierarchical-wheel/tick=7", "hashed-wheel/tick=100"]
EXAMPLES = 4


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
    for deadline, time, *moments_of in verified.collect():
        assert moments_of == [rounding.due_at(deadline, time) for rounding in roundings]


def verified_by_sql(spark, results, timer):
    """The numbers and the lowest mismatches of a timer, by joins."""
    trace = results.trace
    place = f"CAST(block AS BIGINT) * {BLOCK} + place AS operation"
    due = sql.due(timer.rounding(trace.unit))
    tape = (
        dataframes.operations(dataframes.blocks(trace, spark))
        .selectExpr("shard", place, "time", "op", "id", "deadline", f"{due} AS due")
        .persist()
    )
    query = sql.must_fire(2, rearms=trace.totals["rearms"] > 0)
    expected = spark.sql(query, tape=tape)
    if not results.manifest["drained"]:
        last = [(n, each.rows - 1, each.last_time or 0) for n, each in enumerate(trace.shards)]
        ends = spark.createDataFrame(last, "shard INT, last BIGINT, last_time BIGINT")
        expected = spark.sql(sql.DUE_IN_TIME, expected=expected, ends=ends)
    fired = (
        dataframes.expiries(dataframes.results(results, spark))
        .where(f"contestant = '{timer.label}'")
        .selectExpr("shard", "operation", "deadline AS reported", "fired_at")
    )
    wrong = spark.sql(sql.mismatches(2), expected=expected, fired=fired).persist()
    by_kind = spark.sql(sql.COUNTS, wrong=wrong).collect()
    number = fired.count()
    right = number - sum(row["fired"] for row in by_kind)
    counts = {row["kind"]: row["number"] for row in by_kind}
    rows = spark.sql(sql.examples(EXAMPLES), wrong=wrong).collect()
    places = spark.createDataFrame(
        [(row["shard"], row["operation"]) for row in rows], "shard INT, operation BIGINT"
    ).distinct()
    on_tape = {
        (row["shard"], row["operation"]): (row["id"], row["deadline"])
        for row in spark.sql(sql.ON_TAPE, tape=tape, wanted=places).collect()
    }
    for frame in (tape, wrong):
        frame.unpersist()
    examples = [
        Mismatch(row["kind"], *row[1:3], *on_tape.get((row[1], row[2]), (None, None)), *row[3:])
        for row in rows
    ]
    return (
        right + sum(row["timers"] for row in by_kind),
        number,
        {kind: counts.get(kind, 0) for kind in KINDS},
        lowest(examples, EXAMPLES),
    )


@pytest.mark.parametrize("drained", [True, False], ids=["drained", "not-drained"])
def test_sql_finds_what_the_check_finds(spark, tmp_path, drained):
    random = np.random.default_rng(7 + drained)
    tapes = [random_tape(random) for _ in range(9)]
    trace = write_trace(tmp_path / "trace", tapes, unit="us", source={})
    results = replay_trace(trace, TIMERS, tmp_path / "results", drained=drained)
    fired = {
        (timer.label, shard): random_rows(
            random, right_rows(tape, moments(timer, tape, drained=drained)), tape
        )
        for timer in results.contestants
        for shard, tape in enumerate(tapes)
    }
    replace_expiries(results.expiries, fired)
    verified = verify(results.path, examples=EXAMPLES)
    assert not verified.passed
    for timer, verdict in zip(results.contestants, verified.timers, strict=True):
        found = (verdict.expected, verdict.fired, verdict.counts, verdict.examples)
        assert verified_by_sql(spark, results, timer) == found, timer.label
