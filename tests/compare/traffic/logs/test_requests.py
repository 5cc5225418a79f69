"""The tape of requests against a plain loop over events, for rows in any pieces."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs import requests as module
from compare.traffic.logs import sorting
from compare.traffic.logs.requests import RequestTape
from compare.traffic.logs.sorting import Scratch, Waiting
from compare.traffic.tapes.tape import CANCEL, START, id_space_of, joined, validate
from tests.compare.made_logs import cut


def fold_requests(rows, timeout, places, scratch):
    """The tape of (start, duration or None) of each row, given in order of time and in pieces."""
    ordered = sorted((start, position, duration) for position, (start, duration) in enumerate(rows))
    start = np.array([row[0] for row in ordered], np.int64)
    position = np.array([row[1] for row in ordered], np.int64)
    answered = np.array([row[2] is not None and row[2] < timeout for row in ordered])
    end = start + np.array([row[2] or 0 for row in ordered], np.int64)
    requests = RequestTape(timeout, Waiting(scratch))
    tapes = [
        tape
        for piece in cut((start, end, answered, position), places)
        for tape in requests.add(*piece)
    ]
    tape = joined([*tapes, *requests.finish()])
    return tape, id_space_of(tape)


def plain_requests(rows, timeout):
    """The same, event by event."""
    events = []
    for row, (start, duration) in enumerate(rows):
        events.append((start, 1, row, 0, "start"))
        if duration is not None and duration < timeout:
            events.append((start + duration, 1, row, 1, "cancel"))
        else:
            events.append((start + timeout, 0, row, 1, "deadline"))
    tape, free, held, id_space = [], [], {}, 0
    for time, _, row, _, what in sorted(events):
        if what == "start":
            if free:
                held[row] = free.pop(0)
            else:
                held[row] = id_space
                id_space += 1
            tape.append((time, START, held[row], time + timeout))
        else:
            free.append(held[row])
            if what == "cancel":
                tape.append((time, CANCEL, held[row], 0))
    return tape, id_space


@example(
    [(3, 4), (1, 6)], 10, [], 1, 1000, 1000
)  # the cancels come at one time, and not as the starts
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.none() | st.integers(0, 15)), min_size=1, max_size=40
    ),
    st.integers(1, 12),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([1, 4, 1000]),
    st.sampled_from([1, 3]),
)
def test_requests_are_what_a_plain_loop_makes_of_them(
    tmp_path_factory, rows, timeout, places, gather, pending, chunk
):
    """However many timers are pending, wherever they wait."""
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Scratch(tmp_path_factory.getbasetemp())) as scratch,
    ):
        patch.setattr(module, "_GATHER", gather)
        patch.setattr(module, "_PENDING", pending)
        patch.setattr(sorting, "CHUNK", chunk)
        tape, id_space = fold_requests(rows, timeout, places, scratch)
    validate(tape, id_space)
    assert (
        [tuple(int(value) for value in row) for row in zip(*tape, strict=True)],
        id_space,
    ) == plain_requests(rows, timeout)
