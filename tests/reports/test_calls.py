"""The section about calls from Python."""

from compare.trial.bench.calls import Way
from reports import catalogue


def test_each_way_of_calling_is_a_column(called):
    calls = catalogue.calls(called)
    [table] = calls.tables
    headings = ["one by one", "batches of 1\u202f000", "SystemTimer, one by one"]
    assert [heading for (heading,) in table.headings] == headings
    for n, timer in enumerate(called.contestants):
        assert [entry.value for entry in table.rows[timer].values()] == [102 + n, 202 + n, 302 + n]
    assert "asyncio's 779" in calls.lead


def test_the_lead_says_how_far_the_compiled_timers_are_apart(called):
    *compiled, loop = called.contestants[:6]  # the last one takes longest
    assert all(timer.compiled for timer in compiled) and not loop.compiled
    some = called.where(contestant=[timer.label for timer in (*compiled, loop)])
    assert f"one by one {106 / 102:.2f}×" in catalogue.calls(some).lead


def test_ways_are_in_the_order_of_their_batches(called):
    assert called.ways == [Way("timer", 1), Way("timer", 1_000), Way("system-timer", 1)]
    assert [Way.of(way.name) for way in called.ways] == called.ways
