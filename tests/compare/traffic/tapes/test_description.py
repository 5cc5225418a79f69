"""The description of a trace, against a program with a dictionary."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.tapes.description import QUANTILES, Describer, Description, described
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.traffic.tapes.trace import open_trace, write_trace
from tests.compare.made_logs import cut
from tests.compare.small_tapes import tape_of, tapes
from timers.limits import LIMIT


def model(tape):
    """The description, by a loop with a dictionary."""
    pending, delays, answers, waits, late, lost = {}, [], [], [], 0, []
    last = int(tape.time[-1]) if tape.time.size else 0
    for time, op, id_, deadline in zip(*(column.tolist() for column in tape), strict=True):
        if id_ in pending:
            armed, due = pending[id_]
            if op == START:  # a timer whose id is taken over counts up to its deadline
                lost.append(max(due - armed, 0))
            else:
                del pending[id_]
                answers.append(time - armed)
                waits.append(max(min(due, time) - armed, 0))
                late += due <= time
                if due <= time and op in (CANCEL, REARM):
                    continue
        elif op in (CANCEL, REARM):
            continue
        if op != CANCEL:
            delays.append(max(deadline - time, 0))
            pending[id_] = time, deadline
    open_ = [max(min(due, last) - armed, 0) for armed, due in pending.values()]
    return Description(
        armed=len(delays),
        answered=len(answers) - late,
        waited=sum(waits) + sum(lost) + sum(open_),
        delay=quantiles(delays),
        answer=quantiles(answers),
        late=late,
        pending=sum(due > last for _, due in pending.values()),
        cut={
            f"{time}ms": sum(answer >= time for answer in answers)
            for time in (1, 2, 5, 10, 20, 50, 100, 200, 500)
            if answers and time < max(delays)
        },
    )


def quantiles(times):
    if not times:
        return {}
    values = np.quantile(times, list(QUANTILES.values()), method="inverted_cdf")
    return dict(zip(QUANTILES, map(int, values), strict=True))


@given(tapes(), st.lists(st.integers(0, 40), max_size=4))
def test_a_tape_is_described_as_by_a_program_with_a_dictionary(tape, places):
    """Whatever its pieces."""
    describer = Describer()
    for piece in cut(tape, places):
        describer.add(type(tape)(*piece))
    found, expected = described([describer.counts()], "ms"), model(tape)
    assert replace(found, cut={}) == replace(expected, cut={})
    assert {time: n for time, n in found.cut.items() if time in expected.cut} == expected.cut


@given(st.lists(st.integers(0, LIMIT), min_size=1))
def test_quantiles_are_off_by_less_than_a_twentieth_of_a_percent(delays):
    describer = Describer()
    describer.add(tape_of(*((0, START, k, delay) for k, delay in enumerate(delays))))
    shown, exact = described([describer.counts()], "unit").delay, quantiles(delays)
    assert shown["max"] == exact["max"]
    for name, value in shown.items():
        assert exact[name] * (1 - 2**-11) <= value <= exact[name]


def test_the_description_of_a_trace_is_that_of_its_shards(tmp_path):
    shards = [
        [(0, START, 0, 500), (0, START, 1, 700), (30, REARM, 1, 1030), (100, CANCEL, 0, 0)],
        [(2000, ARM, 0, 2500)],
        [],
    ]
    path = write_trace(
        tmp_path / "t", [tape_of(*rows) for rows in shards], unit="ms", source={}
    ).path
    trace = open_trace(path)
    delays = {"p50": 500, "p99": 1000, "p999": 1000, "max": 1000}
    answers = {"p50": 30, "p99": 100, "p999": 100, "max": 100}
    cut = dict.fromkeys(("1ms", "2ms", "5ms", "10ms", "20ms"), 2) | {"50ms": 1, "100ms": 1}
    cut |= {"200ms": 0, "500ms": 0}
    # The first shard's timer is due before the other one's last operation.
    assert trace.description == Description(4, 2, 200.0, delays, answers, 0, 1, cut)
    assert trace.description.timed_out == 1
    assert trace.description.lines(trace.unit, trace.span, len(trace.shards)) == {
        "rate": "2 timers armed per second",
        "pending": "0.1 timers on average in all shards",
        "timed out": "1 of 4 timers armed (25%)",
        "at the end": "1 timer pending, with a deadline after the end",
        "delay": "p50 500ms, p99 1s, p99.9 1s, greatest 1s",
        "answered": "p50 30ms, p99 100ms, p99.9 100ms, greatest 100ms",
        "timeout": "20ms cuts 100% of the answers, 100ms 50%, 200ms none; answers after the"
        " deadline are not known",
    }


def test_lines_say_only_what_is_known():
    assert Description().lines("ms", 0, 1) == {}
    one = Description(1, 0, 7.0, dict.fromkeys(QUANTILES, 5_000_000))
    assert one.lines("us", 0, 1) == {
        "timed out": "1 of 1 timer armed (100%)",
        "delay": "always 5s",
    }
    assert one.lines("unit", 7, 1).keys() == {"pending", "timed out"}
    whole = Description(5000, 1, late=3, pending=4990, cut={"1s": 1}, complete=True).lines(
        "s", 0, 1
    )
    assert whole == {
        "timed out": "9 of 5,000 timers armed (0.2%): 3 answered later, 6 not by the end",
        "at the end": "4,990 timers pending, with deadlines after the end",
        "timeout": "1s cuts 25% of the answers",
    }


@pytest.mark.parametrize("scale", [1, 1000])
def test_deadlines_at_the_end_of_a_shard_that_ends_earlier(scale):
    """With long times, the number may be off by 0.05 % of the difference."""
    ends = [3 * scale, 10 * scale]
    early, late = Describer(), Describer()
    early.add(tape_of(*((ends[0], START, k, ends[0] + k) for k in range(10 * scale))))
    late.add(tape_of((ends[1], START, 0, ends[1] + 1)))
    found = described([late.counts(), early.counts()], "us").pending
    exact = sum(ends[0] + k > ends[1] for k in range(10 * scale)) + 1
    assert exact <= found <= exact + (ends[1] - ends[0]) // 2048
