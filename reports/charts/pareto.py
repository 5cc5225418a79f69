"""The Pareto chart of a search: cost, precision and memory of the candidates of its last round."""

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from compare.base import formats
from compare.trial.advice.candidates import Candidate
from compare.trial.advice.search import Advice
from reports.charts.axes import log_axis
from reports.charts.pictures import SETTINGS, Picture
from reports.palette import INK, look_of

_INCHES = 7.5, 5
_AREA = 14  # square points of a marker for each doubling of the memory


def pareto_picture(advice: Advice) -> Picture:
    """Draw the candidates: precision on the x axis, CPU time on the y axis, memory as the area.

    The Pareto front is filled; the advice has a ring.
    """
    with mpl.rc_context(SETTINGS):
        figure = Figure(_INCHES, layout="constrained")
        axes = figure.subplots()
        smallest = min(candidate.nbytes for candidate in advice.finalists)
        front = {candidate.label for candidate in advice.front}
        names = dict.fromkeys(candidate.contestant.name for candidate in advice.finalists)

        def dot(candidate: Candidate, area: int, **style: Any) -> None:
            axes.scatter(candidate.deviation, candidate.cost, area, **style)

        # The largest first, so that no dot hides a smaller one.
        for candidate in sorted(advice.finalists, key=lambda candidate: -candidate.nbytes):
            colour = look_of(candidate.contestant.name).colour
            inside = colour if candidate.label in front else "none"
            area = _AREA * (candidate.nbytes // smallest).bit_length()
            dot(candidate, area, facecolors=inside, edgecolors=colour)
        for name in names:
            axes.scatter([], [], color=look_of(name).colour, label=name)
        label = f"advice: {advice.best.label}"
        dot(advice.best, 200, facecolors="none", edgecolors=INK, label=label)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=-0.5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: formats.short_count(x)))
        axes.set_xlabel(f"late or early by at most [{advice.unit}]")
        axes.set_ylabel("CPU time per operation")
        log_axis(axes, "y", formats.nanoseconds)
        figure.suptitle(f"Cost and precision of timers for {advice.trace.path.name}")
        title = "area: memory; filled: on the Pareto front"
        figure.legend(loc="outside lower center", ncols=2, title=title)
    caption = "Filled points are the Pareto front in cost, precision and memory."
    return Picture("advice", caption, figure)
