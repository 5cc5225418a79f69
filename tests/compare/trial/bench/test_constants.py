"""The constants of a timer's calls, and the replays that they are fitted to."""

import numpy as np
import pytest

from compare.trial.bench import constants
from compare.trial.bench.constants import Constants, counted, designs, fits, fitted, timers_in
from compare.trial.bench.replays import REPLAYS, seconds_of
from compare.trial.bench.steady import KEEPALIVE, KINDS, PERIODIC, RANDOM, Traffic, steady
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError


def counts_of(pending, kind=RANDOM):
    return [
        counted(steady(each, min(timers_in("python", each), 3_000), 1))
        for each in designs(pending, kind)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_constants_that_made_the_times_are_found_again(kind):
    """But for those that the counts cannot tell apart: what is said of traffic is what counts."""
    true = Constants(400, 900, 1_500, 700, 2_000, 30, 3)
    rows = counts_of(1_000, kind)
    seconds = [[np.dot(true, row) / 1e9] for row in rows]
    found = fitted(rows, seconds)
    assert found.error < 0.01 and min(found.constants) >= 0
    other = counted(steady(Traffic(3_000, 333, 0.0, 0.0, kind), 2_000, 2))
    assert np.dot(found.constants, other) == pytest.approx(np.dot(true, other), rel=0.03)


def test_noise_and_misfit_are_in_the_error():
    rows = counts_of(1_000)
    times = [np.dot(Constants(400, 900, 1_500, 0, 0, 0, 0), row) / 1e9 for row in rows]
    assert fitted(rows, [[s, 1.2 * s] for s in times]).error == pytest.approx(0.1, abs=0.01)
    uneven = [[s * (1.3 if k % 2 else 1.0)] for k, s in enumerate(times)]
    assert fitted(rows, uneven).error > 0.02


def test_counts_are_those_of_the_tape():
    made = steady(Traffic(1_000, 100, 1.0, 10, RANDOM), 1_000, 1)
    found = counted(made)
    assert found.pair == pytest.approx(1_000, rel=0.05) and found.fire < 50
    assert found.step <= found.call <= 2 * found.step
    assert counted(steady(Traffic(1_000, 100, 1.0, 10, KEEPALIVE), 1_000, 1)).fire == 0
    periodic = counted(steady(Traffic(1_000, 100, 0.0, kind=PERIODIC), 1_000, 1))
    assert periodic.pair == 0 and periodic.firing == periodic.step == periodic.moment


def test_designs_have_few_and_many_timers_in_a_step():
    for pending in constants.PENDING:
        found = designs(pending)
        assert len(found) >= len(Constants._fields) - 1
        assert {each.cancelled for each in found} == {0.0, 1.0}
        for each in found:
            assert each.pending == pytest.approx(pending, rel=0.01)


class Recorder:
    """A delay queue that notes what fired, and when it was told."""

    def __init__(self):
        self.timer = contestant("delay-queue").new(UNIT)
        self.fired = 0

    def __getattr__(self, name):
        return getattr(self.timer, name)

    def __len__(self):
        return len(self.timer)

    def advance(self, now):
        rows = self.timer.advance(now)
        self.fired += len(rows.handles)
        return rows


@pytest.mark.parametrize("caller", ["python", "batches"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_fires_what_the_tape_says(caller, kind, monkeypatch):
    cancelled = 0.0 if kind == PERIODIC else 0.5
    made = steady(Traffic(2_000, 200, cancelled, 40, kind, 10), 2_000, 1)
    recorder = Recorder()
    monkeypatch.setattr("compare.trial.bench.replays._new", lambda each, made: recorder)
    seconds_of(REPLAYS[caller], contestant("delay-queue"), made)
    starts = counted(made).fire
    assert recorder.fired == pytest.approx(starts, rel=0.1)
    assert len(recorder) == pytest.approx(made.first, rel=0.15, abs=20)


@pytest.mark.parametrize("caller", REPLAYS)
def test_every_caller_replays_every_kind(caller):
    for kind in KINDS:
        cancelled = 0.0 if kind == PERIODIC else 0.5
        made = steady(Traffic(2_000, 100, cancelled, 20, kind), 200, 1)
        assert seconds_of(REPLAYS[caller], contestant("cascading-wheel"), made) >= 0.0
    if caller == "asyncio":
        assert seconds_of(REPLAYS[caller], None, made) >= 0.0


@pytest.mark.parametrize("caller", REPLAYS)
def test_a_replay_that_takes_too_long_is_given_up(caller):
    made = steady(Traffic(20_000, 1_000, 0.5, 100), 4_000, 1)
    with pytest.raises(OverBudgetError):
        seconds_of(REPLAYS[caller], contestant("unordered-list"), made, 1e-6)


def test_one_that_takes_too_long_is_left_out(monkeypatch):
    def replay(each, made, limit):
        if each.label == "ordered-list":
            raise OverBudgetError("too long")
        return 1.0

    monkeypatch.setitem(constants.REPLAYS, "python", replay)
    both = {name: contestant(name) for name in ("ordered-list", "delay-queue")}
    assert [*fits({"python": both}, 10, RANDOM, 1)] == [("python", "delay-queue")]
