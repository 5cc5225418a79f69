"""The charts of the enqueue experiment show the stored figures, each at its own place."""

from statistics import median

import pytest
from matplotlib.lines import Line2D

from reports.charts import drawn as draw
from reports.palette import INK
from reports.purgatory import plots
from reports.summary import Summary
from reports.trials import Case
from tests.reports.trials import LIMITS, RATES, trials
from tests.words import plain

PANELS = {
    "purgatory-rates": (
        "rate",
        "rate",
        {
            "requests/s achieved": lambda row: row["achieved"],
            "CPU per request": lambda row: row["cpu_us"] * 1e3,
            "lateness, 99% below": lambda row: row["late_p99_ms"] * 1e6,
            "most memory [MiB]": lambda row: row["peak_bytes"] / 2**20,
        },
    ),
    "purgatory-limit": (
        "limit",
        "interval",
        {
            "CPU per request": lambda row: row["cpu_us"] * 1e3,
            "most memory [MiB]": lambda row: row["peak_bytes"] / 2**20,
        },
    ),
}
"""Chart -> kind of trials, the column that is varied, and the panels."""


def draw_all(rows):
    return {plot.name: draw(plot) for plot in plots(Summary({}, (), trials=rows))}


@pytest.fixture(scope="module")
def drawn():
    return draw_all(trials())


def marks(picture, panel):
    """Case -> x -> (y, whether it is hollow), of the marks that have a value."""
    artists = {artist.get_gid(): artist for artist in picture.figure.findobj(Line2D)}
    drawn = {}
    for name, mark in picture.marks.items():
        if mark.panel == panel and mark.text:
            line = artists[name]
            x, y = line.get_xydata()[0].tolist()
            hollow = line.get_markerfacecolor() == "#ffffff"
            drawn.setdefault(mark.who, {})[x] = y, hollow
    return drawn


@pytest.mark.parametrize("name", PANELS)
def test_every_panel_shows_the_medians_of_its_trials(drawn, name):
    kind, varied, panels = PANELS[name]
    assert [axes.get_title(loc="left") for axes in drawn[name].figure.axes] == [*panels]
    for panel, value in panels.items():
        expected = {}
        for row in trials():
            if row["kind"] == kind and row["design"] != "none":
                x = row[varied]
                if name == "purgatory-limit" and row["design"] == "purging":
                    x = 0  # a horizontal line, whose x is that of the axes
                case = expected.setdefault(Case(row["load"], row["design"]), {})
                case.setdefault(x, []).append(value(row))
        shown = marks(drawn[name], panel).items()
        assert {case: {x: y for x, (y, _) in points.items()} for case, points in shown} == {
            case: pytest.approx({x: median(values) for x, values in points.items()})
            for case, points in expected.items()
        }
    for axes in drawn[name].figure.axes:
        assert axes.get_xscale() == axes.get_yscale() == "log"


def test_repeated_trials_have_a_bar_and_all_is_in_view():
    rows = [
        row | {"cpu_us": row["cpu_us"] * factor}
        for row in trials()
        if row["kind"] == "rate" and row["design"] != "none"
        for factor in (3.0, 1.0, 5.0)
    ]
    axes = draw_all(rows[::-1])["purgatory-rates"].figure.axes[1]
    for line in axes.lines:  # from left to right
        assert [*line.get_xdata()] == sorted(line.get_xdata())
    bars = [bar.get_segments()[0].tolist() for bar in axes.collections]
    once = [(row["rate"], row["cpu_us"] * 1e3) for row in rows[1::3]]
    for bar, (x, y) in zip(sorted(bars), sorted(once), strict=True):
        assert bar == [[x, pytest.approx(y)], [x, pytest.approx(5 * y)]]
    low, high = axes.get_ylim()
    assert low < min(y for _, y in once) < 5 * max(y for _, y in once) < high


def test_what_did_not_keep_up_in_most_trials_is_hollow(drawn):
    def hollow(picture, panel="CPU per request"):
        shown = marks(picture, panel).items()
        return {(case.design, x) for case, row in shown for x, (_, empty) in row.items() if empty}

    assert hollow(drawn["purgatory-rates"]) == {("scanning", max(RATES))}
    # Two of three trials of the old design failed, and one of the new; and all at one limit.
    rows = [
        row | {"failed": "x" if failed == (row["design"] == "scanning") else None}
        for row in trials()
        for failed in (False, True, True)
        if row["kind"] == "rate" or (row["kind"] == "limit" and row["interval"] == LIMITS[0])
    ]
    charts = draw_all(rows)
    assert hollow(charts["purgatory-rates"]) == {("scanning", rate) for rate in RATES}
    assert hollow(charts["purgatory-limit"]) == {("scanning", LIMITS[0])}


def test_what_was_asked_for_is_a_thin_line_beside_what_was_achieved(drawn):
    thin = [
        [line.get_xydata().tolist() for line in axes.get_lines() if line.get_color() == INK]
        for axes in drawn["purgatory-rates"].figure.axes
    ]
    assert thin == [[[[rate, rate] for rate in RATES]], [], [], []]


def test_charts_say_what_they_show(drawn):
    texts = {name: plain(picture.alt) for name, picture in drawn.items()}
    assert "achieved new, load low at 40 000: 40k, old, load low" in texts["purgatory-rates"]
    assert "[MiB] new, load low 35, old, load low at 100 000: 37" in texts["purgatory-limit"]
    assert drawn["purgatory-limit"].caption.startswith("Load low at 10\u202f000 requests/s.")
    names = ["new, load low", "old, load low", "new, load high", "old, load high"]
    for name, shown in (("rates", names), ("limit", names[:2])):
        (legend,) = drawn[f"purgatory-{name}"].figure.legends
        assert [text.get_text() for text in legend.get_texts()] == shown
    nothing = [row | {"peak_bytes": None} for row in trials() if row["kind"] == "limit"]
    assert "[MiB]" not in draw_all(nothing)["purgatory-limit"].alt
