"""The section about calls from Python."""

from dataclasses import replace

from reports.sections.calls import section


def test_a_run_without_calls_has_no_section(distinct):
    assert section(replace(distinct, calls={})) is None


def test_each_way_of_calling_is_a_column(called):
    made = section(called)
    [table] = made.tables
    headings = ["one by one", "batches of 1\u202f000", "SystemTimer, one by one"]
    assert [heading for (heading,) in table.headings] == headings
    for n, who in enumerate(called.contestants):
        assert [entry.value for entry in table.rows[who].values()] == [102 + n, 202 + n, 302 + n]
    assert "asyncio's 779" in made.lead


def test_the_lead_says_how_far_the_timers_are_apart(called):
    low, high = (
        next(iter(n for n, who in order if who.compiled))
        for order in (
            enumerate(called.contestants),
            reversed([*enumerate(called.contestants)]),
        )
    )
    assert f"one by one {(102 + high) / (102 + low):.2f}×" in section(called).lead
