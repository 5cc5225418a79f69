from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from reports.charts.lateness import MOST_BARS, draw
from reports.statistics import Spread
from reports.summary import Bin, Cell, Replayed, Summary
from tests.reports.synthetic import contestant_of


def bars(summary: Summary, bins: list[Bin]) -> tuple[np.ndarray, np.ndarray]:
    """The heights (the tallest is 1) and the edges of what is drawn."""
    replayed = Replayed(Cell(Spread.of([1.0]), 1), {}, tuple(bins))
    found = {next(iter(summary.replays)): {contestant_of(summary, "hashed-wheel"): replayed}}
    (picture,) = draw(replace(summary, replays=found))
    assert picture.alt.endswith(f" {bins[0].lateness} to {bins[-1].lateness + bins[-1].width - 1}.")
    (axes,) = picture.figure.axes
    (patch,) = (patch for patch in axes.patches if isinstance(patch, StepPatch))
    values, edges, baseline = patch.get_data()
    return (baseline - values) / np.max(baseline - values), edges


def test_each_value_has_its_bar_where_there_is_room(summary: Summary):
    heights, edges = bars(summary, [Bin(-2, 1, 5), Bin(0, 1, 10), Bin(3, 1, 1)])
    assert edges.tolist() == [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]
    assert heights == pytest.approx([0.5, 0, 1, 0, 0, 0.1])


@pytest.mark.parametrize("width", [1, 3, 50])
def test_many_values_share_bars(summary: Summary, width):
    heights, edges = bars(summary, [Bin(k * width, width, 4) for k in range(1000)])
    assert heights.size <= MOST_BARS
    assert len(set(np.diff(edges))) == 1
    assert edges[0] == -0.5
    assert edges[-1] >= 1000 * width - 0.5
    assert heights[:-1] == pytest.approx(1.0, abs=0.12)  # as even as the values


def test_a_few_values_far_apart_are_seen(summary: Summary):
    heights, edges = bars(summary, [Bin(0, 1, 1), Bin(1_000_000, 1, 3)])
    assert np.diff(edges)[0] >= 1_000_000 / MOST_BARS
    assert heights[[0, -1]] == pytest.approx([1 / 3, 1])
    assert not heights[1:-1].any()
