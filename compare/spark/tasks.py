"""Work that falls into numbered parts, as tasks of Spark."""

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from compare.spark.session import cores, is_local, is_remote

_ON_A_CLUSTER = 64
"""Workers of a cluster when fewer can be seen."""


def in_tasks(
    session: SparkSession,
    parts: int,
    work: Callable[[int], pa.RecordBatch],
    schema: str,
    *,
    tasks: int | None = None,
) -> DataFrame:
    """The rows of `work(part)` for each part in [0, parts), of the Spark schema `schema`, in no
    order.

    The parts are dealt to tasks as `shares` has it, or evenly to so many `tasks`. Only their
    numbers, `work` itself, and its rows travel through Spark.
    """
    dealt = shares(parts, workers_of(session)) if tasks is None else even_shares(parts, tasks)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column("id").to_pylist():
                for part in dealt[task]:
                    yield work(part)
                    freeze_imports()

    return session.range(0, len(dealt), 1, len(dealt)).mapInArrow(run, schema)


def workers_of(session: SparkSession) -> int:
    """How many tasks may run at a time, rather too many than too few.

    The executors of a cluster come one after the other when a session has begun, and Spark Connect
    tells nothing.
    """
    seen = cores(session)
    return seen if not is_remote(session) and is_local(session) else max(seen, _ON_A_CLUSTER)


def shares(parts: int, workers: int) -> list[range]:
    """The parts of each task, in the order in which Spark starts them: many at first, one at last.

    Each takes half of a worker's share of what is left, and an eighth of its share of all at most.
    So there are few tasks, which cost Spark some 30 ms each, parts that take longer than others or
    workers that have not been counted do little harm, and those who end first do not wait long for
    the others. Source: guided self-scheduling, Polychronopoulos & Kuck, IEEE Transactions on
    Computers C-36 (1987).
    """
    dealt: list[range] = []
    first = 0
    most = -(-parts // (8 * workers))
    while first < parts:
        until = first + max(min((parts - first) // (2 * workers), most), 1)
        dealt.append(range(first, until))
        first = until
    return dealt


def even_shares(parts: int, tasks: int) -> list[range]:
    """The parts of each of so many tasks, none of them empty, as even as can be."""
    tasks = min(tasks, parts)
    return [range(parts * task // tasks, parts * (task + 1) // tasks) for task in range(tasks)]


@cache
def freeze_imports() -> None:
    """Leave what has been imported by now out of the collection of garbage, in this worker and
    once.

    PySpark collects garbage after each task; going through the objects of Numba and its like takes
    70 ms of a core.
    """
    gc.collect()
    gc.freeze()
