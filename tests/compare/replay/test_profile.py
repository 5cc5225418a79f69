"""The profile of a trace: a model of the waits, and what has none."""

import pytest
from hypothesis import given

import compare.replay.profile
from compare.replay.profile import SAMPLE, profile, waits
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import write_trace
from compare.workloads.catalogue import make
from tests.compare.small_tapes import tape_of, tapes
from timers.registry import names


@given(tape=tapes())
def test_waits_are_those_of_a_program_with_a_dictionary(tape):
    armed, expected = {}, []
    for time, op, id_, deadline in zip(*(column.tolist() for column in tape), strict=True):
        since, due = armed.pop(id_, (0, -1))
        if op != START and time < due:
            expected.append(time - since)
        if op != CANCEL:
            armed[id_] = time, deadline
    assert sorted(waits(tape).tolist()) == sorted(expected)


def write(path, *rows, unit="ms", others=()):
    tapes = [tape_of(*rows), *(tape_of(*shard) for shard in others)]
    return write_trace(path / "a.trace", tapes, unit=unit, source={})


def test_the_profile_of_a_small_trace(tmp_path):
    trace = write(
        tmp_path,
        (0, START, 0, 500),
        (0, START, 1, 700),
        (30, REARM, 1, 1030),
        (100, CANCEL, 0, 0),
        (2000, ARM, 1, 2500),  # after its expiry at 1030
    )
    found = profile(trace)
    assert found.delay == {"p50": 500, "p99": 1000, "max": 1000}
    assert found.answered == {"p50": 30, "p99": 100, "max": 100}
    assert list(found.cost) == list(names())
    assert all(0 < cost < 0.1 for cost in found.cost.values())


def test_seconds_are_replayed_with_a_tick_of_a_second(tmp_path):
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
    monkeypatch.setattr(compare.replay.profile, "SAMPLE", 3)
    rows = [(n, START, n, n + 10 * (n < 3) + 50) for n in range(6)]
    assert profile(write(tmp_path, *rows)).delay == {"p50": 60, "p99": 60, "max": 60}
    assert SAMPLE > 3


def test_the_largest_shard_stands_for_a_trace_in_shards(tmp_path):
    largest = [(0, START, 0, 300), (1000, START, 1, 1400)]
    found = profile(write(tmp_path, others=[largest, [(5, START, 0, 9)]]))
    assert found.delay == {"p50": 300, "p99": 400, "max": 400}


def test_a_scheme_over_budget_has_no_cost(tmp_path, monkeypatch):
    monkeypatch.setattr(compare.replay.profile, "BUDGET", 0)
    tape = make("lognormal-low", operations=20_000, seed=1).tape
    trace = write_trace(tmp_path / "a", [tape], unit="ms", source={})
    assert set(profile(trace).cost.values()) == {None}
