"""The share of the answers that timeouts cut, on the page."""

from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from compare.traffic.tapes.description import Description
from reports import timeouts
from reports.catalogue import plots, section, sections
from reports.charts import drawn
from reports.page import numbers

CUT = {"1ms": 8, "2ms": 4, "1s": 2, "5s": 1, "10s": 0}
LOG = Description(20, 6, late=2, cut=CUT, complete=True)
GENERATED = Description(20, 8, cut={"1ms": 2, "2ms": 0})


def of(summary, *descriptions):
    """The traces of a run with these descriptions."""
    sources = [
        replace(source, details={**source.details, "description": asdict(each) if each else None})
        for source, each in zip(summary.own, descriptions, strict=True)
    ]
    return replace(summary, sources=tuple(sources))


def test_a_panel_shows_the_shares_of_a_trace(distinct):
    summary = of(distinct, LOG, GENERATED)
    [plot] = plots(summary)["timeouts"]
    first, second = (next(iter(panel.series.values())) for panel in plot.panels.values())
    assert [*plot.panels] == [source.short for source in summary.own]
    assert [(point.x, point.value.value) for point in first] == [
        *((1e6, 1.0), (2e6, 0.5), (1e9, 0.25), (5e9, 0.125)),  # nanoseconds, and none of 0
    ]
    assert [(point.x, point.value.value) for point in second] == [(1e6, 0.25)]
    picture = drawn(plot)
    texts = [mark.text for mark in picture.marks.values() if mark.text]
    assert texts == ["1ms: 100%", "2ms: 50%", "1s: 25%", "5s: 12.5%", "1ms: 25%"]
    for axes in picture.figure.axes:
        low, high = axes.get_xlim()
        labels = [
            label.get_window_extent()
            for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            if low <= place <= high
        ]
        assert all(before.x1 < behind.x0 for before, behind in pairwise(labels))
    # Pointing at a value finds its name in the legend of the page.
    assert {mark.who for mark in picture.marks.values()} <= numbers(summary).keys()


@pytest.mark.parametrize(("descriptions", "lacks"), [((LOG, LOG), False), ((LOG, GENERATED), True)])
def test_the_section_says_where_answers_may_be_missing(distinct, descriptions, lacks):
    summary = of(distinct, *descriptions)
    [made] = [each for each in sections(summary) if each.name == "timeouts"]
    assert ("may lack answers after the deadline" in made.lead) == lacks
    name = summary.own[0].short
    assert made.headline.startswith(
        f"Share of the answers in {name} that a timeout cuts: 2ms 50%, 1s 25%, 5s 12.5%."
    )


def test_without_answers_there_is_no_section(distinct):
    for descriptions in ((None, None), (Description(3, 0), Description(1, 1, cut={"1ms": 0}))):
        summary = of(distinct, *descriptions)
        assert section("timeouts", summary) is None
        assert list(timeouts.plots(summary)) == []
        assert len(numbers(summary)) == len(summary.contestants)
