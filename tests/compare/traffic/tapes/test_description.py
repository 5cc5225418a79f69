"""The description of a trace, against a program with a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.tapes.description import QUANTILES, Describer, Description, described
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.traffic.tapes.trace import open_trace, write_trace
from tests.compare.made_logs import cut
from tests.compare.small_tapes import tape_of, tapes
from timers.limits import LIMIT


def model(tape):
    """The delays, the times until an answer, and the time for which all timers were pending."""
    pending, delays, answers, fates = {}, [], [], []
    last = int(tape.time[-1]) if tape.time.size else 0
    for time, op, id_, deadline in zip(*(column.tolist() for column in tape), strict=True):
        is_pending = id_ in pending and pending[id_][1] > time
        if is_pending and op != START:
            answers.append(time - pending.pop(id_)[0])
        elif op in (CANCEL, REARM):
            continue
        if op != CANCEL:
            delays.append(max(deadline - time, 0))
            fates.append(pending.pop(id_, None))
            pending[id_] = time, deadline
    # A timer whose id is taken over while it is pending counts up to its deadline.
    fired = [max(due - armed, 0) for armed, due in filter(None, fates)]
    open_ = [max(min(due, last) - armed, 0) for armed, due in pending.values()]
    return delays, answers, sum(answers) + sum(fired) + sum(open_)


def quantiles(times):
    if not times:
        return {}
    values = np.quantile(times, list(QUANTILES.values()), method="inverted_cdf")
    return dict(zip(QUANTILES, map(int, values), strict=True))


@given(tapes(), st.lists(st.integers(0, 40), max_size=4))
def test_a_tape_is_described_as_by_a_program_with_a_dictionary(tape, places):
    """Whatever its pieces."""
    delays, answers, waited = model(tape)
    describer = Describer()
    for piece in cut(tape, places):
        describer.add(type(tape)(*piece))
    assert described([describer.counts()]) == Description(
        len(delays), len(answers), waited, quantiles(delays), quantiles(answers)
    )


@given(st.lists(st.integers(0, LIMIT), min_size=1))
def test_quantiles_are_off_by_less_than_a_twentieth_of_a_percent(delays):
    describer = Describer()
    describer.add(tape_of(*((0, START, k, delay) for k, delay in enumerate(delays))))
    shown, exact = described([describer.counts()]).delay, quantiles(delays)
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
    assert trace.description == Description(
        armed=4,
        answered=2,
        waited=200.0,
        delay={"p50": 500, "p99": 1000, "max": 1000},
        answer={"p50": 30, "p99": 100, "max": 100},
    )
    assert trace.description.lines(trace.unit, trace.span, len(trace.shards)) == {
        "rate": "2 timers armed per second",
        "pending": "0.1 timers on average in all shards",
        "timed out": "2 (50.0%) of 4 timers armed",
        "delay": "p50 500ms, p99 1s, max 1s",
        "answered": "p50 30ms, p99 100ms, max 100ms",
    }


def test_lines_say_only_what_is_known():
    assert Description().lines("ms", 0, 1) == {}
    one = Description(1, 0, 7.0, dict.fromkeys(QUANTILES, 5_000_000))
    assert one.lines("us", 0, 1) == {
        "timed out": "1 (100.0%) of 1 timers armed",
        "delay": "always 5s",
    }
    assert one.lines("unit", 7, 1).keys() == {"pending", "timed out"}
