"""An advance whose buffer is full stops, and the next one goes on; between them all is sound."""

import pytest

from tests.timers.cases import KERNELS, advance_into

# Several of each moment, which the wheels file in different levels, slots and lists.
DEADLINES = [0, 1, 5, 19, 20, 21, 255, 256, 257, 399, 400, 401, 8_000, 8_192, 16_384, 20_000]
LAST = 24_000  # in two buckets of a hierarchical wheel, which open at the same moment
STEPS = [
    ([*DEADLINES, LAST, LAST], 3),
    ([*DEADLINES, *(deadline + 1 for deadline in DEADLINES)], 250),
    ([*DEADLINES, *DEADLINES], LAST - 10),
    ([LAST, LAST], LAST),
]
"""Deadlines, and how far the clock moves then."""


def delivered(case, rows):
    """What a timer delivers into buffers of so many rows, and its counters."""
    timer, fired = case(counting=True), []
    for deadlines, until in STEPS:
        timer.schedule_many(deadlines)
        done = False
        while not done:
            out, done = advance_into(timer, until, rows)
            assert done or (out.size == rows and timer.now == out[-1]["fired_at"])
            fired += out.tolist()
            timer.check()
        assert timer.now == until
    return fired, timer.counters


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_a_full_buffer_divides_an_advance(case, rows):
    assert delivered(case, rows) == delivered(case, 1_000)
