"""A tape's course, against a plain simulation, and by hand."""

import numpy as np
import pytest
from hypothesis import given

from compare.traffic.tapes.profile import TENTHS, profile
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START, id_space_of
from compare.traffic.workloads.catalogue import WORKLOADS, make
from compare.traffic.workloads.stream import BLOCK
from tests.compare.small_tapes import tape_of, tapes


def test_by_hand():
    tape = tape_of(
        (0, START, 0, 50),
        (0, START, 1, 300),
        (10, REARM, 0, 65_546),  # 2**16 away
        (20, CANCEL, 1, 0),
        (30, CANCEL, 1, 0),  # too late
        (40, ARM, 1, 60),
        (60, ARM, 1, 70),  # it has just fired
        (100, START, 2, 101),
    )
    made = profile(tape, 3)
    assert made.pending == [2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 2]
    assert made.shares == {"starts": 5 / 8, "cancels": 1 / 8, "re-arms": 1 / 8, "too late": 1 / 8}
    assert made.levels == [4 / 6, 1 / 6, 1 / 6]
    assert made.lines()["delays"] == (
        "66.7% in level 1, 16.7% in level 2, 16.7% in level 3, of wheels with 256 slots each"
    )


@given(tape=tapes().filter(lambda tape: tape.time.size))
def test_pending_timers_are_those_of_a_simulation(tape):
    """A started id leaves its former timer pending, as in a replay."""
    made = profile(tape, id_space_of(tape))
    moments = np.linspace(tape.time[0], tape.time[-1], TENTHS + 1).astype(np.int64).tolist()
    rows = list(zip(*(column.tolist() for column in tape), strict=True))
    for moment, pending in zip(moments, made.pending, strict=True):
        alive, latest = {}, {}
        for k, (time, op, i, deadline) in enumerate(rows):
            if time > moment:
                break
            alive = {number: end for number, end in alive.items() if end > time}
            holds = latest.get(i) in alive
            if op in (CANCEL, REARM, ARM) and holds:
                del alive[latest[i]]
            if op in (START, ARM) or (op == REARM and holds):
                alive[k], latest[i] = max(deadline, time), k
        assert pending == sum(end > moment for end in alive.values())


def course(name, operations=60_000, **parameters):
    made = make(name, operations=operations, seed=5, parameters=parameters)
    return profile(made.tape, made.id_space)


def test_hold_keeps_the_number_of_pending_timers():
    pending = course("hold", blocks=2).pending
    assert pending[2:] == pytest.approx([2 * BLOCK] * 9, abs=3)  # within a unit of time


def test_up_down_grows_and_drains():
    pending = course("up-down", period=20_000, drain=100).pending  # 60 s: three periods
    assert pending[3] == pytest.approx(18_000, rel=0.05)
    assert pending[4] == pytest.approx(4_000, rel=0.05)
    assert pending[10] == pytest.approx(20_000, rel=0.05)


def test_markov_is_re_armed_and_cancelled_as_often_as_asked():
    shares = course("markov", 200_000, rearmed=600, cancelled=250, longest=2000).shares
    assert shares["re-arms"] / shares["starts"] == pytest.approx(1.5, rel=0.05)
    assert shares["cancels"] / shares["starts"] == pytest.approx(0.25, rel=0.05)
    assert shares["too late"] == 0


def test_a_server_uses_its_timers_as_it_says():
    """A request re-arms the idle and keep-alive timers, and starts those of pace, request and
    deadline. There are 20 in a connection.
    """
    made = make("server", timers=4 * 4095, seed=2)
    tape = made.tape
    shares = profile(tape, made.id_space).shares
    connections = 4 * 819
    requests = np.count_nonzero(tape.deadline - tape.time == 40) / connections
    assert requests == pytest.approx(20, rel=0.05)
    answered = np.count_nonzero(tape.op == CANCEL) / 2 / connections
    assert requests - answered == pytest.approx(0.01, abs=0.006)  # lost per connection
    assert shares["re-arms"] / shares["starts"] == pytest.approx(38 / 60, rel=0.1)
    assert shares["too late"] == 0  # nothing is cancelled that has fired


def test_a_cache_has_three_times_to_live():
    tape = make("cache", operations=50_000, seed=3).tape
    armed = tape.op == START
    delays, counts = np.unique((tape.deadline - tape.time)[armed], return_counts=True)
    assert delays.tolist() == [10_000, 50_000, 600_000]
    assert counts / armed.sum() == pytest.approx([0.6, 0.3, 0.1], abs=0.02)


def test_retries_back_off_exponentially():
    made = make("retries", timers=20_000, seed=4, parameters={"failed": 500})
    tape = made.tape
    attempts = (tape.op == START) & (tape.deadline - tape.time == 5000)
    backoff = (tape.op == START) & ~attempts
    assert attempts.sum() / 20_000 == pytest.approx(2, rel=0.05)
    delays = (tape.deadline - tape.time)[backoff]
    first = (delays >= 50) & (delays <= 151)  # the first retry; a second one takes 100 to 301
    assert 0.5 < first.mean() < 0.75
    assert delays.max() <= 1 + 1.5 * 100 * 2**7
    assert profile(tape, made.id_space).shares["too late"] == 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_a_course(name):
    made = make(name, operations=2000, seed=1)
    lines = profile(made.tape, made.id_space).lines()
    assert all(lines.values())
