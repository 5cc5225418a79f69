import pytest

from compare.advice.candidates import Bounds
from compare.advice.search import advise
from compare.spark.executor import executor

pytestmark = pytest.mark.spark


# 8 s: a dozen small jobs, on workers that load the compiled code. Nothing else covers --master.
def test_a_search_on_spark_counts_the_same_work(trace, advice, spark):
    with executor(session=spark) as runner:
        on_spark = advise(trace, Bounds(10_000, 2_000), runner)
    assert on_spark.best.allowed
    for label in on_spark.counted.keys() & advice.counted.keys():
        first, second = (each.counted[label].outcome for each in (advice, on_spark))
        assert first.counters == second.counters
        assert first.lateness == second.lateness
