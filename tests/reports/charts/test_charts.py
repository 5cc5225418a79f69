from dataclasses import replace
from itertools import chain
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from compare.trial.bench.task import BY_CLOCK, HOLD, TASKS
from compare.trial.results.store import read_run
from reports.catalogue import plots
from reports.charts import pictures
from reports.charts.pictures import Picture
from reports.palette import look_of
from reports.summary import figures_of
from tests.reports.synthetic import write_synthetic
from timers.registry import names


@pytest.fixture(scope="module")
def by_name(summary) -> dict[str, Picture]:
    drawn = pictures(plots(summary)).values()
    return {picture.name: picture for picture in chain.from_iterable(drawn)}


def test_every_chart_is_in_its_section(distinct, monkeypatch):
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)
    names = {
        name: [chart.name for chart in charts] for name, charts in pictures(plots(distinct)).items()
    }
    assert names == {
        "times": [f"time-{task.name}" for task in TASKS],
        "work": [f"work-{task.name}" for task in TASKS],
        "workloads": ["replays", "trade-off"],
        "memory": ["memory"],
    }


def test_every_chart_says_what_it_shows(by_name):
    for picture in by_name.values():
        labels = [axes.get_xlabel() for axes in picture.figure.axes if axes.get_xlabel()]
        across = "worst deviation" if picture.name == "trade-off" else "timers pending, N"
        assert all(label.startswith(across) for label in labels), labels
        assert labels or picture.name == "replays"  # whose columns have names
        assert "per" in picture.title
        if picture.name.startswith(("time-", "work-")):
            assert all(
                axes.get_xscale() == axes.get_yscale() == "log" for axes in picture.figure.axes
            )


def test_the_legend_names_what_is_drawn_with_its_precision_and_engine(by_name, summary):
    for picture in by_name.values():
        [legend] = picture.figure.legends
        drawn = {mark.who for mark in picture.marks.values()}
        assert [text.get_text().replace("\n", " ") for text in legend.get_texts()] == [
            timer.full for timer in summary.contestants if timer in drawn
        ]


def test_every_mark_shows_its_value_in_the_colour_of_its_timer(by_name):
    for picture in by_name.values():
        drawn = {artist.get_gid(): artist for artist in picture.figure.findobj(Line2D)}
        for name, mark in picture.marks.items():
            if line := drawn.get(name):
                look = look_of(mark.who.timer)
                assert to_hex(line.get_color()).upper() == look.colour.upper()
                assert line.get_marker() in (look.marker, "None")
        assert any(mark.text for mark in picture.marks.values())


def test_nothing_but_axes_titles_and_legend_is_written(by_name):
    for picture in by_name.values():
        assert not any(axes.texts for axes in picture.figure.axes), picture.name


def test_python_loops_are_dashed_and_all_else_is_not(by_name):
    lines = by_name["time-insert"].figure.axes[0].get_lines()
    dashed = {to_hex(line.get_color()).upper() for line in lines if line.is_dashed()}
    assert dashed == {look_of("heapq-delay-queue").colour.upper()}


@pytest.mark.parametrize("sizes", [(1_000_000,), (256, 1024, 65_536)])
def test_texts_stay_inside_and_are_legible(tmp_path, sizes):
    chosen = [*names(), "hashed-wheel/tick=100000/wheel-size=64"]
    workloads = ["/some/where/a-very-long-name-of-a-log.requests", "keepalive", "uniform"]
    summary = figures_of(
        read_run(write_synthetic(tmp_path, chosen, sizes=sizes, workloads=workloads))
    )
    unwanted = {task.name for task in TASKS} - {HOLD.name, BY_CLOCK.name}
    few = {key: each for key, each in summary.figures.items() if key.subject not in unwanted}
    drawn = pictures(plots(replace(summary, figures=few, over_budget={})))
    for picture in chain.from_iterable(drawn.values()):
        canvas = FigureCanvasAgg(picture.figure)
        canvas.draw()
        whole = picture.figure.bbox
        for text in picture.figure.findobj(Text):
            if text.get_text().strip() and text.get_visible() and in_view(text):
                box = text.get_window_extent(canvas.get_renderer())
                inside = whole.x0 <= box.x0 and box.x1 <= whole.x1
                inside = inside and whole.y0 <= box.y0 and box.y1 <= whole.y1
                assert inside, (picture.name, text.get_text())
                # A phone of 390 pixels shows the figure 370 pixels wide.
                pixels = text.get_fontsize() * 370 / (72 * picture.figure.get_figwidth())
                assert pixels >= 11, (picture.name, text.get_text())


def in_view(text: Text) -> bool:
    """Whether it is drawn: the labels of ticks outside an axis's limits exist, but are not."""
    for axes in text.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in (*axis.majorTicks, *axis.minorTicks):
                if text in (tick.label1, tick.label2):
                    low, high = sorted(axis.get_view_interval())
                    return low <= tick.get_loc() <= high
    return True


def test_files_are_readable_and_always_the_same(by_name, summary):
    picture = by_name["memory"]
    assert picture.png().startswith(b"\x89PNG")
    text = picture.svg()
    again = plots(summary.where(subject="memory"))
    assert text == pictures(again)["memory"][0].svg()
    assert "cascading-wheel" in "".join(ElementTree.fromstring(text).itertext())


def test_an_element_of_a_page_has_its_marks_and_ids_of_its_own(by_name, summary):
    numbers = {timer: number for number, timer in enumerate(summary.contestants)}
    known = set()
    for picture in by_name.values():
        root = ElementTree.fromstring(picture.element(numbers))
        ids = [part.get("id") for part in root.iter() if part.get("id")]
        assert len(ids) == len({*ids}) and known.isdisjoint(ids), picture.name
        known.update(ids)
        data = ("data-series", "data-value")
        marks = {
            each.get("id"): [each.get(name) for name in data] for each in root.iterfind(".//{*}g")
        }
        for name, mark in picture.marks.items():
            panel = f"{mark.panel}: " if mark.panel else ""
            assert marks[name] == [str(numbers[mark.who]), panel + mark.text if mark.text else None]
        assert "data-series" not in picture.svg()


def test_no_global_state_of_matplotlib_is_touched(by_name):
    import matplotlib as mpl

    assert mpl.rcParams["svg.fonttype"] == mpl.rcParamsDefault["svg.fonttype"]
    assert mpl.rcParams["svg.hashsalt"] == mpl.rcParamsDefault["svg.hashsalt"]
