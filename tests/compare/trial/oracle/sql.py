"""The oracle in SQL, which shares no code with the compiled one: the text of its queries.

Let k be an operation on an id of a shard, and let p and n be the operations on the same id before
and after it. A start or arm arms a timer. A re-arm does so if p armed a timer that is still
pending, that is, due(p) > time(k). Call a re-arm *broken* if p is a cancel or is not pending. Then
a re-arm arms a timer if and only if no re-arm has been broken since the last start or arm. The
timer that k armed fires at due(k), unless n is a cancel, re-arm or arm before that time. A start
does not affect the previous timer of its id.

Names in braces are the tables of a query.
"""

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from timers.limits import LIMIT
from timers.rounding import Rounding


def due(rounding: Rounding) -> str:
    """The time at which an armed timer fires, as an expression of `deadline` and `time`.

    It never overflows.

    It is meaningless for a cancel.
    """

    def up(deadline: str, tick: int) -> str:
        return f"least({deadline} - {deadline} % {tick}L, {LIMIT - tick}L) + {tick}L"

    match rounding.direction:
        case "exact":
            return "greatest(deadline, time)"
        case "down":
            return f"greatest(deadline - deadline % {rounding.tick}L, time)"
        case "up":
            return f"IF(deadline <= time, time, {up('deadline', rounding.tick)})"
        case "levels":
            cases = [
                f"WHEN deadline - time < {63 * 8**level} THEN {up('deadline', 8**level)}"
                for level in range(9)
            ]
            last = up(f"(time + {62 * 8**8})", 8**8)
            return f"CASE WHEN deadline <= time THEN time {' '.join(cases)} ELSE {last} END"


def must_fire(partitions: int, *, rearms: bool) -> str:
    """(shard, operation, id, deadline, expected) of each timer that fires; `expected` is when.

    `tape` has the columns (shard, operation, time, op, id, deadline, due), in any row order.
    Without `rearms`, two expensive running aggregates are left out.
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
"""The timers that fire in a replay that was not drained: up to `last_time`, the time of the `last`
operation, which no advance follows. `ends` has one row for each shard."""


def mismatches(partitions: int) -> str:
    """The wrong or missing rows and the `kind` of mismatch of each.

    `fired` has the columns (shard, operation, reported, fired_at). If a timer has several rows, the
    right one is included with a null kind. `is_first` is true for one of the rows of a timer.
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
"""Numbers of rows, fired rows, and timers that must fire, by kind of mismatch."""


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
