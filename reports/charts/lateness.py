"""How late timers fired: for each source the share of the timers that fired by then."""

from collections.abc import Iterator
from itertools import accumulate

from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports import formats
from reports.charts.axes import Chart, stroke_of
from reports.charts.pictures import Picture
from reports.summary import Replayed, Summary


def draw(summary: Summary) -> Iterator[Picture]:
    """The cumulative distribution of lateness."""
    fired = {
        source: {who: of for who, of in found.items() if of.bins}
        for source, found in summary.replays.items()
    }
    shown = [who for who in summary.contestants if any(who in of for of in fired.values())]
    if not shown:
        return
    headings = [source.short for source in fired]
    chart = Chart("How long after its deadline a timer fired", shown, headings, 1.5)
    for axes, (source, found) in zip(chart.panels, fired.items(), strict=True):
        panel, symbol = axes.get_title("left"), formats.unit_symbol(source.unit)
        for who, replayed in found.items():
            x, y = _curve(replayed)
            [drawn] = axes.plot(x, y, drawstyle="steps-post", **stroke_of(who))
            least, most = formats.count(x[1]), formats.count(x[-2])
            chart.mark(drawn, who, panel, f"{least} to {most} {symbol} late")
        axes.set_ylim(-0.04, 1.04)
        axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
        axes.set_xlabel(f"lateness [{symbol}]")
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda late, _: formats.count(round(late))))
    yield chart.picture(
        "lateness",
        "The share of the timers that fired at most so late; negative is early. A step at 0: every "
        "timer fired exactly then.",
    )


def _curve(replayed: Replayed) -> tuple[list[int], list[float]]:
    """Lateness and the share of the timers up to it, with a flat part at both ends."""
    lefts, widths, timers = zip(*replayed.bins, strict=True)
    ends = [left + width - 1 for left, width in zip(lefts, widths, strict=True)]
    margin = max((ends[-1] - lefts[0]) // 10, 1)
    shares = [count / sum(timers) for count in accumulate(timers)]
    return [lefts[0] - margin, *ends, ends[-1] + margin], [0.0, *shares, 1.0]
