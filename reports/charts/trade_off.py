"""Time against precision: a panel for each source."""

from collections.abc import Iterator, Mapping

from matplotlib.ticker import FuncFormatter

from reports import formats
from reports.charts.axes import Chart, log_axis, point
from reports.charts.pictures import Picture
from reports.summary import StoredContestant, Summary

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
    headings = [source.short for source in fired]
    chart = Chart("Time per operation against precision", shown, headings, 2.1)
    levels = [level for of in fired.values() for r in of.values() for level in r.cell.reach]
    for axes, (source, found) in zip(chart.panels, fired.items(), strict=True):
        deviations = {who: max(map(abs, replayed.late or ())) for who, replayed in found.items()}
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(-0.9, max([10, *deviations.values()]) * 2.5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: formats.short_count(round(x))))
        log_axis(axes, "y", levels, formats.nanoseconds, most_ticks=6)
        symbol, places = formats.unit_symbol(source.unit), _places(deviations)
        for who, replayed in found.items():
            where = f"at most {formats.count(deviations[who])} {symbol} off"
            chart.series(axes, who, [point(places[who], replayed.cell, where)], line=False)
        axes.set_xlabel(f"worst deviation [{symbol}]")
    yield chart.picture(
        "trade-off",
        "Across: how far from its deadline the worst timer fired, late or early; 0 is exact. Up: "
        "the time per operation. Lower left is better in both.",
    )


def _places(deviations: Mapping[StoredContestant, int]) -> dict[StoredContestant, float]:
    """Where each stands on the axis: those at 0 beside each other."""
    exact = [who for who, deviation in deviations.items() if deviation == 0]
    return {**deviations} | {who: 0.8 * n / len(exact) - 0.4 for n, who in enumerate(exact)}
