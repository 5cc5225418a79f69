"""Draw the pictures of the tutorial into docs/pictures: `python docs/pictures.py`."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from timers.rounding import Rounding

PICTURES = Path(__file__).parent / "pictures"
INK, FAINT, FILL, BLUE, ORANGE = "#1f2328", "#d0d7de", "#eef2f6", "#0072b2", "#d55e00"


def canvas(width: float, height: float, right: float, top: float) -> tuple[Figure, Axes]:
    """A white figure, its size in inches, with axes from (0, 0) to (right, top) and no frame."""
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    axes.axis("off")
    return figure, axes


def save(figure: Figure, name: str) -> None:
    """Write a PNG file."""
    figure.savefig(PICTURES / f"{name}.png", dpi=150, metadata={"Software": None})


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """An arrow from one point to another."""
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=12, color=colour, linewidth=1.4
        )
    )


def ticks() -> None:
    """When timers with equal deadlines fire, for the three kinds of rounding."""
    tick, deadlines = 100, (130, 300, 460)
    kinds = (
        ("exact", "exact", "cascading-wheel, delay-queue, ..."),
        ("down", "down to the tick", "hierarchical-wheel, tick 100"),
        ("up", "up past the tick", "hashed-wheel, tick 100"),
    )
    figure, axes = canvas(7.6, 3.5, 760, 350)
    left, scale = 220, 1.0
    for moment in range(0, 501, tick):
        x = left + scale * moment
        axes.plot([x, x], [45, 300], color=FAINT, linewidth=1.2, zorder=0)
        axes.text(x, 26, str(moment), ha="center", va="center", color=INK, fontsize=9)
    axes.text(left, 8, "time in units", color=INK, fontsize=9)
    for row, (direction, name, timers) in enumerate(kinds):
        y = 250 - 80 * row
        axes.text(12, y + 6, name, color=INK, fontsize=11, weight="bold")
        axes.text(12, y - 14, timers, color=INK, fontsize=8.5)
        axes.plot([left, left + scale * 510], [y, y], color=INK, linewidth=1)
        for deadline in deadlines:
            fires = Rounding(direction, tick).due_at(deadline, 0)
            x, end = left + scale * deadline, left + scale * fires
            if fires != deadline:
                curve = "arc3,rad=-0.35" if fires > deadline else "arc3,rad=0.35"
                axes.add_patch(
                    FancyArrowPatch(
                        (x, y + 4),
                        (end, y + 4),
                        connectionstyle=curve,
                        arrowstyle="-|>",
                        mutation_scale=10,
                        color=ORANGE,
                        linewidth=1.3,
                        shrinkA=4,
                        shrinkB=4,
                    )
                )
            axes.plot([x], [y], "o", color="white", markeredgecolor=INK, markersize=8, zorder=3)
            axes.plot([end], [y], "o", color=ORANGE, markersize=4.5, zorder=4)
    axes.plot([left + 10], [325], "o", color="white", markeredgecolor=INK, markersize=8)
    axes.text(left + 24, 320, "deadline", color=INK, fontsize=9)
    axes.plot([left + 110], [325], "o", color=ORANGE, markersize=4.5)
    axes.text(left + 122, 320, "fires", color=INK, fontsize=9)
    save(figure, "ticks")


def places() -> None:
    """A handle's place is the index of its payload in plain arrays."""
    figure, axes = canvas(7.6, 2.9, 760, 290)

    def box(x: float, y: float, width: float, text: str, fill: str = "white") -> None:
        axes.add_patch(Rectangle((x, y), width, 34, facecolor=fill, edgecolor=INK, linewidth=1))
        axes.text(x + width / 2, y + 16, text, ha="center", va="center", color=INK, fontsize=10)

    axes.text(20, 266, "handle", color=INK, fontsize=11, weight="bold")
    box(20, 220, 130, "generation 7")
    box(150, 220, 100, "place 3", FILL)
    axes.text(290, 232, "place_of(handle) == 3", color=BLUE, fontsize=11, family="monospace")
    columns = {
        "user": ["12", "40", "", "77", "5", ""],
        "sent_at": ["800", "810", "", "940", "955", ""],
    }
    left, width = 150, 90
    for place in range(6):
        axes.text(left + width * (place + 0.5), 158, str(place), ha="center", color=INK, fontsize=9)
    for row, (name, values) in enumerate(columns.items()):
        y = 110 - 54 * row
        axes.text(20, y + 12, name, color=INK, fontsize=11, family="monospace")
        for place, value in enumerate(values):
            box(left + width * place, y, width, value, FILL if place == 3 else "white")
    arrow(axes, (200, 216), (left + width * 3.5, 174), BLUE)
    axes.text(20, 18, "arrays of your own, beside the timer", color=INK, fontsize=9)
    save(figure, "places")


def trace() -> None:
    """Requests of a log as operations of a trace, and what a timer makes of them."""
    figure, axes = canvas(7.6, 3.1, 760, 310)
    left, timeout = 150, 300
    requests = (("request 0", 20, 150), ("request 1", 90, None), ("request 2", 210, 120))
    for row, (name, start, answer) in enumerate(requests):
        y = 250 - 75 * row
        begin, deadline = left + start, left + start + timeout
        axes.text(12, y - 5, name, color=INK, fontsize=11, weight="bold")
        axes.plot([begin, deadline], [y, y], color=FAINT, linewidth=7, solid_capstyle="butt")
        axes.plot([begin], [y], "o", color=BLUE, markersize=9)
        axes.text(begin - 4, y + 15, "start", color=BLUE, fontsize=9)
        axes.plot([deadline, deadline], [y - 12, y + 12], color=INK, linewidth=1.2)
        if answer is None:
            axes.text(deadline + 14, y + 12, "no answer: fires at", color=ORANGE, fontsize=9)
            axes.text(deadline + 14, y - 4, "the deadline, or as", color=ORANGE, fontsize=9)
            axes.text(deadline + 14, y - 20, "the timer rounds it", color=ORANGE, fontsize=9)
            axes.plot([deadline], [y], "o", color=ORANGE, markersize=9)
        else:
            end = begin + answer
            axes.plot([begin, end], [y, y], color=BLUE, linewidth=3)
            axes.plot([end], [y], "X", color=BLUE, markersize=10)
            axes.text(end - 14, y + 15, "cancel", color=BLUE, fontsize=9)
            axes.text(deadline + 8, y - 5, "deadline", color=INK, fontsize=9)
    arrow(axes, (left, 40), (740, 40), INK)
    axes.text(left, 18, "time", color=INK, fontsize=9)
    save(figure, "trace")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    ticks()
    places()
    trace()
