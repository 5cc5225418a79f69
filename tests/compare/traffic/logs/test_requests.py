"""The tape of requests against a plain loop over events, for rows in any pieces."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs import requests as module
from compare.traffic.logs.requests import RequestTape, by_time
from compare.traffic.tapes.tape import CANCEL, START, id_space_of, joined, validate
from tests.compare.made_logs import cut
from timers.limits import LIMIT


def fold_requests(rows, timeout, places):
    """The tape of (start, duration or None) of each row, given in order of time and in pieces."""
    ordered = sorted((start, position, duration) for position, (start, duration) in enumerate(rows))
    start = np.array([row[0] for row in ordered], np.int64)
    position = np.array([row[1] for row in ordered], np.int64)
    answered = np.array([row[2] is not None and row[2] < timeout for row in ordered])
    end = start + np.array([row[2] or 0 for row in ordered], np.int64)
    requests = RequestTape(timeout)
    tapes = [requests.add(*piece) for piece in cut((start, end, answered, position), places)]
    tape = joined([*tapes, requests.finish()])
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


@example([(3, 4), (1, 6)], 10, [], 1)  # the cancels come at one time, and not as the starts
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.none() | st.integers(0, 15)), min_size=1, max_size=40
    ),
    st.integers(1, 12),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([1, 3, 1000]),
)
def test_requests_are_what_a_plain_loop_makes_of_them(rows, timeout, places, gather):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_GATHER", gather)
        tape, id_space = fold_requests(rows, timeout, places)
    validate(tape, id_space)
    assert (
        [tuple(int(value) for value in row) for row in zip(*tape, strict=True)],
        id_space,
    ) == plain_requests(rows, timeout)


@given(st.lists(st.integers(0, 5) | st.sampled_from([LIMIT - 1, LIMIT])), st.randoms())
def test_rows_are_sorted_by_time_and_position(times, random):
    positions = list(range(len(times)))
    random.shuffle(positions)
    rows = sorted(zip(times, positions, range(len(times)), strict=True))
    order = by_time(np.array(times, np.int64), np.array(positions, np.int64))
    assert order.tolist() == [row for _, _, row in rows]
