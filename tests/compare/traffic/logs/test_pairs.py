"""Two rows with one id, against a plain loop."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs import pairs
from compare.traffic.logs.pairs import paired, without_start
from compare.traffic.logs.rows import END, NONE
from compare.traffic.logs.sorting import Scratch, Waiting, joined_pieces
from tests.compare.made_logs import cut

ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.booleans()), max_size=40)


def model(rows, timeout):
    """Requests, late answers and the positions of ends without a start, row by row."""
    started, requests, late, without = {}, {}, [], []
    for time, is_end, position, key in sorted(
        (time, is_end, position, key) for position, (time, key, is_end) in enumerate(rows)
    ):
        if not is_end:
            requests[position] = [time, NONE, position]
            started[key] = position
        elif key in started:
            request = requests[started.pop(key)]
            if time - request[0] < timeout:
                request[1] = time
            else:
                late.append(time - request[0])
        else:
            without.append(position)
    return list(map(tuple, requests.values())), sorted(late), sorted(without)


@example([(0, 1, False), (1, 2, False), (1, 1, True)], 2, [2], 1)  # cut within an id
@example([(3, 1, False), (1, 1, False), (2, 1, True)], 9, [], 1)  # not in the order of time
@given(ROWS, st.integers(1, 12), st.lists(st.integers(0, 40), max_size=4), st.integers(1, 50))
def test_rows_are_paired_as_in_a_plain_loop(tmp_path_factory, rows, timeout, places, gather):
    time = np.array([row[0] for row in rows], np.int64)
    ids = np.array([row[1] for row in rows], np.int64)
    position = np.arange(len(rows)) + END * np.array([row[2] for row in rows], np.int64)
    requests, late, without = model(rows, timeout)
    last = max((row[0] for place, row in enumerate(rows) if place not in without), default=0)
    order = np.lexsort((position, ids))
    columns = [column[order] for column in (ids, time, position)]
    pieces = [piece for piece in cut(columns, places) if len(piece[0])]
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Scratch(tmp_path_factory.getbasetemp())) as scratch,
    ):
        patch.setattr(pairs, "_GATHER", gather)
        assert without_start(pieces).tolist() == without
        found = list(paired(pieces, timeout, Waiting(scratch)))
    paired_rows = [row for piece, _ in found for row in zip(*map(list, piece), strict=True)]
    assert paired_rows == sorted(requests, key=lambda row: (row[0], row[2]))
    assert sorted(wait for _, some in found for wait in some.waits.tolist()) == late
    assert max((some.until for _, some in found), default=0) == last


def test_few_rows_are_held(tmp_path, monkeypatch):
    """Those that are gathered, whatever the timeout."""
    sizes = []

    def watched(held):
        sizes.append(sum(len(piece[0]) for piece in held))
        return joined_pieces(held)

    monkeypatch.setattr(pairs, "_GATHER", 10)
    monkeypatch.setattr(pairs, "joined_pieces", watched)
    ids, time = np.arange(10_000) // 2, np.zeros(10_000, np.int64)
    position = np.arange(10_000) + END * (np.arange(10_000) % 2)
    pieces = [(ids[k : k + 7], time[k : k + 7], position[k : k + 7]) for k in range(0, 10_000, 7)]
    with closing(Scratch(tmp_path)) as scratch:
        found = list(paired(pieces, 1 << 40, Waiting(scratch)))
    assert sum(len(start) for (start, _, _), _ in found) == 5000
    assert max(sizes) < 10 + 7 + 2
