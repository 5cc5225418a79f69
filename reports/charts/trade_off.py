"""Time against precision: a panel for each source."""

from collections.abc import Iterator, Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from reports import formats
from reports.charts.axes import HEADING, colour_of, described, log_axis, log_ticks, mark_of, panels
from reports.charts.pictures import Picture
from reports.summary import Replayed, StoredContestant, Summary

FEW_PRECISIONS = 2
"""Up to so many the charts of time and lateness tell enough by themselves."""


def draw(summary: Summary) -> Iterator[Picture]:
    """Time per operation against the worst lateness seen."""
    if len({who.lateness for who in summary.contestants}) <= FEW_PRECISIONS or not summary.replays:
        return
    fired = {
        source: {who: of for who, of in found.items() if of.late}
        for source, found in summary.replays.items()
    }
    shown = [who for who in summary.contestants if any(who in of for of in fired.values())]
    headings = [formats.cut(source.short, HEADING) for source in fired]
    y = "time per operation (log scale)"
    figure, found = panels(headings, "Time against precision", 2.3, y=y, legend=shown)
    levels = [level for of in fired.values() for r in of.values() for level in r.cell.reach]
    texts = []
    for axes, (source, points) in zip(found, fired.items(), strict=True):
        deviations = {who: max(map(abs, replayed.late or ())) for who, replayed in points.items()}
        _deviation_axis(axes, max(deviations.values(), default=0))
        log_axis(axes, "y", levels, formats.nanoseconds, most_ticks=6)
        _draw(axes, points, _places(deviations))
        axes.set_xlabel(f"worst deviation [{formats.unit_symbol(source.unit)}]")
        drawn = {who: f"{points[who].cell.text} at {deviations[who]}" for who in points}
        texts.append((f"{source.short}, in {formats.unit_name(source.unit)}", drawn))
    yield Picture(
        "trade-off",
        "Across: how far from its deadline the worst timer fired, late or early; 0 is exact. Up: "
        "the time per operation. Lower left is better in both. A line joins the settings of one "
        "timer.",
        "Scatter charts with logarithmic axes: time per operation against the worst deviation from "
        f"the deadline. {described(texts)}.",
        figure,
    )


def _draw(
    axes: Axes,
    points: Mapping[StoredContestant, Replayed],
    places: Mapping[StoredContestant, float],
) -> None:
    for timer in dict.fromkeys(who.timer for who in points):
        own = sorted((who for who in points if who.timer == timer), key=lambda who: places[who])
        levels = [points[who].cell.level for who in own]
        axes.plot([places[who] for who in own], levels, color=colour_of(own[0]), linewidth=0.8)
    for who, replayed in points.items():
        axes.vlines(places[who], *replayed.cell.reach, color=colour_of(who), linewidth=1.4)
        axes.plot(places[who], replayed.cell.level, **mark_of(who, 6.5), ls="none", zorder=3)


def _places(deviations: Mapping[StoredContestant, int]) -> dict[StoredContestant, float]:
    """Where each stands on the axis: those at 0 beside each other."""
    exact = [who for who, deviation in deviations.items() if deviation == 0]
    middle = (len(exact) - 1) / 2
    step = min(0.7 / max(middle, 1), 0.3)
    return {**deviations} | {who: (place - middle) * step for place, who in enumerate(exact)}


def _deviation_axis(axes: Axes, most: int) -> None:
    """Logarithmic from 1 on, with room for several at 0."""
    most = max(most, 10)
    axes.set_xscale("symlog", linthresh=1, linscale=1.0)
    axes.set_xlim(-0.9, most * 2.5)
    axes.xaxis.set_major_locator(FixedLocator([0.0, *log_ticks(1.0, most * 2.5, 4)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: formats.short_count(round(late))))
