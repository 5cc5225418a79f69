"""The oracle in SQL, which shares nothing with the compiled one: the text of its queries.

For an operation k on one id of one shard, with p the operation on the id before it and n the one
after it: a start or arm arms a timer. A re-arm does so if p armed one that is still pending, that
is, due(p) > time(k). Call a re-arm *broken* if p is a cancel or no longer pending. Then a re-arm
arms exactly if no re-arm has been broken since the last start or arm. What k armed fires at due(k)
unless n is a cancel, re-arm or arm before that time; a start leaves the former timer of its id
alone.

Names in braces stand for the tables that a query is about.
"""

from compare.tapes.tape import ARM, CANCEL, REARM, START
from timers.limits import LIMIT
from timers.rounding import Rounding


def due(rounding: Rounding) -> str:
    """When an arming fires, as an expression of `deadline` and `time` that never overflows.

    It means nothing for a cancel.
    """
    tick = f"{rounding.tick}L"
    start = f"deadline - deadline % {tick}"
    return {
        "exact": "greatest(deadline, time)",
        "down": f"greatest({start}, time)",
        "up": f"IF(deadline <= time, time, least({start}, {LIMIT}L - {tick}) + {tick})",
    }[rounding.direction]


def must_fire(partitions: int, *, rearms: bool) -> str:
    """(shard, operation, id, deadline, expected) of each arming that fires, and when it does.

    `tape` has the columns (shard, operation, time, op, id, deadline, due), in any order of rows.
    Without `rearms`, two running aggregates are left out that are a good part of the work.
    """
    by_id = "PARTITION BY shard, id ORDER BY operation"
    so_far = f"{by_id} ROWS UNBOUNDED PRECEDING"
    arms = f"op IN ({START}, {ARM})"
    before = following = ""
    armed = "neighbours"
    if rearms:
        before = f"""
            lag(op) OVER ({by_id}) AS last_op, lag(due) OVER ({by_id}) AS last_due,"""
        following = f""",
        counted AS (
            SELECT *, count_if(
                op = {REARM} AND NOT coalesce(last_op <> {CANCEL} AND last_due > time, FALSE)
            ) OVER ({so_far}) AS broken
            FROM neighbours
        ),
        started AS (
            SELECT *, max(IF({arms}, broken, NULL)) OVER ({so_far}) AS broken_before FROM counted
        )"""
        arms, armed = f"({arms} OR op = {REARM} AND broken = broken_before)", "started"
    return f"""
        WITH tape AS (SELECT /*+ REPARTITION({partitions}, shard, id) */ * FROM {{tape}}),
        neighbours AS (
            SELECT *,{before}
                lead(op) OVER ({by_id}) AS next_op, lead(time) OVER ({by_id}) AS next_time
            FROM tape
        ){following}
        SELECT shard, operation, id, deadline, due AS expected FROM {armed}
        WHERE {arms} AND NOT coalesce(next_op <> {START} AND next_time < due, FALSE)
    """


DUE_IN_TIME = """
    SELECT expected.* FROM {expected} AS expected JOIN {ends} USING (shard)
    WHERE expected <= last_time AND operation <> last
"""
"""Those that fire in a replay that was not drained: by `last_time`, that of the `last` operation,
which is not followed by an advance itself; one row of `ends` for each shard."""


def mismatches(partitions: int) -> str:
    """All rows but those that are the only row of a timer, and right, with the `kind` of mismatch.

    `fired` has the columns (shard, operation, reported, fired_at). Where a timer has several rows
    and one is right, that one is there, too, and its kind is null. `is_first` is true for one of
    the rows of a timer.
    """
    by_operation = "PARTITION BY shard, operation"
    return f"""
        WITH fired AS (
            SELECT /*+ REPARTITION({partitions}, shard, operation) */ * FROM {{fired}}
        ),
        counted AS (SELECT *, count(*) OVER ({by_operation}) AS times FROM fired),
        expected AS (
            SELECT /*+ REPARTITION({partitions}, shard, operation) */ * FROM {{expected}}
        ),
        joined AS (
            SELECT *, coalesce(fired_at = expected AND reported = deadline, FALSE) AS is_right
            FROM expected FULL OUTER JOIN counted USING (shard, operation)
        ),
        ranked AS (
            SELECT *, row_number() OVER (
                {by_operation} ORDER BY is_right DESC, fired_at, reported
            ) = 1 AS is_first
            FROM joined WHERE NOT (is_right AND times = 1)
        )
        SELECT *, CASE
            WHEN fired_at IS NULL THEN 'missing'
            WHEN expected IS NULL THEN 'spurious'
            WHEN NOT is_first THEN 'double'
            WHEN fired_at < expected THEN 'early'
            WHEN fired_at > expected THEN 'late'
            WHEN reported <> deadline THEN 'altered'
        END AS kind FROM ranked
    """


COUNTS = """
    SELECT kind, count(*) AS number, count(fired_at) AS fired,
        count_if(is_first AND expected IS NOT NULL) AS timers
    FROM {wrong} GROUP BY kind
"""
"""Of the rows of `mismatches` by kind: all, those that fired, and the timers that must fire."""


def examples(limit: int) -> str:
    """The lowest rows of `mismatches` of each kind."""
    return f"""
        SELECT kind, shard, operation, expected, fired_at, reported FROM (
            SELECT *, row_number() OVER (
                PARTITION BY kind ORDER BY shard, operation, fired_at, reported
            ) AS number
            FROM {{wrong}} WHERE kind IS NOT NULL
        ) WHERE number <= {limit}
    """


ON_TAPE = """
    SELECT /*+ BROADCAST(wanted) */ shard, operation, id, deadline
    FROM {tape} JOIN {wanted} AS wanted USING (shard, operation)
"""
"""The ids and deadlines of some operations."""
