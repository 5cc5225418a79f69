"""Two rows with one id, against a plain loop."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs import pairs
from compare.traffic.logs.pairs import paired, without_start
from compare.traffic.logs.rows import END, NONE
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


@example([(0, 1, False), (1, 2, False), (1, 1, True)], 2, [2], 1)  # cut within a time
@example(  # a late end that is still held when later rows are paired
    [(0, 1, False), (5, 2, False), (6, 1, True), (7, 3, False)], 2, [1, 2, 3], 1
)
@given(ROWS, st.integers(1, 12), st.lists(st.integers(0, 40), max_size=4), st.integers(1, 50))
def test_rows_are_paired_as_in_a_plain_loop(rows, timeout, places, gather):
    time = np.array([row[0] for row in rows], np.int64)
    ids = np.array([row[1] for row in rows], np.int32)
    position = np.arange(len(rows)) + END * np.array([row[2] for row in rows], np.int64)
    requests, late, without = model(rows, timeout)
    order = np.lexsort((position, time))
    columns = [column[order] for column in (time, ids, position)]
    pieces = [piece for piece in cut(columns, places) if len(piece[0])]
    assert without_start(pieces).tolist() == without
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_GATHER", gather)
        found = list(paired(pieces, timeout))
    paired_rows = [row for piece, _ in found for row in zip(*map(list, piece), strict=True)]
    assert paired_rows == requests
    assert sorted(wait for _, some in found for wait in some.waits.tolist()) == late
    assert max(some.until for _, some in found) == max(time, default=0)


def test_memory_is_that_of_the_timeout(monkeypatch):
    monkeypatch.setattr(pairs, "_GATHER", 10)
    time = np.arange(10_000)
    pieces = [(time[k : k + 10], time[k : k + 10], time[k : k + 10]) for k in range(0, 10_000, 10)]
    sizes = [len(start) for (start, _, _), _ in paired(pieces, 5)]
    assert (sum(sizes), max(sizes)) == (10_000, 10)
