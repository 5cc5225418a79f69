"""The costs that the traits declare: counted on growing workloads and fitted against the variable
they name.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CellType, FunctionType
from typing import Any

import numpy as np
import pytest

from tests.timers.cases import rotation_of
from timers.kernels.dispatch import kernel_of
from timers.kernels.pool import EXPIRY
from timers.registry import names, timer_class
from timers.schemes import heapq_delay_queue
from timers.schemes.cascading_wheel import CascadingWheel
from timers.schemes.heapq_delay_queue import HeapqDelayQueue
from timers.schemes.hierarchical_wheel import HierarchicalWheel
from timers.traits import NO_COUNTER, READS, Cost, Load
from timers.validation import as_time, as_times

SAMPLE = 2_000  # operations that are counted beside N pending timers, to find the cost of each
UNIFORM = 20_000  # ticks over which uniform delays spread
ROTATIONS = 16  # of the wheel, over which long delays spread
LEVEL = 20  # slots of the wheels whose levels are counted

SIZES = [2**k for k in range(8, 15)]
WHEEL_SIZES = [2**k for k in range(3, 9)]
DELAYS = [2**k for k in range(8, 40, 4)]
LEVELS = list(range(6, 15))
DISTINCT_DELAYS = [2**k for k in range(2, 10)]
ROTATING_DELAYS = [2**k for k in range(18, 23)]  # a hashed wheel goes through all their rotations


@dataclass(frozen=True)
class Setting:
    """One point of a sweep."""

    timer_class: Any
    n: int = 4096
    wheel_size: int | None = None
    delay: int = 0
    delays: int = 3
    levels: int = 0

    def timer(self) -> Any:
        own = {} if self.wheel_size is None else {"wheel_size": self.wheel_size}
        if self.timer_class is HeapqDelayQueue:
            return CountedHeapq()
        return self.timer_class(**own, counting=True, capacity=self.n)

    @property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.n)


class Counted(int):
    """A deadline that counts how often heap entries are compared: first of all by their deadlines'
    equality.
    """

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int.__eq__(self, other)  # type: ignore[arg-type]

    __hash__ = int.__hash__


class CountedHeapq(HeapqDelayQueue):
    @property
    def counters(self) -> dict[str, int]:
        return {"comparisons": Counted.comparisons}


@pytest.fixture(autouse=True)
def counted_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the entries of `HeapqDelayQueue` count their comparisons."""

    def moments(deadlines: Any, name: str) -> Any:
        checked = as_times(deadlines, name).tolist()
        return np.array([Counted(deadline) for deadline in checked], object)

    monkeypatch.setattr(heapq_delay_queue, "as_time", lambda *asked: Counted(as_time(*asked)))
    monkeypatch.setattr(heapq_delay_queue, "as_times", moments)


Measured = tuple[dict[str, int], int]
"""Counters before and after a workload, as their difference, and the number of operations."""

Workload = tuple[Callable[[Setting], Measured], list[int]]
"""A function to run for each of these values of a variable."""

WORKLOADS: dict[tuple[str, Load, str], Workload] = {}
"""By the operation, load and variable of a Cost."""


def workload(operation: str, *loads: Load, **sweeps: list[int]) -> Callable[..., Any]:
    """Register a workload with the values of each variable that it can vary; by default N."""

    def register(run: Callable[[Setting], Measured]) -> Callable[[Setting], Measured]:
        for variable, values in (sweeps or {"N": SIZES}).items():
            WORKLOADS.update({(operation, load, variable): (run, values) for load in loads})
        return run

    return register


def workload_of(cost: Cost) -> Workload:
    """The workload that measures a cost; if there is none, the test fails."""
    key = (cost.operation, cost.load, cost.variable)
    if key not in WORKLOADS:
        known = [
            f"{variable} under Load.{load.name}"
            for operation, load, variable in WORKLOADS
            if operation == cost.operation
        ]
        pytest.fail(
            f"no workload measures '{cost.operation}' in {cost.variable} under "
            f"Load.{cost.load.name}; those that exist measure {', '.join(known)}; "
            f"declare one of these, or add a function with @workload to {__file__}",
            pytrace=False,
        )
    return WORKLOADS[key]


def counted(timer: Any, run: Callable[[], object]) -> dict[str, int]:
    before = dict(timer.counters)
    run()
    return {counter: value - before[counter] for counter, value in timer.counters.items()}


def tick_of(timer: Any) -> int:
    return timer.parameters.get("tick", 1)


def filled(setting: Setting, spread: int | None = None) -> tuple[Any, np.ndarray[Any, Any]]:
    """A timer with n pending timers of uniform delays, and their handles."""
    timer = setting.timer()
    spread = spread or UNIFORM * tick_of(timer)
    return timer, timer.schedule_many(setting.random.integers(1, spread, setting.n))


def on_a_small_wheel(setting: Setting) -> Setting:
    """The setting with more timers than slots, unless it has a wheel size."""
    return setting if setting.wheel_size else replace(setting, wheel_size=min(WHEEL_SIZES))


def few_delays(setting: Setting) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A timer with n pending timers of a few distinct delays, armed one round a unit; their
    handles; and the delays.
    """
    timer, delays = setting.timer(), setting.n + UNIFORM * np.arange(setting.delays)
    handles = []
    for now in range(setting.n // setting.delays):
        timer.advance(now)
        handles.append(timer.schedule_many(now + delays))
    return timer, np.concatenate(handles), delays


def follow_wakeups(timer: Any) -> None:
    """Event-driven: from wake-up to wake-up until nothing is pending."""
    while len(timer):
        timer.advance(timer.next_wakeup())


def expiry_of_all(timer: Any) -> Measured:
    n = len(timer)
    return counted(timer, lambda: follow_wakeups(timer)), n


def worst_tick(timer: Any) -> Measured:
    """The costliest of all the advances until nothing is pending."""
    ticks = []
    while len(timer):
        ticks.append(counted(timer, lambda: timer.advance(timer.next_wakeup())))
    return max(ticks, key=lambda costs: sum(costs.values())), 1


def ticks_of(timer: Any, ticks: int) -> Measured:
    """Clock-driven: advances by one tick each."""

    def run() -> None:
        for _ in range(ticks):
            timer.advance(timer.now + tick_of(timer))

    return counted(timer, run), ticks


@workload("schedule", Load.ANY, Load.RANDOM_DEADLINES, Load.UNIFORM_DELAYS)
def schedule_at_random(setting: Setting) -> Measured:
    timer, _ = filled(setting)
    # Few beside n, as each of them adds to n.
    deadlines = setting.random.integers(1, UNIFORM * tick_of(timer), min(SAMPLE, setting.n // 4))
    return counted(timer, lambda: timer.schedule_many(deadlines)), deadlines.size


@workload("schedule", Load.FALLING_DEADLINES)
def schedule_before_all(setting: Setting) -> Measured:
    timer = setting.timer()
    falling = np.arange(setting.n // 4)[::-1]
    timer.schedule_many(np.arange(setting.n) + falling.size)
    return counted(timer, lambda: timer.schedule_many(falling)), falling.size


@workload("schedule", Load.EQUAL_DELAYS)
def schedule_behind_all(setting: Setting) -> Measured:
    """As when all timers have the same delay: each deadline is the latest one."""
    timer = setting.timer()
    timer.schedule_many(np.arange(setting.n))
    latest = setting.n + np.arange(min(SAMPLE, setting.n // 4))
    return counted(timer, lambda: timer.schedule_many(latest)), latest.size


@workload("schedule", Load.MANY_ROTATIONS, N=SIZES, wheel_size=WHEEL_SIZES)
def schedule_over_many_rotations(setting: Setting) -> Measured:
    return schedule_at_random(on_a_small_wheel(setting))


@workload("reschedule", Load.MANY_ROTATIONS, N=SIZES, wheel_size=WHEEL_SIZES)
def rearm_over_many_rotations(setting: Setting) -> Measured:
    return rearm_at_random(on_a_small_wheel(setting))


@workload("schedule", Load.FEW_DELAYS)
def schedule_a_few_delays(setting: Setting) -> Measured:
    timer, _, delays = few_delays(setting)
    deadlines = timer.now + setting.random.choice(delays, SAMPLE)
    return counted(timer, lambda: timer.schedule_many(deadlines)), SAMPLE


@workload("cancel", Load.FEW_DELAYS)
def cancel_among_a_few_delays(setting: Setting) -> Measured:
    timer, handles, _ = few_delays(setting)
    chosen = setting.random.permutation(handles)
    return counted(timer, lambda: timer.cancel_many(chosen)), chosen.size


@workload("reschedule", Load.FEW_DELAYS)
def rearm_the_first_of_a_list(setting: Setting) -> Measured:
    """The earliest timer of each list becomes its latest."""
    timer, handles, delays = few_delays(setting)
    later = timer.now + np.resize(delays, handles.size)
    return counted(timer, lambda: timer.reschedule_many(handles, later)), handles.size


@workload("expiry", Load.FEW_DELAYS, N=SIZES, delays=DISTINCT_DELAYS)
def expire_a_few_delays(setting: Setting) -> Measured:
    return expiry_of_all(few_delays(setting)[0])


@workload("cancel", Load.RANDOM_CANCELS)
def cancel_at_random(setting: Setting) -> Measured:
    timer, handles = filled(setting)
    chosen = setting.random.permutation(handles)[: min(SAMPLE, setting.n // 4)]
    return counted(timer, lambda: timer.cancel_many(chosen)), chosen.size


@workload("cancel", Load.ALL_CANCELLED)
def cancel_all(setting: Setting) -> Measured:
    timer, handles = filled(setting)
    chosen = setting.random.permutation(handles)

    def run() -> None:
        timer.cancel_many(chosen)
        timer.advance(timer.now)  # removes what the cancels left behind

    return counted(timer, run), setting.n


@workload("reschedule", Load.ANY, Load.RANDOM_DEADLINES)
def rearm_at_random(setting: Setting) -> Measured:
    timer, handles = filled(setting)
    chosen = setting.random.choice(handles, SAMPLE)
    deadlines = setting.random.integers(1, UNIFORM * tick_of(timer), SAMPLE)
    return counted(timer, lambda: timer.reschedule_many(chosen, deadlines)), SAMPLE


@workload("reschedule", Load.IDLE_TIMEOUTS)
def rearm_in_turn(setting: Setting) -> Measured:
    timer = setting.timer()
    handles = timer.schedule_many(np.arange(setting.n))
    turn = np.arange(SAMPLE)
    later = setting.n + turn
    return counted(timer, lambda: timer.reschedule_many(handles[turn % setting.n], later)), SAMPLE


@workload("expiry", Load.ANY, Load.UNIFORM_DELAYS)
def expire_uniform(setting: Setting) -> Measured:
    return expiry_of_all(filled(setting)[0])


@workload("expiry", Load.ALL_AT_ONCE)
def expire_at_once(setting: Setting) -> Measured:
    timer, _ = filled(setting)
    return counted(timer, lambda: timer.advance(UNIFORM)), setting.n


@workload("expiry", Load.ONE_ROTATION)
def expire_within_a_rotation(setting: Setting) -> Measured:
    return expiry_of_all(filled(setting, rotation_of(setting.timer().parameters))[0])


@workload("expiry", Load.MANY_ROTATIONS, delay=ROTATING_DELAYS, wheel_size=WHEEL_SIZES)
def expire_after_many_rotations(setting: Setting) -> Measured:
    spread = setting.delay or ROTATIONS * tick_of(setting.timer()) * max(WHEEL_SIZES)
    return expiry_of_all(filled(setting, 2 * spread)[0])


@workload("expiry", Load.EQUAL_DELAYS, delay=DELAYS, levels=LEVELS)
def expire_one_delay(setting: Setting) -> Measured:
    """Armed at moments that fall anywhere in the upper levels' slots."""
    n = 256
    timer = setting.timer()
    delay = setting.delay or 3 * LEVEL ** (setting.levels - 1)
    for now in np.sort(setting.random.integers(0, delay, n)).tolist():
        timer.advance(now)
        timer.schedule_after(delay)
    follow_wakeups(timer)
    return timer.counters, n


@workload("tick", Load.ANY)
def tick_beside_pending(setting: Setting) -> Measured:
    return ticks_of(filled(setting)[0], 50)


@workload("tick", Load.MANY_ROTATIONS, N=SIZES, wheel_size=WHEEL_SIZES)
def tick_of_long_delays(setting: Setting) -> Measured:
    """One whole rotation, tick by tick."""
    slots = max(WHEEL_SIZES) if setting.wheel_size else setting.timer().parameters["wheel_size"]
    timer, _ = filled(setting, ROTATIONS * tick_of(setting.timer()) * slots)
    return ticks_of(timer, timer.parameters["wheel_size"])


@workload("tick", Load.FULL_SLOT)
def tick_of_a_full_slot(setting: Setting) -> Measured:
    timer = setting.timer()
    timer.schedule_many(np.full(setting.n, 70_001))
    return worst_tick(timer)


# ---- the fits

FLAT = 0.3  # of the mean: the most that a constant cost may rise over a sweep, in a random sample
RISING = 0.4  # of the mean: the least that a logarithmic cost must rise
STRAIGHT = 0.97  # correlation of a logarithmic cost with the logarithm of its variable
STEEP = 0.15  # how far a slope on log-log scales may be from 1 or -1


def fits(growth: str, variable: np.ndarray[Any, Any], cost: np.ndarray[Any, Any]) -> bool:
    """Whether a series of costs per operation grows so in its variable."""
    logs = np.log2(variable)
    rise = np.polyfit(logs, cost, 1)[0] * (
        logs[-1] - logs[0]
    )  # over the sweep, along the best a + b log(variable)
    if growth == "1":  # an upper bound: it may fall
        return bool(rise <= FLAT * cost.mean())
    if (cost <= 0).any():
        return False
    slope = np.polyfit(logs, np.log2(cost), 1)[0]
    if growth == "log":
        rises = rise > RISING * cost.mean() and slope < 1 - STEEP
        return bool(rises and np.corrcoef(logs, cost)[0, 1] > STRAIGHT)
    return bool(abs(slope - {"linear": 1, "inverse": -1}[growth]) < STEEP)


COSTS = [
    pytest.param(timer_class(name), cost, id=f"{name}: {cost}, {cost.counter}, {cost.load}")
    for name in names()
    for cost in timer_class(name).traits.costs
    if cost.counter not in (NO_COUNTER, READS)
]


def series(timer: Any, cost: Cost) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    run, values = workload_of(cost)
    per_operation = []
    for value in values:
        costs, operations = run(Setting(timer, **{cost.variable.lower(): value}))
        per_operation.append(costs[cost.counter] / operations)
    return np.array(values, float), np.array(per_operation)


@pytest.mark.parametrize(("timer", "cost"), COSTS)
def test_cost_grows_as_declared(timer: Any, cost: Cost) -> None:
    variable, measured = series(timer, cost)
    assert fits(cost.growth, variable, measured), dict(
        zip(variable.tolist(), measured.round(3).tolist(), strict=True)
    )


@pytest.fixture(scope="module")
def reads() -> dict[str, Any]:
    """What `next_wakeup` reads, counted in a process without the JIT."""
    command = [sys.executable, "-m", "tests.timers.wakeup_reads"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counted: dict[str, Any] = json.loads(run.stdout)
    return counted


@pytest.mark.parametrize("name", names())
def test_a_wakeup_costs_as_declared(name: str, reads: dict[str, Any]) -> None:
    """Five seconds, most of them to fill timers without the JIT: no counter would see a search."""
    costs = [each for each in timer_class(name).traits.costs if each.operation == "next_wakeup"]
    assert costs
    if name not in {key.split()[0] for key in reads}:
        pytest.skip("this process alone knows the timer")
    for cost in costs:
        if cost.counter == READS:
            values = np.array(reads[f"{name} {cost.variable}"], float)
            assert fits(cost.growth, values[:, 0], values[:, 1]), values.tolist()


def test_services_by_default_use_timers_whose_wakeups_are_cheap() -> None:
    for scheme in (CascadingWheel, HierarchicalWheel):
        costs = [each for each in scheme.traits.costs if each.operation == "next_wakeup"]
        assert [each.growth for each in costs] == ["1"]


def test_a_cost_that_no_workload_measures_names_those_that_are_measured() -> None:
    class Declared(CascadingWheel):
        traits = replace(
            CascadingWheel.traits,
            costs=(Cost("expiry", "N", "1", Load.EQUAL_DELAYS, "refiled"),),
        )

    with pytest.raises(pytest.fail.Exception) as caught:
        series(Declared, *Declared.traits.costs)
    message = str(caught.value)
    assert "no workload measures 'expiry' in N under Load.EQUAL_DELAYS" in message
    assert "N under Load.UNIFORM_DELAYS" in message
    assert "delay under Load.EQUAL_DELAYS, levels under Load.EQUAL_DELAYS" in message
    assert "Load.FULL_SLOT" not in message  # that of a tick


@pytest.mark.parametrize("growth", ["1", "log", "linear", "inverse"])
def test_fit_tells_growths_apart(growth: str) -> None:
    variable = np.array(SIZES, float)
    shapes = {
        "1": 0 * variable + 3,
        "log": 1 + np.log2(variable),
        "linear": variable + 9,
        "inverse": 1 / variable,
    }
    others = {other for other, cost in shapes.items() if fits(growth, variable, cost)}
    assert others == ({growth, "inverse"} if growth == "1" else {growth})


# ---- operations that count nothing

FEW, MANY = 16, 4096  # pending timers
FAR_AND_NEAR = [0, 1, 100, 300, 511, 5_000, UNIFORM, 2**41]  # delays into buckets of all kinds

UNCOUNTED = [
    pytest.param(name, cost.operation, id=f"{name}: {cost}")
    for name in names()
    for cost in timer_class(name).traits.costs
    if cost.counter == NO_COUNTER
]
"""Costs that show in no counter, since all of them stay at zero."""


class Cells(np.ndarray[Any, Any]):
    """An array that counts how often its cells or rows are read or written."""

    accesses = 0

    def __getitem__(self, key: Any) -> Any:
        Cells.accesses += 1
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        Cells.accesses += 1
        super().__setitem__(key, value)


def interpreted(value: Any, known: dict[Any, Any]) -> Any:
    """A compiled function as plain Python, and all that it calls with it; else the value."""
    if not hasattr(value, "py_func"):
        return value
    python = value.py_func
    if python not in known:
        variables = dict(python.__globals__)
        cells = (cell.cell_contents for cell in python.__closure__ or ())
        closure = tuple(CellType(interpreted(cell, known)) for cell in cells)
        known[python] = FunctionType(
            python.__code__, variables, argdefs=python.__defaults__, closure=closure
        )
        for name in set(python.__code__.co_names) & set(variables):
            variables[name] = interpreted(variables[name], known)
    return known[python]


def most_accesses(name: str, operation: str, deadlines: np.ndarray[Any, Any]) -> int:
    """The most that one operation reads and writes, beside timers of these deadlines.

    The first, the last and some other timers are cancelled or re-armed, with delays of all kinds.
    """
    timer = timer_class(name)(counting=True, capacity=deadlines.size + len(FAR_AND_NEAR))
    handles = timer.schedule_many(deadlines)
    chosen = handles[np.linspace(0, handles.size - 1, len(FAR_AND_NEAR)).astype(int)].tolist()
    calls: dict[str, list[tuple[Any, ...]]] = {
        "schedule": [(delay,) for delay in FAR_AND_NEAR],
        "cancel": [(handle,) for handle in chosen],
        "reschedule": list(zip(chosen, FAR_AND_NEAR, strict=True)),
        "tick": [(timer.now + 1, np.empty(1, EXPIRY))],
    }
    state = timer.state._replace(
        nodes=timer.state.nodes.view(Cells), cells=timer.state.cells.view(Cells)
    )
    function = {"tick": "advance"}.get(operation, operation)
    run = interpreted(getattr(kernel_of(type(timer.state)), function), {})
    highest, counters = 0, timer.counters
    assert operation in calls, f"the cost of an {operation} needs a counter, not NO_COUNTER"
    for arguments in calls[operation]:
        before = Cells.accesses
        assert run(state, *arguments)
        highest = max(highest, Cells.accesses - before)
    timer.check()
    assert timer.counters == counters
    return highest


@pytest.mark.parametrize("spread", [1, UNIFORM], ids=["one bucket", "many buckets"])
@pytest.mark.parametrize(("name", "operation"), UNCOUNTED)
def test_uncounted_operation_touches_no_more_beside_many_timers(
    name: str, operation: str, spread: int
) -> None:
    few, many = (
        most_accesses(name, operation, 99 + np.linspace(1, spread, n).astype(np.int64))
        for n in (FEW, MANY)
    )
    assert 0 < many <= few
