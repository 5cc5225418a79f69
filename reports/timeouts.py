"""The section on one's own timeouts: the share of the answers that each timeout would cut."""

from collections.abc import Iterator

from compare.base import formats
from compare.traffic.tapes.description import Description
from compare.traffic.tapes.units import parse_duration
from reports.plots import CURVES, Panel, Plot, Plots, Point
from reports.statistics import Estimate
from reports.summary import Summary, Traffic


def curves(summary: Summary) -> Iterator[tuple[Traffic, Description]]:
    """The traces of which a timeout would cut some answers."""
    for source in summary.own:
        description = Description(**source.details.get("description") or {})
        if any(description.cut.values()):
            yield Traffic(summary.called(source)), description


def headline(summary: Summary) -> str:
    """The last timeouts that cut some answers, for each trace."""
    texts = []
    for traffic, description in curves(summary):
        cuts = [(timeout, share) for timeout, share in description.shares().items() if share]
        shown = ", ".join(f"{timeout} {formats.share(share)}" for timeout, share in cuts[-_SHOWN:])
        texts.append(f"Share of the answers in {traffic.name} that a timeout cuts: {shown}.")
    return " ".join(texts)


_SHOWN = 3


def lead(summary: Summary) -> str:
    """What the chart shows, and where it ends."""
    text = (
        "An answer cancels a timer or arms it again. This is the share of the answers that take at "
        "least as long as a timeout, so that it would fire although the answer comes."
    )
    if not all(description.complete for _, description in curves(summary)):
        text += (
            " A trace that was not made from a log may lack answers after the deadline, so its "
            "curve ends at the longest delay."
        )
    return text


def plots(summary: Summary) -> Plots:
    """The share against the timeout: a panel for each trace. Shares of 0 are not drawn."""
    panels = {
        traffic.name: Panel(
            {
                traffic: [
                    Point(1e3 * parse_duration(timeout, "us"), Estimate.of([share]), timeout)
                    for timeout, share in description.shares().items()
                    if share
                ]
            },
            formats.share,
            "timeout",
            form_across=formats.nanoseconds,
            most_ticks=3,
        )
        for traffic, description in curves(summary)
    }
    if panels:
        order = [traffic for traffic, _ in curves(summary)]
        caption = (
            "Both axes are logarithmic. From the first timeout that cuts none, nothing is drawn."
        )
        title = "Answers that a timeout would cut"
        yield Plot(CURVES, "timeouts", title, caption, order, panels)
