"""The section about calls from Python."""

from dataclasses import replace

from reports.sections.calls import section


def test_each_way_of_calling_is_a_column(called):
    calls = section(called)
    [table] = calls.tables
    headings = ["one by one", "batches of 1\u202f000", "SystemTimer, one by one"]
    assert [heading for (heading,) in table.headings] == headings
    for n, timer in enumerate(called.contestants):
        assert [entry.value for entry in table.rows[timer].values()] == [102 + n, 202 + n, 302 + n]
    assert "asyncio's 779" in calls.lead


def test_the_lead_says_how_far_the_compiled_timers_are_apart(called):
    *compiled, loop = called.contestants[:6]  # the last one takes longest
    assert all(timer.compiled for timer in compiled) and not loop.compiled
    calls = {
        way: {timer: column[timer] for timer in (*compiled, loop)}
        for way, column in called.calls.items()
    }
    assert f"one by one {106 / 102:.2f}×" in section(replace(called, calls=calls)).lead
