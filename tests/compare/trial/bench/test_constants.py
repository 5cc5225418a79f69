"""The constants of a timer's calls, and the replays that they are fitted to."""

import threading

import numpy as np
import pytest

from compare.trial.bench import constants, replays
from compare.trial.bench.constants import Constants, counted, designs, fits, fitted, timers_in
from compare.trial.bench.replays import HOSTS, REPLAYS, replay_of, seconds_of
from compare.trial.bench.steady import KEEPALIVE, KINDS, PERIODIC, RANDOM, Traffic, steady
from compare.trial.bench.work import UNIT
from compare.trial.oracle.compiled import NEVER, expect
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError
from timers.rounding import Rounding


def counts_of(pending, kind=RANDOM):
    return [
        counted(steady(each, min(timers_in("python", "", each), 3_000), 1))
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


def test_the_error_is_that_of_replays_that_were_left_out():
    rows = counts_of(1_000)
    true = Constants(400, 900, 1_500, 700, 2_000, 30, 3)
    dice = np.random.default_rng(1)
    times = [np.dot(true, row) / 1e9 * dice.uniform(0.9, 1.1) for row in rows]
    errors = []
    for k, (row, seconds) in enumerate(zip(rows, times, strict=True)):
        rest = [*range(k), *range(k + 1, len(rows))]
        found = fitted([rows[n] for n in rest], [[times[n]] for n in rest])
        errors.append(np.dot(found.constants, row) / 1e9 / seconds - 1)
    stated = fitted(rows, [[seconds] for seconds in times]).error
    assert stated == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.35)


def test_the_fastest_sample_counts_and_each_round_has_constants():
    rows = counts_of(1_000)
    times = [np.dot(Constants(400, 900, 1_500, 0, 0, 0, 0), row) / 1e9 for row in rows]
    found = fitted(rows, [[1.2 * seconds, seconds] for seconds in times])
    assert found.error < 0.01
    slow, fast = found.rounds
    assert fast == pytest.approx(found.constants)
    other = counted(steady(Traffic(3_000, 333, 0.0), 2_000, 2))
    assert np.dot(slow, other) == pytest.approx(1.2 * np.dot(fast, other), rel=0.02)


def test_counts_are_those_of_the_tape():
    made = steady(Traffic(1_000, 100, 1.0, 10, RANDOM), 1_000, 1)
    found = counted(made)
    assert found.pair == pytest.approx(1_000, rel=0.05) and found.fire < 50
    assert found.step <= found.call <= 2 * found.step
    assert counted(steady(Traffic(1_000, 100, 1.0, 10, KEEPALIVE), 1_000, 1)).fire == 0
    periodic = counted(steady(Traffic(1_000, 100, 0.0, kind=PERIODIC), 1_000, 1))
    assert periodic.pair == 0 and periodic.firing == periodic.step == periodic.moment


@pytest.mark.parametrize("kind", KINDS)
def test_designs_are_spread_over_the_range(kind):
    for pending in constants.PENDING:
        found = designs(pending, kind)
        assert len(found) > len(Constants._fields)
        assert {each.step for each in found} == {1, 10, 100}
        if kind != PERIODIC:
            assert {each.cancelled for each in found} >= {0.0, 0.99, 1.0}
        rates = [each.rate for each in found]
        assert max(rates) >= 20 * min(rates)
        for each in found:
            assert each.pending == pytest.approx(pending, rel=0.01)
            assert each.timeout >= 9.99 and each.answer < each.timeout
            assert each.rate * each.step <= 1_000 * constants.MOST_AT_ONCE * 1.001


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


EVERYONE = [
    *((caller, "cascading-wheel") for caller in REPLAYS),
    *((caller, host) for caller, hosts in HOSTS.items() for host in hosts),
]


def who(caller, label):
    """The contestant; None for a host."""
    return None if label in HOSTS.get(caller, ()) else contestant(label)


@pytest.mark.parametrize(("caller", "label"), EVERYONE)
def test_every_caller_replays_every_kind(caller, label):
    for kind in KINDS:
        cancelled = 0.0 if kind == PERIODIC else 0.5
        made = steady(Traffic(2_000, 100, cancelled, 20, kind), 200, 1)
        assert seconds_of(replay_of(caller, label), who(caller, label), made) >= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_hosts_fire_what_the_tape_says(kind, monkeypatch):
    """A thread that is woken up has been cancelled or is due; sched calls what is due."""
    cancelled = 0.0 if kind == PERIODIC else 0.5
    made = steady(Traffic(2_000, 100, cancelled, 20, kind, 10), 200, 1)
    fired = []
    monkeypatch.setattr("compare.trial.bench.replays._nothing", lambda: fired.append(1))
    seconds_of(HOSTS["python"]["sched"], None, made)
    due = expect(made.tape, made.ids, Rounding(), drained=False).fired_at
    assert len(fired) == np.count_nonzero((due != NEVER) & (due <= made.tape.time.max()))
    threads = threading.active_count()
    seconds_of(HOSTS["system-timer"]["threading.Timer"], None, made)
    assert threading.active_count() == threads


@pytest.mark.parametrize(("caller", "label"), EVERYONE)
def test_a_replay_that_takes_too_long_is_given_up(caller, label):
    made = steady(Traffic(20_000, 10, 0.5, 1), 400, 1)
    threads = threading.active_count()
    with pytest.raises(OverBudgetError):
        seconds_of(replay_of(caller, label), who(caller, label), made, 1e-6)
    assert threading.active_count() == threads


def test_one_that_takes_too_long_is_left_out(monkeypatch):
    def replay(each, made, limit):
        if each.label == "ordered-list" and limit == constants.LIMIT:
            raise OverBudgetError("too long")
        return 1.0

    monkeypatch.setattr(constants, "seconds_of", lambda _, *rest: replay(*rest))
    both = {name: contestant(name) for name in ("ordered-list", "delay-queue")}
    assert [*fits({"python": both}, 10, RANDOM, 1)] == [("python", "delay-queue")]


@pytest.mark.parametrize("caller", ["system-timer", "asyncio"])
def test_steps_in_which_nothing_happens_are_subtracted_and_measured_once_for_a_tape(
    caller, monkeypatch
):
    made = steady(Traffic(2_000, 100, 0.5, 20), 200, 1)
    empty = replays._moments_of
    asked = []
    monkeypatch.setattr(replays, "_moments_of", lambda *a: asked.append(1) or empty(*a))
    for label in ("delay-queue", "cascading-wheel"):
        seconds_of(REPLAYS[caller], contestant(label), made)
    assert len(asked) == 2  # the fastest of two counts
    seconds_of(REPLAYS[caller], contestant(label), steady(Traffic(2_000, 100, 0.5, 20), 200, 2))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("factor", "samples"), [(1.05, 2), (1.2, 2 * constants.MORE)], ids=["quiet", "busy"]
)
def test_a_replay_whose_samples_differ_has_more_of_them(factor, samples, monkeypatch):
    """Until the limit: here they always differ. A disturbed sample of one timer is not enough."""
    asked = []

    def seconds(_, each, made, limit):
        asked.append(each.label)
        odd = asked.count(each.label) % 2
        return (2.0 if each.label == "ordered-list" else factor) if odd else 1.0

    monkeypatch.setattr(constants, "seconds_of", seconds)
    three = {name: contestant(name) for name in ("ordered-list", "delay-queue", "simple-wheel")}
    found = fits({"python": three}, 10, RANDOM, 2)
    assert asked.count("delay-queue") == 1 + samples * constants.DESIGNS  # and one to begin with
    assert all(len(fit.rounds) == samples for fit in found.values())
