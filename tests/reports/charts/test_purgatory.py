"""The charts of the enqueue experiment show the stored figures, each at its own place."""

import re

import pytest
from matplotlib import rc_context

from compare.bench.store import read_run
from reports.charts.pictures import SETTINGS
from reports.charts.purgatory import draw
from reports.palette import INK, look_of
from reports.summary import Summary, figures_of
from tests.reports.trials import LIMITS, RATES, trials, write_trials

COLOURS = {
    "purging": look_of("hierarchical-wheel").colour,
    "scanning": look_of("delay-queue").colour,
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    summary = figures_of(read_run(write_trials(tmp_path_factory.mktemp("trials"))))
    with rc_context(SETTINGS):
        return {picture.name: picture for picture in draw(summary)}


def lines(axes):
    """The points of the lines that join them, by colour and whether they are dashed."""
    return {
        (line.get_color(), line.is_dashed()): list(zip(*line.get_data(), strict=True))
        for line in axes.get_lines()
        if len(line.get_xdata()) == 2 and line.get_marker() == "None" and line.get_linewidth() > 1
    }


def expected(kind, column, scale=1.0, x="rate"):
    found = {}
    for row in trials():
        if row["kind"] == kind and row["design"] in COLOURS:
            key = COLOURS[row["design"]], row["load"] == "high"
            found.setdefault(key, []).append((row[x], row[column] * scale))
    return found


def test_every_kind_of_trial_has_a_chart(drawn):
    assert list(drawn) == ["purgatory-rates", "purgatory-limit", "purgatory-compiled"]


@pytest.mark.parametrize(
    ("panel", "column", "scale"),
    [
        (0, "achieved", 1.0),
        (1, "cpu_us", 1e3),
        (2, "late_p99_ms", 1e6),
        (3, "peak_bytes", 2.0**-20),
    ],
)
def test_figures_at_rising_rates(drawn, panel, column, scale):
    axes = drawn["purgatory-rates"].figure.axes[panel]
    found, wanted = lines(axes), expected("rate", column, scale)
    assert found.keys() == wanted.keys()
    for key, points in wanted.items():
        assert found[key] == [pytest.approx(point) for point in points]
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_repeated_trials_have_a_bar_from_the_least_to_the_most():
    rows = [
        row | {"cpu_us": row["cpu_us"] * factor}
        for row in trials()
        if row["kind"] == "rate" and row["design"] != "none"
        for factor in (3.0, 1.0, 5.0)
    ]
    with rc_context(SETTINGS):
        (picture,) = draw(Summary({}, (), {}, {}, {}, {}, trials=rows))
    axes = picture.figure.axes[1]
    bars = [
        (float(x), float(low), float(high))
        for collection in axes.collections
        for [[x, low], [_, high]] in collection.get_segments()
    ]
    once = [(row["rate"], row["cpu_us"] * 1e3) for row in rows[1::3]]
    assert sorted(bars) == [pytest.approx((rate, level, 5 * level)) for rate, level in sorted(once)]
    points = [point for of in lines(axes).values() for point in of]
    assert sorted(points) == [pytest.approx((rate, 3 * level)) for rate, level in sorted(once)]
    low, high = axes.get_ylim()
    assert low < min(level for _, level in once) < 5 * max(level for _, level in once) < high


def test_what_did_not_keep_up_is_hollow(drawn):
    axes = drawn["purgatory-rates"].figure.axes[1]
    hollow = {
        (line.get_color(), float(line.get_xdata()[0]))
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1 and line.get_markerfacecolor() == "#ffffff"
    }
    assert hollow == {(COLOURS["scanning"], float(max(RATES)))}
    compiled = [line for axes in drawn["purgatory-compiled"].figure.axes for line in axes.lines]
    assert not [line for line in compiled if line.get_markerfacecolor() == "#ffffff"]
    # Two of three trials of the old design failed, and one of the new; and all at one limit.
    rows = [
        row | {"failed": "x" if failed == (row["design"] == "scanning") else None}
        for row in trials()
        for failed in (False, True, True)
        if row["kind"] == "rate" or (row["kind"] == "limit" and row["interval"] == LIMITS[0])
    ]
    with rc_context(SETTINGS):
        pictures = draw(Summary({}, (), {}, {}, {}, {}, trials=rows))
        hollow = [
            sorted(
                float(line.get_xdata()[0])
                for line in picture.figure.axes[1].get_lines()
                if line.get_markerfacecolor() == "#ffffff"
            )
            for picture in pictures
        ]
    assert hollow == [sorted(RATES * 2), [LIMITS[0]]]


def test_what_was_asked_for_is_a_thin_line_beside_what_was_achieved(drawn):
    thin = [
        [line.get_xydata().tolist() for line in axes.get_lines() if line.get_color() == INK]
        for axes in drawn["purgatory-rates"].figure.axes
    ]
    assert thin == [[[[rate, rate] for rate in RATES]], [], [], []]


def test_the_sweep_shows_the_old_design_against_a_line_for_the_new_one(drawn):
    rows = [row for row in trials() if row["kind"] == "limit"]
    (new,) = (row for row in rows if row["design"] == "purging")
    old = [row for row in rows if row["design"] == "scanning"]
    for axes, column, scale in zip(
        drawn["purgatory-limit"].figure.axes, ("cpu_us", "peak_bytes"), (1e3, 2.0**-20), strict=True
    ):
        joined = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
        levels = {line.get_color(): list(map(float, line.get_ydata())) for line in joined}
        assert levels == {
            COLOURS["scanning"]: pytest.approx([row[column] * scale for row in old]),
            COLOURS["purging"]: pytest.approx([new[column] * scale] * 2),
        }
        low, high = axes.get_ylim()
        assert low < new[column] * scale < high
        assert [row["interval"] for row in old] == list(LIMITS)


def test_compiled_times_are_medians_and_scans_are_per_request(drawn):
    times, scans = drawn["purgatory-compiled"].figure.axes
    first = COLOURS["purging"], False
    # Of the samples 100, 300 and 200 ns, and 200, 600 and 400 ns.
    assert lines(times)[first] == [pytest.approx((10_000, 200)), pytest.approx((40_000, 400))]
    bars = [bar.get_segments()[0].tolist() for bar in times.collections]
    assert bars[:2] == [[[10_000, 100], [10_000, 300]], [[40_000, 200], [40_000, 600]]]
    assert lines(scans)[first] == [(10_000, 3.0), (40_000, 6.0)]
    assert len(lines(times)) == len(lines(scans)) == 4


def test_charts_say_what_they_show(drawn):
    for picture in drawn.values():
        for axes in picture.figure.axes:
            assert axes.get_title(loc="left")
            assert axes.get_xlabel() in ("requests/s asked for (log)", "limit, entries (log)")
    texts = {name: re.sub("[\xa0\u202f]", " ", picture.alt) for name, picture in drawn.items()}
    assert "achieved new, load low at 40 000: 40k, old, load low" in texts["purgatory-rates"]
    assert (
        "time per request new, load low at 40 000: 400 ns (200–600), old"
        in texts["purgatory-compiled"]
    )
    limit = "[MiB] new, load low 35, old, load low at 100 000: 37"
    assert limit in texts["purgatory-limit"]
    assert drawn["purgatory-limit"].caption.startswith("Load low at 10\u202f000 requests/s.")
    names = ["new, load low", "old, load low", "new, load high", "old, load high"]
    for name, shown in (("rates", names), ("limit", names[:2]), ("compiled", names)):
        (legend,) = drawn[f"purgatory-{name}"].figure.legends
        assert [text.get_text() for text in legend.get_texts()] == shown
    nothing = [row | {"peak_bytes": None} for row in trials() if row["kind"] == "limit"]
    with rc_context(SETTINGS):
        (picture,) = draw(Summary({}, (), {}, {}, {}, {}, trials=nothing))
    assert "[MiB]" not in picture.alt
