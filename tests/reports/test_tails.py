"""The section of tails shows the stored latencies, and what the slowest advance did."""

from types import SimpleNamespace

import pytest

from compare.base import formats
from compare.base.quantiles import TAIL, title
from compare.cli import printing
from compare.cli.commands.compare import sheets_of
from compare.cli.text import shown
from compare.trial.replay.contestant import contestant
from compare.trial.replay.ticks import Ticks
from compare.trial.results.metrics import LATENCIES
from compare.trial.results.schema import IDLE, OVER_BUDGET, OVERLOAD, TAILS, Row, rows_of
from compare.trial.results.store import contestant_entry, read_run
from reports import overload
from reports.catalogue import idle, section, tails, tails_plots
from reports.charts import pictures
from reports.summary import figures_of
from tests.reports.stored import replay_rows, store

NAMES = ("delay-queue", "cascading-wheel", "unordered-list")
CLOCK = Ticks("a fake counter", 0.5, 12.0, 4.0)
MORE = {"worst_fired": 3, "worst_refiled": 444, "worst_moment": 1024, "growths": 6, "rounds": 5}


def value_of(name, kind, quantile, size):
    """A number of its own for each latency; the least is below a step of the clock."""
    sizes = (100, 10, None)
    place = (NAMES.index(name), LATENCIES.index(kind), [*TAIL].index(quantile), sizes.index(size))
    return 1 + sum(part * factor for part, factor in zip(place, (7, 31, 1000, 150), strict=True))


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    rows = []
    for name in NAMES:
        rows += replay_rows(name, "keepalive", [50.0])
        for subject, size in ((TAILS, 10), (TAILS, 100), ("keepalive", None)):
            if name == "unordered-list" and size == 100:
                rows.append(Row(name, subject, size, "advance_max", None, None, OVER_BUDGET))
                continue
            kinds = LATENCIES if size is None else ("start", "cancel", "advance")
            values = {
                f"{kind}_{quantile}": value_of(name, kind, quantile, size)
                for kind in kinds
                for quantile in TAIL
            }
            rows += rows_of(name, subject, values | MORE, size)
    entries = [contestant_entry(contestant(name), ["ms"]) for name in NAMES]
    source = {"name": "keepalive", "unit": "ms", "operations": 1, "details": {}}
    clocks = [{"name": CLOCK.name, "ns": CLOCK.ns, "cost": CLOCK.cost, "step": CLOCK.step}]
    path = store(
        tmp_path_factory.mktemp("runs"),
        rows,
        contestants=entries,
        sources=[source],
        clocks=clocks,
        parameters={"budget": 1.0},
    )
    return figures_of(read_run(path))


def test_each_latency_has_its_cell(summary):
    table = tails(summary)
    assert table.chosen == {"of": formats.size(100), "operation": "Advance"}
    cells = {
        (timer.label, *heading): entry.text
        for timer in table.rows
        for heading in table.headings
        if (entry := table.entry(timer, heading)).text
    }
    titles = dict(zip(LATENCIES, ("Start", "Cancel", "Re-arm", "Advance"), strict=True))
    for place, size in ((formats.size(10), 10), (formats.size(100), 100), ("keepalive", None)):
        for name in NAMES[:2]:
            for kind in LATENCIES if size is None else ("start", "cancel", "advance"):
                for quantile in TAIL:
                    shown = cells[name, place, titles[kind], title(quantile)]
                    assert shown == formats.nanoseconds(value_of(name, kind, quantile, size))
            assert cells[name, place, "Advance", "slowest: re-filed"] == "444"
            assert cells[name, place, "Advance", "slowest: fired"] == "3"
            assert cells[name, place, "Start", "times grown"] == "6"
    assert cells["unordered-list", formats.size(100), "Advance", "p50"] == "–"
    assert (formats.size(10), "Re-arm", "p50") not in table.headings


def test_the_chart_shows_the_largest_size_and_nothing_below_a_step_of_the_clock(summary):
    [plot] = tails_plots(summary)
    assert [*plot.panels] == ["Start", "Cancel", "Advance"]
    for kind, panel in zip(("start", "cancel", "advance"), plot.panels.values(), strict=True):
        drawn = {
            timer.label: [point.value.value for point in points]
            for timer, points in panel.series.items()
        }
        assert drawn == {
            name: [max(value_of(name, kind, quantile, 100), CLOCK.step) for quantile in TAIL]
            for name in NAMES[:2]
        }
    [drawn] = pictures({"tails": [plot]})["tails"]
    assert "p99.99" in drawn.svg() and formats.nanoseconds(CLOCK.step) in drawn.caption


def test_the_clock_and_the_time_of_a_reading_are_named(summary):
    assert (
        "a fake counter, in steps of 4 ns; a reading takes 12 ns" in section("tails", summary).lead
    )
    text = " ".join(shown(sheets_of(summary)).split())
    assert "latencies: a fake counter, in steps of 4 ns; a reading takes 12 ns" in text
    assert "Latency of single operations: N = 100, Advance" in text


def test_without_latencies_there_is_no_section(summary):
    assert section("tails", summary.where(metric="replay_time")) is None


def test_an_idle_hour_has_a_column_for_each_tick(tmp_path):
    rows = []
    for name, subject, count in (
        ("cascading-wheel", IDLE, 2),
        ("hashed-wheel", f"{IDLE}, tick 1ms", 3_600_000),
        ("hashed-wheel", f"{IDLE}, tick 1s", 3_600),
    ):
        rows += rows_of(name, subject, {"hour_ms": count / 7, "hour_wakeups": count}, 1000)
    entries = [
        contestant_entry(contestant(name), ["ms"]) for name in ("cascading-wheel", "hashed-wheel")
    ]
    table = idle(figures_of(read_run(store(tmp_path, rows, contestants=entries))))
    cells = {
        (timer.label, *heading): table.entry(timer, heading).text
        for timer in table.rows
        for heading in table.headings
    }
    assert cells["hashed-wheel", "wake-ups", "1ms"] == formats.count(3_600_000)
    assert cells["hashed-wheel", "CPU time [ms]", "1s"] == formats.significant(3_600 / 7)
    assert cells["cascading-wheel", "wake-ups", "no tick"] == "2"
    assert cells["cascading-wheel", "wake-ups", "1s"] == "–"


@pytest.fixture(scope="module")
def overloaded(tmp_path_factory):
    """uvloop has twice the capacity of SystemTimer, and asyncio was not measured."""
    rows = [Row("asyncio", OVERLOAD, None, "capacity", None, None, "took longer than 120 s")]
    for name, factor in (("uvloop", 2), ("SystemTimer", 1)):
        rows += rows_of(name, OVERLOAD, {"capacity": 250_000 * factor})
        for load in (120, 50):
            values = {
                "late_p50_ms": -0.5,
                "late_p99_ms": load * factor,
                "undelivered": load + factor,
            }
            rows += rows_of(name, OVERLOAD, values, load)
    entries = [contestant_entry(contestant("delay-queue"), ["ms"])]
    return figures_of(read_run(store(tmp_path_factory.mktemp("runs"), rows, contestants=entries)))


def test_overload_has_a_column_for_each_load(overloaded, summary):
    table = overload.table(overloaded)
    assert [row.full for row in table.rows] == ["SystemTimer", "asyncio", "uvloop"]
    cells = {
        (contender.full, *heading): table.entry(contender, heading).whole
        for contender in table.rows
        for heading in table.headings
    }
    assert cells["uvloop", "p99 lateness [ms]", "120 %"] == formats.amount(240)
    assert cells["uvloop", "undelivered calls", "50 %"] == "52"
    assert cells["SystemTimer", "p99 lateness [ms]", "capacity [1/s]"] == formats.whole(250_000)
    reason = "not measured: it took longer than 120 s"
    assert cells["asyncio", "p99 lateness [ms]", "capacity [1/s]"] == reason
    text = shown(sheets_of(overloaded))
    assert "Lateness against load: p99 lateness [ms]" in text
    assert "not measured: asyncio, overload: it took longer than 120 s" in text
    run = SimpleNamespace(path="run", manifest={"contestants": [], "sources": []})
    assert printing.values(overloaded, run)["figures"][-1] == {
        "contestant": "asyncio",
        "subject": OVERLOAD,
        "size": None,
        "metric": "capacity",
        "value": None,
        "note": "took longer than 120 s",
    }
    found = section("overload", overloaded)
    assert (found.tables, found.controls) == ([table], "load.html")
    assert section("overload", summary) is None


def test_the_chart_has_the_offered_load_across_and_no_lateness_below_zero(overloaded, summary):
    [plot] = overload.plots(overloaded)
    points = {
        who.full: [(point.x, point.value.value, point.hollow) for point in series]
        for who, series in plot.panels[""].series.items()
    }
    assert points == {
        "SystemTimer": [(125_000, 50e6, False), (300_000, 120e6, True)],
        "uvloop": [(250_000, 100e6, False), (600_000, 240e6, True)],
    }
    [picture] = pictures({"overload": [plot]})["overload"]
    # The contenders are not in the legend of the page, so this chart keeps its own.
    width, height = map(float, picture.shape({}).split(" / "))
    assert (width, height) == pytest.approx(tuple(picture.figure.bbox.size), abs=0.1)
    svg = picture.svg({next(iter(overloaded.contestants)): 0})
    assert svg.count('data-name="uvloop"') == 3 and "data-series" not in svg
    assert not any(overload.plots(summary))


def test_the_script_has_all_that_it_needs_for_a_rate(overloaded):
    loads = {50: [-0.5, 50, None], 120: [-0.5, 120, None]}
    assert overload.data(overloaded) == [
        {"name": "SystemTimer", "capacity": 250_000, "loads": loads},
        {
            "name": "uvloop",
            "capacity": 500_000,
            "loads": {50: [-0.5, 100, None], 120: [-0.5, 240, None]},
        },
        {"name": "asyncio", "failure": "took longer than 120 s"},
    ]
    assert [*overload.data(overloaded)[0]["loads"]] == [50, 120]
