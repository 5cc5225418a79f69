"""Each mark of a chart stands where its figure of the run is, and says it."""

from dataclasses import replace
from statistics import median

import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from compare.base import formats
from compare.trial.bench.task import TASKS
from compare.trial.results.metrics import METRICS
from reports.catalogue import plots, replays_plots
from reports.charts import drawn as draw
from tests.reports.primes import IDLE, LABELS, OVER_REPLAY, SIZES, SOURCES


@pytest.fixture(scope="module")
def drawn(distinct):
    return {plot.name: draw(plot) for each in plots(distinct).values() for plot in each}


def points(picture):
    """(label, panel) -> the points of a contestant: x, y and the text."""
    artists = {artist.get_gid(): artist for artist in picture.figure.findobj(Line2D)}
    marks = {}
    for name, mark in picture.marks.items():
        if mark.text:
            x, y = artists[name].get_xydata()[0]
            marks.setdefault((mark.who.label, mark.panel), []).append((x, y, mark.text))
    return marks


def bars(picture):
    """The ends of all bars by contestant."""
    artists = {artist.get_gid(): artist for artist in picture.figure.findobj(LineCollection)}
    marks = {}
    for name, mark in picture.marks.items():
        if name in artists:
            [[[_, low], [_, high]]] = artists[name].get_segments()
            marks.setdefault(mark.who.label, []).append((low, high))
    return marks


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_times(primes, drawn, task):
    picture = drawn[f"time-{task.name}"]
    marks, spans = points(picture), bars(picture)
    for label in LABELS:
        own = {
            n: primes.samples[label, task, n] for n in SIZES if (label, task, n) in primes.samples
        }
        for (x, y, text), span, (size, samples) in zip(
            marks[label, ""], spans[label], own.items(), strict=True
        ):
            assert x == pytest.approx(size, rel=0.2) and y == pytest.approx(median(samples))
            assert span == pytest.approx((min(samples), max(samples)))
            level, ends = formats.nanoseconds(y), formats.span(min(samples), max(samples))
            assert text == f"{formats.size(size)}: {level} ({ends})"
    firsts = [marks[label, ""][0][0] for label in LABELS]
    assert firsts == sorted(set(firsts))  # beside each other


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_work(primes, drawn, task):
    marks = points(drawn[f"work-{task.name}"])
    expected = {}
    for (label, of, counter, size), (count, operations) in primes.counts.items():
        if of == task and count:
            panel = formats.cut(METRICS[counter].title, 19)
            expected.setdefault((label, panel), {})[size] = count / operations
    assert marks.keys() == expected.keys()
    for key, counts in expected.items():
        for (x, y, text), (size, each) in zip(marks[key], sorted(counts.items()), strict=True):
            assert x == pytest.approx(size, rel=0.2) and y == pytest.approx(each)
            assert text == f"{formats.size(size)}: {formats.amount(each)}"
    zero = " Zero, so not drawn: Mine." if task == IDLE[1] else ""
    caption = f"{task.meaning}{zero} Not counted: heapq-delay-queue."
    assert drawn[f"work-{task.name}"].caption == caption


def test_replays(primes, drawn):
    marks, spans = points(drawn["replays"]), bars(drawn["replays"])
    [axes] = drawn["replays"].figure.axes
    shorts = [source.rstrip("/").rpartition("/")[2] for source in SOURCES]
    assert [label.get_text() for label in axes.get_xticklabels()] == shorts
    for label in LABELS:
        own = [source for source in SOURCES if (label, source) != OVER_REPLAY]
        for (x, y, text), span, source in zip(marks[label, ""], spans[label], own, strict=True):
            samples, place = primes.times[label, source], list(SOURCES).index(source)
            assert round(x) == place and y == pytest.approx(median(samples))
            assert span == pytest.approx((min(samples), max(samples)))
            assert text.startswith(f"{shorts[place]}: {formats.nanoseconds(y)}")


def test_time_against_precision(primes, distinct, drawn):
    marks, expected = points(drawn["trade-off"]), set()
    for source in distinct.sources:
        for label in LABELS:
            row = primes.rows.get((label, source.name), {})
            if row.get("lateness_min") is None:  # nothing fired, or it was over budget
                continue
            panel = formats.cut(distinct.called(source), 19)
            [(x, y, text)] = marks[label, panel]
            worst = max(-row["lateness_min"], row["lateness_max"])
            assert x == worst if worst else -0.5 < x < 0.5
            assert y == pytest.approx(median(primes.times[label, source.name]))
            assert text.startswith(f"at most {formats.count(worst)} {source.unit} off: ")
            expected.add((label, panel))
    assert marks.keys() == expected


def test_a_source_over_budget_for_every_timer_has_no_column(distinct):
    first, *others = distinct.sources
    left = {key: each for key, each in distinct.figures.items() if key.subject != first.name}
    [plot] = replays_plots(replace(distinct, figures=left))
    [axes] = draw(plot).figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == [source.short for source in others]


def test_memory(primes, drawn):
    marks = points(drawn["memory"])
    for (label, capacity), value in primes.memory.items():
        text = f"{formats.size(capacity)}: {formats.data_size(value)}"
        [(x, y)] = [(x, y) for x, y, shown in marks[label, ""] if shown == text]
        assert x == pytest.approx(capacity, rel=0.2) and y == pytest.approx(value)
