"""Rows are sorted by time and position, in memory and on disk, and few are held."""

from contextlib import closing
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs import sorting
from compare.traffic.logs.sorting import Scratch, Waiting, before, by_time, in_order
from timers.limits import LIMIT

TIMES = st.integers(0, 5) | st.sampled_from([LIMIT - 1, LIMIT])


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sorting, "CHUNK", 3)
    monkeypatch.setattr(sorting, "_PIECE", 4)


def columns(rows):
    """Rows (time, value, position) as a piece."""
    return tuple(np.array([row[k] for row in rows], np.int64) for k in range(3))


def rows_of(pieces):
    lists = ([column.tolist() for column in piece] for piece in pieces)
    return [row for piece in lists for row in zip(*piece, strict=True)]


@given(st.lists(st.integers(0, 5) | st.sampled_from([LIMIT - 1, LIMIT])), st.randoms())
def test_rows_are_sorted_by_time_and_position(times, random):
    positions = list(range(len(times)))
    random.shuffle(positions)
    rows = sorted(zip(times, positions, range(len(times)), strict=True))
    order = by_time(np.array(times, np.int64), np.array(positions, np.int64))
    assert order.tolist() == [row for _, _, row in rows]


@given(st.lists(st.tuples(TIMES, TIMES), unique=True), TIMES, TIMES)
def test_rows_before_a_key_are_counted(rows, time, position):
    moments, places = columns([(*row, 0) for row in sorted(rows)])[:2]
    assert before(moments, places, (time, position)) == sum(row < (time, position) for row in rows)


@given(st.lists(st.lists(TIMES, min_size=1, max_size=12), max_size=8), st.randoms())
def test_runs_on_disk_are_merged_as_sorted_would(tmp_path_factory, runs, random):
    numbers = list(range(sum(map(len, runs))))
    random.shuffle(numbers)
    rows = [[(time, number := numbers.pop(), number) for time in run] for run in runs]
    directory = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch, closing(Scratch(directory)) as scratch:
        patch.setattr(sorting, "CHUNK", 3)
        patch.setattr(sorting, "_PIECE", 4)
        waiting = Waiting(scratch)
        for run in rows:
            waiting.add(columns(sorted(run, key=lambda row: (row[0], row[2]))))
        merged = rows_of(in_order(waiting))
    assert merged == sorted((row for run in rows for row in run), key=lambda row: (row[0], row[2]))
    assert waiting.first is None


def test_rows_of_one_time_are_not_held(small):
    """They come out as they go in, because their positions are in order, too."""
    taken = []
    pieces = (
        taken.append(k) or columns([(7, 0, 3 * k + row) for row in range(3)]) for k in count()
    )
    assert len(rows_of(islice(in_order(pieces), 100))) < 3 * len(taken) < 420


def test_one_chunk_of_each_run_is_held(small, tmp_path, monkeypatch):
    """Runs that overlap all the time: each round sorts a chunk of each, and what has come since."""
    sizes = []

    def watched(time, position):
        sizes.append(len(time))
        return by_time(time, position)

    monkeypatch.setattr(sorting, "by_time", watched)
    with closing(Scratch(tmp_path)) as scratch:
        waiting = Waiting(scratch)
        for run in range(10):
            waiting.add(columns([(time, 0, 1000 * time + run) for time in range(300)]))
        assert len(rows_of(in_order(waiting))) == 3000
    assert max(sizes) <= 2 * 3 * 10 + 4


def test_a_scratch_file_has_no_name_and_is_made_when_it_is_needed(tmp_path):
    with closing(Scratch(tmp_path / "nowhere")) as scratch:  # no rows: no file
        assert Waiting(scratch).first is None
    with closing(Scratch(tmp_path)) as scratch:
        Waiting(scratch).add(columns([(1, 2, 3)]))
        assert not list(tmp_path.iterdir())
