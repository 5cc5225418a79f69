"""The profile of a trace: a model of the waits, and what has none."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compare.trial.replay.profile
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.traffic.tapes.trace import write_trace
from compare.trial.replay.engine import OverBudgetError
from compare.trial.replay.profile import (
    BUDGET,
    SAMPLE,
    Profile,
    armings,
    coarsest_tick,
    most_pending,
    profile,
    profile_text,
)
from tests.compare.small_tapes import tape_of, tapes
from timers.registry import names
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer


@pytest.fixture
def unlimited(monkeypatch):
    """However slow the machine is."""
    monkeypatch.setattr(compare.trial.replay.profile, "BUDGET", 10**6)


def fates(tape, rounding):
    """Whether each armed timer is answered, and how many are pending at most: a program with a
    dictionary. {operation: time from arming to the answer, or None}.
    """
    pending, left, waited, peak = {}, [], {}, 0
    for k, (time, op, id_, deadline) in enumerate(zip(*map(list, tape), strict=True)):
        pending = {i: p for i, p in pending.items() if p[2] > time}
        left = [due for due in left if due > time]  # of timers whose id has another one
        if id_ in pending and op != START:
            armed, since, _ = pending.pop(id_)
            waited[armed] = int(time - since)
        elif op in (CANCEL, REARM):
            continue
        if op != CANCEL:
            if id_ in pending:
                left.append(pending[id_][2])
            waited[k] = None
            pending[id_] = k, time, rounding.due_at(int(deadline), int(time))
            # One that is overdue fires when the clock is next advanced.
            peak = max(peak, len(pending) + len(left))
    return waited, peak


@given(tape=tapes())
def test_fates_are_those_of_a_program_with_a_dictionary(tape):
    timers, (waited, peak) = armings(tape), fates(tape, Rounding())
    answered = timers.answered(Rounding())
    waits = np.where(answered, timers.next_at - timers.armed_at, -1).tolist()
    wanted = {k: -1 if wait is None else wait for k, wait in waited.items()}
    assert dict(zip(timers.operation.tolist(), waits, strict=True)) == wanted
    if tape.time.size:
        assert most_pending(tape, timers, answered) == peak


@given(tape=tapes().filter(lambda tape: tape.time.size), direction=st.sampled_from(["down", "up"]))
def test_up_to_the_coarsest_tick_no_outcome_changes(tape, direction):
    def outcomes(rounding):
        return {k: wait is not None for k, wait in fates(tape, rounding)[0].items()}

    timers, exact, wanted = armings(tape), outcomes(Rounding()), 0
    longest = int((timers.deadline - timers.armed_at).max())
    for tick in (digit * 10**power for power in range(19) for digit in (1, 2, 5)):
        if tick > longest or outcomes(Rounding(direction, tick)) != exact:
            break
        wanted = tick
    assert coarsest_tick(timers, direction) == wanted


def write(path, *rows, unit="ms", others=()):
    tapes = [tape_of(*rows), *(tape_of(*shard) for shard in others)]
    return write_trace(path / "a.trace", tapes, unit=unit, source={})


def test_the_profile_of_a_small_trace(unlimited, tmp_path):
    trace = write(
        tmp_path,
        (0, START, 0, 500),
        (0, START, 1, 700),
        (30, REARM, 1, 1030),
        (100, CANCEL, 0, 0),
        (2000, ARM, 1, 2500),  # after its expiry at 1030
    )
    profiled = profile(trace)
    assert profiled.delay == {"p50": 500, "p99": 1000, "max": 1000}
    assert profiled.answered == {"p50": 30, "p99": 100, "max": 100}
    assert (profiled.rate, profiled.most_pending, profiled.timed_out) == (4 / 2.0, 2, 0.5)
    assert profiled.ticks == {"down": 500, "up": 1000}  # 2000 is too late for the last operation
    assert list(profiled.cost) == list(names())
    assert all(cost > 0 for cost in profiled.cost.values())


def test_seconds_are_replayed_with_a_tick_of_a_second(unlimited, tmp_path):
    rows = (0, START, 0, 30), (5, CANCEL, 0, 0), (9, START, 0, 39)
    assert None not in profile(write(tmp_path, *rows, unit="s")).cost.values()


@pytest.mark.parametrize(
    ("unit", "rows"),
    [
        ("unit", [(0, START, 0, 5), (9, START, 0, 14)]),
        ("ms", []),
        ("ms", [(7, START, 0, 5), (7, START, 1, 14)]),
    ],
    ids=["no duration", "no operations", "one moment"],
)
def test_there_is_no_profile_without_a_rate(tmp_path, unit, rows):
    assert profile(write(tmp_path, *rows, unit=unit)) is None


def test_only_the_beginning_of_a_long_trace_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(compare.trial.replay.profile, "SAMPLE", 3)
    rows = [(n, START, n, n + 10 * (n < 3) + 50) for n in range(6)]
    assert profile(write(tmp_path, *rows)).delay == {"p50": 60, "p99": 60, "max": 60}
    assert SAMPLE > 3


def test_the_largest_shard_stands_for_a_trace_in_shards(tmp_path):
    answered = (0, START, 2, 300), (100, CANCEL, 2, 0)
    largest = [(0, START, 0, 300), *answered, (1000, START, 1, 1400)]
    profiled = profile(write(tmp_path, others=[largest, [(5, START, 0, 9)]]))
    assert profiled.delay == {"p50": 300, "p99": 400, "max": 400}
    # The shard was read whole, so the last timer is known to time out.
    assert profiled.timed_out == pytest.approx(2 / 3)


def test_a_scheme_over_its_share_of_the_budget_has_no_cost(tmp_path, monkeypatch):
    """Every other one is: what it was given is spent, and the last one gets what is left."""
    limits, engines = [], []

    def replay(timer, tape, id_space, limit):
        limits.append(limit)
        engines.append(isinstance(timer, KernelTimer))
        if len(limits) % 2:
            raise OverBudgetError("too long")
        return SimpleNamespace(outcome=SimpleNamespace(seconds=0.25 * limit))

    monkeypatch.setattr(compare.trial.replay.profile, "replay", replay)
    costs = profile(write(tmp_path, (0, START, 0, 500), (2000, START, 1, 2500))).cost
    stopped, others = limits[::2], limits[1::2]
    last = [] if len(limits) % 2 else [0.75 * limits[-1]]
    assert sum(stopped) + 0.25 * sum(others) + sum(last) == pytest.approx(BUDGET)
    assert list(costs.values()).count(None) == len(stopped)
    assert sorted(filter(None, costs.values())) == [0.25 * limit / 2 for limit in others]
    assert engines == sorted(engines, reverse=True)  # without a kernel, last


def test_a_profile_is_told():
    """The costs are in ascending order, and share the unit that suits the lowest one."""
    costs = {"simple-wheel": 0.0025, "unordered-list": None, "delay-queue": 0.0000012345}
    same = {"p50": 5_000_000, "p99": 5_000_000, "max": 5_000_000}
    summary = Profile(
        same, {"p50": 996, "max": 4_041_564}, costs, 42.25, 1285, 0.2601, {"down": 0, "up": 20_000}
    )
    assert profile_text(summary, "us", 1) == {
        "rate": "42.2 timers armed per second",
        "pending": "at most 1,285 at once",
        "timed out": "26.0% of the times that a timer was armed",
        "delay": "always 5s",
        "answered": "p50 996us, max 4.04s",
        "cost": "us of a core per second of traffic: delay-queue 1.2, simple-wheel 2,500,"
        " unordered-list over budget",
        "tick": "the same timers time out in hierarchical-wheel (rounds down) at no tick; in"
        " hashed-wheel (rounds up) up to 20ms",
    }
    summary = summary._replace(answered={}, cost={"delay-queue": 1.5, "simple-wheel": 200.4})
    lines = profile_text(summary, "us", 2)
    shard = "s of a core per second of traffic of the largest shard: "
    assert lines["cost"] == f"{shard}delay-queue 1.5, simple-wheel 200"
    assert lines["rate"].endswith(" of the largest shard") and "answered" not in lines
    lines = profile_text(summary._replace(cost={"delay-queue": None}), "us", 1)
    assert "over budget" in lines["cost"]
