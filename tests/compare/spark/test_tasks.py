"""Parts are dealt to tasks once each, few at the end, and done by workers that do not collect what
they import.
"""

import gc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.spark.tasks import even_shares, in_tasks, shares

pytestmark = pytest.mark.spark


def flat(dealt):
    return [part for share in dealt for part in share]


@given(st.integers(0, 5000), st.integers(1, 300))
def test_each_part_is_dealt_once_and_the_shares_grow_smaller(parts, workers):
    dealt = shares(parts, workers)
    assert flat(dealt) == list(range(parts))
    sizes = [len(share) for share in dealt]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1:] in ([], [1])
    # Whatever has been dealt, a share is no more than half of what a worker still has to do on
    # average, or one part.
    left = parts
    for size in sizes:
        assert size == 1 or 2 * workers * size <= left
        left -= size
    assert max(sizes, default=0) <= -(-parts // (8 * workers))


def test_there_are_few_tasks_even_for_many_parts():
    assert [len(share) for share in shares(128, 2)] == [8] * 12 + [
        8,
        6,
        4,
        3,
        2,
        2,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
    ]
    assert len(shares(100_000, 100)) < 20 * 100


@given(st.integers(0, 500), st.integers(1, 600))
def test_even_shares_differ_by_one_part_at_most(parts, tasks):
    dealt = even_shares(parts, tasks)
    assert flat(dealt) == list(range(parts))
    assert len(dealt) == min(parts, tasks)
    assert not dealt or max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_spark_does_each_part_once(spark):
    def work(part):
        return pa.record_batch({"part": [part], "frozen": [gc.get_freeze_count()]})

    schema = pa.schema([("part", pa.int64()), ("frozen", pa.int64())])
    done = in_tasks(spark, 20, work, schema)
    assert done.rdd.getNumPartitions() == len(shares(20, 2))
    rows = done.collect()
    assert sorted(row["part"] for row in rows) == list(range(20))
    assert max(row["frozen"] for row in rows) > 10_000  # from a worker's second part on
