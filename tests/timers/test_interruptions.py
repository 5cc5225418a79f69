"""Whatever interrupts a method, at whichever bytecode: no timer is lost, none fires twice."""

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from numba.core import config

from tests.timers.cases import CASES, DEFAULTS, KERNELS, Case, rows_of
from tests.timers.interruptions import (
    DEADLINES,
    EVENTS,
    METHODS,
    START,
    TARGET,
    Connection,
    Interruption,
    Scene,
    interrupted,
    no_memory,
)
from timers.errors import CapacityError, ClockError, CopyError, NestedCallError
from timers.limits import LIMIT
from timers.schemes import base
from timers.schemes.guards import NESTED

every_timer = pytest.mark.parametrize("case", KERNELS, ids=str)

PAUSES = ("CALL", "PRECALL", "RESUME", "JUMP_BACKWARD")
"""Beginnings of the names of the bytecodes at which Python runs signal handlers."""
# Bytecodes of an advance at which an exception would lose its rows, or make it refuse all others;
# and at its beginning and end those at which another may run.
LOSING, REFUSING, BEGINNING, END = 6, 8, 30, 3
SELDOM = 17  # bytecodes, for all but the delay queue: they run the same ones


def interrupt_everywhere(case: Case, method: str, event: str, start: int, every: int) -> None:
    """Interrupt a method at each bytecode, and account for all timers after each."""
    METHODS[method](Scene.of(case))  # compiled by now
    returned: list[str] = []  # the bytecodes at which an advance had taken its last step
    refusing: list[str] = []  # those at which it was about to allow other advances again
    for position in count(start, every):
        scene = Scene.of(case)
        name, result = interrupted(scene, METHODS[method], position, EVENTS[event])
        if not name:
            break
        timer = scene.timer
        with pytest.raises((ClockError, NestedCallError)) as caught:
            timer.advance(START - 1)
        if caught.type is NestedCallError:
            assert isinstance(result, Interruption)
            refusing.append(name)
            continue
        has_fired = len(timer) < len(DEADLINES) and timer.next_expiry() > timer.now
        if isinstance(result, Interruption) and method.startswith("advance") and has_fired:
            returned.append(name)
            continue
        assert not returned
        scene.account()
    assert len(returned) <= LOSING
    assert len(refusing) <= REFUSING
    assert not any(name.startswith(PAUSES) for name in (*returned, *refusing))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows fill the first part of an advance. Private: the public way is 257 timers."""
    monkeypatch.setattr(base, "_FIRST_ROWS", 2)


# CPython 3.12 reports an exception that comes while it closes a generator.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("event", EVENTS)
@every_timer
def test_nothing_is_lost_wherever_a_method_is_interrupted(
    case: Case, event: str, small_parts: None
) -> None:
    every = 1 if case.name == "delay-queue" else SELDOM
    for method in METHODS:
        interrupt_everywhere(case, method, event, len(case.name + method + event) % every, every)


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("case", [case for case in CASES if case.has_kernel], ids=str)
def test_nothing_is_lost_at_any_bytecode_with_any_geometry(
    case: Case, event: str, small_parts: None
) -> None:
    for method in METHODS:
        interrupt_everywhere(case, method, event, 0, 1)


@every_timer
def test_an_advance_in_the_middle_of_another_is_refused(case: Case, small_parts: None) -> None:
    METHODS["advance"](Scene.of(case))  # compiled by now
    refused: list[bool] = []

    def advance_as_well(scene: Scene) -> None:
        try:
            scene.advance(TARGET)
        except NestedCallError as error:
            assert str(error) == NESTED
            refused.append(True)
        else:
            refused.append(False)

    for position in count():
        scene = Scene.of(case)
        name, _ = interrupted(scene, METHODS["advance"], position, advance_as_well)
        if not name:
            break
        scene.account()
    first, after_last = refused.index(True), len(refused) - refused[::-1].index(True)
    assert all(refused[first:after_last])
    assert first < BEGINNING
    assert len(refused) - after_last <= END


# ---- what has left the structure


def cut_short(case: Case, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[int], list[int]]:
    """A timer whose advance to 1000 had no memory for its answer; handles that fired, or not."""
    timer = case(capacity=4)
    early = timer.schedule_many(np.full(300, 10)).tolist()
    late = timer.schedule_many([5000, 6000]).tolist()
    with monkeypatch.context() as patch:
        patch.setattr(np, "concatenate", no_memory)
        with pytest.raises(CapacityError, match="the next advance returns them"):
            timer.advance(1000)
    return timer, early, late


@every_timer
def test_what_has_fired_waits_for_the_next_advance(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer, early, late = cut_short(case, monkeypatch)
    timer.check()
    assert len(timer) == 2
    assert timer.now == 1000
    assert timer.next_expiry() == timer.next_wakeup() == 1000
    assert not timer.cancel_many(early).any()
    assert timer.reschedule(early[0], 2000) is False
    overdue = timer.schedule(7)
    rows = rows_of(timer.advance(5500))
    assert sorted(row.handle for row in rows[:-2]) == early  # of one moment, in any order
    assert [row.handle for row in rows[-2:]] == [overdue, late[0]]
    assert {row.fired_at for row in rows[:-2]} == {case.due_at(10, 0)}
    assert rows[-2].fired_at == 1000
    assert timer.next_expiry() > 5500
    assert [row.handle for row in rows_of(timer.advance(LIMIT))] == late[1:]
    assert timer.next_expiry() is None


@every_timer
def test_what_has_fired_comes_out_within_a_limit(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer, early, late = cut_short(case, monkeypatch)
    rows = []
    for size in (120, 120, 62):
        assert timer.next_expiry() == timer.now
        part = rows_of(timer.advance(LIMIT, 120))
        assert len(part) == size
        rows += part
    assert sorted(row.handle for row in rows[:300]) == early  # of one moment, in any order
    assert [row.handle for row in rows[300:]] == late
    assert timer.next_expiry() is None


@every_timer
def test_an_advance_that_was_given_up_halfway_goes_no_further_than_the_next_one(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = case(capacity=4)
    timer.schedule_many(np.arange(1, 2000))
    parts = [base.new_part(256)]
    with monkeypatch.context() as patch:
        patch.setattr(base, "new_part", lambda rows: parts.pop() if parts else no_memory())
        with pytest.raises(CapacityError, match="no memory for 2048 more expired timers"):
            timer.advance(1500)
    moment = timer.now
    assert moment < 1500
    rows = rows_of(timer.advance(moment + 10))
    assert timer.now == moment + 10
    assert {row.fired_at for row in rows} <= set(range(moment + 11))
    assert all(case.due_at(row.deadline, 0) <= moment + 10 for row in rows)
    rows += rows_of(timer.advance(LIMIT))
    assert sorted(row.deadline for row in rows) == list(range(1, 2000))


def test_an_interrupted_advance_keeps_what_has_fired_in_order(small_parts: None) -> None:
    [case] = [case for case in KERNELS if case.name == "delay-queue"]
    for position in count():
        scene = Scene.of(case)
        timer = scene.timer
        name, _ = interrupted(scene, METHODS["advance"], position, EVENTS["raise_"])
        if not name:
            break
        if len(timer) == 1 and timer.next_expiry() > timer.now:
            continue  # the advance had taken its last step
        pending = [handle for handle in scene.handles if timer.cancel(handle)]
        fired = [handle for handle in scene.handles if handle not in pending]
        moment = timer.now if fired else None
        assert (len(timer), timer.next_expiry(), timer.next_wakeup()) == (0, moment, moment)
        assert [row.handle for row in rows_of(timer.advance(timer.now))] == fired
        assert timer.next_expiry() is None


@every_timer
def test_what_is_next_is_not_read_from_arrays_that_were_replaced(case: Case) -> None:
    """Private: no event between the reading of the arrays and the step shows in the result."""
    timer = case(capacity=1)
    timer.schedule(300)
    replaced = timer.state
    timer.schedule(200)
    assert timer._call.next_expiry(*replaced) is timer._call.next_wakeup(*replaced) is None


# ---- memory that is not there

ALLOCATIONS = ("empty", "zeros", "full", "array", "fromiter", "concatenate")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Call it with n to let the n-th of NumPy's allocations fail, from 1; with 0, none."""
    left = 0

    def limited(allocate: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise MemoryError
            return allocate(*arguments, **keywords)

        return call

    for name in ALLOCATIONS:
        monkeypatch.setattr(np, name, limited(getattr(np, name)))

    def fail(n: int) -> None:
        nonlocal left
        left = n

    yield fail
    left = 0


@every_timer
def test_nothing_is_lost_where_memory_is_not_there(
    case: Case, failing: Callable[[int], None]
) -> None:
    for method in ("schedule", "schedule_many", "advance", "reserve"):
        for n in range(1, 21):
            scene = Scene.of(case)
            failing(n)
            try:
                METHODS[method](scene)
                complete = True
            except CapacityError:
                complete = False
            finally:
                failing(0)
            scene.account()
            if complete:
                break
        assert complete, "the method does not come to an end"


# ---- the collector, as often as it can run


@pytest.mark.skipif(config.DISABLE_JIT, reason="the collector would interrupt the kernels")
@every_timer
def test_finalizers_may_cancel_and_schedule_while_a_timer_grows(case: Case) -> None:
    METHODS["schedule_many"](Scene.of(case))
    thresholds = gc.get_threshold()
    gc.freeze()  # a collection then looks at few objects
    gc.set_threshold(1)
    try:
        for k in range(20):
            scene = Scene.of(case)
            for handle in scene.handles[1:4]:
                Connection(scene, handle)
            METHODS["schedule_many" if k % 2 else "advance"](scene)
            gc.collect()  # from Python 3.12 on, some finalizers would run only now
            scene.account()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


# ---- the baseline in plain Python, which refuses nested calls


OF_THE_PROTOCOL = [method for method in METHODS if method not in ("reserve", "look")]


@pytest.mark.parametrize("method", OF_THE_PROTOCOL)
@pytest.mark.parametrize("nested", ["schedule", "cancel", "advance"])
def test_a_nested_call_is_refused_and_changes_nothing(method: str, nested: str) -> None:
    [case] = [case for case in DEFAULTS if not case.traits.interruptible]
    calls: dict[str, Callable[[Scene], object]] = {
        "schedule": lambda scene: scene.arm(100),
        "cancel": lambda scene: scene.cancel(scene.handles[2]),
        "advance": lambda scene: scene.advance(scene.timer.now),
    }
    refused = []

    def call(scene: Scene) -> None:
        try:
            calls[nested](scene)
        except NestedCallError as error:
            refused.append(str(error))

    for position in count():
        scene = Scene.of(case)
        name, _ = interrupted(scene, METHODS[method], position, call)
        if not name:
            break
        scene.account()
    assert refused


@pytest.mark.parametrize(
    "call",
    [
        lambda timer, handle: timer.schedule(77),
        lambda timer, handle: timer.schedule_many([80, 70]),
        lambda timer, handle: timer.cancel(handle),
        lambda timer, handle: timer.cancel_many([handle]),
        lambda timer, handle: timer.reschedule(handle, 85),
        lambda timer, handle: timer.reschedule_many([handle], [85]),
        lambda timer, handle: timer.advance(400),
        lambda timer, handle: timer.next_expiry(),
    ],
)
def test_a_timer_goes_on_after_an_exception_in_a_call(call: Callable[[Any, int], object]) -> None:
    [case] = [case for case in DEFAULTS if not case.traits.interruptible]

    def method(scene: Scene) -> None:
        call(scene.timer, scene.handles[0])

    for position in count():
        scene = Scene.of(case)
        name, _ = interrupted(scene, method, position, EVENTS["raise_"])
        if not name:
            break
        if name.startswith(PAUSES):
            handle = scene.timer.schedule(9999)
            assert handle in scene.timer.advance(9999).handles


# ---- copies


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_timers_refuse_to_be_copied(case: Case, duplicate: Callable[[object], object]) -> None:
    with pytest.raises(CopyError, match=type(case()).__name__) as caught:
        duplicate(case())
    assert isinstance(caught.value, TypeError)
