"""The Pareto chart of a search: cost, precision and memory of the candidates that were timed."""

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from compare.advice.prices import Counted
from compare.advice.search import Advice
from reports.charts.pictures import SETTINGS, Picture
from reports.palette import INK, look_of

_INCHES = 7.5, 5
_AREA = 14  # square points of a marker for each doubling of the memory


def pareto_picture(advice: Advice) -> Picture:
    """Precision across, CPU time up, memory as the area.

    The Pareto front is filled; the advice has a ring.
    """
    with mpl.rc_context(SETTINGS):
        figure = Figure(_INCHES, layout="constrained")
        axes = figure.subplots()
        smallest = min(candidate.nbytes for candidate in advice.measured)
        front = {candidate.label for candidate in advice.front}
        names = dict.fromkeys(candidate.contestant.name for candidate in advice.measured)

        def dot(candidate: Counted, area: int, **style: Any) -> None:
            axes.scatter(candidate.deviation, advice.cost(candidate), area, **style)

        for candidate in advice.measured:
            colour = look_of(candidate.contestant.name).colour
            inside = colour if candidate.label in front else "none"
            area = _AREA * (candidate.nbytes // smallest).bit_length()
            dot(candidate, area, facecolors=inside, edgecolors=colour)
        for name in names:
            axes.scatter([], [], color=look_of(name).colour, label=name)
        label = f"advice: {advice.best.label}"
        dot(advice.best, 200, facecolors="none", edgecolors=INK, label=label)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_xlim(left=-0.5)
        axes.set_xlabel(f"late or early by at most [{advice.unit}]")
        axes.set_ylabel("ns of CPU per operation")
        figure.suptitle(f"Cost and precision of timers for {advice.trace.path.name}")
        figure.legend(loc="outside lower center", ncols=3, title="area: memory; filled: best")
    caption = "Filled points are the Pareto front in cost, precision and memory."
    return Picture("advice", caption, figure)
