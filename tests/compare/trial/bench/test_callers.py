"""What the callers measure, with work that is counted or a clock that stands in for time."""

import threading
from contextlib import closing

import numpy as np
import pytest

from compare.trial.bench import callers
from compare.trial.bench.callers import (
    BATCHES,
    CALLERS,
    COMPILED_CODE,
    HOST_OF,
    HOSTS,
    LOOP,
    METRICS,
    MISSING,
    NEAREST,
    OPENS,
    OWN_CLOCK,
    PYTHON,
    SERVICE,
    SHARE,
    UVLOOP,
    Callers,
    Costs,
    Host,
    Plan,
    _CallbackCaller,
    can_call,
    costs_of,
    filled,
    measure,
    plan_of,
    sizes_of,
)
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError

PLAN = Plan(200, 100, seed=3)
LABELS = ["unordered-list", "hashed-wheel", "heapq-delay-queue"]


def test_a_plan_cancels_each_timer_that_is_far_once_before_any_twice():
    plan = Plan(300, 100, 0)
    far = np.flatnonzero(plan.filling >= NEAREST)
    assert plan.due == 100 and far.size == 200
    assert sorted(plan.slots.tolist()) == far.tolist()
    assert np.bincount(Plan(300, 150, 0).slots).max() == 2  # 300 of 150 that are far
    assert (Plan(300, 100, 1).filling != plan.filling).any()


@pytest.mark.parametrize(("size", "pairs"), [(100, 50), (1_000, 6_000), (30_000, 6_000), (8, 60)])
def test_as_many_timers_start_in_a_step_as_fire(size, pairs):
    """What starts in a window fires in the next one; what starts in the last one is far."""
    plan = Plan(size, pairs, 0)
    each = plan.due // plan.window
    assert plan.replacements.shape == (plan.windows * plan.window, each)
    assert pairs <= plan.fires < pairs + plan.due
    soon = np.sort(plan.filling[plan.filling < NEAREST])
    assert soon.tolist() == [OPENS + k for k in range(plan.window) for _ in range(each)]
    for window, started in enumerate(plan.replacements.reshape(plan.windows, -1)):
        opens = OPENS + (window + 1) * plan.window
        if window < plan.windows - 1:
            assert opens <= started.min() and started.max() < opens + plan.window
        else:
            assert started.min() >= opens + NEAREST


class Kept:
    """A contestant whose last timer can be looked at."""

    def __init__(self, contestant):
        self._contestant = contestant

    def new(self, *arguments):
        self.timer = self._contestant.new(*arguments)
        return self.timer


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("caller", CALLERS)
def test_as_many_timers_are_pending_after_the_work_as_before(caller, label):
    timer = contestant(label)
    if not can_call(caller, timer):
        return
    kept = Kept(timer)
    made = CALLERS[caller](kept, PLAN)
    for _ in range(2):
        made.pairs(PLAN.slots, PLAN.deadlines)
    made.steps(7)
    _, steps = made.fires(PLAN)
    assert steps >= (0 if caller in OWN_CLOCK else PLAN.window)
    if caller == SERVICE:
        assert made.service.size == PLAN.size
    else:
        assert len(kept.timer) == PLAN.size
    if hasattr(made, "close"):
        made.close()


def test_costs_are_the_work_of_each_unit():
    """A step costs 3, a pair 5, an expiry 7."""

    class Made:
        def pairs(self, slots, deadlines):
            return 5e-9 * slots.size

        def steps(self, count):
            return 3e-9 * count

        def fires(self, plan):
            return 7e-9 * plan.fires + 3e-9 * 40, 40

    assert costs_of(Made(), PLAN) == pytest.approx(Costs(5, 7, 3))


def test_a_scan_of_all_timers_is_in_the_step():
    few, many = (
        measure(PYTHON, contestant("unordered-list"), Plan(n, 50, 0)) for n in (100, 9_000)
    )
    assert many.step > 5 * few.step


def test_compiled_code_needs_a_kernel_and_batches_their_calls():
    assert not can_call(COMPILED_CODE, contestant("heapq-delay-queue"))
    assert can_call(PYTHON, contestant("heapq-delay-queue"))
    assert can_call(BATCHES, contestant("cascading-wheel"))
    assert can_call(LOOP, HOSTS["asyncio"]) and not can_call(SERVICE, HOSTS["asyncio"])
    assert not any(can_call(COMPILED_CODE, host) for host in HOSTS.values())
    for caller in CALLERS:
        sizes = sizes_of(caller)
        assert len(sizes) >= 3 and sizes == tuple(sorted(sizes))
        assert plan_of(caller, sizes[0]).size == sizes[0]


def measured(*timers, repeats=2, budget=1e9, **options):
    callers = Callers([*map(contestant, timers)], repeats, budget, seed=3, **options)
    callers.run()
    return callers


def test_every_timer_is_measured_for_every_caller_at_every_size():
    found = measured("delay-queue", largest=1_000)
    expected = {
        ("delay-queue", caller, size, metric, repeat)
        for caller in CALLERS
        if can_call(caller, contestant("delay-queue"))
        for size in (100, 1_000)
        for metric in METRICS
        for repeat in (0, 1)
    } | {
        (name, caller, size, metric, repeat)
        for name, host in HOSTS.items()
        for caller in host.callers
        if host.installed
        for size in (100, 1_000)
        for metric in METRICS
        for repeat in (0, 1)
    }
    rows = [row for row in found.rows if row.note is None]
    assert {row[:5] for row in rows} == expected
    assert all(row.value >= 0 for row in rows)
    assert all(name in HOSTS and caller in HOSTS[name].callers for caller, name in HOST_OF.items())


def test_a_host_that_is_not_installed_is_said_to_be_missing(monkeypatch):
    absent = Host("no_such_loop", (LOOP, UVLOOP), None, 0, 0)
    monkeypatch.setattr(callers, "HOSTS", {"no_such_loop": absent, "uvloop": absent})
    found = measured(repeats=1, largest=10)
    assert {(row.contestant, row.subject, row.size, row.note) for row in found.rows} == {
        ("no_such_loop", LOOP, None, MISSING),
        ("no_such_loop", UVLOOP, None, MISSING),
    }
    assert not can_call(UVLOOP, contestant("delay-queue"))


class Alone:
    """Calls that run when the clock gets there: 90 ns each, and 40 us more for each moment."""

    def __init__(self):
        self.now, self.seconds, self.pending = 0.0, 0.0, []

    def schedule(self, delay, callback):
        self.pending.append((self.now + delay, len(self.pending), callback))

    def run(self, work):
        ended = []
        work(lambda: ended.append(True))
        while not ended:
            self.now = min(self.pending)[0]
            due = sorted(each for each in self.pending if each[0] <= self.now)
            self.pending = [each for each in self.pending if each[0] > self.now]
            self.seconds += 40e-6 + 90e-9 * len(due)
            for _, _, callback in due:
                callback()


def test_a_wake_up_is_what_a_call_costs_more_alone_than_among_many(monkeypatch):
    """The calls of the burst fire together, so that each has a share of one wake-up."""
    alone = Alone()

    class Made(_CallbackCaller):
        def __init__(self, plan):
            self._schedule, self._clock, self._run = alone.schedule, self.clock, alone.run

        def clock(self):
            return alone.seconds

        def pairs(self, slots, deadlines):
            return 0.0

        def close(self):
            pass

    plan = Plan(200, 100, 0)
    monkeypatch.setattr(callers, "LAST", callers.FIRST)
    host = Host("asyncio", (LOOP,), Made, 0, 0)
    costs = measure(LOOP, host, plan)
    calls = plan.fires + 1  # that which ends it comes at a moment of its own
    assert costs.fire == pytest.approx(1e9 * (2 * 40e-6 + calls * 90e-9) / plan.fires)
    lone = 1e9 * (40e-6 + 90e-9)
    assert costs.step == pytest.approx(max(lone - costs.fire, 0), abs=1)
    assert costs.pair == 0


def test_calls_that_fire_on_a_wheels_loop_enter_its_timer():
    """The loop leaves short delays to its base, whose heap would be measured instead."""
    made = callers.wheel_loop_caller(contestant("cascading-wheel"), Plan(20, 10, 0))
    with closing(made):
        seen, wheel = [], made._loop.wheel
        schedule = made._schedule

        def recorded(delay, callback):
            before = len(wheel)
            call = schedule(delay, callback)
            seen.append(len(wheel) - before)
            return call

        made._schedule = recorded
        made.steps(1)
        made.fires(Plan(20, 10, 0))
    assert len(seen) > callers.WAKES + 10
    assert set(seen) == {1}


def test_fewer_samples_if_all_would_take_longer_than_their_share_of_the_budget():
    seconds = iter(range(10**6))  # each look at the clock is a second later, so a sample takes one
    found = measured(
        "delay-queue", repeats=9, budget=3.5 / SHARE, largest=10, clock=lambda: next(seconds)
    )
    assert {row.repeat for row in found.rows if row.contestant == "delay-queue"} == {0, 1, 2}
    assert found.steps == 9 * (1 + len(HOSTS))


def test_what_was_given_up_is_not_tried_again(monkeypatch):
    tried = []

    def measure(caller, contestant, plan):
        tried.append((caller, plan.size))
        raise OverBudgetError("it takes too long")

    monkeypatch.setattr(callers, "measure", measure)
    measured("ordered-list", repeats=5, largest=10)
    ways = sum(can_call(each, contestant("ordered-list")) for each in CALLERS)
    ways += sum(len(host.callers) for host in HOSTS.values() if host.installed)
    assert len(tried) == ways


def test_no_size_is_larger_than_that_of_the_run():
    assert sizes_of(PYTHON) == (1_000, 30_000, 300_000, 1_000_000)
    assert sizes_of(PYTHON, 50_000) == (1_000, 30_000)
    assert sizes_of(PYTHON, 5_000) == (500, 5_000)
    assert sizes_of(SERVICE, 10**7) == (1_000, 10_000, 100_000)
    assert sizes_of(PYTHON, 1) == (4, 8)


@pytest.mark.parametrize("caller", CALLERS)
def test_a_timer_that_is_slow_to_fill_is_not_measured_and_its_service_ends(caller, monkeypatch):
    monkeypatch.setattr(callers, "SLOWEST_START", -1e6)
    monkeypatch.setattr(callers, "FILLED_AT_ONCE", 20)
    monkeypatch.setattr(callers, "RECENT", 100)
    if not can_call(caller, contestant("ordered-list")):
        return
    threads = threading.active_count()
    with pytest.raises(OverBudgetError, match="to start a timer"):
        measure(caller, contestant("ordered-list"), PLAN)
    assert threading.active_count() == threads


def test_filling_stops_when_the_last_timers_took_long(monkeypatch):
    clock, parts = [0.0], []

    def fill(part):
        parts.append(part)
        # Code is compiled in the first part. A start takes 1 us for every 10 000 pending.
        clock[0] += 60.0 if part.start == 0 else (part.stop - part.start) * part.start / 1e10

    filled(100_500, fill, lambda: clock[0])
    assert [(part.start, part.stop) for part in parts[::100]] == [(0, 1000), (100_000, 100_500)]
    parts.clear()
    with pytest.raises(OverBudgetError, match="longer than 10 us to start a timer"):
        filled(1_000_000, fill, lambda: clock[0])
    # Of the last ten parts, half began with more than 100 000 pending.
    assert len(parts) == 106


def test_sizes_beyond_one_that_takes_longer_than_the_budget_are_left_out(monkeypatch):
    seconds = {100: 0.4, 1_000: 1.1, 10_000: 5.0}
    clock = [0.0]

    def measure(caller, contestant, plan):
        clock[0] += seconds[plan.size]
        return Costs(1.0, 1.0, 1.0)

    monkeypatch.setattr(callers, "sizes_of", lambda caller, largest, timer: (*seconds,))
    monkeypatch.setattr(callers, "measure", measure)
    timer = contestant("ordered-list")
    for budget, measured in ((1.0, [100, 1_000]), (0.3, [100]), (2.0, [*seconds])):
        bench = Callers([timer], 1, budget, seed=0, clock=lambda: clock[0])
        bench.run()
        sizes = [row.size for row in bench.rows if row[:2] == (timer.label, PYTHON)]
        assert [*dict.fromkeys(sizes)] == measured


def test_a_host_that_is_slow_to_fill_has_no_larger_sizes_and_the_others_have_theirs(monkeypatch):
    def filled(count, fill):
        if count == 1_000 and tried[-1] == "asyncio":
            raise OverBudgetError("it takes longer")
        fill(slice(0, count))

    tried = []
    monkeypatch.setattr(callers, "filled", filled)
    monkeypatch.setattr(callers, "sizes_of", lambda caller, largest, timer: (100, 1_000))
    monkeypatch.setattr(callers, "PAIRS", dict.fromkeys(CALLERS, 50))
    bench = Callers([], 1, 10.0, seed=0)
    bench.run(lambda step: tried.append(step.removeprefix("calling ")))
    sizes = {(row.contestant, row.size) for row in bench.rows if row.note is None}
    installed = {name for name, host in HOSTS.items() if host.installed}
    assert sizes == {(name, n) for name in installed for n in (100, 1_000)} - {("asyncio", 1_000)}


def test_larger_sizes_of_a_timer_that_is_slow_to_fill_are_left_out(monkeypatch):
    def filled(count, fill):
        assert count in (100, 1_000)
        if count == 1_000:
            raise OverBudgetError("it takes longer")
        fill(slice(0, count))

    monkeypatch.setattr(callers, "sizes_of", lambda caller, largest, timer: (100, 1_000, 10_000))
    monkeypatch.setattr(callers, "filled", filled)
    monkeypatch.setattr(callers, "PAIRS", dict.fromkeys(CALLERS, 50))
    bench = Callers([contestant("ordered-list")], 1, 10.0, seed=0)
    bench.run()
    cases = [(row.subject, row.size) for row in bench.rows if row.contestant == "ordered-list"]
    ways = [caller for caller in CALLERS if can_call(caller, contestant("ordered-list"))]
    assert [*dict.fromkeys(cases)] == [(caller, 100) for caller in ways]
