"""The charts of whole workloads show the figures of the run: times, precision, lateness."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import StepPatch

from reports import formats
from reports.charts import lateness, replays, trade_off
from reports.palette import INK
from tests.reports.charts.drawn import (
    colour,
    fitted,
    marks,
    named_rows,
    notes,
    spans,
    strokes,
    tick_labels,
)
from tests.reports.primes import LABELS, OVER_REPLAY, SILENT, SOURCES, only, who_of

SYMBOLS = dict(zip(SOURCES, ("µs", "ms", "s", "units"), strict=True))
NAMES = dict(zip(SOURCES, ("microseconds", "milliseconds", "seconds", "units"), strict=True))
SHORT = dict(zip(SOURCES, ("dns.trace", "clients.trace", "keepalive", "uniform"), strict=True))


def panels(picture):
    found = dict(zip(SOURCES, picture.figure.axes, strict=True))
    for source, axes in found.items():
        assert (axes.get_title("left") or axes.get_title()) == SHORT[source]
    return found


def rows(axes, distinct):
    """Where the row of each contestant is, by the names at the left."""
    joined = {"".join(name.split()): at for name, at in named_rows(axes).items()}
    assert len(joined) == len(LABELS)
    return {
        label: joined["".join(f"{who.short} {who.remark}".split())]
        for label in LABELS
        for who in [who_of(distinct, label)]
    }


@pytest.fixture(scope="module")
def times(distinct):
    (picture,) = replays.draw(distinct)
    return picture


@pytest.mark.parametrize("source", SOURCES)
def test_each_row_shows_the_median_and_the_range_of_its_contestant(times, primes, distinct, source):
    axes = panels(times)[source]
    places = rows(axes, distinct)
    for label in LABELS:
        who, row = who_of(distinct, label), places[label]
        own = [points for points in marks(axes, who) if points.y == [row]]
        texts = [text for text in notes(axes) if text.xy[1] == row]
        if (label, source) == OVER_REPLAY:
            assert (own, [text.get_text() for text in texts]) == ([], ["over budget"])
            continue
        (mark,), (text,), samples = own, texts, primes.times[label, source]
        assert mark.x == [median(samples)]
        (span,) = [ends for ends in spans(axes, who) if ends[0][1] == row]
        assert span == ((min(samples), row), (max(samples), row))
        assert text.get_text() == formats.nanoseconds(median(samples))
        # Beside the bar, on the side where there is room.
        at_left = text.get_ha() == "right"
        assert text.xy[0] == (min(samples) if at_left else max(samples))
        assert (text.get_position()[0] < 0) == at_left
        low, high = axes.get_xlim()
        assert at_left == (np.log(median(samples) / low) > 0.6 * np.log(high / low))


def test_the_panels_of_time_share_an_axis_that_holds_all(times, primes):
    found = panels(times)
    (limits,) = {axes.get_xlim() for axes in found.values()}
    samples = [value for values in primes.times.values() for value in values]
    assert limits == fitted(min(samples), max(samples))
    assert {axes.get_xscale() for axes in found.values()} == {"log"}
    assert [axes.get_xlabel() for axes in found.values()] == ["", "", *["time per operation"] * 2]
    assert tick_labels(found["uniform"], "x", [2000.0]) == [f"2{formats.SPACE}µs"]
    assert times.title == times.figure.get_suptitle()
    assert (times.name, times.title) == (
        "replays",
        "Replays of whole workloads: time per operation",
    )


def test_the_times_are_told(times, primes, distinct):
    parts = times.alt.partition("time per operation. ")[2].rstrip(".").split("; ")
    for part, source in zip(parts, SOURCES, strict=True):
        told = part.removeprefix(f"{SHORT[source]}: ")
        assert told != part
        for label in LABELS:
            if (label, source) != OVER_REPLAY:
                value = formats.nanoseconds(median(primes.times[label, source]))
                assert f"{who_of(distinct, label).full} {value}" in told


# ---- lateness


@pytest.fixture(scope="module")
def late(distinct):
    (picture,) = lateness.draw(distinct)
    return picture


@pytest.mark.parametrize("source", SOURCES)
def test_lateness_is_drawn_where_it_is_and_as_often(late, primes, distinct, source):
    axes = panels(late)[source]
    places = rows(axes, distinct)
    assert axes.get_xlabel() == f"lateness [{SYMBOLS[source]}]"
    (zero,) = [
        line
        for line in axes.get_lines()
        if to_hex(line.get_color()) == INK
        and len(line.get_xdata()) == 2
        and list(line.get_xdata()) == [0, 0]
    ]
    assert list(zero.get_ydata()) == [0, 1]
    told = late.alt.partition("each timer. ")[2].split("; ")[list(SOURCES).index(source)]
    assert told.startswith(f"{SHORT[source]}, in {NAMES[source]}: ")
    drawn = {}
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, baseline = patch.get_data()
            drawn[float(np.max(baseline))] = (to_hex(patch.get_facecolor()), values, edges)
    for label in LABELS:
        who, row, bins = who_of(distinct, label), places[label], primes.bins.get((label, source))
        texts = [text.get_text() for text in notes(axes) if text.xy[1] == row]
        if not bins:
            expected = {SILENT: ["nothing fired"], OVER_REPLAY: ["over budget"]}
            assert texts == expected.get((label, source), [])
            assert (f"{who.full} nothing fired" in told) == ((label, source) == SILENT)
            continue
        assert texts == []
        if who.exact:
            assert [(points.x, points.y) for points in marks(axes, who) if points.y == [row]] == [
                ([0.0], [row])
            ]
            assert f"{who.full} 0" in told
            continue
        foot = row + 1.0
        shade, tops, edges = drawn.pop(foot)
        assert shade == colour(who)
        most = max(timers for _, _, timers in bins)
        expected = {value: 1.8 * timers / most for value, _, timers in bins}
        middles = (edges[:-1] + edges[1:]) / 2
        for value, top in zip(middles, tops, strict=True):
            assert foot - top == pytest.approx(expected.get(round(value), 0.0)), (label, value)
        assert {round(value) for value in middles} >= expected.keys()
        assert f"{who.full} {bins[0][0]} to {bins[-1][0]}" in told
    assert drawn == {}
    assert tick_labels(axes, "x", [-3.0, 1000.0]) == ["-3", f"1{formats.NO_BREAK}000"]
    assert axes.yaxis_inverted() and not axes.xaxis_inverted()


def test_rows_and_panels_have_names(late, distinct):
    for source, axes in panels(late).items():
        assert SHORT[source] in (axes.get_title("left"), axes.get_title())
    assert (
        late.title
        == late.figure.get_suptitle()
        == "Lateness: how long after its deadline a timer fired"
    )
    low, high = panels(late)["keepalive"].get_xlim()
    assert low < -3 and high > 100


def test_without_bins_there_is_no_chart_of_lateness(distinct):
    nothing = {
        source: {who: of._replace(bins=()) for who, of in found.items()}
        for source, found in distinct.replays.items()
    }
    assert list(lateness.draw(only(distinct, replays=nothing))) == []


def test_where_all_are_exact_zero_is_in_the_middle(distinct):
    exact = {
        source: {who: of for who, of in found.items() if who.exact and of.bins}
        for source, found in distinct.replays.items()
    }
    (picture,) = lateness.draw(only(distinct, replays=exact))
    assert {axes.get_xlim() for axes in picture.figure.axes} == {(-1.0, 1.0)}


def test_where_all_are_late_by_one_unit_the_bar_is_seen_whole(distinct):
    source = next(iter(distinct.replays))
    who, of = next((who, of) for who, of in distinct.replays[source].items() if not who.exact)
    bins = (of.bins[0]._replace(lateness=1, width=1),)
    only_one = only(distinct, replays={source: {who: of._replace(bins=bins)}})
    (picture,) = lateness.draw(only_one)
    low, high = picture.figure.axes[0].get_xlim()
    assert low < 0 and high > 1.5  # it reaches from 0.5 to 1.5, and zero is marked


# ---- time against precision


@pytest.fixture(scope="module")
def trade(distinct):
    (picture,) = trade_off.draw(distinct)
    return picture


@pytest.mark.parametrize("source", SOURCES)
def test_time_stands_against_the_worst_deviation(trade, primes, distinct, source):
    axes = panels(trade)[source]
    assert axes.get_xlabel() == f"worst deviation [{SYMBOLS[source]}]"
    told = trade.alt.partition("deadline. ")[2].rstrip(".").split("; ")[list(SOURCES).index(source)]
    assert told.startswith(f"{SHORT[source]}, in {NAMES[source]}: ")
    shown = 0
    for label in LABELS:
        who, samples = who_of(distinct, label), primes.times.get((label, source))
        own = [points for points in marks(axes, who) if samples and points.y == [median(samples)]]
        if not samples or (label, source) == SILENT:
            assert not own
            assert f"{who.full} " not in told
            continue
        shown += 1
        deviation = {"hashed-wheel/tick=10": 10, "hashed-wheel": 100}.get(
            label, {"hierarchical-wheel/tick=5": 4, "some.where:Mine": 7}.get(label, 0)
        )
        ((x,),) = [points.x for points in own]
        assert x == deviation if deviation else -0.7 <= x <= 0.7
        assert ((x, min(samples)), (x, max(samples))) in spans(axes, who)
        assert f"{who.full} {formats.nanoseconds(median(samples))} at {deviation}" in told
    exact = [
        points.x[0]
        for label in LABELS
        if (who := who_of(distinct, label)).exact
        for points in marks(axes, who)
    ]
    assert len(set(exact)) == len(exact) == (2 if source == "keepalive" else 3)
    assert sum(exact) == pytest.approx(0.0)
    assert sorted(exact) == exact  # in the order of the tables
    two = [primes.times[label, source] for label in ("hashed-wheel/tick=10", "hashed-wheel")]
    joined = [
        (list(line.get_xdata()), list(line.get_ydata()))
        for line in strokes(axes, who_of(distinct, "hashed-wheel"))
        if len(line.get_xdata()) == 2
    ]
    assert joined == [([10, 100], list(map(median, two)))]
    values = [value for key, samples in primes.times.items() if key != SILENT for value in samples]
    assert axes.get_ylim() == fitted(min(values), max(values))
    assert axes.get_xlim()[0] < min(exact) and axes.get_xlim()[1] > 100
    assert tick_labels(axes, "x", [0.0, 20.0, 4000.0]) == ["0", "20", "4k"]
    assert axes.get_xticks().tolist() == [0.0, 1.0, 10.0, 100.0]


def test_titles_of_the_trade_off(trade):
    assert trade.title == trade.figure.get_suptitle() == "Time against precision"
    labels = [axes.get_ylabel() for axes in panels(trade).values()]
    assert labels == ["time per operation (log scale)", ""] * 2
    (legend,) = trade.figure.legends
    assert len(legend.get_texts()) == len(LABELS)


def test_a_line_joins_the_settings_of_a_timer_by_their_precision(distinct):
    """Whatever their order in the run."""
    source = next(iter(distinct.replays))
    found = dict(reversed(distinct.replays[source].items()))
    (picture,) = trade_off.draw(only(distinct, replays={source: found}))
    (axes,) = picture.figure.axes
    joined = [line.get_xdata().tolist() for line in axes.lines if len(line.get_xdata()) > 1]
    assert joined == [[10, 100]]


def test_an_exact_timer_alone_stands_at_zero(distinct):
    source = next(iter(distinct.replays))
    found = distinct.replays[source]
    alone = next(who for who in found if who.exact)
    rest = {who: of for who, of in found.items() if who is alone or not who.exact}
    (picture,) = trade_off.draw(only(distinct, replays={source: rest}))
    (mark,) = marks(picture.figure.axes[0], alone)
    assert mark.x == [0.0]


def test_many_exact_timers_stand_side_by_side_near_zero(distinct):
    source = next(iter(distinct.replays))
    found = {
        who: of._replace(row={**of.row, "lateness_min": 0, "lateness_max": 0, "fired": 1})
        for who, of in distinct.replays[source].items()
    }
    (picture,) = trade_off.draw(only(distinct, replays={source: found}))
    places = {mark.x[0] for who in found for mark in marks(picture.figure.axes[0], who)}
    assert len(places) == len(found) == 7
    assert max(places) == -min(places) == pytest.approx(0.7)


def test_early_is_as_bad_as_late(distinct):
    """The worst deviation is the greater of the two."""
    source = next(iter(distinct.replays))
    who = who_of(distinct, "some.where:Mine")
    replayed = distinct.replays[source][who]
    row = {**replayed.row, "lateness_min": -31, "lateness_max": 7}
    changed = {**distinct.replays[source], who: replayed._replace(row=row)}
    (picture,) = trade_off.draw(only(distinct, replays={source: changed}))
    assert f"{who.full} {replayed.cell.text} at 31" in picture.alt


def test_with_few_precisions_there_is_no_trade_off(distinct):
    def up_to(who, late):
        return replace(who, traits={**who.traits, "lateness_low": 0, "lateness_high": late})

    two = tuple(up_to(who, 0 if who.exact else 9) for who in distinct.contestants)
    assert list(trade_off.draw(only(distinct, contestants=two))) == []
    three = (up_to(two[0], 5), *two[1:])
    assert len({who.lateness for who in three}) == 3
    assert len(list(trade_off.draw(only(distinct, contestants=three)))) == 1


def test_the_legend_names_each_look(trade, distinct):
    (legend,) = trade.figure.legends
    names = {
        text.get_text(): line
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    for label in LABELS:
        who = who_of(distinct, label)
        assert to_hex(names[who.full].get_color()) == colour(who)


def test_the_axis_of_time_has_room_for_every_bar(primes, distinct):
    source = next(iter(distinct.replays))
    (picture,) = replays.draw(only(distinct, replays={source: distinct.replays[source]}))
    (axes,) = picture.figure.axes
    samples = [v for key, of in primes.times.items() if key[1] == source.name for v in of]
    assert axes.get_xlim() == fitted(min(samples), max(samples))
    assert max(samples) / min(samples) > 10**0.6  # or a bar could end beyond a marker unseen
