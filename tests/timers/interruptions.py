"""Interrupts a method of a timer at a bytecode of one's choice, and accounts for every timer.

Python runs finalizers and signal handlers between bytecodes. Here an event is made to happen before
the n-th bytecode that a call executes in the files of the timers: an exception, or other calls of
the same timer.
"""

import dis
import gc
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import timers
from tests.timers.cases import Case, rows_of
from timers.errors import CapacityError, ClockError, NestedCallError
from timers.kernels.pool import BASE
from timers.limits import LIMIT

PACKAGE = str(Path(timers.__file__).parent)
COMPILED = re.compile(r"Calls\.__init__\.<locals>\.call_\w+")
"""What a timer calls of its kernel: one step, interpreted as well."""
KERNELS = str(Path(PACKAGE, "kernels"))
ON_COPIES = ("check", "snapshot")
"""Functions of a kernel that work on a copy of the arrays, so that nothing can disturb them."""
START, TARGET = 50, 400
DEADLINES = (60, 60, 75, 90, 300, 5000)
"""Of the timers that are pending first; at the default geometries the last one outlives TARGET."""

Event = Callable[["Scene"], None]


class Interruption(BaseException):
    """What a signal handler raises."""


@dataclass
class Scene:
    """A timer that is full, so that the next one makes it grow, and what must become of each."""

    case: Case
    timer: Any
    handles: list[int] = field(default_factory=list)
    """Of the timers with DEADLINES."""
    deadlines: dict[int, set[int]] = field(default_factory=dict)
    """By handle: the deadlines that it may have. What was cancelled is not there."""
    optional: list[int] = field(default_factory=list)
    """Deadlines of timers that may exist, all of them or none."""
    armed_at: set[int] = field(default_factory=lambda: {START})
    rows: list[Any] = field(default_factory=list)
    """All that advances have returned."""
    reached: int = START
    """The clock when the last of them returned, or later."""

    @classmethod
    def of(cls, case: Case) -> "Scene":
        scene = cls(case, case(start=START, capacity=len(DEADLINES)))
        scene.handles = [scene.arm(deadline) for deadline in DEADLINES]
        return scene

    def arm(self, deadline: int) -> int:
        self.armed_at.add(self.timer.now)
        handle: int = self.timer.schedule(deadline)
        assert handle not in self.deadlines
        self.deadlines[handle] = {deadline}
        return handle

    def cancel(self, handle: int) -> None:
        if self.timer.cancel(handle):
            assert self.deadlines.pop(handle, None) is not None, "cancelled twice"

    def is_over(self, handle: int) -> bool:
        """Whether a timer was cancelled or has fired."""
        return handle not in self.deadlines or any(row.handle == handle for row in self.rows)

    def advance(self, now: int) -> None:
        rows = rows_of(self.timer.advance(now))
        moments = [row.fired_at for row in rows]
        assert moments == sorted(moments)
        self.rows += rows
        self.reached = max(self.reached, now)

    def account(self) -> None:
        """Every timer has fired or fires once, when it is due, unless it was cancelled."""
        timer = self.timer
        timer.check()
        assert timer.now >= self.reached
        self.armed_at.add(timer.now)
        if timer.next_expiry() is not None:
            assert timer.next_expiry() >= timer.now
        left = len(timer)
        before = len(self.rows)
        self.advance(LIMIT)
        assert len(self.rows) - before >= left  # more if an interrupted advance left some
        assert len(timer) == 0
        assert timer.next_expiry() is None
        timer.check()
        fired = [row.handle for row in self.rows]
        assert len(fired) == len(set(fired)), "a timer has fired twice"
        unknown = [row for row in self.rows if row.handle not in self.deadlines]
        assert self.deadlines.keys() <= set(fired), "a timer is lost"
        assert sorted(row.deadline for row in unknown) in ([], sorted(self.optional))
        for row in self.rows:
            if row.handle in self.deadlines:
                assert row.deadline in self.deadlines[row.handle]
            due = {self.case.due_at(row.deadline, armed) for armed in self.armed_at}
            assert row.fired_at in due, (row, due)
            assert timer.cancel(row.handle) is False


def interrupted(scene: Scene, method: Event, position: int, event: Event) -> tuple[str, Any]:
    """Run a method in which `event` happens before the bytecode number `at`, counted from 0.

    Returns the bytecode's name, empty if the call has fewer, and the Interruption if there was one.
    """
    seen, name = 0, ""

    def trace(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal seen, name
        if what == "call" and not is_plain_python(frame):
            return None
        frame.f_trace_opcodes = True
        if what == "opcode" and not name:
            if seen == position:
                name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
                sys.settrace(None)
                event(scene)
                return None
            seen += 1
        return trace

    before = sys.gettrace()
    # Python 3.12 traces bytecodes only if some frame has asked for that before `settrace`.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        method(scene)
    except Interruption as interruption:
        return name, interruption
    finally:
        sys.settrace(before)
    return name, None


def is_plain_python(frame: FrameType) -> bool:
    """Whether a frame is of the timers' files, but not within a kernel's step, interpreted, or a
    function that works on copies.
    """
    caller: FrameType | None = frame
    while caller and caller.f_code.co_filename.startswith(PACKAGE):
        code = caller.f_code
        if COMPILED.fullmatch(code.co_qualname):
            return False
        if code.co_qualname in ON_COPIES and code.co_filename.startswith(KERNELS):
            return False
        caller = caller.f_back
    return caller is not frame


# ---- what may happen


def raise_(scene: Scene) -> None:
    raise Interruption


class Connection:
    """Cancels its timeout when it is collected, and schedules others."""

    def __init__(self, scene: Scene, handle: int) -> None:
        self.scene, self.handle, self.itself = scene, handle, self

    def __del__(self) -> None:
        self.scene.cancel(self.handle)
        for deadline in range(100, 108):  # more than there is room for
            self.scene.arm(deadline)


def collect(scene: Scene) -> None:
    """The collector finds a connection in a cycle."""
    Connection(scene, scene.handles[1])
    gc.collect(0)


def collect_due(scene: Scene) -> None:
    """The same with the connection that the method itself is about."""
    Connection(scene, scene.handles[0])
    gc.collect(0)


def advance_to_now(scene: Scene) -> None:
    scene.arm(scene.timer.now)
    with suppress(NestedCallError):  # in the middle of another advance
        scene.advance(scene.timer.now)


def advance_as_far(scene: Scene) -> None:
    with suppress(NestedCallError):
        scene.advance(TARGET)


EVENTS: dict[str, Event] = {
    event.__name__: event
    for event in (raise_, collect, collect_due, advance_to_now, advance_as_far)
}

# ---- what is interrupted


def schedule(scene: Scene) -> None:
    scene.optional = [77]
    handle = scene.timer.schedule(77)
    scene.optional = []
    scene.deadlines[handle] = {77}


def schedule_after(scene: Scene) -> None:
    scene.optional = [START + 27]
    handle = scene.timer.schedule_after(27)
    scene.optional = []
    scene.deadlines[handle] = {START + 27, TARGET + 27}


def schedule_many(scene: Scene) -> None:
    scene.optional = [80, 70, 80]
    handles = scene.timer.schedule_many([80, 70, 80])
    scene.deadlines.update(zip(handles.tolist(), ({80}, {70}, {80}), strict=True))
    scene.optional = []


def cancel(scene: Scene) -> None:
    settle_cancelled(scene, scene.handles[:1], lambda: [scene.timer.cancel(scene.handles[0])])


def cancel_many(scene: Scene) -> None:
    some = scene.handles[:3]
    settle_cancelled(scene, some, lambda: scene.timer.cancel_many(some).tolist())


def settle_cancelled(scene: Scene, handles: list[int], call: Callable[[], list[bool]]) -> None:
    """After an interruption: cancelled are all of the handles that could be, or none."""
    try:
        cancelled = call()
    except Interruption:
        pending = [scene.timer.reschedule(handle, 5000) for handle in handles]
        assert len(set(pending)) == 1
        for handle in handles:
            scene.deadlines[handle] = {5000}
            if not pending[0]:
                del scene.deadlines[handle]
        raise
    for handle, was_pending in zip(handles, cancelled, strict=True):
        assert was_pending is True or (was_pending is False and scene.is_over(handle))
        if was_pending:
            assert scene.deadlines.pop(handle, None) is not None, "cancelled twice"


def reschedule(scene: Scene) -> None:
    handle = scene.handles[0]
    settle_rescheduled(scene, [handle], lambda: [scene.timer.reschedule(handle, 85)])


def reschedule_many(scene: Scene) -> None:
    some = scene.handles[:3]
    settle_rescheduled(
        scene, some, lambda: scene.timer.reschedule_many(some, [85, 85, 85]).tolist()
    )


def settle_rescheduled(scene: Scene, handles: list[int], call: Callable[[], list[bool]]) -> None:
    before = {handle: set(scene.deadlines[handle]) for handle in handles}
    for handle in handles:
        scene.deadlines[handle].add(85)
    rescheduled = call()
    for handle, was_pending in zip(handles, rescheduled, strict=True):
        assert was_pending is True or (was_pending is False and scene.is_over(handle))
        if handle in scene.deadlines:  # not cancelled meanwhile
            scene.deadlines[handle] = {85} if was_pending else before[handle]


def advance(scene: Scene) -> None:
    scene.advance(TARGET)


def advance_again(scene: Scene) -> None:
    """The first time, there is no memory for the result."""
    with pytest.MonkeyPatch.context() as patch, suppress(CapacityError):
        patch.setattr(np, "concatenate", no_memory)
        scene.advance(TARGET)
    scene.timer.next_expiry()
    scene.advance(TARGET)


def no_memory(*arguments: object, **keywords: object) -> None:
    raise MemoryError


def advance_to_nothing(scene: Scene) -> None:
    try:
        scene.advance(START + 1)
    except ClockError:  # the nested advance, which went further, came first
        assert scene.timer.now > START + 1


def reserve(scene: Scene) -> None:
    scene.timer.reserve(20)
    state = scene.timer.state
    assert state.nodes.size - int(state.cells[BASE]) >= len(scene.timer) + 20


def look(scene: Scene) -> None:
    timer = scene.timer
    assert timer.next_expiry() is not None  # the last one is still pending
    assert timer.next_wakeup() is not None
    assert len(timer) > 0
    assert timer.now >= START
    timer.check()
    timer.locate(scene.handles[0])
    timer.snapshot()


METHODS: dict[str, Event] = {
    method.__name__: method
    for method in (
        *(schedule, schedule_after, schedule_many, cancel, cancel_many, reschedule),
        *(reschedule_many, advance, advance_again, advance_to_nothing, reserve, look),
    )
}
